"""Scenarios: the same workload with more load, over a shorter stretch, with fewer jobs or users, on nodes.

Each function returns a new workload and records what it did as a step, named as `apply` would read it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from dovetail.arrays import Ints
from dovetail.errors import SettingError
from dovetail.model.workload import UNIT, Column, Step, Workload
from dovetail.names import settings, unknown
from dovetail.units import DAY_S, MOST_SECONDS, WEEK_S, parse_duration

MOST_AMOUNT: Final = 1_000_000
"""Largest number of cores, or of GB per core, that a node is given by a scenario."""

DRAWS: Final = 1000
"""Draws of `demand`, of which it takes the one whose load is nearest to the mean."""


def offered_load(workload: Workload) -> float:
    """The work that arrives over what the machine could do meanwhile.

    sum(size x run time) / (processors x span); the span is from the first submit to the last. Unknown sizes
    and run times count as 0.
    """
    if workload.processors < 1:
        raise SettingError(f"{workload.name}: its processors are unknown, so it has no load")
    span_s = int(workload.submit[-1] - workload.submit[0]) if len(workload) else 0
    if span_s < 1:
        raise SettingError(f"{workload.name}: its jobs are submitted within one second, so it has no load")
    size, runtime = np.maximum(workload.size, 0), np.maximum(workload.runtime, 0)
    return float(np.dot(size.astype(np.float64), runtime)) / (workload.processors * span_s)


def scale_load(workload: Workload, factor: float) -> Workload:
    """Arrivals `factor` times as dense: each submit's distance from the first is divided by it.

    The distance is rounded to the nearest second (an exact half to the even one), so no error adds up; the
    first submit stays. The daily cycle is stretched or squeezed along with the rest.
    """
    return _scaled(workload, factor, f"scale-load={factor:g}")


def set_load(workload: Workload, load: float) -> Workload:
    """`scale_load` with the factor that makes the offered load this; exact but for rounding to seconds."""
    _positive("load", load)
    return _scaled(workload, load / offered_load(workload), f"set-load={load:g}")


def span(workload: Workload, begin_s: int, end_s: int) -> Workload:
    """The jobs with begin <= submit < end, in the workload's own seconds. Times are kept as they are."""
    if begin_s >= end_s:
        raise SettingError(f"a span begins before it ends, got {begin_s}..{end_s}")
    keep = (workload.submit >= begin_s) & (workload.submit < end_s)
    return workload.take(keep, f"span={begin_s}..{end_s}")


def stretches(workload: Workload, length_s: int = WEEK_S) -> list[tuple[int, int]]:
    """Begin and end of spans of equal length (a week) from the first submit on, up to the one of the last submit."""
    if not len(workload):
        return []
    first, last = int(workload.submit[0]), int(workload.submit[-1])
    return [(begin, begin + length_s) for begin in range(first, last + 1, length_s)]


def sample(workload: Workload, share: float, seed: int) -> Workload:
    """A random part of the jobs: `share` of them, to the nearest whole number."""
    keep = np.zeros(len(workload), np.bool_)
    keep[_choose(len(workload), share, seed)] = True
    return workload.take(keep, f"sample={share:g} seed={seed}")


def sample_users(workload: Workload, share: float, seed: int) -> Workload:
    """All jobs of a random part of the users: `share` of them, to the nearest whole number.

    Jobs without a known user count as the jobs of one more user.
    """
    if "user" not in workload:
        raise SettingError(f"{workload.name} has no users to sample; sample jobs instead: sample={share:g}")
    users, user = np.unique(workload["user"], return_inverse=True)
    chosen = np.zeros(len(users), np.bool_)
    chosen[_choose(len(users), share, seed)] = True
    return workload.take(chosen[user], f"sample-users={share:g} seed={seed}")


def nudge(workload: Workload, share: float, seed: int) -> Workload:
    """The limits of a random part of the jobs a second longer. That helps no job: what it changes is chance."""
    limit = workload.limit.copy()
    limit[_choose(len(workload), share, seed)] += 1
    changed = int(np.sum(limit != workload.limit))
    return workload.with_columns(Step(f"nudge={share:g} seed={seed}", changed=changed), limit=limit)


