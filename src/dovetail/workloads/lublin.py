"""Generated workloads: the model of Lublin and Feitelson (JPDC 63, 2003), as their program lublin99.c has it.

Sizes are two-stage uniform over log2, run times hyper-gamma over their logarithm with a mix that depends on
the size, arrivals a gamma process (over the logarithm of the gap) on a clock that follows the daily cycle.
docs/synthetic.md has the formulas, the parameters, and what we do otherwise than the program.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.errors import SettingError
from dovetail.model.workload import Column, Provenance, Workload
from dovetail.workloads.scenarios import offered_load
from dovetail.workloads.user_limits import user_limits

LONGEST_LOG_RUNTIME: Final = 12.0
"""Run times above exp(12) s (45 h) are drawn again."""
LONGEST_LOG_GAP: Final = 13.0
"""Gaps above exp(13) s (5 days, before the daily cycle) are drawn again."""
BUCKETS: Final = 48
"""Half hours of a day, each with its own weight."""
BUCKET_S: Final = 1800
_FIRST_BUCKET: Final = 11
"""Where the gamma of the daily cycle starts: at the half hour number 11, 05:00 to 05:30."""
MOST_USERS: Final = 1000
JOBS_PER_USER: Final = 100


@dataclass(frozen=True)
class JobClass:
    """The published parameters of one class of jobs, with the names that lublin99.c gives them.

    The two bounds of the size are kept as distances, so that they follow the machine:
    uhi = log2(processors) - uhi_below, umed = uhi - umed_below. On 128 processors that is the published set.
    """

    queue: int
    serial: float
    pow2: float
    ulow: float
    umed_below: float
    uhi_below: float
    uprob: float
    a1: float
    b1: float
    a2: float
    b2: float
    pa: float
    pb: float
    aarr: float
    barr: float
    anum: float
    bnum: float
    arar: float


INTERACTIVE: Final = JobClass(
    queue=0, serial=0.1541, pow2=0.625, ulow=1.0, umed_below=2.5, uhi_below=1.5, uprob=0.705,
    a1=3.8351, b1=0.6605, a2=7.073, b2=0.6856, pa=-0.0118, pb=0.9156,
    aarr=6.5510, barr=0.6621, anum=8.9186, bnum=3.6680, arar=0.9797,
)  # fmt: skip
BATCH: Final = JobClass(
    queue=1, serial=0.2927, pow2=0.6686, ulow=1.2, umed_below=2.0, uhi_below=0.0, uprob=0.875,
    a1=6.57, b1=0.823, a2=639.1, b2=0.0156, pa=-0.003, pb=0.6986,
    aarr=6.0415, barr=0.8531, anum=6.1271, bnum=5.2740, arar=1.0519,
)  # fmt: skip
UNTYPED: Final = JobClass(
    queue=-1, serial=0.244, pow2=0.576, ulow=0.8, umed_below=2.5, uhi_below=0.0, uprob=0.86,
    a1=4.2, b1=0.94, a2=312.0, b2=0.03, pa=-0.0054, pb=0.78,
    aarr=10.2303, barr=0.4871, anum=8.1737, bnum=3.9631, arar=1.0225,
)  # fmt: skip

KINDS: Final = {
    "both": (INTERACTIVE, BATCH),
    "batch": (BATCH,),
    "interactive": (INTERACTIVE,),
    "untyped": (UNTYPED,),
}


def lublin(
    jobs: int,
    processors: int,
    *,
    seed: int,
    load: float | None = None,
    kind: str = "both",
    estimates: bool = True,
) -> Workload:
    """`jobs` jobs of the Lublin-Feitelson model for a machine of `processors`. Time 0 is a midnight.

    `kind`: `both` (batch and interactive jobs together, the program's default), `batch`, `interactive`, or
    `untyped` (the parameters for jobs of no known type). `load`: slow or hasten the arrivals until the
    offered load is this. `estimates`: limits from `user_limits`; without, each limit is the run time.
    """
    _check(jobs, processors, seed, load, kind)
    *model_seeds, user_seed, limit_seed = np.random.SeedSequence(seed).spawn(len(KINDS[kind]) + 2)
    columns = _model(KINDS[kind], jobs, processors, load, [_generator(s) for s in model_seeds])
    columns["id"] = np.arange(1, jobs + 1)
    columns["user"] = zipf_users(jobs, _generator(user_seed))
    runtime = columns["runtime"]
    columns["limit"] = user_limits(runtime, seed=_generator(limit_seed)) if estimates else runtime
    settings = f"{jobs=}, {processors=}, {seed=}, {load=}, {kind=}, {estimates=}"
    thanks = "Uri Lublin and Dror Feitelson (model)" + (", Dan Tsafrir (limits)" if estimates else "")
    provenance = Provenance(f"lublin({settings})", lines=jobs, acknowledge=thanks)
    workload = Workload(f"lublin-{kind}", columns, processors, provenance)
    if load is not None:
        _check_load(workload, load)
    return workload


def zipf_users(jobs: int, rng: np.random.Generator) -> Ints:
    """A user for each job: one user per 100 jobs, from 1 to 1,000 users; user k gets a share like 1/k.

    Ours, not the model's, which has no users. Independent from job to job: no sessions, no habits.
    """
    count = min(MOST_USERS, max(1, jobs // JOBS_PER_USER))
    upto = np.cumsum(1.0 / np.arange(1, count + 1))
    user: Ints = np.searchsorted(upto / upto[-1], rng.random(jobs), side="right").astype(np.int64)
    return user + 1


def _generator(seed: np.random.SeedSequence) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def _model(
    classes: tuple[JobClass, ...],
    jobs: int,
    processors: int,
    load: float | None,
    rngs: list[np.random.Generator],
) -> dict[str, Column]:
    """What the model gives: submit, size, run time and class (as the queue), in order of submit."""
    points = _first_arrivals(classes, jobs, rngs)
    clocks = [_clock(c) for c in classes]
    sizes = [_sizes(c, processors, len(p), rng) for c, p, rng in zip(classes, points, rngs, strict=True)]
    runtimes = [_runtimes(c, s, rng) for c, s, rng in zip(classes, sizes, rngs, strict=True)]
    if load is not None:
        work = sum(float(np.dot(s.astype(np.float64), r)) for s, r in zip(sizes, runtimes, strict=True))
        pace = _pace(points, clocks, work / (processors * load))
        points = [p * pace for p in points]
    submits = [clock(p).astype(np.int64) for clock, p in zip(clocks, points, strict=True)]
    queues = [np.full(len(p), c.queue) for c, p in zip(classes, points, strict=True)]
    parts: dict[str, list[Column]] = {"submit": submits, "size": sizes, "runtime": runtimes, "queue": queues}
    columns = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    if len(classes) > 1:
        order = np.argsort(columns["submit"], kind="stable")  # in the same second interactive jobs come first
        columns = {name: values[order] for name, values in columns.items()}
    return columns


def daily_cycle(job_class: JobClass) -> Floats:
    """The weight of each half hour from midnight, mean 1: how fast jobs arrive then."""
    edge = np.arange(_FIRST_BUCKET, _FIRST_BUCKET + BUCKETS + 1) - 0.5
    upto = np.array([_gamma_cdf(x / job_class.bnum, job_class.anum) for x in edge])
    weights = np.roll(np.diff(upto), _FIRST_BUCKET - 1)
    scaled: Floats = weights * (BUCKETS / weights.sum())
    return scaled


def _gamma_cdf(x: float, shape: float) -> float:
    """The gamma distribution function with scale 1, by its power series (all terms are positive)."""
    term = total = 1.0
    n = 0
    while term > total * 1e-17:
        n += 1
        term *= x / (shape + n)
        total += term
    return total * math.exp(shape * math.log(x) - x - math.lgamma(shape + 1))


def _clock(job_class: JobClass) -> Callable[[Floats], Floats]:
    """Turns points into seconds: a half hour of weight w takes w points, a day 48."""
    upto = np.concatenate([[0.0], np.cumsum(daily_cycle(job_class))])
    upto[-1] = BUCKETS
    edges = np.arange(BUCKETS + 1) * float(BUCKET_S)

    def seconds(points: Floats) -> Floats:
        days, rest = np.divmod(points, float(BUCKETS))
        days *= float(BUCKETS * BUCKET_S)
        days += np.interp(rest, upto, edges)
        return days

    return seconds


def _gamma_below(draw: Callable[[Ints | None], Floats], ceiling: float) -> Floats:
    """Gamma values, those above the ceiling drawn again. `draw(None)` draws all, `draw(where)` some."""
    values = draw(None)
    high = np.flatnonzero(values > ceiling)
    while len(high):
        values[high] = draw(high)
        high = high[values[high] > ceiling]
    return values


def _first_arrivals(classes: tuple[JobClass, ...], jobs: int, rngs: list[np.random.Generator]) -> list[Floats]:
    """Arrivals of each class in points, cut where all classes together have given `jobs` jobs."""
    points = []
    for c, rng in zip(classes, rngs, strict=True):
        log_gap = _gamma_below(
            lambda where, c=c, rng=rng: (  # type: ignore[misc]
                rng.standard_gamma(c.aarr * c.arar, jobs if where is None else len(where)) * c.barr
            ),
            LONGEST_LOG_GAP,
        )
        gap = np.exp(log_gap, out=log_gap)
        gap /= BUCKET_S
        points.append(np.cumsum(gap, out=gap))
    if len(classes) == 1:
        return points
    at = [_clock(c)(p) for c, p in zip(classes, points, strict=True)]
    last = np.partition(np.concatenate(at), jobs - 1)[jobs - 1]
    return [p[: int(np.searchsorted(a, last, side="right"))] for p, a in zip(points, at, strict=True)]


def size_bounds(job_class: JobClass, processors: int) -> tuple[float, float, float]:
    """ulow, umed and uhi on a machine of this many processors; kept in order on machines of less than 16."""
    top = math.log2(processors)
    uhi = min(top, max(1.0, top - job_class.uhi_below))
    umed = max(uhi - job_class.umed_below, min(1.5, uhi))
    return min(job_class.ulow, umed), umed, uhi


def _sizes(job_class: JobClass, processors: int, n: int, rng: np.random.Generator) -> Ints:
    ulow, umed, uhi = size_bounds(job_class, processors)
    u = rng.random(n)
    small = rng.random(n) <= job_class.uprob
    log_size = rng.random(n)
    log_size *= np.where(small, umed - ulow, uhi - umed)
    log_size += np.where(small, ulow, umed)
    pow2 = u <= job_class.serial + job_class.pow2
    # A power of two that would not fit becomes the largest that does.
    log_size[pow2] = np.minimum(np.floor(log_size[pow2] + 0.5), math.floor(math.log2(processors)))
    size = np.floor(np.exp2(log_size) + 0.5).astype(np.int64)
    size[u <= job_class.serial] = 1
    return np.minimum(size, processors, out=size)


def _runtimes(job_class: JobClass, size: Ints, rng: np.random.Generator) -> Ints:
    c = job_class

    def draw(where: Ints | None) -> Floats:
        of = size if where is None else size[where]
        first = rng.random(len(of)) <= c.pa * of + c.pb
        values: Floats = rng.standard_gamma(np.where(first, c.a1, c.a2))
        values *= np.where(first, c.b1, c.b2)
        return values

    log_runtime = _gamma_below(draw, LONGEST_LOG_RUNTIME)
    return np.exp(log_runtime, out=log_runtime).astype(np.int64)


def _pace(points: list[Floats], clocks: list[Callable[[Floats], Floats]], span_s: float) -> float:
    """The factor on all points with which the submits span this many seconds. The daily cycle stays."""
    ends = [(clock, p[[0, -1]]) for clock, p in zip(clocks, points, strict=True) if len(p)]

    def span(pace: float) -> float:
        at = [clock(p * pace) for clock, p in ends]
        return float(max(a[1] for a in at) - min(a[0] for a in at))

    low = high = 1.0
    while span(high) < span_s:
        high *= 2
    while span(low) > span_s:
        low /= 2
    while (high - low) > 1e-15 * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if span(middle) < span_s else (low, middle)
    return high


def _check(jobs: int, processors: int, seed: int, load: float | None, kind: str) -> None:
    if kind not in KINDS:
        raise SettingError(f"no kind {kind!r} of generated jobs; there are {', '.join(KINDS)}")
    if jobs < 1 or processors < 1 or seed < 0:
        raise SettingError(f"jobs, processors >= 1 and seed >= 0 are needed, got {jobs}, {processors} and {seed}")
    if load is not None and not 0 < load < math.inf:
        raise SettingError(f"a load is a positive number, got {load}")
    if load is not None and jobs < 2:
        raise SettingError("one job alone has no load: generate at least two, or give no load")


def _check_load(workload: Workload, load: float) -> None:
    reached = offered_load(workload)
    if abs(reached / load - 1) > 1e-3:
        raise SettingError(
            f"{len(workload)} jobs reach a load of {reached:.4g}, not {load:.4g}: "
            "they arrive too close together for whole seconds; generate more jobs or ask for less load"
        )
