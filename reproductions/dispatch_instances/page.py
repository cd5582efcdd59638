"""Figs. 6 to 9 of the dispatcher paper: its models on the same instances, and PCP'19 on a large machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan, nan
from typing import Any, Final

import numpy as np

from dovetail.model.schedule import Schedule
from dovetail.optimize.dispatch.problem import DispatchProblem, dispatch_problem
from dovetail.policies.registry import policy
from dovetail.studies.task import Cell
from reproductions.claims import NO, PART, YES, Judged, verdict
from reproductions.dispatch_instances.moments import Instants, moments
from reproductions.running import Work
from reproductions.runs import Run, Runs
from reproductions.values import Content, Key, Values

SMALL, LARGE = "Eurora", "KIT"
UNDER: Final = "sjf-easy:place=scarce"
"""The policy of the replays that instances are taken from."""
REPLAYS: Final = ((SMALL, "runtime"), (SMALL, "limit"), (LARGE, "runtime"))
WAYS: Final = {
    "all jobs, text, CP-SAT": ("pcp19:subset=all,limits=text", "pcp21:subset=all,limits=text,pairs=no"),
    "text, CP-SAT": ("pcp19:limits=text", "pcp21:limits=text,pairs=no"),
    "CP-SAT": ("pcp19", "pcp21"),
    "blind, CP": ("pcp19:solver=cp", "pcp21:solver=cp,look=no"),
    "no pairs, CP": ("pcp19:solver=cp", "pcp21:solver=cp,pairs=no"),
    "CP": ("pcp19:solver=cp", "pcp21:solver=cp"),
    "alike, CP": ("pcp19:solver=cp,alike=yes", "pcp21:solver=cp,alike=yes"),
}
"""PCP'19 and PCP'21 from the paper's text to its program: what differs from the program is named, then the solver.
Last, without nodes that the queue cannot use: what the paper leaves for the future."""
MODELS: Final = {
    "pcp19:solver=cp": "PCP'19",
    "pcp21:solver=cp": "PCP'21",
    "pcp21s:solver=cp": "PCP'21s",
    "hcp19:solver=cp": "HCP'19",
    "pcp19:solver=cp,alike=yes": "PCP'19, alike",
    "pcp21:solver=cp,alike=yes": "PCP'21, alike",
}
"""On the large machine."""
EVERY: Final = {SMALL: 60, LARGE: 500}
"""Of the passes at which jobs wait, every n-th is an instance; with all waiting jobs, a tenth of these."""
LOOKED: Final = {SMALL: 2, LARGE: 50}
"""Of the passes at which jobs wait, every n-th is looked at for the sizes of the models."""
DECIMAL: Final = ("PCP'19 (s)", "PCP'21 (s)", "time, median", "branches, median", "seconds", "most")
SIZES: Final = {"1 job": 1, "2 to 20 jobs": 20, "21 to 60 jobs": 60, "61 to 100 jobs": 100}
"""Instances by the jobs of the problem: the most of each class."""
SAME: Final = 1e-6
"""Total slowdowns are equal if they differ by no more than this part."""


def measure(schedule: Schedule, _: Callable[[str], Schedule]) -> dict[str, float]:
    """What a dispatcher would be given: in how many passes a job fits, how many jobs, and the variables by the paper's
    formulas."""
    instants = Instants(schedule)
    looked = moments(schedule)[:: LOOKED[LARGE if schedule.cluster.nodes > 1000 else SMALL]].tolist()
    problems = [dispatch_problem(instants.state(at)) for at in looked]
    some = [problem for problem in problems if problem.queue]
    ratios = np.array([problem.pcp21_variables / problem.pcp19_variables for problem in some])
    # Had p_in been counted on empty nodes, as the paper's text has it, and only resources that a job asks for:
    empty = np.array([_asked(problem) / replace(problem, beside=False).pcp19_variables for problem in some])
    return {
        "looked_at": len(some), "fits": 100 * len(some) / len(looked),
        "jobs": float(np.mean([len(problem.queue) for problem in problems])),
        "ratio_below": 100 * float(np.mean(ratios < 0.1)), "ratio_median": float(np.median(ratios)),
        "ratio_least": float(ratios.min()), "ratio_most": float(ratios.max()),
        "empty_below": 100 * float(np.mean(empty < 0.1)), "empty_median": float(np.median(empty)),
    }  # fmt: skip


def _asked(problem: DispatchProblem) -> int:
    """The variables of PCP'21 without those of resources that a job does not ask for."""
    return sum(1 + job.units * sum(need > 0 for need in job.need) for job in problem.queue)


