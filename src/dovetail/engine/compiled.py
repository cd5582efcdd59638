"""The whole-run engine: drives the compiled replay and gives it what it asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dovetail.arrays import NEVER, Ints
from dovetail.kernels import replay as kernel
from dovetail.kernels import state as layout
from dovetail.kernels.learners.learner import Learner, copied_learner, new_learner
from dovetail.kernels.machine.processors import Counted
from dovetail.kernels.passes.rule import fitted
from dovetail.kernels.queue import new_tree, waiting_jobs
from dovetail.model.cluster import Cluster, Outage
from dovetail.model.machine import Machine, new_machine, nodes_of
from dovetail.model.requests import Requests, requests_of
from dovetail.model.schedule import Lost
from dovetail.model.workload import Workload

_Numbers = TypeVar("_Numbers", bound=npt.NDArray[Any])
LONG = 2000
"""Unlike jobs that wait: where a pass plans each of them, a replay may take minutes."""


@dataclass
class Replay:
    """A replay in progress. All of its state is in arrays here: stop it, look, copy it, go on.

    `on_news(replay, ended, arrived)` is called in each moment before its pass, when the rule says so: a predictor
    observes, and writes `replay.estimate`. `keys(replay)` gives the keys of the waiting jobs for an order of the
    user's that moves with time. `on_long(n)` is told, once, that more than LONG unlike jobs wait.
    """

    run: layout.Run
    cap: Machine
    rule: Any
    learner: Learner
    on_news: Callable[[Replay, Ints, Ints], None] | None = None
    keys: Callable[[Replay], npt.NDArray[np.float64]] | None = None
    keys_hold: Callable[[int], int] = int
    """Until when keys hold that are asked for at an instant, if no job comes."""
    on_long: Callable[[int], None] | None = None
    failures: list[Outage] = field(default_factory=list)
    """Of nodes, still to come, the first last."""
    lost: list[Lost] = field(default_factory=list)
    first_arrive: dict[int, int] = field(default_factory=dict)
    """When each job that was lost came first."""
    leaving: list[tuple[int, int]] = field(default_factory=list)
    """When jobs leave the queue if they have not started, the first last."""

    @property
    def now(self) -> int:
        return int(self.run.info[layout.NOW])

    @property
    def passes(self) -> int:
        return int(self.run.info[layout.PASSES])

    @property
    def start(self) -> Ints:
        start: Ints = self.run.jobs[layout.START]
        return start

    @property
    def estimate(self) -> Ints:
        estimate: Ints = self.run.jobs[layout.ESTIMATE]
        return estimate

    @property
    def waiting(self) -> Ints:
        """The jobs that wait now."""
        return waiting_jobs(self.run)

    @property
    def free(self) -> int:
        """Processors that no job uses."""
        nodes = nodes_of(self.cap)
        return int(self.cap.free[0] if isinstance(self.cap, Counted) else nodes.pool[0] if nodes else 0)

    @property
    def started(self) -> int:
        """How many jobs have started so far."""
        return int(np.count_nonzero(self.start >= 0))

    def advance(self, until: int = NEVER - 1) -> bool:
        """Go on up to and including the instant `until`. Returns True when nothing is left to happen."""
        while (at := self._next_change()) <= until:
            if self._advance(at - 1) and not len(self.waiting):
                return True
            if self.failures and self.failures[-1].begin == at:
                self._fail(at)
            if self.leaving and self.leaving[-1][0] == at:
                self._leave(at)
        return self._advance(until)

    def _next_change(self) -> int:
        """When nodes fail next, or jobs may leave."""
        while self.leaving and self.start[self.leaving[-1][1]] >= 0:
            self.leaving.pop()
        fail = self.failures[-1].begin if self.failures else NEVER
        return min(fail, self.leaving[-1][0] if self.leaving else NEVER)

    def _leave(self, at: int) -> None:
        """Jobs leave the queue."""
        out = list[int]()
        while self.leaving and self.leaving[-1][0] == at:
            job = self.leaving.pop()[1]
            out += [job] * (job not in self.first_arrive)  # who has run stays
        info, lists = self.run.info, self.run.lists
        rows = [layout.QUEUE, *([layout.BACK_QUEUE] if self.rule.common.backfill >= 0 else [])]
        queues = lists[rows, : info[layout.WAITING]]
        gone = np.isin(queues, out)
        if not gone[0].any():
            return
        self.run.jobs[[layout.PROMISED_FIRST, layout.PROMISED_LAST], queues[0, gone[0], np.newaxis]] = -1
        left = info[layout.WAITING] - int(gone[0].sum())
        for row, queue, out_of_it in zip(rows, queues, gone, strict=True):
            kept = queue[~out_of_it]
            lists[row, : len(kept)] = kept
        info[[layout.WAITING, layout.STANDS, layout.WAKE]] = [left, 0, at]
        info[layout.CORRECTED] = info[layout.CORRECTED] or 2

    def _fail(self, at: int) -> None:
        """Nodes fail: who runs there and does not end in this second is lost, and waits again."""
        out = list[int]()
        while self.failures and self.failures[-1].begin == at:
            out += self.failures.pop().nodes
        jobs, info, lists, cap = self.run.jobs, self.run.info, self.run.lists, nodes_of(self.cap)
        if cap is None:
            return
        running = lists[[layout.END_AT, layout.END_JOB], : info[layout.RUNNING]]
        places = [slice(cap.first[job], cap.first[job + 1]) for job in running[1].tolist()]
        hit = np.array([bool(np.isin(cap.placed[0, units], out).any()) for units in places], bool) & (running[0] > at)
        if not hit.any():
            return
        gone = np.sort(running[1, hit])
        for job in gone.tolist():
            nodes, devices = cap.placed[:, cap.first[job] : cap.first[job + 1]].copy()
            begin = int(jobs[layout.START, job])
            self.lost.append(Lost(job, begin, at, nodes, devices, int(self.learner.first[job])))
            kernel.give_up(self.cap, job, at, begin + int(jobs[layout.ESTIMATE, job]))
            cap.placed[:, cap.first[job] : cap.first[job + 1]] = -1
            self.first_arrive.setdefault(job, int(jobs[layout.ARRIVE, job]))
            if jobs[layout.DEADLINE, job] >= 0:  # counted from when it comes again
                jobs[layout.DEADLINE, job] -= at - jobs[layout.ARRIVE, job]
                jobs[layout.DEADLINE, job] = max(jobs[layout.DEADLINE, job], 0)
        for row in (layout.START, layout.PROMISED_FIRST, layout.PROMISED_LAST, layout.PLACE, layout.AGREED):
            jobs[row, gone] = -1
        # Both heaps are kept sorted, which is a heap too.
        left = running[:, ~hit]
        left = left[:, np.lexsort(left[::-1])]
        lists[[layout.END_AT, layout.END_JOB], : left.shape[1]] = left
        again = np.stack([np.full(len(gone), at), gone])
        held = np.concatenate([self.run.held[:, : info[layout.HELD]], again], axis=1)
        held = held[:, np.lexsort(held[::-1])]
        room = np.zeros((2, max(held.shape[1], self.run.held.shape[1])), np.int64)
        room[:, : held.shape[1]] = held
        self.run = self.run._replace(held=room)
        info[[layout.RUNNING, layout.HELD, layout.CORRECTED]] = [left.shape[1], held.shape[1], 1]

    def _advance(self, until: int) -> bool:
        while True:
            code = kernel.replay(self.cap, self.run, self.rule, self.learner, until)
            if code == kernel.DONE:
                return True
            if code == kernel.REACHED:
                return False
            if code == kernel.NEWS:
                ended, arrived = (int(self.run.info[i]) for i in (layout.ENDED, layout.ARRIVED))
                news = self.run.lists[layout.NEWS_LIST]
                if self.on_news is None:
                    raise ValueError("a rule that stops for news needs on_news")
                self.on_news(self, news[:ended], news[ended : ended + arrived])
            elif code == kernel.KEYS:
                if self.keys is None:
                    raise ValueError("an order with keys of the user's needs keys")
                self.run.keys[layout.KEY, self.waiting] = self.keys(self)
                self.run.info[layout.KEYS_HOLD] = self.keys_hold(self.now)
            elif code == kernel.TREE:
                self.run = self.run._replace(tree=new_tree(self.run.jobs[layout.SIZE]))
            elif code == kernel.LONG_QUEUE:
                self._tell_if_long()
            else:
                self._grow()

    def copy(self) -> Replay:
        """An independent replay in the same state."""
        run = layout.Run(*(array.copy() for array in self.run))  # type: ignore[arg-type]
        own: dict[str, Any] = {"failures": [*self.failures], "lost": [*self.lost], "leaving": [*self.leaving]}
        own["first_arrive"] = dict(self.first_arrive)
        return replace(self, run=run, cap=self.cap.copied(), learner=copied_learner(self.learner), **own)

    def _grow(self) -> None:
        """Double the lists whose need depends on how long the queue gets and how much runs, and the profiles."""
        lists = self.run.lists
        self.run = self.run._replace(lists=np.concatenate([lists, np.zeros_like(lists)], axis=1))
        self.cap = self.cap.larger()
        self.rule = fitted(self.rule, self.cap, self.run.lists.shape[1])

    def _tell_if_long(self) -> None:
        if self.on_long is None:
            self.run.info[layout.LONG] = NEVER
        elif (unlike := self._unlike()) > LONG:
            self.on_long(unlike)
            self.on_long = None

    def _unlike(self) -> int:
        """Unlike jobs that wait, with those that come in the next second: arrays count once."""
        info, jobs = self.run.info, self.run.jobs
        first = int(info[layout.NEXT])
        last = int(np.searchsorted(jobs[layout.SUBMIT], jobs[layout.SUBMIT, first : first + 1], "right").sum())
        new = jobs[[layout.SIZE, layout.ESTIMATE], first:last]
        return int(info[layout.WAITING]) + int((new[:, 1:] != new[:, :-1]).any(axis=0).sum()) + (last > first)


def new_replay(
    workload: Workload,
    cluster: Cluster,
    rule: Any,
    estimate: Learner | Ints,
    *,
    feedback: bool = False,
    room: int = 1024,
    place: str = "first",
) -> Replay:
    """A replay at its beginning. `estimate` is what learns to say run times, or one number per job. Arrays that grow
    start with room for `room` waiting and running jobs. `place`: the rule of placement, where nodes are known."""
    learner = estimate if isinstance(estimate, Learner) else new_learner(workload.limit, first=estimate)
    n, room = len(workload), max(room, 1)
    jobs = np.full((layout.JOB_ROWS, n), -1, np.int64)
    for row, values in zip((layout.SUBMIT, layout.SIZE, layout.RUNTIME), ("submit", "size", "runtime"), strict=True):
        jobs[row] = workload[values]
    jobs[layout.ESTIMATE] = learner.first
    jobs[layout.SEEN], jobs[layout.NUMBER] = 0, np.arange(n)
    jobs[layout.DEADLINE] = workload.get("deadline_s")
    info = np.zeros(layout.INFO, np.int64)
    info[layout.LAST], info[layout.LONG] = n, LONG
    links, held = arrivals(workload, feedback)
    info[layout.HELD] = held.shape[1]
    held = np.concatenate([held, np.zeros((2, links.shape[1] - held.shape[1]), np.int64)], axis=1)
    lists = np.zeros((layout.LIST_ROWS, room), np.int64)
    requests: Requests | None = None
    if cluster.kinds:
        requests = requests_of(workload, cluster)
    # A plan has room for the jobs that are only foreseen, beside all that wait and run; doubling keeps it.
    foresight, takes = rule.common.foresight, cluster.takes(workload)
    cap = new_machine(cluster, np.array(workload.size), requests, takes, place, room, foresight)
    run = layout.Run(info, jobs, np.zeros((2, n)), links, held, lists)
    leaving = departures(workload)
    if leaving:  # of jobs that are alike one may leave
        rule = rule._replace(common=rule.common._replace(groups=False, tree_above=NEVER))
        rule = rule._replace(groups_above=NEVER) if "groups_above" in rule._fields else rule
    return Replay(run, cap, fitted(rule, cap, room), learner, failures=cluster.failures, leaving=leaving)


def read_only(values: _Numbers) -> _Numbers:
    """The same numbers, to be looked at and not changed."""
    view: _Numbers = values.view()
    view.flags.writeable = False
    return view


def arrivals(workload: Workload, feedback: bool) -> tuple[Ints, Ints]:
    """Who does not come at its submit, as rows of Run.links, and the times of those that are known, as Run.held has
    them. Who leaves before it may start never comes."""
    held_s, at = workload.held_s, workload.arrives
    own = at != workload.submit
    if not feedback and not own.any():
        return np.empty((4, 0), np.int64), np.empty((2, 0), np.int64)
    links = feedback_links(workload) if feedback else np.full((4, len(workload)), -1, np.int64)
    links[layout.THINK] += held_s
    own &= links[layout.AFTER] < 0
    links[layout.AFTER, own] = np.flatnonzero(own)
    jobs = np.flatnonzero(own & (at >= 0))
    jobs = jobs[np.argsort(at[jobs], kind="stable")]  # sorted, so already a heap
    return links, np.stack([at[jobs], jobs])


def departures(workload: Workload) -> list[tuple[int, int]]:
    """When jobs leave the queue, and which, the first last."""
    leaves = workload.leaves
    jobs = np.flatnonzero((leaves >= 0) & (workload.arrives >= 0))
    return sorted(zip(leaves[jobs].tolist(), jobs.tolist(), strict=True), reverse=True)


def feedback_links(workload: Workload) -> Ints:
    """SWF fields 17 and 18 as positions: after, think time, first child, next sibling; -1 where there is none.

    A link counts only if the earlier job is in the workload and stands before this one; else the job arrives at
    its own submit.
    """
    n = len(workload)
    after = np.full(n, -1, np.int64)
    think = np.maximum(workload.get("think_s"), 0)
    child = np.full(n, -1, np.int64)
    sibling = np.full(n, -1, np.int64)
    where = {job: i for i, job in enumerate(workload["id"].tolist())}
    for i, job in enumerate(workload.get("after").tolist()):
        before = where.get(job, -1)
        if job > 0 and 0 <= before < i:
            after[i] = before
    for i in range(n - 1, -1, -1):
        if after[i] >= 0:
            sibling[i] = child[after[i]]
            child[after[i]] = i
    return np.stack([after, think, child, sibling])
