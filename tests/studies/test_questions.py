"""What if: changes in a Slurm's words, made to a site; and what is refused, with the reason."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.model.cluster import PARTITION, NodeKind, Outage, by_node
from dovetail.policies.slurm import as_told
from dovetail.referee import check_schedule
from dovetail.studies.questions import Site, swept
from tests.policies.test_slurm import jobs, machine


def site() -> Site:
    workload, _ = jobs(random.Random(5))
    features = (f"{PARTITION}batch", f"{PARTITION}urgent")
    kinds = (NodeKind("thin", 6, (4,), features), NodeKind("fat", 4, (8,), features[:1]))
    cluster = replace(by_node(("cores",), kinds), names=tuple(f"n{at}" for at in range(10)))
    return Site(workload, replace(cluster, outages=(Outage((4, 5, 9), 1000, 2000),)), as_told(machine())[0])


def test_settings_by_their_own_names() -> None:
    asked = site().asked(["bf_window=2880", "BF_RESOLUTION = 120", "weight.fairshare=0", "tier.urgent=1"])
    assert (asked.policy.bf_window, asked.policy.bf_resolution) == (2880, 120)
    assert asked.policy.ranks is not None
    assert (asked.policy.ranks.rules.weights.turn, asked.policy.ranks.rules.weights.age) == (0, 5000)
    assert asked.policy.tiers == {"batch": 1, "urgent": 1}
    assert (asked.workload.digest(), asked.cluster, asked.notes) == (site().workload.digest(), site().cluster, ())


@pytest.mark.parametrize(("text", "counts", "outage"), [
    ("nodes+=10%", [6, 4, 1], (4, 5, 9)), ("nodes+=5", [6, 4, 3, 2], (4, 5, 9)), ("nodes.fat+=3", [6, 4, 3], (4, 5, 9)),
    ("nodes.urgent+=50%", [6, 4, 3], (4, 5, 9)), ("nodes-=20%", [5, 3], (4,)), ("nodes.thin-=6", [4], (3,)),
    ("nodes.fat-=1", [6, 3], (4, 5)),
])  # fmt: skip
def test_nodes_more_and_fewer(text: str, counts: list[int], outage: tuple[int, ...]) -> None:
    cluster = site().asked([text]).cluster
    assert [kind.count for kind in cluster.kinds] == counts
    assert [one.nodes for one in cluster.outages] == [outage]
    assert len(set(cluster.names)) == cluster.nodes
    assert cluster.processors == sum(kind.count * kind.capacity[0] for kind in cluster.kinds)


def test_jobs_that_may_not_run_so_long() -> None:
    before, asked = site(), site().asked(["maxtime.batch=10m"])
    here = before.workload["partition"] == 0
    assert asked.workload.limit[here].max() == 600
    assert asked.workload.limit[~here].tolist() == before.workload.limit[~here].tolist()
    longer = int((before.workload.runtime[here] > 600).sum())
    assert longer > 0
    assert f"{longer} jobs ran longer" in asked.notes[0]


def test_load_and_limits() -> None:
    before = site().workload
    denser = site().asked(["load*=2"]).workload
    assert denser.span_s == pytest.approx(before.span_s / 2, abs=1)
    tighter = site().asked(["limits*=0.1"]).workload
    assert (tighter.limit >= tighter.runtime).all()
    assert (tighter.limit <= np.maximum(before.limit, 60)).all()
    assert tighter.limit.sum() < before.limit.sum()
    assert tighter.runtime.tolist() == before.runtime.tolist()


@pytest.mark.parametrize(("text", "words"), [
    ("preempttype=preempt/qos", "cannot be answered: a job runs to its end"),
    ("bf_continue=yes", "cannot be answered: a cycle takes no time"),
    ("maxsubmitjobs=3", "cannot be answered: a history does not hold"),
    ("bf_windoww=3", "did you mean bf_window"), ("bf_window=0", "must be from 1 to 43,200"), ("phase=3", "no setting"),
    ("bf_window+=3", "write bf_window=from"), ("weight.fairshar=3", "did you mean fairshare"),
    ("weight.age=-1", "a weight is a whole number"), ("tier.urgnt=3", "did you mean urgent"),
    ("maxtime.long=24h", "no partition 'long'"), ("maxtime.batch=0s", "a minute at least"),
    ("nodes+=0%", "that is no node"), ("nodes=5", r"by \+= or -="), ("nodes-=100%", "no node would be left"),
    ("nodes.thni+=1", "did you mean thin"), ("load*=0", "a factor is a number"), ("load*=nan", "a factor is a number"),
    ("bf_window", "a change is written"), ("\x1b[31m=3", "a change is written"),
    ("bf_window=\x1b", "is not a whole number"),
])  # fmt: skip
def test_what_cannot_be_asked(text: str, words: str) -> None:
    with pytest.raises(SettingError, match=words) as error:
        site().asked([text])
    assert "\x1b" not in str(error.value)


def dated() -> Site:
    """The same with a first second: 2026-03-01 at midnight, in Zurich."""
    made = site()
    header = {"UnixStartTime": ("1772319600",), "TimeZoneString": ("Europe/Zurich",)}
    return replace(made, workload=replace(made.workload, header=header))


@pytest.mark.parametrize(("text", "nodes", "when"), [
    ("outage=2026-03-01T01:00..2026-03-01T02:30", tuple(range(10)), (3600, 9000)),
    ("outage.urgent=2026-03-01..2026-03-02", tuple(range(6)), (0, 86_400)),
    ("outage.fat=2026-03-01T00:00Z..2026-03-01T01:00Z", (6, 7, 8, 9), (3600, 7200)),
])  # fmt: skip
def test_maintenance(text: str, nodes: tuple[int, ...], when: tuple[int, int]) -> None:
    asked = dated().asked([text])
    assert asked.cluster.outages[-1] == Outage(nodes, *when)
    made = replay(asked.workload, asked.policy, cluster=asked.cluster)
    assert not check_schedule(made)
    begins, ends = when
    beside = (made.start >= ends) | (made.start + made.workload.limit <= begins)
    assert beside.all() == (len(nodes) == 10)


@pytest.mark.parametrize("text", [
    "outage=2026-03-02..2026-03-01", "outage=soon..later", "outage=2026-03-01", "outage=2020-01-01..2020-01-02",
    "outage.fats=2026-03-01..2026-03-02", "outage=2036-03-01..2036-03-02",
])  # fmt: skip
def test_no_such_maintenance(text: str) -> None:
    with pytest.raises(SettingError, match=r"write outage=|it is to begin|did you mean fat"):
        dated().asked([text])
    with pytest.raises(SettingError, match="when its first second was"):
        site().asked([text])


def test_curves() -> None:
    assert swept("bf_window=720..10080") == [f"bf_window={one}" for one in (720, 1393, 2694, 5211, 10080)]
    assert swept("bf_max_job_test=1..3/9") == ["bf_max_job_test=1", "bf_max_job_test=2", "bf_max_job_test=3"]
    for odd in ("bf_window=9..3", "bf_window", "bf_window=0..9", "load*=1..2/1", "=", "bf_window=1..2/0"):
        with pytest.raises(SettingError, match="a sweep is written"):
            swept(odd)


def test_no_priorities_no_weights() -> None:
    plain = replace(site(), policy=as_told(machine(PriorityType="priority/basic"))[0])
    with pytest.raises(SettingError, match="no priority/multifactor"):
        plain.asked(["weight.age=3"])


def test_replays_of_what_was_asked() -> None:
    for text in ("nodes+=25%", "nodes-=2", "load*=1.5", "maxtime.batch=5m", "weight.age=0"):
        asked = site().asked([text])
        made = replay(asked.workload, asked.policy, cluster=asked.cluster)
        assert not check_schedule(made)


def test_a_short_window_is_told() -> None:
    (note,) = site().asked(["bf_window=10"]).notes
    assert "bf_window is 10 m, and" in note
    assert "wide jobs starve" in note
    assert not site().asked(["bf_window=43200"]).notes
