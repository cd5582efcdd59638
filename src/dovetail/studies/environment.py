"""A replay as a Gymnasium environment: the agent decides, the engine does the rest.

An episode is a stretch of a workload, drawn anew at each reset, on a machine that begins empty. The agent sees what a
policy sees, as arrays; times are on a logarithmic scale from 1 s to 30 days, sizes and room are shares of the machine.
With `action="job"` it names the next job to start in this moment, or lets time pass; with `action="order"` it gives
each job of the window a number, and the moment is decided by EASY backfilling with the highest first. The reward comes
at the end: by how much the metric is better than that of a baseline on the same jobs, as a share of it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final, Literal

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from dovetail.arrays import Ints, Mask
from dovetail.engine.estimates import estimator_of
from dovetail.engine.replay import ready, replay
from dovetail.engine.stepped import Stepper
from dovetail.errors import SettingError
from dovetail.metrics import summarize
from dovetail.metrics.catalog import metric_of
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.model.workload import Workload
from dovetail.names import unknown
from dovetail.policies.lists import ListPolicy
from dovetail.policies.registry import policy

Seen = dict[str, npt.NDArray[np.float32]]
_LONGEST: Final = np.log1p(30 * 86_400)
_RUNNING: Final = 32
"""Running jobs that are shown, those that end first."""


class Environment(gymnasium.Env[Seen, Any]):
    """`workload`: a log, or any jobs on a counted number of processors. `jobs`: of an episode. `window`: how many
    waiting jobs the agent sees, the first of the queue. `metric`: any key of `summarize`."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as Gymnasium has it

    def __init__(
        self,
        workload: Workload,
        *,
        jobs: int = 256,
        window: int = 32,
        action: Literal["job", "order"] = "job",
        metric: str = "mean_wait_s",
        baseline: str = "easy",
        estimate: str = "limit",
    ) -> None:
        if not 1 <= jobs <= len(workload):
            raise SettingError(f"jobs={jobs}: an episode has from 1 to all {len(workload):,} jobs of the workload")
        if window < 1:
            raise SettingError(f"window={window}: the agent sees at least one job")
        if action not in ("job", "order"):
            raise SettingError(f"action={action!r}: choose job or order")
        ready(workload, baseline, estimate=estimate)
        known = summarize(replay(workload.take(np.arange(len(workload)) < 1, "one job"), baseline, estimate=estimate))
        if metric not in known:
            raise SettingError(unknown("metric", metric, known))
        self.workload, self.jobs, self.window, self.by_order = workload, jobs, window, action == "order"
        self.metric, self.baseline, self.estimate = metric, policy(baseline), estimate
        self._sign = 1 if metric_of(metric).more_is_better else -1
        observation: Any = spaces.Dict({
            "waiting": spaces.Box(0, 1, (window, 4), np.float32),
            "running": spaces.Box(0, 1, (_RUNNING, 2), np.float32),
            "machine": spaces.Box(0, 1, (3,), np.float32),
        })  # fmt: skip
        self.observation_space = observation
        self.action_space = spaces.Box(-1, 1, (window,), np.float32) if self.by_order else spaces.Discrete(window + 1)
        self.schedule: Schedule | None = None
        """Of the episode that ended last."""
        self._shown: Ints = np.empty(0, np.int64)
        self._fits: Mask = np.empty(0, bool)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        """Begin an episode: so many jobs in a row from anywhere in the workload, or from the job `options["first"]`."""
        super().reset(seed=seed)
        last = len(self.workload) - self.jobs
        first = int((options or {}).get("first", self.np_random.integers(last + 1)))
        if not 0 <= first <= last:
            raise SettingError(f"first={first}: an episode begins at a job from 0 to {last}")
        rows = np.zeros(len(self.workload), bool)
        rows[first : first + self.jobs] = True
        self.part = self.workload.take(rows, "an episode")
        said = estimator_of(self.part, self.estimate)
        self.stepper = Stepper(self.part, Cluster(self.part.processors), ListPolicy(order=self._keys, reserve=1), said)
        self._moments: Generator[State, Plan, None] = self.stepper.moments()
        self._state: State = next(self._moments)
        self._starts: list[int] = []
        self._look()
        return self._seen(), self._info()

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """A job starts, or the moment is over and the next in which a job could start has come."""
        over = False
        if self.by_order:
            self._scores = np.asarray(action, np.float64)
            over = self._next(self.stepper.policy.decide(self._state))
        elif 0 <= int(action) < len(self._shown) and self._fits[int(action)]:
            self._starts.append(int(self._shown[int(action)]))
            self._look()
            if not self._fits.any():
                over = self._next(Plan(self._starts))
        else:
            over = self._next(Plan(self._starts or self._must()))
        reward = self._reward() if over else 0.0
        return self._seen(), reward, over, False, self._info()

    def _must(self) -> list[int]:
        """On a machine that would stand still for ever the first job starts."""
        idle = not len(self._state.running) and not self.stepper.coming
        return [int(self._shown[0])] if idle and len(self._shown) else []

    def _next(self, plan: Plan) -> bool:
        """Carry out a plan and go on to where there is something to decide. Returns whether the episode is over."""
        while True:
            self._starts = []
            try:
                self._state = self._moments.send(plan)
            except StopIteration:
                self._shown, self._fits = self._shown[:0], self._fits[:0]
                return True
            self._look()
            if self._fits.any():
                return False
            plan = Plan()

    def _look(self) -> None:
        """Who of the queue is shown, and what of it fits beside what the agent has started in this moment."""
        state, begun = self._state, self._starts
        waiting = state.waiting[~np.isin(state.waiting, begun)] if begun else state.waiting
        self._shown = waiting[: self.window]
        self._free = state.free - int(state.size[begun].sum())
        self._fits = state.size[self._shown] <= self._free

    def _keys(self, state: State) -> npt.NDArray[np.float64]:
        """What the agent's numbers say of the queue; those that it did not see come last."""
        keys = np.full(len(state.waiting), 2.0)
        keys[: len(self._shown)] = -self._scores[: len(self._shown)]
        return keys

    def _seen(self) -> Seen:
        state, whole = self._state, self.part.processors
        waiting = np.zeros((self.window, 4), np.float32)
        waiting[: len(self._shown)] = np.stack([
            state.size[self._shown] / whole, _scaled(state.estimate[self._shown]),
            _scaled(state.now - state.submit[self._shown]), self._fits,
        ], axis=1)  # fmt: skip
        ends = np.maximum(state.start[state.running] + state.estimate[state.running] - state.now, 1)
        first = np.argsort(ends, kind="stable")[:_RUNNING]
        running = np.zeros((_RUNNING, 2), np.float32)
        running[: len(first)] = np.stack([state.size[state.running][first] / whole, _scaled(ends[first])], axis=1)
        queue = len(state.waiting) - len(self._starts)
        demand = float(state.size[state.waiting].sum()) / whole
        machine = np.array([self._free / whole, queue / (queue + self.window), demand / (demand + 1)], np.float32)
        return {"waiting": waiting, "running": running, "machine": machine}

    def _info(self) -> dict[str, Any]:
        """Which actions do something: a job of the window that fits, or (the last) letting time pass."""
        mask = np.zeros(self.window + 1, np.int8)
        mask[: len(self._fits)] = self._fits
        mask[-1] = 1
        return {"now": self._state.now} if self.by_order else {"now": self._state.now, "action_mask": mask}

    def _reward(self) -> float:
        none = np.full(self.jobs, -1, np.int64)
        name, cluster = f"agent:action={'order' if self.by_order else 'job'}", self.stepper.cluster
        self.schedule = Schedule(
            self.part, cluster, name, self.estimate, self.stepper.start, self.stepper.arrive, none, none,
            self.stepper.passes,
        )  # fmt: skip
        base = summarize(replay(self.part, self.baseline, estimate=self.estimate))[self.metric]
        own = summarize(self.schedule)[self.metric]
        return self._sign * ((own - base) / base if base else own)


def _scaled(seconds: Ints) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = np.clip(np.log1p(np.maximum(seconds, 0)) / _LONGEST, 0, 1)
    return found


gymnasium.register("dovetail/Cluster-v0", entry_point="dovetail.studies.environment:Environment")
