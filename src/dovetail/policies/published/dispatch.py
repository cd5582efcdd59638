"""The dispatchers of the paper as policies: pcp19, hcp19, pcp21, pcp21s (optimize/dispatch/problem.py names the paper).

In each pass the waiting jobs with the highest slowdown are one problem; jobs that start now in its plan are started,
the others wait for the next pass. As the paper's dispatchers do, it solves whenever a job waits, even if none could
start now: a pass that was not solved would make the mean decision time look better than theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dovetail.errors import PolicyError, SettingError
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.names import choice, number, setting, whole
from dovetail.optimize.dispatch.cpsat import MODELS, solve_dispatch
from dovetail.optimize.dispatch.problem import (
    CLOCKS,
    MOST_LIMIT,
    WINDOW,
    Dispatched,
    DispatchProblem,
    Limits,
    dispatch_problem,
)
from dovetail.optimize.window.terms import MOST_WINDOW
from dovetail.policies.base import Policy


@dataclass(frozen=True)
class Dispatch(Policy):
    """Solves each pass with one of the paper's models and starts the jobs whose turn has come.

    `window` is the paper's m; `delta` and `most` are its limits of a search, in seconds of the `clock`: "work", what
    CP-SAT counts, so that same state is same plan; or "wall". A search that finds nothing starts no job.
    """

    model: str = "pcp21"
    window: int = setting(WINDOW, "the paper's m: jobs in a problem", whole(1, MOST_WINDOW, "jobs"))
    delta: float = setting(1.0, "limit of a first search, in seconds of the clock", number(0, MOST_LIMIT, above=True))
    most: float = setting(16.0, "limit of the longest search", number(0, MOST_LIMIT, above=True))
    clock: str = setting("work", "what counts: CP-SAT's own work, or the wall", choice(*CLOCKS))
    name: str = "pcp21"
    by_solver = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model not in MODELS:
            raise SettingError(f"model={self.model}: choose from {', '.join(MODELS)}")
        self._limits(0)

    def _limits(self, seed: int) -> Limits:
        return Limits(self.delta, self.most, clock=self.clock, seed=seed % 2**31)

    @property
    def timed(self) -> bool:
        """Whether it watches the clock, and may answer otherwise next time."""
        return self.clock == "wall"

    def solve(self, state: State) -> tuple[DispatchProblem, Dispatched]:
        """The problem of an instant and the whole answer to it, for studies."""
        try:
            problem = dispatch_problem(state, self.window)
        except ValueError as error:
            raise PolicyError(f"{self.name} at {state.now} s: {error}") from error
        return problem, solve_dispatch(problem, self.model, self._limits(state.seed))

    def decide(self, state: State) -> Plan:
        if not len(state.waiting):
            return Plan()
        problem, answer = self.solve(state)
        told = list(zip(problem.queue, answer.starts, strict=True)) if answer.starts else []
        nodes = {
            job.job: where
            for (job, at), where in zip(told, answer.nodes, strict=True)
            if at == state.now
        }  # fmt: skip
        expected = {job.job: at for job, at in told if at > state.now}
        # If nothing runs and nothing starts, there might be no other pass: ask for one when the plan goes on.
        wake = min(expected.values()) if expected and not nodes and not problem.running else None
        return Plan(
            starts=list(nodes), expected=expected, wake=wake, nodes=nodes,
            devices=_devices(problem.cluster, state, problem, nodes),
        )  # fmt: skip


def _devices(
    cluster: Cluster, state: State, problem: DispatchProblem, nodes: Mapping[int, tuple[int, ...]]
) -> dict[int, list[int]]:
    """Which of the shared devices each unit that starts gets, as bits: whole ones, the lowest that are free."""
    asked = state.requests
    if not cluster.shared or asked is None:
        return {}
    r = cluster.shared_at
    taken = dict.fromkeys(range(cluster.nodes), 0)
    for one in problem.running:
        for node, bits in zip(one.nodes, state.devices.get(one.job, ()), strict=False):
            taken[node] |= int(bits)
    given: dict[int, list[int]] = {}
    for job, where in nodes.items():
        given[job] = []
        for node in where:
            bits, device = 0, 0
            while bits.bit_count() < asked.need[job, r]:
                bits |= (~taken[node]) & (1 << device)
                device += 1
            taken[node] |= bits
            given[job].append(bits)
    return given


NAMES: Final[Mapping[str, Policy]] = {model: Dispatch(model, name=model) for model in MODELS}
