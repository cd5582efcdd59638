"""PCP'21: where a unit is, as a position in the array of each resource. Section 3 of the paper.

A unit of a job is one box per resource: from the job's start for its duration, from its position y for what it needs.
Boxes of a resource do not overlap. The paper's element constraints on its array `map` (which node a position is on)
say that all boxes of a unit are on the same node and that none crosses into the next. Here the unit has a node n, and a
box lies within the positions of n. That is the same set of plans. Where consecutive nodes have the same capacity, the
positions of n begin at a linear function of n; so there is one pair of linear constraints for each stretch of such
nodes and resource, and the model does not grow with the number of nodes.

Importing this loads OR-Tools.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from ortools.sat.python import cp_model

from dovetail.optimize.dispatch.cpsat_search import PoolSchedule, by_priority, scheduled
from dovetail.optimize.dispatch.greedy import Listed
from dovetail.optimize.dispatch.problem import DispatchProblem, Queued, pair_rules, running_boxes, units_by_node


@dataclass(frozen=True)
class NodeStretch:
    """Consecutive nodes that will do and have equally much of what is needed: the first, how many, what one has."""

    first: int
    count: int
    capacity: tuple[int, ...]


@dataclass(frozen=True)
class Unit:
    """A unit: its node, the positions by resource, and whether its node is in each stretch (empty: there is one)."""

    node: cp_model.IntVar
    positions: dict[int, cp_model.IntVar]
    inside: list[tuple[NodeStretch, cp_model.IntVar]]


@dataclass(frozen=True)
class Pcp21:
    """The model, and the units of each job."""

    schedule: PoolSchedule
    units: list[list[Unit]]
    resources: int

    def nodes(self, values: list[int]) -> tuple[tuple[int, ...], ...]:
        """The node of each unit of each job in a solution."""
        return tuple(tuple(values[unit.node.index] for unit in job) for job in self.units)

    def positions(self, values: list[int]) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """The positions of each unit of each job in a solution."""
        resources = range(self.resources)
        return tuple(
            tuple(
                tuple(values[unit.positions[r].index] if r in unit.positions else -1 for r in resources) for unit in job
            )
            for job in self.units
        )

    def hint(self, plan: Listed) -> None:
        """Begin from this plan, of contiguous positions."""
        model = self.schedule.model
        for units, places in zip(self.units, plan.places, strict=True):
            for unit, (node, at) in zip(units, places, strict=True):
                model.add_hint(unit.node, node)
                for r, y in unit.positions.items():
                    model.add_hint(y, at[r])
                for part, here in unit.inside:
                    model.add_hint(here, part.first <= node < part.first + part.count)


def pcp21(problem: DispatchProblem, symmetry: bool, pairs: bool) -> Pcp21:
    """The model; with `symmetry` that of PCP'21s, with `pairs` the authors' rules for pairs of jobs.

    PCP'21s never looks for other positions of a job once one choice has been tried: it goes back to the job's start.
    That is a rule of search, and CP-SAT has none like it. In its place: positions are not decided upon at all (they
    follow the starts), and jobs that are alike start in order of priority, which excludes no better plan.
    """
    schedule = scheduled(problem)
    model = schedule.model
    units = [_units(problem, model, job) for job in problem.queue]
    for r, held in enumerate(running_boxes(problem)):
        _boxes(problem, schedule, units, held, r)
    by_priority(schedule)
    if symmetry:
        _like_jobs_in_order(problem, schedule)
    else:
        _scarcest_first(problem, model, units)
    if pairs:
        _pairs(problem, schedule)
    return Pcp21(schedule, units, len(problem.cluster.resources))


def stretches(problem: DispatchProblem, job: Queued) -> list[NodeStretch]:
    """The nodes that can hold a unit of a job, in stretches."""
    found: list[NodeStretch] = []
    first, fits = 0, units_by_node(problem.cluster, problem.capacity, job)
    for kind in problem.cluster.kinds:
        if kind.count and fits[first]:
            has = tuple(c if need else 0 for c, need in zip(kind.capacity, job.need, strict=True))
            last = found[-1] if found else None
            if last and last.capacity == has and last.first + last.count == first:
                found[-1] = NodeStretch(last.first, last.count + kind.count, has)
            else:
                found.append(NodeStretch(first, kind.count, has))
        first += kind.count
    return found


def _units(problem: DispatchProblem, model: cp_model.CpModel, job: Queued) -> list[Unit]:
    parts = stretches(problem, job)
    allowed = cp_model.Domain.from_intervals([[part.first, part.first + part.count - 1] for part in parts])
    wanted = [r for r, need in enumerate(job.need) if need]
    ends = problem.first_position[-1].tolist()
    units: list[Unit] = []
    for _ in range(job.units):
        node = model.new_int_var_from_domain(allowed, "")
        positions = {r: model.new_int_var(0, ends[r] - job.need[r], "") for r in wanted}
        inside = [(part, model.new_bool_var("")) for part in parts] if len(parts) > 1 else []
        if inside:
            model.add_exactly_one(here for _, here in inside)
            for part, here in inside:
                _on_node(problem, model, job, part, here, node, positions)
        else:
            _on_node(problem, model, job, parts[0], None, node, positions)
        units.append(Unit(node, positions, inside))
    for before, after in pairwise(units):
        for r in wanted:  # y_j < y_j+1; and as both run at the same time, one behind the other
            model.add(before.positions[r] + job.need[r] <= after.positions[r])
    if job.per_node:
        for before, after in zip(units, units[job.per_node :], strict=False):
            model.add(before.node < after.node)
    return units


def _on_node(
    problem: DispatchProblem, model: cp_model.CpModel, job: Queued, part: NodeStretch, here: cp_model.IntVar | None,
    node: cp_model.IntVar, positions: dict[int, cp_model.IntVar],
) -> None:  # fmt: skip
    """If the node is in this stretch, the boxes lie within the node's positions."""
    rules = []
    if here is not None:
        rules.append(model.add_linear_constraint(node, part.first, part.first + part.count - 1))
    for r, y in positions.items():
        has, begin = part.capacity[r], int(problem.first_position[part.first, r])
        rules.append(model.add_linear_constraint(y - has * (node - part.first) - begin, 0, has - job.need[r]))
    if here is not None:
        for rule in rules:
            rule.only_enforce_if(here)


