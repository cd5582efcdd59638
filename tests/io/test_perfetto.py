"""Schedules as Perfetto traces: the slices are the schedule, the counters the queue and the cluster."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail.errors import SettingError
from dovetail.io.perfetto import _first_free
from dovetail.model.schedule import Schedule
from tests.command import run
from tests.reports.charts import EVIL, first_come
from tests.reports.nodes import MIXED, placed, random_jobs

US = 1_000_000


def events(schedule: Schedule, folder: Path) -> list[dict[str, Any]]:
    dt.write(schedule, folder / "s.perfetto.json")
    found = json.loads((folder / "s.perfetto.json").read_bytes())
    assert set(found) == {"displayTimeUnit", "otherData", "traceEvents"}
    return list(found["traceEvents"])


def slices(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in found if event["ph"] == "X"]


def rows(found: list[dict[str, Any]]) -> dict[int, str]:
    return {event["tid"]: event["args"]["name"] for event in found if event["name"] == "thread_name"}


def some_unlike() -> Schedule:
    """With a job that never starts, one of no length in the second in which another starts, and hostile names."""
    made = first_come(300, 100, 3)
    columns = {name: values.copy() for name, values in made.workload.columns.items()}
    columns["runtime"][7] = 0
    start = made.start.copy()
    start[7], start[11] = start[8], -1
    return replace(made, workload=replace(made.workload, columns=columns), start=start)


def test_slices_give_back_the_schedule(tmp_path: Path) -> None:
    made = some_unlike()
    found = slices(events(made, tmp_path))
    jobs = [job for job in range(300) if job != 11]
    back = {event["args"]["job"]: (event["ts"], event["dur"]) for event in found}
    assert len(found) == len(back) == 299
    assert back == {
        int(made.workload["id"][j]): (int(made.start[j]) * US, int(made.workload.runtime[j]) * US) for j in jobs
    }
    for event in found:
        j, told = event["args"]["job"] - 1, event["args"]
        assert event["name"] == told["name"] == EVIL[made.workload["name"][j]].replace("\u2028", "\ufffd")
        assert told["user"] == f"user{made.workload['user'][j]}"
        assert told["processors"] == made.workload.size[j]
        assert told["waited_s"] == made.wait[j]
        assert told["submitted_s"] == made.arrive[j]


def test_no_row_has_two_jobs_at_a_time_and_none_is_in_vain(tmp_path: Path) -> None:
    made = some_unlike()
    found = events(made, tmp_path)
    by_row = defaultdict(list)
    for event in slices(found):
        by_row[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for times in by_row.values():
        times.sort()
        assert all(end <= begin for (_, end), (begin, _) in pairwise(times))
    assert set(by_row) == set(rows(found))
    started = made.start >= 0
    start, end = made.start[started], np.maximum(made.end, made.start + 1)[started]
    most = max(int(np.sum((start <= at) & (end > at))) for at in start)
    assert len(by_row) == most
    processes = {event["pid"] for event in found if event["name"] == "process_name"}
    assert {event["pid"] for event in found} == processes
    assert not processes & set(by_row)  # a viewer takes such a thread for the first of its process


def test_a_job_of_no_length_has_a_row_of_its_own_for_a_second() -> None:
    assert _first_free(np.array([5, 5, 6]), np.array([5, 9, 7])).tolist() == [0, 1, 0]


def test_counters_are_the_queue_and_the_processors_in_use(tmp_path: Path) -> None:
    made = some_unlike()
    found = events(made, tmp_path)
    started = made.start >= 0
    for name, unit, begin, stop, by in (
        ("jobs waiting", "jobs", made.arrive, np.where(started, made.start, 2**40), np.ones(300, np.int64)),
        ("processors in use", "processors", made.start[started], made.end[started], made.workload.size[started]),
    ):
        told = {event["ts"] // US: event["args"][unit] for event in found if event["name"] == name}
        assert list(told) == sorted(told)
        assert all(a != b for a, b in pairwise(told.values()))
        for at, value in told.items():
            assert value == int(by[(begin <= at) & (stop > at)].sum())
    assert told[max(told)] == 0


def test_on_nodes_a_job_is_on_each_of_its_nodes(tmp_path: Path) -> None:
    made = placed(random_jobs(200, MIXED, 5), MIXED)
    found = events(made, tmp_path)
    names, kinds = rows(found), {e["pid"]: e["args"]["name"] for e in found if e["name"] == "process_name"}
    assert made.placement is not None
    back = defaultdict(set)
    for event in slices(found):
        node = int(names[event["tid"]].split()[1])
        j = event["args"]["job"] - 1
        back[j].add(node)
        assert (event["ts"], event["dur"]) == (int(made.start[j]) * US, int(made.workload.runtime[j]) * US)
        assert kinds[event["pid"]] == ("Nodes: gpu" if node < 32 else "Nodes: plain")
    assert back == {job: set(made.placement.of(job).tolist()) for job in range(200)}
    assert len(slices(found)) == sum(map(len, back.values()))
    assert any(name.endswith("(2)") for name in names.values())  # nodes are shared


def test_every_event_is_as_the_format_says(tmp_path: Path) -> None:
    keys = {
        "X": {"ph", "name", "cat", "ts", "dur", "pid", "tid", "args"},
        "C": {"ph", "name", "cat", "ts", "pid", "args"},
    }
    for event in events(some_unlike(), tmp_path):
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "process_sort_index", "thread_name", "thread_sort_index")
            assert set(event["args"]) == {"name" if event["name"].endswith("_name") else "sort_index"}
        else:
            assert set(event) == keys[event["ph"]]
            assert all(isinstance(event[key], int) and event[key] >= 0 for key in {"ts", "dur"} & set(event))


def test_packed_it_is_the_same_and_the_same_each_time(tmp_path: Path) -> None:
    made = first_come(50, 100, 3)
    events(made, tmp_path)
    for name in ("a.perfetto.json.gz", "b.perfetto.json.gz"):
        dt.write(made, tmp_path / name)
    packed = (tmp_path / "a.perfetto.json.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "s.perfetto.json").read_bytes()
    assert packed == (tmp_path / "b.perfetto.json.gz").read_bytes()


def test_nothing_to_draw(tmp_path: Path) -> None:
    made = first_come(3, 100, 3)
    found = events(replace(made, start=np.full(3, -1, np.int64)), tmp_path)
    assert slices(found) == []
    assert [e["args"] for e in found if e["name"] == "jobs waiting"][-1] == {"jobs": 3}


def test_a_workload_is_no_schedule(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="replay it first"):
        dt.write(first_come(3, 100, 3).workload, tmp_path / "w.perfetto.json")
    assert not list(tmp_path.iterdir())


def test_replay_writes_it_beside_the_others(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    dt.write(first_come(20, 100, 3).workload, log)
    assert "--perfetto needs --out" in run("replay", log, "--perfetto").stderr
    done = run("replay", log, "--out", tmp_path / "out", "--perfetto")
    assert done.returncode == 0, done.stderr
    assert sorted(file.name.partition("limit.")[2] for file in (tmp_path / "out").iterdir()) == [
        "parquet", "perfetto.json.gz", "swf.gz",
    ]  # fmt: skip
