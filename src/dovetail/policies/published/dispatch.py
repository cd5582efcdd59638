"""The dispatchers of the paper as policies: pcp19, hcp19, pcp21, pcp21s (optimize/dispatch/problem.py names the paper).

In each pass the waiting jobs that fit beside what runs, those with the highest slowdown, are one problem; jobs that
start now in its plan are started, the others wait for the next pass. So it is in the authors' program
(github.com/cgalleguillosm/cp_dispatchers), which is followed where the paper leaves a choice. Where no job fits there
is nothing to solve. After an unsolved pass the next problem has half as many jobs, until one is solved again: unsolved
is, for PCP'21, one without a plan; for PCP'19 and HCP'19, one whose search ended at the last limit, plan or no plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from dovetail.errors import PolicyError, SettingError
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.names import choice, number, setting, whole, yes_or_no
from dovetail.optimize.dispatch.problem import (
    CLOCKS,
    MOST_LIMIT,
    SOLVERS,
    SUBSETS,
    WAYS,
    WINDOW,
    Dispatched,
    DispatchProblem,
    Limits,
    dispatch_problem,
    has_boxes,
)
from dovetail.optimize.dispatch.solve import MODELS, solve_dispatch
from dovetail.optimize.window.terms import MOST_WINDOW
from dovetail.policies.base import BLIND, NO_CAP, NO_LICENCES, Policy


@dataclass(frozen=True)
class Dispatch(Policy):
    """Solves each pass with one of the paper's models and starts the jobs whose turn has come. A search that finds
    nothing starts no job."""

    model: str = "pcp21"
    window: int = setting(WINDOW, "the paper's m: jobs in a problem", whole(1, MOST_WINDOW, "jobs"))
    delta: float = setting(1.0, "limit of a first search, in seconds of the clock", number(0, MOST_LIMIT, above=True))
    most: float = setting(16.0, "limit of the longest search", number(0, MOST_LIMIT, above=True))
    clock: str = setting("work", "what counts: the solver's own work, or the wall", choice(*CLOCKS))
    subset: str = setting("now", "jobs in a problem: those that fit beside what runs now, or all", choice(*SUBSETS))
    limits: str = setting("code", "limits as in the authors' program, or as in the paper's text", choice(*WAYS))
    solver: str = setting("sat", "CP-SAT, or the original CP solver that the authors took", choice(*SOLVERS))
    pairs: bool = setting(True, "PCP'21 with the authors' rules for pairs of jobs", yes_or_no())
    alike: bool = setting(False, "leave out nodes that the queue cannot use, of those that are alike", yes_or_no())
    look: bool = setting(True, "PCP'21 by solver=cp starts a job only where it sees room for it", yes_or_no())
    name: str = "pcp21"
    by_solver = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model not in MODELS:
            raise SettingError(f"model={self.model}: choose from {', '.join(MODELS)}")
        self._limits(0)

    needs_nodes: ClassVar[bool] = True
    cannot: ClassVar[Mapping[str, str]] = {"outages": BLIND, "cap": NO_CAP, "licences": NO_LICENCES}

    def _limits(self, seed: int) -> Limits:
        return Limits(self.delta, self.most, clock=self.clock, way=self.limits, seed=seed % 2**31)

    @property
    def timed(self) -> bool:
        """Whether it watches the clock, and may answer otherwise next time."""
        return self.clock == "wall"

    def solve(self, state: State) -> tuple[DispatchProblem, Dispatched]:
        """The problem of an instant and the whole answer to it, for studies."""
        try:
            problem = dispatch_problem(state, self._window(state), self.subset, shorter=has_boxes(self.model))
        except ValueError as error:
            raise PolicyError(f"{self.name} at {state.now} s: {error}") from error
        limits = self._limits(state.seed)
        return problem, solve_dispatch(
            problem, self.model, limits, solver=self.solver, pairs=self.pairs, alike=self.alike, look=self.look
        )

    def _window(self, state: State) -> int:
        return min(self.window, state.standing.memory.get(self.name, self.window))

    def decide(self, state: State) -> Plan:
        self.look_at(state)
        if not len(state.waiting):
            return Plan(memory=state.standing.memory)
        problem, answer = self.solve(state)
        if not problem.queue:
            return Plan(memory=state.standing.memory)
        told = list(zip(problem.queue, answer.starts, answer.nodes, strict=True)) if answer.starts else []
        nodes = {job.job: where for job, at, where in told if at == state.now}
        expected = {job.job: at for job, at, _ in told if at > state.now}
        # If nothing runs and nothing starts, there might be no other pass: ask for one when the plan goes on, or soon.
        wake = None if nodes or problem.running else min(expected.values(), default=state.now + 1)
        return Plan(
            starts=list(nodes), expected=expected, wake=wake, nodes=nodes,
            devices=_devices(problem.cluster, state, problem, nodes),
            memory={self.name: self._next_window(state, problem, answer)},
        )  # fmt: skip

    def _next_window(self, state: State, problem: DispatchProblem, answer: Dispatched) -> int:
        """Half of this one if it was not solved."""
        boxes = has_boxes(self.model)
        if answer.starts if boxes else answer.settled:
            return self.window
        return max(1, (len(problem.queue) if boxes else self._window(state)) // 2)


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

FAMILY: Final = (6, "From papers: dispatchers for nodes of several kinds")
USES: Final = {
    "pcp21": "chooses nodes by constraint programming, the later model; needs --cluster",
    "pcp21s": "pcp21 in which like jobs are one",
    "pcp19": "the earlier model",
    "hcp19": "the model that decides in two steps",
}
"""When to use each, in a line."""
