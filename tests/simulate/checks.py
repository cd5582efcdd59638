"""What must hold of a case. Each check says what is wrong; one that says nothing is content."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, count
from math import isclose, isnan
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from dovetail.arrays import Ints
from dovetail.engine.compiled import new_replay
from dovetail.engine.estimates import estimator_of
from dovetail.engine.replay import finished
from dovetail.errors import SettingError
from dovetail.kernels.passes.order import CODES, MOVING
from dovetail.metrics import summarize
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.requests import requests_of
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.policies.base import Asked, Policy
from dovetail.policies.conservative import Conservative
from dovetail.policies.deadline import DeadlineBackfilling
from dovetail.policies.lists import ORDERS, ListPolicy
from dovetail.policies.planner import Planner
from dovetail.predict.base import Predictor
from dovetail.predict.history import Hierarchy, Recent, Similar, Survival
from dovetail.predict.known import is_known
from dovetail.predict.quantile import Quantile
from dovetail.predict.registry import predictor
from dovetail.referee import check_plan, check_schedule
from dovetail.workloads.filters import clean
from tests.contract.cases import protects, slow_of
from tests.simulate.cases import Case, kept
from tests.slow import predict as slow_predict
from tests.slow.metrics import slow_metrics
from tests.slow.nodes import NodeJob, TypicalJob, bits, machine_of
from tests.slow.policies import Machine, Size, SlowJob, slow_replay

COLUMNS: Final = ("start", "arrive", "promised_first", "promised_last", "accepted", "said")
WEEK_S: Final = 7 * 86400


class Trial:
    """A case that is being judged: its schedule, made once, and how many events were replayed and judged."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.events = 0

    def rng(self, name: str) -> random.Random:
        """Numbers for one check, always the same ones."""
        return random.Random(f"{name} {self.case.seed} {len(self.case)}")

    def replay(self, case: Case | None = None, **options: Any) -> Schedule:
        """A replay whose outcome is judged: each job's arrival and each end is an event."""
        case = self.case if case is None else case
        made = case.replay(**options)
        self.events += 2 * len(case)
        return made

    @cached_property
    def made(self) -> Schedule:
        """What the engine makes of the case, with all promises written down."""
        return self.replay(keep=True)


Judge = Callable[[Trial], Iterator[str]]
When = Callable[[Case], bool]


@dataclass(frozen=True)
class Check:
    """One thing that must hold, of the cases for which `when` is true; it is tried in a `part` of them."""

    judge: Judge
    when: When
    part: float = 1.0


CHECKS: Final[dict[str, Check]] = {}


def check(when: When = lambda case: True, part: float = 1.0) -> Callable[[Judge], Judge]:
    """A function that judges as a check of its name."""

    def add(judge: Judge) -> Judge:
        CHECKS[judge.__name__] = Check(judge, when, part)
        return judge

    return add


def differences(
    made: Schedule, wanted: Schedule, columns: tuple[str, ...] = COLUMNS, *, keep: Any = None
) -> Iterator[str]:
    """Where two schedules of the same jobs are not the same; of the wanted one, only the jobs in `keep`."""
    for column in columns:
        have, want = getattr(made, column), getattr(wanted, column)
        if keep is not None and len(want):
            want = want[keep]
        if have.shape != want.shape:
            yield f"{column}: {len(have)} values, wanted {len(want)}"
        elif not np.array_equal(have, want):
            job = int(np.flatnonzero(have != want)[0])
            yield f"{column} of job {job} is {have[job]}, wanted {want[job]}"
    if keep is None and made.placement is not None and wanted.placement is not None:
        for column in ("node", "devices"):
            have, want = getattr(made.placement, column), getattr(wanted.placement, column)
            if not np.array_equal(have, want):
                yield f"{column}s {have.tolist()[:50]}, wanted {want.tolist()[:50]}"


# By other code ----------------------------------------------------------------------------------------------


