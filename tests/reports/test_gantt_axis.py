"""The marks on the axes of a Gantt chart: every text that is drawn stands where it says, at every zoom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from dovetail.reports.gantt import Chart, fragment
from tests.metrics.schedules import schedule_of
from tests.reports.browser import Seen, chromium, needs_chromium, opened, written
from tests.reports.charts import EPOCH, ready, settle, view

pytestmark = needs_chromium

RECORD = """
window.texts = [];
const plain = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  if (this.canvas.dataset.part === "picture") window.texts.push([text, x, y, this.measureText(text).width]);
  return plain.call(this, text, x, y);
};
"""
LEFT, RIGHT, AXIS = 70, 16, 40
YEARS = 40 * 365 * 86400
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
Text = tuple[str, float, float, float]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def drawn(seen: Seen) -> list[Text]:
    """All texts of the picture as it is now: what they say, where, and how wide they are."""
    seen.page.evaluate("() => { texts.length = 0; document.querySelector('[data-do=left]').click(); }")
    settle(seen)
    return [(text, x, y, width) for text, x, y, width in seen.page.evaluate("texts")]


def nearest(text: str, at: datetime) -> datetime:
    """The instant nearest to `at` of which a mark can say that."""
    if clock := re.fullmatch(r"(\d\d):(\d\d)(?::(\d\d))?", text):
        hour, minute, second = (int(part or 0) for part in clock.groups())
        on_the_day = at.replace(hour=hour, minute=minute, second=second, microsecond=0)
        choices = [on_the_day + timedelta(days=days) for days in (-1, 0, 1)]
    elif re.fullmatch(r"\d{4}", text):
        choices = [datetime(int(text), 1, 1, tzinfo=UTC)]
    else:
        *day, month = text.split()
        place, first = MONTHS.index(month) + 1, int(day[0]) if day else 1
        choices = [datetime(at.year + years, place, first, tzinfo=UTC) for years in (-1, 0, 1)]
    return min(choices, key=lambda choice: abs(choice - at))


def day_of(text: str) -> datetime:
    return datetime.strptime(f"{text} +0000", "%a %d %b %Y %z")


def test_dates(browser: Browser, tmp_path: Path) -> None:
    schedule = schedule_of([(0, 0, 1, 100), (YEARS, YEARS, 6, 100)])
    dated = replace(schedule.workload, header={"UnixStartTime": (str(EPOCH),)})
    made = fragment([Chart("a", replace(schedule, workload=dated))])
    kinds = set()
    with opened(browser, written(tmp_path, made), before=RECORD) as seen:
        ready(seen)
        for _ in range(18):
            marks, units, width, _ = axis(drawn(seen), seen)
            now = view(seen)
            second = (now["to"] - now["from"]) / (width - LEFT - RIGHT)  # of a pixel, in seconds

            def date(x: float, now: dict[str, float] = now, second: float = second) -> datetime:
                return datetime.fromtimestamp(EPOCH, UTC) + timedelta(seconds=now["from"] + (x - LEFT) * second)

            assert 2 <= len(marks) <= 17
            for text, x, _, _ in marks:
                assert abs(nearest(text, date(x)) - date(x)).total_seconds() <= 0.51 * second
                kinds.add(re.sub(r"\d+", "0", re.sub("|".join(MONTHS), "Mon", text)))
            days = [nearest(text, date(x)) for text, x, _, _ in marks if " " in text]
            if timedelta(days=7) in {b - a for a, b in pairwise(days)}:
                assert {day.weekday() for day in days} == {0}
                kinds.add("weeks")
            for text, x, _, _ in units:
                begin = day_of(text) if " " in text else datetime(int(text), 1, 1, tzinfo=UTC)
                if x > LEFT:  # its line is 5 pixels before it
                    assert abs(begin - date(x - 5)).total_seconds() <= 0.51 * second
                else:
                    length = timedelta(days=1) if " " in text else timedelta(days=366)
                    assert timedelta(0) <= date(x) + timedelta(seconds=second) - begin < length
            for row in (marks, units):
                apart(row)
            seen.page.locator('[data-do="in"]').dblclick()
        assert seen.is_quiet(), seen
    assert kinds == {"0", "Mon", "weeks", "0 Mon", "0:0", "0:0:0"}


def axis(texts: list[Text], seen: Seen) -> tuple[list[Text], list[Text], float, float]:
    """The marks and the units below the picture, and its size."""
    size = seen.page.evaluate("((c) => [c.clientWidth, c.clientHeight])(document.querySelector('[data-part=picture]'))")
    bottom = size[1] - AXIS
    return [t for t in texts if t[2] == bottom + 8], [t for t in texts if t[2] == bottom + 24], size[0], size[1]


def apart(row: list[Text]) -> None:
    """No two texts of a row touch. (Marks are centred, units begin at their place: both are as far apart as wide.)"""
    for (_, x0, _, wide), (_, x1, _, next_wide) in pairwise(row):
        assert x1 - x0 > max(wide, (wide + next_wide) / 2) + 2


def test_days_and_processors(browser: Browser, tmp_path: Path) -> None:
    """Without a date, days count from the trace's beginning. And the processors stand where they are said to be."""
    made = fragment([Chart("a", schedule_of([(0, 0, 93_000, 100), (YEARS, YEARS, 6, 100)], processors=93_312))])
    with opened(browser, written(tmp_path, made), before=RECORD) as seen:
        ready(seen)
        for _ in range(18):
            texts = drawn(seen)
            marks, units, width, height = axis(texts, seen)
            now = view(seen)
            second = (now["to"] - now["from"]) / (width - LEFT - RIGHT)
            assert len(marks) >= 2
            for text, x, _, _ in marks:
                at = now["from"] + (x - LEFT) * second
                if text.startswith("day "):
                    exact = 86400.0 * int(text[4:].replace(",", ""))
                else:
                    parts = [int(part) for part in text.split(":")]
                    of_day = sum(part * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))
                    exact = round((at - of_day) / 86400) * 86400 + of_day
                assert abs(exact - at) <= 0.51 * second
            apart(marks)
            apart(units)
            lanes = [t for t in texts if t[1] == LEFT - 8 and 166 <= t[2] <= height - AXIS]
            assert len(lanes) >= 3
            for text, _, y, _ in lanes:
                lane = now["high"] - (y - 166) / (height - AXIS - 166) * (now["high"] - now["low"])
                assert int(text.replace(",", "")) == pytest.approx(lane)
            seen.page.locator('[data-do="in"]').dblclick()
            seen.page.locator('[data-part="picture"]').press("Shift+ArrowUp")
        assert seen.is_quiet(), seen
