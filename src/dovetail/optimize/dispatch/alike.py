"""A dispatching problem without the nodes that its queue cannot use: the paper's future work, its symmetry of nodes.

Nodes are alike if they are of one kind and the same runs on them, for as long and at the same positions. A unit takes
one node. So of nodes that are alike, no plan needs more than the queue has units that they could hold: the first so
many stay, and the best plan is as good as with all of them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from dovetail.arrays import Ints
from dovetail.model.cluster import by_node
from dovetail.optimize.dispatch.problem import Dispatched, DispatchProblem, units_by_node


def fewer_nodes(problem: DispatchProblem) -> tuple[DispatchProblem, Ints]:
    """The same with as many nodes as the queue could use, and which nodes they are."""
    cluster = problem.cluster
    holds: list[list[tuple[int, tuple[int, ...]]]] = [[] for _ in range(cluster.nodes)]
    for one in problem.running:
        for node in one.nodes:
            holds[node].append((one.remaining, one.need))
    alike = defaultdict[object, list[int]](list)
    for node, kind in enumerate(cluster.kind_of.tolist()):
        alike[kind, tuple(holds[node])].append(node)
    wanted = np.zeros(cluster.nodes, np.int64)
    for job in problem.queue:
        wanted += job.units * (units_by_node(cluster, problem.capacity, job) > 0)
    kept: Ints = np.array(sorted(n for nodes in alike.values() for n in nodes[: max(wanted[nodes[0]], 1)]), np.int64)
    counts = np.bincount(cluster.kind_of[kept], minlength=len(cluster.kinds)).tolist()
    kinds = tuple(replace(kind, count=count) for kind, count in zip(cluster.kinds, counts, strict=True))
    now = {node: place for place, node in enumerate(kept.tolist())}
    running = [replace(one, nodes=tuple(now[node] for node in one.nodes if node in now)) for one in problem.running]
    return replace(
        problem, cluster=by_node(cluster.resources, kinds), running=tuple(one for one in running if one.nodes)
    ), kept


def on_all_nodes(problem: DispatchProblem, few: DispatchProblem, kept: Ints, answer: Dispatched) -> Dispatched:
    """An answer for fewer nodes with the nodes and the positions that they have among all."""
    moved = problem.first_position[kept] - few.first_position[:-1]
    positions = tuple(
        tuple(
            tuple(at + shift if at >= 0 else -1 for at, shift in zip(unit, moved[node].tolist(), strict=True))
            for unit, node in zip(units, where, strict=True)
        )
        for units, where in zip(answer.positions, answer.nodes, strict=False)
    )
    nodes = tuple(tuple(kept[list(where)].tolist()) for where in answer.nodes)
    return replace(answer, nodes=nodes, positions=positions)