@check()
def referee(trial: Trial) -> Iterator[str]:
    """The schedule breaks no rule; promises hold where they must."""
    case = trial.case
    told = all(one.told == 0 for one in case.cluster.outages)  # else a promise may have to be broken
    keeps = case.bounded and not case.every_s and told and protects(case.rule)
    for violation in check_schedule(trial.made, promises=keeps):
        yield str(violation)


def _judged_slowly(case: Case) -> bool:
    return len(case) < 100 and case.known is not None and slow_of(case.rule) is not None


@check(_judged_slowly)
def slow(trial: Trial) -> Iterator[str]:
    """The schedule is the one of slow obvious code."""
    case, made, policy = trial.case, trial.made, slow_of(trial.case.rule)
    assert policy is not None
    wanted = slow_replay(
        slow_jobs(case), slow_machine(made), policy, feedback=case.feedback, every=case.every_s or None
    )
    for column in ("start", "arrive", "promised_first", "promised_last", "accepted"):
        have, want = getattr(made, column).tolist(), getattr(wanted, column)
        if have != want and (column != "accepted" or max(want) >= 0):
            job = next(j for j, both in enumerate(zip(have, want, strict=True)) if both[0] != both[1])
            yield f"{column} of job {job} is {have[job]}, and {want[job]} slowly"
    if made.passes != wanted.passes:
        yield f"{made.passes} passes, and {wanted.passes} slowly"
    if made.placement is None:
        return
    for job in np.flatnonzero(made.start >= 0).tolist():
        nodes = made.placement.of(job).tolist()
        devices = made.placement.devices_of(job).tolist() if case.cluster.shared else list(wanted.devices[job])
        if (nodes, devices) != (list(wanted.nodes[job]), list(wanted.devices[job])):
            slowly = f"{wanted.nodes[job]}, devices {wanted.devices[job]} slowly"
            yield f"job {job} is on nodes {nodes}, devices {devices}, and on {slowly}"


def slow_jobs(case: Case) -> list[SlowJob]:
    """The jobs of a case as slow code has them."""
    jobs, known = case.workload, case.known
    assert known is not None
    where = {job: i for i, job in enumerate(jobs["id"].tolist())}
    after = [where.get(job, -1) if job > 0 else -1 for job in jobs.get("after").tolist()]
    takes = case.cluster.takes(jobs).tolist()
    sizes: list[Size] = [(size, *taken) for size, taken in zip(jobs.size.tolist(), takes, strict=True)]
    think, deadline = np.maximum(jobs.get("think_s"), 0).tolist(), jobs.get("deadline_s").tolist()
    rows = zip(jobs.submit.tolist(), sizes, jobs.runtime.tolist(), known.tolist(), after, think, deadline, strict=True)
    comes = zip(jobs.held_s.tolist(), jobs.get("leaves_s").tolist(), strict=True)
    plain = [SlowJob(*row, not_before=held, leaves=leaves) for row, (held, leaves) in zip(rows, comes, strict=True)]
    if not case.cluster.kinds:
        return plain
    asked = requests_of(jobs, case.cluster)
    columns = (asked.units, asked.share, asked.per_node, asked.exclusive, asked.reservation)
    will_do = [bits(asked, job) for job in range(len(jobs))]
    more = zip(*(column.tolist() for column in columns), will_do, asked.need.tolist(), strict=True)
    return [
        NodeJob(
            one.submit, one.size, one.runtime, one.estimate, one.after, one.think, one.deadline, units, tuple(need),
            share, per_node, bool(exclusive), kinds, ("", *case.cluster.reservations)[1 + reservation],
            one.size[1:], not_before=one.not_before, leaves=one.leaves,
        )
        for one, (units, share, per_node, exclusive, reservation, kinds, need) in zip(plain, more, strict=True)
    ]  # fmt: skip


def slow_machine(made: Schedule) -> int | Size | Machine:
    """The machine of a schedule as slow code has it."""
    cluster = made.cluster
    if not cluster.kinds:
        return (cluster.processors, *cluster.counted.values())
    types = tuple(TypicalJob(t.part, tuple(t.need), t.share, t.kinds) for t in cluster.typical)
    return machine_of(cluster, made_place(made), types)


