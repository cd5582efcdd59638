"""Power caps: both engines equal the slow policies, which know power as a second resource, and the referee checks."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dovetail.energy.site import Site
from dovetail.engine.replay import replay
from dovetail.errors import PolicyError, SettingError
from dovetail.metrics.energy import powers
from dovetail.model.cluster import Cluster, NodeKind, PowerCap, by_node
from dovetail.model.workload import Provenance, Step, Workload
from dovetail.policies.registry import policy
from dovetail.referee import check_schedule
from tests.contract.cases import Case, case
from tests.engine.first_fits import FirstFits
from tests.slow import policies as slow
from tests.slow.workloads import drawn_licences

ROOT = Path(__file__).parents[2]


def licensed(this: Case, workload: Workload, cluster: Cluster) -> tuple[Case, Workload, Cluster]:
    """The same with licences, of which there often are too few for all."""
    columns, licences = drawn_licences(random.Random(this.seed), len(this.jobs))
    workload, cluster = workload.with_columns(Step("licences"), **columns), replace(cluster, licences=licences)
    takes = cluster.takes(workload)[:, -len(licences) :].tolist()
    jobs = [replace(job, size=(*job.size, *taken)) for job, taken in zip(this.jobs, takes, strict=True)]
    return replace(this, jobs=jobs), workload, cluster


def capped(seed: int) -> tuple[Case, Cluster, list[int]]:
    """A case of the contract, with a power for each job, and a cap that often binds and that every job fits."""
    this, rng = case(seed), random.Random(seed)
    power = [rng.choice((-1, rng.randint(0, 9), rng.randint(5, 50))) for _ in this.jobs]
    cap = PowerCap(0, idle_mw=rng.randint(0, 4), busy_mw=rng.randint(1, 20))
    extra = [
        job.size[0] * max((p if p >= 0 else cap.busy_mw) - cap.idle_mw, 0)
        for job, p in zip(this.jobs, power, strict=True)
    ]
    room = max(1, *(x for x, job in zip(extra, this.jobs, strict=True) if job.size[0] <= this.processors))
    mw = this.processors * cap.idle_mw + int(room * rng.choice((1, 1.2, 2)))
    jobs = [replace(job, size=(job.size[0], x)) for job, x in zip(this.jobs, extra, strict=True)]
    return replace(this, jobs=jobs), Cluster(this.processors, cap=replace(cap, mw=mw)), power


def differences(first: int, last: int) -> list[str]:
    """What is not as in the slow replay, or breaks the cap."""
    found = []
    for seed in range(first, last):
        this, cluster, power = capped(seed)
        assert cluster.cap is not None
        workload = this.workload.with_columns(Step("power"), power_mw=np.array(power))
        if seed % 2:
            this, workload, cluster = licensed(this, workload, cluster)
        wanted = slow.slow_replay(
            this.jobs, (this.processors, *cluster.counted.values()), this.slow_policy,
            feedback=this.feedback, every=this.every_s,
        )  # fmt: skip
        for stepwise in (False, True):
            made = replay(
                workload, this.policy, cluster=cluster, estimate=this.estimate, feedback=this.feedback,
                every_s=this.every_s, event_by_event=stepwise,
            )  # fmt: skip
            if made.start.tolist() != wanted.start:
                found.append(f"seed {seed}, stepwise {stepwise}: {this.policy}")
            found += [f"seed {seed}: {wrong}" for wrong in check_schedule(made)]
        assert cluster.cap is not None
        site = Site("s", cluster.cap.busy_mw, cluster.cap.idle_mw)
        drawn = powers(made, site).it_mw
        if len(drawn) and drawn.max() > max(cluster.cap.mw, 0) and min(power) >= cluster.cap.idle_mw:
            found.append(f"seed {seed}: {drawn.max()} mW")
        if seed % 10 == 0 and not this.feedback:
            planned = replay(workload, policy("plan-bsld:decodes=10"), cluster=cluster, estimate=this.estimate)
            found += [f"seed {seed}, planner: {wrong}" for wrong in check_schedule(planned)]
    return found


def corrections(first: int, last: int) -> list[str]:
    """What is not the same in both engines where running jobs are given other estimates, or breaks the cap."""
    found = []
    for seed in range(first, last):
        this, cluster, power = capped(seed)
        user = np.arange(len(this.jobs)) % 2
        limit = 4 * np.maximum(this.workload.runtime, this.workload.limit)
        workload = this.workload.with_columns(Step("power"), power_mw=np.array(power), user=user, limit=limit)
        whole, stepped = (
            replay(workload, "easy", cluster=cluster, estimate="recent:correct=double", event_by_event=by_event)
            for by_event in (False, True)
        )
        if whole.start.tolist() != stepped.start.tolist():
            found.append(f"seed {seed}: {whole.start.tolist()} is {stepped.start.tolist()} event by event")
        found += [f"seed {seed}: {wrong}" for wrong in check_schedule(whole)]
    return found


@pytest.mark.slow
def test_capped_replays_equal_slow_ones() -> None:
    """In plain Python: compiling all for two resources takes minutes."""
    path = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path}
    script = (
        "from tests.engine.test_power_cap import corrections, differences;"
        "print(differences(0, 150) + corrections(0, 40))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore::RuntimeWarning", "-c", script],
        env=env,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "[]\n"


def test_what_a_job_drew_is_free_again_when_it_ends() -> None:
    """Three jobs one after another, each of half of what the cap leaves."""
    rows = {"id": [1, 2, 3], "submit": [0, 5, 10], "size": [2] * 3, "runtime": [5] * 3, "limit": [5] * 3}
    workload = Workload("three", {name: np.array(values) for name, values in rows.items()}, 8, Provenance("by hand"))
    cluster = Cluster(8, cap=PowerCap(100, idle_mw=5, busy_mw=20))  # 60 are left; each draws 30 beyond idle
    assert replay(workload, FirstFits(), cluster=cluster).start.tolist() == [0, 5, 10]


def test_who_breaks_the_cap_is_told() -> None:
    this, _, _ = capped(3)
    rows = {"id": [1, 2, 3], "submit": [0] * 3, "size": [2] * 3, "runtime": [5] * 3, "limit": [5] * 3}
    columns = {name: np.array(values) for name, values in rows.items()}
    workload = replace(this.workload, columns=columns, processors=8)
    cluster = Cluster(8, cap=PowerCap(100, idle_mw=5, busy_mw=20))  # 60 are left; each draws 30 beyond idle
    with pytest.raises(PolicyError, match=r"takes 30 mW of power; 0 are left"):
        replay(workload, FirstFits(), cluster=cluster)
    free = replay(workload, FirstFits(), cluster=Cluster(8))
    (broken,) = check_schedule(replace(free, cluster=cluster))
    assert broken.rule == "power cap"
    assert "brings 90 mW into use where there are 60" in broken.detail
    with pytest.raises(SettingError, match=r"job 1 draws 0 W; the power cap leaves 0 W"):
        replay(workload, policy("easy"), cluster=Cluster(8, cap=PowerCap(60, idle_mw=5, busy_mw=20)))
    for name in ("cp-af", "switch"):
        with pytest.raises(SettingError, match="power cap"):
            replay(workload, policy(name), cluster=cluster)
    nodes = replace(by_node(("cores",), (NodeKind("n", 2, (4,)),)), cap=cluster.cap)
    made = replay(workload, policy("easy"), cluster=nodes)
    assert made.start.tolist() == replay(workload, policy("easy"), cluster=cluster).start.tolist()
    assert check_schedule(made) == []
    with pytest.raises(SettingError, match="power cap"):
        replay(workload, policy("pcp21"), cluster=nodes)
