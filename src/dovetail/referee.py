"""Referee: an independent, obvious checker of any schedule or plan. It shares no code with the kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.errors import DovetailError
from dovetail.model.plan import Plan
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.model.workload import Ints, Workload

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Violation:
    """One broken rule: its name, the job (its position in the workload or state; -1: none), when, and how."""

    rule: str
    job: int
    at: int
    detail: str

    def __str__(self) -> str:
        who = f"job {self.job}: " if self.job >= 0 else ""
        return f"{self.rule}: {who}{self.detail}"


class RefereeError(DovetailError):
    """A schedule breaks the rules. `violations` holds all of them, the message the first few."""

    def __init__(self, violations: list[Violation], shown: int = 5) -> None:
        self.violations = violations
        lines = [f"  {v}" for v in violations[:shown]]
        if len(violations) > shown:
            lines.append(f"  and {len(violations) - shown} more")
        super().__init__(f"the schedule breaks the rules in {len(violations)} places:\n" + "\n".join(lines))


def assert_valid(schedule: Schedule, *, promises: bool = False, expect_all_started: bool = True) -> None:
    """Raise RefereeError unless the schedule keeps all rules of `check_schedule`."""
    found = check_schedule(schedule, promises=promises, expect_all_started=expect_all_started)
    if found:
        raise RefereeError(found)


def check_schedule(schedule: Schedule, *, promises: bool = False, expect_all_started: bool = True) -> list[Violation]:
    """All rules that the schedule breaks, in plain words; empty for a valid one.

    Ask for `promises` where they must hold: estimates are upper bounds, and the policy protects whom it
    promises (conservative and deadline-based backfilling; EASY in FCFS order). Accepted deadlines are promises.
    """
    n = len(schedule.workload)
    for column in ("start", "arrive", "promised_first", "promised_last"):
        have = len(getattr(schedule, column))
        if have != n:
            return [Violation("one start per job", -1, -1, f"{have} values of {column!r} for {n} jobs")]
    found = [*_starts(schedule, expect_all_started), *_arrivals(schedule), *_capacity(schedule)]
    if promises:
        found.extend(_promises(schedule))
        found.extend(_deadlines(schedule))
    return found


def _broken(rule: str, broken: Flags, at: Ints, words: str, **columns: Ints) -> Iterator[Violation]:
    """One violation per flagged job; `words` is filled from the job's values in `columns`."""
    for j in np.flatnonzero(broken).tolist():
        values = {name: int(column[j]) for name, column in columns.items()}
        yield Violation(rule, j, int(at[j]), words.format(**values))


def _starts(schedule: Schedule, expect_all_started: bool) -> Iterator[Violation]:
    """Who must start, who must not, and for how long."""
    jobs, start, machine = schedule.workload, schedule.start, schedule.cluster.processors
    started, fits = start >= 0, jobs.size <= machine
    yield from _broken("start", start < -1, start, "start {start} is no time and not -1 (never)", start=start)
    if expect_all_started:
        words = "never started, though its {size} processors fit"
        yield from _broken("every job starts", (start == -1) & fits, schedule.arrive, words, size=jobs.size)
    words = f"started at {{start}} with {{size}} processors on a cluster of {machine}"
    yield from _broken("jobs fit the cluster", started & ~fits, start, words, start=start, size=jobs.size)
    words = "started with {size} processors"
    yield from _broken("size", started & (jobs.size < 0), start, words, size=jobs.size)
    words = "ran for {runtime} s"
    yield from _broken("run time", started & (jobs.runtime < 0), start, words, runtime=jobs.runtime)


def _arrivals(schedule: Schedule) -> Iterator[Violation]:
    """No start before arrival; arrival is the submit, or end of the job it followed plus the pause."""
    start, arrive, submit = schedule.start, schedule.arrive, schedule.workload.submit
    started = start >= 0
    words = "started at {start}, before its arrival at {arrive}"
    early = started & (start < arrive)
    yield from _broken("arrival", early, start, words, start=start, arrive=arrive)
    words = "arrived at {arrive}, neither at its submit ({submit}) nor held back by the job that it followed"
    known = started | (arrive >= 0)
    followed = _feedback_arrival(schedule)
    wrong = known & (arrive != submit) & ((followed < 0) | (arrive != followed))
    yield from _broken("submit", wrong, arrive, words, arrive=arrive, submit=submit)


def _feedback_arrival(schedule: Schedule) -> Ints:
    """End of the job that each one followed, plus the pause after it; -1 where it followed none."""
    jobs: Workload = schedule.workload
    expected = np.full(len(jobs), -1, np.int64)
    if "after" not in jobs:
        return expected
    position = {job_id: j for j, job_id in enumerate(jobs["id"].tolist())}
    start, end = schedule.start.tolist(), schedule.end.tolist()
    think = np.maximum(jobs.get("think_s"), 0)
    for j, job_id in enumerate(jobs["after"].tolist()):
        before = position.get(job_id, -1)
        if before >= 0 and start[before] >= 0:
            expected[j] = end[before] + think[j]
    return expected


def _capacity(schedule: Schedule) -> Iterator[Violation]:
    """Never more processors in use than there are."""
    jobs, machine = schedule.workload, schedule.cluster.processors
    ran = np.flatnonzero((schedule.start >= 0) & (jobs.runtime > 0))
    begin, end, size = schedule.start[ran], schedule.end[ran], jobs.size[ran]
    yield from _overfull(ran, begin, end, size, machine, "started")