def made_place(made: Schedule) -> str:
    """By which rule the jobs of a schedule were placed."""
    from dovetail.policies.registry import policy

    return policy(made.policy).place


@check(lambda case: not case.large)
def metrics(trial: Trial) -> Iterator[str]:
    """All metrics are those of slow obvious code, to rounding."""
    made = trial.made
    site = None if made.lost else trial.case.site  # what a lost run draws is not counted
    counting = trial.rng("metrics").choice(("all", "all", "ended"))
    have, want = summarize(made, site, counting=counting), slow_metrics(made, site, counting)
    if list(have) != list(want):
        yield f"there are other metrics than slowly: {sorted(set(have) ^ set(want)) or 'in another order'}"
        return
    for key, value in have.items():
        if not isclose(value, want[key], rel_tol=1e-12, abs_tol=1e-15) and not (isnan(value) and isnan(want[key])):
            yield f"{key} ({counting}) is {value!r}, and {want[key]!r} slowly"


def _slow_predictor(case: Case) -> Predictor | None:
    """The predictor of a case in slow code; None where that does not know its settings."""
    if not isinstance(case.estimate, str) or ".py" in case.estimate or is_known(case.estimate):
        return None
    one = predictor(case.estimate)
    if isinstance(one, Recent) and one.jobs == 2:
        return slow_predict.SlowRecent(one.correct)
    if isinstance(one, Similar):
        return slow_predict.SlowSimilar(one.correct)
    if isinstance(one, Hierarchy) and one.share == 0.3:
        return slow_predict.SlowHierarchy(one.correct)
    if isinstance(one, Survival):
        return slow_predict.SlowSurvival(one.correct, one.risk, one.share, one.jobs)
    if isinstance(one, Quantile) and one.correct != "again":
        return slow_predict.SlowQuantile(one.correct, one.level)
    return None


@check(lambda case: not case.large and not case.rule.clairvoyant and _slow_predictor(case) is not None)
def predicted(trial: Trial) -> Iterator[str]:
    """Estimates, and what is decided with them, are those of a slow predictor."""
    theirs = trial.replay(keep=True, estimate=_slow_predictor(trial.case))
    yield from differences(trial.made, theirs)


# By the other engine, and stopped on the way ----------------------------------------------------------------


@check(lambda case: not case.large)
def stepped(trial: Trial) -> Iterator[str]:
    """Event by event the schedule is the same, each plan on the way is legal, and asked twice it is the same."""
    said: list[str] = []
    again = trial.replay(keep=True, event_by_event=True, policy=_watched(trial.case, said))
    yield from said[:3]
    yield from differences(trial.made, again)
    if trial.case.rule.compiled and trial.made.passes != again.passes:
        yield f"{trial.made.passes} passes, and {again.passes} event by event"


def _watched(case: Case, said: list[str]) -> Policy:
    """The same policy; what is wrong with its plans is said."""
    found = copy(case.rule)
    # First reservations of a list that pushes them back are no plan of one instant.
    legal = not (isinstance(found, ListPolicy) and found.keeps_promises)

    class Watched(type(found)):  # type: ignore[misc]
        def decide(self, state: State) -> Plan:
            plan: Plan = super().decide(state)
            told = all(one.told == 0 for one in case.cluster.outages)
            broken = check_plan(state, plan, deadlines=case.bounded and told) if legal else []
            if not (case.bounded and told):  # a job that is overdue breaks promises, and so does a node that fails
                broken = [one for one in broken if not one.rule.startswith("promise")]
            said.extend(f"at {state.now}: {one}" for one in broken)
            again = super().decide(state)
            if (list(again.starts), again.promised, again.wake) != (list(plan.starts), plan.promised, plan.wake):
                said.append(f"at {state.now}: asked twice, starts {list(plan.starts)} and {list(again.starts)}")
            return plan

    object.__setattr__(found, "__class__", Watched)
    return found


@check()
def bare(trial: Trial) -> Iterator[str]:
    """Without promises written down passes take shorter ways, to the same starts."""
    yield from differences(trial.replay(), trial.made, ("start", "arrive"))


