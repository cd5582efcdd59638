"""Limits of QOS, partitions' QOS and associations: who takes from which, and that no replay goes beyond them."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dovetail.engine.replay import replay
from dovetail.errors import InputError, SettingError
from dovetail.model.plan import Plan
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.policies.base import Policy
from dovetail.policies.registry import policy
from dovetail.policies.slurm import Slurm, as_told
from dovetail.referee import check_schedule
from dovetail.slurm.limits import Limited, limited
from dovetail.slurm.machine import Machine
from tests.policies.test_slurm import jobs, kept, machine

ENFORCED = {"AccountingStorageEnforce": "associations,limits,qos"}


def with_limits(
    qos: dict[str, dict[str, str]] | None = None, accounts: dict[str, dict[str, str]] | None = None,
    partitions: dict[str, str] | None = None, **config: str,
) -> Machine:  # fmt: skip
    one = machine(**{**ENFORCED, **config})
    members = tuple(
        {**told, **((accounts or {}).get(told["Account"], {}) if not told["User"] else {})}
        for told in one.associations
    )  # fmt: skip
    parts = {name: {**texts, "QoS": (partitions or {}).get(name, "N/A")} for name, texts in one.partitions.items()}
    told = tuple({"Name": name, "Priority": "0", **limits} for name, limits in (qos or {}).items())
    return replace(one, qos=told, associations=members, partitions=parts)


def of(limits: Limited, partition: str = "batch", qos: str = "normal", account: str = "phys") -> set[str]:
    """Of a job of ann's."""
    found = limits.of((partition, qos, account, "ann"))
    return {f"{' '.join(filter(None, whose))}: {most} {what}" for whose, what, most, asks in found if asks}


def test_whose_limits_a_job_takes_from() -> None:
    qos = {"normal": {"GrpTRES": "cpu=10,mem=2G", "MaxJobsPerUser": "4", "MaxTRESPerAccount": "gres/gpu=3"}}
    limits = limited(with_limits(qos, {"root": {"GrpTRES": "cpu=99,node=7"}, "phys": {"GrpJobs": "6", "MaxJobs": "2"}}))
    assert of(limits) == {
        "normal together: 10 cpu",
        "normal together: 2048 mem",
        "normal by user ann: 4 jobs",
        "normal by account phys: 3 gres/gpu",
        "phys together: 6 jobs",
        "root together: 7 node",
    }  # what the QOS says of cores stands before what root says; and MaxJobsPerUser before MaxJobs of the account
    assert of(limits, qos="") == {"phys together: 6 jobs", "root together: 7 node", "root together: 99 cpu"}
    assert of(limits, qos="", account="chem") == {"root together: 7 node", "root together: 99 cpu"}
    assert of(limits, qos="", account="strange") == set()
    own = tuple({**one, "MaxJobs": "3"} if one["User"] == "ann" else one for one in with_limits().associations)
    assert of(limited(replace(with_limits(), associations=own)), qos="") == {"phys ann of an association: 3 jobs"}


def test_a_partition_has_a_qos_of_its_own() -> None:
    """It comes first, unless that of the job has OverPartQOS."""
    qos = {"normal": {"GrpJobs": "9", "MaxJobsPerUser": "5"}, "part": {"GrpJobs": "3"}}
    first = with_limits(qos, partitions={"urgent": "part"})
    assert of(limited(first), "batch") == {"normal together: 9 jobs", "normal by user ann: 5 jobs"}
    assert of(limited(first), "urgent") == {"part together: 3 jobs", "normal by user ann: 5 jobs"}
    qos["normal"]["Flags"] = "DenyOnLimit,OverPartQOS"
    other = limited(with_limits(qos, partitions={"urgent": "part"}))
    assert of(other, "urgent") == {"normal together: 9 jobs", "normal by user ann: 5 jobs"}


def test_what_is_not_followed_is_told() -> None:
    qos = {"normal": {"GrpTRES": "billing=10,cpu=4", "GrpTRESRunMins": "cpu=100"}}
    notes = as_told(with_limits(qos))[1]
    assert "GrpTRESRunMins of QOS or accounts is not followed" in notes
    assert "limits of billing are not followed" in notes
    for strange in ("many", "-3", "9" * 12):
        with pytest.raises(InputError, match="limits: MaxJobsPerUser="):
            limited(with_limits({"normal": {"MaxJobsPerUser": strange}}))
    with pytest.raises(InputError, match="limits: "):
        limited(with_limits({"normal": {"GrpTRES": "cpu"}}))


def test_a_slurm_that_enforces_none() -> None:
    limits = limited(with_limits({"normal": {"GrpJobs": "1"}}, AccountingStorageEnforce="associations"))
    assert not limits
    assert of(limits.changed("normal", "grpjobs", "2")) == {"normal together: 2 jobs"}
    assert of(limits.changed("phys", "GrpTRES", "cpu=4", account=True)) == {"phys together: 4 cpu"}
    for words in (("norml", "GrpJobs", "2"), ("normal", "GrpJob", "2"), ("normal", "GrpTRES", "billing=3")):
        with pytest.raises(ValueError, match=r"did you mean|at least 1"):
            limits.changed(*words)


