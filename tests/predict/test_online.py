"""The predictors that fit: against loops over single numbers, and on a real log beside the published table."""

from __future__ import annotations

import math
import random

import pytest

from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.io.read import read_workload
from dovetail.metrics import summarize
from dovetail.metrics.estimates import r2
from dovetail.policies.registry import policy
from dovetail.predict.base import Job
from dovetail.predict.online import Neighbours, Online
from dovetail.predict.registry import predictor
from tests.conftest import TRACES, needs_traces


class Slow:
    """Normalized adaptive gradient descent, a number at a time."""

    def __init__(self) -> None:
        self.w: list[float] = []
        self.norm, self.seen = 1e-9, 1

    def learn(self, x: list[float], ran: int, weight: float) -> None:
        if not self.w:
            self.w, self.s, self.g = [0.0] * len(x), [1e-9] * len(x), [1e-9] * len(x)
        for i, value in enumerate(x):
            if abs(value) > self.s[i]:
                self.w[i] *= self.s[i] / abs(value)
                self.s[i] = abs(value)
        self.norm += sum((value / s) ** 2 for value, s in zip(x, self.s, strict=True))
        over = sum(w * value for w, value in zip(self.w, x, strict=True)) - ran
        for i, value in enumerate(x):
            loss = over * 2 if over > 0 else -1
            gradient = weight * loss * value + 2 * 4e9 * self.w[i]
            self.g[i] += gradient**2
            self.w[i] -= 5000 * gradient / (self.s[i] * math.sqrt(self.g[i] * self.norm / self.seen))
        self.seen += 1


def jobs(rng: random.Random, n: int) -> list[tuple[Job, int]]:
    made = []
    for number in range(n):
        limit = rng.choice([60, 600, 7200])
        job = Job(number, 100 * number, rng.choice([1, 2, 8]), limit, rng.randrange(3), 0, rng.randrange(2), 0)
        made.append((job, rng.randint(1, limit)))
    return made


@pytest.mark.parametrize("seed", range(20))
def test_steps_are_those_of_the_loop(seed: int) -> None:
    ours, slow, open_jobs = Online(), Slow(), []
    for job, ran in jobs(random.Random(seed), 60):
        said = ours.estimate(job)
        x = ours._asked[job.number].tolist()
        assert len(x) == 1 + 18 + 18 + 153
        value = abs(sum(w * value for w, value in zip(slow.w, x, strict=True))) if slow.w else 0
        assert said == pytest.approx(max(1, value), rel=1e-6)
        open_jobs.append((job, ran, x))
        if len(open_jobs) > 4:
            job, ran, x = open_jobs.pop(0)
            ours.observe(job, ran)
            slow.learn(x, ran, 1 + math.log(job.size * ran))


def test_the_features_of_a_job() -> None:
    one = Online()
    first, second = Job(0, 0, 4, 600, 7, 0, 0, 0), Job(1, 1000, 2, 300, 7, 0, 0, 0)
    one.estimate(first)
    one.observe(first, 500)
    one.estimate(second)
    one.estimate(Job(2, 1300, 6, 9000, 7, 0, 0, 0))
    angles = [2 * math.pi * 1300 / period for period in (86400, 7 * 86400)]
    wanted: list[float] = [500, 9000, 9000, 9000, 500, 500, 500, 800, 6, 2, 300, 1, 300]
    wanted += [turn(angle) for angle in angles for turn in (math.cos, math.sin)] + [1.5]
    assert one._asked[2][:19].tolist() == pytest.approx([1, *wanted])
    one.observe(second, 100)
    one.estimate(Job(3, 1400, 6, 9000, 7, 0, 0, 0))
    # The last three run times, the limit, the means of two and three of them, and of all that ended.
    assert one._asked[3][1:8].tolist() == [100, 500, 9000, 9000, 300, 300, 300]


def test_neighbours_are_the_nearest_and_then_the_last() -> None:
    for seed in range(50):
        ours = Neighbours(jobs=3, last=8)
        past: list[tuple[Job, int]] = []
        for job, ran in jobs(random.Random(seed), 40):
            mine = [(one, time) for one, time in past if one.user == job.user][-8:][::-1]

            def apart(pair: tuple[Job, int], job: Job = job) -> float:
                one = pair[0]
                return (
                    abs(math.log(one.limit, 2) - math.log(job.limit, 2))
                    + abs(math.log(one.size, 2) - math.log(job.size, 2))
                    + (one.name != job.name)
                )

            nearest = [time for _, time in sorted(mine, key=apart)[:3]]
            assert ours.estimate(job) == pytest.approx(sum(nearest) / len(nearest) if nearest else job.limit)
            ours.observe(job, ran)
            past.append((job, ran))


def test_settings_and_a_new_one_each_time() -> None:
    assert predictor("online") is not predictor("online")
    with pytest.raises(SettingError, match="jobs=0: must be from 1 to 1,000"):
        predictor("neighbours:jobs=0")
    with pytest.raises(SettingError, match="rate=-1: must be from 0 to 1,000,000,000"):
        predictor("online:rate=-1")


@needs_traces
def test_the_regression_does_what_table_iii_says() -> None:
    """KTH-SP2, CVH: BSLD of EASY-SJBF -17.4 %, AWF of LAF-JustBF +14.4 %, P2SF of JustBF +355.6 %; R2 -0.05, -0.02."""
    workload = read_workload(TRACES / "papers" / "KTH-SP2.swf.gz")
    change, close = {}, {}
    for name, metric in (("easy-sjbf", "bsld"), ("list-laf", "awf_s"), ("list-reg", "p2sf_s")):
        made = {one: replay(workload, policy(name), estimate=one) for one in ("limit", "online")}
        change[metric] = summarize(made["online"])[metric] / summarize(made["limit"])[metric] - 1
        close[metric] = r2(made["online"].said, workload.runtime)
    assert change["bsld"] == pytest.approx(-0.174, abs=0.05)
    assert change["awf_s"] == pytest.approx(0.144, abs=0.02)
    assert change["p2sf_s"] == pytest.approx(3.556, abs=0.5)
    assert all(-0.15 < value < 0.02 for value in close.values())