@check(lambda case: case.rule.compiled)
def again(trial: Trial) -> Iterator[str]:
    """The same replay once more gives the same bytes; so does one that stops to tell how far it is."""
    told: list[int] = []
    yield from differences(trial.replay(keep=True, progress=told.append), trial.made)
    if told != sorted(told) or told[-1:] != [len(trial.case)]:
        yield f"progress is told as {told}"


def _forks(case: Case) -> bool:
    learner = isinstance(case.estimate, str) and estimator_of(case.workload, case.estimate).asked
    return case.rule.forks and not learner and case.site is None


@check(_forks)
def resumed(trial: Trial) -> Iterator[str]:
    """Stopped at some instants, copied, and grown from little room: the schedule is the same."""
    case, rng, made = trial.case, trial.rng("resumed"), trial.made
    estimator = estimator_of(case.workload, case.estimate)
    asked = Asked(case.every_s, estimator.bounded, False, True, case.seed, bool(case.cluster.kinds))
    going = new_replay(
        case.workload, made.cluster, case.rule.rule(asked), estimator.learner, feedback=case.feedback,
        room=rng.choice((1, 4, 1024)), place=case.rule.place,
    )  # fmt: skip
    last = int(made.start.max(initial=0)) + 5
    for until in sorted(rng.randint(-1, last) for _ in range(rng.randint(1, 8))):
        going.advance(until)
        wanted = np.where(made.start <= until, made.start, -1)
        for one in made.lost:
            if one.start <= until < one.end:
                wanted[one.job] = one.start
        if not np.array_equal(going.start, wanted):
            yield f"stopped at {until}, other jobs have started"
            return
        if rng.random() < 0.5:
            going = going.copy()
    going.advance()
    trial.events += 2 * len(case)
    whole = finished(going, case.workload, made.cluster, case.rule, case.estimate, case.seed)
    yield from differences(whole, made)
    if whole.passes != made.passes:
        yield f"{whole.passes} passes, and {made.passes} in one go"


def _chargeable(case: Case) -> bool:
    late = case.cluster.outages or "leaves_s" in case.jobs
    return not (case.large or "charge" in case.rule.cannot or case.rule.by_solver or late)


@check(_chargeable, part=0.1)
def charged(trial: Trial) -> Iterator[str]:
    """Where decisions take time, by a clock that is drawn, no rule is broken."""
    rng = trial.rng("charged")
    slow = rng.choice((0.01, 1, 10))
    clock = accumulate(int(slow * rng.expovariate(1e-9)) for _ in count())
    with patch("dovetail.engine.replay.time.thread_time_ns", lambda: next(clock)):
        made = trial.replay(charge_decisions=1)
    yield from map(str, check_schedule(made))


@check(lambda case: not (case.large or case.feedback or case.cluster.kinds or case.cluster.counted))
def recorded(trial: Trial) -> Iterator[str]:
    """A schedule written down as a log is what happened, by that log: the same starts and metrics, no rule broken."""
    case, made = trial.case, trial.made
    wait = np.where(made.start >= 0, made.start - case.jobs["submit"], -1)
    log = replace(case, policy="recorded", every_s=0, site=None, jobs={**case.jobs, "wait": wait})
    again = trial.replay(log)
    yield from differences(again, made, ("start", "arrive"))
    want = {**summarize(replace(made, accepted=made.accepted[:0])), "rules_broken": 0}
    have = summarize(again)
    if repr(have) != repr(want):
        yield f"metrics differ: {sorted(key for key in want if repr(have.get(key)) != repr(want[key]))}"


# By another case that must come out the same ----------------------------------------------------------------


def _timeless(case: Case) -> bool:
    """No hour of the day counts."""
    return case.site is None and not _named(case, "online", "cvh")


def _named(case: Case, *names: str) -> bool:
    return isinstance(case.estimate, str) and case.estimate.partition(":")[0] in names


