"""Is one policy better than another: paired comparisons with an interval, a test, an effect and a verdict.

What each of them says, and what it does not: docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import isnan, nan, sqrt
from typing import Any, Final, TypeVar

import numpy as np

from dovetail.arrays import Floats
from dovetail.metrics.exact import blocks

K = TypeVar("K", bound=Hashable)

RESAMPLES: Final = 9999

_DRAWN: Final = 1 << 14  # pairs drawn at once: they stay in the processor's cache

FEWEST: Final = 6
"""Pairs, or blocks of them, below which there is no interval: Wilcoxon's test of 5 never falls below 2 / 2^5 = 0.06."""
EVERY_SIGN: Final = 13
"""Up to so many pairs, or blocks, some of them equal or tied, are tested by trying every sign."""


@dataclass(frozen=True)
class Comparison:
    """One policy against the baseline on one metric, pair by pair (a pair: the same seed, span, week or user)."""

    pairs: int
    """Pairs in which both sides have a number."""
    base: float
    """Mean over the pairs."""
    other: float
    """Mean over the pairs."""
    change: float
    """other / base - 1, of the means."""
    low: float
    """Lower end of the confidence interval of the change; nan where there is none."""
    high: float
    """Upper end of the confidence interval of the change; nan where there is none."""
    confidence: float
    """How often such intervals hold the true change: 0.95."""
    p_value: float
    """Wilcoxon signed-rank test, two-sided."""
    p_holm: float
    """The same after Holm's correction over all comparisons made together."""
    effect: float
    """Matched-pairs rank-biserial correlation, -1 to 1; below 0: other is mostly lower."""
    verdict: str
    """One of "better", "worse" and "unclear"."""

    def __repr__(self) -> str:
        between = "" if isnan(self.low) else f" [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"
        return f"{100 * self.change:+.1f} %{between} over {self.pairs:,} pairs: {self.verdict}"


def compare(
    base: Floats,
    other: Floats,
    *,
    lower_is_better: bool = True,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    block: int = 1,
) -> Comparison:
    """Compare one metric of two policies, value i of `base` with value i of `other`.

    A pair with nan on either side is left out. Where neighbours depend on each other (weeks of one replay),
    give the values in order and a `block` above 1: see `block_length`. There is no interval, and the verdict
    is "unclear", with fewer than FEWEST blocks, where all pairs are alike, and where the base is too often 0 to
    divide by.
    """
    if not 0 < confidence < 1 or resamples < 1 or block < 1:
        rule = "a confidence lies between 0 and 1; resamples and block are at least 1"
        raise ValueError(f"{rule}; got {confidence}, {resamples} and {block}")
    both = _paired(base, other)
    pairs, difference = both.shape[1], both[1] - both[0]
    before, after = (float(side.mean()) if pairs else nan for side in both)
    low, high = _interval(both, confidence, resamples, seed, block)
    p_value = _p_value(both, block)
    return Comparison(
        pairs=pairs,
        base=before,
        other=after,
        change=after / before - 1 if before > 0 else nan,
        low=low,
        high=high,
        confidence=confidence,
        p_value=p_value,
        p_holm=p_value,
        effect=_effect(difference),
        verdict=_verdict(low, high, lower_is_better),
    )


def compare_all(
    pairs: Mapping[K, tuple[Floats, Floats]],
    *,
    higher_is_better: Collection[K] = (),
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
    block: int = 1,
) -> dict[K, Comparison]:
    """Compare many metrics or policies, each given as (base, other), with Holm's correction over all of them.

    `higher_is_better` has the keys of those of which more is better; of all others, less is.
    """
    found = {
        key: compare(
            base,
            other,
            lower_is_better=key not in higher_is_better,
            confidence=confidence,
            resamples=resamples,
            seed=seed,
            block=block,
        )
        for key, (base, other) in pairs.items()
    }
    corrected = holm([one.p_value for one in found.values()])
    return {key: replace(one, p_holm=p) for (key, one), p in zip(found.items(), corrected, strict=True)}


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for being many, by Holm's step-down method. A nan is no test: it stays and counts for none."""
    given = np.asarray(p_values, np.float64)
    tested = np.flatnonzero(~np.isnan(given))
    order = tested[np.argsort(given[tested], kind="stable")]
    corrected = given.copy()
    left = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(left * given[order]), 1)
    found: list[float] = corrected.tolist()
    return found


def block_length(pairs: int) -> int:
    """How many neighbouring pairs to keep together where they depend on each other: the cube root, rounded up."""
    return next(length for length in count(1) if length**3 >= pairs)


