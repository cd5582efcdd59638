"""The limits that users would ask for: modal, round, and never below the run time.

The model of Tsafrir, Etsion and Feitelson, "Modeling User Runtime Estimates" (JSSPP 2005), as their own
program (m_tsafrir05, est_model) carries it out: twenty popular values hold 89 % of the jobs, the longest of
them is the most popular of all, a thin tail of other values holds the rest. Jobs then draw from that
histogram, without replacement, among the values not below their run time. docs/synthetic.md lists what is
simplified.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from dovetail.arrays import Floats, Ints
from dovetail.errors import SettingError

MINUTE, HOUR = 60, 3600
LONGEST_S: Final = 48 * HOUR
"""The default longest limit: two days, which no run time of the Lublin-Feitelson model exceeds."""

HEAD: Final = 20
HEAD_SHARE: Final = 0.89

_JOINT: Final = tuple(m * MINUTE for m in (5, 10, 15, 20, 30)) + tuple(
    h * HOUR for h in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18)
)
"""Values among the twenty most popular in all four logs that the paper studied."""

_ROUND: Final = tuple(h * HOUR for h in (200, 100, 50, 10, 5, 2, 1)) + tuple(m * MINUTE for m in (20, 10, 5))
"""Multiples of these complete the twenty, coarse ones first, from the longest limit downwards."""

_DISTINCT: Final = ((0, 20, 200, 1_000, 10_000, 70_000, 250_000), (0, 10, 20, 35, 90, 340, 565))
"""Numbers of jobs, and how many distinct limits they use; linear in between, constant beyond."""

_RANKS: Final = (
    (3, 1, 1, 1), (1, 3, 4, 6), (4, 4, 10, 5), (17, 2, 14, 3), (13, 12, 20, 7),
    (7, 9, 2, 2), (8, 8, 3, 18), (18, 18, 7, 19), (2, 6, 12, 4), (6, 7, 6, 11),
    (16, 11, 19, 20), (10, 20, 5, 9), (5, 16, 18, 10), (15, 5, 16, 14), (14, 14, 9, 13),
    (19, 13, 17, 16), (11, 10, 15, 15), (12, 15, 13, 17), (9, 17, 8, 8), (20, 19, 11, 12),
)  # fmt: skip
"""Popularity of the popular values, in order of time (the longest limit first, then ascending), in the logs
SDSC-SP2, CTC-SP2, KTH-SP2 and SDSC-BLUE: 1 is the most popular."""


def user_limits(runtime: Ints, *, seed: int | np.random.Generator, longest: int = LONGEST_S) -> Ints:
    """A limit for each job, at least its run time and at most `longest`.

    A run time above `longest` gets `longest`: such a job would have been stopped there, and a replay cuts it.
    """
    rng = seed if isinstance(seed, np.random.Generator) else np.random.Generator(np.random.PCG64(seed))
    values, counts = histogram(len(runtime), longest, rng)
    # The shortest value that will do: all jobs with the same one draw from the same pool.
    shortest = np.searchsorted(values, np.minimum(runtime, longest)).astype(np.int16)
    need = np.bincount(shortest, minlength=len(values))
    return _draw(values, _cover(counts, need), need, shortest, rng)


def histogram(jobs: int, longest: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """The distinct limits in ascending order, and how many of the jobs ask for each."""
    distinct = max(HEAD, int(np.interp(jobs, *_DISTINCT) + 0.5))
    head = _head_values(longest)
    tail = _tail_values(distinct, longest, set(head))
    rank = np.arange(1, HEAD + len(tail) + 1, dtype=np.float64)
    share = np.empty_like(rank)
    share[:HEAD] = (14.0491 * np.exp(-0.177531 * rank[:HEAD]) + 0.462513) / 100
    share[0] = HEAD_SHARE - share[1:HEAD].sum()
    share[HEAD:] = 795.6 * rank[HEAD:] ** -2.267
    share[HEAD:] *= (1 - HEAD_SHARE) / max(float(share[HEAD:].sum()), 1e-300)
    popularity = np.concatenate([_head_ranks(rng), HEAD + rng.permutation(len(tail)) + 1])
    values = np.array([*head, *tail], np.int64)
    order = np.argsort(values)
    return values[order], _apportion(share[popularity - 1][order], jobs)


def _head_values(longest: int) -> list[int]:
    """The popular values: the longest limit, then the others in ascending order."""
    head = [longest, *(v for v in _JOINT if v < longest)]
    for step in _ROUND:
        for value in range(longest // step * step, 0, -step):
            if len(head) < HEAD and value not in head:
                head.append(value)
    if len(head) < HEAD:
        raise SettingError(f"a longest limit of {longest} s leaves {len(head)} round values; take 2 h or more")
    return [longest, *sorted(head[1:])]


def _tail_values(distinct: int, longest: int, taken: set[int]) -> list[int]:
    """The other values: whole minutes, dense where short; moved by some seconds where they would collide."""
    n = distinct - HEAD
    a = 1.0 + 12.1039 * distinct**-0.6026
    tail: list[int] = []
    for i in range(1, n + 1):
        x = i / n
        minute = round((a - 1) * x / (a - x) * longest / MINUTE) * MINUTE
        for shift in (0, 30, -30, 20, -20, 10, -10):
            value = minute + shift
            if 0 < value < longest and value not in taken:
                taken.add(value)
                tail.append(value)
                break
    return tail


def _head_ranks(rng: np.random.Generator) -> Ints:
    """Which popularity each popular value gets, drawn so that it resembles the four logs.

    In order of time, a value takes a rank that one of the logs had at this place or earlier: the better of
    two draws, or a rank that no log has later than here, which is due now.
    """
    due = {rank: place for place, row in enumerate(_RANKS) for rank in row}
    ranks = [1]
    pool = [r for r in _RANKS[0] if r != 1]
    for place in range(1, HEAD):
        pool += [r for r in _RANKS[place] if r not in ranks]
        overdue = [r for r in range(1, HEAD + 1) if due[r] <= place and r not in ranks]
        rank = overdue[0] if overdue else min(pool[i] for i in rng.integers(len(pool), size=2))
        ranks.append(rank)
        pool = [r for r in pool if r != rank]
    return np.array(ranks, np.int64)


def _apportion(share: Floats, jobs: int) -> Ints:
    """Whole numbers that sum to `jobs`, as near to the shares as can be (largest remainder)."""
    exact = share * (jobs / share.sum())
    counts: Ints = np.floor(exact).astype(np.int64)
    most = np.argsort(counts - exact, kind="stable")[: jobs - int(counts.sum())]
    counts[most] += 1
    return counts


def _cover(counts: Ints, need: Ints) -> Ints:
    """The histogram with just enough jobs moved to the longest limit that every run time finds a limit.

    That is possible if and only if, for each value, no more limits than run times lie at or below it. All
    values but the longest shrink by the same factor, the largest one with which that holds.
    """
    limits_upto, jobs_upto = np.cumsum(counts[:-1]), np.cumsum(need[:-1])
    some = limits_upto > 0
    factor = min(1.0, float(np.min(jobs_upto[some] / limits_upto[some], initial=1.0)))
    if factor == 1.0:
        return counts
    fewer: Ints = np.floor(counts * factor).astype(np.int64)
    fewer[-1] += counts.sum() - fewer.sum()
    return fewer


def _draw(values: Ints, counts: Ints, need: Ints, shortest: npt.NDArray[np.int16], rng: np.random.Generator) -> Ints:
    """Hand out the limits, jobs with the longest run times first, each from all limits left that will do.

    The published loop draws job by job. All jobs with the same shortest value draw from one pool without
    replacement, so one multivariate hypergeometric draw and a shuffle give the same distribution.
    """
    left = counts.copy()
    limit = np.empty(len(shortest), np.int64)
    by_group = np.argsort(shortest, kind="stable")
    end = len(shortest)
    for group in range(len(values) - 1, -1, -1):
        n = int(need[group])
        if not n:
            continue
        drawn = rng.multivariate_hypergeometric(left[group:], n, method="marginals")
        left[group:] -= drawn
        given = np.repeat(values[group:], drawn)
        rng.shuffle(given)
        limit[by_group[end - n : end]] = given
        end -= n
    return limit
