"""Whether a state can be: asked before kernels see it.

A state may come from anywhere: a replay, a snapshot of a cluster, a user's program. Kernels trust what they are given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dovetail.arrays import NEVER, Ints, Mask
from dovetail.errors import StateError
from dovetail.model.cluster import MOST_LICENCES, Cluster
from dovetail.model.plan import Plan
from dovetail.model.requests import Requests
from dovetail.model.state import State
from dovetail.referee.nodes import Units, check_places, check_units
from dovetail.units import printable

LATEST = 1 << 59
"""No instant is later, and no time longer."""
MOST_SUM_S = 1 << 60
"""No instant of a plan comes later: all that waits and runs, one after the other."""
_COLUMNS = ("submit", "size", "limit", "estimate", "user", "start")
_LISTS = ("waiting", "running", "arrived", "ended", "corrected", "lost", "left", "future")


def check_state(state: State) -> None:
    """Refuse a state that cannot be: StateError."""
    _check_numbers(state)
    _check_columns(state)
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
    if len(state.turn):
        _refuse(wait, ~((state.turn[wait] >= 0) & np.isfinite(state.turn[wait])), "has no turn from 0 on")
    last_s = state.now + float(state.estimate[here].sum(dtype=np.float64))
    if last_s > MOST_SUM_S:
        raise StateError(f"estimates come to more than {MOST_SUM_S:,} s")
    waits = set(wait.tolist())
    for job, due in state.standing.deadlines.items():
        if job in waits and due >= 0 and due != state.submit[job] + _deadline_s(state, job):
            raise StateError(f"job {job} was to end by {due}, which is not its deadline")
    if state.cluster is not None and state.cluster.kinds:
        _check_nodes(state, state.cluster, ran)
        _check_counted(state, here, ran)
        return
    if state.requests is not None:
        raise StateError("`requests` are of nodes, and the cluster has none")
    used, ended = (int(state.size[jobs].sum(dtype=np.float64)) for jobs in (ran, state.ended))
    if used > state.processors:
        raise StateError(f"running jobs have {used:,} processors, and the machine {state.processors:,}")
    _check_free(state, state.processors - used + ended)
    _check_counted(state, here, ran)


def _check_counted(state: State, here: Ints, ran: Ints) -> None:
    """What runs takes no more than there is of what is counted for all jobs together."""
    takes, used = state.takes(here), state.takes(ran)
    for k, (what, room) in enumerate(state.counted.items()):
        _refuse(here, _outside(takes[:, k], 0, MOST_SUM_S), f"takes no number of {what} from 0 on")
        if used[:, k].sum(dtype=np.float64) > room:
            raise StateError(f"running jobs take more than the {room:,} {what} that there are")


def _check_numbers(state: State) -> None:
    """Single numbers, and those of the last plan."""
    numbers = {name: getattr(state, name) for name in ("now", "processors", "free", "room_mw", "seed")}
    if not isinstance(state.standing, Plan):
        raise StateError("standing: must be a Plan")
    plans = (state.standing.promised, state.standing.expected, state.standing.deadlines)
    told = [at for plan in plans for at in plan.values()]
    for name, value in [*numbers.items(), *(("a start or an end of the last plan", at) for at in told)]:
        if not isinstance(value, int | np.integer) or not -MOST_SUM_S <= value <= MOST_SUM_S:
            raise StateError(f"{name}: must be a whole number of at most {MOST_SUM_S:,}")
    if not 0 <= state.now <= LATEST:
        raise StateError(f"now={state.now}: an instant is from 0 to {LATEST:,} s")
    if state.processors < 1:
        raise StateError(f"processors={state.processors}: a machine has at least 1")
    if not isinstance(state.licences, Mapping) or not isinstance(state.licences_total, Mapping):
        raise StateError("licences and licences_total must be mappings of names")
    for name, total in state.licences_total.items():
        if not isinstance(total, int | np.integer) or not 0 <= total <= MOST_LICENCES or name not in state.licences:
            raise StateError(
                f"licences of {printable(str(name))!r}: must be from 0 to {MOST_LICENCES:,}, and `licences` must say"
                " who holds them"
            )


def _deadline_s(state: State, job: int) -> int:
    return int(state.deadline_s[job]) if len(state.deadline_s) else -1


def _check_columns(state: State) -> None:
    """All columns are numbers, and as long as each other; all lists name jobs in them."""
    columns: dict[str, Any] = {name: getattr(state, name) for name in (*_COLUMNS, "deadline_s", "draws_mw", *_LISTS)}
    columns |= {f"licences[{printable(str(name))!r}]": values for name, values in state.licences.items()}
    for name, values in columns.items():
        if not isinstance(values, np.ndarray) or values.dtype != np.int64 or values.ndim != 1:
            raise StateError(f"{name}: must be an array of whole numbers in 64 bits, one for each job")
    n, turn = len(state.submit), state.turn
    if not isinstance(turn, np.ndarray) or turn.dtype != np.float64 or turn.shape not in ((0,), (n,)):
        raise StateError("turn: must be an array of numbers in 64 bits, one for each job or none")
    for name, values in columns.items():
        if name in _LISTS:
            _refuse(values, _outside(values, 0, n - 1), f"is in {name}, and the columns have {n:,} jobs, from 0 on")
        elif len(values) != n and (name not in ("deadline_s", "draws_mw") or len(values)):
            raise StateError(f"{name} has {len(values):,} numbers, and submit {n:,}: one for each job")


def _each_once(state: State, here: Ints) -> None:
    """A job waits, runs or has just ended, and is named once; who arrived waits, who was corrected ran."""
    ran = here[len(state.waiting) :]
    places = "those that wait, run or have just ended"
    for where, jobs in ((places, here), *((name, getattr(state, name)) for name in ("arrived", "future"))):
        in_turn = np.sort(jobs)
        _refuse(in_turn[1:], in_turn[1:] == in_turn[:-1], f"is named twice among {where}")
    _refuse(state.arrived, ~np.isin(state.arrived, state.waiting), "has arrived, and does not wait")
    _refuse(state.corrected, ~np.isin(state.corrected, ran), "was corrected, and does not run")
    for jobs, words in ((state.future, "is to come"), (state.left, "has left the queue")):
        _refuse(jobs, np.isin(jobs, here), f"{words}, and is among {places}")


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
    for name in ("units", "share", "per_node", "exclusive", "among", "reservation", "need"):
        values, shape = getattr(asked, name), (n, width) if name == "need" else (n,)
        if not isinstance(values, np.ndarray) or values.dtype != np.int64 or values.shape != shape:
            raise StateError(f"requests.{name}: must be whole numbers in 64 bits, of the shape {shape}")
    if asked.sets.dtype != bool or asked.sets.ndim != 2 or asked.sets.shape[1] != len(cluster.kinds):
        raise StateError(f"requests.sets must say of each set and of {len(cluster.kinds)} kinds whether they are in it")
    if _outside(asked.reservation, -1, len(cluster.reservations) - 1).any():
        raise StateError(f"requests.reservation: must be from -1 (none) to {len(cluster.reservations) - 1}")
    for one in cluster.outages:
        if one.begin > LATEST or (one.end > LATEST and (one.end < NEVER or one.begin > state.now)):
            raise StateError(
                f"an outage begins at {one.begin} and ends at {one.end}: times are at most {LATEST:,} s, and only one"
                f" that has begun may have no known end ({NEVER})"
            )
    if dict(cluster.licences) != dict(state.licences_total):
        raise StateError("licences_total: must be what the cluster has, and `licences` must say who holds them")
    if state.processors != cluster.processors:
        raise StateError(f"processors={state.processors:,}: the cluster has {cluster.processors:,}")
    here = np.concatenate([state.waiting, ran])
    for words, these in asked.wrong(here).items():
        _refuse(here, these, words)
    if not isinstance(state.standing.nodes, Mapping) or not isinstance(state.standing.devices, Mapping):
        raise StateError("standing: nodes and devices must be mappings of jobs")
    stood = np.array([job for job in state.waiting.tolist() if job in state.standing.nodes], np.int64)
    none = {job: [0] * int(asked.units[job]) for job in stood.tolist()}
    planned = _units(state, cluster, stood, state.standing.nodes, {**none, **state.standing.devices})
    for wrong in check_places(cluster, asked, planned, "was planned") if len(stood) else ():
        raise StateError(f"job {wrong.job} {wrong.detail}")
    units = _units(state, cluster, ran, state.nodes, state.devices)
    for wrong in check_units(cluster, asked, units, "runs"):
        raise StateError(f"job {wrong.job} {wrong.detail}")
    cores = asked.taken(units.job, cluster, units.node, units.devices)[:, 0]
    _check_free(state, cluster.processors - int(cores[np.isin(units.job, state.running)].sum()))


def _units(state: State, cluster: Cluster, jobs: Ints, nodes: Mapping[int, Any], devices: Mapping[int, Any]) -> Units:
    """The units of these jobs, at this instant."""
    asked = state.requests
    if asked is None or not len(jobs):
        return Units(*(np.empty(0, np.int64) for _ in range(5)))
    node, mask = _held(nodes, "nodes", jobs, asked), _held(devices, "devices", jobs, asked)
    job, last = np.repeat(jobs, asked.units[jobs]), cluster.nodes - 1
    _refuse(job, (node < 0) | (node > last), f"is on a node that is not there: they go from 0 to {last:,}")
    always = np.full(len(job), state.now + 1)
    return Units(job, node, mask, always - 1, always)


def _check_free(state: State, free: int) -> None:
    if state.free != free:
        raise StateError(f"free={state.free:,}: what runs leaves {free:,}")


def _held(held: Mapping[int, Any], what: str, jobs: Ints, asked: Requests) -> Ints:
    """What is held by the units of these jobs, in a row."""
    rows = []
    for job in jobs.tolist():
        rows.append(np.asarray(held.get(job, ()) if isinstance(held, Mapping) else ()))
        if rows[-1].size != asked.units[job]:
            raise StateError(f"{what} has {rows[-1].size} entries for job {job}, which has {asked.units[job]:,} units")
        if rows[-1].dtype.kind != "i" or rows[-1].ndim != 1:
            raise StateError(f"{what} of job {job}: must be whole numbers, one for each unit")
    return np.concatenate(rows, dtype=np.int64)
