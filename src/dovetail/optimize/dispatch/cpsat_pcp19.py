"""PCP'19: an optional interval for each unit that a node could hold. Section 2.2 of the paper.

Importing this loads OR-Tools.
"""

from __future__ import annotations

from dataclasses import dataclass

from ortools.sat.python import cp_model

from dovetail.optimize.dispatch.cpsat_limits import PoolSchedule, by_priority, scheduled
from dovetail.optimize.dispatch.greedy import Listed
from dovetail.optimize.dispatch.problem import DispatchProblem


@dataclass(frozen=True)
class Pcp19:
    """The model, and for each job the node and the presence of each unit that could be there (u_inj)."""

    schedule: PoolSchedule
    present: list[list[tuple[int, cp_model.IntVar]]]

    def nodes(self, values: list[int]) -> tuple[tuple[int, ...], ...]:
        """The node of each unit of each job in a solution."""
        return tuple(tuple(node for node, here in job if values[here.index]) for job in self.present)


def pcp19(problem: DispatchProblem) -> Pcp19:
    """The model. As in the paper the units of a job on one node are interchangeable, and no order is posted."""
    schedule = scheduled(problem)
    model, kinds = schedule.model, problem.cluster.kinds
    held: list[list[tuple[cp_model.IntervalVar, tuple[int, ...]]]] = [[] for _ in range(problem.cluster.nodes)]
    for job in problem.running:
        interval = model.new_fixed_size_interval_var(0, job.remaining, "")
        for node in job.nodes:
            held[node].append((interval, job.need))
    present = []
    for start, queued in zip(schedule.starts, problem.queue, strict=True):
        most = [queued.most_on(k, kind.capacity) for k, kind in enumerate(kinds)]
        units = []
        for node, kind in enumerate(problem.cluster.kind_of.tolist()):
            for _ in range(most[kind]):
                here = model.new_bool_var("")
                units.append((node, here))
                interval = model.new_optional_fixed_size_interval_var(start, queued.duration, here, "")
                held[node].append((interval, queued.need))
        model.add(cp_model.LinearExpr.sum([here for _, here in units]) == queued.units)
        present.append(units)
    for node, capacity in enumerate(problem.capacity.tolist()):
        for r, has in enumerate(capacity):
            if wants := [(interval, need[r]) for interval, need in held[node] if need[r]]:
                model.add_cumulative([interval for interval, _ in wants], [need for _, need in wants], has)
    by_priority(schedule)
    return Pcp19(schedule, present)


def hint(built: Pcp19, problem: DispatchProblem, plan: Listed) -> None:
    """Begin from this plan."""
    model = built.schedule.model
    for i, units in enumerate(built.present):
        model.add_hint(built.schedule.starts[i], plan.starts[i] - problem.now)
        left = [node for node, _ in plan.places[i]]
        for node, here in units:
            inside = node in left
            model.add_hint(here, inside)
            if inside:
                left.remove(node)
