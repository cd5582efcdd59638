"""The contracts that policies and predictors must keep, as checks on small random workloads. `dovetail check` and
`dovetail predict check` run them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np

from dovetail.arrays import Ints
from dovetail.engine.replay import checked, replay
from dovetail.engine.stepped import Stepper
from dovetail.errors import PolicyError, SettingError
from dovetail.kernels.learners.learner import Learner
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.base import Policy
from dovetail.policies.registry import policy as policy_named
from dovetail.predict.base import Job, Predictor
from dovetail.referee import check_plan, check_schedule


@dataclass(frozen=True)
class Finding:
    """One clause of the contract: kept, or broken first in that case and how."""

    clause: str
    broken: str = ""


class _BrokenError(Exception):
    """A clause is broken; says how."""


def check_policy(policy: Policy, *, cases: int = 100, seed: int = 1) -> list[Finding]:
    """Try every clause on `cases` random workloads. The first case that breaks a clause is described."""
    if policy.needs_site:
        raise SettingError(f"{policy.name} plans for the prices of a site, and the random workloads here have none")
    return _findings(_CLAUSES, policy, "decide", cases, seed)


def check_predictor(predictor: Predictor, *, cases: int = 100, seed: int = 1) -> list[Finding]:
    """The same for a predictor."""
    return _findings(_PREDICTOR_CLAUSES, predictor, "the predictor", cases, seed)


def _findings(
    clauses: Mapping[str, Callable[[Any, np.random.Generator], None]], subject: Any, who: str, cases: int, seed: int
) -> list[Finding]:
    findings = []
    for clause, test in clauses.items():
        broken = ""
        for case in range(cases):
            rng = np.random.Generator(np.random.PCG64([seed, case]))
            try:
                test(subject, rng)
            except (_BrokenError, PolicyError) as error:
                broken = f"workload {case}: {error}"
                break
            except (Exception, SystemExit) as error:
                broken = f"workload {case}: {who} raised {type(error).__name__}: {error}"
                break
        findings.append(Finding(clause, broken))
    return findings


def random_workload(rng: np.random.Generator) -> tuple[Workload, Cluster]:
    """A small dense workload with many ties."""
    n, processors, longest = int(rng.integers(2, 30)), int(rng.integers(1, 17)), int(rng.choice([3, 20, 100]))
    limit = rng.integers(1, longest + 1, n)
    columns = {
        "id": np.arange(1, n + 1),
        "submit": np.cumsum(rng.integers(0, 3, n) * rng.integers(0, longest, n) // 2),
        "size": rng.integers(1, processors + 1, n),
        "runtime": rng.integers(1, limit + 1),
        "limit": limit,
        "user": rng.integers(1, 4, n),
        "deadline_s": np.where(rng.random(n) < 0.4, limit + rng.integers(0, 4 * longest, n), -1),
    }
    return Workload("random", columns, processors, Provenance("random")), Cluster(processors)


def _drawn(policy: Policy, rng: np.random.Generator) -> tuple[Workload, Cluster]:
    """One whose jobs belong to those whom the policy knows, if it asks whose turn it is."""
    workload, cluster = random_workload(rng)
    if policy.turns is None:
        return workload, cluster
    known = policy.turns.known
    owner = {column: rng.integers(0, len(names), len(workload)) for column, names in known.items()}
    return replace(workload, columns={**workload.columns, **owner}, names={**workload.names, **known}), cluster


def _starts(
    policy: Policy, workload: Workload, cluster: Cluster, see: Callable[[State, Plan], None] | None = None
) -> Ints:
    stepper = Stepper(workload, cluster, policy, checked(workload, cluster, policy, "limit"), see=see)
    stepper.advance()
    return stepper.start


def _legal(policy: Policy, rng: np.random.Generator) -> None:
    def see(state: State, plan: Plan) -> None:
        for violation in check_plan(state, plan, deadlines=True):
            raise _BrokenError(f"at {state.now} s: {violation.rule}: {violation.detail}")

    _starts(policy, *_drawn(policy, rng), see)


def _pure(policy: Policy, rng: np.random.Generator) -> None:
    def see(state: State, plan: Plan) -> None:
        again = policy.decide(state)
        if list(again.starts) != list(plan.starts) or dict(again.promised) != dict(plan.promised):
            raise _BrokenError(
                f"at {state.now} s: asked twice, starts {list(plan.starts)} and then {list(again.starts)}"
            )

    _starts(policy, *_drawn(policy, rng), see)


def _starts_all(policy: Policy, rng: np.random.Generator) -> None:
    workload, cluster = _drawn(policy, rng)
    never = np.flatnonzero(_starts(policy, workload, cluster) < 0)
    if len(never):
        raise _BrokenError(f"the cluster fell idle and job {never[0]} had not been started")


def _valid(policy: Policy, rng: np.random.Generator) -> None:
    workload, cluster = _drawn(policy, rng)
    schedule = replay(workload, policy, cluster=cluster, event_by_event=True)
    for violation in check_schedule(schedule, expect_all_started=False):
        raise _BrokenError(f"{violation.rule}: {violation.detail}")


def _no_peeking(policy: Policy, rng: np.random.Generator) -> None:
    workload, cluster = _drawn(policy, rng)
    until = int(rng.choice(workload.submit))
    known = workload.take(workload.submit <= until, "not yet submitted")
    whole, part = _starts(policy, workload, cluster)[: len(known)], _starts(policy, known, cluster)
    by_then = [np.where((starts >= 0) & (starts <= until), starts, -1) for starts in (whole, part)]
    differ = np.flatnonzero(by_then[0] != by_then[1])
    if len(differ):
        job = differ[0]
        raise _BrokenError(f"job {job} starts at {part[job]} s or {whole[job]} s, depending on jobs submitted later")


def _time_shift(policy: Policy, rng: np.random.Generator) -> None:
    workload, cluster = _drawn(policy, rng)
    later = replace(workload, columns={**workload.columns, "submit": workload.submit + 1000})
    here, there = _starts(policy, workload, cluster), _starts(policy, later, cluster)
    differ = np.flatnonzero(np.where(here >= 0, here + 1000, -1) != there)
    if len(differ):
        raise _BrokenError(f"job {differ[0]} starts at {here[differ[0]]} s, and 1000 s later at {there[differ[0]]} s")


def _same_engine(policy: Policy, rng: np.random.Generator) -> None:
    if not policy.compiled:
        return
    workload, cluster = _drawn(policy, rng)
    whole = replay(workload, policy, cluster=cluster).start
    differ = np.flatnonzero(whole != _starts(policy, workload, cluster))
    if len(differ):
        raise _BrokenError(f"job {differ[0]} starts at another second when asked event by event")


_CLAUSES: dict[str, Callable[[Policy, np.random.Generator], None]] = {
    "plans are legal: starts fit, promises can be kept": _legal,
    "pure: the same state gives the same plan": _pure,
    "every job is started in the end": _starts_all,
    "schedules pass the referee": _valid,
    "no peeking: later submissions do not change earlier starts": _no_peeking,
    "time shift: the same workload later gives the same schedule later": _time_shift,
    "whole run equals event by event": _same_engine,
}


_ORDER = policy_named("list-reg")


class _Watched(Predictor):
    """A predictor that is asked in Python, and must say a positive number of seconds."""

    def __init__(self, predictor: Predictor) -> None:
        self.predictor, self.name, self.correct = predictor, predictor.name, predictor.correct

    def estimate(self, job: Job) -> float:
        value = self.predictor.estimate(job)
        if not (isfinite(value) and value > 0):
            raise _BrokenError(f"the estimate of job {job.number} is {value} s")
        return value

    def observe(self, job: Job, runtime_s: int) -> None:
        self.predictor.observe(job, runtime_s)

    def learner(self, workload: Workload) -> Learner:
        return self.predictor.learner(workload)


def busy_workload(rng: np.random.Generator) -> tuple[Workload, Cluster]:
    """A random workload of few users and programs, with limits that are often far too long."""
    workload, cluster = random_workload(rng)
    n, columns = len(workload), dict(workload.columns)
    columns["name"], columns["queue"] = rng.integers(0, 2, n), rng.integers(0, 2, n)
    columns["limit"] = np.maximum(workload.runtime, rng.choice([1, 30, 200, 9000], n))
    return replace(workload, columns=columns), cluster


def _positive(predictor: Predictor, rng: np.random.Generator) -> None:
    workload, cluster = busy_workload(rng)
    estimate = _Watched(predictor) if predictor.asked else predictor
    said = replay(workload, _ORDER, cluster=cluster, estimate=estimate).said
    wrong = np.flatnonzero((said < 1) | (said > workload.limit))
    if len(wrong):
        job = wrong[0]
        raise _BrokenError(f"the estimate of job {job} is {said[job]} s, its limit {workload.limit[job]} s")


def _says_again(predictor: Predictor, rng: np.random.Generator) -> None:
    workload, cluster = busy_workload(rng)
    first, again = (replay(workload, _ORDER, cluster=cluster, estimate=predictor).said for _ in range(2))
    _same_said(first, again, "in a second replay")


def _same_by_event(predictor: Predictor, rng: np.random.Generator) -> None:
    workload, cluster = busy_workload(rng)
    whole, stepped = (
        replay(workload, _ORDER, cluster=cluster, estimate=predictor, event_by_event=one).said for one in (False, True)
    )
    _same_said(whole, stepped, "when asked event by event")


def _knows_no_future(predictor: Predictor, rng: np.random.Generator) -> None:
    """Jobs that have not ended by some moment get other run times: estimates made until then may not change."""
    workload, cluster = busy_workload(rng)
    made = replay(workload, _ORDER, cluster=cluster, estimate=predictor)
    now = int(rng.choice(made.arrive))
    least = np.minimum(np.maximum(now - made.start, 0) + 1, workload.limit)
    other = np.clip(rng.integers(1, workload.limit + 1), least, workload.limit)
    columns = {**workload.columns, "runtime": np.where(made.end > now, other, workload.runtime)}
    again = replay(replace(workload, columns=columns), _ORDER, cluster=cluster, estimate=predictor)
    differ = np.flatnonzero((made.start <= now) & (made.start != again.start))
    if len(differ):
        raise _BrokenError(f"job {differ[0]} starts at another second, depending on run times that are not known yet")
    by_then = made.arrive <= now
    _same_said(made.said[by_then], again.said[by_then], "depending on run times that are not known yet")


def _same_said(first: Ints, second: Ints, how: str) -> None:
    differ = np.flatnonzero(first != second)
    if len(differ):
        job = differ[0]
        raise _BrokenError(f"the estimate of job {job} is {first[job]} s, and {second[job]} s {how}")


_PREDICTOR_CLAUSES: dict[str, Callable[[Predictor, np.random.Generator], None]] = {
    "positive: the estimate of every job is a positive number of seconds": _positive,
    "deterministic: each replay begins anew and says the same": _says_again,
    "no peeking: run times that are not known yet change nothing": _knows_no_future,
    "whole run equals event by event": _same_by_event,
}
