"""Scenarios of a case's workload: one is drawn, done, and judged by obvious code."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Final

from dovetail.errors import SettingError
from dovetail.model.workload import Workload
from dovetail.workloads.scenarios import RANDOM, apply
from tests.simulate.cases import Case
from tests.simulate.checks import Trial, check

Expected = Callable[[Workload, Workload, str], Iterator[str]]
"""From the workload before and after, and what stands behind the name: what is wrong."""


def _whole(value: float) -> int:
    """The nearest whole number, a half up."""
    return math.floor(value + 0.5)


def scale_load(before: Workload, after: Workload, value: str) -> Iterator[str]:
    yield from _squeezed(before, after, float(value))


def set_load(before: Workload, after: Workload, value: str) -> Iterator[str]:
    submit = before.submit.tolist()
    work = sum(size * ran for size, ran in zip(before.size.tolist(), before.runtime.tolist(), strict=True))
    yield from _squeezed(before, after, float(value) / (work / (before.processors * (submit[-1] - submit[0]))))


def _squeezed(before: Workload, after: Workload, factor: float) -> Iterator[str]:
    first, *_ = submit = before.submit.tolist()
    yield from _same(after, "submit", [first + round((at - first) / factor) for at in submit])


def span(before: Workload, after: Workload, value: str) -> Iterator[str]:
    begin, end = (int(text.removesuffix("s")) for text in value.split(".."))
    inside = zip(before["id"].tolist(), before.submit.tolist(), strict=True)
    yield from _same(after, "id", [job for job, at in inside if begin <= at < end])


def sample(before: Workload, after: Workload, value: str) -> Iterator[str]:
    if len(after) != _whole(float(value) * len(before)):
        yield f"{len(after)} of {len(before)} jobs are kept"


def sample_users(before: Workload, after: Workload, value: str) -> Iterator[str]:
    users, left = before["user"].tolist(), set(after["user"].tolist())
    if len(left) != _whole(float(value) * len(set(users))):
        yield f"{len(left)} of {len(set(users))} users are kept"
    if len(after) != sum(user in left for user in users):
        yield "not all jobs of a user are kept"


def nudge(before: Workload, after: Workload, value: str) -> Iterator[str]:
    longer = (after.limit - before.limit).tolist()
    if set(longer) - {0, 1} or sum(longer) != _whole(float(value) * len(before)):
        yield f"limits are longer by {longer}"


def deadlines(before: Workload, after: Workload, value: str) -> Iterator[str]:
    share, least, factor = (part.rpartition("=")[2].removesuffix("s") for part in value.split(","))
    found = after["deadline_s"].tolist()
    if sum(one >= 0 for one in found) != _whole(float(share) * len(before)):
        yield f"{sum(one >= 0 for one in found)} of {len(before)} jobs have deadlines"
    for limit, deadline in zip(before.limit.tolist(), found, strict=True):
        if deadline >= 0 and deadline != max(int(least), round(float(factor) * limit)):
            yield f"a job of {limit} s has {deadline} s"


def periodic_deadlines(before: Workload, after: Workload, value: str) -> Iterator[str]:
    rows = zip(*(before.get(name).tolist() for name in ("user", "name", "size", "limit")), strict=True)
    series: dict[tuple[int, ...], list[int]] = {}
    for job, row in enumerate(rows):
        series.setdefault(row, []).append(job)
    wanted = [-1] * len(before)
    for jobs in series.values():
        for last, job, following in zip(jobs, jobs[1:], jobs[2:], strict=False):
            since, to = (int(before.submit[b] - before.submit[a]) for a, b in ((last, job), (job, following)))
            even = min(since, to) > 0 and abs(since - to) <= float(value) * since
            if even and since >= before.limit[job]:
                wanted[job] = since
    yield from _same(after, "deadline_s", wanted)


def per_node(before: Workload, after: Workload, value: str) -> Iterator[str]:
    cores = int(value.partition(",")[0])
    units, each = [], []
    for size in before.size.tolist():
        many = max(1, math.ceil(Fraction(size, cores)))
        if "gcd" in value and size > cores:
            many = size // math.gcd(size, cores)
        units.append(many)
        each.append(math.ceil(Fraction(size, many)))
    yield from _same(after, "units", units)
    yield from _same(after, "unit_cores", each)
    if "memory" in value:
        per_core = Fraction(value.partition("memory=")[2].partition(",")[0])
        most = math.floor(cores * per_core)
        yield from _same(after, "unit_memory_gb", [min(most, math.ceil(one * per_core)) for one in each])


def power(before: Workload, after: Workload, value: str) -> Iterator[str]:
    least, most = (round(1000 * Fraction(text)) for text in value.split(".."))
    if not all(least <= one <= most for one in after["power_mw"].tolist()):
        yield f"powers are {after['power_mw'].tolist()}"


def shift_to_zero(before: Workload, after: Workload, value: str) -> Iterator[str]:
    yield from _same(after, "submit", [at - int(before.submit[0]) for at in before.submit.tolist()])


JUDGES: Final[dict[str, Expected]] = {
    "scale-load": scale_load, "set-load": set_load, "span": span, "sample": sample, "sample-users": sample_users,
    "nudge": nudge, "deadlines": deadlines, "periodic-deadlines": periodic_deadlines, "per-node": per_node,
    "power": power, "shift-to-zero": shift_to_zero,
}  # fmt: skip
"""All scenarios but `demand`, which needs units and is judged where it is done, and `lengthen`, which knows the days of
Eurora only."""
CHANGED: Final = {
    "scale-load": ("submit",), "set-load": ("submit",), "nudge": ("limit",), "deadlines": ("deadline_s",),
    "periodic-deadlines": ("deadline_s",), "per-node": ("units", "unit_cores", "unit_memory_gb"),
    "power": ("power_mw",), "shift-to-zero": ("submit",),
}  # fmt: skip
"""Columns that a scenario may change; those of all others stay."""


SPLITS: Final = ("", ",memory=3.2", ",split=gcd", ",memory=0.5,split=gcd")


def drawn_scenario(rng: random.Random, workload: Workload) -> str:
    """A scenario that can be done to a workload."""
    last = int(workload.submit[-1])
    names = [name for name in JUDGES if name != "sample-users" or "user" in workload]
    if last == workload.submit[0] or not bool((workload.size * workload.runtime).any()):
        names.remove("set-load")
    name = rng.choice(names)
    share = rng.choice(("0.1", "0.5", "0.75", "1"))
    values = {
        "scale-load": rng.choice(("0.3", "1.2", "2", "7")),
        "set-load": rng.choice(("0.4", "0.9", "1.5")),
        "span": f"{rng.randint(0, last)}s..{rng.randint(last, 2 * last + 1) + 1}s",
        "deadlines": f"{share},least={rng.choice((0, 1, 60))}s,factor={rng.choice(('0', '1', '2.5', '10'))}",
        "periodic-deadlines": rng.choice(("0", "0.1", "0.5")),
        "per-node": f"{rng.choice((1, 2, 3, 8))}{rng.choice(SPLITS)}",
        "power": f"{rng.choice(('5', '7.8'))}..{rng.choice(('7.8', '11.11'))}",
        "shift-to-zero": "",
    }
    value = values.get(name, share)
    return f"{name}={value}" if value else name


def _same(workload: Workload, column: str, wanted: list[int]) -> Iterator[str]:
    if workload[column].tolist() != wanted:
        yield f"{column} is {workload[column].tolist()[:40]}, wanted {wanted[:40]}"


@check(lambda case: not case.large and "units" not in case.jobs)
def scenario(trial: Trial) -> Iterator[str]:
    """A scenario does what it says, changes nothing else, says what it removed, and the same again."""
    before = trial.case.workload
    rng = trial.rng("scenario")
    text = drawn_scenario(rng, before)
    seed = rng.randrange(5)
    name, _, value = text.partition("=")
    after = apply(before, text, seed=seed)
    yield from (f"{text}: {said}" for said in _kept(before, after, name))
    yield from (f"{text}: {said}" for said in JUDGES[name](before, after, value))
    if apply(before, text, seed=seed).digest() != after.digest():
        yield f"{text}: done twice, the jobs are not the same"
    if name not in RANDOM and apply(before, text, seed=seed + 1).digest() != after.digest():
        yield f"{text}: draws, though it is not said to"
    if name == "per-node":
        yield from _demand(rng, after)


def _kept(before: Workload, after: Workload, name: str) -> Iterator[str]:
    """No job is lost without a word, and what a scenario is not about stays as it was."""
    step = after.provenance.steps[-1]
    gone = len(before) - len(after)
    if step.removed != gone or len(after.set_aside) - len(before.set_aside) != gone:
        yield f"{gone} jobs are gone; it says {step.removed}, and {len(after.set_aside)} are set aside"
    where = {job: i for i, job in enumerate(before["id"].tolist())}
    rows = [where[job] for job in after["id"].tolist()]
    if rows != sorted(rows):
        yield "jobs are in another order"
    for column in sorted(set(before.columns) - set(CHANGED.get(name, ()))):
        if after[column].tolist() != before[column][rows].tolist():
            yield f"{column} has changed"


def _demand(rng: random.Random, before: Workload) -> Iterator[str]:
    most = rng.choice((1, 3, 16))
    after = apply(before, f"demand=cores:{most}", seed=3)
    amounts = after["unit_cores"].tolist()
    if not all(1 <= one <= most for one in amounts):
        yield f"demand=cores:{most}: {amounts}"
    yield from _same(after, "size", [n * one for n, one in zip(before["units"].tolist(), amounts, strict=True)])


def possible(case: Case, text: str) -> bool:
    """Whether a scenario can be done to a case at all, and leaves jobs to replay."""
    try:
        return len(apply(case.workload, text)) > 0
    except SettingError:
        return False
