"""Gantt charts for the browser: schedules of one workload as a piece of a self-contained page.

The page needs no network. The data are columns of numbers, deflated and in base64, so no text of a log can be taken
for HTML; `gantt.js` draws them on a canvas. Names are foreign text: it shows them as text and nothing else.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.io.swf import header_count
from dovetail.metrics.system import timeline
from dovetail.model.cluster import Cluster
from dovetail.model.requests import requests_of
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Workload
from dovetail.reports.lanes import Rectangles, lay_on_nodes, lay_out
from dovetail.units import printable

MOST_JOBS: Final = 100_000
"""Jobs drawn in all charts of a fragment together: more would make the page slow."""
MOST_RECTANGLES: Final = 500_000
"""Rectangles in all charts together. Only badly scattered jobs need as many; then fewer jobs are drawn."""
OPENING_JOBS: Final = 2_000
"""About how many jobs are seen when the page opens: enough for a picture, and each can still be told apart."""
_LONGEST_NAME: Final = 80
_LAST_DATE: Final = 253_402_300_800
"""Unix seconds of the year 10000: what lies beyond has no date that is of use."""


@dataclass(frozen=True)
class Chart:
    """One schedule to draw, and what it is called in the list of charts."""

    title: str
    schedule: Schedule


@dataclass(frozen=True)
class Fragment:
    """A piece of a page. `script` and `style` are the same for every fragment: a page needs them once."""

    html: str
    script: str
    style: str


def fragment(charts: Sequence[Chart], *, most_jobs: int = MOST_JOBS) -> Fragment:
    """Charts of one workload on one cluster, all over the same stretch of it; a reader switches between them.

    Where all schedules know the nodes of their jobs, rows are nodes; else lanes are processors, found for drawing.
    Where there are more jobs than may be drawn, the stretch is the one in which jobs waited most.
    """
    if not charts:
        raise ValueError("a fragment has at least one chart")
    first = charts[0].schedule
    for other in (chart.schedule for chart in charts[1:]):
        if other.cluster != first.cluster or other.workload.digest() != first.workload.digest():
            raise ValueError("charts of one fragment show the same workload on the same cluster")
    room = files("dovetail.reports")
    *scripts, style = (
        room.joinpath(name).read_text("utf-8")
        for name in ("gantt_chart.js", "gantt_nodes.js", "gantt_link.js", "gantt.js", "gantt.css")
    )
    script = f'"use strict";\n{{\n{"".join(scripts)}}}\n'
    note, rows = (_NODES, "nodes") if _on_nodes([chart.schedule for chart in charts]) else (_LANES, "processors")
    html = _HTML.replace("{{note}}", note).replace("{{rows}}", rows)
    return Fragment(html.replace("{{data}}", _data(charts, most_jobs // len(charts))), script, style)


def _on_nodes(schedules: Sequence[Schedule]) -> bool:
    return all(schedule.placement is not None for schedule in schedules)


@dataclass(frozen=True)
class Stretch:
    """A stretch of a trace: from one instant up to another."""

    from_at: int
    to_at: int

    def ran(self, schedule: Schedule) -> Ints:
        """The jobs that ran in it, in order of their starts."""
        inside = (schedule.start >= 0) & (schedule.start < self.to_at) & (schedule.end > self.from_at)
        # A job of no length or no size has no place on a chart.
        jobs = np.flatnonzero(inside & (schedule.workload.runtime > 0) & (schedule.workload.size > 0))
        return jobs[np.argsort(schedule.start[jobs], kind="stable")]


def worst_stretch(schedules: Sequence[Schedule], most: int, within: Stretch | None = None) -> Stretch:
    """Where jobs waited most in total, among stretches in which at most `most` jobs of each schedule ran.

    It begins with an arrival. From there on it is as long as it can be; its waiting is the integral of the
    queue's length over it. Where there is none, since too many jobs run at every arrival, it is empty (from = to).
    """
    flows = [_Flow(schedule) for schedule in schedules]
    begin = np.unique(np.concatenate([flow.arrive for flow in flows]))
    last = max((int(flow.end[-1]) for flow in flows if len(flow.end)), default=0)
    if within is not None:
        begin = begin[(begin >= within.from_at) & (begin < within.to_at)]
        last = min(last, within.to_at)
    if not len(begin):
        return within or Stretch(0, 0)
    stop = np.min([flow.latest(begin, most, last) for flow in flows], axis=0)
    waited = np.sum([flow.waited(stop) - flow.waited(begin) for flow in flows], axis=0)
    waited[stop <= begin] = -1
    at = int(np.argmax(waited))
    return Stretch(int(begin[at]), max(int(stop[at]), int(begin[at])))


class _Flow:
    """When jobs arrived, started and ended, each sorted; a job that never started only arrived."""

    def __init__(self, schedule: Schedule) -> None:
        started = schedule.start >= 0
        self.arrive = np.sort(schedule.arrive[~schedule.left])
        self.start, self.end = np.sort(schedule.start[started]), np.sort(schedule.end[started])

    def latest(self, begin: Ints, most: int, last: int) -> Ints:
        """Up to when a stretch may go from each of the beginnings so that at most `most` jobs ran in it."""
        # Ran in it: started before its end, less those that had ended by its beginning.
        allowed = np.searchsorted(self.end, begin, side="right") + most
        stop: Ints = np.append(self.start, last)[np.minimum(allowed, len(self.start))]
        return np.minimum(stop, last)

    def waited(self, until: Ints) -> Ints:
        """Seconds that all jobs together had waited by each of the instants."""
        return _since(self.arrive, until) - _since(self.start, until)


def _since(instants: Ints, until: Ints) -> Ints:
    """Seconds that have passed since each of the instants by `until`, added up over those before it."""
    passed = np.searchsorted(instants, until)
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(instants)])
    total: Ints = passed * until - sums[passed]
    return total


def _data(charts: Sequence[Chart], most: int) -> str:
    """Everything that the script draws, as base64."""
    schedules = [chart.schedule for chart in charts]
    workload = schedules[0].workload
    stretch, jobs, rectangles = _drawn(schedules, most)
    opening = worst_stretch(schedules, OPENING_JOBS, stretch)
    users, names = _users(schedules, jobs), _names(workload, jobs)
    start_at = header_count(workload.header, "UnixStartTime")
    block = _Block()
    nodes, asked = _nodes(block, schedules, jobs) if _on_nodes(schedules) else ({}, [{} for _ in jobs])
    header = {
        "trace": printable(workload.name, _LONGEST_NAME),
        "processors": schedules[0].cluster.processors,
        "lanes": max(_lanes(schedule) for schedule in schedules),
        "jobs": len(workload),
        "epoch": start_at if start_at + stretch.to_at < _LAST_DATE else 0,
        "stretch": [stretch.from_at, stretch.to_at],
        "opening": [opening.from_at, opening.to_at],
        "users": users.texts(workload, "user"),
        "names": names.texts(workload, "name"),
        **nodes,
        "charts": [
            {"title": printable(chart.title, _LONGEST_NAME), "started": int(np.sum(chart.schedule.start >= 0))}
            | _columns(block, chart.schedule, stretch, drawn, users, names)
            | {
                "rectangle_job": block.add(np.diff(pieces.job, prepend=0)),
                "rectangle_lane": block.add(pieces.lane),
                "rectangle_lanes": block.add(pieces.lanes),
            }
            | {name: block.add(values) for name, values in request.items()}
            for chart, drawn, pieces, request in zip(charts, jobs, rectangles, asked, strict=True)
        ],
    }
    return block.packed(header)


def _drawn(schedules: Sequence[Schedule], most: int) -> tuple[Stretch, list[Ints], list[Rectangles]]:
    """The stretch that is shown, the jobs of each schedule that ran in it, and their rectangles."""
    while True:
        stretch = worst_stretch(schedules, most)
        jobs, rectangles = [stretch.ran(schedule) for schedule in schedules], []
        for schedule, drawn in zip(schedules, jobs, strict=True):
            if (laid := _laid(schedule, drawn, _on_nodes(schedules), MOST_RECTANGLES // len(schedules))) is not None:
                rectangles.append(laid)
        if len(rectangles) == len(schedules):
            return stretch, jobs, rectangles
        most //= 2


def _laid(schedule: Schedule, jobs: Ints, on_nodes: bool, most: int) -> Rectangles | None:
    if on_nodes:
        return lay_on_nodes(schedule, jobs, most)
    start, end, size = schedule.start[jobs], schedule.end[jobs], schedule.workload.size[jobs]
    return lay_out(start, end, size, _lanes(schedule), most)


def _lanes(schedule: Schedule) -> int:
    """How many rows processors need: those of the cluster. What a log says happened may need more."""
    if not schedule.recorded:
        return schedule.cluster.processors
    return max(schedule.cluster.processors, int(timeline(schedule).busy.max(initial=0)))


def _nodes(
    block: _Block, schedules: Sequence[Schedule], jobs: Sequence[Ints]
) -> tuple[dict[str, Any], list[dict[str, Ints]]]:
    """What the script knows of nodes and of what jobs ask of them. Few requests differ, so a job has but the number of
    its own in a table of all."""
    cluster = schedules[0].cluster
    asked = requests_of(schedules[0].workload, cluster)
    table = np.column_stack([asked.units, asked.exclusive, asked.share, asked.need])
    found, which = np.unique(table[np.concatenate(jobs)], axis=0, return_inverse=True)
    units, exclusive, share, *need = (block.add(column) for column in found.T)
    about = {
        "resources": [printable(name, _LONGEST_NAME) for name in cluster.resources],
        "accelerators": accelerators(cluster),
        "shared": cluster.shared_at,
        "kinds": [[printable(kind.name, _LONGEST_NAME), kind.count, kind.capacity] for kind in cluster.kinds],
        "requests": {"units": units, "exclusive": exclusive, "share": share, "need": need},
    }
    cuts = np.cumsum([len(drawn) for drawn in jobs])[:-1]
    return {"nodes": about}, [{"request": part} for part in np.split(which.reshape(-1), cuts)]


def accelerators(cluster: Cluster) -> list[int]:
    """The resources, by position, that only some jobs want: a unit that holds one is marked."""
    return [
        r
        for r, name in enumerate(cluster.resources)
        if name == cluster.shared or not (r == 0 or name.startswith("memory"))
    ]


def _columns(
    block: _Block, schedule: Schedule, stretch: Stretch, jobs: Ints, users: _Codes, names: _Codes
) -> dict[str, list[Any]]:
    """What the script knows of each job. Starts are stored as differences: they are sorted, so those are small."""
    work = schedule.workload
    # They wait in the stretch and do not run in it, so only their arrivals are wanted.
    late = (schedule.arrive < stretch.to_at) & ((schedule.start >= stretch.to_at) | schedule.unstarted)
    columns = {
        "start": np.diff(schedule.start[jobs], prepend=0),
        "wait": schedule.wait[jobs],
        "runtime": work.runtime[jobs],
        "limit": work.limit[jobs],
        "size": work.size[jobs],
        "user": users.of(work.get("user")[jobs]),
        "name": names.of(work.get("name")[jobs]),
        "late": np.diff(np.sort(schedule.arrive[late]), prepend=0),
    }
    return {"id": block.add(work["id"][jobs], "i8")} | {name: block.add(values) for name, values in columns.items()}


@dataclass(frozen=True)
class _Codes:
    """Numbers of a workload's column that occur on the page, in the order in which the page lists their names."""

    numbers: Ints

    def of(self, values: Ints) -> Ints:
        """The place of each value in the list, -1 for those that are not in it."""
        order = np.argsort(self.numbers)
        if not len(order):
            return np.full(len(values), -1, np.int64)
        at = order[np.searchsorted(self.numbers[order], values).clip(max=len(order) - 1)]
        return np.where(self.numbers[at] == values, at, -1)

    def texts(self, workload: Workload, column: str) -> list[str]:
        return [printable(workload.called(column, number), _LONGEST_NAME) for number in self.numbers.tolist()]