@check(_timeless)
def shifted(trial: Trial) -> Iterator[str]:
    """All of it later is the same schedule later."""
    case = trial.case
    by = trial.rng("shifted").choice((1, 7, 1000, 10**9)) * max(case.every_s, 1)
    cluster = _moved(case.cluster, lambda at: at + by)
    later = replace(case, jobs={**case.jobs, "submit": case.jobs["submit"] + by}, cluster=cluster)
    yield from _same_times(trial.replay(later, keep=True), trial.made, lambda at: at + by, f"{by} s later")


def _moved(cluster: Cluster, moved: Callable[[int], int]) -> Cluster:
    """The same with outages at other times."""
    outages = tuple(
        replace(one, begin=moved(one.begin), end=moved(one.end), known=moved(one.known)) for one in cluster.outages
    )
    return replace(cluster, outages=outages)


def _same_times(made: Schedule, wanted: Schedule, moved: Callable[[Ints], Ints], how: str) -> Iterator[str]:
    """All instants of a schedule, moved, are those of another."""
    for column in ("start", "arrive", "promised_first", "promised_last"):
        have, want = getattr(made, column), getattr(wanted, column)
        want = np.where(want >= 0, moved(want), want)
        if not np.array_equal(have, want):
            job = int(np.flatnonzero(have != want)[0])
            yield f"{column} of job {job} is {have[job]} {how}, wanted {want[job]}"


def _scales(case: Case) -> bool:
    """Nothing is counted in seconds of its own: no job is overdue by one, no setting is a time or rounds one, and no
    search is drawn by how long jobs have waited."""
    rule = case.rule
    if isinstance(rule, ListPolicy):
        plain = rule.starve_s is None and not rule.keeps_promises and rule.order in ORDERS
    elif isinstance(rule, Planner):
        plain = rule.starve_s is None and "bsld" not in rule.objective and not (rule.foresight or rule.decodes)
    else:
        plain = isinstance(rule, Conservative | DeadlineBackfilling)
    return plain and case.bounded


@check(_scales)
def scaled(trial: Trial) -> Iterator[str]:
    """All times longer is the same schedule, longer. Powers of two: floats stay exact."""
    case = trial.case
    by = trial.rng("scaled").choice((2, 4, 64))
    times = {"submit", "runtime", "limit", "think_s", "deadline_s", "not_before_s", "leaves_s"} & set(case.jobs)
    jobs = {
        **case.jobs,
        **{name: np.where(case.jobs[name] > 0, case.jobs[name] * by, case.jobs[name]) for name in times},
    }
    assert case.known is not None
    cluster = _moved(case.cluster, lambda at: at * by)
    longer = replace(case, jobs=jobs, estimate=case.known * by, every_s=case.every_s * by, cluster=cluster)
    yield from _same_times(trial.replay(longer, keep=True), trial.made, lambda at: at * by, f"{by} times longer")


@check(lambda case: case.known is not None and not case.rule.clairvoyant)
def misfit(trial: Trial) -> Iterator[str]:
    """A job that cannot run is refused; set aside, it changes nothing for the others."""
    case, rng = trial.case, trial.rng("misfit")
    at = rng.randint(0, len(case))
    jobs = {name: np.insert(values, at, values[min(at, len(case) - 1)]) for name, values in case.jobs.items()}
    jobs["id"][at] = int(jobs["id"].max()) + 1
    column, value = rng.choice((("size", case.cluster.processors + 1), ("runtime", 0), ("limit", -1), ("size", -1)))
    jobs[column][at] = value
    if "units" in jobs and column == "size" and value > 0:
        jobs["units"][at] = case.cluster.processors + 1
    estimate: str | Ints = "limit" if isinstance(case.estimate, str) else np.insert(case.estimate, at, 1)
    more = replace(case, jobs=jobs, estimate=estimate)
    try:
        more.replay()
        yield f"a job with {column} {value} is not refused"
    except SettingError:
        pass
    cleaned = clean(more.workload, ["standard:overrun=run"])
    if len(cleaned) != len(case) or cleaned.set_aside.id.tolist() != [int(jobs["id"][at])]:
        yield f"of {len(case)} jobs and one with {column} {value}, {len(cleaned)} are kept"
        return
    fewer = replace(case, jobs=dict(cleaned.columns))
    yield from differences(trial.replay(fewer, keep=True), trial.made)


