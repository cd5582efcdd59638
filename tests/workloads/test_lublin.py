"""Big samples against the published distributions, computed here by other means. z is in standard errors."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.arrays import Floats
from dovetail.errors import SettingError
from dovetail.model.workload import Workload
from dovetail.workloads import lublin as synthetic
from dovetail.workloads import user_limits as limits
from dovetail.workloads.lublin import BATCH, INTERACTIVE, KINDS, UNTYPED, JobClass, daily_cycle, lublin
from dovetail.workloads.scenarios import offered_load
from dovetail.workloads.user_limits import HOUR, LONGEST_S, MINUTE, histogram, user_limits

JOBS = 400_000
CLASSES = pytest.mark.parametrize("job_class", [BATCH, INTERACTIVE, UNTYPED], ids=["batch", "interactive", "untyped"])
KIND_OF = {BATCH: "batch", INTERACTIVE: "interactive", UNTYPED: "untyped"}


@pytest.fixture(scope="module")
def samples() -> dict[str, Workload]:
    return {kind: lublin(JOBS, 128, seed=42, kind=kind) for kind in KINDS}


def gamma_cdf(x: Floats, shape: float) -> Floats:
    """Regularised lower incomplete gamma function: by a fine numeric integral."""
    grid = np.linspace(0.0, float(x.max()), 400_001)[1:]
    density = np.exp((shape - 1) * np.log(grid) - grid - math.lgamma(shape))
    upto = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)]) * (grid[1] - grid[0])
    result: Floats = np.interp(x, grid, upto)
    return result


def two_stage_cdf(x: Floats, low: float, middle: float, high: float, share: float) -> Floats:
    first, second = np.clip((x - low) / (middle - low), 0, 1), np.clip((x - middle) / (high - middle), 0, 1)
    result: Floats = share * first + (1 - share) * second
    return result


def size_shares(c: JobClass, bounds: tuple[float, float, float], processors: int) -> Floats:
    """The probability of each size 0..processors, from the distribution function of log2(size)."""
    sizes = np.arange(1, processors + 1)
    upto = two_stage_cdf(np.log2(np.append(sizes - 0.5, processors + 0.5)), *bounds, c.uprob)
    share = np.concatenate([[0.0], (1 - c.serial - c.pow2) * np.diff(upto)])
    share[1] += c.serial
    top = int(math.log2(processors))
    for k in range(top + 1):
        edges = np.array([k - 0.5, k + 0.5 if k < top else 99.0])
        share[2**k] += c.pow2 * float(np.diff(two_stage_cdf(edges, *bounds, c.uprob))[0])
    return share


def test_the_parameters_are_the_published_ones() -> None:
    """As lublin99.c has them: sizes, run times, arrivals. The bounds of the sizes are in the next test."""
    published = {
        BATCH: (0.2927, 0.6686, 0.875, 6.57, 0.823, 639.1, 0.0156, -0.003, 0.6986,
                6.0415, 0.8531, 6.1271, 5.2740, 1.0519),
        INTERACTIVE: (0.1541, 0.625, 0.705, 3.8351, 0.6605, 7.073, 0.6856, -0.0118, 0.9156,
                      6.5510, 0.6621, 8.9186, 3.6680, 0.9797),
        UNTYPED: (0.244, 0.576, 0.86, 4.2, 0.94, 312, 0.03, -0.0054, 0.78,
                  10.2303, 0.4871, 8.1737, 3.9631, 1.0225),
    }  # fmt: skip
    for c, values in published.items():
        sizes, runtimes = (c.serial, c.pow2, c.uprob), (c.a1, c.b1, c.a2, c.b2, c.pa, c.pb)
        assert (*sizes, *runtimes, c.aarr, c.barr, c.anum, c.bnum, c.arar) == values


@pytest.mark.parametrize(
    ("job_class", "processors", "bounds"),
    [
        (BATCH, 128, (1.2, 5.0, 7.0)),
        (INTERACTIVE, 128, (1.0, 3.0, 5.5)),
        (UNTYPED, 128, (0.8, 4.5, 7.0)),
        (UNTYPED, 100, (0.8, math.log2(100) - 2.5, math.log2(100))),
        (UNTYPED, 8, (0.8, 1.5, 3.0)),
    ],
)
def test_sizes_follow_the_model(job_class: JobClass, processors: int, bounds: tuple[float, float, float]) -> None:
    assert synthetic.size_bounds(job_class, processors) == pytest.approx(bounds, abs=1e-12)
    size = lublin(JOBS, processors, seed=11, kind=KIND_OF[job_class], estimates=False).size
    share = size_shares(job_class, bounds, processors)
    assert share.sum() == pytest.approx(1, abs=1e-12)
    seen = np.bincount(size, minlength=processors + 1)
    assert not seen[share == 0].any()
    expected = JOBS * share[share > 0]
    chi2 = float(np.sum((seen[share > 0] - expected) ** 2 / expected))
    freedom = int(np.sum(share > 0)) - 1
    assert abs(chi2 - freedom) < 4.5 * math.sqrt(2 * freedom)
    log2 = np.log2(np.maximum(np.arange(processors + 1), 1))
    mean, variance = float(share @ log2), float(share @ log2**2) - float(share @ log2) ** 2
    sample = np.log2(size)
    assert abs(float(sample.mean()) - mean) < 4.5 * math.sqrt(variance / JOBS)
    fourth = float(share @ (log2 - mean) ** 4)
    assert abs(float(sample.var()) - variance) < 4.5 * math.sqrt((fourth - variance**2) / JOBS)
    assert abs(np.mean(size == 1) - job_class.serial) < 4.5 * math.sqrt(0.25 / JOBS)
    power = share[[2**k for k in range(int(math.log2(processors)) + 1)]].sum()
    assert abs(np.mean(size & (size - 1) == 0) - power) < 4.5 * math.sqrt(power * (1 - power) / JOBS)


@pytest.mark.slow
@CLASSES
def test_run_times_follow_the_hyper_gamma_of_their_size(job_class: JobClass, samples: dict[str, Workload]) -> None:
    c, w = job_class, samples[KIND_OF[job_class]]
    whole = np.arange(1, int(math.exp(12)) + 2)
    log = np.minimum(np.log(whole), 12.0)
    upto1, upto2 = gamma_cdf(log / c.b1, c.a1), gamma_cdf(log / c.b2, c.a2)
    for size in (1, 2, 8, 32):
        p = c.pa * size + c.pb
        upto = p * upto1 + (1 - p) * upto2
        share = np.diff(upto) / upto[-1]  # run time k when its logarithm lies from log k to log(k + 1)
        assert share.sum() == pytest.approx(1, abs=1e-9)
        runtime = w.runtime[w.size == size]
        n = len(runtime)
        assert n > 5000
        sample = np.log(runtime)
        value = np.log(whole[:-1])
        mean = float(share @ value)
        deviation = math.sqrt(float(share @ (value - mean) ** 2))
        assert abs(float(sample.mean()) - mean) < 4.5 * deviation / math.sqrt(n)
        for k in (2, 10, 60, 600, 3600, 4 * HOUR, 12 * HOUR):
            below = float(share[: k - 1].sum())
            z = (np.mean(runtime < k) - below) / math.sqrt(max(below * (1 - below), 1e-6) / n)
            assert abs(z) < 4.5, f"size {size}: share of run times below {k} s"


@pytest.mark.parametrize(
    ("job_class", "a2", "b2"), [(BATCH, 639.1, 0.0156), (INTERACTIVE, 7.073, 0.6856), (UNTYPED, 312, 0.03)]
)
def test_large_jobs_all_come_from_the_long_gamma(job_class: JobClass, a2: float, b2: float) -> None:
    size = np.full(20_000, 1000)
    log = np.log(synthetic._runtimes(job_class, size, np.random.default_rng(1)))
    mean, deviation = a2 * b2, math.sqrt(a2) * b2
    assert abs(float(log.mean()) - mean) < 4.5 * deviation / math.sqrt(20_000)
    assert log.max() <= 12


@pytest.mark.slow
@CLASSES
@pytest.mark.parametrize("load", [None, 0.9])
def test_arrivals_follow_the_daily_cycle(job_class: JobClass, load: float | None, samples: dict[str, Workload]) -> None:
    kind = KIND_OF[job_class]
    w = samples[kind] if load is None else lublin(JOBS, 128, seed=3, kind=kind, load=load, estimates=False)
    per_day = np.zeros((int(w.submit[-1]) // 86400 + 1, 48))
    np.add.at(per_day, (w.submit // 86400, w.submit % 86400 // 1800), 1)
    weights = daily_cycle(job_class) / 48
    # Gaps are heavy-tailed, jobs not independent: the standard error comes from the differences between days.
    rest = per_day - per_day.sum(1, keepdims=True) * weights
    z = (per_day.sum(0) / JOBS - weights) * JOBS / np.sqrt((rest**2).sum(0))
    assert np.abs(z).max() < 4.5
    assert np.mean(z**2) < 2


@CLASSES
def test_the_weights_are_those_of_the_published_gamma(job_class: JobClass) -> None:
    weights = daily_cycle(job_class)
    bucket = np.arange(11, 59)
    upto = gamma_cdf(np.append(bucket - 0.5, 58.5) / job_class.bnum, job_class.anum)
    published = np.zeros(48)
    published[(bucket - 1) % 48] = np.diff(upto)
    assert weights == pytest.approx(published / published.mean(), rel=1e-6)


@pytest.mark.parametrize("x", [0.1, 1.0, 3.0, 20.0])
def test_the_gamma_distribution_by_its_closed_forms(x: float) -> None:
    assert synthetic._gamma_cdf(x, 1) == pytest.approx(1 - math.exp(-x), rel=1e-13)
    assert synthetic._gamma_cdf(x, 3) == pytest.approx(1 - (1 + x + x * x / 2) * math.exp(-x), rel=1e-11)
    assert synthetic._gamma_cdf(x, 0.5) == pytest.approx(math.erf(math.sqrt(x)), rel=1e-13)


@CLASSES
def test_gaps_and_clock_follow_the_published_walk(job_class: JobClass) -> None:
    c = job_class
    points = synthetic._first_arrivals((c,), JOBS, [np.random.default_rng(8)])[0]
    log_gap = np.log(np.diff(points, prepend=0.0) * 1800)
    grid = np.array([12.999999999 / c.barr, 13 / c.barr])
    shape = c.aarr * c.arar
    mean = shape * c.barr * gamma_cdf(grid, shape + 1)[1] / gamma_cdf(grid, shape)[1]
    assert log_gap.max() <= 13 + 1e-6
    assert abs(float(log_gap.mean()) - mean) < 4.5 * float(log_gap.std()) / math.sqrt(JOBS)
    # The program's own walk, bucket by bucket, but without its loss of the fraction of a second at each job.
    weights, bucket, have, at = daily_cycle(c), 0, 0.0, []
    whole_s = 0.0
    for gap in np.diff(points[:3000], prepend=0.0):
        have += gap
        while have > weights[bucket]:
            have -= weights[bucket]
            bucket = (bucket + 1) % 48
            whole_s += 1800
        at.append(whole_s + 1800 * have / weights[bucket])
    assert synthetic._clock(c)(points[:3000]) == pytest.approx(np.array(at), abs=1e-3)


def test_both_kinds_are_the_two_streams_merged(samples: dict[str, Workload]) -> None:
    w = samples["both"]
    interactive = w["queue"] == 0
    assert set(np.unique(w["queue"])) == {0, 1}
    for mask, c in ((interactive, INTERACTIVE), (~interactive, BATCH)):
        n = int(mask.sum())
        assert abs(np.mean(w.size[mask] == 1) - c.serial) < 4.5 * math.sqrt(0.25 / n)
    # Each stream runs to the end: the last job of either is less than the longest gap before the last of all.
    for mask in (interactive, ~interactive):
        assert w.submit[-1] - w.submit[mask][-1] < 8 * 86400
    # As many of each as their mean gaps say; the standard error comes from how the gaps vary.
    gaps = {k: np.diff(samples[k].submit) for k in ("interactive", "batch")}
    mean = {k: float(g.mean()) for k, g in gaps.items()}
    share = mean["batch"] / (mean["batch"] + mean["interactive"])
    counts = {"interactive": int(interactive.sum()), "batch": int((~interactive).sum())}
    relative = sum((float(gaps[k].std()) / mean[k]) ** 2 * (1 / JOBS + 1 / counts[k]) for k in gaps)
    assert abs(float(interactive.mean()) - share) < 4.5 * share * (1 - share) * math.sqrt(relative)


def test_the_queue_says_the_class() -> None:
    for kind, queues in {"batch": {1}, "interactive": {0}, "untyped": {-1}}.items():
        assert set(lublin(50, 16, seed=1, kind=kind)["queue"].tolist()) == queues


def test_same_seed_same_bytes_other_seed_other_jobs() -> None:
    first, again = lublin(5000, 64, seed=9, load=0.8), lublin(5000, 64, seed=9, load=0.8)
    assert first.columns.keys() == again.columns.keys()
    for name in first.columns:
        assert first[name].tobytes() == again[name].tobytes()
    other = lublin(5000, 64, seed=10, load=0.8)
    for name in ("submit", "size", "runtime", "limit", "user"):
        assert first[name].tobytes() != other[name].tobytes()


def test_options_change_only_what_they_name() -> None:
    plain = lublin(5000, 64, seed=9)
    exact = lublin(5000, 64, seed=9, estimates=False)
    loaded = lublin(5000, 64, seed=9, kind="batch", load=0.5)
    unloaded = lublin(5000, 64, seed=9, kind="batch")
    assert (exact.limit == exact.runtime).all()
    for name in ("submit", "size", "runtime", "user"):
        assert (plain[name] == exact[name]).all()
    for name in ("size", "runtime", "user", "limit"):
        assert (loaded[name] == unloaded[name]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("load", [0.05, 0.7, 1.3])
def test_the_load_is_met(kind: str, load: float) -> None:
    assert offered_load(lublin(3000, 96, seed=1, kind=kind, load=load)) == pytest.approx(load, rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("processors", [1, 2, 3, 7, 8, 100, 93_312])
def test_every_machine_gets_sound_jobs(kind: str, processors: int) -> None:
    w = lublin(300, processors, seed=2, kind=kind)
    assert all(values.dtype == np.int64 for values in w.columns.values())
    assert w.size.min() >= 1
    assert w.size.max() <= processors
    assert w.runtime.min() >= 1
    assert w.runtime.max() <= math.exp(12)
    assert (w.limit >= w.runtime).all()
    assert (w["id"] == np.arange(1, 301)).all()
    assert w.submit[0] >= 0
    assert w.processors == processors


@pytest.mark.parametrize("jobs", [1, 2, 19, 199, 201])
def test_few_jobs_work_too(jobs: int) -> None:
    w = lublin(jobs, 16, seed=4)
    assert len(w) == jobs
    assert (w.limit >= w.runtime).all()


def test_a_million_jobs_take_seconds() -> None:
    began = time.process_time()
    w = lublin(1_000_000, 1024, seed=5, load=0.8)
    assert time.process_time() - began < 5
    assert len(w) == 1_000_000


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kind": "serial"}, "both, batch, interactive, untyped"),
        ({"jobs": 0}, "jobs"),
        ({"processors": 0}, "processors"),
        ({"seed": -1}, "seed"),
        ({"load": 0.0}, "positive"),
        ({"load": math.nan}, "positive"),
        ({"load": 0.5, "jobs": 1}, "at least two"),
        ({"load": 1e9}, "load"),
    ],
)
def test_wrong_settings_are_refused(change: dict[str, object], says: str) -> None:
    arguments: dict[str, object] = {"jobs": 50, "processors": 16, "seed": 1, **change}
    with pytest.raises(SettingError, match=says):
        lublin(**arguments)  # type: ignore[arg-type]


def test_users_follow_zipf(samples: dict[str, Workload]) -> None:
    user = samples["both"]["user"]
    assert user.min() >= 1
    assert user.max() <= 1000
    total = float(np.sum(1.0 / np.arange(1, 1001)))
    for k in (1, 2, 10, 100, 1000):
        share = 1 / k / total
        assert abs(np.mean(user == k) - share) < 4.5 * math.sqrt(share * (1 - share) / JOBS)
    assert set(lublin(99, 8, seed=1)["user"]) == {1}


def test_limits_are_modal_as_published(samples: dict[str, Workload]) -> None:
    for w in samples.values():
        assert (w.limit >= w.runtime).all()
        values, counts = np.unique(w.limit, return_counts=True)
        assert len(values) == 565
        assert values[-1] == LONGEST_S
        assert counts.argmax() == len(values) - 1
        top = np.sort(counts)[::-1] / JOBS
        assert top[:20].sum() == pytest.approx(0.89, abs=20 / JOBS)
        rank = np.arange(2, 21)
        assert top[1:20] == pytest.approx((14.0491 * np.exp(-0.177531 * rank) + 0.462513) / 100, abs=1 / JOBS)
        assert top[20] / top[41] == pytest.approx(2**2.267, rel=0.01)
        popular = {int(v) for v in values[np.argsort(counts)[-20:]]}
        minutes = {m * MINUTE for m in (5, 10, 15, 20, 30)}
        hours = {h * HOUR for h in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18, 20, 30, 40, 45, 48)}
        assert popular == minutes | hours


def published_assignment(runtime: list[int], pool: list[int], rng: np.random.Generator) -> list[int]:
    """The published loop, job by job: the longest first, each from all limits left that are not too short."""
    pool = sorted(pool, reverse=True)
    given = [0] * len(runtime)
    for j, job in enumerate(sorted(range(len(runtime)), key=lambda i: -runtime[i])):
        high = max(k for k in range(j, len(pool)) if pool[k] >= runtime[job])
        pick = int(rng.integers(j, high + 1))
        given[job] = pool[pick]
        pool[j], pool[pick] = pool[pick], pool[j]
        pool[j + 1 :] = sorted(pool[j + 1 :], reverse=True)
    return given


@pytest.mark.slow
def test_limits_are_handed_out_as_published() -> None:
    values, counts = np.array([10, 60, 100, 200]), np.array([6, 3, 5, 2])
    runtime = np.array([5] * 8 + [50] * 4 + [90] * 2 + [150] * 2)
    shortest = np.searchsorted(values, runtime).astype(np.int16)
    need = np.bincount(shortest, minlength=4)
    rng = np.random.default_rng(6)
    draws = 3000
    ours = np.array([limits._draw(values, counts, need, shortest, rng) for _ in range(draws)])
    theirs = np.array(
        [published_assignment(runtime.tolist(), np.repeat(values, counts).tolist(), rng) for _ in range(draws)]
    )
    assert (np.sort(ours, axis=1) == np.sort(np.repeat(values, counts))).all()
    for job in range(len(runtime)):
        for value in values:
            a, b = np.mean(ours[:, job] == value), np.mean(theirs[:, job] == value)
            both = (a + b) / 2
            assert abs(a - b) <= 4.5 * math.sqrt(2 * both * (1 - both) / draws)


def test_long_run_times_raise_the_share_of_the_longest_limit_just_enough() -> None:
    runtime = np.full(1000, 47 * HOUR)
    assert (user_limits(runtime, seed=1) == LONGEST_S).all()
    half = np.concatenate([np.full(500, 47 * HOUR), np.full(500, 60)])
    given = user_limits(half, seed=1)
    assert (given >= half).all()
    longest = int(np.sum(given == LONGEST_S))
    assert 500 <= longest <= 500 + 40  # one per value is lost to rounding at most
    assert (user_limits(np.array([60 * HOUR, 3]), seed=1) >= np.array([LONGEST_S, 3])).all()


@pytest.mark.parametrize("seed", range(20))
def test_popularity_ranks_are_a_permutation_with_the_longest_first(seed: int) -> None:
    ranks = limits._head_ranks(np.random.default_rng(seed))
    assert ranks[0] == 1
    assert sorted(ranks) == list(range(1, 21))
    assert [sorted(log) for log in zip(*limits._RANKS, strict=True)] == [list(range(1, 21))] * 4


def test_multiples_of_round_values_complete_the_popular_ones() -> None:
    """Coarse ones first, from the longest downwards, until there are twenty."""
    common = [5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 20 * MINUTE, 30 * MINUTE]
    common += [h * HOUR for h in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18)]
    for longest, more in {48: (20, 30, 40, 45), 99: (50, 70, 80, 90), 240: (50, 100, 150, 200)}.items():
        assert limits._head_values(longest * HOUR) == [longest * HOUR, *common, *(h * HOUR for h in more)]


def test_other_limits_that_collide_are_moved_by_tens_of_seconds() -> None:
    """There are only 120 whole minutes in two hours. What is taken already is left out."""
    first = [30, 20, 10, 60, 90, 80, 40, 70, 50]  # around 0, and then around a minute
    assert limits._tail_values(565, 2 * HOUR, set())[:9] == first
    assert limits._tail_values(565, 2 * HOUR, {20, 60})[:7] == [30, 10, 90, 80, 40, 70, 50]
    values = limits._tail_values(565, 2 * HOUR, set())
    assert len(set(values)) == len(values) > 300
    assert {value % MINUTE for value in values} == {0, 10, 20, 30, 40, 50}
    assert 0 < min(values) < max(values) < 2 * HOUR


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-1, 300_000), max_size=400), st.integers(0, 99), st.sampled_from([2, 4, 18, 48, 240]))
def test_limits_always_cover_run_times(runtime: list[int], seed: int, hours: int) -> None:
    longest = hours * HOUR
    given_limits = user_limits(np.array(runtime, np.int64), seed=seed, longest=longest)
    assert (given_limits >= np.minimum(np.array(runtime, np.int64), longest)).all()
    assert (given_limits <= longest).all()
    assert (given_limits > 0).all()
    assert (given_limits % 10 == 0).all()


def test_a_histogram_has_one_limit_per_job() -> None:
    for jobs in (0, 1, 200, 1000, 10_000, 70_000, 300_000):
        values, counts = histogram(jobs, LONGEST_S, np.random.default_rng(0))
        assert counts.sum() == jobs
        assert (np.diff(values) > 0).all()
        assert len(values) == {1000: 35, 10_000: 90, 70_000: 340, 300_000: 565}.get(jobs, 20)


def test_a_short_longest_limit_is_refused() -> None:
    with pytest.raises(SettingError, match="2 h"):
        user_limits(np.array([1, 2]), seed=0, longest=HOUR)