def cells(work: Work) -> list[Cell]:
    """Instances in which a job fits, and who is given them."""
    found = []
    for trace, estimate in REPLAYS:
        replay = _replay(work, trace, estimate)
        instants = Instants(replay)
        some = moments(replay)[:: EVERY[trace]].tolist()
        some = [at for at in some if dispatch_problem(instants.state(at)).queue]
        names = list(MODELS) if trace == LARGE else list(dict.fromkeys(one for way in WAYS.values() for one in way))
        for place, at in enumerate(some):
            given = [name for name in names if "subset=all" not in name or place % 10 == 0]
            found += [Cell(trace, "", f"pass at {at} s", name, estimate, 0) for name in given]
    return found


def _replay(work: Work, trace: str, estimate: str) -> Schedule:
    return work.schedule(Cell(trace, "", "all", UNDER, estimate, 0))


def solve(cell: Cell, work: Work) -> dict[str, float]:
    """Give a dispatcher an instance."""
    state = Instants(_replay(work, cell.trace, cell.estimate)).state(int(cell.span.split()[2]))
    dispatcher: Any = policy(cell.policy)
    problem, found = dispatcher.solve(state)
    counts = ("objective", "variables", "constraints", "conflicts", "branches", "extensions")
    return {
        "waiting": len(state.waiting), "jobs": len(problem.queue), "proved": float(found.status == "optimal"),
        **{name: getattr(found, name) for name in counts}, "seconds": found.modelling_s + found.solving_s,
    }  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """What PCP'19 and PCP'21 made of the same instance."""

    old: Mapping[str, float]
    new: Mapping[str, float]

    def ratio(self, key: str) -> float:
        """A number of PCP'21 over that of PCP'19; nan where both are 0."""
        old, new = self.old[key], self.new[key]
        return new / old if old else inf if new else nan

    @property
    def neither_more(self) -> bool:
        """In the region of Fig. 9: no longer, and no more fails."""
        return self.new["seconds"] <= self.old["seconds"] and self.new["conflicts"] <= self.old["conflicts"]


def pairs_of(runs: Runs, way: str, estimate: str) -> list[Pair]:
    """The instances that both were given."""
    old, new = WAYS[way]
    found = []
    for run in runs:
        if run.cell.trace == SMALL and run.cell.policy == new and run.cell.estimate == estimate:
            other = runs.get(SMALL, old, estimate, span=run.cell.span)
            if other:
                found.append(Pair(other.numbers, run.numbers))
    return found


def values(runs: Runs, _: Mapping[Key, Content]) -> dict[Key, Content]:
    """What replays say of sizes, what pairs of answers say, and the large machine."""
    found: dict[Key, Content] = {}
    for trace, estimate in REPLAYS:
        if run := runs.get(trace, UNDER, estimate):
            row = estimate if trace == SMALL else trace
            found |= {("passes", row, key): one for key, one in run.numbers.items() if one == one}
    for way in WAYS:
        for estimate in ("runtime", "limit"):
            if pairs := pairs_of(runs, way, estimate):
                found |= {("pairs", f"{estimate}, {way}", key): one for key, one in _compared(pairs)}
    for estimate in ("runtime", "limit"):
        for way in ("blind, CP", "CP"):
            for row, key, one in _by_size(pairs_of(runs, way, estimate)):
                found["sizes", f"{estimate}, {row}, {way}", key] = one
    found |= _large([run for run in runs if run.cell.trace == LARGE and run.cell.policy in MODELS])
    return found


def _compared(pairs: Sequence[Pair]) -> Iterator[tuple[str, float]]:
    def share(good: Sequence[bool]) -> float:
        return 100 * sum(good) / len(good)

    both = [pair for pair in pairs if not isnan(pair.old["objective"]) and not isnan(pair.new["objective"])]
    yield "instances", len(pairs)
    yield "PCP'19 (s)", float(np.mean([pair.old["seconds"] for pair in pairs]))
    yield "PCP'21 (s)", float(np.mean([pair.new["seconds"] for pair in pairs]))
    yield "time, median", float(np.median([pair.ratio("seconds") for pair in pairs]))
    yield "time", share([0.01 <= pair.ratio("seconds") <= 1 for pair in pairs])
    yield "fails", share([not pair.ratio("conflicts") > 0.1 for pair in pairs])
    yield "neither fails", share([isnan(pair.ratio("conflicts")) for pair in pairs])
    yield "region", share([pair.neither_more for pair in pairs])
    if both:
        yield "quality", share([abs(pair.ratio("objective") - 1) <= SAME for pair in both])
        yield "lower", share([pair.ratio("objective") < 1 - SAME for pair in both])
    yield "proved", share([pair.old["proved"] == pair.new["proved"] == 1 for pair in pairs])