def _boxes(
    problem: DispatchProblem, schedule: PoolSchedule, units: list[list[Unit]], held: list[tuple[int, int, int]], r: int
) -> None:
    """The boxes of one resource do not overlap; along the positions they also are a cumulative, of as much time as
    there is. (The paper's other implied cumulative, along time, is part of the scheduling model.)"""
    model = schedule.model
    along, across, lengths = [], [], []
    for remaining, at, many in held:
        along.append(model.new_fixed_size_interval_var(0, remaining, ""))
        across.append(model.new_fixed_size_interval_var(at, many, ""))
        lengths.append(remaining)
    for during, job, its in zip(schedule.intervals, problem.queue, units, strict=True):
        for unit in its if job.need[r] else ():
            along.append(during)
            across.append(model.new_fixed_size_interval_var(unit.positions[r], job.need[r], ""))
            lengths.append(job.duration)
    if across:
        model.add_no_overlap_2d(along, across)
        model.add_cumulative(across, lengths, problem.horizon)


def _scarcest_first(problem: DispatchProblem, model: cp_model.CpModel, units: list[list[Unit]]) -> None:
    """Then the positions, job by job, of the resource first of which the least share is free now: the least that can
    be. The paper decides upon those of a job right after its start; CP-SAT's strategies come one after the other."""
    ys = [unit.positions[r] for job in units for r in problem.scarcest_first for unit in job if r in unit.positions]
    model.add_decision_strategy(ys, cp_model.CHOOSE_FIRST, cp_model.SELECT_MIN_VALUE)


def _pairs(problem: DispatchProblem, schedule: PoolSchedule) -> None:
    """What runs counts for as long as it is yet to run; in the authors' program, for its whole expected duration."""
    model = schedule.model
    apart, in_order = pair_rules(problem)
    ends = [model.new_fixed_size_interval_var(0, held.remaining, "") for held in problem.running]
    intervals = [*ends, *schedule.intervals]
    for i, j in apart:
        model.add_no_overlap([intervals[i], intervals[j]])
    for i, j in in_order:
        model.add(schedule.starts[i] <= schedule.starts[j])


def _like_jobs_in_order(problem: DispatchProblem, schedule: PoolSchedule) -> None:
    last: dict[tuple[object, ...], cp_model.IntVar] = {}
    for job, start in zip(problem.queue, schedule.starts, strict=True):
        like = (job.duration, job.units, job.need, job.kinds, job.per_node)
        if like in last:
            schedule.model.add(last[like] <= start)
        last[like] = start
