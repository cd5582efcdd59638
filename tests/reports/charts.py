"""Schedules to draw, the data of a chart read back without its script, and what a test sees of a figure."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import replace
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser

from dovetail.arrays import Ints
from dovetail.model.cluster import Cluster
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Provenance, Workload
from dovetail.reports.gantt import Fragment
from tests.reports.browser import Seen, opened

EPOCH = 843_480_031  # KTH-SP2's UnixStartTime
EVIL = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "\"'`${alert(3)}\u2028--></style>",
    "plain",
)


def first_come(jobs: int, processors: int, seed: int, *, load: float = 1.05, largest: int = 128) -> Schedule:
    """A strict first-come schedule of random jobs with users and names, a little more than the machine can do."""
    rng = np.random.default_rng(seed)
    size = np.minimum(largest ** rng.uniform(0, 1, jobs), processors).astype(np.int64)
    runtime = rng.exponential(4_000, jobs).astype(np.int64) + 30
    gap = float(np.mean(size) * np.mean(runtime)) / processors / load
    submit = np.cumsum(rng.exponential(gap, jobs)).astype(np.int64)
    start, free, now = [], processors, 0
    running: list[tuple[int, int]] = []
    for at, need, run in zip(submit.tolist(), size.tolist(), runtime.tolist(), strict=True):
        now = max(now, at)
        while running and (running[0][0] <= now or free < need):
            end, back = heappop(running)
            now, free = max(now, end), free + back
        free -= need
        heappush(running, (now + run, need))
        start.append(now)
    columns = {
        "id": np.arange(jobs) + 1, "submit": submit, "size": size, "runtime": runtime,
        "limit": runtime * rng.integers(1, 6, jobs),
        "user": rng.integers(0, 20, jobs), "name": rng.integers(0, 4, jobs),
    }  # fmt: skip
    header = {"UnixStartTime": (str(EPOCH),)}
    names = {"name": EVIL, "user": tuple(f"user{k}" for k in range(20))}
    workload = Workload("random", columns, processors, Provenance("test"), header=header, names=names)
    none = np.full(jobs, -1, np.int64)
    return Schedule(workload, Cluster(processors), "fcfs", "limit", np.array(start), submit, none, none, 0)


def paused(schedule: Schedule, pause_s: int = 20_000) -> Schedule:
    """Another schedule of the same workload: the second half of its jobs starts so much later."""
    late = np.arange(len(schedule.start)) >= len(schedule.start) // 2
    return replace(schedule, policy="paused", start=schedule.start + pause_s * late)


def unpacked(made: Fragment) -> tuple[dict[str, Any], list[dict[str, Ints]]]:
    """The header, and the columns of each chart: what the script reads."""
    text = made.html.split('data-part="data">')[1].split("</script>")[0]
    raw = zlib.decompress(base64.b64decode(text, validate=True))
    length = int.from_bytes(raw[:4], "little")
    header = json.loads(raw[4 : 4 + length])

    def column(place: list[Any]) -> Ints:
        kind, begin, count = place
        return np.frombuffer(raw, f"<{kind}", count, 4 + length + begin)

    charts = [
        {key: column(place) for key, place in chart.items() if key not in ("title", "started")}
        for chart in header["charts"]
    ]
    return {**header, "column": column}, charts


def ready(seen: Seen) -> None:
    """Wait until all is drawn; `figure` is then the page's first."""
    seen.page.evaluate("window.dovetailGantt.ready.then((all) => { window.figure = all[0] })")


def settle(seen: Seen) -> None:
    """Wait until what was asked for is drawn: drawing happens at the next frame."""
    seen.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(null))))")


def quickest_ms(browser: Browser, page: Path) -> tuple[float, float]:
    """How long the first figure takes to be on the screen after its page was asked for, and after its button All: the
    least of three pages and of five redraws in each, for whatever else the machine does only makes them longer."""
    redraw = """async () => {
      const begin = performance.now();
      document.querySelector('[data-do="all"]').click();
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      return performance.now() - begin;
    }"""
    opening, redrawing = [], []
    for _ in range(3):
        with opened(browser, page, width=1920, height=1080) as seen:
            ready(seen)
            # From the first byte of the page on, as the browser's own clock has it.
            opening.append(seen.page.evaluate("performance.now()"))
            redrawing += [seen.page.evaluate(redraw) for _ in range(5)]
            assert seen.page.evaluate("figure.lastDrawMs") > 0
            assert seen.is_quiet(), seen
    return min(opening), min(redrawing)


def view(seen: Seen) -> dict[str, float]:
    return seen.page.evaluate("figure.view()")  # type: ignore[no-any-return]


def where(seen: Seen, job_id: int) -> tuple[float, float]:
    found = seen.page.evaluate("(id) => figure.where(id)", str(job_id))
    assert found is not None, f"job {job_id} is not in view"
    return found["x"], found["y"]
