"""Replay: Workload x Cluster x Policy x estimate -> Schedule. The one door of this room."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from math import inf
from pathlib import Path

import numba
import numpy as np

from dovetail.arrays import NEVER, Floats, Ints
from dovetail.energy.site import Site
from dovetail.engine.accounts import Accounts
from dovetail.engine.choosing import Choosing
from dovetail.engine.compiled import Replay, new_replay, read_only
from dovetail.engine.estimates import Estimate, Estimator, estimator_of
from dovetail.engine.recorded import recorded_places, recorded_times
from dovetail.engine.saved import Saved
from dovetail.engine.stepped import Stepper
from dovetail.errors import SettingError
from dovetail.kernels import state as layout
from dovetail.kernels.announce import remark
from dovetail.model.cluster import MOST_LICENCES, MOST_MW, WHOLE, Cluster, NodeKind, by_node
from dovetail.model.machine import nodes_of
from dovetail.model.requests import Placement, fit_idle, requests_of, typical
from dovetail.model.schedule import Schedule
from dovetail.model.state import State, takes_too_much
from dovetail.model.workload import LICENCE, Provenance, Workload
from dovetail.names import of_user, unknown
from dovetail.policies.base import Asked, Policy
from dovetail.policies.registry import policy as policy_named
from dovetail.referee.state import LATEST
from dovetail.version import __version__

Progress = Callable[[int], None]
"""Called now and then with the number of jobs started so far."""

_CHUNKS = 200
_STEP_S = 5.0
"""Seconds of work after which a replay may be written down."""
_NOT_KEPT = "keep: {} cannot be written down and gone on with"
MOST_UNITS = 1 << 28
"""Units of all jobs of a workload on nodes: where each runs is kept, in 32 bytes."""


def replay(
    workload: Workload,
    policy: Policy | str,
    *,
    cluster: Cluster | None = None,
    estimate: Estimate = "limit",
    feedback: bool = False,
    every_s: int = 0,
    seed: int = 0,
    keep_promises: bool = False,
    event_by_event: bool = False,
    charge_decisions: float = 0,
    site: Site | None = None,
    progress: Progress | None = None,
    keep: str | Path | None = None,
) -> Schedule:
    """Let the workload happen again on a cluster under a policy, given as it is or by its name.

    `estimate` is a predictor, the name of one (predict.registry), or one number per job. With `feedback`, SWF fields
    17 and 18 make a job arrive at an earlier job's end plus think time. With `every_s`, passes are periodic.
    `keep_promises` writes down the reservations of list policies too (conservative backfilling always does).
    `event_by_event` asks the policy at each moment in Python even where the compiled replay could run it whole.
    With `charge_decisions` the CPU time of each decision is added to the waits, so many times (event by event; no two
    such replays are quite the same). `site`: powers, weather and prices, for policies that ask for them. `keep`: a
    folder where the replay is written down every minute; the same replay goes on from there after a kill.
    """
    policy, cluster, estimator = ready(
        workload, policy, cluster=cluster, estimate=estimate, feedback=feedback, every_s=every_s,
        charge_decisions=charge_decisions, site=site, keep=keep is not None,
    )  # fmt: skip
    if policy.from_record:
        return _recorded(workload, cluster, policy, estimate, seed)
    asked = Asked(every_s, estimator.bounded, estimator.asked, keep_promises, seed, bool(cluster.kinds))
    rule = policy.rule(asked)
    if rule is not None and not (event_by_event or policy.timed or charge_decisions):
        if policy.choices:  # room for the most that any of them foresees
            most = max(one.rule(asked).common.foresight for one in policy.choices.among)
            rule = rule._replace(common=rule.common._replace(foresight=most))
        whole = new_replay(workload, cluster, rule, estimator.learner, feedback=feedback, place=policy.place)
        whole.on_news = estimator.told
        if policy.shorter:
            whole.on_long = partial(_long_queue, policy)
        whole.keys, whole.keys_hold = (keys := _keys_of(policy, workload, cluster, seed)), policy.keys_hold
        if policy.static_keys:
            whole.run.keys[layout.KEY] = keys(whole, np.arange(len(workload)))
        saved = None
        if keep is not None:
            told = (policy, feedback, every_s, keep_promises, seed, asdict(cluster), site.digest() if site else "")
            learned = (whole.learner, whole.run.keys)
            saved = Saved(Path(keep), [workload.digest(), *map(repr, told)], learned)
            whole = saved.gone_on(whole)
        first = int(workload.submit[0]) if len(workload) else 0
        engine = Choosing(whole, policy.choices, asked, first) if policy.choices else whole
        _advance(engine, workload, progress, saved)
        return finished(whole, workload, cluster, policy, estimate, seed)
    if keep is not None:
        raise SettingError(_NOT_KEPT.format("a replay that is asked event by event"))
    clock = (lambda: int(charge_decisions * time.thread_time_ns())) if charge_decisions else None
    stepper = Stepper(workload, cluster, policy, estimator, seed=seed, feedback=feedback, every_s=every_s, clock=clock)
    _advance(stepper, workload, progress)
    arrive = _first(stepper.arrive, stepper.first_arrive)
    rows = (stepper.start, arrive, stepper.promised_first, stepper.promised_last, stepper.accepted)
    made = _schedule(rows, estimator.learner.first, stepper.passes, workload, cluster, policy, estimate, seed)
    return replace(made, placement=stepper.placement, charged_s=stepper.charged_s, lost=tuple(stepper.lost))


def _first(arrive: Ints, of_lost: dict[int, int]) -> Ints:
    """When jobs came for the first time."""
    first = arrive.copy()
    first[list(of_lost)] = list(of_lost.values())
    return first


def _long_queue(policy: Policy, unlike: int) -> None:
    remark(
        f"{unlike:,} unlike jobs wait at once. {policy.name} plans all of them at each pass, which may take minutes:"
        f" with {policy.shorter} it plans the first of them."
    )


def ready(
    workload: Workload,
    policy: Policy | str,
    *,
    cluster: Cluster | None = None,
    estimate: Estimate = "limit",
    feedback: bool = False,
    every_s: int = 0,
    charge_decisions: float = 0,
    site: Site | None = None,
    keep: bool = False,
) -> tuple[Policy, Cluster, Estimator]:
    """What a replay begins with. Whatever cannot be replayed is refused here, before anything is compiled for it."""
    if cluster is None:
        cluster = Cluster(workload.processors)
    policy = policy_named(policy).at(site, workload, cluster)
    estimator = checked(workload, cluster, policy, estimate, feedback=feedback)
    if every_s < 0:
        raise SettingError(f"every={every_s}: passes cannot be less than 0 s apart")
    if not 0 <= charge_decisions < inf:
        raise SettingError(f"charge_decisions={charge_decisions}: must be a number of at least 0")
    for wanted, circumstance in ((every_s, "every"), (charge_decisions, "charge")):
        if wanted:
            policy.refuse(circumstance)
    if endless := [one for one in cluster.outages if one.end > LATEST]:
        raise SettingError(f"an outage from {endless[0].begin} s on has no end that a replay could reach")
    if charge_decisions and cluster.outages:
        raise SettingError("decisions that take time: what starts later than was decided may run into an outage")
    if charge_decisions and workload.may_leave:
        raise SettingError("decisions that take time: what starts later than was decided may have left the queue")
    if keep and (not policy.compiled or policy.timed or charge_decisions):
        raise SettingError(_NOT_KEPT.format(f"{policy.name}, which is asked event by event,"))
    if policy.choices and (feedback or estimator.asked or keep or not workload.comes_and_stays):
        raise SettingError(
            f"{policy.name} tries its choices on copies of the replay: it goes with no feedback, no jobs that come"
            " later or leave, no predictor of your own, and no --keep"
        )
    if keep and (estimator.asked or (policy.user_keys and not policy.static_keys)):
        raise SettingError(_NOT_KEPT.format("a predictor or an order that is asked on the way"))
    if policy.turns:
        policy.turns.check(workload)
    if policy.from_record and feedback:
        raise SettingError(f"{policy.name}: the log says what happened with its own feedback: leave out --feedback")
    return policy, made_ready(cluster, workload, policy), estimator


def _recorded(workload: Workload, cluster: Cluster, policy: Policy, estimate: Estimate, seed: int) -> Schedule:
    """What the log says happened."""
    none = np.full(len(workload), -1, np.int64)
    rows = (*recorded_times(workload, policy.name), none, none, none)
    made = _schedule(rows, none[:0], 0, workload, cluster, policy, estimate, seed)
    placement = recorded_places(workload, cluster, policy.name) if cluster.kinds else None
    return replace(made, recorded=True, placement=placement)


def finished(
    whole: Replay, workload: Workload, cluster: Cluster, policy: Policy, estimate: Estimate, seed: int
) -> Schedule:
    """What a replay that has run to its end has made."""
    jobs = whole.run.jobs
    first, last, agreed = jobs[layout.PROMISED_FIRST], jobs[layout.PROMISED_LAST], jobs[layout.AGREED]
    last = np.where(first < 0, -1, last)  # where a tentative job stood was no promise
    arrive = _first(jobs[layout.ARRIVE], whole.first_arrive)
    rows = (jobs[layout.START], arrive, first, last, np.where(agreed < 0, -1, agreed > layout.REFUSED))
    made = _schedule(rows, whole.learner.first, whole.passes, workload, cluster, policy, estimate, seed)
    nodes = nodes_of(whole.cap)
    if nodes is None:
        return made
    node, devices = nodes.placed
    placement = Placement(nodes.first, node, devices if cluster.shared else devices[:0])
    return replace(made, placement=placement, lost=tuple(whole.lost))


def _schedule(
    rows: tuple[Ints, ...], said: Ints, passes: int, workload: Workload, cluster: Cluster, policy: Policy,
    estimate: Estimate, seed: int,
) -> Schedule:  # fmt: skip
    versions = {"dovetail": __version__, "numba": numba.__version__, "numpy": np.__version__}
    versions["python"] = platform.python_version()
    name = estimate if isinstance(estimate, str) else getattr(estimate, "name", "given")
    start, arrive, first, last, accepted = rows
    return Schedule(
        workload, cluster, policy.name, name, start, arrive, first, last, passes, seed, versions, said,
        policy.clairvoyant, accepted if bool((accepted >= 0).any()) else np.empty(0, np.int64),
    )  # fmt: skip


def checked(
    workload: Workload, cluster: Cluster, policy: Policy, estimate: Estimate, *, feedback: bool = False
) -> Estimator:
    """What gives a replay its estimates, if the replay can be made. A clairvoyant policy knows them."""
    check(workload, cluster)
    if feedback and workload.may_leave:
        raise SettingError(f"{workload.name}: with feedback, jobs that leave the queue have no end that others follow")
    if policy.clairvoyant:
        if feedback:
            raise SettingError(f"{policy.name} is shown the submissions to come: with feedback they are not known")
        if not workload.comes_and_stays:
            raise SettingError(f"{policy.name} plans for all jobs to come from their submits on, to run them")
        estimate = "runtime"
    return estimator_of(workload, estimate)


def made_ready(cluster: Cluster, workload: Workload, policy: Policy) -> Cluster:
    """The cluster with all that the policy asks of it, and without licences if no job holds one. A policy that cannot
    run on nodes, under a power cap or with licences is refused there."""
    if cluster.licences and not any((workload.get(f"{LICENCE}{name}") > 0).any() for name, _ in cluster.licences):
        cluster = replace(cluster, licences=())
    for there, circumstance in ((cluster.cap, "cap"), (cluster.licences, "licences")):
        if there:
            policy.refuse(circumstance)
    if not cluster.kinds:
        return cluster
    policy.refuse("nodes")
    if cluster.outages:
        policy.refuse("outages")
    if any(one.place == "gradient" for one in policy.deciders) and not cluster.typical:
        return replace(cluster, typical=typical(requests_of(workload, cluster), weigh=cluster.shared_at))
    return cluster


def check(workload: Workload, cluster: Cluster) -> None:
    """A replay wants every job to be possible: known, positive, and no larger than the cluster."""
    for column, least in (("submit", 0), ("runtime", 1), ("size", 1), ("limit", 1)):
        bad = np.flatnonzero(workload[column] < least)
        if len(bad):
            raise SettingError(
                f"{workload.name}: {len(bad)} jobs have no {column} of at least {least} (first: job"
                f" {workload['id'][bad[0]]}); clean the workload first (`standard` does)"
            )
    if cluster.kinds:
        _check_nodes(workload, cluster)
    _check_licences(workload, cluster)
    takes = cluster.takes(workload)
    for k, (what, room) in enumerate(cluster.counted.items()):
        if bool((over := takes[:, k] > room).any()):
            first = int(over.argmax())
            words = takes_too_much(what, int(takes[first, k]), room)
            raise SettingError(
                f"{workload.name}: job {workload['id'][first]} {words}; leave such jobs out, or let there be more"
            )
    hot = np.flatnonzero(workload.get("power_mw") > MOST_MW)
    if len(hot):
        raise SettingError(
            f"{workload.name}: job {workload['id'][hot[0]]} draws more than {MOST_MW // 1000:,} W a processor"
        )
    big = np.flatnonzero(workload.size > cluster.processors)
    if len(big):
        raise SettingError(
            f"{workload.name}: {len(big)} jobs need more than the cluster's {cluster.processors} processors (first: job"
            f" {workload['id'][big[0]]} needs {workload.size[big[0]]}); clean the workload or enlarge the cluster"
        )


def _check_licences(workload: Workload, cluster: Cluster) -> None:
    """A cluster that has licences has all that jobs ask for."""
    known = [f"{LICENCE}{name}" for name, _ in cluster.licences]
    for column in workload.columns if known else ():
        if column.startswith(LICENCE) and column not in known and bool((workload[column] > 0).any()):
            words = unknown("licence", column.removeprefix(LICENCE), [name for name, _ in cluster.licences])
            raise SettingError(f"{workload.name} asks for what the cluster does not have: {words}")
        if column in known and bool((workload[column] > MOST_LICENCES).any()):
            raise SettingError(f"{workload.name}: a job asks for more than {MOST_LICENCES:,} licences")


def _check_nodes(workload: Workload, cluster: Cluster) -> None:
    """Every job has units, no more processors than they have cores unless it has whole nodes, and fits on the idle
    nodes."""
    asked = requests_of(workload, cluster)
    many = (asked.units < 1) | (asked.units > MOST_UNITS) | (np.cumsum(asked.units.astype(np.float64)) > MOST_UNITS)
    wrong = {
        f"at least one unit, and all jobs together at most {MOST_UNITS:,}": many,
        "no more processors than its units have cores": (workload.size > asked.units * asked.need[:, 0])
        & (asked.exclusive == 0),
        "a share of devices from 1 to 1000": (asked.share < 1) | (asked.share > WHOLE),
        "units that fit on the idle nodes": ~fit_idle(cluster, asked),
    }
    for rule, broken in wrong.items():
        if broken.any():
            first = int(np.flatnonzero(broken)[0])
            need = ", ".join(f"{n} {name}" for n, name in zip(asked.need[first], cluster.resources, strict=True) if n)
            raise SettingError(
                f"{workload.name}: {int(broken.sum())} jobs break the rule that a job has {rule} (first: job"
                f" {workload['id'][first]}, {asked.units[first]} units of {need});"
                " clean the workload, or change the cluster"
            )


def _advance(
    engine: Replay | Stepper | Choosing, workload: Workload, progress: Progress | None, saved: Saved | None = None
) -> None:
    """Run to the end, stopping on the way only to say how far it is, and to write that down."""
    if (progress is not None or saved is not None) and len(workload):
        first, last, most = int(workload.submit[0]), int(workload.submit[-1]), 0
        for i in range(1, _CHUNKS + 1):
            _advance_to(engine, first + (last - first) * i // _CHUNKS, saved)
            if progress is not None:
                most = max(most, engine.started)  # those that are lost have not
                progress(most)
    _advance_to(engine, NEVER - 1, saved)
    if saved is not None:
        saved.done()
    if progress is not None:
        progress(len(workload))


def _advance_to(engine: Replay | Stepper | Choosing, until: int, saved: Saved | None) -> None:
    """Go on up to an instant; where it is written down, in steps of a few seconds of work."""
    if saved is None or not isinstance(engine, Replay):
        engine.advance(until)
        return
    step, done = 3600, False
    while not done and engine.now < until:
        began = time.monotonic()
        done = engine.advance(min(engine.now + step, until)) or engine.now + step >= until
        step = max(step // 2, 1) if time.monotonic() - began > _STEP_S else 2 * step
        saved.keep(engine)


def _keys_of(policy: Policy, workload: Workload, cluster: Cluster, seed: int) -> Callable[..., Floats]:
    """A user's order as the compiled replay asks for it: the keys of the jobs that wait now, or of those given
    before any has arrived; they are then taken to arrive at their submits, or when they may start."""
    user, columns = workload.get("user"), {name: read_only(values) for name, values in workload.told.items()}
    accounts, none = Accounts(policy.turns, workload) if policy.turns else None, np.empty(0)

    def turn_of(accounts: Accounts, at: Replay) -> Floats:
        below = len(workload) if at.run.links.shape[1] else int(at.run.info[layout.NEXT])
        came = (at.run.jobs[layout.ARRIVE], at.first_arrive)
        return read_only(accounts.turn(at.now, at.start, below, came, at.lost))

    def keys(at: Replay, waiting: Ints | None = None) -> Floats:
        jobs, info, news = read_only(at.run.jobs), at.run.info, at.run.lists[layout.NEWS_LIST]
        running = np.sort(at.run.lists[layout.END_JOB, : info[layout.RUNNING]])
        told = int(info[layout.ENDED])
        state = State(
            now=at.now, processors=cluster.processors, free=at.free,
            waiting=at.waiting.copy() if waiting is None else waiting,
            running=running, arrived=news[told : told + info[layout.ARRIVED]].copy(), ended=news[:told].copy(),
            submit=jobs[layout.ARRIVE] if waiting is None else workload.submit + workload.held_s,
            size=jobs[layout.SIZE], limit=workload.limit, estimate=jobs[layout.ESTIMATE], user=user,
            start=jobs[layout.START], seed=seed, deadline_s=jobs[layout.DEADLINE], columns=columns,
            turn=none if accounts is None else turn_of(accounts, at),
        )  # fmt: skip
        with of_user(f"{policy.name}: its order"):
            return policy.keys(state)  # type: ignore[no-any-return]

    return keys


def warm(policy: Policy, nodes: bool = False) -> None:
    """Make sure that the kernels which this policy needs, perhaps on nodes, are there: loaded, or compiled and kept. A
    policy that cannot run on nodes is refused."""
    if nodes:
        policy.refuse("nodes")
    chosen = policy.to_compile()
    if chosen.rule() is not None:
        workload, cluster = one_job(nodes)
        replay(workload, chosen, cluster=cluster)


def one_job(nodes: bool) -> tuple[Workload, Cluster]:
    """The smallest replay there is: what it is good for is to have kernels compiled."""
    columns = {name: np.ones(1, np.int64) for name in ("id", "submit", "size", "runtime", "limit")}
    cluster = by_node(("cores",), (NodeKind("warm-up", 1, (1,)),)) if nodes else Cluster(1)
    return Workload("warm-up", columns, 1, Provenance("warm-up")), cluster
