"""Run: the whole state of a replay, in arrays that the caller owns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dovetail.arrays import NEVER, Floats, Ints
from dovetail.kernels.compile import inner

# Positions in Run.info.
NOW, NEXT, WAITING, RUNNING, HELD, PASSES, PHASE, ENDED, ARRIVED, LAST, STANDS, RECENT, DUE, CORRECTED, WAKE = range(15)
BEHIND, JOINED, IN_TREE, GROUPED, LONG, KEYS_HOLD = range(15, 21)
"""WAITING: entries of QUEUE (jobs, while it is in Run.tree). NEXT: the next job to arrive by its submit. HELD: jobs
whose arrival, not at their submits, is known. PHASE: where in a moment the replay stopped. ENDED, ARRIVED: how many of
`news` are ends, then arrivals. LAST: jobs from this one on never arrive. STANDS: 1 while the plan of the last pass
still holds (see ListRule.reuse). RECENT: how many jobs that came last are listed in BACK_QUEUE, the last first; 0: they
are those before NEXT. DUE: no running job is expected to end before. CORRECTED: 1 if a running job has been given
another estimate since the last pass, or started later than that pass had planned; 2 if not, and a job has left the
queue without having run. WAKE: a pass is wanted then, even if
nothing happens; NEVER, or not after NOW: none is. BEHIND: jobs that wait behind the first of their entry. JOINED:
entries that this moment has brought. IN_TREE: 1 while the queue is in Run.tree. GROUPED: 1 while a planner moves
entries. LONG: more entries are a long queue; below 0: the next moment has been told of. KEYS_HOLD: keys that are asked
for on the way hold until then; 0: a job has come."""
INFO = 21

# Phases of a moment.
BETWEEN, TOLD, KEYED = range(3)

# Rows of Run.jobs, one value per job, in order of submit.
SUBMIT, SIZE, RUNTIME, ESTIMATE, START, ARRIVE, PROMISED_FIRST, PROMISED_LAST, SEEN, PLACE, DEADLINE, AGREED = range(12)
UNTIL, NUMBER = range(12, 14)
"""PLACE: where a waiting job stands in a plan that is kept; -1: nowhere. DEADLINE: seconds from its arrival by which a
job is to have ended; -1: none. AGREED: what was agreed on that; -1: nothing. UNTIL: of the first job of an entry of the
queue: one behind its last. An entry are jobs that are alike, with numbers in a row; they start in this order. NUMBER:
which job of the workload it is."""
JOB_ROWS = 14

# Values of AGREED. Accepted: TENTATIVE (may still be moved), FIRM.
REFUSED, TENTATIVE, FIRM = range(3)

# Rows of Run.keys.
KEY, BACK_KEY = range(2)

# Rows of Run.links: who does not come at its submit. The job whose end brings this one (itself, if its time is known),
# the pause after it, the first job that waits for this one's end, the next one that waits for the same; -1: none.
AFTER, THINK, CHILD, SIBLING = range(4)

# Rows of Run.lists.
QUEUE, BACK_QUEUE, ORDER, BACK_ORDER, STARTED, NEWS_LIST, END_AT, END_JOB, SPARE, SPARE_2, SPARE_3 = range(11)
"""QUEUE: the waiting jobs by entries (see UNTIL), in order of their keys, or of arrival where keys move. BACK_QUEUE:
the same in the backfill order. ORDER, BACK_ORDER: the same, sorted for one pass. END_AT, END_JOB: heap of the running
jobs by their ends."""
LIST_ROWS = 11


class Run(NamedTuple):
    """The state of a replay, in few arrays because each costs time at every call."""

    info: Ints
    jobs: Ints
    """JOB_ROWS rows, one column per job."""
    keys: Floats
    """Keys of the order and of the backfill order: the caller's for a GIVEN order, else working space."""
    links: Ints
    """Four rows, one column per job; no columns where all come at their submits."""
    held: Ints
    """Heap of the other arrivals whose times are known: instants, jobs."""
    lists: Ints
    """LIST_ROWS rows; as many columns as jobs may wait and run at once."""
    tree: Ints = np.empty((0, 5), np.int64)
    """A long queue as a tree (queue.py), a row for each node; none as long as none is needed."""


@inner
def wake_at_next(run: Run, now: int, planned: Ints, bounded: bool) -> None:
    """Ask for a pass at the next planned start of a waiting job. While a running job has outlived its estimate nobody
    is asked for: it is taken to end in a second, again and again, and what is planned behind it is not to be.
    `bounded`: no job can outlive its estimate."""
    run.info[WAKE] = NEVER
    for i in range(0 if bounded else run.info[RUNNING]):
        job = run.lists[END_JOB, i]
        if run.jobs[START, job] + run.jobs[ESTIMATE, job] <= now:
            return
    for i in range(run.info[WAITING]):
        job = run.lists[QUEUE, i]
        last = run.jobs[UNTIL, job]
        while job < last and planned[job] <= now:
            job += 1
        if job < last:  # those behind it are planned no earlier
            run.info[WAKE] = min(run.info[WAKE], planned[job])
