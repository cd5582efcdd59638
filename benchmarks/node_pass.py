"""One pass on nodes, from a state with no replay behind it, or replays that begin there: CPU seconds, kernels warm.

python benchmarks/node_pass.py easy list:reserve=100 plan-af:depth=100,ms=300 --nodes 64 1000 10000 --waiting 100 1000
python benchmarks/node_pass.py easy --nodes 64 --waiting 1000 --forks 100       all to their ends, run times drawn
python benchmarks/node_pass.py easy --nodes 160000 --waiting 1000 --full

Nodes of four kinds (64 or 128 cores, half of them with 4 GPUs), nearly all full: jobs of 1 core to 16 nodes that run
for up to a day. Jobs that wait ask for the same sort of things.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from dovetail.arrays import Ints
from dovetail.engine.onward import begin_at
from dovetail.model.cluster import Cluster, NodeKind, by_node
from dovetail.model.requests import Requests
from dovetail.model.state import State
from dovetail.policies.base import Policy
from dovetail.policies.registry import policy
from dovetail.referee.plan import check_plan

DAY_S = 86_400
NOW = 30 * DAY_S


def cluster_of(nodes: int) -> Cluster:
    """Four kinds of node, a quarter of them each."""
    part = nodes // 4
    kinds = [("thin", nodes - 3 * part, 64, 0), ("fat", part, 128, 0), ("gpu", part, 64, 4), ("big", part, 128, 4)]
    return by_node(("cores", "gpus"), tuple(NodeKind(name, n, (cores, gpus)) for name, n, cores, gpus in kinds))


def asked_by(n: int, cluster: Cluster, rng: np.random.Generator) -> Requests:
    """What n jobs ask for: half of them parts of a node, the others up to 16 nodes, a few of them with GPUs."""
    most = min(16, cluster.nodes)
    part = rng.random(n) < 0.5
    units = np.where(part, 1, np.exp2(rng.uniform(0, np.log2(most), n)).astype(np.int64))
    cores = np.where(part, rng.choice([1, 2, 4, 8, 16, 32], n), 64)
    gpus = np.where(rng.random(n) < 0.1, rng.integers(1, 5, n), 0)
    will_do = np.ones((1, len(cluster.kinds)), bool)
    none = np.zeros(n, np.int64)
    return Requests(units, np.stack([cores, gpus], axis=1), np.full(n, 1000), none, none, none, will_do, none - 1)


def state_of(nodes: int, waiting: int, seed: int = 1) -> State:
    """Jobs are put on the first nodes that have room for a unit each, until nine tenths of the cores are taken."""
    rng = np.random.Generator(np.random.PCG64(seed))
    cluster = cluster_of(nodes)
    free = cluster.capacity[cluster.kind_of]
    most = 4 * nodes
    asked = asked_by(most + waiting, cluster, rng)
    held: dict[int, Ints] = {}
    for job in range(most):
        room = np.flatnonzero((free >= asked.need[job]).all(axis=1))[: asked.units[job]]
        if len(room) == asked.units[job]:
            free[room] -= asked.need[job]
            held[job] = room
        if free[:, 0].sum() < 0.1 * cluster.processors:
            break
    return _state(cluster, asked, held, most, waiting, int(free[:, 0].sum()), rng)


def _state(
    cluster: Cluster, asked: Requests, held: dict[int, Ints], most: int, waiting: int, free: int,
    rng: np.random.Generator,
) -> State:  # fmt: skip
    """These jobs run, and `waiting` behind the first `most` wait."""
    limit = rng.integers(60, DAY_S, most + waiting)
    start = np.full(most + waiting, -1, np.int64)
    running = np.fromiter(held, np.int64)
    start[running] = NOW - (rng.random(len(running)) * limit[running]).astype(np.int64)
    submit = np.zeros(most + waiting, np.int64)
    submit[most:] = NOW - np.sort(rng.integers(0, DAY_S, waiting))[::-1]
    none = np.empty(0, np.int64)
    return State(
        now=NOW, processors=cluster.processors, free=free, waiting=most + np.arange(waiting),
        running=running, arrived=none, ended=none, submit=submit, size=asked.units * asked.need[:, 0], limit=limit,
        estimate=limit, user=np.zeros_like(limit), start=start, cluster=cluster, requests=asked, nodes=held,
        devices={job: np.zeros(len(where), np.int64) for job, where in held.items()},
    )  # fmt: skip


def full_state(nodes: int, waiting: int, seed: int = 1) -> State:
    """Another, for very many nodes: each node but a hundred has a unit of a job, and the first that waits is too large
    to start. Quickly made."""
    rng = np.random.Generator(np.random.PCG64(seed))
    cluster = cluster_of(nodes)
    free, order = cluster.capacity[cluster.kind_of], rng.permutation(nodes)
    asked = asked_by(nodes + waiting, cluster, rng)
    asked.units[nodes], asked.need[nodes, 0] = 120, 128
    held: dict[int, Ints] = {}
    last = 0
    for job, units in enumerate(asked.units[:nodes].tolist()):
        if last + units > nodes - 100:
            break
        held[job] = np.sort(order[last : last + units])
        asked.need[job] = np.minimum(asked.need[job], free[held[job]].min(axis=0))
        free[held[job]] -= asked.need[job]
        last += units
    return _state(cluster, asked, held, nodes, waiting, int(free[:, 0].sum()), rng)


def one_pass(chosen: Policy, state: State) -> dict[str, object]:
    """Ask once."""
    clock = time.process_time()
    plan = chosen.decide(state)
    cpu = time.process_time() - clock
    small = len(state.waiting) * len(state.running) <= 10**6
    wrong = len(check_plan(state, plan)) if small else None
    return {"cpu_s": round(cpu, 4), "starts": len(plan.starts), "reasons": len(plan.reasons), "referee": wrong}


def forked(chosen: Policy, state: State, forks: int) -> dict[str, object]:
    """Go on from the state so many times."""
    clock = time.process_time()
    begun = begin_at(state, chosen, bounded=True)
    begun_s = time.process_time() - clock
    rng, limit = np.random.Generator(np.random.PCG64(1)), state.limit[begun.rows]
    starts = [begun.starts(1 + (rng.random(len(limit)) * limit).astype(np.int64)) for _ in range(forks)]
    cpu = time.process_time() - clock - begun_s
    first = [one[int(state.waiting[0])] - state.now for one in starts]
    row = {"begun_cpu_s": round(begun_s, 4), "forks": forks, "forks_cpu_s": round(cpu, 3)}
    return {**row, "first_waits_s": [min(first), max(first)]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policies", nargs="+")
    parser.add_argument("--nodes", type=int, nargs="+", default=[64, 1000, 10_000])
    parser.add_argument("--waiting", type=int, nargs="+", default=[100, 1000, 5000, 50_000])
    parser.add_argument("--forks", type=int, default=0)
    parser.add_argument("--full", action="store_true", help="every node in use, for very many nodes")
    args = parser.parse_args()
    small = state_of(16, 20)
    for name in args.policies:
        chosen = policy(name)
        one_pass(chosen, small) if not args.forks else forked(chosen, small, 1)  # compile
        for nodes in args.nodes:
            for waiting in args.waiting:
                clock = time.process_time()
                state = (full_state if args.full else state_of)(nodes, waiting)
                built = round(time.process_time() - clock, 2)
                row = {"policy": name, "nodes": nodes, "waiting": waiting, "running": len(state.running)}
                row |= {"built_cpu_s": built} if args.full else {}
                row |= forked(chosen, state, args.forks) if args.forks else one_pass(chosen, state)
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
