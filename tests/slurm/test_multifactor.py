"""Priorities as a sum of factors, against one job at a time."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dovetail.errors import SettingError
from dovetail.slurm.multifactor import LARGE, MOST, SMALL, Asking, Multifactor, Weights
from tests.conftest import CASES

RESOURCES = ("cpu", "mem", "gpu")


def random_rules(rng: random.Random) -> Multifactor:
    def weight() -> int:
        return rng.choice((0, 1, 997, 100_003))

    weights = Weights(
        weight(), weight(), weight(), weight(), weight(), weight(),
        {name: rng.choice((0.0, 0.37, 1009.0)) for name in RESOURCES if rng.random() < 0.8},
    )  # fmt: skip
    kinds = ("partition", "qos", "account", "resources")
    return Multifactor(
        weights, rng.choice((7, 160, 99_991)), rng.choice((1, 8, 1000)), rng.choice((1, 3600, 604_800)),
        rng.choice((LARGE, SMALL)), rng.random() < 0.5,
        tuple(rng.choice((0, 1, 50)) for _ in range(3)),
        tuple(rng.choice((0, 7, 100)) for _ in range(rng.randrange(3))),
        tuple(rng.choice((0, 13)) for _ in range(2)),
        tuple({name: rng.choice((0, 10, 5000)) for name in RESOURCES if rng.random() < 0.7} for _ in range(3)),
        frozenset(kind for kind in kinds if rng.random() < 0.3),
    )  # fmt: skip


def random_jobs(rng: random.Random, rules: Multifactor, many: int) -> list[dict[str, Any]]:
    return [
        {
            "since": rng.choice((-1, 0, 1000, 5000)), "processors": rng.randint(1, 300), "nodes": rng.randint(1, 12),
            "limit_minutes": rng.choice((1, 60, 525_600)), "partition": rng.randint(-1, 2),
            "qos": rng.randint(-1, len(rules.qos) - 1), "account": rng.randint(-1, 1), "turn": rng.randint(0, 9) / 9,
            "site": rng.choice((0, -500, 90_000)), "nice": rng.choice((0, 100, -7, 2_000_000_000)),
            "fixed": rng.choice((0, 0, 0, 5)),
            "resources": {name: rng.choice((0, 3, 4000)) for name in RESOURCES},
        }
        for _ in range(many)
    ]  # fmt: skip


def arrays(jobs: list[dict[str, Any]]) -> Asking:
    told = {name: np.array([job[name] for job in jobs]) for name in jobs[0] if name != "resources"}
    return Asking(**told, resources={name: np.array([job["resources"][name] for job in jobs]) for name in RESOURCES})


def obvious(rules: Multifactor, job: dict[str, Any], now: int) -> int:
    """One job, one factor after the other."""
    if job["fixed"] > 0:
        return int(job["fixed"])
    own, total = rules.weights, 0.0
    if job["since"] >= 0:
        waited = max(now - job["since"], 0)
        total += (waited / rules.oldest_s if waited < rules.oldest_s else 1.0) * own.age

    def part(kind: str, values: tuple[int, ...], at: int) -> float:
        if at < 0 or not max(values):
            return 0.0
        return float(values[at]) if kind in rules.as_they_are else values[at] / max(values)

    total += part("account", rules.accounts, job["account"]) * own.account
    total += job["turn"] * own.turn
    nodes, processors = job["nodes"], job["processors"]
    if rules.by_time:
        size = max(nodes * float(rules.processors) / rules.nodes, processors) / job["limit_minutes"] / rules.processors
        if rules.favours == SMALL:
            size = 1.0 - size
    elif rules.favours == SMALL:
        size = ((rules.nodes - nodes) / rules.nodes + (rules.processors - processors) / rules.processors) / 2
    else:
        size = (nodes / rules.nodes + processors / rules.processors) / 2
    total += min(max(size, 0.0), 1.0) * own.size
    total += part("partition", rules.partitions, job["partition"]) * own.partition
    total += part("qos", rules.qos, job["qos"]) * own.qos
    resources = 0.0
    for name, weight in own.resources.items():
        asked = job["resources"][name]
        if "resources" not in rules.as_they_are:
            there = rules.held[job["partition"]].get(name, 0) if job["partition"] >= 0 else 0
            asked = asked / there if there else 0.0
        resources += asked * weight
    total += resources
    total += job["site"]
    total -= job["nice"]
    return min(int(max(total, 1.0)), MOST)


@pytest.mark.parametrize("seed", range(CASES))
def test_each_job_has_the_priority_of_the_obvious_sum(seed: int) -> None:
    rng = random.Random(seed)
    rules = random_rules(rng)
    jobs = random_jobs(rng, rules, 20)
    now = rng.choice((0, 999, 1001, 6000, 10**6))
    assert rules(arrays(jobs), now).tolist() == [obvious(rules, job, now) for job in jobs]


def test_a_job_that_may_run_has_a_priority_of_one_at_least() -> None:
    rules = Multifactor(Weights(age=100), 16, 2)
    jobs = arrays([{**random_jobs(random.Random(1), rules, 1)[0], "nice": 10**6, "fixed": 0}])
    assert rules(jobs, 5000).tolist() == [1]
    assert replace(rules, weights=Weights(age=1 << 33), oldest_s=1)(jobs, 5000).tolist() <= [MOST]


def test_what_makes_no_rules() -> None:
    good = Multifactor(Weights(), 1, 1)
    for wrong in ({"processors": 0}, {"nodes": 0}, {"oldest_s": 0}, {"favours": "middle"}):
        with pytest.raises(SettingError, match="priorities"):
            replace(good, **wrong)
