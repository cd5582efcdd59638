"""The contract that every policy must keep, as checks on small random workloads. `dovetail check` runs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dovetail.engine.replay import checked, replay
from dovetail.engine.stepper import Stepper
from dovetail.errors import PolicyError
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.workload import Ints, Provenance, Workload
from dovetail.policies.base import Policy, RulePolicy
from dovetail.referee import check_plan, check_schedule


@dataclass(frozen=True)
class Finding:
    """One clause of the contract: kept, or broken first in that case and how."""

    clause: str
    broken: str = ""


class _BrokenError(Exception):
    """A clause is broken; says how."""


def check_policy(policy: Policy, *, cases: int = 100, seed: int = 1) -> list[Finding]:
    """Try every clause on so many random workloads. The first case that breaks a clause is described."""
    findings = []
    for clause, test in _CLAUSES.items():
        broken = ""
        for case in range(cases):
            rng = np.random.Generator(np.random.PCG64([seed, case]))
            try:
                test(policy, rng)
            except (_BrokenError, PolicyError) as error:
                broken = f"workload {case}: {error}"
                break
            except Exception as error:
                broken = f"workload {case}: decide raised {type(error).__name__}: {error}"
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
    }
    return Workload("random", columns, processors, Provenance("random")), Cluster(processors)


def _starts(
    policy: Policy, workload: Workload, cluster: Cluster, see: Callable[[State, Plan], None] | None = None
) -> Ints:
    stepper = Stepper(workload, cluster, policy, checked(workload, cluster, policy, "limit"), see=see)
    stepper.advance()
    return stepper.start


def _legal(policy: Policy, rng: np.random.Generator) -> None:
    def see(state: State, plan: Plan) -> None:
        for violation in check_plan(state, plan):
            raise _BrokenError(f"at {state.now} s: {violation.rule}: {violation.detail}")

    _starts(policy, *random_workload(rng), see)


def _pure(policy: Policy, rng: np.random.Generator) -> None:
    def see(state: State, plan: Plan) -> None:
        again = policy.decide(state)
        if list(again.starts) != list(plan.starts) or dict(again.promised) != dict(plan.promised):
            raise _BrokenError(
                f"at {state.now} s: asked twice, starts {list(plan.starts)} and then {list(again.starts)}"
            )

    _starts(policy, *random_workload(rng), see)


def _starts_all(policy: Policy, rng: np.random.Generator) -> None:
    workload, cluster = random_workload(rng)
    never = np.flatnonzero(_starts(policy, workload, cluster) < 0)
    if len(never):
        raise _BrokenError(f"the cluster fell idle and job {never[0]} had not been started")


def _valid(policy: Policy, rng: np.random.Generator) -> None:
    workload, cluster = random_workload(rng)
    schedule = replay(workload, policy, cluster=cluster, event_by_event=True)
    for violation in check_schedule(schedule, expect_all_started=False):
        raise _BrokenError(f"{violation.rule}: {violation.detail}")


def _no_peeking(policy: Policy, rng: np.random.Generator) -> None:
    workload, cluster = random_workload(rng)
    until = int(rng.choice(workload.submit))
    known = workload.take(workload.submit <= until, "not yet submitted")
    whole, part = _starts(policy, workload, cluster)[: len(known)], _starts(policy, known, cluster)
    by_then = [np.where((starts >= 0) & (starts <= until), starts, -1) for starts in (whole, part)]
    differ = np.flatnonzero(by_then[0] != by_then[1])
    if len(differ):
        job = differ[0]
        raise _BrokenError(f"job {job} starts at {part[job]} s or {whole[job]} s, depending on jobs submitted later")


def _time_shift(policy: Policy, rng: np.random.Generator) -> None:
    workload, cluster = random_workload(rng)
    later = Workload(
        "later", {**workload.columns, "submit": workload.submit + 1000}, cluster.processors, Provenance("r")
    )
    here, there = _starts(policy, workload, cluster), _starts(policy, later, cluster)
    differ = np.flatnonzero(np.where(here >= 0, here + 1000, -1) != there)
    if len(differ):
        raise _BrokenError(f"job {differ[0]} starts at {here[differ[0]]} s, and 1000 s later at {there[differ[0]]} s")


def _same_engine(policy: Policy, rng: np.random.Generator) -> None:
    if not isinstance(policy, RulePolicy):
        return
    workload, cluster = random_workload(rng)
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
