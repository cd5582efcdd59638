"""How a Slurm gives priorities, by its slurm.conf and by what it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from dovetail.errors import DovetailError
from dovetail.slurm import scontrol
from dovetail.slurm.conf import read_conf
from dovetail.slurm.machine import Texts, of_lines
from dovetail.slurm.multifactor import Weights
from dovetail.slurm.priority import Priorities, priorities

CONF: Final = """ClusterName=here
NodeName=n[1-3] CPUs=8 RealMemory=1000
PartitionName=all Nodes=ALL PriorityJobFactor=4
PartitionName=few Nodes=n1
AccountingStorageTRES=cpu,mem,energy,node,billing,gres/gpu
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightTRES=GRES/gpu=30,CPU=1.5
PriorityMaxAge=1-0
PriorityCalcPeriod=10
PriorityFavorSmall=YES
PriorityFlags=SMALL_RELATIVE_TO_TIME,NO_NORMAL_QOS,INCR_ONLY
"""


def conf(folder: Path, text: str) -> Priorities:
    (folder / "slurm.conf").write_text(text)
    return priorities(read_conf(folder / "slurm.conf"))


def test_what_a_slurm_conf_says(tmp_path: Path) -> None:
    made = conf(tmp_path, CONF)
    rules = made.rules
    assert list(rules.weights.resources.items()) == [("cpu", 1.5), ("gres/gpu", 30.0)]  # in Slurm's order
    assert (rules.weights.age, rules.weights.turn, rules.oldest_s, made.period_s) == (1000, 0, 86_400, 600)
    assert (rules.processors, rules.nodes, rules.favours, rules.by_time) == (24, 3, "small", True)
    assert (rules.partitions, rules.as_they_are) == ((4, 1), frozenset(["qos"]))
    assert rules.held == ({"cpu": 24, "mem": 3000, "node": 3}, {"cpu": 8, "mem": 1000, "node": 1})
    assert made.notes == ("PriorityFlags=INCR_ONLY is not followed",)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("PriorityWeightAge=1e3", "is no whole number"),
        ("PriorityType=priority/basic", "only priority/multifactor"),
        ("PriorityWeightTRES=CPU", "PriorityWeightTRES"),
        ("PriorityWeightTRES=CPU=nan", "PriorityWeightTRES"),
        ("PriorityWeightQOS=1_000", "is no whole number"),
        ("PriorityMaxAge=foo", "priorities: .*foo"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, line: str, said: str) -> None:
    key = line.partition("=")[0]
    kept = [one for one in CONF.splitlines() if not one.startswith(key + "=")]
    with pytest.raises(DovetailError, match=said):
        conf(tmp_path, "\n".join([*kept, line, ""]))


def test_words_that_slurm_takes(tmp_path: Path) -> None:
    text = CONF.replace("PriorityFavorSmall=YES", "PriorityFavorSmall=up").replace("MaxAge=1-0", "MaxAge=UNLIMITED")
    text = text.replace("CPUs=8", "CPUs=8 CoreSpecCount=2").replace("INCR_ONLY", "LATER")
    made = conf(tmp_path, text)
    assert (made.rules.favours, made.rules.oldest_s, made.rules.processors) == ("small", 1 << 32, 18)
    assert made.notes == ("PriorityFlags=LATER is not known",)


def member(account: str, user: str = "", shares: str = "1", cluster: str = "here", above: str = "root") -> Texts:
    return {"Cluster": cluster, "Account": account, "User": user, "Partition": "", "ParentName": above * (not user),
            "Fairshare": shares, "Priority": ""}  # fmt: skip


SHOWN: Final = (
    "JobId=7 UserId=ann(5) Nice=0 Account=a QOS=normal TimeLimit=Partition_Limit AccrueTime=1000 Partition=all "
    "AllocNode:Sid=here:1 NumCPUs=2-6 NumTasks=2 CPUs/Task=1 ReqB:S:C:T=0:0:*:* ReqTRES=(null) Socks/Node=*"
)
JOB: Final = of_lines(SHOWN, "JobId")["7"]


def test_members_and_jobs(tmp_path: Path) -> None:
    """Those of this cluster alone; what a job does not say."""
    (tmp_path / "slurm.conf").write_text(CONF.replace("Nodes=ALL", "Nodes=ALL MaxTime=90"))
    told = (
        member("root", above=""), member("a", shares="parent"), member("a", "ann", "30"), member("a", "bob", "parent"),
        member("b", shares="5", cluster="other"), member("b", "ann", cluster="other"),
        {**member("a", "eve"), "Partition": "few"},
    )  # fmt: skip
    made = priorities(replace(read_conf(tmp_path / "slurm.conf"), associations=told))
    assert list(made.members) == [("a", ""), ("a", "ann"), ("a", "bob")]
    assert (made.tree.shares, made.tree.above) == ((1, 30, -1), (-1, 0, 0))
    assert [note for note in made.notes if "account" in note or "association" in note] == [
        "1 associations of one partition are left out", "account a has Fairshare=parent: taken to be 1",
    ]  # fmt: skip
    asked = made.asking([JOB, {**JOB, "UserId": "nobody(9)", "TimeLimit": "UNLIMITED"}], np.array([0.0, 0.5, 0.25]))
    assert (asked.turn.tolist(), asked.limit_minutes.tolist()) == ([0.5, 0.0], [90, 1 << 32])
    assert (asked.processors.tolist(), asked.nodes.tolist()) == ([6, 6], [1, 1])


def test_a_slurm_without_accounts(tmp_path: Path) -> None:
    made = conf(tmp_path, CONF)
    assert made.rules(made.asking([JOB], np.empty(0)), 1000 + 86_400).tolist() == [1000]


@pytest.mark.parametrize("version", ["22.05", "24.11", "26.05"])
def test_what_three_versions_said(version: str) -> None:
    made = priorities(scontrol.read_folder(Path(__file__).parent / "recorded" / f"machine-{version}"))
    assert made.rules.weights == Weights(age=1000)
    assert made.members[("alpha", "")] >= 0
