"""What three versions of Slurm said of one machine, and what slurm.conf says of it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dovetail.cli.main import app
from dovetail.errors import InputError
from dovetail.io.clusters import read_cluster
from dovetail.model.cluster import Cluster
from dovetail.slurm import scontrol
from dovetail.slurm.conf import read_conf
from dovetail.slurm.machine import Machine, of_lines, unknown_settings
from tests.slurm.real import VERSIONS, RealSlurm, needs_slurm

RECORDED = Path(__file__).parent / "recorded"
TOLD = ("22.05", "24.11", "26.05")


def told(version: str) -> Machine:
    return scontrol.read_folder(RECORDED / f"machine-{version}")


def conf(folder: Path, text: str) -> Machine:
    (folder / "slurm.conf").write_text(text)
    return read_conf(folder / "slurm.conf")


@pytest.mark.parametrize("version", TOLD)
def test_what_was_said_and_what_was_configured_make_the_same_cluster(version: str) -> None:
    notes: list[str] = []
    found = told(version).cluster(notes)
    assert notes == []
    assert found == read_conf(RECORDED / f"machine-{version}" / "slurm.conf").cluster(notes)
    assert found.names == ("c1", "c2", "c3", "c4", "f1", "f2", "g1", "g2")
    assert [kind.capacity for kind in found.kinds] == [(16, 64000, 0), (32, 256000, 0), (16, 128000, 4)]
    assert sorted(found.partitions) == ["batch", "bigmem", "gpu"]
    assert found.kinds[2].features == ("gpu", "gpu:a100", "partition=gpu", "partition=batch")
    assert found.licences == (("matlab", 20),)
    assert told(version).version.startswith(version)
    assert unknown_settings(told(version)) == []


@pytest.mark.parametrize("version", TOLD)
def test_when_nodes_were_out(version: str) -> None:
    machine, notes = told(version), list[str]()
    cluster = machine.cluster(notes)
    of = {one["Name"]: one for one in machine.reservations}
    first = int(machine.events[0]["Start"]) - 100
    found = machine.outages(cluster, first, ["was", "other"], notes)
    begun = {cluster.names[one.nodes[0]]: one for one in found}
    down, drained = begun["c3"], begun["c4"]
    assert (down.begin, down.known, down.end - down.begin < 30) == (100, 100, True)
    assert drained.end == machine.asked_at - first
    assert (begun["g1"].nodes, begun["g1"].only, begun["g1"].end - begun["g1"].begin) == ((6, 7), "was", 60)
    planned = [one for one in found if one.nodes == (0, 1)]
    assert [(one.begin, one.only, one.known) for one in planned] == [(int(of["m1"]["Start"]) - first, "", 0)]
    assert notes == [
        "1 outages of nodes have no end yet: they end when Slurm was asked",
        "reservations of cores, of licences or without an end are left out: half",
    ]
    unasked, notes = replace(machine, asked_at=0), []
    assert "c4" not in {cluster.names[one.nodes[0]] for one in unasked.outages(cluster, first, [], notes)}
    assert notes[0] == "1 outages of nodes have no end yet: left out, as nobody knows when Slurm was asked"
    later = machine.outages(cluster, machine.asked_at + 10**6, [], [])
    assert later == ()


def test_reservations_of_whole_nodes_and_of_some_cores() -> None:
    """CPUs are threads: a reservation of all of a node may count half as many cores."""
    nodes = {"a": {"CPUTot": "128", "ThreadsPerCore": "2"}, "b": {"CPUTot": "128"}}
    common = {"Start": "500", "End": "900", "CoreCnt": "64"}
    rows = (
        common | {"Name": "all", "Nodes": "a", "TRES": "cpu=128"},
        common | {"Name": "some", "Nodes": "b", "TRES": "cpu=2"},
        common | {"Name": "flag", "Nodes": "b", "Flags": "MAINT,ALL_NODES", "TRES": "cpu=64"},
        common | {"Name": "old", "Nodes": "a", "End": "90"}, common | {"Name": "a,b", "Nodes": "b", "Start": "600"},
    )  # fmt: skip
    machine, notes = Machine("here", nodes, {}, reservations=rows), list[str]()
    found = machine.outages(machine.cluster(notes), 100, ["all", "a,b"], notes)
    assert [(one.nodes, one.begin, one.only) for one in found] == [((1,), 400, ""), ((0,), 400, "all"), ((1,), 500, "")]
    assert notes == [
        "reservations that count as of nobody, too many or with odd names: a,b",
        "reservations of cores, of licences or without an end are left out: some",
    ]
    many = tuple(common | {"Name": f"r{n}", "Nodes": "a", "TRES": "cpu=128"} for n in range(150))
    machine = Machine("here", nodes, {}, reservations=many)
    cluster = machine.cluster([])
    outages = machine.outages(cluster, 100, [f"r{n}" for n in range(150)], [])
    assert len(replace(cluster, outages=outages).reservations) == 100


def test_what_is_odd_is_said(tmp_path: Path) -> None:
    notes: list[str] = []
    conf(tmp_path, "NodeName=a CPUs=1\nX11Parameters=x\nPartitionName=p Nodes=\n").cluster(notes)
    assert notes == ["partition p has no node: its jobs may run anywhere"]
    with pytest.raises(InputError, match="no name of a node"):
        conf(tmp_path, "NodeName= CPUs=8\n").cluster([])
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "n.conf").write_text("NodeName=b CPUs=2\n")
    assert list(conf(tmp_path, "Include /etc/slurm/conf.d/*.conf\n").nodes) == ["b"]
    (tmp_path / "more.conf").write_text("NodeName=c CPUs=2\n")
    assert list(conf(tmp_path, "Include /etc/other/*.conf\n").nodes) == ["c"]
    for name in ("a**b", "x" * 5000):
        with pytest.raises(InputError, match="includes"):
            conf(tmp_path, f"Include {name}\n")


def test_a_reason_forges_nothing() -> None:
    """Somebody wrote a reason with keys of its own, and with another line."""
    for version in TOLD:
        machine = told(version)
        assert [one["NodeName"] for one in machine.events] == ["c3", "c4"]
        assert "c9" not in machine.nodes
    line = "NodeName=a CPUTot=4 RealMemory=100 State=IDLE Reason=x CPUTot=99 State=DOWN [root@1]"
    assert of_lines(line, "NodeName")["a"]["CPUTot"] == "4"


def test_a_slurm_conf_with_all_that_it_may_have(tmp_path: Path) -> None:
    (tmp_path / "parts.d").mkdir()
    (tmp_path / "linux_nodes").write_text(
        "nodename=b[1-2] SOCKETS=2 CoresPerSocket=8 ThreadsPerCore=2 CoreSpecCount=1\n"
    )
    (tmp_path / "parts.d" / "1.conf").write_text("PartitionName=fat Nodes=big,a3\n")
    (tmp_path / "parts.d" / "2.conf").write_text("PartitionName=all Nodes=ALL State=UP\n")
    found = conf(
        tmp_path,
        r"""ClusterName=linux
        # a comment, and a line that goes on
        SchedulerParameters=bf_window=1440,\