def deadlines(workload: Workload, share: float, seed: int, *, least_s: int = DAY_S, factor: float = 10.0) -> Workload:
    """A random part of the jobs gets a deadline: each must have ended within `least_s` of its arrival, or within
    `factor` times its limit if that is longer. The other jobs have none."""
    chosen = _choose(len(workload), share, seed)
    allowed = np.maximum(least_s, np.rint(factor * workload.limit[chosen]))
    if least_s < 0 or not factor >= 0 or not np.all(allowed <= MOST_SECONDS):
        raise SettingError(f"least={least_s} s, factor={factor:g}: deadlines are from 0 to {MOST_SECONDS:,} s")
    deadline_s = np.full(len(workload), -1, np.int64)
    deadline_s[chosen] = allowed.astype(np.int64)
    name = f"deadlines={share:g},least={least_s}s,factor={factor:g} seed={seed}"
    return workload.with_columns(Step(name, changed=len(chosen)), deadline_s=deadline_s)


def periodic_deadlines(workload: Workload, tolerance: float) -> Workload:
    """Jobs that come again and again must have ended before the next of them is due. The other jobs have no deadline.

    A job is one of a series if the same user submits jobs of its name, size and limit, and the time since the last one
    differs from the time to the next by at most `tolerance` of it. Its deadline is the former, if its limit allows."""
    if not 0 <= tolerance < 1:
        raise SettingError(f"periodic-deadlines={tolerance:g}: must be from 0 to below 1, as 0.1")
    kinds = [workload.get(column) for column in ("user", "name", "size", "limit")]
    order = np.lexsort((np.arange(len(workload)), *kinds))
    since, to = np.zeros(len(workload), np.int64), np.zeros(len(workload), np.int64)
    same = np.all([kind[order][1:] == kind[order][:-1] for kind in kinds], axis=0)
    gaps = np.where(same, np.diff(workload.submit[order]), 0)
    since[order[1:]], to[order[:-1]] = gaps, gaps
    periodic = (np.minimum(since, to) > 0) & (abs(since - to) <= tolerance * since) & (since >= workload.limit)
    step = Step(f"periodic-deadlines={tolerance:g}", changed=int(periodic.sum()))
    return workload.with_columns(step, deadline_s=np.where(periodic, since, -1))


def power(workload: Workload, least_w: Fraction, most_w: Fraction, seed: int) -> Workload:
    """Draw what each processor of a job draws, a whole number of milliwatts, each as likely as any other."""
    least, most = (round(1000 * watts) for watts in (least_w, most_w))
    if least > most:
        raise SettingError(f"power: {float(least_w):g} W is above {float(most_w):g} W")
    rng = np.random.Generator(np.random.PCG64(seed))
    drawn: Column = rng.integers(least, most, size=len(workload), endpoint=True)
    step = Step(f"power={float(least_w):g}..{float(most_w):g}", changed=len(workload))
    return workload.with_columns(step, power_mw=drawn)


def shift_to_zero(workload: Workload) -> Workload:
    """All submits earlier by the first one, which becomes 0."""
    first = int(workload.submit[0]) if len(workload) else 0
    return workload.with_columns(
        Step("shift-to-zero", changed=len(workload) if first else 0), submit=workload.submit - first
    )


