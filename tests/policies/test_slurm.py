"""`slurm` with the settings of a Slurm, and priorities that move while jobs wait."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dovetail.engine.replay import replay
from dovetail.errors import InputError, SettingError
from dovetail.model.cluster import Cluster, NodeKind, by_node
from dovetail.model.shares import Usage
from dovetail.model.workload import Workload
from dovetail.policies.registry import policy
from dovetail.policies.slurm import Slurm, as_told
from dovetail.referee import check_schedule
from dovetail.slurm.conf import read_conf
from dovetail.slurm.machine import Machine, Texts

ACCOUNTS = {"phys": 60, "chem": 30}
USERS = {"ann": "phys", "bob": "phys", "cy": "chem"}


def machine(parameters: str = "bf_window=2880,bf_continue", **config: str) -> Machine:
    """Eight nodes, a second partition of a higher tier, and shares."""
    node: Texts = {"CPUTot": "4", "RealMemory": "8000"}
    partitions = {"batch": {"Nodes": "ALL", "PriorityTier": "1"}, "urgent": {"Nodes": "ALL", "PriorityTier": "10"}}

    def member(account: str, user: str = "", above: str = "", shares: int = 1) -> Texts:
        told = {"Account": account, "User": user, "ParentName": above, "Fairshare": str(shares)}
        return {"Cluster": "", "Partition": "", "Priority": "", **told}

    told = {
        "SchedulerType": "sched/backfill", "SchedulerParameters": parameters, "PriorityType": "priority/multifactor",
        "PriorityWeightFairShare": "10000", "PriorityWeightAge": "5000", "PriorityMaxAge": "0-1",
        "PriorityWeightJobSize": "700", "SLURM_VERSION": "24.11.5", "PriorityDecayHalfLife": "0-1", **config,
    }  # fmt: skip
    members = [member("root"), *(member(name, above="root", shares=shares) for name, shares in ACCOUNTS.items())]
    members += [member(account, user) for user, account in USERS.items()]
    nodes = {f"n{at}": {"NodeName": f"n{at}", **node} for at in range(8)}
    return Machine("test", nodes, partitions, told, associations=tuple(members))


def kept(folder: Path, one: Machine) -> Path:
    """As `dovetail cluster import-slurm` keeps it."""
    path = folder / "c.slurm.json"
    told = one.kept() | {"partitions": [{"PartitionName": name, **texts} for name, texts in one.partitions.items()]}
    path.write_text(json.dumps(told))
    return path


def jobs(rng: random.Random, many: int = 60) -> tuple[Workload, Cluster]:
    """More than fit, of three users and somebody whom nobody knows."""
    users, submit, rows = (*USERS, "eve"), 0, list[tuple[int, ...]]()
    accounts = (*ACCOUNTS, "other")
    for number in range(many):
        submit += rng.randint(0, 200)
        user, limit = rng.randrange(len(users)), rng.choice((300, 600, 1800))
        account = accounts.index(USERS.get(users[user], "other"))
        rows.append((
            number, submit, 4, rng.randint(1, limit), limit, 1, 4, 0, rng.randrange(2), user, account,
        ) if rng.random() < 0.5 else (
            number, submit, 16, rng.randint(1, limit), limit, 4, 4, 1, 0, user, account,
        ))  # fmt: skip
    columns = dict(zip((
        "id", "submit", "size", "runtime", "limit", "units", "unit_cores", "per_node", "partition", "user", "account",
    ), np.array(rows, np.int64).T, strict=True))  # fmt: skip
    names = {"partition": ("batch", "urgent"), "user": users, "account": accounts}
    return Workload("test", columns, 32, names=names), by_node(("cores",), (NodeKind("n", 8, (4,)),))


def test_settings_of_a_machine(tmp_path: Path) -> None:
    path = kept(tmp_path, machine("bf_window=2880,bf_continue,bf_interval=0,bf_licenses,BF_Max_Job_Test=77"))
    made = policy(f"slurm:conf={path},bf_resolution=120")
    assert isinstance(made, Slurm)
    assert (made.bf_window, made.bf_resolution, made.bf_max_job_test, made.bf_interval) == (2880, 120, 77, 30)
    assert (made.version, made.order, made.tiers) == ("24.11", "multifactor", {"batch": 1, "urgent": 10})
    assert made.name == f"slurm:conf={path},bf_resolution=120"
    assert as_told(machine("bf_window=60,bf_window=90"))[0].bf_window == 60  # a Slurm looks for the first
    notes = as_told(machine("bf_interval=0,bf_licenses,bf_continue", PreemptType="preempt/qos"))[1]
    assert len(notes) == 3
    for words in ("bf_interval=0 must be from 1", "bf_licenses is not followed", "PreemptType=preempt/qos"):
        assert any(words in note for note in notes)


@pytest.mark.parametrize(
    ("version", "rules"), [("22.05.8", "22.05"), ("24.05.1", "22.05"), ("26.05.2", "24.11"), ("", "24.11")]
)
def test_rules_of_a_version(version: str, rules: str) -> None:
    made, notes = as_told(machine(SLURM_VERSION=version))
    assert made.version == rules
    assert any("version" in note for note in notes) == (not version)


def test_no_priorities() -> None:
    assert as_told(machine(PriorityType="priority/basic"))[0].order == "fifo"
    with pytest.raises(SettingError, match="only sched/backfill"):
        as_told(machine(SchedulerType="sched/builtin"))
    with pytest.raises(SettingError, match="needs weights: conf="):
        policy("slurm:order=multifactor")


@pytest.mark.parametrize("text", [
    "", "[]", "{}", '{"nodes": [], "partitions": []}', '{"nodes": [{}], "partitions": [], "config": {}}',
    '{"nodes": 3, "partitions": [], "config": {}}', '{"nodes": [], "partitions": [], "config": {"a": 1}}', "[" * 10_000,
    '{"nodes": [], "partitions": [{"PartitionName": "a", "PriorityTier": "x"}], "config": {}}',
])  # fmt: skip
def test_hostile_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.slurm.json"
    path.write_text(text)
    with pytest.raises(InputError):
        policy(f"slurm:conf={path}")


@pytest.mark.parametrize(
    "parameters", ["conf=1", "phase=7", "order=fifo", "bf_window=" + "9" * 5000, "bf_window=\u0663\u0660"]
)
def test_parameters_that_no_slurm_has(parameters: str) -> None:
    made, notes = as_told(machine(parameters))
    assert made == as_told(machine(""))[0]
    assert len(notes) == 1


@pytest.mark.parametrize(("key", "records"), [
    ("associations", [{}]), ("associations", [{"Account": "a"}]), ("associations", [{"Account": "a", "User": ""}]),
    ("associations", [{"Account": "a", "User": "", "ParentName": "root"}]), ("qos", [{}]),
    ("partitions", [{"PartitionName": "a", "PriorityTier": "9" * 15}]),
])  # fmt: skip
def test_records_that_say_too_little(tmp_path: Path, key: str, records: list[Texts]) -> None:
    path = kept(tmp_path, machine())
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: records}))
    with pytest.raises(InputError):
        policy(f"slurm:conf={path}")


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"CLUSTER\.slurm\.json"):
        policy(f"slurm:conf={tmp_path / 'noext'}")
    with pytest.raises(InputError, match="no list such as"):
        as_told(machine(PriorityWeightTRES="cpu=1e308,node=-1e308"))


def test_a_slurm_that_knows_no_users() -> None:
    workload, cluster = jobs(random.Random(1))
    made, notes = as_told(replace(machine(), associations=()))
    assert any("no users are known" in note for note in notes)
    one = replay(workload, made, cluster=cluster)
    assert one.start.tolist() == replay(workload, made, cluster=cluster, event_by_event=True).start.tolist()


def test_jobs_whose_names_are_not_the_machines(tmp_path: Path) -> None:
    workload, cluster = jobs(random.Random(1))
    made = as_told(machine())[0]
    strange = replace(workload, names={**workload.names, "user": ("a", "b", "c", "d")})
    with pytest.raises(SettingError, match="none of the jobs"):
        replay(strange, made, cluster=cluster)
    names = {name: one for name, one in workload.names.items() if name != "partition"}
    with pytest.raises(SettingError, match="partitions have tiers"):
        replay(replace(workload, names=names), made, cluster=cluster)
    assert policy(f"switch:plain=slurm;conf={kept(tmp_path, machine())}").turns == made.turns


def test_older_files(tmp_path: Path) -> None:
    """Priority of a partition is its tier and its factor, and weights are found however they are spelled."""
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        "NodeName=n[1-2] CPUs=4\nPartitionName=a Nodes=ALL Priority=10\nPartitionName=b Nodes=ALL PriorityTier=7\n"
        "PriorityType=priority/multifactor\nPriorityWeightFairshare=1000\n"
    )
    made = as_told(read_conf(conf))[0]
    assert made.tiers == {"a": 10, "b": 7}
    assert made.ranks is not None
    assert (made.ranks.rules.partitions, made.ranks.rules.weights.turn) == ((10, 1), 1000)


def test_moving_priorities() -> None:
    """The replay asks for them when a job comes and every five minutes; asked at each pass they are the same."""
    for seed in range(8):
        workload, cluster = jobs(random.Random(seed))
        made = as_told(machine())[0]
        one = replay(workload, made, cluster=cluster)
        other = replay(workload, made, cluster=cluster, event_by_event=True)
        assert one.start.tolist() == other.start.tolist()
        assert not check_schedule(one)
        by_arrival = replay(workload, as_told(machine(PriorityType="priority/basic"))[0], cluster=cluster)
        assert one.start.tolist() != by_arrival.start.tolist()


@pytest.mark.parametrize("enforces", ["associations,limits,safe", "none"])
def test_priorities_are_the_sum_that_it_should_be(enforces: str) -> None:
    """By hand, at every moment of a replay: standing by what was used at the last full five minutes, age since then.
    Where no limits are enforced, what a job uses after that is lost when it ends."""
    workload, cluster = jobs(random.Random(3))
    made = as_told(machine(AccountingStorageEnforce=enforces))[0].at(None, workload, cluster)
    assert isinstance(made, Slurm)
    assert made.ranks is not None
    tree, members, first = made.ranks.tree, made.ranks.members, int(workload.submit[0])
    names = workload.names
    owner = [
        members.get((names["account"][account], names["user"][user]), -1)
        for account, user in zip(workload["account"].tolist(), workload["user"].tolist(), strict=True)
    ]
    seen = 0

    class Watching(Slurm):
        def keys(self, state):  # type: ignore[no-untyped-def]
            nonlocal seen
            found = super().keys(state)
            usage = Usage(tree, 3600, first)
            for moment in range(first + 300, state.now + 1, 300):
                usage.pass_to(moment)
                for job in np.flatnonzero(state.start >= 0).tolist():
                    end = int(state.start[job] + workload.runtime[job])
                    lasted = min(end, moment) - max(int(state.start[job]), moment - 300)
                    lasted = 0 if enforces == "none" and end <= moment else lasted
                    if lasted > 0 and owner[job] >= 0:
                        usage.add([owner[job]], [int(workload.size[job])], [lasted])
            stand = usage.standing()
            last = state.now - (state.now - first) % 300
            for job, key in zip(state.waiting.tolist(), found.tolist(), strict=True):
                age = max(last - int(workload.submit[job]), 0) / 3600
                nodes = 4 if workload.size[job] == 16 else 1
                size = (nodes / 8 + int(workload.size[job]) / 32) / 2
                turn = stand[owner[job]] if owner[job] >= 0 else 0.0
                rank = max(int(min(age, 1) * 5000 + turn * 10_000 + size * 700), 1)
                tier = (1, 10)[int(workload["partition"][job])]
                assert key == -tier * 2.0**32 - rank
                seen += 1
            return found

    watching = Watching(**{name: getattr(made, name) for name in ("version", "order", "tiers", "ranks")})
    replay(workload, watching, cluster=cluster)
    assert seen > 500