bf_interval=30   # minutes
        schedulertype=sched/backfill
        NodeName=DEFAULT RealMemory=1000 Feature=old
        NodeName=DEFAULT RealMemory=2000 MemSpecLimit=500 Weight=3
        NodeName=a[1-3] Procs=4 Gres=gpu:v100:2,nic:1 Reason="a text"
        Include /etc/slurm/%c_nodes
        NodeName=z[1-99] State=FUTURE
        NodeSet=big Nodes=b1 Feature=no
        PartitionName=DEFAULT MaxTime=60
        include parts.d/*.conf
        """,
    )
    notes: list[str] = []
    cluster = found.cluster(notes)
    assert notes == ["99 nodes of the future are left out", "devices that are not counted: gres/nic"]
    assert cluster.names == ("a1", "a2", "a3", "b1", "b2")
    capacity = {name: cluster.kinds[k].capacity for name, k in zip(cluster.names, cluster.kind_of, strict=True)}
    assert capacity == dict.fromkeys(("a1", "a2", "a3"), (4, 1500, 2)) | dict.fromkeys(("b1", "b2"), (30, 1500, 0))
    assert found.nodes_of("fat") == ("a3", "b1")
    assert (found.config["SchedulerType"], found.config["SchedulerParameters"]) == (
        "sched/backfill", "bf_window=1440,bf_interval=30"
    )  # fmt: skip
    assert found.partitions["fat"]["MaxTime"] == "60"
    assert cluster.having("partition=fat").tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Include other.conf", r"conf:1: includes other\.conf: copy it to "),
        ("Include /etc/shadow", r"conf:1: includes /etc/shadow: copy it to "),
        ("Include ../../etc/shadow", r"copy it to "),
        ("Include slurm.conf", "more than 10 files that include one another"),
        ("hello", "conf:1: no setting: 'hello'"),
        ("NodeName=a[1", r"conf:1: a\[1: .* no list of hosts"),
        ("ClusterName=x", "no node that is there"),
        ("NodeName=a Gres=9:4", "node a: Gres: '9:4' is no device"),
        ("NodeName=a CPUs=0", "node a: it says no number of CPUs"),
        ("NodeName=a\nPartitionName=p Nodes=a[", "partition p: .* no list of hosts"),
    ],
)
def test_a_slurm_conf_that_cannot_be_read(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        conf(tmp_path, text).cluster([])


def test_random_texts_are_refused_or_read(tmp_path: Path) -> None:
    whole = [path.read_text() for path in sorted(RECORDED.glob("machine-*/*.conf"))]
    draw = random.Random(4)
    refused = 0
    for _ in range(300):
        text = list(draw.choice(whole))
        for _ in range(draw.randrange(1, 12)):
            text[-draw.randrange(1, 800)] = draw.choice(["", "\n", *'[]=,-9\\#"', "\x1b"])
        try:
            cluster = conf(tmp_path, "".join(text)).cluster([])
        except InputError as error:
            refused += 1 + 300 * ("\x1b" in str(error))
        else:
            assert cluster.nodes == len(cluster.names)
    assert 20 < refused < 280