def _paired(base: Floats, other: Floats) -> Floats:
    """Both sides as two rows, without the pairs that lack a number."""
    if base.shape != other.shape or base.ndim != 1:
        raise ValueError(f"pairs need two rows of equal length, got the shapes {base.shape} and {other.shape}")
    both = np.stack([base, other]).astype(np.float64)
    if bool(np.isinf(both).any()):
        raise ValueError("a value to compare is infinite; use nan for a pair that has no number")
    return both[:, ~np.isnan(both).any(axis=0)]


def _interval(both: Floats, confidence: float, resamples: int, seed: int, block: int) -> tuple[float, float]:
    """Bootstrap interval of the change: circular blocks of neighbouring pairs, percentiles of the resampled change."""
    pairs = both.shape[1]
    pieces = pairs / block
    if pieces < FEWEST or _alike(both):
        return nan, nan
    # A resample is whole blocks and a shorter one that makes up the number; the last pair is followed by the first.
    whole, rest = divmod(pairs, block)
    window = np.lib.stride_tricks.sliding_window_view(np.hstack([both, both[:, : block - 1]]), block, axis=1)
    from_here, rest_from_here = window.sum(axis=-1), window[..., :rest].sum(axis=-1)
    rng = np.random.default_rng(seed)
    sums = np.empty((2, resamples))
    for part in blocks(resamples, max(1, _DRAWN // pairs)):
        first = rng.integers(0, pairs, (part.stop - part.start, whole + 1))
        for side in (0, 1):
            sums[side, part] = from_here[side].take(first[:, 1:]).sum(axis=1) + rest_from_here[side].take(first[:, 0])
    if bool((sums[0] <= 0).any()):
        return nan, nan
    return cut(sums[1] / sums[0] - 1, pieces, confidence)


def cut(resampled: Floats, pieces: float, confidence: float) -> tuple[float, float]:
    """The interval that is left of resampled values when the tails are cut off. `pieces`: 2 or more.

    A resample varies less than the data by sqrt((m - 1) / m), and a normal tail is thinner than Student's: with few
    pieces plain percentiles are too narrow, so the tails that are cut off are made smaller (Hesterberg 2015).
    """
    from scipy.special import ndtr, stdtrit

    tail = float(ndtr(-stdtrit(pieces - 1, (1 + confidence) / 2) * sqrt(pieces / (pieces - 1))))
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return float(low), float(high)


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float, float]:
    """The mean of a few values, and the ends of its interval by Student's t; nan where a single one says nothing."""
    from scipy.special import stdtrit

    found = np.asarray(values, np.float64)
    mean, n = float(found.mean()) if len(found) else nan, len(found)
    if n < 2:
        return mean, nan, nan
    half = float(stdtrit(n - 1, (1 + confidence) / 2)) * float(found.std(ddof=1)) / sqrt(n)
    return mean, mean - half, mean + half


def _p_value(both: Floats, block: int) -> float:
    """Wilcoxon's signed-rank test; equal pairs are ranked too (Pratt). Blocks take part with their mean difference."""
    from scipy.stats import permutation_test, rankdata, wilcoxon

    difference = both[1] - both[0]
    if not len(difference):
        return nan
    edges = np.arange(0, len(difference), block)
    means = np.add.reduceat(difference, edges) / np.diff(edges, append=len(difference))
    if _alike(both) or not means.any():
        return 1.0
    distinct = len(np.unique([0.0, *np.abs(means)])) == 1 + len(means)
    if distinct or len(means) > EVERY_SIGN:
        return float(wilcoxon(means, zero_method="pratt").pvalue)
    ranks = rankdata(np.abs(means))  # no sign changes them: so all signs are tried at once

    def higher(signed: Floats, axis: int) -> Any:
        return np.sum((signed > 0) * ranks, axis)

    return float(permutation_test((means,), higher, permutation_type="samples", vectorized=True).pvalue)


def _alike(both: Floats) -> bool:
    """Whether the pairs say nothing of chance: each repeats the first (a seed that nothing depends on), or is equal."""
    return bool((both == both[:, :1]).all() or (both[0] == both[1]).all())


def _effect(difference: Floats) -> float:
    """Ranks of the pairs in which other is higher, less those in which it is lower, over all ranks."""
    from scipy.stats import rankdata

    if not len(difference):
        return nan
    ranks = rankdata(np.abs(difference))
    return float(np.sign(difference) @ ranks / ranks.sum())


def _verdict(low: float, high: float, lower_is_better: bool) -> str:
    """Better or worse only where the whole interval lies on one side of 0; a nan lies on none."""
    if high < 0:
        return "better" if lower_is_better else "worse"
    if low > 0:
        return "worse" if lower_is_better else "better"
    return "unclear"
