"""PCP'19: an optional interval for each unit that a node could hold. Section 2.2 of the paper.

Importing this loads OR-Tools.
"""

from __future__ import annotations

from dataclasses import dataclass

from ortools.sat.python import cp_model

from dovetail.optimize.dispatch.cpsat_search import PoolSchedule, by_priority, scheduled
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

    def positions(self, values: list[int]) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """It has none."""
        return ()

    def hint(self, plan: Listed) -> None:
        """Begin from this plan."""
        for units, places in zip(self.present, plan.places, strict=True):
            left = [node for node, _ in places]
            for node, here in units:
                inside = node in left
                self.schedule.model.add_hint(here, inside)
                if inside:
                    left.remove(node)


def pcp19(problem: DispatchProblem) -> Pcp19:
    """The model. As in the paper the units of a job on one node are interchangeable, and no order is posted."""
    schedule = scheduled(problem)
    model = schedule.model
    held: list[list[tuple[cp_model.IntervalVar, tuple[int, ...]]]] = [[] for _ in range(problem.cluster.nodes)]
    for job in problem.running:
        interval = model.new_fixed_size_interval_var(0, job.remaining, "")
        for node in job.nodes:
            held[node].append((interval, job.need))
    present = []
    for start, queued in zip(schedule.starts, problem.queue, strict=True):
        units = []
        for node, most in enumerate(problem.places(queued).tolist()):
            for _ in range(most):
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