def _by_size(pairs: Sequence[Pair]) -> Iterator[tuple[str, str, float]]:
    """What the authors' solver does with problems of few jobs and of many."""
    least = 1
    for row, most in SIZES.items():
        some = [pair for pair in pairs if least <= pair.new["jobs"] <= most]
        least = most + 1
        if some:
            yield row, "instances", len(some)
            yield row, "PCP'21 faster", sum(pair.ratio("seconds") <= 1 for pair in some)
            yield row, "time, median", float(np.median([pair.ratio("seconds") for pair in some]))
            yield row, "branches, median", float(np.median([pair.ratio("branches") for pair in some]))
            yield row, "PCP'19 fails", float(np.median([pair.old["conflicts"] for pair in some]))
            yield row, "PCP'21 fails", float(np.median([pair.new["conflicts"] for pair in some]))
            yield row, "PCP'19 plans", sum(not isnan(pair.old["objective"]) for pair in some)
            yield row, "PCP'21 plans", sum(not isnan(pair.new["objective"]) for pair in some)


def _large(runs: Sequence[Run]) -> dict[Key, Content]:
    found: dict[Key, Content] = {}
    for name, called in MODELS.items():
        mine = [run.numbers for run in runs if run.cell.policy == name]
        if mine:
            plans = [not isnan(one["objective"]) for one in mine]
            numbers = {
                "instances": len(mine), "plans": sum(plans), "complete": 100 * float(np.mean(plans)),
                "proved": sum(one["proved"] for one in mine), "most": max(one["seconds"] for one in mine),
                **{key: float(np.mean([one[key] for one in mine])) for key in ("variables", "seconds")},
            }  # fmt: skip
            found |= {("large", called, key): number for key, number in numbers.items()}
    branches = {(run.cell.policy, run.cell.span): run.numbers["branches"] for run in runs}
    plain = {span: many for (name, span), many in branches.items() if name == "pcp21:solver=cp"}
    both = [branches[key] == many for span, many in plain.items() if (key := ("pcp21s:solver=cp", span)) in branches]
    return found | ({("large", "PCP'21s", "same branches"): sum(both)} if both else {})


def share(values: Values, table: str, row: str, column: str) -> str:
    """A cell: seconds and ratios with digits, counts and per cent without."""
    return values.text(table, row, column, ".2f" if column in DECIMAL else ",.0f", "-")


# Claims ------------------------------------------------------------------------------------------------------


def part(values: Values, table: str, row: str, column: str, ours: str, enough: float, half: float = 50) -> Judged:
    """Whether a per cent is large enough; in part from half on. `ours` names other numbers of the same row."""
    percent, facts = values.need(table, row, column), values.numbers(table, row)
    text = ours.format_map({key[2]: number for key, number in facts.items()})
    return Judged(text, YES if percent >= enough else PART if percent >= half else NO)


def blocks(values: Values) -> Judged:
    plans, tried = (values.need("large", "PCP'19", name) for name in ("plans", "instances"))
    return Judged(f"a plan for {plans:.0f} of {tried:.0f}", verdict([plans < tried]))


def complete(values: Values) -> Judged:
    rows = ("PCP'21", "PCP'21s")
    found = {row: [values.need("large", row, name) for name in ("plans", "instances")] for row in rows}
    ours = ", ".join(f"{row} {plans:.0f} of {tried:.0f}" for row, (plans, tried) in found.items())
    return Judged(f"plans: {ours}", verdict([values.need("large", row, "complete") == 100 for row in rows]))


def alike(values: Values, model: str) -> Judged:
    """Whether a model has at least as many plans without nodes that the queue cannot use, and decides faster."""
    both = [[values.need("large", row, key) for key in ("plans", "seconds")] for row in (f"{model}, alike", model)]
    ours = " against ".join(f"{plans:.0f} plans, {seconds:.2f} s" for plans, seconds in both)
    return Judged(ours, verdict([both[0][0] >= both[1][0] and both[0][1] < both[1][1]]))


def decides(values: Values, than: str) -> Judged:
    """Whether PCP'21s takes no longer than another, by the paper's numbers or, against PCP'21, at all."""
    seconds = {name: values.need("large", name, "seconds") for name in ("PCP'21", "PCP'21s", "HCP'19")}
    printed = [values.printed_number("Table 2", name, "mean decision (ms)") or 0 for name in ("PCP'21s", "HCP'19")]
    most = seconds["PCP'21"] if than == "PCP'21" else printed[0] / printed[1] * seconds["HCP'19"]
    ours = ", ".join(f"{name} {one:.2f} s" for name, one in seconds.items())
    return Judged(ours, verdict([seconds["PCP'21s"] < most]))
