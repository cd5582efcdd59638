"""Tables of Eurora and Alibaba: the real files, small ones by hand, and lines that are set aside."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from dovetail.errors import InputError
from dovetail.io import alibaba, eurora
from dovetail.io.clusters import cluster_named
from dovetail.io.parquet import read_parquet, write_parquet
from dovetail.io.read import read_workload
from dovetail.io.streams import BLOCK
from dovetail.model.cluster import by_node
from dovetail.workloads.filters import clean
from tests.conftest import TRACES, needs_traces
from tests.workloads.fits import cannot_run

FOLDER = TRACES / "heterogeneous"
HEAD = ",".join(eurora.FIELDS)
GOOD = "7,debug,2014-03-31 08:00:05,2014-03-31 08:10:05,2014-03-31 09:10:05,2,8,1,01:30,8,4,0,3145728,1+2,0,9.0"
PODS = ",".join(alibaba.POD_FIELDS)
POD = "openb-pod-0003,6000,12288,1,460,G2|T4,LS,Failed,100,700,120"
NODES = ",".join(alibaba.NODE_FIELDS)


def table(folder: Path, *lines: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_line_of_eurora(tmp_path: Path) -> None:
    later = GOOD.replace("7,", "8,", 1).replace("03-31", "04-01").replace("debug", "alpha")
    workload = read_workload(table(tmp_path, HEAD, later, GOOD))
    # Second 0 is midnight; 3 GB on two nodes are 2 GB each; the later line comes first.
    expected = {
        "id": [7, 8], "submit": [28805, 28805 + 86400], "wait": [600, 600], "runtime": [3600, 3600],
        "limit": [5400, 5400], "size": [8, 8], "units": [2, 2], "unit_cores": [4, 4], "unit_memory_gb": [2, 2],
        "unit_gpus": [2, 2], "unit_mics": [0, 0], "queue": [1, 0], "ran_on": [0, 0], "line": [3, 2],
    }  # fmt: skip
    assert {name: values.tolist() for name, values in workload.columns.items()} == expected
    assert workload.names["queue"] == ("alpha", "debug")
    assert workload.names["ran_on"] == ("0 1",)  # from 0 on
    other = read_workload(
        table(tmp_path, HEAD, GOOD.replace("1+2", "64+44"), GOOD.replace("7,", "8,").replace("1+2", "n1"))
    )
    assert (other.names["ran_on"], sorted(other["ran_on"].tolist())) == (("63 60",), [-1, 0])
    assert workload.processors == 1024
    assert workload.header["StartTime"] == ("2014-03-31 00:00:00 local time",)
    assert [(step.name, step.changed) for step in workload.provenance.steps] == [("sorted by submit", 1)]


def test_the_request_counts_where_the_record_differs(tmp_path: Path) -> None:
    workload = read_workload(table(tmp_path, HEAD, GOOD.replace("01:30,8,", "01:30,16,")))
    assert workload.size.tolist() == [8]
    assert workload.provenance.steps[0].changed == 1


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("7,", "x,", "job_id is not a whole number"),
        ("7,", "-7,", "job_id is not a whole number"),
        ("7,", "9,", "a job number that an earlier line has"),
        ("debug", "", "no queue"),
        ("debug", "de\x1bbug", "a byte that is not printable ASCII"),
        ("debug", "dé", "a byte that is not printable ASCII"),
        ("debug", "d" * 5000, "a line longer than 4,096 bytes"),
        ("debug", "a,b", "not 16 fields"),
        (",9.0", "", "not 16 fields"),
        ("08:00:05", "8:00:05", "submit is not an instant as 2014-03-31 08:51:10"),
        ("2014-03-31 08:00:05", "9014-03-31 08:00:05", "submit is not an instant as 2014-03-31 08:51:10"),
        ("2014-03-31 08:00:05", "2014-02-31 08:00:05", "day is out of range for month"),
        ("08:10:05", "07:10:05", "submit, start and end are not in this order"),
        (",2,8,1,", ",0,8,1,", "req_nodes is not from 1 to 1,000,000,000"),
        (",2,8,1,", ",3,8,1,", "cores, GPUs or MICs do not divide by the nodes"),
        (",2,8,1,", ",8,8,1,", "cores, GPUs or MICs do not divide by the nodes"),
        (",2,8,1,", ",2,9999999999,1,", "req_cores is not from 1 to 1,000,000,000"),
        ("01:30", "1.5h", "req_walltime_hhmm is not hours and minutes as 04:00"),
        ("01:30", "01:60", "req_walltime_hhmm is not hours and minutes as 04:00"),
        ("3145728", "1e6", "mem_kb_used is not a whole number"),
    ],
)
def test_lines_of_eurora_are_set_aside(tmp_path: Path, old: str, new: str, reason: str) -> None:
    other = GOOD.replace("7,", "9,", 1)
    workload = read_workload(table(tmp_path, HEAD, other, "", GOOD.replace(old, new, 1)))
    assert workload["id"].tolist() == [9]
    assert workload.set_aside.counts() == {reason: 1}
    assert workload.set_aside.line.tolist() == [4]
    assert workload.provenance.lines == 2


def test_a_table_without_a_good_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"table.csv:3: no queue; no line"):
        eurora.read_eurora(table(tmp_path, HEAD, "", GOOD.replace("debug", "")))
    with pytest.raises(InputError, match="no line behind"):
        eurora.read_eurora(table(tmp_path, HEAD))
    with pytest.raises(InputError, match=r":1: the first line must be job_id,queue"):
        eurora.read_eurora(table(tmp_path, GOOD))
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(InputError, match="the file is empty"):
        eurora.read_eurora(tmp_path / "empty")


def test_a_line_of_many_blocks_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "long.csv.gz"
    head = f"{HEAD}\n".encode()
    long = b"7" * (8 * BLOCK + 10 - len(head))  # a few bytes of it come alone, with the last block
    path.write_bytes(gzip.compress(head + long + f"\n{GOOD}".encode()))
    workload = read_workload(path)
    assert workload.set_aside.counts() == {"a line longer than 4,096 bytes": 1}
    assert workload["id"].tolist() == [7]


def test_the_door_tells_files_apart(tmp_path: Path) -> None:
    assert read_workload(table(tmp_path, f"\ufeff{HEAD}\r", f"{GOOD}\r")).name == "eurora"
    assert read_workload(table(tmp_path, PODS, POD, name="pods.csv")).name == "pods"
    with pytest.raises(InputError, match="is it an SWF log"):
        read_workload(table(tmp_path, f"{HEAD},more", GOOD))


def test_a_pod(tmp_path: Path) -> None:
    plain = "openb-pod-0001,1500,0,0,0,,BE,Pending,300,300,"
    workload = alibaba.read_pods(table(tmp_path, PODS, POD, plain))
    expected = {
        "id": [3, 1], "submit": [100, 300], "runtime": [600, 0], "limit": [600, 0], "size": [6000, 1500],
        "unit_cores": [6000, 1500], "unit_memory_mb": [12288, 0], "unit_gpus": [1, 0], "gpu_share": [460, 0],
        "feature": [0, -1], "status": [0, -1], "units": [1, 1], "line": [2, 3],
    }  # fmt: skip
    assert {name: values.tolist() for name, values in workload.columns.items()} == expected
    assert workload.names["feature"] == ("G2|T4",)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("0003", "", "what the name ends in is not a whole number"),
        ("6000", "0", "cpu_milli is not from 1 to 1,000,000,000"),
        ("460", "1001", "gpu_milli is not from 1 to 1,000"),
        ("460", "0", "gpu_milli is not from 1 to 1,000"),
        ("700", "99", "deletion_time is before creation_time"),
        ("700", "99999999999", "deletion_time is not from 0 to 10,000,000,000"),
    ],
)
def test_pods_are_set_aside(tmp_path: Path, old: str, new: str, reason: str) -> None:
    other = POD.replace("0003", "0004")
    workload = alibaba.read_pods(table(tmp_path, PODS, other, POD.replace(old, new, 1)))
    assert workload.set_aside.counts() == {reason: 1}


def test_equal_nodes_are_one_kind(tmp_path: Path) -> None:
    lines = ["a-1,32000,1024,0,", "a-2,96000,2048,8,G2", "a-3,32000,1024,0,", "a-4,96000,2048,8,T4"]
    cluster = cluster_named(str(table(tmp_path, NODES, *lines)))
    assert cluster.resources == ("cores", "memory_mb", "gpus")
    assert cluster.shared == "gpus"
    assert [(kind.count, kind.capacity, kind.features) for kind in cluster.kinds] == [
        (2, (32000, 1024, 0), ()),
        (1, (96000, 2048, 8), ("G2",)),
        (1, (96000, 2048, 8), ("T4",)),
    ]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("a-2,96000,2048,8,", "one model"),
        ("a-2,96000,2048,0,G2", "one model"),
        ("a-2,96000,2048,63,G2", "at most 62 gpus"),
        ("a-1,96000,2048,8,G2", "earlier line"),
        ("a-2,0,2048,8,G2", "cpu_milli"),
    ],
)
def test_a_bad_line_of_nodes_is_an_error(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        alibaba.read_nodes(table(tmp_path, NODES, "a-1,32000,1024,0,", line))


@needs_traces
def test_the_eurora_days() -> None:
    workload = read_workload(FOLDER / "eurora_jobs_merged.csv.gz")
    assert len(workload) == workload.provenance.lines == 5930
    assert not len(workload.set_aside)
    gpus, mics = workload["unit_gpus"] > 0, workload["unit_mics"] > 0
    assert (int(gpus.sum()), int(mics.sum()), int((gpus & mics).sum())) == (886, 32, 0)
    assert np.array_equal(workload["units"] * workload["unit_cores"], workload.size)
    assert int(workload["unit_memory_gb"].max()) == 20
    assert int((workload.runtime > workload.limit).sum()) == 722
    assert workload["wait"].mean() == pytest.approx(5887.5447, abs=1e-4)
    assert [(step.name, step.changed) for step in workload.provenance.steps] == [
        ("cores as requested where the record has others", 1)
    ]
    assert cannot_run(workload, cluster_named("eurora")) == []
    # On nodes of 16 GB only, the eight jobs of 20 GB could not run: the check can fail.
    eurora64 = cluster_named("eurora")
    small = by_node(eurora64.resources, eurora64.kinds[:2])
    assert len(cannot_run(workload, small)) == 8


@needs_traces
def test_the_alibaba_pods(tmp_path: Path) -> None:
    cluster = cluster_named(str(FOLDER / "alibaba2023_openb_node_list_all_node.csv.gz"))
    assert (cluster.nodes, len(cluster.kinds)) == (1523, 27)
    workload = read_workload(FOLDER / "alibaba2023_openb_pod_list_default.csv.gz")
    assert len(workload) == workload.provenance.lines == 8152
    assert not len(workload.set_aside)
    assert int(((workload["unit_gpus"] == 1) & (workload["gpu_share"] < 1000)).sum()) == 3078
    assert cannot_run(workload, cluster) == []
    write_parquet(workload, tmp_path / "pods.parquet")
    again = read_parquet(tmp_path / "pods.parquet")
    assert again.digest() == workload.digest()
    assert sorted(again.columns) == sorted(workload.columns)


@needs_traces
def test_kit_on_nodes() -> None:
    from fractions import Fraction

    from dovetail.workloads.scenarios import per_node

    log = clean(read_workload(TRACES / "archive" / "KIT-FH2-2016-1.first25k.swf.gz"), ["standard"])
    workload = per_node(log, 20, Fraction("3.2"))
    assert int(workload["unit_memory_gb"].max()) == 64
    assert cannot_run(workload, cluster_named("kit-fh2")) == []
    assert len(cannot_run(per_node(log, 21), cluster_named("kit-fh2"))) > 0
