"""Gantt charts by node in a real browser: rows, kinds, marks, tooltips, and how fast it is."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

from dovetail.model.cluster import NodeKind, by_node
from dovetail.model.requests import Placement, requests_of
from dovetail.model.schedule import Schedule
from dovetail.reports.gantt import Chart, fragment
from tests.reports.browser import Seen, chromium, needs_chromium, opened, written
from tests.reports.charts import EVIL, quickest_ms, ready, settle, unpacked, view, where
from tests.reports.nodes import MIXED, asking, placed, random_jobs
from tests.reports.test_gantt_axis import RECORD, drawn
from tests.reports.test_gantt_browser import tip

pytestmark = needs_chromium

LEFT, TOP, AXIS = 142, 166, 40
INK = [28, 36, 48]


@cache
def schedule() -> Schedule:
    return placed(random_jobs(3_000, MIXED, 1), MIXED)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def seen(browser: Browser, tmp_path: Path) -> Iterator[Seen]:
    with opened(browser, written(tmp_path, fragment([Chart("first fit", schedule())])), before=RECORD) as found:
        ready(found)
        yield found
        assert found.is_quiet(), found


def tall(seen: Seen) -> float:
    """The height of the rows."""
    height: float = seen.page.evaluate("document.querySelector('[data-part=picture]').clientHeight")
    return height - TOP - AXIS


def said_nodes(job: int) -> str:
    """The nodes of a job as its tooltip lists them, if they are few."""
    made = schedule()
    assert made.placement is not None
    nodes = np.unique(made.placement.of(job)).tolist()
    runs: list[list[int]] = []
    for node in nodes:
        if runs and runs[-1][1] == node - 1 and node != 32:
            runs[-1][1] = node
        else:
            runs.append([node, node])
    texts, before = [], ""
    for first, last in runs:
        kind = "gpu " if first < 32 else "plain "
        texts.append(("" if kind == before else kind) + (str(first) if first == last else f"{first} to {last}"))
        before = kind
    return ", ".join(texts)


def said_unit(job: int, node: int) -> str:
    made = schedule()
    asked = requests_of(made.workload, MIXED)
    alone = bool(asked.exclusive[job])
    amounts = MIXED.kinds[MIXED.kind_of[node]].capacity if alone else asked.need[job].tolist()
    part = " (50 % of each)" if asked.share[job] == 500 and not alone else ""
    parts = [f"{n} {name}{part * (name == 'gpus')}" for n, name in zip(amounts, MIXED.resources, strict=True) if n]
    return "a whole node: " * alone + ", ".join(parts)


def test_jobs_are_on_the_rows_of_their_nodes_and_say_so(seen: Seen) -> None:
    made = schedule()
    assert made.placement is not None
    now, rows = view(seen), tall(seen)
    assert (now["low"], now["high"]) == (0, 64)
    top = seen.page.evaluate("document.querySelector('[data-part=picture]').getBoundingClientRect().top") + TOP
    inside = (made.start > now["from"]) & (made.end < now["to"])
    asked = requests_of(made.workload, MIXED)
    long = made.workload.runtime > (now["to"] - now["from"]) * 0.02
    wide = (asked.need[:, 0] >= 8) | (asked.exclusive > 0)
    jobs = np.flatnonzero(inside & long & wide)
    some = [int(job) for job in jobs[np.linspace(0, len(jobs) - 1, 30).astype(int)]]
    shares = np.flatnonzero(inside & long & wide & (asked.share == 500) & (asked.exclusive == 0))
    some += [int(job) for job in shares[:3]]
    assert {int(e) for e in asked.exclusive[some]} == {0, 1}
    assert (asked.share[some] == 500).any()
    for job in some:
        x, y = where(seen, job + 1)
        row = int((top + rows - y) / rows * 64)
        assert row in made.placement.of(job)
        seen.page.mouse.move(x, y)
        said = tip(seen)
        assert said["Job"] == str(job + 1)
        assert said["Nodes"] == said_nodes(job)
        assert said["Units"] == str(asked.units[job])
        nodes = np.unique(made.placement.of(job)).tolist()
        assert said["Each unit"] == "; ".join(dict.fromkeys(said_unit(job, node) for node in nodes))
    assert "64 nodes with 1,536 processors" in seen.page.locator('[data-part="about"]').inner_text()


def test_kinds_and_nodes_stand_at_the_axis(seen: Seen) -> None:
    for _ in range(10):
        texts, now, rows = drawn(seen), view(seen), tall(seen)

        def node_at(y: float, now: dict[str, float] = now, rows: float = rows) -> float:
            return now["high"] - (y - TOP) / rows * (now["high"] - now["low"])

        numbers = [t for t in texts if t[1] == LEFT - 8 and t[2] > TOP]
        assert numbers
        for text, _, y, _ in numbers:
            assert int(text) + 0.5 == pytest.approx(node_at(y))
        assert all(abs(a[2] - b[2]) >= 17 for a, b in pairwise(numbers))
        for name, first, end in (("gpu", 0, 32), ("plain", 32, 64)):
            shown = [t for t in texts if t[1] == 2 and t[0].startswith(name)]
            low, high = max(first, now["low"]), min(end, now["high"])
            if (high - low) / (now["high"] - now["low"]) * rows >= 34:
                assert node_at(shown[0][2] + 8) == pytest.approx((low + high) / 2)
                assert ("32 nodes", 2, shown[0][2] + 16) in [t[:3] for t in texts]
            elif high <= low:
                assert not shown
        seen.page.locator('[data-part="picture"]').press("Shift+ArrowUp")
    closest = view(seen)
    assert closest["high"] - closest["low"] == 1  # nobody zooms closer than a node


def test_units_with_an_accelerator_are_marked(seen: Seen) -> None:
    """A dark edge and a white one where such a job begins, for jobs on GPU nodes that have a GPU and for no other."""
    made = schedule()
    assert seen.page.locator(".gantt-mark").inner_text() == "has gpus"
    seen.page.locator('[data-part="colour"]').select_option("user")
    for _ in range(4):
        seen.page.locator('[data-do="in"]').click()
    settle(seen)
    now = view(seen)
    asked = requests_of(made.workload, MIXED)
    inside = (made.start > now["from"]) & (made.end < now["to"])
    long = made.workload.runtime > (now["to"] - now["from"]) * 0.03
    wide = (asked.need[:, 0] == 16) | (asked.exclusive > 0)
    edge = """([x, y]) => {
      const canvas = document.querySelector('[data-part="picture"]'), box = canvas.getBoundingClientRect();
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      const { data } = copy.getImageData(Math.floor(x - box.left) - 1, Math.round(y - box.top), 7, 1);
      return Array.from({ length: 7 }, (_, k) => [...data.slice(4 * k, 4 * k + 3)]);
    }"""
    per_second = (seen.page.evaluate("document.querySelector('canvas').clientWidth") - LEFT - 16) / (
        now["to"] - now["from"]
    )
    outcomes = set()
    for job in np.flatnonzero(inside & long & wide).tolist():
        x, y = where(seen, job + 1)
        begin = x - (made.workload.runtime[job] / 2) * per_second
        dark = INK in seen.page.evaluate(edge, [begin, y])
        row = seen.page.evaluate("([x, y]) => figure.jobAt(x, y)", [x, y])
        assert row == str(job + 1)
        assert made.placement is not None
        nodes = made.placement.of(job)
        if asked.exclusive[job] and len({node < 32 for node in nodes.tolist()}) > 1:
            continue  # on both kinds: which piece was looked at is not known here
        holds = bool(asked.need[job, 2]) or bool(asked.exclusive[job] and nodes[0] < 32)
        assert dark == holds
        outcomes.add((holds, bool(asked.exclusive[job])))
    assert {(True, False), (False, False), (True, True)} <= outcomes


def test_hostile_names_of_kinds_and_resources_stay_text(browser: Browser, tmp_path: Path) -> None:
    kinds = tuple(NodeKind(name, 1, (4, 1)) for name in EVIL)
    cluster = by_node(("cores", EVIL[0]), kinds)
    columns = {"submit": [0], "runtime": [90], "units": [4], "unit_cores": [4], f"unit_{EVIL[0]}": [1]}
    made = fragment([Chart("x", placed(asking(columns, cluster), cluster))])
    with opened(browser, written(tmp_path, made)) as seen:
        ready(seen)
        seen.page.mouse.move(*where(seen, 1))
        assert EVIL[0] in tip(seen)["Nodes"]
        assert tip(seen)["Each unit"] == f"4 cores, 1 {EVIL[0]}"
        assert seen.page.locator(".gantt-mark").inner_text() == f"has {EVIL[0]}"
        assert seen.page.evaluate("document.querySelectorAll('img, script').length") == 2
        assert seen.page.evaluate("document.documentElement.scrollWidth") == 1280
        assert seen.is_quiet(), seen


def crowded(jobs: int, seed: int) -> Schedule:
    """Many jobs of one unit, one after another on the lower or the upper half of a node's cores."""
    rng = np.random.default_rng(seed)
    half = rng.integers(0, 2 * MIXED.nodes, jobs)
    runtime, free = rng.exponential(4_000, jobs).astype(np.int64) + 30, np.zeros(2 * MIXED.nodes, np.int64)
    start = np.empty(jobs, np.int64)
    for job, at in enumerate(half.tolist()):
        start[job] = free[at]
        free[at] += runtime[job]
    order = np.argsort(start, kind="stable")
    start, node = start[order], half[order] // 2
    columns = {
        "submit": start, "runtime": runtime[order], "units": np.ones(jobs, np.int64),
        "unit_cores": rng.integers(1, 9, jobs), "unit_memory_gb": rng.integers(1, 17, jobs),
        "unit_gpus": (node < 32) * rng.integers(0, 2, jobs),
    }  # fmt: skip
    work, none = asking(columns, MIXED), np.full(jobs, -1, np.int64)
    placement = Placement(np.arange(jobs + 1), node, columns["unit_gpus"])
    return Schedule(work, MIXED, "x", "limit", start, start, none, none, 0, placement=placement)


def test_a_hundred_thousand_units_open_in_3_s_and_are_redrawn_in_half_a_second(
    browser: Browser, tmp_path: Path
) -> None:
    made = fragment([Chart("x", crowded(100_000, 1))])
    assert len(unpacked(made)[1][0]["rectangle_job"]) >= 100_000
    assert len(made.html) < 2_000_000
    opening_ms, redrawing_ms = quickest_ms(browser, written(tmp_path, made))
    assert opening_ms < 3_000
    assert redrawing_ms < 500
