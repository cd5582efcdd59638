"""Schedules as traces that ui.perfetto.dev and chrome://tracing open: the trace event format, JSON, in microseconds.

On a cluster that counts processors a job is one slice, on the first row that is free. Where nodes are known a job is a
slice on each of its nodes; a node on which several jobs run at a time has as many rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.io.streams import packed
from dovetail.model.schedule import Schedule
from dovetail.units import printable

SUFFIXES: Final = (".perfetto.json", ".perfetto.json.gz")
"""What a file is called that is to be such a trace."""

_US: Final = 1_000_000
_CLUSTER: Final = 1
"""The process of the counters; those of the rows follow it."""
_FIRST_ROW: Final = 10_000
"""The thread of the first row: no process may have the number of a thread."""


def write_perfetto(schedule: Schedule, path: str | Path) -> None:
    """All jobs that started, the length of the queue and the processors in use. What never started is only counted."""
    about = {
        "trace": printable(schedule.workload.name), "policy": printable(schedule.policy),
        "estimate": printable(schedule.estimate), "versions": schedule.versions,
        "jobs": len(schedule.workload), "jobs_unstarted": int(np.sum(schedule.unstarted)),
        "processors": schedule.cluster.processors,
    }  # fmt: skip
    with packed(Path(path)) as out:
        out.write(b'{"displayTimeUnit":"ms","otherData":' + _json(about) + b',"traceEvents":[')
        for at, event in enumerate(_events(schedule)):
            out.write((b",\n" if at else b"\n") + _json(event))
        out.write(b"\n]}\n")


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _events(schedule: Schedule) -> Iterator[dict[str, Any]]:
    yield from _named("process", {"pid": _CLUSTER}, "Cluster", 0)
    started = schedule.start >= 0
    start, end, size = schedule.start[started], schedule.end[started], schedule.workload.size[started]
    arrive = schedule.arrive[~schedule.left]
    one = np.ones(len(arrive), np.int64)
    yield from _counter("jobs waiting", "jobs", [(arrive, one), (start, -one[: len(start)])])
    yield from _counter("processors in use", "processors", [(start, size), (end, -size)])
    if schedule.placement is None:
        yield from _named("process", {"pid": _CLUSTER + 1}, "Jobs", 1)
        yield from _slices(schedule, *_rows_of_jobs(schedule))
    else:
        for at, kind in enumerate(schedule.cluster.kinds, 1):
            yield from _named("process", {"pid": _CLUSTER + at}, f"Nodes: {printable(kind.name, 80)}", at)
        yield from _slices(schedule, *_rows_of_nodes(schedule))


def _named(what: str, whose: dict[str, int], name: str, place: int) -> Iterator[dict[str, Any]]:
    """The name of a process or a thread, and its place among the others."""
    yield {"ph": "M", "name": f"{what}_name", **whose, "args": {"name": name}}
    yield {"ph": "M", "name": f"{what}_sort_index", **whose, "args": {"sort_index": place}}


def _counter(name: str, unit: str, moves: list[tuple[Ints, Ints]]) -> Iterator[dict[str, Any]]:
    """A number over time: its value from each instant at which it changes."""
    at, by = (np.concatenate(column) for column in zip(*moves, strict=True))
    instants, which = np.unique(at, return_inverse=True)
    change = np.zeros(len(instants), np.int64)
    np.add.at(change, which, by)
    told = (change != 0) | (np.arange(len(change)) == 0)
    for instant, value in zip(instants[told].tolist(), np.cumsum(change)[told].tolist(), strict=True):
        yield {"ph": "C", "name": name, "cat": "cluster", "pid": _CLUSTER, "ts": instant * _US, "args": {unit: value}}


def _rows_of_jobs(schedule: Schedule) -> tuple[Ints, Ints, list[tuple[int, str]]]:
    """The jobs that started, the row of each, and of each row its process and its name."""
    jobs = np.flatnonzero(schedule.start >= 0)
    row = _first_free(schedule.start[jobs], schedule.end[jobs])
    many = int(row.max(initial=-1)) + 1
    return jobs, row, [(_CLUSTER + 1, f"row {at + 1}") for at in range(many)]


def _rows_of_nodes(schedule: Schedule) -> tuple[Ints, Ints, list[tuple[int, str]]]:
    """The same, with a job for each node that it has; rows by node."""
    place, nodes = schedule.placement, schedule.cluster.nodes
    if place is None:
        raise ValueError("a schedule without a placement has no nodes")
    started = np.repeat(schedule.start >= 0, np.diff(place.first))
    job = np.repeat(np.arange(len(schedule.start)), np.diff(place.first))[started]
    node, job = np.divmod(np.unique(place.node[started] * len(schedule.start) + job), len(schedule.start))
    row = np.zeros(len(job), np.int64)
    rows: list[tuple[int, str]] = []
    for at in range(nodes):
        here = slice(*np.searchsorted(node, [at, at + 1]).tolist())
        found = _first_free(schedule.start[job[here]], schedule.end[job[here]])
        row[here] = len(rows) + found
        process = _CLUSTER + 1 + int(schedule.cluster.kind_of[at])
        more = range(2, int(found.max(initial=0)) + 2)
        rows += [(process, f"node {at}"), *((process, f"node {at} ({n})") for n in more)]
    return job, row, rows


def _first_free(start: Ints, end: Ints) -> Ints:
    """For each job the lowest row on which no other runs. A job of no length has its row for a second."""
    row = np.zeros(len(start), np.int64)
    free: list[int] = []
    running: list[tuple[int, int]] = []
    rows = 0
    for job in np.argsort(start, kind="stable").tolist():
        now = int(start[job])
        while running and running[0][0] <= now:
            heappush(free, heappop(running)[1])
        if not free:
            free.append(rows)
            rows += 1
        row[job] = heappop(free)
        heappush(running, (max(int(end[job]), now + 1), int(row[job])))
    return row


def _slices(schedule: Schedule, jobs: Ints, row: Ints, rows: list[tuple[int, str]]) -> Iterator[dict[str, Any]]:
    for at, (process, name) in enumerate(rows):
        yield from _named("thread", {"pid": process, "tid": _FIRST_ROW + at}, name, at)
    start, runtime = schedule.start.tolist(), (schedule.end - schedule.start).tolist()
    told = _Told(schedule)
    for job, at in zip(jobs.tolist(), row.tolist(), strict=True):
        args = told.of(job)
        yield {
            "ph": "X", "name": args.get("name", f"job {args['job']}"), "cat": "job", "ts": start[job] * _US,
            "dur": runtime[job] * _US, "pid": rows[at][0], "tid": _FIRST_ROW + at, "args": args,
        }  # fmt: skip


class _Told:
    """What a click on a job shows. Names are foreign text."""

    def __init__(self, schedule: Schedule) -> None:
        self._work = work = schedule.workload
        self._names = {column: work.get(column).tolist() for column in ("user", "name", "queue")}
        numbers = {
            "job": work["id"], "processors": work.size, "submitted_s": schedule.arrive, "waited_s": schedule.wait,
            "run_time_s": work.runtime, "limit_s": work.limit,
        }  # fmt: skip
        self._numbers = {name: column.tolist() for name, column in numbers.items()}

    def of(self, job: int) -> dict[str, Any]:
        called = {column: self._work.called(column, values[job]) for column, values in self._names.items()}
        names = {column: printable(text, 80) for column, text in called.items() if text}
        return {name: values[job] for name, values in self._numbers.items()} | names