@check()
def renamed(trial: Trial) -> Iterator[str]:
    """Other numbers for jobs, users, groups, names and queues, the equal ones still equal: nobody starts otherwise."""
    case, rng = trial.case, trial.rng("renamed")
    if "by_user" in case.policy:
        return
    jobs = dict(case.jobs)
    fresh = rng.sample(range(1, 10 * len(case)), len(case))
    new = dict(zip(jobs["id"].tolist(), fresh, strict=True))
    jobs["id"] = np.array(fresh, np.int64)
    if "after" in jobs:
        jobs["after"] = np.array([new.get(job, -1) for job in jobs["after"].tolist()], np.int64)
    for column in sorted({"user", "group", "name", "queue"} & set(jobs)):
        several = np.unique(jobs[column])
        others = rng.sample(range(100 * len(several)), len(several))
        jobs[column] = np.array(others, np.int64)[np.searchsorted(several, jobs[column])]
    yield from differences(trial.replay(replace(case, jobs=jobs), keep=True), trial.made)


def _static(case: Case) -> bool:
    rule = case.rule
    orders = (rule.order, rule.backfill or rule.order) if isinstance(rule, ListPolicy) else ()
    keyed = orders and all(order in ORDERS and CODES[str(order)] not in MOVING for order in orders)
    return bool(keyed) and rule.starve_s is None and case.known is not None and not case.feedback  # type: ignore[attr-defined]


@check(_static)
def swapped(trial: Trial) -> Iterator[str]:
    """Jobs of one second in another order of lines, those with equal keys in the same: each starts as before."""
    from tests.slow.policies import order_key

    case, rng, rule = trial.case, trial.rng("swapped"), trial.case.rule
    assert isinstance(rule, ListPolicy)
    if case.large:
        return
    keys = [
        [order_key(str(order), job, 0) for order in (rule.order, rule.backfill or rule.order)]
        for job in slow_jobs(case)
    ]
    order = list(range(len(case)))
    for _ in range(3 * len(case)):
        i = rng.randrange(max(len(order) - 1, 1))
        a, b = order[i], order[min(i + 1, len(order) - 1)]
        apart = all(x != y for x, y in zip(keys[a], keys[b], strict=True))
        if case.jobs["submit"][a] == case.jobs["submit"][b] and apart:
            order[i], order[min(i + 1, len(order) - 1)] = b, a
    other = kept(case, np.array(order))
    yield from differences(trial.replay(other, keep=True), trial.made, COLUMNS[:4], keep=np.array(order))


def _foresees(case: Case) -> bool:
    return getattr(case.rule, "foresight", 0) > 0 or case.rule.clairvoyant


def _apart(case: Case) -> bool:
    """What is done cannot matter any more when all jobs have ended: nothing is learned, foreseen or linked."""
    linked = case.feedback or "not_before_s" in case.jobs
    return case.known is not None and not _foresees(case) and not linked and not case.rule.needs_site


@check(_apart)
def split(trial: Trial) -> Iterator[str]:
    """Cut at instants at which no job is there, the parts come out as in the whole."""
    case, made = trial.case, trial.made
    busy_until = np.maximum.accumulate(made.end)
    cuts = np.flatnonzero(case.jobs["submit"][1:] > busy_until[:-1]) + 1
    if not len(cuts):
        return
    cut = int(trial.rng("split").choice(cuts.tolist()))
    for part in (np.arange(len(case)) < cut, np.arange(len(case)) >= cut):
        yield from differences(trial.replay(kept(case, part), keep=True), made, COLUMNS[:4], keep=part)


def _prompt(case: Case) -> bool:
    """It starts what fits: nothing else is asked, and no room is held for jobs that may come."""
    holds = case.rule.needs_site or "OneByOne" in case.policy or case.rule.by_solver or _foresees(case)
    return not (case.every_s or holds)


