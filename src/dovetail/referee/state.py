"""Whether a state can be: asked before kernels see it.

A state may come from anywhere: a replay, a snapshot of a cluster, a user's program. Kernels trust what they are given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dovetail.arrays import Ints, Mask
from dovetail.errors import StateError
from dovetail.model.cluster import WHOLE, Cluster
from dovetail.model.requests import Requests
from dovetail.model.state import State
from dovetail.referee.nodes import Units, check_units

LATEST = 1 << 59
"""No instant is later, and no time longer."""
MOST_SUM_S = 1 << 60
"""No instant of a plan comes later: all that waits and runs, one after the other."""
_COLUMNS = ("submit", "size", "limit", "estimate", "user", "start")
_LISTS = ("waiting", "running", "arrived", "ended", "corrected", "future")


def check_state(state: State) -> None:
    """Refuse a state that cannot be: StateError."""
    _check_columns(state)
    if not 0 <= state.now <= LATEST:
        raise StateError(f"now={state.now}: an instant is from 0 to {LATEST:,} s")
    if state.processors < 1:
        raise StateError(f"processors={state.processors}: a machine has at least 1")
    here = np.concatenate([state.waiting, state.running, state.ended])
    _each_once(state, here)
    wait, ran = state.waiting, here[len(state.waiting) :]
    _refuse(here, state.size[here] < 1, "has no size of at least 1 processor")
    _refuse(here, _outside(state.estimate[here], 1, LATEST), f"has no estimate from 1 to {LATEST:,} s")
    _refuse(here, _outside(state.submit[here], 0, state.now), f"has no submit from 0 to now ({state.now} s)")
    _refuse(ran, _outside(state.start[ran], 0, state.now), f"has no start from 0 to now ({state.now} s)")
    behind = state.submit[wait[1:]] < state.submit[wait[:-1]]
    _refuse(wait[1:], behind, "waits behind one that came later: `waiting` is in order of arrival")
    if len(state.deadline_s):
        _refuse(here, _outside(state.deadline_s[here], -1, LATEST), f"has no deadline from -1 (none) to {LATEST:,} s")
    last_s = state.now + float(state.estimate[here].sum(dtype=np.float64))
    told = [at for plan in (state.standing.promised, state.standing.expected) for at in plan.values()]
    if last_s > MOST_SUM_S or max(told, default=0) > MOST_SUM_S:
        raise StateError(f"estimates or planned starts come to more than {MOST_SUM_S:,} s")
    waits = set(wait.tolist())
    for job, due in state.standing.deadlines.items():
        if job in waits and due >= 0 and due != state.submit[job] + _deadline_s(state, job):
            raise StateError(f"job {job} was to end by {due}, which is not its deadline")
    if state.cluster is not None and state.cluster.kinds:
        _check_nodes(state, state.cluster, ran)
        return
    used, ended = (int(state.size[jobs].sum(dtype=np.float64)) for jobs in (ran, state.ended))
    if used > state.processors:
        raise StateError(f"running jobs have {used:,} processors, and the machine {state.processors:,}")
    _check_free(state, state.processors - used + ended)
    if len(state.draws_mw):
        _refuse(here, state.draws_mw[here] < 0, "draws less than nothing")
        if state.draws_mw[ran].sum(dtype=np.float64) > state.room_mw:
            raise StateError(f"running jobs draw more than the {state.room_mw:,} mW that the power cap leaves")


def _deadline_s(state: State, job: int) -> int:
    return int(state.deadline_s[job]) if len(state.deadline_s) else -1


def _check_columns(state: State) -> None:
    """All columns are numbers, and as long as each other; all lists name jobs in them."""
    columns: dict[str, Any] = {name: getattr(state, name) for name in (*_COLUMNS, "deadline_s", "draws_mw", *_LISTS)}
    for name, values in columns.items():
        if not isinstance(values, np.ndarray) or values.dtype != np.int64 or values.ndim != 1:
            raise StateError(f"{name}: must be an array of whole numbers in 64 bits, one for each job")
    n = len(state.submit)
    for name, values in columns.items():
        if name in _LISTS:
            _refuse(values, _outside(values, 0, n - 1), f"is in {name}, and the columns have {n:,} jobs, from 0 on")
        elif len(values) != n and (name in _COLUMNS or len(values)):
            raise StateError(f"{name} has {len(values):,} numbers, and submit {n:,}: one for each job")


def _each_once(state: State, here: Ints) -> None:
    """A job waits, runs or has just ended, and is named once; who arrived waits, who was corrected runs."""
    count = np.bincount(here, minlength=len(state.submit))
    if len(here) and count.max() > 1:
        raise StateError(f"job {int(count.argmax())} is named twice among those that wait, run or have just ended")
    for name, among in (("arrived", "waiting"), ("corrected", "running")):
        if len(strays := np.setdiff1d(getattr(state, name), getattr(state, among))):
            raise StateError(f"{name} names job {strays[0]}, which is not in {among}")


def _outside(values: Ints, least: int, most: int) -> Mask:
    return (values < least) | (values > most)


def _refuse(jobs: Ints, wrong: Mask, words: str) -> None:
    if wrong.any():
        raise StateError(f"job {jobs[int(wrong.argmax())]} {words}")


def _check_nodes(state: State, cluster: Cluster, ran: Ints) -> None:
    """Requests can be met by something, and what runs is on nodes that have as much."""
    asked = state.requests
    if asked is None:
        raise StateError("the cluster has nodes: `requests` must say what jobs ask of them")
    n, width = len(state.submit), len(cluster.resources)
    for name in ("units", "share", "per_node", "exclusive", "among"):
        if getattr(asked, name).shape != (n,):
            raise StateError(f"requests.{name} has {getattr(asked, name).size:,} numbers, and submit {n:,}")
    if asked.need.shape != (n, width):
        raise StateError(f"requests.need has the shape {asked.need.shape}: it must be {(n, width)}, jobs by resources")
    if asked.sets.dtype != bool or asked.sets.ndim != 2 or asked.sets.shape[1] != len(cluster.kinds):
        raise StateError(f"requests.sets must say of each set and of {len(cluster.kinds)} kinds whether they are in it")
    here = np.concatenate([state.waiting, ran])
    _refuse(here, _outside(asked.among[here], 0, len(asked.sets) - 1), "asks for nodes of a set that is not there")
    _refuse(here, asked.units[here] < 1, "asks for no unit")
    _refuse(here, asked.per_node[here] < 0, "allows less than no unit on a node")
    _refuse(here, (asked.exclusive[here] != 0) & (asked.exclusive[here] != 1), "is neither exclusive (1) nor not (0)")
    _refuse(here, (asked.need[here] < 0).any(axis=1), "needs less than nothing of a resource")
    _refuse(here, (asked.share[here] < 1) | (asked.share[here] > WHOLE), f"has no share of devices from 1 to {WHOLE}")
    _refuse(here, (asked.need[here] == 0).all(axis=1) & (asked.exclusive[here] == 0), "needs nothing of its nodes")
    if not len(ran):
        return
    node, devices = (_held(getattr(state, what), what, ran, asked) for what in ("nodes", "devices"))
    job, nodes = np.repeat(ran, asked.units[ran]), cluster.nodes
    _refuse(job, (node < 0) | (node >= nodes), f"is on a node that is not there: they go from 0 to {nodes - 1:,}")
    always = np.full(len(job), state.now + 1)
    for wrong in check_units(cluster, asked, Units(job, node, devices, always - 1, always), "runs"):
        raise StateError(f"job {wrong.job} {wrong.detail}")
    cores = asked.taken(job, cluster, node, devices)[:, 0]
    _check_free(state, cluster.processors - int(cores[np.isin(job, state.running)].sum()))


def _check_free(state: State, free: int) -> None:
    if state.free != free:
        raise StateError(f"free={state.free:,}: what runs leaves {free:,}")


def _held(held: Mapping[int, Any], what: str, jobs: Ints, asked: Requests) -> Ints:
    """What is held by the units of these jobs, in a row."""
    rows = []
    for job in jobs.tolist():
        if job not in held or len(held[job]) != asked.units[job]:
            has = len(held[job]) if job in held else 0
            raise StateError(f"{what} has {has} entries for job {job}, which has {asked.units[job]:,} units")
        rows.append(held[job])
    return np.concatenate(rows, dtype=np.int64)
