"""What jobs asked of nodes, from what sacct says and from submit lines."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from dovetail.engine.replay import replay
from dovetail.io.node_list import host_list
from dovetail.model.cluster import Cluster, NodeKind, by_node, with_features
from dovetail.model.workload import Workload
from dovetail.referee import check_schedule
from dovetail.slurm.history import read_history
from dovetail.slurm.submit_line import NOTHING, Evidence, evidence

FIELDS = (
    "JobIDRaw|Submit|Start|End|State|ReqTRES|AllocTRES|NNodes|NodeList|Partition|Constraints|SubmitLine|TimelimitRaw"
)


def cluster() -> Cluster:
    kinds = (
        NodeKind("c", 4, (16, 64000, 0), ("cpu",)), NodeKind("f", 2, (32, 256000, 0), ("cpu", "bigmem")),
        NodeKind("g", 2, (16, 128000, 4), ("gpu", "gpu:a100")),
    )  # fmt: skip
    made = with_features(by_node(("cores", "memory_mb", "gpus"), kinds), {"partition=gpu": [6, 7]})
    names = ("c1", "c2", "c3", "c4", "f1", "f2", "g1", "g2")
    return Cluster(made.processors, made.resources, made.kinds, names=names)


def job(
    number: int,
    asked: str,
    given: str,
    nodes: str,
    partition: str = "",
    feature: str = "",
    line: str = "",
    at: int = 100,
) -> str:
    many = given.partition("node=")[2].split(",")[0]
    return f"{number}|50|100|200|COMPLETED|{asked}|{given}|{many}|{nodes}|{partition}|{feature}|{line}|60"


def read(folder: Path, *jobs: str, nodes: Cluster | None = None) -> Workload:
    (folder / "dump.txt").write_text("\n".join([FIELDS, *jobs, ""]))
    return read_history(folder / "dump.txt", 160, cluster=nodes)[0]


def shape(log: Workload, at: int = 0) -> tuple[int, int, int, int]:
    return tuple(int(log.get(name)[at]) for name in ("units", "unit_cores", "exclusive", "shape"))  # type: ignore[return-value]


def test_who_was_given_all_of_its_nodes_asked_for_whole_nodes(tmp_path: Path) -> None:
    """sacct says so in no field before 26.05; without the cluster nobody can know."""
    told = job(1, "cpu=8,mem=8000M,node=1", "cpu=48,mem=48000M,node=2", "c1,f1")
    assert shape(read(tmp_path, told, nodes=cluster())) == (2, 4, 1, 1)
    assert shape(read(tmp_path, told)) == (48, 1, -1, 1)
    asked_for_all = job(1, "cpu=16,node=1", "cpu=16,node=1", "c1")
    assert shape(read(tmp_path, asked_for_all, nodes=cluster())) == (1, 16, -1, 0)
    part = job(1, "cpu=8,node=1", "cpu=16,node=1", "f1")  # a core has two threads, perhaps
    assert shape(read(tmp_path, part, nodes=cluster())) == (1, 16, -1, 0)


def test_parts_have_nodes_of_their_own_where_so_many_were_asked_for(tmp_path: Path) -> None:
    apart = job(1, "cpu=16,mem=16000M,node=2", "cpu=16,mem=16000M,node=2", "c[1-2]")
    spread = job(2, "cpu=16,mem=16000M,node=1", "cpu=16,mem=16000M,node=2", "c[1-2]")
    one = job(3, "cpu=8,mem=8000M,node=1", "cpu=8,mem=8000M,node=1", "c1")
    whole = job(4, "cpu=2,mem=2000M,node=2", "cpu=32,mem=32000M,node=2", "c[1-2]")
    log = read(tmp_path, apart, spread, one, whole, nodes=cluster())
    assert log["per_node"].tolist() == [1, -1, -1, -1]
    assert log["units"].tolist()[:1] == [2]


def test_a_submit_line_tells_of_whole_nodes_and_of_their_number(tmp_path: Path) -> None:
    whole = job(1, "cpu=8,mem=8000M,node=2", "cpu=32,node=2", "c[1-2]", line="sbatch --exclusive -n8 run.sh")
    assert shape(read(tmp_path, whole)) == (2, 4, 1, 1)
    exactly = job(1, "cpu=8,node=2", "cpu=8,node=2", "c[1-2]", line="sbatch -N2 --ntasks=8 run.sh --exclusive")
    assert shape(read(tmp_path, exactly)) == (2, 4, -1, 0)
    assert "SubmitLine" not in str(read(tmp_path, exactly).columns.keys())


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("sbatch --exclusive -N 4 job.sh", Evidence(True, 4)), ("/usr/bin/srun -N4-4 hostname", Evidence(False, 4)),
        ("sbatch -J a --nodes=2 x", Evidence(False, 2)), ("sbatch --nodes 2-8 x", NOTHING),
        ("sbatch job.sh --exclusive", NOTHING), ("sbatch -J exclusive --time 5 run --exclusive", NOTHING),
        ("sbatch --job-name --exclusive -N3 run", Evidence(False, 3)), ("sbatch --exclusive=user x", NOTHING),
        ("sbatch -H --exclusive --hold", Evidence(True, 0)), ("python --exclusive", NOTHING), ("", NOTHING),
        ("sbatch -N x", NOTHING), ("sbatch - --exclusive", NOTHING), ("sbatch -J two words --exclusive", NOTHING),
        ("sbatch --wrap=sleep 5 --exclusive", NOTHING),
    ],
)  # fmt: skip
def test_what_a_submit_line_proves(line: str, found: Evidence) -> None:
    assert evidence(line) == found


def test_where_jobs_may_run(tmp_path: Path) -> None:
    nodes = cluster()
    log = read(
        tmp_path,
        job(1, "cpu=1,gres/gpu:a100=1,node=1", "cpu=1,gres/gpu:a100=1,node=1", "g1", "gpu", "[gpu*1]"),
        job(2, "cpu=1,node=1", "cpu=1,node=1", "f1", "old", "cpu,bigmem"),
        job(3, "cpu=1,node=1", "cpu=1,node=1", "f1", "", "cpu bigmem"),
        job(4, "cpu=1,node=1", "cpu=1,node=1", "gone7"),
        nodes=nodes,
    )
    assert [log.called("feature", one) for one in log["feature"].tolist()] == ["(gpu)&gpu:a100", "cpu&bigmem", ""]
    assert log.set_aside.counts() == {"ran on nodes that the cluster does not have": 1}
    made = replay(log, "easy", cluster=nodes)
    assert made.placement is not None
    assert [int(made.placement.of(at)[0]) in ran for at, ran in enumerate(((6, 7), (4, 5), range(8)))] == [True] * 3


def test_what_happened_on_nodes_passes_the_referee(tmp_path: Path) -> None:
    """Six cores on two nodes, beside others that leave room for one and five, or for four and two."""
    nodes = cluster()
    beside = [
        job(2, "cpu=15,node=1", "cpu=15,node=1", "c1").replace("|50|100|", "|50|150|"),
        job(3, "cpu=11,node=1", "cpu=11,node=1", "c2"),
    ]  # fmt: skip
    log = read(tmp_path, job(1, "cpu=6,node=1", "cpu=6,node=2", "c[1-2]"), *beside, nodes=nodes)
    made = replay(log, "recorded", cluster=nodes)
    assert check_schedule(made) == []
    assert made.placement is not None
    assert sorted(made.placement.of(0).tolist()) == [0, 1, 1, 1, 1, 1]
    full = read(tmp_path, job(1, "cpu=7,node=1", "cpu=7,node=2", "c[1-2]"), *beside, nodes=nodes)
    assert len(check_schedule(replay(full, "recorded", cluster=nodes))) == 1


def test_resources_that_the_cluster_does_not_count(tmp_path: Path) -> None:
    plain = by_node(("cores",), (NodeKind("c", 2, (16,)),))
    log = read(tmp_path, job(1, "cpu=1,mem=100M,node=1", "cpu=1,mem=100M,node=1", "c1"), nodes=plain)
    assert "unit_memory_mb" not in log
    assert np.all(replay(log, "easy", cluster=plain).start >= 0)


def test_places_of_random_jobs_are_found(tmp_path: Path) -> None:
    """Jobs that ran as a policy put them, told by lists of nodes alone: each gets a place, and the referee agrees."""
    draw, nodes, wrong, jobs = random.Random(5), cluster(), 0, 0
    for _ in range(30):
        lines = []
        for number in range(20):
            asked = draw.choice((1, 3, 7, 16, 20))
            times = f"{draw.randrange(500)}|1000|{draw.randrange(1100, 2000)}"
            lines.append(f"{number}|{times}|COMPLETED|cpu={asked},node=1|cpu={asked}|1|c1||||60")
        log = read(tmp_path, *lines)
        columns = {name: log[name] for name in ("id", "line", "submit", "size", "runtime", "limit")}
        plain = Workload("plain", columns | {"limit": log.runtime}, 160)
        truth = replay(plain, "easy", cluster=nodes)
        assert truth.placement is not None
        told = []
        for at in range(len(plain)):
            had = list(dict.fromkeys(truth.placement.of(at).tolist()))
            amount = f"cpu={plain.size[at]},node={len(had)}"
            where = host_list(nodes.names[node] for node in sorted(had))
            start, end = int(truth.start[at]), int(truth.start[at] + plain.runtime[at])
            times = f"{plain.submit[at] + 1}|{start + 1}|{end + 1}"
            told.append(f"{at}|{times}|COMPLETED|cpu={plain.size[at]},node=1|{amount}|{len(had)}|{where}||||60")
        again = read(tmp_path, *told)
        found = replay(again, "recorded", cluster=nodes)
        broken = check_schedule(found)
        wrong += len(broken)
        jobs += len(again)
    assert jobs == 600
    assert wrong <= 7  # of these: a unit that no other can make room for
