"""What if: a history beside today's replay, and changes told only where they are more than chance."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dovetail as dt
from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.io.clusters import write_cluster
from dovetail.metrics.whatif import Waits, change
from dovetail.model.cluster import PARTITION, NodeKind, by_node
from dovetail.policies.slurm import as_told
from dovetail.reports.whatif_text import more
from dovetail.slurm.limits import Limited
from dovetail.studies.executors import engine
from dovetail.studies.questions import Site
from dovetail.studies.whatif import Alternative, alternatives, answered, behind, groups, shifted, waits
from tests.command import run
from tests.policies.test_slurm import jobs, kept, machine

PARTS = {
    "partition batch", "partition urgent", "account phys", "account chem", "account other", "up to 1 node",
    "up to 4 nodes",
}  # fmt: skip
KIND = NodeKind("n", 8, (4,), (f"{PARTITION}batch", f"{PARTITION}urgent"))


def site(recorded: int | None = 0) -> Site:
    """Jobs that started as today's settings say from one phase, so much later; None: nobody knows when."""
    workload, _ = jobs(random.Random(5))
    made = Site(workload, by_node(("cores",), (KIND,)), as_told(machine())[0])
    if recorded is None:
        return made
    wait = replay(workload, made.policy, cluster=made.cluster).wait + recorded
    return replace(made, workload=replace(workload, columns={**workload.columns, "wait": wait}))


def test_what_is_replayed() -> None:
    """Each alternative from each phase, as replayed alone."""
    asked = alternatives(site(), ["nodes+=50%", "bf_window=10,nodes-=1"])
    found = waits(asked, engine("local", 1, Path()), phases=3)
    assert [one.name for one in found] == ["today", "nodes+=50%", "bf_window=10,nodes-=1"]
    for one, its in zip(asked, found, strict=True):
        for phase in range(3):
            alone = replay(one.site.workload, shifted(one.site.policy, phase, 3), cluster=one.site.cluster)
            assert its.seconds[phase].tolist() == alone.wait.tolist()
    today, more, _ = found
    made = change(today, more)
    assert made.then_s == pytest.approx(more.seconds.mean())
    assert made.told
    assert made.then_s < made.today_s
    assert not change(today, today).told
    seen = answered(asked[0].site, found).trust
    assert seen is not None
    assert seen.jobs == 60
    assert seen.recorded_s == pytest.approx(today.seconds[0].mean())
    assert (seen.low_s, seen.high_s) == (today.means().min(), today.means().max())
    assert not seen.far
    assert {name for name, *_ in seen.groups} == PARTS


def test_a_history_that_is_not_what_is_replayed() -> None:
    other = site(recorded=100_000)
    asked = alternatives(other, [])
    (today,) = waits(asked, engine("local", 1, Path()), phases=2)
    seen = answered(other, [today]).trust
    assert seen is not None
    assert seen.far
    assert seen.within_hour == 0
    unknown = answered(site(recorded=None), [today])
    assert unknown.trust is None
    assert np.isnan(unknown.recorded).all()
    near = answered(site(recorded=59), waits(alternatives(site(), []), engine("local", 1, Path()), phases=2)).trust
    assert near is not None
    assert not near.far


def test_a_change_is_more_than_chance() -> None:
    """By hand: all pairs of phases."""
    today = Waits("today", np.array([[10.0, 20.0], [30.0, 40.0]]), np.zeros(2))
    then = Waits("then", np.array([[0.0, 1.0], [np.nan, 2.0]]), np.zeros(2))
    made = change(today, then)  # of the second job, as the first may leave: 20 and 40 s; 1 and 2 s
    assert (made.today_s, made.then_s) == (30, 1.5)
    pairs = [1 - 20, 1 - 40, 2 - 20, 2 - 40]
    assert (made.low_s, made.high_s) == tuple(np.quantile(pairs, (0.025, 0.975)))
    assert made.told
    only = change(today, then, np.array([False, True]))
    assert (only.today_s, only.then_s) == (30, 1.5)
    assert np.isnan(then.means(np.array([True, False]))).tolist() == [False, True]


def test_parts_of_the_jobs() -> None:
    parts = groups(site())
    for word in ("partition", "account", "node"):
        assert sum(int(jobs.sum()) for name, jobs in parts.items() if word in name) == 60
    header = {"UnixStartTime": ("1772316600",), "TimeZoneString": ("Europe/Zurich",)}  # 50 minutes before midnight
    made = site()
    parts = groups(replace(made, workload=replace(made.workload, header=header)))
    early = int((made.workload.submit < 3000).sum())
    by_day = {name: int(jobs.sum()) for name, jobs in parts.items() if "submitted" in name}
    assert by_day == {"submitted 0-6 h": 60 - early, "submitted 18-24 h": early}


