"""Three engines, one schedule: compiled whole run, event by event, and slow obvious Python."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from dovetail.kernels.passes.lists import ListRule
from dovetail.policies.base import Asked
from dovetail.policies.conservative import Conservative
from dovetail.policies.deadline import DeadlineBackfilling
from dovetail.policies.lists import ORDERS, ListPolicy
from tests.conftest import CASES
from tests.contract.cases import SWEEPS, Case, case, disagreements
from tests.slow import policies as slow
from tests.slow.workloads import random_jobs

STEP = 50


@pytest.mark.parametrize("first", range(0, CASES, STEP))
def test_engines_agree_and_the_referee_is_content(first: int) -> None:
    found = [text for seed in range(first, min(first + STEP, CASES)) for text in disagreements(case(seed))]
    assert found == []


@pytest.mark.parametrize("order", ["fcfs", "sjf", "laf", "spf", "small"])
def test_a_plan_that_stands_equals_a_new_one(order: str) -> None:
    """Most jobs run as long as estimated, so the plan of one pass often serves the next."""
    for seed in range(60):
        rng = random.Random(seed)
        drawn = case(seed)
        exact = [replace(job, runtime=job.estimate if rng.random() < 0.95 else 1) for job in drawn.jobs]
        policies = ListPolicy(order, "all"), slow.ListPolicy(order, "all")
        this = Case(seed, exact, drawn.processors, *policies, drawn.feedback, 0)
        rule = this.policy.rule(Asked(bounded=this.bounded))
        assert isinstance(rule, ListRule)
        assert rule.reuse
        assert disagreements(this) == []


def test_reservations_that_are_later_than_their_slack_allows() -> None:
    """Estimates that are too small push reserved jobs beyond their latest starts: then they may only not get later."""
    for seed in (*range(170, 180), *range(290, 360)):
        rng = random.Random(seed)
        jobs, capacity = random_jobs(rng, too_small=True)
        order, depth = rng.choice(("fcfs", "sjf", "saf", "large")), rng.choice((2, 3, "all"))
        slack, backfill = rng.choice((0.1, 0.5)), rng.choice((None, "sjf"))
        fast = ListPolicy(order, depth, backfill, slack=slack)
        this = Case(seed, jobs, capacity[0], fast, slow.ListPolicy(order, depth, backfill, slack=slack), False, 0)
        assert disagreements(this) == []


def test_the_cases_cover_everything() -> None:
    """Each policy, order and option comes up, and so do promises that must hold."""
    seen: Counter[object] = Counter()
    for seed in range(1000):  # drawn, not run: as many as CI runs
        this = case(seed)
        seen.update(
            {
                ("feedback", this.feedback): 1,
                ("bounded", this.bounded): 1,
                ("every", this.every_s): 1,
                ("protects", this.protects): 1,
            }
        )
        if isinstance(this.policy, Conservative):
            seen[this.policy.sweep, this.bounded] += 1
            seen["depth", this.policy.depth] += 1
        elif isinstance(this.policy, DeadlineBackfilling):
            seen["due", this.policy.guard, this.bounded] += max(job.deadline for job in this.jobs) >= 0
            seen["due", this.policy.sweep] += 1
            seen["due depth", this.policy.depth] += 1
        else:
            seen.update(_options(this.policy))
    wanted = [
        *((what, yes) for what in ("feedback", "bounded", "protects") for yes in (True, False)),
        *(("every", every) for every in (0, 3, 10)),
        *((sweep, bounded) for sweep in SWEEPS for bounded in (True, False)),
        *(("due", guard, bounded) for guard in (True, False) for bounded in (True, False)),
        *(("due", sweep) for sweep in ("once", "start-now", "none")),
        *((what, depth) for what in ("depth", "due depth") for depth in ("all", 1, 2, 5)),
        *(("order", order) for order in ORDERS),
        *(("backfill", order) for order in (None, *ORDERS)),
        *(("reserve", reserve) for reserve in ("strict", 0, 1, 2, 3, 5, "all")),
        *((what, yes) for what in ("starve", "relax", "slack") for yes in (True, False)),
    ]
    assert [key for key in wanted if seen[key] < 10] == []


def _options(policy: ListPolicy) -> list[tuple[str, object]]:
    return [
        ("order", policy.order),
        ("backfill", policy.backfill),
        ("reserve", policy.reserve),
        ("starve", policy.starve_s is not None),
        ("relax", policy.relax > 0),
        ("slack", policy.slack > 0),
    ]
