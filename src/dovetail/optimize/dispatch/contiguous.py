"""Contiguous positions are stricter than nodes are: how much that costs a plan.

In PCP'21 a unit takes neighbouring positions, the same from its start to its end. On a node, any free cores will do.
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.optimize.dispatch.problem import Dispatched, DispatchProblem, Queued, running_positions


@dataclass(frozen=True)
class _Unit:
    """One unit of a job in a plan; times from now on."""

    job: int
    begin: int
    end: int
    need: tuple[int, ...]
    positions: tuple[int, ...]


def positions_lost(problem: DispatchProblem, answer: Dispatched) -> list[int]:
    """The jobs that wait in this plan of PCP'21 because of positions only.

    Such a job would fit now, to its end, on the nodes beside all others of the plan where and when they are; but it
    does not fit into positions that are free all that time. The others are not moved: how much better a plan without
    positions is as a whole, PCP'19 tells on the same problem. What runs has its free positions in one piece, so all
    that is lost is lost by jobs that are planned for later, and in what such plans make of the jobs that start now.
    """
    if not answer.positions:
        return []
    on_node = _units_by_node(problem, answer)
    late = [i for i, at in enumerate(answer.starts) if at > problem.now]
    return [problem.queue[i].job for i in late if _lost(problem, problem.queue[i], i, on_node)]


def _units_by_node(problem: DispatchProblem, answer: Dispatched) -> list[list[_Unit]]:
    """The units on each node; a running job is number -1."""
    on_node: list[list[_Unit]] = [[] for _ in range(problem.cluster.nodes)]
    for held, places in zip(problem.running, running_positions(problem), strict=True):
        for node, at in zip(held.nodes, places, strict=True):
            on_node[node].append(_Unit(-1, 0, held.remaining, held.need, at))
    for i, job in enumerate(problem.queue):
        begin = answer.starts[i] - problem.now
        for node, at in zip(answer.nodes[i], answer.positions[i], strict=True):
            on_node[node].append(_Unit(i, begin, begin + job.duration, job.need, at))
    return on_node


def _lost(problem: DispatchProblem, job: Queued, number: int, on_node: list[list[_Unit]]) -> bool:
    by_capacity = by_position = 0
    for node, kind in enumerate(problem.cluster.kind_of.tolist()):
        most = job.most_on(kind, problem.cluster.kinds[kind].capacity)
        if not most:
            continue
        beside = [unit for unit in on_node[node] if unit.job != number and unit.begin < job.duration]
        capacity = problem.cluster.kinds[kind].capacity
        first = problem.first_position[node].tolist()
        by_capacity += min(most, _fit_by_capacity(capacity, job.need, beside))
        by_position += min(most, _fit_by_position(capacity, first, job.need, beside))
    return by_position < job.units <= by_capacity


def _fit_by_capacity(capacity: tuple[int, ...], need: tuple[int, ...], beside: list[_Unit]) -> int:
    """How many units fit from now on: what is in use changes upwards only where a unit begins."""
    fits = []
    for r, wanted in enumerate(need):
        if wanted:
            instants = {0, *(unit.begin for unit in beside)}
            used = (sum(unit.need[r] for unit in beside if unit.begin <= at < unit.end) for at in instants)
            fits.append((capacity[r] - max(used)) // wanted)
    return min(fits)


def _fit_by_position(capacity: tuple[int, ...], first: list[int], need: tuple[int, ...], beside: list[_Unit]) -> int:
    """How many units fit into positions that are free all that time."""
    fits = []
    for r, wanted in enumerate(need):
        if wanted:
            taken = sorted((unit.positions[r], unit.positions[r] + unit.need[r]) for unit in beside if unit.need[r])
            fits.append(sum((end - at) // wanted for at, end in gaps(first[r], first[r] + capacity[r], taken)))
    return min(fits)


def gaps(first: int, end: int, taken: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The stretches between `first` and `end` that none of the sorted stretches in `taken` touches."""
    free = []
    for begin, until in taken:
        if begin > first:
            free.append((first, begin))
        first = max(first, until)
    if end > first:
        free.append((first, end))
    return free