def most_at_once(made: Schedule, amount: np.ndarray, among: np.ndarray) -> int:
    """The most that some jobs ever have together."""
    here = np.flatnonzero(among)
    starts = made.start[here]
    running = (starts[:, None] <= starts) & (starts < (made.start + made.workload.runtime)[here][:, None])
    return int((amount[here][:, None] * running).sum(axis=0).max())


def test_no_replay_goes_beyond() -> None:
    """Counted job by job: of each user, and of an account; the limits bind, and each is reached."""
    workload, cluster = jobs(random.Random(4))
    workload = replace(
        workload, columns={**workload.columns, "qos": np.zeros(len(workload), np.int64)},
        names={**workload.names, "qos": ("normal",)},
    )  # fmt: skip
    made_of = as_told(with_limits({"normal": {"MaxJobsPerUser": "1"}}, {"chem": {"GrpTRES": "cpu=16"}}))[0]
    made = replay(workload, made_of, cluster=cluster)
    assert not check_schedule(made)
    ones = np.ones(len(workload), np.int64)
    assert [most_at_once(made, ones, workload["user"] == user) for user in range(4)] == [1] * 4
    account = workload.names["account"].index("chem")
    bare = replay(workload, as_told(machine())[0], cluster=cluster)
    assert most_at_once(bare, ones, workload["user"] == 0) > 1
    assert most_at_once(made, workload.size, workload["account"] == account) <= 16
    assert made.start.tolist() == replay(workload, made_of, cluster=cluster, event_by_event=True).start.tolist()


def test_a_job_larger_than_a_limit_is_let_through() -> None:
    """It ran, so somebody let it; else a replay would wait for ever."""
    workload, cluster = jobs(random.Random(4))
    made_of = as_told(with_limits(accounts={"phys": {"GrpTRES": "cpu=4"}}))[0]
    claims = made_of.limits.of_workload(workload)
    large = (workload.size > 4) & (workload["account"] == 0)
    assert claims.exempt == large.sum() > 0
    made = replay(workload, made_of, cluster=cluster)
    assert (made.start >= 0).all()
    assert most_at_once(made, workload.size, ~large & (workload["account"] == 0)) <= 4


def test_settings_keep_them(tmp_path: Path) -> None:
    told = with_limits({"normal": {"GrpJobs": "2"}})
    path = kept(tmp_path, told)
    made = policy(f"slurm:conf={path}")
    assert isinstance(made, Slurm)
    assert made.limits == limited(told)
    assert made != replace(made, limits=Limited())


def test_a_state_alone_does_not_say_them() -> None:
    workload, cluster = jobs(random.Random(4))
    made = as_told(with_limits(accounts={"phys": {"GrpJobs": "1"}}, PriorityType="priority/basic"))[0]

    class Through(Policy):
        name = "through"

        def decide(self, state: State) -> Plan:
            return replace(made, tiers={}).made(state)

    with pytest.raises(SettingError, match="what they take from limits"):
        replay(workload, Through(), cluster=cluster)


def test_all_limits_count_whichever_is_asked() -> None:
    """Slurm's JOB_BEGIN adds to each QOS and association of a job: three that the partition's QOS lets are in the books
    of their own QOS, too."""
    workload, cluster = jobs(random.Random(4), many=4)
    zero = np.zeros(4, np.int64)
    few = {"submit": zero, "runtime": zero + 100, "limit": zero + 300, "size": zero + 4, "units": zero + 1,
           "per_node": zero, "partition": np.array([1, 1, 1, 0]), "qos": zero}  # fmt: skip
    workload = replace(workload, columns={**workload.columns, **few}, names={**workload.names, "qos": ("normal",)})
    qos = {"normal": {"GrpJobs": "3"}, "part": {"GrpJobs": "10"}}
    told = as_told(with_limits(qos, partitions={"urgent": "part"}))[0]
    assert sorted(replay(workload, told, cluster=cluster).start.tolist()) == [0, 0, 0, 100]


def test_limits_that_are_changed() -> None:
    limits = limited(with_limits({"normal": {"GrpTRES": "cpu=8,node=4"}}))
    assert of(limits.changed("normal", "GrpTRES", "node=2")) == {"normal together: 8 cpu", "normal together: 2 node"}
    assert of(limits.changed("normal", "GrpTRES", "cpu=-1")) == {"normal together: 4 node"}
    assert of(limits.changed("phys", "MaxJobs", "2", account=True), qos="") == {"phys ann of an association: 2 jobs"}
    for strange in ("0", "many", ""):
        with pytest.raises(ValueError, match=r"at least 1|no number of jobs"):
            limits.changed("normal", "GrpJobs", strange)


def test_limits_that_nobody_enforces_need_not_be_read() -> None:
    assert not limited(with_limits({"normal": {"GrpJobs": "N"}}, AccountingStorageEnforce="none"))


def test_limits_of_one_partition_are_named() -> None:
    one = with_limits()
    odd = ({**one.associations[-1], "Partition": "batch", "MaxJobs": "1"},)
    notes = limited(replace(one, associations=(*one.associations, *odd))).notes
    assert notes == ("limits of 1 associations of one partition are not followed",)
