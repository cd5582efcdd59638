"""Figs. 6 to 9 of the dispatcher paper: its models on the same instances, and PCP'19 on a large machine."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan

import numpy as np

from dovetail.io.streams import beside
from dovetail.model.schedule import Schedule
from dovetail.optimize.dispatch.contiguous import positions_lost
from dovetail.optimize.dispatch.cpsat import solve_dispatch
from dovetail.optimize.dispatch.greedy import listed
from dovetail.optimize.dispatch.problem import DispatchProblem, Limits, total_slowdown
from dovetail.studies.task import Cell
from reproductions.claims import NO, PART, YES, Judged, verdict
from reproductions.dispatch_instances import compared
from reproductions.dispatch_instances.compared import HCP19, PCP19, PCP21, PCP21S, SAME
from reproductions.dispatch_instances.moments import Chosen, Instants, chosen, moments, written
from reproductions.running import Work
from reproductions.runs import read_runs
from reproductions.values import Values

values = compared.values


def measure(schedule: Schedule, _: Callable[[str], Schedule]) -> dict[str, float]:
    """Of each tenth pass: variables by the paper's formulas, and what positions make of the list plan."""
    instants = Instants(schedule)
    problems = [instants.problem(at) for at in moments(schedule)[0][:: compared.EVERY].tolist()]
    sizes = [sizes_of(problem) for problem in problems]
    ratios, every = (np.array([size[1] / size[side] for size in sizes]) for side in (0, 2))
    found: dict[str, float] = {
        "looked_at": len(ratios), "ratio_below": 100 * float(np.mean(ratios < 0.1)),
        "ratio_median": float(np.median(ratios)), "ratio_most": float(ratios.max()),
        "ratio_above_1": 100 * float(np.mean(ratios > 1)), "every_below": 100 * float(np.mean(every < 0.1)),
    }  # fmt: skip
    if schedule.cluster.nodes < 1000:
        plans = [lists_of(problem) for problem in problems]
        quality = np.array([one for one, _ in plans])
        found |= {
            "lists_higher": int((quality > 1 + SAME).sum()), "lists_lower": int((quality < 1 - SAME).sum()),
            "lists_least": float(quality.min()), "lists_most": float(quality.max()),
            "lists_mean": float(quality.mean()), "lists_other_now": sum(not same for _, same in plans),
        }  # fmt: skip
    return found


def sizes_of(problem: DispatchProblem) -> tuple[int, int, int]:
    """Variables of PCP'19 and of PCP'21, and of a PCP'19 that had one for each unit on each node, fit or not."""
    units = sum(job.units for job in problem.queue)
    every = len(problem.queue) + problem.cluster.nodes * units
    return problem.pcp19_variables, problem.pcp21_variables, every


def lists_of(problem: DispatchProblem) -> tuple[float, bool]:
    """The total slowdown of the list plan with neighbouring positions over that without, and whether the same jobs
    start now."""
    free, strict = (listed(problem, contiguous=one).starts for one in (False, True))
    quality = total_slowdown(problem, strict) / total_slowdown(problem, free)
    return quality, [at == problem.now for at in free] == [at == problem.now for at in strict]


def cells(work: Work) -> list[Cell]:
    """Instances and models. Where PCP'19 was run and has no plan, it is tried by the clock too: at the next `run`."""
    found, ran = [], read_runs(work.folder)
    for replay in ((compared.SMALL, "runtime"), (compared.SMALL, "limit"), (compared.LARGE, "runtime")):
        sample = compared.SAMPLES[replay[0]]
        for moment in _chosen(_replay(work, *replay), replay[0]):
            span = f"pass at {moment.at} s"
            names = [name for name, many in sample.many.items() if moment.place < many]
            old = ran.get(replay[0], PCP19, replay[1], span=span, seed=moment.place)
            if replay[0] == compared.LARGE and old and isnan(old.numbers["objective"]):
                names += compared.BY_CLOCK
            found += [Cell(replay[0], "", span, name, replay[1], moment.place) for name in names]
    return found


def _replay(work: Work, trace: str, estimate: str) -> Schedule:
    return work.schedule(Cell(trace, "", "all", compared.UNDER, estimate, 0))


def _chosen(replay: Schedule, trace: str) -> list[Chosen]:
    sample = compared.SAMPLES[trace]
    return chosen(*moments(replay), sample.least, max(sample.many.values()))


def solve(cell: Cell, work: Work) -> dict[str, float]:
    """Give a model an instance, which is also written to a file beside the store."""
    replay = _replay(work, cell.trace, cell.estimate)
    moment = next(one for one in _chosen(replay, cell.trace) if cell.span == f"pass at {one.at} s")
    problem = Instants(replay).problem(moment.at)
    path = work.store.path / "dispatch" / f"{cell.trace}-{cell.estimate}-{moment.at}.json"
    path.parent.mkdir(exist_ok=True)
    with beside(path) as new:
        new.write_text(written(problem), encoding="utf-8")
    limits = compared.SAMPLES[cell.trace].limits.get(cell.policy, Limits())
    found = solve_dispatch(problem, compared.MODELS.get(cell.policy, "pcp19"), limits)
    lists = [total_slowdown(problem, listed(problem, contiguous=one).starts) for one in (False, True)]
    counts = ("objective", "variables", "constraints", "conflicts", "branches", "extensions")
    return {
        "waiting": moment.waiting, "class": moment.least, "of_class": moment.of,
        "pcp19_variables": problem.pcp19_variables, "pcp21_variables": problem.pcp21_variables,
        "list_free": lists[0], "list_strict": lists[1], "proved": float(found.status == "optimal"),
        **{name: getattr(found, name) for name in counts},
        "lost": len(positions_lost(problem, found)), "seconds": found.modelling_s + found.solving_s,
    }  # fmt: skip


def as_it_is(values: Values, table: str, row: str, column: str) -> str:
    """A cell whose text is made already; only ratios and counts were read back as numbers."""
    return values.text(table, row, column, ".2f" if column.endswith("ratio") else ",.0f", "-")


# Claims ------------------------------------------------------------------------------------------------------


def part(values: Values, table: str, row: str, column: str, ours: str, enough: float, half: float = 50) -> Judged:
    """Whether a per cent is large enough; in part from half on. `ours` names other numbers of the same row."""
    percent, facts = values.need(table, row, column), values.numbers(table, row)
    text = ours.format_map({key[2]: number for key, number in facts.items()})
    return Judged(text, YES if percent >= enough else PART if percent >= half else NO)


def blocks(values: Values) -> Judged:
    none, tried, still = (values.need("large machine", PCP19, name) for name in ("no plan", "tried", "none by clock"))
    ours = f"no plan for {none:.0f} of {tried:.0f}; for {still:.0f} of these none by the clock either (16 s)"
    return Judged(ours, PART if still < none else verdict([none > 0]))


def decides(values: Values, than: str) -> Judged:
    """Whether PCP'21s takes no longer than another, by the paper's numbers or, against PCP'21, at all."""
    seconds = {name: values.need("mean seconds", name, "") for name in (PCP21, PCP21S, HCP19)}
    printed = [values.printed_number("Table 2", name, "mean decision (ms)") or 0 for name in (PCP21S, HCP19)]
    most = seconds[PCP21] if than == PCP21 else printed[0] / printed[1] * seconds[HCP19]
    ours = ", ".join(f"{name} {one:.2f} s" for name, one in seconds.items())
    return Judged(ours, verdict([seconds[PCP21S] < most]))
