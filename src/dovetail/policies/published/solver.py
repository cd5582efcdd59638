"""CP-SAT as a policy: in each pass, the best plan of the waiting jobs that the solver finds within its limit.

After Goponenko and others, Job Scheduling for HPC Clusters: Constraint Programming vs. Backfilling Approaches, DEBS
2024 ("CP"). Kept from it: a pass is the problem of its equations 7 to 9, with the objective over the waiting jobs;
what the plan starts now is started, the others wait for the next pass. CP-BSLD+ refines the plans of List-SPF, List-SAF
and List-SJF, CP-P2SF+ that of List-REG, each beside a plan of its own, and takes the best.

Different here: the limit is the solver's own count of work, not 20 s on a clock. No search begins from scratch, but
from the best of five list plans and the plan that stands. So there always is a plan, and the two remedies of the paper
for rounds without one have other uses: the limit is extended where the search found nothing better than it began with;
and List-REG takes over where the limit is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dovetail.arrays import NEVER, Ints
from dovetail.errors import PolicyError
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.names import Kind, choice, number, setting, yes_or_no
from dovetail.optimize.window.cpoptimizer import solve_cpoptimizer
from dovetail.optimize.window.cpsat import solve as solve_cpsat
from dovetail.optimize.window.objective import Objective, Sum, parse
from dovetail.optimize.window.problem import Problem, Solution, alone, decode, free_beside
from dovetail.optimize.window.terms import WINDOW
from dovetail.policies.base import COUNTS, NO_CAP, NO_LICENCES, Policy
from dovetail.policies.planner import OBJECTIVE

MOST_WORK: Final = 1e6

LISTS: Final[dict[str, Callable[[Problem], npt.NDArray[Any]]]] = {
    "fcfs": lambda problem: problem.arrive,
    "sjf": lambda problem: problem.estimate,
    "saf": lambda problem: problem.area,
    "laf": lambda problem: -problem.area,
    "spf": lambda problem: problem.area * problem.estimate.astype(np.float64),
}
"""The orders of the list plans that every search begins with; smaller keys first, ties by arrival."""

SOLVERS: Final = {"sat": solve_cpsat, "cpoptimizer": solve_cpoptimizer}
_FIRST: Final = {"af": "saf", "bsld": "spf", "wait": "saf"}
"""By the heaviest objective: the order that says which jobs get into the window. For all others it is first come."""
_REFINE: Final = Kind(
    lambda text: tuple(text.split("+")),
    f"choose list plans from {', '.join(LISTS)}, joined by +",
    lambda orders: all(order in LISTS for order in orders),
    show="+".join,
)
_REFINED: Final = {"cp-bsld+": ("spf", "saf", "sjf"), "cp-p2sf+": ("fcfs",)}


@dataclass(frozen=True)
class Solver(Policy):
    """Solves each pass with CP-SAT, or with CP Optimizer, and starts the jobs whose turn has come.

    `deterministic` is the limit of a pass, in the solver's own seconds of work; with 0 there is no search, and the pass
    is List-REG's. If a search finds nothing better than it began with, and proves nothing, it is done once more with
    `extend` times the limit; 1: never. `window` jobs are handed to the solver; what waits beyond them is placed behind,
    in the order that chose them. `idle` lets a plan idle on purpose, which only PaSF gains by. Each list plan in
    `refine` gets a search of its own; the searches of a pass share its limit, and the best plan is taken.

    If no waiting job fits now, there is no search. That is exact, with or without `idle`: no plan could start a job.
    Nor is there any if every job has its earliest fit and none may idle: then all orders give this plan.
    """

    objective: str = setting("af", "what a plan minimises, with estimates for run times", OBJECTIVE)
    deterministic: float = setting(
        0.2, "limit of a pass, in the solver's own seconds of work", number(0, MOST_WORK, "s")
    )
    extend: float = setting(1.0, "factor of the limit where a search finds nothing better", number(1, MOST_WORK))
    window: int = setting(100, "jobs that are handed to the solver", WINDOW)
    idle: bool = setting(False, "a plan may idle on purpose, which only PaSF gains by", yes_or_no())
    refine: tuple[str, ...] = setting((), "list plans that get a search of their own, joined by +", _REFINE)
    solver: str = setting("sat", "CP-SAT, or IBM's CP Optimizer for those who have it", choice(*SOLVERS))
    name: str = "cp"
    see: Callable[[Problem, Ints, Solution], None] | None = field(default=None, repr=False, compare=False)
    """Shown every search: the problem, the plan that it began with, and what it found."""
    by_solver = True

    def __post_init__(self) -> None:
        super().__post_init__()
        parse(self.objective)

    @property
    def cannot(self) -> Mapping[str, str]:
        # What is charged is the time of our own thread.
        outside = {"charge": "lets a program outside decide, whose time is not charged"}
        never = {"nodes": COUNTS, "cap": NO_CAP, "licences": NO_LICENCES}
        return never | (outside if self.solver == "cpoptimizer" else {})

    def decide(self, state: State) -> Plan:
        self.look_at(state)
        waiting = state.waiting
        if not len(waiting):
            return Plan()
        try:
            problem = problem_of(state)
        except ValueError as error:
            raise PolicyError(f"{self.name} at {state.now} s: {error}") from error
        stands = np.array([state.standing.expected.get(job, NEVER) for job in waiting.tolist()], np.int64)
        if not self.deterministic:
            starts = decode(problem, _order(problem, "fcfs"))
        elif state.size[waiting].min() > state.free:
            starts = decode(problem, np.argsort(stands, kind="stable").tolist())
        else:
            starts = self._window_first(problem, stands, state.seed % 2**31)
        if not (len(state.running) or bool(np.any(starts == state.now))):
            # All idle on purpose. But nothing ends and perhaps nothing comes, so there might be no other pass.
            starts = decode(problem, np.argsort(starts, kind="stable").tolist())
        pairs = list(zip(waiting.tolist(), starts.tolist(), strict=True))
        return Plan(
            starts=[job for job, at in pairs if at == state.now],
            expected={job: at for job, at in pairs if at > state.now},
        )

    def _window_first(self, problem: Problem, stands: Ints, seed: int) -> Ints:
        """The starts of all jobs: those in the window as solved, the rest behind them."""
        objective = parse(self.objective)
        in_order = _order(problem, _suited(objective))
        inside = np.array(sorted(in_order[: self.window]), np.int64)
        found = self._solved(_part(problem, inside), objective, stands[inside], seed)
        if len(inside) == len(problem):
            return found
        # Held back to the starts that were found, the jobs of the window are decoded just there.
        earliest = problem.earliest.copy()
        earliest[inside] = found
        window_first = [*inside[np.argsort(found, kind="stable")].tolist(), *in_order[self.window :]]
        return decode(replace(problem, earliest=earliest), window_first)

    def _solved(self, problem: Problem, objective: Objective, stands: Ints, seed: int) -> Ints:
        """The best plan of several searches."""
        lists = {name: decode(problem, _order(problem, name)) for name in LISTS}
        known = [decode(problem, np.argsort(stands, kind="stable").tolist()), *lists.values()]
        best = min(known, key=lambda plan: objective.value(problem, plan))
        if (objective.regular or not self.idle) and np.array_equal(best, alone(problem)):
            return best
        begins = {plan.tobytes(): plan for plan in (best, *(lists[name] for name in self.refine))}
        limit = self.deterministic / len(begins)
        found = [self._searched(problem, objective, plan, limit, seed) for plan in begins.values()]
        return min(found, key=lambda solution: solution.value).starts

    def _searched(self, problem: Problem, objective: Objective, begin: Ints, limit: float, seed: int) -> Solution:
        solve = SOLVERS[self.solver]
        found = solve(problem, objective, deterministic_s=limit, seed=seed, hint=begin, idle=self.idle)
        nothing = found.status != "optimal" and not found.value < objective.value(problem, begin)
        if nothing and self.extend > 1:
            limit *= self.extend
            found = solve(problem, objective, deterministic_s=limit, seed=seed, hint=begin, idle=self.idle)
        if self.see is not None:
            self.see(problem, begin, found)
        return found


def problem_of(state: State) -> Problem:
    """The waiting jobs beside what runs."""
    jobs = state.waiting
    ends = [state.expected_end(job) for job in state.running.tolist()]
    times, free = free_beside(state.now, state.processors, state.size[state.running].tolist(), ends)
    return Problem(
        now=state.now, processors=state.processors, times=times, free=free,
        arrive=state.submit[jobs], size=state.size[jobs], estimate=state.estimate[jobs],
    )  # fmt: skip


def _part(problem: Problem, jobs: Ints) -> Problem:
    """The same with some of the jobs only."""
    names = ("arrive", "size", "estimate", "earliest", "latest", "weight")
    return replace(problem, **{name: getattr(problem, name)[jobs] for name in names})


def _order(problem: Problem, name: str) -> list[int]:
    """All jobs in a list order."""
    order: list[int] = np.argsort(LISTS[name](problem), kind="stable").tolist()
    return order


def _suited(objective: Objective) -> str:
    """The list order that suits an objective; of a sum, its heaviest."""
    if isinstance(objective, Sum):
        objective = max(objective.parts, key=lambda part: part[0])[1]
    return _FIRST.get(type(objective).__name__.lower(), "fcfs")


NAMES: Final[Mapping[str, Policy]] = {
    "cp": Solver(),
    **{f"cp-{term}": Solver(objective=term) for term in ("af", "awf", "bsld", "p2sf")},
    **{name: Solver(objective=name[3:-1], refine=orders) for name, orders in _REFINED.items()},
}

FAMILY: Final = (5, "From papers: CP-SAT as a policy")
USES: Final = {
    "cp-af": "the best plan by a solver, much slower than plan-af; also cp-awf, cp-bsld, cp-p2sf",
    "cp-awf": "the same for AWF",
    "cp-bsld": "the same for slowdown",
    "cp-p2sf": "the same for P2SF",
    "cp-bsld+": "cp-bsld from more list plans",
    "cp-p2sf+": "cp-p2sf from more list plans",
    "cp": "any objective",
}
"""When to use each, in a line."""