@check(_prompt)
def roomy(trial: Trial) -> Iterator[str]:
    """Where all jobs fit at once, each starts when it arrives."""
    case = trial.case
    if case.cluster.kinds:
        times = int(requests_of(case.workload, case.cluster).units.sum())
        kinds = tuple(replace(kind, count=kind.count * times) for kind in case.cluster.kinds)
        if sum(kind.count for kind in kinds) > 2000:
            return
        grown = case.cluster.processors * times
        cluster = replace(case.cluster, processors=grown, kinds=kinds, outages=(), cap=None, licences=())
    else:
        cluster = Cluster(int(case.jobs["size"].sum()))
    made = trial.replay(replace(case, cluster=cluster))
    waits = np.flatnonzero((made.start != made.arrive) & (made.arrive >= 0))
    if len(waits):
        job = int(waits[0])
        yield f"job {job} arrives at {made.arrive[job]} and starts at {made.start[job]}, with room for all"


def _blind(case: Case) -> bool:
    return not case.rule.clairvoyant and not (isinstance(case.estimate, str) and case.estimate.startswith("runtime"))


@check(_blind)
def future(trial: Trial) -> Iterator[str]:
    """Jobs that come later, and run times and outages that are not known yet, change nothing that has happened."""
    case, made, rng = trial.case, trial.made, trial.rng("future")
    now = int(rng.choice(made.arrive.tolist()))
    least = np.where(made.start >= 0, np.maximum(now - _first_start(made), 0), 0) + 1
    longer = 0 if case.large else 1  # with longer jobs, queues would grow beyond all bounds
    other = np.array(
        [rng.choice((1, ran, ran + longer * (ran + 1))) for ran in case.jobs["runtime"].tolist()], np.int64
    )
    jobs = {**case.jobs, "runtime": np.where(made.end > now, np.maximum(other, least), case.jobs["runtime"])}
    known = tuple(one for one in case.cluster.outages if one.told <= now)
    cluster = replace(case.cluster, outages=known)
    changed = trial.replay(replace(case, jobs=jobs, cluster=cluster), keep=True)
    yield from _same_until(now, changed, made, "with other run times to come")
    if case.feedback or case.rule.needs_site:  # from twice the span of a log on, prices are their mean
        return
    here = case.jobs["submit"] <= now
    yield from _same_until(now, trial.replay(kept(case, here), keep=True), made, "without the jobs to come", here)


def _first_start(made: Schedule) -> Ints:
    """When jobs started for the first time: runs that a failure ended count."""
    start = made.start.copy()
    for one in reversed(made.lost):
        start[one.job] = one.start
    return start


def _same_until(now: int, made: Schedule, wanted: Schedule, how: str, keep: Any = None) -> Iterator[str]:
    start = _first_start(wanted) if keep is None else _first_start(wanted)[keep]
    have, want = (np.where(column <= now, column, -1) for column in (_first_start(made), start))
    if not np.array_equal(have, want):
        job = int(np.flatnonzero(have != want)[0])
        yield f"by {now}, job {job} has started at {have[job]} {how}, wanted {want[job]}"
    said = wanted.said if keep is None or not len(wanted.said) else wanted.said[keep]
    known = made.arrive <= now
    known[[one.job for one in (*made.lost, *wanted.lost) if one.job < len(known)]] = (
        False  # told anew when it came again
    )
    if len(said) and not np.array_equal(made.said[known], said[known]):
        yield f"estimates made by {now} differ {how}"


# Running them -----------------------------------------------------------------------------------------------


def judged(trial: Trial, name: str) -> list[str]:
    """What a check says of a case. An error that nobody expects is said too."""
    try:
        return list(CHECKS[name].judge(trial))
    except Exception as error:
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = f"{place.tb_frame.f_code.co_filename.rpartition('/')[2]}:{place.tb_lineno}" if place else ""
        return [f"{type(error).__name__}: {error} ({where})"]


def wanted(case: Case, number: int) -> list[str]:
    """The checks that are tried on the case of that number."""
    return [
        name
        for name, one in CHECKS.items()
        if (one.part == 1 or random.Random(f"{name} of {number}").random() < one.part) and one.when(case)
    ]
