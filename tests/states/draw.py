"""Random states with no replay behind them, and what can be wrong with one."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dovetail.arrays import NEVER, Ints
from dovetail.engine.node_occupancy import NodeUse
from dovetail.errors import SettingError
from dovetail.model.plan import Plan
from dovetail.model.requests import Requests, requests_of
from dovetail.model.state import State, counted_of
from dovetail.policies.base import Policy, RulePolicy
from tests.simulate.cases import Case, draw

FAR: Final = (1 << 62, (1 << 63) - 1, -(1 << 63), -(1 << 62), 10**18)


def case_of(seed: int) -> tuple[Case, Policy]:
    """The first case from this one on that is small and whose policy the kernels know, and that policy at its site."""
    while True:
        case = draw(seed)
        seed += 1_000_003
        if not isinstance(case.rule, RulePolicy) or case.large or not len(case):
            continue
        with suppress(SettingError):  # a site whose prices change too often
            return case, case.rule.at(case.site, case.workload, case.cluster)


def random_state(case: Case, rng: random.Random) -> State:
    """Some jobs of a case run, on nodes taken at random where there are any; the others wait, a few of them asking for
    more than there is."""
    jobs, cluster = case.workload, case.cluster
    n = len(jobs)
    now = rng.randint(0, int(jobs.submit[-1]) + 20)
    outages = tuple(
        replace(one, end=NEVER) if one.begin <= now and rng.random() < 0.3 else one for one in cluster.outages
    )
    cluster = replace(cluster, outages=outages)
    asked = requests_of(jobs, cluster) if cluster.kinds else None
    use = NodeUse(cluster, asked) if asked is not None else None
    wide = np.array([rng.random() < 0.05 for _ in range(n)])
    size = jobs.size if cluster.kinds else np.where(wide, cluster.processors + 1, jobs.size)
    takes, free = cluster.takes(jobs), cluster.processors
    left = np.array(list(cluster.counted.values()), np.int64)
    waiting, running, start = list[int](), list[int](), np.full(n, -1, np.int64)
    for job in range(n):
        fate = rng.random()
        if jobs.submit[job] > now or fate < 0.1:  # not there yet, or gone
            continue
        if fate < 0.5 and (takes[job] <= left).all():
            if use is not None and asked is not None:
                where = [rng.randrange(cluster.nodes) for _ in range(int(asked.units[job]))]
                bits = [_devices(rng, asked, cluster, job) for _ in where]
                if not use.start(job, Plan(nodes={job: where}, devices={job: bits}), 0, 0):
                    running.append(job)
                    free -= use.cores(job)
                    left -= takes[job]
            elif size[job] <= free:
                running.append(job)
                free -= int(size[job])
                left -= takes[job]
        if job in running:
            start[job] = rng.randint(int(jobs.submit[job]), now)
        else:
            waiting.append(job)
    on_nodes: dict[str, Any] = {}
    if use is not None and asked is not None:
        asked = _greedy(asked, waiting, rng)
        nodes, devices = ({job: of(job).copy() for job in running} for of in (use.of, use.devices_of))
        on_nodes = {"cluster": cluster, "requests": asked, "nodes": nodes, "devices": devices}
    new = [job for job in waiting if rng.random() < 0.3]
    none = np.empty(0, np.int64)
    return State(
        now=now, processors=cluster.processors, free=free, waiting=np.array(waiting, np.int64),
        running=np.array(running, np.int64), arrived=np.array(new, np.int64), ended=none, submit=jobs.submit,
        size=size, limit=jobs.limit, estimate=jobs.limit, user=jobs.get("user"), start=start, seed=rng.randrange(9),
        deadline_s=jobs.get("deadline_s"), **counted_of(cluster, jobs), **on_nodes,
    )  # fmt: skip


def _greedy(asked: Requests, waiting: list[int], rng: random.Random) -> Requests:
    """The same, a few of those that wait asking for what no nodes have."""
    units, among, need = asked.units.copy(), asked.among.copy(), asked.need.copy()
    for job in waiting:
        wish = rng.random()
        if wish < 0.03:
            units[job] = rng.choice((1000, 1 << 40))
        elif wish < 0.06:
            among[job] = len(asked.sets)
        elif wish < 0.09:
            need[job, rng.randrange(need.shape[1])] = 10**6
    sets = np.concatenate([asked.sets, np.zeros((1, asked.sets.shape[1]), bool)])
    return replace(asked, units=units, among=among, sets=sets, need=need)


def _devices(rng: random.Random, asked: Requests, cluster: Any, job: int) -> int:
    if not cluster.shared:
        return 0
    there = cluster.vectors.shape[1] - len(cluster.resources)
    wanted = int(asked.need[job, cluster.shared_at])
    return sum(1 << d for d in rng.sample(range(there), min(wanted, there)))


def _with(state: State, **changes: Any) -> State:
    return replace(state, **changes)


# What is wrong ---------------------------------------------------------------------------------------------


def _one(values: Ints, at: int, value: int) -> Ints:
    out = values.copy()
    if len(out):
        out[at % len(out)] = value
    return out


def _column(state: State, rng: random.Random) -> State:
    """One number of a column is another, or far out."""
    name = rng.choice(("submit", "size", "limit", "estimate", "user", "start", "deadline_s", "draws_mw"))
    value = rng.choice((*FAR, 0, -1, -5, 1 << 40, state.now + 1))
    return _with(state, **{name: _one(getattr(state, name), rng.randrange(1000), value)})


def _shape(state: State, rng: random.Random) -> State:
    """A column or a list is of another length, type or shape."""
    name = rng.choice(("submit", "size", "estimate", "start", "waiting", "running", "arrived", "ended", "deadline_s"))
    values = getattr(state, name)
    other = rng.choice((values[:-1], values.astype(np.float64), values.astype(np.int32), values.reshape(1, -1), None))
    return _with(state, **{name: other})


def _jobs(state: State, rng: random.Random) -> State:
    """A list names jobs that are not there, or in two places, or in another order."""
    name = rng.choice(("waiting", "running", "arrived", "ended", "corrected", "future"))
    values = getattr(state, name)
    other = rng.choice((
        np.append(values, rng.choice((-1, len(state.submit), 1 << 62, 0))), np.append(values, values),
        values[::-1].copy(), np.append(values, state.waiting[:1]), np.append(values, state.running[:1]), values[:0],
    ))  # fmt: skip
    return _with(state, **{name: other})


def _number(state: State, rng: random.Random) -> State:
    name = rng.choice(("now", "processors", "free", "room_mw", "seed"))
    return _with(state, **{name: rng.choice((*FAR, 0, -1, 1))})


def _standing(state: State, rng: random.Random) -> State:
    """The last plan says what cannot be."""
    jobs = [*state.waiting.tolist(), *state.running.tolist(), 10**6, -1]
    told = {rng.choice(jobs): rng.choice((*FAR, -1, 0, state.now, state.now + 5)) for _ in range(3)}
    said: dict[str, Any] = {rng.choice(("promised", "expected", "deadlines", "memory")): told}
    return replace(state, standing=Plan(**said))


def _asked(state: State, rng: random.Random) -> State:
    """Somebody asks nodes for what cannot be."""
    if state.requests is None:
        return _column(state, rng)
    name = rng.choice(("units", "share", "per_node", "exclusive", "among", "need"))
    values = getattr(state.requests, name).copy()
    values.reshape(-1)[rng.randrange(values.size)] = rng.choice((*FAR, 0, -1, -7, 2, 5000))
    if rng.random() < 0.2:
        values = values[:-1]
    return replace(state, requests=replace(state.requests, **{name: values}))


def _held(state: State, rng: random.Random) -> State:
    """A running job is on a node that is not there, or full, or on none."""
    if not state.nodes:
        return _jobs(state, rng)
    name, job = rng.choice(("nodes", "devices")), rng.choice(list(state.nodes))
    values = getattr(state, name)[job]
    other = rng.choice((values[:-1], _one(values, 0, rng.choice((*FAR, -1, 10**6, 0, 1))), values * 0, None))
    held = {**getattr(state, name), job: other} if other is not None else {}
    return _with(state, **{name: held})


def _crowded(state: State, rng: random.Random) -> State:
    """All that waits runs too."""
    both = np.concatenate([state.running, state.waiting])
    on = (
        {job: np.zeros(int(state.requests.units[job]) % 1000, np.int64) for job in both.tolist()}
        if state.requests
        else {}
    )
    start = np.where(state.submit <= state.now, state.submit, -1)
    return replace(state, running=both, waiting=both[:0], arrived=both[:0], start=start, nodes=on, devices=on)


def _nobody(state: State, rng: random.Random) -> State:
    """No nodes are said to be there, or no requests."""
    return _with(state, **rng.choice(({"cluster": None}, {"requests": None}, {"nodes": {}}, {"devices": {}})))


WRONG: Final[tuple[Callable[[State, random.Random], State], ...]] = (
    _column, _shape, _jobs, _number, _standing, _asked, _held, _crowded, _nobody,
)  # fmt: skip


def hostile(state: State, rng: random.Random) -> State:
    """The same state with one to three things wrong in it."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        try:
            state = rng.choice(WRONG)(state, rng)
        except (TypeError, AttributeError, LookupError, ValueError, OverflowError):
            continue  # nothing is left there to go wrong
    return state
