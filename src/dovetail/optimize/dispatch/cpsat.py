"""The models of the paper's dispatchers for CP-SAT. Importing this loads OR-Tools.

The search is CP-SAT's, with one thread; the paper's order (schedule or postpone, then the least positions of the
scarcest resource) is given to it as decision strategies and, as its first dive, as a hint (greedy.py). CP-SAT's
automatic search decides by these strategies only where it has no better idea; made to follow them strictly, it found
worse plans on 12 nodes with 20 jobs waiting. Limits: cpsat_search.py. PCP'21s: cpsat_pcp21.py.
"""

from __future__ import annotations

from time import process_time

from dovetail.optimize.dispatch import cpsat_pcp19 as pcp19
from dovetail.optimize.dispatch import cpsat_pcp21 as pcp21
from dovetail.optimize.dispatch.cpsat_search import by_priority, scheduled, searched
from dovetail.optimize.dispatch.greedy import listed
from dovetail.optimize.dispatch.problem import Dispatched, DispatchProblem, Limits, has_boxes, total_slowdown


def solved(problem: DispatchProblem, model: str, limits: Limits, *, pairs: bool) -> Dispatched:
    """The best plan of a model within the limits; of "hcp19", the schedule alone."""
    begun = process_time()
    plan = listed(problem, contiguous=has_boxes(model))
    built: pcp19.Pcp19 | pcp21.Pcp21 | None = None
    if model == "hcp19":
        schedule = scheduled(problem)
        by_priority(schedule)
    else:
        built = pcp19.pcp19(problem) if model == "pcp19" else pcp21.pcp21(problem, model == "pcp21s", pairs)
        schedule = built.schedule
        built.hint(plan)
    for start, at in zip(schedule.starts, plan.starts, strict=True):
        schedule.model.add_hint(start, at - problem.now)
    modelled = process_time() - begun
    ran = searched(schedule.model, model, limits)
    starts: tuple[int, ...] = ()
    nodes: tuple[tuple[int, ...], ...] = ()
    positions: tuple[tuple[tuple[int, ...], ...], ...] = ()
    if (values := ran.values) is not None:
        starts = tuple(problem.now + values[start.index] for start in schedule.starts)
        if built is not None:
            nodes = built.nodes(values)
            positions = built.positions(values)
    proto = schedule.model.proto
    return Dispatched(
        ran.status, total_slowdown(problem, starts) if starts else float("nan"), starts, nodes, positions,
        len(proto.variables), len(proto.constraints), ran.conflicts, ran.branches, modelled, ran.solving_s,
        ran.extensions, ran.settled,
    )  # fmt: skip
