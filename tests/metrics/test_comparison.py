"""Comparisons: test, correction and effect against slow obvious code; intervals and verdicts by simulation."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from math import ceil, erfc, isnan, nan, sqrt
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dovetail.arrays import Floats
from dovetail.metrics.comparison import FEWEST, Comparison, block_length, compare, compare_all, holm

quick = partial(compare, resamples=999)
"""For what does not depend on the number of resamples, and for simulations."""


def rising(pairs: int, first: int = 1) -> Floats:
    return np.arange(first, first + pairs, dtype=np.float64)


def of_differences(differences: list[int]) -> tuple[Floats, Floats]:
    """Pairs with these differences (exactly) and a base that varies, so that no pair repeats another."""
    base = rising(len(differences), 100)
    return base, base + differences


def drawn(
    seed: int, pairs: int, change: float = -0.1, spread: float = 0.3, noise: float = 0.15
) -> tuple[Floats, Floats]:
    """Pairs of unlike load (lognormal), each side with a noise of its own of mean 1: the true change is known."""
    rng = np.random.default_rng([seed, pairs])
    load = 100 * np.exp(rng.normal(0, spread, pairs))
    mine, yours = np.exp(rng.normal(-(noise**2) / 2, noise, (2, pairs)))
    return load * mine, load * (1 + change) * yours


def drawn_weeks(seed: int, pairs: int, rho: float) -> tuple[Floats, Floats]:
    """Like `drawn`, without a change; each week remembers the one before (a first-order autoregression)."""
    rng = np.random.default_rng([seed, pairs])
    noise = rng.normal(0, 1, (3, pairs)) * sqrt(1 - rho**2)
    noise[:, 0] /= sqrt(1 - rho**2)
    for week in range(1, pairs):
        noise[:, week] += rho * noise[:, week - 1]
    load = 100 * np.exp(0.5 * noise[0])
    return load * np.exp(0.2 * noise[1]), load * np.exp(0.2 * noise[2])


# The test and the effect.


def ranks_of(differences: list[float]) -> list[float]:
    """Rank of each by its absolute value, from 1; equals share the mean of theirs."""
    sizes = [abs(d) for d in differences]
    return [sum(s < x for s in sizes) + (sum(s == x for s in sizes) + 1) / 2 for x in sizes]


def every_sign(differences: list[float]) -> float:
    """The p-value by its definition: of all ways to give the ranks signs, how many are as lopsided."""
    ranks = [r for r, d in zip(ranks_of(differences), differences, strict=True) if d]
    seen = sum(r for r, d in zip(ranks_of(differences), differences, strict=True) if d > 0)
    sums = [sum(r for r, up in zip(ranks, ups, strict=True) if up) for ups in product((0, 1), repeat=len(ranks))]
    up, down = sum(s >= seen for s in sums), sum(s <= seen for s in sums)
    return min(1.0, 2 * min(up, down) / len(sums))


def two_at_a_time(differences: list[int]) -> float:
    """The effect by its meaning: of all sums of two differences, or of one with itself, above 0 less below."""
    sums = [a + b for i, a in enumerate(differences) for b in differences[i:]]
    return (sum(s > 0 for s in sums) - sum(s < 0 for s in sums)) / len(sums)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=9))
def test_p_value_and_effect_by_slow_code(differences: list[int]) -> None:
    found = quick(*of_differences(differences))
    assert found.p_value == found.p_holm == pytest.approx(every_sign(list(map(float, differences))), rel=1e-12)
    assert found.effect == pytest.approx(two_at_a_time(differences), rel=1e-12, abs=1e-15)


def test_p_value_by_hand() -> None:
    assert quick(*of_differences([1, 2, 3, 4, 5, 6])).p_value == 2 / 2**6
    assert quick(*of_differences([1, 2, 3, 4, 5])).p_value == 2 / 2**5  # why FEWEST is 6: never below 0.05
    # The rank sum of the negative ones is 3: {}, {1}, {2}, {1, 2}, {3} are as low.
    assert quick(*of_differences([1, 2, -3, 4, 5, 6, 7])).p_value == 2 * 5 / 2**7


def test_p_value_of_many_pairs_is_the_normal_one() -> None:
    differences = [(-1) ** (i % 3) * (i + 1) for i in range(60)]
    n, seen = 60, sum(d for d in differences if d > 0)
    z = (seen - n * (n + 1) / 4) / sqrt(n * (n + 1) * (2 * n + 1) / 24)
    assert quick(*of_differences(differences)).p_value == pytest.approx(erfc(abs(z) / sqrt(2)), rel=1e-12)


def test_p_value_of_blocks_is_that_of_their_means() -> None:
    base, other = of_differences([1, 2, 6, -3, -1, 4, 7, 5, 9, 1, 2, 3, 4, 4, 30])
    means = [1.5, 1.5, 1.5, 6, 5, 2.5, 4, 30]
    assert quick(base, other, block=2).p_value == pytest.approx(every_sign(means), rel=1e-12)
    # Means that are all 0 are no evidence, whatever is within.
    assert quick(*of_differences([1, -1, 2, -2, 3, -3, 1, -1]), block=2).p_value == 1


# The correction.


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1, 1]
    assert holm([0.2]) == [0.2]
    assert holm([]) == []
    found = holm([0.02, nan, 0.04])
    assert found[0] == found[2] == 0.04
    assert isnan(found[1])


@given(st.lists(st.integers(0, 20), max_size=8))
def test_holm_by_its_definition(twentieths: list[int]) -> None:
    """Hypothesis by hypothesis: the least level at which all those with a smaller p-value, and it, are rejected."""
    given = [p / 20 for p in twentieths]
    m, expected = len(given), []
    for p in given:
        lower = sorted(q for q in given if q <= p)
        expected.append(min(1.0, max((m - i) * q for i, q in enumerate(lower))))
    assert holm(given) == pytest.approx(expected, rel=1e-12)


# The interval.


def by_scipy(
    base: Floats, other: Floats, level: float, method: Literal["percentile", "BCa"], resamples: int
) -> tuple[float, float]:
    def change(base: Floats, other: Floats, axis: int) -> Floats:
        return np.asarray(other.mean(axis=axis) / base.mean(axis=axis) - 1)

    found = stats.bootstrap(
        (base, other),
        change,
        paired=True,
        n_resamples=resamples,
        confidence_level=level,
        method=method,
        rng=np.random.default_rng(0),
    ).confidence_interval
    return float(found.low), float(found.high)


def test_interval_of_independent_pairs_against_scipy() -> None:
    base, other = drawn(1, 25, noise=0.3)
    level = 1 - 2 * stats.norm.sf(stats.t.ppf(0.975, 24) * sqrt(25 / 24))
    low, high = by_scipy(base, other, level, "percentile", 50_000)
    ours = compare(base, other, resamples=50_000)
    within = 0.02 * (high - low)  # both are random: their ends move by about 0.005 of the length
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=within)


@pytest.mark.slow
@pytest.mark.parametrize(("pairs", "block"), [(20, 3), (21, 3), (40, 6)])
def test_interval_of_blocks_against_slow_code(pairs: int, block: int) -> None:
    base, other = drawn_weeks(2, pairs, rho=0.7)
    rng = np.random.default_rng(9)
    found = []
    for _ in range(20_000):
        rows = [(first + i) % pairs for first in rng.integers(0, pairs, ceil(pairs / block)) for i in range(block)]
        found.append(other[rows[:pairs]].sum() / base[rows[:pairs]].sum() - 1)
    pieces = pairs / block
    tail = stats.norm.sf(stats.t.ppf(0.9, pieces - 1) * sqrt(pieces / (pieces - 1)))
    low, high = np.quantile(found, [tail, 1 - tail])
    ours = compare(base, other, confidence=0.8, resamples=50_000, block=block)
    within = 0.02 * (high - low)
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=within)


@pytest.mark.parametrize("pairs", [12, 40])
def test_with_a_steady_base_the_interval_is_student_s(pairs: int) -> None:
    other = 90 + 10 * stats.norm.ppf((np.arange(pairs) + 0.5) / pairs)
    half = stats.t.ppf(0.975, pairs - 1) * other.std(ddof=1) / sqrt(pairs) / 100
    found = compare(np.full(pairs, 100.0), other, resamples=50_000)
    assert found.change == pytest.approx(-0.1)
    assert (found.low, found.high) == pytest.approx((-0.1 - half, -0.1 + half), abs=0.03 * half)


def covered(found: list[Comparison], truth: float) -> float:
    return float(np.mean([one.low <= truth <= one.high for one in found]))


@pytest.mark.slow
@pytest.mark.parametrize(("pairs", "confidence"), [(8, 0.95), (20, 0.95), (20, 0.8), (60, 0.95)])
def test_intervals_hold_the_true_change_as_often_as_they_say(pairs: int, confidence: float) -> None:
    found = [quick(*drawn(seed, pairs), seed=seed, confidence=confidence) for seed in range(400)]
    assert covered(found, -0.1) == pytest.approx(confidence, abs=0.03)


@pytest.mark.slow
def test_why_not_bca() -> None:
    """BCa, the usual choice, is too narrow with few pairs, and stays so when its level is corrected as ours is."""
    sets = [drawn(seed, 8, spread=1.0, noise=0.5) for seed in range(200)]
    level = 1 - 2 * stats.norm.sf(stats.t.ppf(0.975, 7) * sqrt(8 / 7))
    shares = []
    for chosen in (0.95, level):
        found = [by_scipy(base, other, chosen, "BCa", 999) for base, other in sets]
        shares.append(np.mean([low <= -0.1 <= high for low, high in found]))
    ours = covered([quick(base, other) for base, other in sets], -0.1)
    assert shares[0] < 0.86
    assert shares[0] < shares[1] < ours - 0.01


@pytest.mark.slow
@pytest.mark.parametrize(("rho", "one_by_one", "in_blocks"), [(0.4, 0.80, 0.91), (0.75, 0.53, 0.73)])
def test_weeks_that_depend_on_each_other_need_blocks(rho: float, one_by_one: float, in_blocks: float) -> None:
    sets = [drawn_weeks(seed, 52, rho) for seed in range(400)]
    single = [quick(*pairs) for pairs in sets]
    blocked = [quick(*pairs, block=block_length(52)) for pairs in sets]
    # The shares are those that docs/statistics.md gives.
    assert covered(single, 0) == pytest.approx(one_by_one, abs=0.015)
    assert covered(blocked, 0) == pytest.approx(in_blocks, abs=0.015)
    false_alarms = [np.mean([one.p_value < 0.05 for one in found]) for found in (single, blocked)]
    assert false_alarms[1] < 0.6 * false_alarms[0]


@pytest.mark.slow
@pytest.mark.parametrize(("pairs", "spread"), [(6, 1.0), (15, 1.0)])
def test_without_a_change_few_verdicts(pairs: int, spread: float) -> None:
    found = [quick(*drawn(seed, pairs, 0, spread, spread / 2), seed=seed) for seed in range(800)]
    for verdict in ("better", "worse"):
        assert np.mean([one.verdict == verdict for one in found]) <= 0.05
    assert covered(found, 0) > 0.9
    assert np.mean([one.p_value < 0.05 for one in found]) <= 0.06


def test_a_clear_change_is_seen() -> None:
    found = [quick(*drawn(seed, 20, -0.2), seed=seed) for seed in range(100)]
    assert np.mean([one.verdict == "better" for one in found]) > 0.9
    assert "worse" not in [one.verdict for one in found]


# Verdicts, mirrors and sameness.


def test_verdict_follows_the_interval_and_the_direction() -> None:
    base, other = drawn(0, 30, -0.4)
    assert (quick(base, other).verdict, quick(other, base).verdict) == ("better", "worse")
    assert quick(base, other, lower_is_better=False).verdict == "worse"
    assert quick(other, base, lower_is_better=False).verdict == "better"
    unclear = quick(*drawn(0, 30, 0))
    assert unclear.low < 0 < unclear.high
    assert unclear.verdict == "unclear"


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from([(10, 1), (30, 1), (30, 4)]))
def test_swapped_sides_mirror_all(seed: int, shape: tuple[int, int]) -> None:
    pairs, block = shape
    base, other = drawn(seed, pairs)
    one, two = quick(base, other, block=block), quick(other, base, block=block)
    assert (one.base, one.other) == (two.other, two.base)
    assert one.effect == -two.effect
    assert one.p_value == pytest.approx(two.p_value, rel=1e-12)
    assert 1 + one.change == pytest.approx(1 / (1 + two.change), rel=1e-12)
    # The same resamples turned over; between two of them the ends are interpolated, which has no mirror.
    assert (1 + one.low, 1 + one.high) == pytest.approx((1 / (1 + two.high), 1 / (1 + two.low)), rel=1e-3)
    assert {"better": "worse", "worse": "better", "unclear": "unclear"}[one.verdict] == two.verdict


@pytest.mark.slow
@given(st.integers(0, 10**6), st.integers(-20, 20))
def test_the_unit_does_not_matter(seed: int, exponent: int) -> None:
    base, other = drawn(seed, 12)
    scaled = quick(base * 2.0**exponent, other * 2.0**exponent)
    assert replace(scaled, base=0, other=0) == replace(quick(base, other), base=0, other=0)


def test_same_seed_same_bytes() -> None:
    base, other = drawn(3, 40)
    for block in (1, 4):
        first = compare(base, other, block=block)
        assert repr(first) == repr(compare(base.copy(), other.copy(), block=block))
        again = compare(base, other, block=block, seed=1)
        assert again != first
        assert replace(again, low=first.low, high=first.high) == first


# Little to go by.


def no_interval(found: Comparison) -> bool:
    return isnan(found.low) and isnan(found.high) and found.verdict == "unclear"


@pytest.mark.parametrize("pairs", range(FEWEST))
def test_few_pairs_give_no_interval(pairs: int) -> None:
    base, other = rising(pairs, 100), rising(pairs, 10)
    found = compare(base, other)
    assert found.pairs == pairs
    assert no_interval(found)
    if pairs:
        assert found.p_value == 2 / 2**pairs
        assert found.effect == -1
        assert found.change == pytest.approx(other.mean() / base.mean() - 1)
    else:
        assert all(map(isnan, (found.base, found.other, found.change, found.p_value, found.p_holm, found.effect)))
    assert not no_interval(compare(rising(FEWEST, 100), rising(FEWEST, 10)))


def test_few_blocks_give_no_interval() -> None:
    assert no_interval(quick(*drawn(0, 17), block=3))
    assert not no_interval(quick(*drawn(0, 18), block=3))
    assert no_interval(quick(*drawn(0, 20), block=100))


def test_equal_pairs_are_no_evidence() -> None:
    values = rising(10)
    found = compare(values, values)
    assert no_interval(found)
    assert (found.pairs, found.change, found.p_value, found.effect) == (10, 0, 1, 0)


def test_pairs_that_repeat_each_other_are_one() -> None:
    found = compare(np.full(20, 10.0), np.full(20, 9.0))  # seeds on which nothing depends
    assert no_interval(found)
    assert (found.pairs, found.change, found.p_value, found.effect) == (20, 9 / 10 - 1, 1, -1)


def test_the_same_change_in_every_pair_is_certain() -> None:
    base = rising(10)
    found = compare(base, base / 2)
    assert (found.low, found.high, found.verdict) == (-0.5, -0.5, "better")
    assert compare(base, base / 2, resamples=1) == found


def test_more_pairs_than_are_drawn_at_once() -> None:
    base = rising(20_000)
    found = compare(base, base / 2, resamples=3)
    assert (found.pairs, found.low, found.high, found.verdict) == (20_000, -0.5, -0.5, "better")


def test_a_base_of_nothing_has_no_change() -> None:
    found = compare(np.zeros(10), rising(10))
    assert no_interval(found)
    assert isnan(found.change)
    assert found.effect == 1
    rare = np.zeros(8)
    rare[3] = 5.0  # some resamples hold none of it
    assert no_interval(compare(rare, rare + 1))
    assert compare(rare, rare + 1).change == pytest.approx(8 / 5)


def test_nan_leaves_out_the_pair() -> None:
    base, other = drawn(4, 30)
    holes_base, holes_other = base.copy(), other.copy()
    holes_base[[0, 7]], holes_other[[7, 29]] = nan, nan
    left = np.setdiff1d(np.arange(30), [0, 7, 29])
    found = quick(holes_base, holes_other)
    assert found.pairs == 27
    assert found == quick(base[left], other[left])
    assert quick(np.full(9, nan), base[:9]).pairs == 0


def test_what_is_refused() -> None:
    values = rising(10)
    for base, other in ((values, values[:9]), (values.reshape(2, 5), values.reshape(2, 5))):
        with pytest.raises(ValueError, match="equal length"):
            compare(base, other)
    with pytest.raises(ValueError, match="infinite"):
        compare(values, np.append(values[:9], np.inf))
    for wrong in ({"confidence": 1.0}, {"confidence": 0.0}, {"confidence": nan}, {"resamples": 0}, {"block": 0}):
        with pytest.raises(ValueError, match="confidence"):
            compare(values, values, **wrong)


# Many at once.


def test_a_family() -> None:
    base, other = drawn(0, 30, -0.3)
    family = {"bsld": (base, other), "utilization": (base, other), "same": (base, base), "none": (base[:0], base[:0])}
    found = compare_all(family, higher_is_better={"utilization"}, seed=5, confidence=0.9, resamples=500)
    assert list(found) == list(family)
    alone = compare(base, other, seed=5, confidence=0.9, resamples=500)
    assert found["bsld"] == replace(alone, p_holm=3 * alone.p_value)  # of three tests: one has no pairs
    assert found["utilization"].verdict == "worse"
    assert found["same"].p_holm == 1
    assert isnan(found["none"].p_holm)
    assert compare_all({}) == {}
    blocked = compare_all({"bsld": (base, other)}, block=4)["bsld"]
    assert blocked == compare(base, other, block=4)


def test_block_length_is_the_cube_root_rounded_up() -> None:
    assert [block_length(n) for n in (0, 1, 2, 8, 9, 27, 28, 52, 64, 65, 1000)] == [1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 10]
