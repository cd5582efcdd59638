"""The queue of a replay: entries in order, or a tree where it is long.

An entry are jobs that are alike in all that a rule reads and came in one moment, one behind the other: an array. It is
named by the first of them that waits, and they start in turn, so a pass that has looked at an entry need not look at
each of its jobs.

The tree (Run.tree) is for rules that start whatever fits beside one reservation, in orders that do not move. Its
leaves are jobs by size; a node knows the least estimate of what waits below it, and who comes first. So the first job
in the order that is no larger and no longer than given is found without looking at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.arrays import NEVER, Floats, Ints
from dovetail.kernels.compile import inner
from dovetail.kernels.machine.capacity import alike
from dovetail.kernels.passes.order import GIVEN, insert, key_of, sort_by_key
from dovetail.kernels.passes.rule import by_arrival
from dovetail.kernels.state import (
    ARRIVE,
    ARRIVED,
    BACK_KEY,
    BACK_QUEUE,
    BEHIND,
    DEADLINE,
    ENDED,
    ESTIMATE,
    IN_TREE,
    JOINED,
    KEY,
    NEWS_LIST,
    NUMBER,
    QUEUE,
    SIZE,
    SPARE,
    SPARE_2,
    START,
    UNTIL,
    WAITING,
    Run,
)

_0: int = np.int64(0)  # type: ignore[assignment]  # see timeline.py

INSERT = 32
"""Up to this many entries are put into the queue one by one; more are sorted in."""

# Columns of Run.tree. By job: SLOT: its leaf. By leaf: SIZES: the size of its job. By node, the root is 1 and the
# leaves are the second half: LEAST: the least estimate of what waits below; NEVER: nothing does. AHEAD, FILLS: the job
# there that comes first in the order of the queue, and in that of backfilling; -1: none.
SLOT, SIZES, LEAST, AHEAD, FILLS = range(5)


def new_tree(size: Ints) -> Ints:
    """A tree in which nothing waits, for jobs of these sizes."""
    n = len(size)
    leaves = 1 << max(n - 1, 1).bit_length()
    tree = np.full((2 * leaves, 5), -1, np.int64)
    by_size = np.argsort(size, kind="stable")
    tree[by_size, SLOT] = np.arange(n)
    tree[:, SIZES] = NEVER
    tree[:n, SIZES] = size[by_size]
    tree[:, LEAST] = NEVER
    return tree


def waiting_jobs(run: Run) -> Ints:
    """All jobs that wait, in the order of the queue."""
    if run.info[IN_TREE]:
        jobs = np.flatnonzero((run.jobs[ARRIVE] >= 0) & (run.jobs[START] < 0))
        return jobs[np.lexsort((jobs, run.jobs[ARRIVE, jobs], run.keys[KEY, jobs]))]
    entries = run.lists[QUEUE, : run.info[WAITING]]
    if run.info[BEHIND] == 0:
        return entries
    many = run.jobs[UNTIL, entries] - entries
    return np.repeat(entries - np.cumsum(many) + many, many) + np.arange(many.sum())


@inner
def enqueue(rule: Any, cap: Any, run: Run, now: int) -> None:
    """Put the jobs that arrived into the queue; their estimates are known by now."""
    info, news, until = run.info, run.lists[NEWS_LIST], run.jobs[UNTIL]
    fixed = not by_arrival(rule)
    new = run.lists[SPARE_2]
    m = 0
    for i in range(info[ENDED], info[ENDED] + info[ARRIVED]):
        job = news[i]
        if fixed:
            _set_keys(rule, run, job, now)
        until[job] = job + 1
        if m > 0 and rule.common.groups and _goes_with(rule, cap, run, news[i - 1], job):
            until[new[m - 1]] = job + 1
        else:
            new[m] = job
            m += 1
    info[JOINED] = m
    if info[IN_TREE] == 0 and info[WAITING] + m > rule.common.tree_above and run.tree.shape[0] > 0:
        _to_tree(rule, run)
    if info[IN_TREE] == 1:
        for i in range(info[ENDED], info[ENDED] + info[ARRIVED]):
            put(rule, run, news[i])
        info[WAITING] += info[ARRIVED]
        return
    n = info[WAITING]
    info[WAITING] = n + m
    info[BEHIND] += info[ARRIVED] - m
    if not fixed:
        for i in range(m):
            run.lists[QUEUE, n + i] = new[i]
        return
    _insert_all(run.lists[QUEUE], n, new, m, run.keys[KEY], run.lists[SPARE])
    if rule.common.backfill >= 0:
        _insert_all(run.lists[BACK_QUEUE], n, new, m, run.keys[BACK_KEY], run.lists[SPARE])


@inner
def one_by_one(run: Run) -> None:
    """Make an entry of each job that this moment has brought; they stand last."""
    info, queue = run.info, run.lists[QUEUE]
    first, last = info[WAITING] - info[JOINED], info[WAITING] - info[JOINED] + info[ARRIVED]
    info[BEHIND] -= last - info[WAITING]
    info[WAITING], info[JOINED] = last, info[ARRIVED]
    for i in range(first, last):
        job = run.lists[NEWS_LIST, info[ENDED] + i - first]
        run.jobs[UNTIL, job] = job + 1
        queue[i] = job


@inner
def group_all(rule: Any, cap: Any, run: Run) -> None:
    """Make entries of all jobs that came in one moment, one behind the other, and are alike. Each is one by now, and
    the queue is in order of arrival."""
    info, queue, until = run.info, run.lists[QUEUE], run.jobs[UNTIL]
    m = 0
    for i in range(info[WAITING]):
        job = queue[i]
        before = queue[m - 1] if m > 0 else job
        if m > 0 and _goes_with(rule, cap, run, until[before] - 1, job):
            until[before] = job + 1
        else:
            queue[m] = job
            m += 1
    info[BEHIND] += info[WAITING] - m
    info[WAITING] = m


@inner
def split_all(run: Run) -> None:
    """Make an entry of each job that waits."""
    info, queue = run.info, run.lists[QUEUE]
    n = info[WAITING] + info[BEHIND]
    at = n
    for i in range(info[WAITING] - 1, -1, -1):
        first = queue[i]
        for job in range(run.jobs[UNTIL, first] - 1, first - 1, -1):
            at -= 1
            queue[at] = job
            run.jobs[UNTIL, job] = job + 1
    info[WAITING], info[BEHIND] = n, 0


@inner
def _set_keys(rule: Any, run: Run, job: int, now: int) -> None:
    came, size, estimate = run.jobs[ARRIVE, job], run.jobs[SIZE, job], run.jobs[ESTIMATE, job]
    run.keys[KEY, job] = key_of(rule.common.order, came, size, estimate, now, run.keys[KEY, job])
    if rule.common.backfill >= 0:
        run.keys[BACK_KEY, job] = key_of(rule.common.backfill, came, size, estimate, now, run.keys[BACK_KEY, job])


@inner
def _goes_with(rule: Any, cap: Any, run: Run, one: int, job: int) -> bool:
    """Whether a job is alike the one that came just before it."""
    jobs = run.jobs
    if one + 1 != job or jobs[NUMBER, one] + 1 != jobs[NUMBER, job] or jobs[ARRIVE, one] != jobs[ARRIVE, job]:
        return False
    if jobs[SIZE, one] != jobs[SIZE, job] or jobs[ESTIMATE, one] != jobs[ESTIMATE, job]:
        return False
    if jobs[DEADLINE, one] >= 0 or jobs[DEADLINE, job] >= 0:  # what is agreed on may differ
        return False
    if rule.common.order == GIVEN and run.keys[KEY, one] != run.keys[KEY, job]:
        return False
    return alike(cap, one, job)


@inner
def _insert_all(queue: Ints, n: int, new: Ints, m: int, key: Floats, spare: Ints) -> None:
    """Put m entries into a queue of n in order, each behind all with a key not larger."""
    if m <= INSERT:
        for i in range(m):
            insert(queue, n + i, new[i], key)
        return
    rises = n == 0 or key[queue[n - 1]] <= key[new[0]]
    for i in range(m):
        queue[n + i] = new[i]
        rises = rises and (i == 0 or key[new[i - 1]] <= key[new[i]])
    if not rises:
        sort_by_key(queue, _0, n + m, key, spare)


@inner
def dequeue(rule: Any, run: Run, n_started: int) -> None:
    """Take the jobs that have started out of the queue."""
    info = run.info
    if info[IN_TREE] == 1:  # the pass has taken them out of the tree, one by one
        info[WAITING] -= n_started
        if 4 * info[WAITING] < rule.common.tree_above:
            _to_list(rule, run)
        return
    waiting = info[WAITING] + info[BEHIND] - n_started
    n = info[WAITING]
    info[WAITING] = _compact(run.lists[QUEUE], n, run.jobs[START], run.jobs[UNTIL])
    if rule.common.backfill >= 0 and not by_arrival(rule):
        _compact(run.lists[BACK_QUEUE], n, run.jobs[START], run.jobs[UNTIL])
    info[BEHIND] = waiting - info[WAITING]


@inner
def _compact(queue: Ints, n: int, start: Ints, until: Ints) -> int:
    """Take the started jobs out of a queue; returns its new length."""
    m = 0
    while m < n and start[queue[m]] < 0:
        m += 1
    for i in range(m, n):
        job = queue[i]
        if start[job] >= 0:
            last = until[job]
            while job < last and start[job] >= 0:
                job += 1
            if job == last:
                continue
            until[job] = last
        queue[m] = job
        m += 1
    return m


@inner
def before(run: Run, row: int, one: int, other: int) -> bool:
    """Whether one waiting job comes before another in the order of these keys."""
    if run.keys[row, one] != run.keys[row, other]:
        return run.keys[row, one] < run.keys[row, other]
    if run.jobs[ARRIVE, one] != run.jobs[ARRIVE, other]:
        return run.jobs[ARRIVE, one] < run.jobs[ARRIVE, other]
    return one < other


@inner
def _first_of(run: Run, row: int, one: int, other: int) -> int:
    """Who comes first; -1 is nobody."""
    if one < 0 or (other >= 0 and before(run, row, other, one)):
        return other
    return one


@inner
def _climb(rule: Any, run: Run, leaf: int) -> None:
    """Bring the nodes above a leaf up to date."""
    tree = run.tree
    node = leaf >> 1
    while node > 0:
        left, right = 2 * node, 2 * node + 1
        least = min(tree[left, LEAST], tree[right, LEAST])
        ahead = _first_of(run, KEY, tree[left, AHEAD], tree[right, AHEAD])
        fills = ahead
        if rule.common.backfill >= 0:
            fills = _first_of(run, BACK_KEY, tree[left, FILLS], tree[right, FILLS])
        if least == tree[node, LEAST] and ahead == tree[node, AHEAD] and fills == tree[node, FILLS]:
            return
        tree[node, LEAST], tree[node, AHEAD], tree[node, FILLS] = least, ahead, fills
        node >>= 1


@inner
def put(rule: Any, run: Run, job: int) -> None:
    """A job waits in the tree."""
    tree = run.tree
    leaf = tree.shape[0] // 2 + tree[job, SLOT]
    tree[leaf, LEAST], tree[leaf, AHEAD], tree[leaf, FILLS] = run.jobs[ESTIMATE, job], job, job
    _climb(rule, run, leaf)


@inner
def take(rule: Any, run: Run, job: int) -> None:
    """A job leaves the tree."""
    tree = run.tree
    leaf = tree.shape[0] // 2 + tree[job, SLOT]
    tree[leaf, LEAST], tree[leaf, AHEAD], tree[leaf, FILLS] = NEVER, -1, -1
    _climb(rule, run, leaf)


@inner
def _to_tree(rule: Any, run: Run) -> None:
    info = run.info
    for i in range(info[WAITING]):
        job = run.lists[QUEUE, i]
        for member in range(job, run.jobs[UNTIL, job]):
            put(rule, run, member)
    info[WAITING] += info[BEHIND]
    info[BEHIND], info[IN_TREE] = 0, 1


@inner
def _to_list(rule: Any, run: Run) -> None:
    info, queue, back = run.info, run.lists[QUEUE], run.lists[BACK_QUEUE]
    info[IN_TREE] = 0
    for i in range(info[WAITING]):
        job = run.tree[1, AHEAD]
        take(rule, run, job)
        run.jobs[UNTIL, job] = job + 1
        queue[i] = job
        if rule.common.backfill >= 0:
            j = i
            while j > 0 and before(run, BACK_KEY, job, back[j - 1]):
                back[j] = back[j - 1]
                j -= 1
            back[j] = job


@inner
def _no_larger(run: Run, size: int) -> int:
    """How many leaves have jobs of no more than a size."""
    low, high = 0, run.tree.shape[0] // 2
    while low < high:
        mid = (low + high) >> 1
        if run.tree[mid, SIZES] <= size:
            low = mid + 1
        else:
            high = mid
    return low


@inner
def first_below(run: Run, row: int, size: int, estimate: int, best: int) -> int:
    """Of the jobs in the tree that are no larger and no longer than given, the first in the backfill order (whose keys
    are in `row`), or `best` if that comes before; -1: none.

    A node is looked into if somebody below it is short enough and the first below it would be the first of all.
    """
    tree, stack = run.tree, run.lists[SPARE]
    low = tree.shape[0] // 2
    high = low + _no_larger(run, size)
    n = 0
    while low < high:  # [low, high) is what is left of the leaves in question, at one level of the tree
        if low & 1:
            stack[n] = low
            n += 1
            low += 1
        if high & 1:
            high -= 1
            stack[n] = high
            n += 1
        low, high = low >> 1, high >> 1
    leaves = tree.shape[0] // 2
    while n > 0:
        n -= 1
        node = stack[n]
        first = tree[node, FILLS]
        if tree[node, LEAST] > estimate or first < 0 or (best >= 0 and not before(run, row, first, best)):
            continue
        if node >= leaves:
            best = first
            continue
        left, right = 2 * node, 2 * node + 1
        if _first_of(run, row, tree[left, FILLS], tree[right, FILLS]) == tree[left, FILLS]:
            left, right = right, left
        stack[n], stack[n + 1] = left, right  # the one with the first of all is looked into first
        n += 2
    return best
