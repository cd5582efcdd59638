"""A replay that begins at a state: what runs goes on, what waits is decided on, and more jobs may come.

Forecasts are many of these, each with other run times: the state is taken in once (`begin_at`), and each `fork` goes on
from there on its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dovetail.arrays import Ints
from dovetail.engine.compiled import LONG, Replay
from dovetail.engine.replay import check
from dovetail.errors import SettingError
from dovetail.kernels import replay as kernel
from dovetail.kernels import state as layout
from dovetail.kernels.learners.learner import new_learner
from dovetail.kernels.machine.processors import Counted
from dovetail.kernels.passes.rule import fitted
from dovetail.model.machine import new_machine
from dovetail.model.requests import Requests, joined, requests_of
from dovetail.model.state import State
from dovetail.model.workload import Workload
from dovetail.policies.base import Asked, Policy
from dovetail.referee.state import LATEST, check_state


@dataclass(frozen=True)
class Begun:
    """A state taken in. Rows are the jobs of the state that have arrived, by number, then those to come."""

    state: State
    rows: Ints
    """The number in the state of each row; -1: it is still to come. Not all that are gone are there."""
    base: Replay
    bounded: bool

    def fork(self, runtime: Ints) -> Replay:
        """A replay of its own, in which the jobs run for so long (one number per row). What runs has run since its
        start: it ends in the next second at the earliest."""
        most = self.base.estimate if self.bounded else LATEST
        if np.shape(runtime) != self.rows.shape or bool(np.any((runtime < 1) | (runtime > most))):
            few = f"{len(self.rows):,} whole numbers, each from 1 s to {'its estimate' if self.bounded else 'a bound'}"
            raise SettingError(f"run times must be {few}")
        made = self.base.copy()
        jobs, info, lists, now = made.run.jobs, made.run.info, made.run.lists, self.state.now
        ran = lists[layout.END_JOB, : info[layout.RUNNING]]
        jobs[layout.RUNTIME] = runtime
        ends = np.maximum(jobs[layout.START, ran] + jobs[layout.RUNTIME, ran], now + 1)
        in_turn = np.lexsort((ran, ends))  # sorted, so already a heap
        lists[layout.END_AT, : len(ran)], lists[layout.END_JOB, : len(ran)] = ends[in_turn], ran[in_turn]
        return made

    def starts(self, runtime: Ints) -> dict[int, int]:
        """When each job that waits in the state would start, if the jobs ran for so long."""
        made = self.fork(runtime)
        made.advance()
        waits = np.flatnonzero(np.isin(self.rows, self.state.waiting))
        return dict(zip(self.rows[waits].tolist(), made.start[waits].tolist(), strict=True))


def begin_at(
    state: State, policy: Policy, coming: Workload | None = None, *, every_s: int = 0, bounded: bool = False
) -> Begun:
    """Take in a state, to go on from it under a policy. `coming`: jobs that arrive later, with limits as estimates.
    `bounded`: no job will run for longer than its estimate, now or in any fork."""
    check_state(state)
    if not policy.goes_on:
        raise SettingError(
            f"{policy.name} cannot go on from a state: choose a list policy or a planner without promises"
        )
    if any(one.fails and one.begin > state.now for one in state.machine.outages):
        raise SettingError("a node that fails after now: nobody knows it in a state")
    if never := state.never():
        job, why = next(iter(never.items()))
        raise SettingError(f"job {job} {why}: leave it out of `waiting`")
    later = 0 if coming is None else len(coming)
    if coming is not None:
        if len(state.draws_mw):
            raise SettingError("under a power cap no jobs to come are known: what they draw is not said")
        check(coming, state.machine)
        if not coming.comes_and_stays:
            raise SettingError("jobs to come are to come when they may start, and to stay: set their submits so")
        if later and int(coming.submit[0]) <= state.now:
            raise SettingError(
                f"job {coming['id'][0]} comes at {coming.submit[0]} s, which is not after now ({state.now} s)"
            )
    rule: Any = policy.rule(Asked(every_s, bounded, seed=state.seed, nodes=state.cluster is not None))
    known = np.flatnonzero((state.submit >= 0) & (state.submit <= state.now))
    here = np.concatenate([state.waiting, state.running])
    known = known[np.isin(known, here) | state.possible(known)]  # a planner may foresee jobs like those that are gone
    rows = np.concatenate([known, np.full(later, -1)])
    jobs = _jobs(state, known, coming)
    n = len(rows)
    info = np.zeros(layout.INFO, np.int64)
    info[[layout.NOW, layout.NEXT, layout.LAST, layout.LONG]] = [state.now, len(known), n, LONG]
    info[[layout.RUNNING, layout.ARRIVED, layout.PHASE]] = [len(state.running), len(state.waiting), layout.TOLD]
    place = np.full(len(state.submit), -1)
    place[known] = np.arange(len(known))
    lists = np.zeros((layout.LIST_ROWS, max(2 * len(here), 64)), np.int64)
    lists[layout.NEWS_LIST, : len(state.waiting)] = place[state.waiting]
    lists[layout.END_JOB, : len(state.running)] = place[state.running]
    run = layout.Run(info, jobs, np.zeros((2, n)), np.empty((4, 0), np.int64), np.empty((2, 0), np.int64), lists)
    asked, room = _requests(state, known, coming), lists.shape[1]
    takes = state.takes(known)
    if coming is not None:
        takes = np.concatenate([takes, state.machine.takes(coming)])
    cap = new_machine(state.machine, jobs[layout.SIZE], asked, takes, policy.place, room, rule.common.foresight)
    if not isinstance(cap, Counted):
        for job in state.running.tolist():
            cap.hold(int(place[job]), state.now, state.nodes[job], state.devices[job])
    kernel.occupy(cap, run, state.now)
    limit = jobs[layout.ESTIMATE].copy()
    base = Replay(run, cap, fitted(rule, cap, room), new_learner(limit, first=limit))
    return Begun(state, rows, base, bounded)


def _jobs(state: State, known: Ints, coming: Workload | None) -> Ints:
    """The rows of a run: what the state says of its jobs, then those to come."""
    jobs = np.full((layout.JOB_ROWS, len(known) + (0 if coming is None else len(coming))), -1, np.int64)
    of_state = {
        layout.SUBMIT: state.submit, layout.ARRIVE: state.submit, layout.SIZE: state.size,
        layout.ESTIMATE: state.estimate, layout.START: state.start,
    }  # fmt: skip
    for row, values in of_state.items():
        jobs[row, : len(known)] = values[known]
    if coming is not None:
        for row, column in ((layout.SUBMIT, "submit"), (layout.SIZE, "size"), (layout.ESTIMATE, "limit")):
            jobs[row, len(known) :] = coming[column]
    gone = np.ones(len(state.submit), bool)
    gone[np.concatenate([state.waiting, state.running])] = False
    over = jobs[layout.START, : len(known)]
    over[gone[known]] = np.maximum(over[gone[known]], 0)
    jobs[layout.SEEN], jobs[layout.NUMBER] = 0, np.arange(jobs.shape[1])
    jobs[layout.NUMBER, : len(known)] = known
    jobs[layout.NUMBER, len(known) :] += len(state.submit)
    waits = set(state.waiting.tolist())
    for job, at in state.standing.expected.items():
        if job in waits:
            jobs[layout.PLACE, np.searchsorted(known, job)] = at
    return jobs


def _requests(state: State, known: Ints, coming: Workload | None) -> Requests | None:
    """What the jobs ask of nodes, where there are any."""
    if state.requests is None:
        return None
    asked = state.requests.of(known)
    return asked if coming is None else joined(asked, requests_of(coming, state.machine))
