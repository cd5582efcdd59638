"""Small random dispatch problems, their best plans by looking at all of them, and the slow check of any plan."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations_with_replacement
from math import inf
from random import Random

from dovetail.model.cluster import NodeKind, by_node
from dovetail.optimize.dispatch.problem import Dispatched, DispatchProblem, Queued, Running

Nodes = tuple[int, ...]


def random_dispatch(rng: Random, jobs: int) -> DispatchProblem:
    """Two or three nodes of up to three kinds, a few jobs that run and a few that wait; durations of a few seconds."""
    kinds = [NodeKind("plain", rng.randint(1, 2), (rng.randint(2, 4), rng.randint(2, 5), 0))]
    if rng.random() < 0.8:
        kinds.append(NodeKind("gpu", 1, (rng.randint(2, 4), rng.randint(2, 5), rng.randint(1, 2))))
    if rng.random() < 0.3:
        rng.shuffle(kinds)
    cluster = by_node(("cores", "memory", "gpus"), tuple(kinds))
    now = rng.randint(0, 20)
    free = [list(cluster.kinds[k].capacity) for k in cluster.kind_of.tolist()]
    running: list[Running] = []
    for number in range(rng.randint(0, 3)):
        need, node = (rng.randint(1, 2), rng.randint(0, 2), 0), rng.randrange(cluster.nodes)
        many = rng.randint(1, 2)
        if all(has >= many * wants for has, wants in zip(free[node], need, strict=True)):
            free[node] = [has - many * wants for has, wants in zip(free[node], need, strict=True)]
            running.append(Running(100 + number, rng.randint(1, 3), (node,) * many, need))
    queue: list[Queued] = []
    while len(queue) < jobs:
        need = (rng.randint(1, 3), rng.randint(0, 3), int(rng.random() < 0.3))
        bits = (1 << len(kinds)) - 1 if rng.random() < 0.7 else 1 << rng.randrange(len(kinds))
        job = Queued(
            len(queue), now - rng.randint(0, 9), rng.randint(1, 3), rng.choice((1, 1, 2, 3)), need, bits,
            rng.choice((0, 0, 1)),
        )  # fmt: skip
        if queue and rng.random() < 0.3:
            job = replace(queue[-1], job=len(queue))  # one like the last
        try:
            DispatchProblem(now, cluster, (job,))
        except ValueError:
            continue  # it would not fit on the empty cluster
        queue.append(job)
    return DispatchProblem(now, cluster, tuple(queue), tuple(running))


def wrong(problem: DispatchProblem, starts: Nodes, nodes: list[Nodes] | tuple[Nodes, ...]) -> list[str]:
    """What is wrong with a plan: every node and resource at every instant, units, kinds and per_node. Jobs without
    nodes are not looked at."""
    found = []
    last = max([0, *(at + job.duration for at, job in zip(starts, problem.queue, strict=True))])
    last = max([last, *(problem.now + held.remaining for held in problem.running)])
    for at in range(problem.now, last):
        used = [[0] * len(problem.cluster.resources) for _ in range(problem.cluster.nodes)]
        here = [(held.nodes, held.need) for held in problem.running if at < problem.now + held.remaining]
        for job, begin, where in zip(problem.queue, starts, nodes, strict=True):
            if begin <= at < begin + job.duration:
                here.append((where, job.need))
        for where, need in here:
            for node in where:
                used[node] = [a + b for a, b in zip(used[node], need, strict=True)]
        for node, kind in enumerate(problem.cluster.kind_of.tolist()):
            capacity = problem.cluster.kinds[kind].capacity
            if any(a > b for a, b in zip(used[node], capacity, strict=True)):
                found.append(f"node {node} at {at}: {used[node]} of {capacity}")
    for job, begin, where in zip(problem.queue, starts, nodes, strict=True):
        if begin < problem.now:
            found.append(f"job {job.job} starts in the past")
        if where and len(where) != job.units:
            found.append(f"job {job.job} has {len(where)} units")
        if any(not job.kinds >> int(problem.cluster.kind_of[node]) & 1 for node in where):
            found.append(f"job {job.job} is on a node of a kind that does not do")
        if job.per_node and any(where.count(node) > job.per_node for node in where):
            found.append(f"job {job.job} has too many units on one node")
    return found


def wrong_positions(problem: DispatchProblem, answer: Dispatched) -> list[str]:
    """What is wrong with the boxes of a plan: each in the positions of its node, none over another."""
    found = []
    for r in range(len(problem.cluster.resources)):
        taken: set[tuple[int, int]] = set()
        next_free = [int(problem.first_position[node, r]) for node in range(problem.cluster.nodes)]
        boxes = []
        for held in problem.running:
            for node in held.nodes:
                boxes.append((held.job, problem.now, held.remaining, node, next_free[node], held.need[r]))
                next_free[node] += held.need[r]
        for i, job in enumerate(problem.queue):
            for node, place in zip(answer.nodes[i], answer.positions[i], strict=True):
                boxes.append((job.job, answer.starts[i], job.duration, node, place[r], job.need[r]))
        for number, begin, duration, node, first, size in boxes:
            if size and not problem.first_position[node, r] <= first <= problem.first_position[node + 1, r] - size:
                found.append(f"job {number} is not within node {node}")
            cells = [(at, p) for at in range(begin, begin + duration) for p in range(first, first + size)]
            found += [f"resource {r}, {cell}: {number} over another" for cell in cells if cell in taken]
            taken.update(cells)
    return found


def best_by_brute_force(problem: DispatchProblem) -> float:
    """The least total slowdown, by trying every start and every choice of nodes, job by job."""
    best = inf
    queue = problem.queue

    def go(i: int, starts: list[int], nodes: list[Nodes], so_far: float) -> None:
        nonlocal best
        least = sum((problem.now - job.arrive) / job.duration + 1 for job in queue[i:])
        if so_far + least >= best:
            return
        if i == len(queue):
            best = so_far
            return
        job = queue[i]
        for at in range(problem.now, problem.now + problem.horizon - job.duration + 1):
            for where in combinations_with_replacement(range(problem.cluster.nodes), job.units):
                part = DispatchProblem(problem.now, problem.cluster, queue[: i + 1], problem.running)
                if not wrong(part, (*starts, at), [*nodes, where]):
                    go(i + 1, [*starts, at], [*nodes, where], so_far + (at - job.arrive) / job.duration + 1)

    go(0, [], [], 0.0)
    return best
