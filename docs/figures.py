"""Draws the figures of the tutorials again: the six jobs of examples/six-jobs.swf under three policies.

    python docs/figures.py

Colours are readable on light and on dark ground. The same code writes the same bytes; a test compares.
"""

from __future__ import annotations

from pathlib import Path

import dovetail as dt
from dovetail.reports.lanes import lay_out

ROOT = Path(__file__).resolve().parent.parent
LOG = ROOT / "examples" / "six-jobs.swf"
FOLDER = ROOT / "docs" / "figures"
POLICIES = {"strict-fcfs": "First come, first served", "easy": "EASY", "conservative": "Conservative"}

HOUR, LANE, LEFT, TOP, HOURS = 38, 30, 26, 34, 17
"""Pixels of an hour and of a processor, the margins, and how many hours are drawn."""
FILLS = ("#0072B2", "#D55E00", "#009E73", "#B0568A", "#8A6D00", "#5B5FC7")
GREY = "#808080"


def picture(schedule: dt.Schedule, title: str) -> str:
    """A Gantt chart as SVG: processors upwards, hours to the right, a mark where each job came."""
    start, end, size = schedule.start, schedule.end, schedule.workload["size"]
    lanes = schedule.cluster.processors
    boxes = lay_out(start, end, size, lanes, most=100)
    assert boxes is not None, "six jobs take few boxes"  # noqa: S101
    floor = TOP + lanes * LANE
    wait = float(dt.summarize(schedule)["mean_wait_s"]) / 3600
    width, height = LEFT + HOURS * HOUR + 14, floor + 44
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-family="sans-serif" font-size="13" fill="{GREY}">',
        f"<title>{title}: six jobs on {lanes} processors, mean wait {wait:.1f} hours</title>",
        f'<text x="{LEFT}" y="20" font-size="15" font-weight="bold">{title}</text>',
        f'<text x="{LEFT + HOURS * HOUR}" y="20" text-anchor="end">mean wait {wait:.1f} h</text>',
    ]
    for hour in range(HOURS + 1):
        x = LEFT + hour * HOUR
        drawn.append(f'<path d="M{x} {TOP}V{floor}" stroke="{GREY}" stroke-opacity="0.3"/>')
        if hour % 2 == 0:
            drawn.append(f'<text x="{x}" y="{floor + 17}" text-anchor="middle">{hour} h</text>')
    drawn.append(f'<path d="M{LEFT} {TOP}V{floor}H{LEFT + HOURS * HOUR}" fill="none" stroke="{GREY}"/>')
    for job, lane, count in zip(boxes.job.tolist(), boxes.lane.tolist(), boxes.lanes.tolist(), strict=True):
        x, wide = LEFT + int(start[job]) * HOUR // 3600, int(end[job] - start[job]) * HOUR // 3600
        y, high = floor - (lane + count) * LANE, count * LANE
        drawn.append(
            f'<rect x="{x + 1}" y="{y + 1}" width="{wide - 2}" height="{high - 2}" rx="3" fill="{FILLS[job]}"/>'
            f'<text x="{x + wide / 2:g}" y="{y + high / 2 + 5:g}" text-anchor="middle" fill="#ffffff" '
            f'font-weight="bold">{job + 1}</text>'
        )
    drawn.append(f'<text x="{LEFT + HOURS * HOUR}" y="{floor + 37}" text-anchor="end">▲ a job comes</text>')
    for job, at in enumerate(schedule.arrive.tolist()):
        x = LEFT + at * HOUR // 3600
        drawn.append(f'<text x="{x}" y="{floor + 37}" text-anchor="middle">▲{job + 1}</text>')
    return "\n".join([*drawn, "</svg>", ""])


def figures() -> dict[Path, str]:
    """Each file of a figure and what belongs into it."""
    log = dt.read(LOG)
    return {FOLDER / f"six-jobs-{name}.svg": picture(dt.replay(log, name), title) for name, title in POLICIES.items()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, text in figures().items():
        path.write_text(text, encoding="utf-8")
