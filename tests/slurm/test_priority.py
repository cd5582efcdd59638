"""How a Slurm gives priorities, by its slurm.conf and by what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from dovetail.errors import DovetailError
from dovetail.policies.multifactor import Weights
from dovetail.slurm import scontrol
from dovetail.slurm.conf import read_conf
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
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, line: str, said: str) -> None:
    key = line.partition("=")[0]
    kept = [one for one in CONF.splitlines() if not one.startswith(key + "=")]
    with pytest.raises(DovetailError, match=said):
        conf(tmp_path, "\n".join([*kept, line, ""]))


@pytest.mark.parametrize("version", ["22.05", "24.11", "26.05"])
def test_what_three_versions_said(version: str) -> None:
    made = priorities(scontrol.read_folder(Path(__file__).parent / "recorded" / f"machine-{version}"))
    assert made.rules.weights == Weights(age=1000)
    assert made.members[("alpha", "")] >= 0