def _overfull(jobs: Ints, begin: Ints, end: Ints, size: Ints, capacity: int, verb: str) -> Iterator[Violation]:
    """One violation for each begin that lifts the use above the capacity. Ends free before begins take."""
    count = len(jobs)
    time = np.concatenate([end, begin])
    change = np.concatenate([-size, size])
    # A stable sort keeps the ends, which stand first, before the begins of the same second.
    order = np.argsort(time, kind="stable")
    use = np.cumsum(change[order])
    for i in np.flatnonzero((use > capacity) & (order >= count)).tolist():
        at, job = int(time[order[i]]), int(jobs[order[i] - count])
        detail = f"{verb} at {at}, which brings {use[i]} processors into use where there are {capacity}"
        yield Violation("capacity", job, at, detail)


def _promises(schedule: Schedule) -> Iterator[Violation]:
    """No start later than first promised, no promise before arrival, and the last promise is the start."""
    start, first, last = schedule.start, schedule.promised_first, schedule.promised_last
    promised = (first >= 0) & (start >= 0)
    words = "started at {start}, later than its first promise {first}"
    yield from _broken("promise kept", promised & (start > first), start, words, start=start, first=first)
    words = "started at {start}, but its last promise was {last}"
    yield from _broken("last promise", promised & (start != last), start, words, start=start, last=last)
    words = "was promised {first}, before its arrival at {arrive}"
    early = (first >= 0) & (first < schedule.arrive)
    yield from _broken("promise after arrival", early, first, words, first=first, arrive=schedule.arrive)


def _deadlines(schedule: Schedule) -> Iterator[Violation]:
    """A job whose deadline was accepted has ended by it; only one that has a deadline can be accepted or refused."""
    accepted, due = schedule.accepted, schedule.deadline_at
    if not len(accepted):
        return
    words = "was to end by {due}, which was accepted, and ended at {end}"
    missed = (accepted == 1) & (schedule.start >= 0) & (due >= 0) & (schedule.end > due)
    yield from _broken("deadline kept", missed, due, words, due=due, end=schedule.end)
    words = "its deadline was answered with {accepted}, but it has none"
    unasked = (accepted >= 0) & (due < 0)
    yield from _broken("deadline asked for", unasked, schedule.arrive, words, accepted=accepted)
    words = "its deadline was neither accepted nor refused"
    unanswered = (accepted < 0) & (due >= 0) & (schedule.start >= 0)
    yield from _broken("deadline answered", unanswered, due, words)


def check_plan(state: State, plan: Plan, *, deadlines: bool = False) -> list[Violation]:
    """All rules that a plan breaks at its instant, by estimates: empty for a plan that can be carried out.

    Starts are waiting jobs, each once; promised starts lie at or after now; running jobs until their expected
    ends, starts and promises together never exceed the capacity (what is free plus what runs). Jobs with an accepted
    deadline count with their expected starts. Ask for `deadlines` where estimates are upper bounds: those that
    were accepted stay so, and are kept.
    """
    found: list[Violation] = []
    waiting = set(state.waiting.tolist())
    at: dict[int, int] = {}
    for job in plan.starts:
        if job not in waiting:
            found.append(Violation("starts wait", job, state.now, "is to start but does not wait"))
        elif job in at:
            found.append(Violation("one start per job", job, state.now, "is to start twice"))
        else:
            at[job] = state.now
    for job, promise in plan.promised.items():
        if job not in waiting:
            found.append(Violation("promises wait", job, promise, "has a promise but does not wait"))
        elif promise < state.now:
            words = f"is promised {promise}, which is before now ({state.now})"
            found.append(Violation("promise not past", job, promise, words))
        elif at.setdefault(job, plan.expected.get(job, promise)) > promise:
            words = f"is promised {promise} and planned to start at {at[job]}"
            found.append(Violation("promise planned", job, promise, words))
    for job, due in plan.deadlines.items():
        if job not in waiting:
            found.append(Violation("deadlines wait", job, due, "is given a deadline but does not wait"))
        elif due >= 0 and job in plan.expected:
            at.setdefault(job, plan.expected[job])
    if deadlines:
        found.extend(_plan_deadlines(state, plan, at))
    return [*found, *_plan_capacity(state, at)]


def _plan_deadlines(state: State, plan: Plan, at: dict[int, int]) -> Iterator[Violation]:
    """Whom the standing plan gave a deadline still has it, and every accepted one is kept by the start in `at`."""
    for job in state.waiting.tolist():
        stood, due = state.standing.deadlines.get(job, -1), plan.deadlines.get(job, -1)
        if stood >= 0 and due != stood:
            yield Violation("deadline stays", job, stood, f"was to end by {stood}, and now by {due}")
        if due >= 0 and job not in at:
            yield Violation("deadline planned", job, due, f"is to end by {due}, but the plan has no start for it")
        elif due >= 0 and at[job] + state.estimate[job] > due:
            end = at[job] + state.estimate[job]
            yield Violation("deadline kept", job, due, f"is to end by {due}, but would end at {end}")


def _plan_capacity(state: State, at: dict[int, int]) -> Iterator[Violation]:
    """The running jobs and everything in `at` (job to start), by estimates, within the capacity."""
    running = state.running.astype(np.int64)
    planned = np.fromiter(at, np.int64, len(at))
    jobs = np.concatenate([running, planned])
    begin = np.concatenate([np.full(len(running), state.now, np.int64), np.fromiter(at.values(), np.int64, len(at))])
    running_end = [state.expected_end(j) for j in running.tolist()]
    end = np.concatenate([np.array(running_end, np.int64), begin[len(running) :] + state.estimate[planned]])
    capacity = state.free + int(state.size[running].sum())
    yield from _overfull(jobs, begin, end, state.size[jobs], capacity, "is planned")