def _names(workload: Workload, jobs: Sequence[Ints]) -> _Codes:
    """The job names on the page."""
    names = np.unique(workload.get("name")[np.concatenate(jobs)])
    return _Codes(names[names >= 0])


def _users(schedules: Sequence[Schedule], jobs: Sequence[Ints]) -> _Codes:
    """The users on the page, those with the most processor seconds first: they get colours of their own."""
    everyone = np.concatenate([s.workload.get("user")[drawn] for s, drawn in zip(schedules, jobs, strict=True)])
    area = np.concatenate(
        [
            s.workload.size[drawn] * s.workload.runtime[drawn].astype(float)
            for s, drawn in zip(schedules, jobs, strict=True)
        ]
    )
    users, which = np.unique(everyone, return_inverse=True)
    total = np.bincount(which, area, minlength=len(users))
    ranked = users[np.argsort(-total, kind="stable")]
    return _Codes(ranked[ranked >= 0])


@dataclass(frozen=True)
class _Block:
    """Columns of little-endian numbers, one after another; each begins at a multiple of 8 bytes."""

    parts: list[bytes] = field(default_factory=list)

    def add(self, values: Ints, beyond: str = "f8") -> list[Any]:
        """Append a column. Returns where it is: kind, first byte, length. `beyond` is the kind for huge numbers."""
        most = max(abs(int(values.min())), abs(int(values.max()))) if len(values) else 0
        kind = next((kind for kind, reach in _KINDS if most <= reach), beyond)
        data = values.astype(f"<{kind}").tobytes()
        begin = sum(map(len, self.parts))
        self.parts.append(data + bytes(-len(data) % 8))
        return [kind, begin, len(values)]

    def packed(self, header: dict[str, Any]) -> str:
        """Length of the header in 4 bytes, the header as JSON, the columns; deflated, in base64."""
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-(len(text) + 4) % 8)
        data = len(text).to_bytes(4, "little") + text + b"".join(self.parts)
        return base64.b64encode(zlib.compress(data)).decode()