def imported(folder: Path, *words: str) -> tuple[Cluster, str]:
    done = CliRunner().invoke(app, ["cluster", "import-slurm", *words, "-o", str(folder / "here.toml")])
    assert done.exit_code == 0, done.output
    return read_cluster(folder / "here.toml"), done.output


def test_the_command_writes_what_it_read(tmp_path: Path) -> None:
    cluster, said = imported(tmp_path, str(RECORDED / "machine-24.11"))
    assert cluster == told("24.11").cluster([])
    assert "8 nodes in 3 kinds, 160 cores" in said
    assert all(len(line) <= 80 for line in said.splitlines() if not line.startswith("wrote"))
    kept = json.loads((tmp_path / "here.slurm.json").read_text())
    assert {one["NodeName"] for one in kept["nodes"]} == set(cluster.names)
    assert kept["qos"][-1]["GrpTRES"] == "cpu=64"
    assert (tmp_path / "here.slurm.json").stat().st_mode & 0o777 == 0o600
    _, said = imported(tmp_path, str(RECORDED / "machine-24.11"), "--json")
    assert json.loads(said)["scheduling"]["SchedulerType"] == "sched/backfill"


def test_the_command_says_what_to_do(tmp_path: Path) -> None:
    run = CliRunner().invoke
    for words, says in (
        (["-o", str(tmp_path / "a.toml")], "give --dump FOLDER to ask Slurm"),
        ([str(RECORDED)], "give --out cluster.toml"),
        ([str(RECORDED), "-o", str(tmp_path / "a.toml")], r"nodes.txt"),
    ):
        done = run(app, ["cluster", "import-slurm", *words])
        assert says in str(done.exception), done.output
    lines = run(app, ["cluster", "import-slurm", "--print-command"]).output.splitlines()
    assert len(lines) == 1 + len(scontrol.CALLS)


@needs_slurm
@pytest.mark.parametrize("version", VERSIONS)
def test_a_real_slurm_tells_its_machine(
    version: str, slurm: Callable[[str], RealSlurm], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = slurm(version)
    monkeypatch.setenv("PATH", real.programs(tmp_path / "bin")["PATH"])
    cluster, said = imported(tmp_path, "--dump", str(tmp_path / "dump"))
    assert "failed" not in said
    assert version in said
    conf = real.environment["SLURM_CONF"]
    assert cluster == read_conf(Path(f"{real.root or ''}{conf}")).cluster([])
    assert np.array_equal(cluster.kind_of, [0] * 4 + [1] * 2 + [2] * 2)