def test_a_question_once() -> None:
    with pytest.raises(SettingError, match="twice"):
        waits(alternatives(site(), ["nodes+=1", "nodes+=1"]), engine("local", 1, Path()))


def test_resources_of_a_limit_are_one_change() -> None:
    made = site()
    told = replace(made, policy=replace(made.policy, limits=Limited({"normal": {}})))
    asked = alternatives(told, ["qos.normal.GrpTRES=cpu=4,node=2,bf_window=10"])[1].site.policy
    assert asked.limits.qos["normal"] == {("GrpTRES", "cpu"): 4, ("GrpTRES", "node"): 2}
    assert asked.bf_window == 10


def test_another_slurm_has_phases_too() -> None:
    made = site()
    (today, other) = waits(
        [*alternatives(made, []), Alternative("x", made, made.policy)], engine("local", 1, Path()), 3
    )
    assert other.seconds.tolist() == today.seconds.tolist()


def test_the_command(tmp_path: Path) -> None:
    made = site()
    dt.write(made.workload, tmp_path / "jobs.parquet")
    write_cluster(made.cluster, tmp_path / "c.toml", "c", "")
    words = (tmp_path / "jobs.parquet", "--cluster", tmp_path / "c.toml", "--phases", "2", "--workers", "1")
    missing = run("whatif", *words, "--set", "nodes+=1")
    assert missing.returncode == 2
    assert "c.slurm.json is not there" in missing.stderr
    kept(tmp_path, machine())
    assert "nothing is asked" in run("whatif", *words).stderr
    refused = run("whatif", *words, "--set", "preempttype=preempt/qos")
    assert "cannot be answered" in refused.stderr
    done = run("whatif", *words, "--set", "nodes+=50%", "--set", "bf_window=10", "--policy", "easy")
    assert not done.returncode, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    text = " ".join(done.stdout.split())
    for told in (
        "Can it be trusted? 60 jobs waited",
        "nodes+=50%: waits would be shorter by",
        "wide jobs starve",
        "not modelled",
    ):
        assert told in text
    curve = json.loads(run("whatif", *words, "--sweep", "bf_window=10..1000/3", "--json").stdout)["answers"]
    assert [one["asked"] for one in curve] == ["bf_window=10", "bf_window=100", "bf_window=1000"]
    (tmp_path / "asked.toml").write_text(
        'sweeps = ["bf_window=10..1000/3"]\npolicies = ["list:order=my.py:mine"]\n'
        '[questions]\n"half more" = "nodes+=50%"\n'
    )
    (tmp_path / "my.py").write_text("def mine(state):\n    return state.waiting\n")
    page = tmp_path / "page.html"
    done = run("whatif", *words, "--questions", tmp_path / "asked.toml", "--out", page)
    assert not done.returncode, done.stderr
    assert "half more (nodes+=50%): waits would be shorter by" in " ".join(done.stdout.split())
    assert all(name in done.stdout for name in ("bf_window=100 ", "list:order=my.py:mine"))
    assert "Mean wait by bf_window" in page.read_text()
    assert "--questions asked.toml" in page.read_text()
    (tmp_path / "bad.toml").write_text('[questions]\n"nothing" = ""\n')
    assert "bad.toml:1: questions.nothing:" in run("whatif", *words, "--questions", tmp_path / "bad.toml").stderr
    told = json.loads(run("whatif", *words, "--set", "nodes+=50%", "--json").stdout)
    (answer,) = told["answers"]
    assert answer["told"]
    assert answer["then_s"] < answer["today_s"] == told["today"]["mean_wait_s"]
    assert told["trust"]["jobs"] == 60
    assert set(answer["groups"]) == PARTS


def test_waiting_behind_as_many_as_a_cycle_looks_at() -> None:
    """Against a count at each second."""
    rng = np.random.default_rng(1)
    for many in (1, 2, 5):
        arrive = rng.integers(0, 50, 40)
        start = arrive + rng.integers(0, 30, 40)
        group = rng.integers(0, 3, 40)
        wanted = 0
        for second in range(100):
            waits_now = group[(arrive <= second) & (second < start)]
            wanted += sum(max(int((waits_now == one).sum()) - many, 0) for one in range(3))
        assert behind(arrive, start, group, many) == wanted
    made = site()
    today, fewer = waits(alternatives(made, ["bf_max_job_test=2"]), engine("local", 1, Path()), phases=2)
    assert today.unseen.tolist() == [0, 0]
    assert (fewer.unseen > 0.1).all()
    text = " ".join(more(answered(made, [today, fewer]).answers[0]))
    assert re.search(r"Of all waiting, \d+\.\d % is behind .* today 0\.0 %", text)
    by_user = waits(alternatives(made, ["bf_max_job_user=1"]), engine("local", 1, Path()), phases=2)[1]
    assert (by_user.unseen > 0).all()