_KINDS: Final = (("i1", 2**7 - 1), ("i2", 2**15 - 1), ("i4", 2**31 - 1), ("f8", 2**53))
"""Kinds of number that a browser reads quickly, and how far each is exact."""


_HTML: Final = """\
<section class="gantt" data-gantt>
<p data-part="about">This chart is drawn by a script, which has not run.</p>
<div class="gantt-tools">
<label>Policy <select data-part="chart"></select></label>
<label>Colour by <select data-part="colour">
<option value="wait">wait</option><option value="size">size</option><option value="user">user</option>
</select></label>
<span class="gantt-buttons">
<button type="button" data-do="in" title="Zoom in (+)" aria-label="Zoom in">+</button>
<button type="button" data-do="out" title="Zoom out (-)" aria-label="Zoom out">−</button>
<button type="button" data-do="left" title="Earlier (left arrow)" aria-label="Earlier">◀</button>
<button type="button" data-do="right" title="Later (right arrow)" aria-label="Later">▶</button>
<button type="button" data-do="all" title="The whole stretch (0)">All</button>
<button type="button" data-do="worst" title="Where jobs waited most (w)">Worst waiting</button>
</span>
<span class="gantt-link">
<button type="button" data-do="link" title="Copy an address that opens this view">Copy link to this view</button>
<span data-part="copied" role="status"></span>
</span>
<span data-part="legend" class="gantt-legend"></span>
</div>
<div class="gantt-plot">
<canvas data-part="picture" tabindex="0" role="application"></canvas>
<canvas data-part="marks" aria-hidden="true"></canvas>
<div data-part="tip" class="gantt-tip" role="tooltip" hidden></div>
</div>
<canvas data-part="overview" class="gantt-overview" aria-hidden="true"></canvas>
<p data-part="shown"></p>
<p class="gantt-note">{{note}} Where jobs share a pixel, it has their mean colour. The strips
show the longest queue and the mean utilisation within the width of a pixel.</p>
<p class="gantt-note gantt-keys">The wheel zooms, with Shift the {{rows}}; dragging moves. A click on a job keeps its
details and fades other users’ jobs; Esc lets go. Keys: + − arrows, Shift + up or down, 0 all, w worst waiting. The
address of the page follows: who opens it sees what you see.</p>
<table class="gantt-longest"><caption data-part="caption"></caption><thead></thead><tbody></tbody></table>
<script type="application/octet-stream+base64" data-part="data">{{data}}</script>
</section>
"""

_LANES: Final = """\
Lanes are for drawing only: the cluster counts processors, so which of them a job is drawn on
means nothing, and a job may be drawn in several pieces."""
_NODES: Final = """\
A row is a node, and a job has as much of its height as of its cores. Which of a node’s cores it is
drawn on means nothing."""