def per_node(workload: Workload, cores: int, memory_gb: Fraction | None = None, split: str = "even") -> Workload:
    """Jobs that ask for processors as jobs on nodes of `cores`: ceil(size / cores) units of ceil(size / units) cores.

    `split` "gcd": a job of more than a node is split into units of as many cores as divide both its size and `cores`,
    so that it asks for what it asked for: 30 cores on nodes of 20 are 3 units of 10, and not 2 of 15.
    `memory_gb`: a unit asks for this much memory per core, rounded up to whole GB, and for no more than a node of
    `cores` has by that rule, rounded down. A unit may share its node. `size` stays as it is, so it may be a few less
    than the cores of all units. Jobs of unknown size keep it, as one unit of no core.
    """
    most = MOST_AMOUNT // cores if cores > 0 else 0
    if not 1 <= cores <= MOST_AMOUNT or not (memory_gb is None or 0 < memory_gb <= most):
        rule = f"a node has from 1 to {MOST_AMOUNT:,} cores, and memory is above 0 GB per core"
        raise SettingError(f"per-node={cores},memory={memory_gb}: {rule}")
    size = np.maximum(workload.size, 0)
    units = np.maximum(-(-size // cores), 1)
    name = f"per-node={cores}"
    if split == "gcd":
        units = np.where(size > cores, size // np.gcd(np.maximum(size, 1), cores), units)
        name += ",split=gcd"
    columns: dict[str, Column] = {"units": units, "unit_cores": -(-size // units)}
    if memory_gb is not None:
        has = math.floor(cores * memory_gb)
        needs = np.array([min(has, math.ceil(n * memory_gb)) for n in range(cores + 1)], np.int64)
        columns["unit_memory_gb"] = needs[columns["unit_cores"]]
        name += f",memory={float(memory_gb):g}"
    return workload.with_columns(Step(name, changed=len(workload)), **columns)


def demand(workload: Workload, resource: str, most: int, seed: int) -> Workload:
    """Each unit asks for 1 to `most` of a resource, all equally likely, whatever else it asks for.

    A few jobs are most of the work, so chance alone would make the load of one resource higher than that of another. Of
    DRAWS draws the one is taken whose sum of units x amount x run time is nearest to that of the mean amount. Each
    resource has random numbers of its own: one more leaves the others as they are. `size` follows the cores.
    """
    if not 1 <= most <= MOST_AMOUNT or seed < 0 or not re.fullmatch("[a-z0-9_]+", resource):
        rule = f"a resource is called by a-z, 0-9 and _; amounts are from 1 to {MOST_AMOUNT:,}, a seed is 0 or more"
        raise SettingError(f"demand={resource}:{most} seed={seed}: {rule}")
    if "units" not in workload:
        raise SettingError(f"demand: {workload.name} has no units to ask for {resource}; make some first: per-node=1")
    rng = np.random.Generator(np.random.PCG64([seed, *resource.encode()]))
    work = workload["units"].astype(np.float64) * np.maximum(workload.runtime, 0)
    wanted, nearest, amount = (most + 1) / 2 * float(work.sum()), math.inf, np.zeros(len(workload), np.int64)
    for _ in range(DRAWS):
        drawn = rng.integers(1, most + 1, size=len(workload))
        off = abs(float(drawn @ work) - wanted)
        if off < nearest:
            nearest, amount = off, drawn
    columns: dict[str, Column] = {f"{UNIT}{resource}": amount}
    if resource == "cores":
        columns["size"] = workload["units"] * amount
    return workload.with_columns(Step(f"demand={resource}:{most} seed={seed}", changed=len(workload)), **columns)


def apply(workload: Workload, text: str, *, seed: int = 0) -> Workload:
    """One transform as the command line writes it: `scale-load=1.2`, `span=0d..30d`, `sample=0.1`, ..."""
    name, equals, value = text.strip().partition("=")
    if name not in _TRANSFORMS:
        said = unknown("scenario", name, _TRANSFORMS)
        raise SettingError(said if said.endswith("?") else f"no scenario {name!r}; there are {_forms()}")
    form, transform = _TRANSFORMS[name]
    if bool(equals) != ("=" in form):
        raise SettingError(f"{text!r} is not of the form {form}")
    return transform(workload, value, seed)


def _scaled(workload: Workload, factor: float, name: str) -> Workload:
    _positive("factor", factor)
    if not len(workload):
        return workload.with_step(Step(name))
    first = workload.submit[0]
    offset = np.rint((workload.submit - first) / factor)
    if offset[-1] + abs(float(first)) >= 2.0**53:
        raise SettingError(f"{name}: the submits would no longer be exact in whole seconds; take a larger factor")
    submit: Column = first + offset.astype(np.int64)
    return workload.with_columns(Step(name, changed=int(np.sum(submit != workload.submit))), submit=submit)


def _choose(count: int, share: float, seed: int) -> Ints:
    """Which of `count` things to keep: distinct positions, as many as the share says."""
    if not 0 < share <= 1:
        raise SettingError(f"a share is above 0 and at most 1, got {share:g}")
    if seed < 0:
        raise SettingError(f"a seed is 0 or more, got {seed}")
    rng = np.random.Generator(np.random.PCG64(seed))
    chosen: npt.NDArray[np.int64] = rng.choice(count, size=math.floor(share * count + 0.5), replace=False)
    return chosen


def _positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise SettingError(f"a {name} is a positive number, got {value}")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SettingError(f"{text!r} is not a number") from None


def _with_deadlines(workload: Workload, text: str, seed: int) -> Workload:
    share, _, rest = text.partition(",")
    found = settings(rest, f"deadlines={text}", {"least": parse_duration, "factor": float})
    return deadlines(
        workload, _number(share), seed, least_s=found.get("least", DAY_S), factor=found.get("factor", 10.0)
    )


def _per_node(workload: Workload, text: str, seed: int) -> Workload:
    cores, _, rest = text.partition(",")
    found = settings(rest, f"per-node={text}", {"memory": _fraction, "split": _split})
    if not cores.strip().isdecimal() or len(cores.strip()) > 9:
        raise SettingError(f"per-node={text}: write the cores of a node, a whole number, first: per-node=20,memory=3.2")
    return per_node(workload, int(cores), found.get("memory"), found.get("split", "even"))


def _split(text: str) -> str:
    if text not in ("even", "gcd"):
        raise ValueError("choose from even, gcd")
    return text


def _power(workload: Workload, text: str, seed: int) -> Workload:
    least, dots, most = text.partition("..")
    try:
        watts = _fraction(least), _fraction(most if dots else least)
    except ValueError:
        raise SettingError(f"power={text}: write watts a processor, one number or two: power=7.8..11.11") from None
    return power(workload, *watts, seed)


def _demand(workload: Workload, text: str, seed: int) -> Workload:
    resource, _, most = text.strip().partition(":")
    if not most.isdecimal() or len(most) > 9:
        raise SettingError(f"demand={text}: write a resource and the most that a unit asks for: demand=memory_gb:16")
    return demand(workload, resource, int(most), seed)


def _fraction(text: str) -> Fraction:
    """The number as it is written: 3.2 is 16/5, so that 20 x 3.2 is exactly 64."""
    if not 1e-9 <= float(text) <= MOST_AMOUNT:
        raise ValueError(f"must be a number above 0, at most {MOST_AMOUNT:,}")
    return Fraction(text)


def _lengthened(workload: Workload, text: str, seed: int) -> Workload:
    from dovetail.workloads.resample import MIXES, lengthen

    jobs, _, rest = text.partition(",")
    found = settings(rest, f"lengthen={text}", {"mix": str, "days": int})
    if not jobs.strip().isdecimal() or len(jobs.strip()) > 9:
        raise SettingError(f"lengthen={text}: write the number of jobs first: lengthen=400000,mix={'|'.join(MIXES)}")
    return lengthen(workload, int(jobs), seed, **found)


def _between(text: str) -> tuple[int, int]:
    begin, dots, end = text.partition("..")
    if not dots:
        raise SettingError(f"{text!r} is not a span: write its start and end, 0d..30d")
    try:
        return parse_duration(begin), parse_duration(end)
    except ValueError as error:
        raise SettingError(str(error)) from None


RANDOM: Final = ("sample", "sample-users", "nudge", "deadlines", "demand", "lengthen", "power")
"""Transforms that draw: what they give depends on the seed."""

_TRANSFORMS: Final[dict[str, tuple[str, Callable[[Workload, str, int], Workload]]]] = {
    "scale-load": ("scale-load=FACTOR", lambda w, text, seed: scale_load(w, _number(text))),
    "set-load": ("set-load=LOAD", lambda w, text, seed: set_load(w, _number(text))),
    "span": ("span=BEGIN..END", lambda w, text, seed: span(w, *_between(text))),
    "sample": ("sample=SHARE", lambda w, text, seed: sample(w, _number(text), seed)),
    "sample-users": ("sample-users=SHARE", lambda w, text, seed: sample_users(w, _number(text), seed)),
    "nudge": ("nudge=SHARE", lambda w, text, seed: nudge(w, _number(text), seed)),
    "deadlines": ("deadlines=SHARE[,least=24h,factor=10]", _with_deadlines),
    "periodic-deadlines": (
        "periodic-deadlines=TOLERANCE",
        lambda w, text, seed: periodic_deadlines(w, _number(text)),
    ),
    "per-node": ("per-node=CORES[,memory=GB_PER_CORE][,split=gcd]", _per_node),
    "demand": ("demand=RESOURCE:MOST", _demand),
    "lengthen": ("lengthen=JOBS[,mix=recorded|reported,days=DAYS]", _lengthened),
    "power": ("power=LEAST_W..MOST_W", _power),
    "shift-to-zero": ("shift-to-zero", lambda w, text, seed: shift_to_zero(w)),
}


def _forms() -> str:
    return ", ".join(form for form, _ in _TRANSFORMS.values())
