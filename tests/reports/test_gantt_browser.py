"""Gantt charts in a real browser: what is shown, what hands can do, what hostile text cannot, and how fast it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

from dovetail.metrics.system import timeline, utilization
from dovetail.model.cluster import Cluster
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Provenance, Workload
from dovetail.reports.gantt import Chart, fragment
from dovetail.units import duration, printable
from tests.metrics.schedules import Row, schedule_of
from tests.reports.browser import Seen, chromium, needs_chromium, opened, written
from tests.reports.charts import EPOCH, EVIL, first_come, paused, quickest_ms, ready, settle, unpacked, view, where

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def colour_at(seen: Seen, job: int) -> tuple[int, ...]:
    """The colour in the middle of a job of SCHEDULE."""
    look = """([x, y]) => {
      const canvas = document.querySelector('[data-part="picture"]'), box = canvas.getBoundingClientRect();
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      return [0, 2].map((by) => [...copy.getImageData(x - box.left + by, y - box.top, 1, 1).data.slice(0, 3)]);
    }"""
    found = seen.page.evaluate(look, list(where(seen, int(SCHEDULE.workload["id"][job]))))
    # Of two pixels one may lie under a line of the grid: that is the darker one.
    return tuple(max(found, key=sum))


def zoom_in(seen: Seen, times: int) -> None:
    for _ in range(times):
        seen.page.locator('[data-do="in"]').click()
    settle(seen)


def tip(seen: Seen) -> dict[str, str]:
    """What the tooltip says, line by line; nothing if it is not to be seen."""
    if not seen.page.locator('[data-part="tip"]').is_visible():
        return {}
    rows = seen.page.evaluate("[...document.querySelectorAll('[data-part=tip] dl > *')].map((e) => e.textContent)")
    return dict(zip(rows[::2], rows[1::2], strict=True))


def instant(at: int, epoch: int = EPOCH) -> str:
    if not epoch:
        return f"day {at // 86400:,} {at % 86400 // 3600:02}:{at % 3600 // 60:02}:{at % 60:02}"
    date = datetime.fromtimestamp(epoch + at, UTC)
    return f"{date:%a} {date.day} {date:%b %Y %H:%M:%S}"


def told(schedule: Schedule, job: int, epoch: int = EPOCH) -> dict[str, str]:
    """What the tooltip must say about a job."""
    work = schedule.workload
    return {
        "Job": str(work["id"][job]),
        "Name": printable(EVIL[work["name"][job]]),
        "User": f"user{work['user'][job]}",
        "Processors": f"{work.size[job]:,}",
        "Submitted": instant(int(schedule.arrive[job]), epoch),
        "Waited": duration(int(schedule.wait[job])),
        "Started": instant(int(schedule.start[job]), epoch),
        "Ended": instant(int(schedule.end[job]), epoch),
        "Run time": duration(int(work.runtime[job])),
        "Limit": duration(int(work.limit[job])),
    }


def in_view(seen: Seen, schedule: Schedule, count: int, share: float = 0.005) -> list[int]:
    """Jobs that are wholly in view, at least that share of it long, spread over it."""
    now = view(seen)
    shown = (schedule.start > now["from"]) & (schedule.end < now["to"]) & (schedule.workload.size >= 4)
    long = schedule.workload.runtime > (now["to"] - now["from"]) * share
    jobs = np.flatnonzero(shown & long)
    assert len(jobs) >= count
    return [int(job) for job in jobs[np.linspace(0, len(jobs) - 1, count).astype(int)]]


SCHEDULE = first_come(1_000, 100, 8)
with pytest.MonkeyPatch.context() as patch:
    patch.setattr("dovetail.reports.gantt.OPENING_JOBS", 300)  # or all of so small a schedule would be seen
    CHARTS = fragment([Chart("first come", SCHEDULE), Chart("paused", paused(SCHEDULE))])


@pytest.fixture
def seen(browser: Browser, tmp_path: Path) -> Iterator[Seen]:
    """A page with two charts; at the end it must have been quiet."""
    with opened(browser, written(tmp_path, CHARTS)) as found:
        ready(found)
        yield found
        assert found.is_quiet(), found


def test_hovering_shows_the_job(seen: Seen) -> None:
    for job in in_view(seen, SCHEDULE, 12):
        x, y = where(seen, int(SCHEDULE.workload["id"][job]))
        seen.page.mouse.move(x, y)
        assert tip(seen) == told(SCHEDULE, job)
        assert seen.page.evaluate("([x, y]) => figure.jobAt(x, y)", [x, y]) == str(SCHEDULE.workload["id"][job])
    seen.page.mouse.move(2, 2)
    assert tip(seen) == {}


def test_all_jobs_in_view_are_drawn(seen: Seen) -> None:
    walk = """async (actions) => {
      const views = [];
      for (const action of actions) {
        document.querySelector(`[data-do="${action}"]`).click();
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        views.push([figure.view(), document.querySelector('[data-part="shown"]').textContent]);
      }
      return views;
    }"""
    for now, text in seen.page.evaluate(walk, ["all", *["in"] * 5, *["right"] * 12, *["left"] * 30]):
        count = np.sum((SCHEDULE.start < now["to"]) & (SCHEDULE.end > now["from"]))
        shown = f"{duration(now['to'] - now['from'])} from {instant(int(now['from']))}"
        assert text == f"In view: {shown}, {count:,} jobs running."


def address(seen: Seen) -> str:
    """What the address says once it has followed; it waits for that a moment."""
    seen.page.wait_for_timeout(500)
    return str(seen.page.evaluate("location.hash"))


def test_the_address_opens_the_same_view(seen: Seen, browser: Browser, tmp_path: Path) -> None:
    assert address(seen) == ""  # nobody has moved yet
    seen.page.locator('[data-part="chart"]').select_option(label="paused")
    seen.page.locator('[data-part="colour"]').select_option("user")
    zoom_in(seen, 2)
    seen.page.locator('[data-part="picture"]').press("Shift+ArrowUp")
    job = in_view(seen, paused(SCHEDULE), 1)[0]
    seen.page.mouse.click(*where(seen, int(SCHEDULE.workload["id"][job])))
    settle(seen)
    said, shown, details = address(seen), view(seen), tip(seen)
    assert said.startswith("#gantt&policy=paused&from=")
    assert said.endswith(f"&colour=user&job={SCHEDULE.workload['id'][job]}")
    with opened(browser, written(tmp_path, CHARTS), fragment=said) as other:
        ready(other)
        assert {name: round(value) for name, value in view(other).items()} == {k: round(v) for k, v in shown.items()}
        assert tip(other) == details
        assert details["Job"] == str(SCHEDULE.workload["id"][job])
        assert other.page.locator('[data-part="chart"]').input_value() == "paused"
        assert other.page.locator('[data-part="colour"]').input_value() == "user"
        assert "under paused" in other.page.locator('[data-part="about"]').inner_text()
        # Another address in the same window.
        other.page.evaluate("location.hash = '#gantt&policy=first+come&from=5000&to=9000'")
        settle(other)
        assert (view(other)["from"], view(other)["to"]) == (5000, 9000)
        assert "under first come" in other.page.locator('[data-part="about"]').inner_text()
        assert tip(other) == {}
        assert other.is_quiet(), other


@pytest.mark.parametrize(
    "said",
    ["#gantt", "#gantt&", "#gantt&policy=%3Cimg%20src=x%3E&from=a&to=1e999&job=-1&colour=red", "#other&from=1&to=2"],
)
def test_an_address_that_makes_no_sense_opens_the_usual_view(browser: Browser, tmp_path: Path, said: str) -> None:
    page = written(tmp_path, CHARTS)
    with opened(browser, page) as usual, opened(browser, page, fragment=said) as other:
        ready(usual)
        ready(other)
        assert view(other) == view(usual)
        assert (
            other.page.locator('[data-part="about"]').inner_text()
            == usual.page.locator('[data-part="about"]').inner_text()
        )
        assert other.is_quiet(), other


def test_a_link_to_the_view_is_copied(browser: Browser, tmp_path: Path) -> None:
    page = written(tmp_path, CHARTS)
    with opened(browser, page) as seen:
        seen.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        ready(seen)
        zoom_in(seen, 1)
        seen.page.locator('[data-do="link"]').click()
        seen.page.get_by_text("Copied.").wait_for()
        copied = seen.page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith(f"{page.resolve().as_uri()}#gantt&policy=first+come&from=")
        assert copied == seen.page.evaluate("location.href")


def test_hostile_names_stay_text(seen: Seen) -> None:
    named = {int(SCHEDULE.workload["name"][job]): job for job in in_view(seen, SCHEDULE, 40)}
    assert set(named) == {0, 1, 2, 3}
    before = seen.page.evaluate("document.querySelectorAll('*').length")
    for code, job in named.items():
        seen.page.mouse.move(*where(seen, int(SCHEDULE.workload["id"][job])))
        assert tip(seen)["Name"] == EVIL[code].replace("\u2028", "\ufffd")
    seen.page.mouse.move(2, 2)
    table = seen.page.evaluate(
        "[...document.querySelectorAll('.gantt-longest tbody tr')].map((r) => r.cells[4].textContent)"
    )
    longest = np.argsort(-SCHEDULE.wait, kind="stable")[:10]
    assert table == [EVIL[code].replace("\u2028", "\ufffd") for code in SCHEDULE.workload["name"][longest]]
    assert seen.page.evaluate("document.querySelectorAll('img, script').length") == 2
    # Only the tooltip's lines are new.
    assert seen.page.evaluate("document.querySelectorAll('*').length") == before + 1 + 2 * len(told(SCHEDULE, 0))


def test_the_wheel_zooms_where_the_pointer_is(seen: Seen) -> None:
    job = int(SCHEDULE.workload["id"][in_view(seen, SCHEDULE, 5)[3]])
    x, y = where(seen, job)
    pointer = int(x)  # a wheel knows whole pixels only
    before = view(seen)
    seen.page.mouse.move(pointer, y)
    seen.page.mouse.wheel(0, -200)
    settle(seen)
    after = view(seen)
    assert after["to"] - after["from"] == pytest.approx((before["to"] - before["from"]) * np.exp(-0.4))
    assert where(seen, job) == pytest.approx((pointer + (x - pointer) * np.exp(0.4), y))
    seen.page.mouse.wheel(0, 200)
    settle(seen)
    assert view(seen) == pytest.approx(before)
    seen.page.keyboard.down("Shift")
    seen.page.mouse.wheel(0, -200)
    seen.page.keyboard.up("Shift")
    settle(seen)
    lanes = view(seen)
    assert (lanes["from"], lanes["to"]) == pytest.approx((before["from"], before["to"]))
    assert lanes["high"] - lanes["low"] == pytest.approx(100 * np.exp(-0.4))
    assert where(seen, job)[0] == pytest.approx(x)


def test_dragging_moves_the_view(seen: Seen) -> None:
    zoom_in(seen, 1)
    jobs = in_view(seen, SCHEDULE, 5)
    job = int(SCHEDULE.workload["id"][jobs[2]])
    x, y = where(seen, job)
    before = view(seen)
    seen.page.mouse.move(x, y)
    seen.page.mouse.down()
    seen.page.mouse.move(x + 60, y, steps=4)
    seen.page.mouse.up()
    settle(seen)
    after = view(seen)
    assert where(seen, job) == pytest.approx((x + 60, y))
    assert after["to"] - after["from"] == pytest.approx(before["to"] - before["from"])
    assert seen.page.locator("[data-kept]").count() == 0  # a drag is not a click


def test_the_overview_moves_the_view(seen: Seen) -> None:
    zoom_in(seen, 6)
    box = seen.page.locator('[data-part="overview"]').bounding_box()
    assert box is not None
    seen.page.mouse.click(box["x"] + 0.9 * box["width"], box["y"] + 10)
    settle(seen)
    late = view(seen)
    seen.page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 10)
    seen.page.mouse.down()
    seen.page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 10, steps=3)
    seen.page.mouse.up()
    settle(seen)
    early = view(seen)
    assert early["to"] - early["from"] == pytest.approx(late["to"] - late["from"])
    header, _ = unpacked(CHARTS)
    begin, end = header["stretch"]
    seconds = (end - begin) / (box["width"] - 70 - 16)  # a pixel of the overview; it has these margins
    assert late["from"] - early["from"] == pytest.approx(0.6 * box["width"] * seconds)


def test_keys(seen: Seen) -> None:
    header, _ = unpacked(CHARTS)
    picture = seen.page.get_by_role("application")
    picture.focus()
    assert "Gantt chart" in (picture.get_attribute("aria-label") or "")

    def press(key: str) -> tuple[float, float, float, float]:
        picture.press(key)
        settle(seen)
        now = view(seen)
        return now["from"], now["to"], now["low"], now["high"]

    assert view(seen) == dict(zip(("from", "to", "low", "high"), (*header["opening"], 0, 100), strict=True))
    assert header["opening"] != header["stretch"]
    assert press("0") == (*header["stretch"], 0, 100)
    opening = press("w")
    assert opening == (*header["opening"], 0, 100)
    span = opening[1] - opening[0]
    closer = press("+")
    assert closer == pytest.approx((opening[0] + span * 0.1875, opening[1] - span * 0.1875, 0, 100))
    later = press("ArrowRight")
    assert later == pytest.approx((closer[0] + span / 6.4, closer[1] + span / 6.4, 0, 100))
    assert press("ArrowLeft") == pytest.approx(closer)
    assert press("-") == pytest.approx(opening)
    assert press("Shift+ArrowUp") == pytest.approx((*opening[:2], 18.75, 81.25))
    assert press("ArrowUp") == pytest.approx((*opening[:2], 34.375, 96.875))


USERS = ((0, 114, 178), (230, 159, 0), (0, 158, 115), (204, 121, 167), (86, 180, 233), (213, 94, 0), (240, 228, 66))
"""The palette of Okabe and Ito, without black."""
OTHERS, FADED, DARKEST = (176, 182, 190), (232, 234, 238), (58, 4, 79)


def test_colours_of_users(seen: Seen) -> None:
    zoom_in(seen, 2)
    seen.page.locator('[data-part="colour"]').select_option("user")
    settle(seen)
    users = unpacked(CHARTS)[0]["users"]
    for job in in_view(seen, SCHEDULE, 18, share=0.015):
        rank = users.index(f"user{SCHEDULE.workload['user'][job]}")
        assert colour_at(seen, job) == (USERS[rank] if rank < len(USERS) else OTHERS)
    assert seen.page.locator('[data-part="legend"]').inner_text().split() == [*users[:7], "others"]


@pytest.mark.parametrize("mode", ["size", "wait"])
def test_colours_of_amounts(seen: Seen, mode: str) -> None:
    """The more, the darker; and the longest wait of all is darkest."""
    zoom_in(seen, 2)
    seen.page.locator('[data-part="colour"]').select_option(mode)
    settle(seen)
    amount = SCHEDULE.workload.size if mode == "size" else SCHEDULE.wait
    shown = sorted(in_view(seen, SCHEDULE, 18, share=0.015), key=lambda job: amount[job])
    brightness = [sum(colour_at(seen, job)) for job in shown]
    assert brightness == sorted(brightness, reverse=True)
    assert brightness[0] > brightness[-1]
    most = f"{SCHEDULE.workload.size.max():,}" if mode == "size" else duration(int(paused(SCHEDULE).wait.max()))
    assert most in seen.page.locator('[data-part="legend"]').inner_text()
    if mode == "wait":
        seen.page.locator('[data-part="chart"]').select_option("paused")
        seen.page.locator(".gantt-longest tbody button").first.click()
        settle(seen)
        longest = int(np.argmax(paused(SCHEDULE).wait))
        seen.page.mouse.move(*where(seen, int(SCHEDULE.workload["id"][longest])))
        for _ in range(6):  # until it is wide enough: short jobs wait long too
            seen.page.mouse.wheel(0, -300)
            settle(seen)
        assert colour_at(seen, longest) == DARKEST


def test_a_click_keeps_the_details_and_fades_other_users(seen: Seen) -> None:
    zoom_in(seen, 2)
    seen.page.locator('[data-part="colour"]').select_option("user")
    settle(seen)
    first, *others = in_view(seen, SCHEDULE, 18, share=0.015)
    user = SCHEDULE.workload["user"]
    colours = {job: colour_at(seen, job) for job in (first, *others)}
    seen.page.mouse.click(*where(seen, int(SCHEDULE.workload["id"][first])))
    settle(seen)
    seen.page.mouse.move(2, 2)
    assert tip(seen) == told(SCHEDULE, first)
    assert {job: colour_at(seen, job) for job in others} == {
        job: colours[job] if user[job] == user[first] else FADED for job in others
    }
    seen.page.get_by_role("application").press("Escape")
    settle(seen)
    assert tip(seen) == {}
    assert {job: colour_at(seen, job) for job in colours} == colours
    # The legend does the same for a user.
    name = unpacked(CHARTS)[0]["users"][1]
    seen.page.get_by_role("button", name=name, exact=True).click()
    settle(seen)
    faded = {job: colours[job] if f"user{user[job]}" == name else FADED for job in colours}
    assert {job: colour_at(seen, job) for job in colours} == faded


def test_the_table_leads_to_the_longest_waits(seen: Seen) -> None:
    longest = np.argsort(-SCHEDULE.wait, kind="stable")[:10]
    buttons = seen.page.locator(".gantt-longest tbody button")
    assert buttons.all_inner_texts() == [str(n) for n in SCHEDULE.workload["id"][longest]]
    waits = seen.page.evaluate(
        "[...document.querySelectorAll('.gantt-longest tbody tr')].map((r) => r.cells[1].textContent)"
    )
    assert waits == [duration(int(s)) for s in SCHEDULE.wait[longest]]
    buttons.nth(4).click()
    settle(seen)
    job = int(longest[4])
    now = view(seen)
    assert now["from"] < SCHEDULE.arrive[job] < SCHEDULE.end[job] < now["to"]
    assert tip(seen) == told(SCHEDULE, job)


def test_another_chart_is_shown_in_the_same_view(seen: Seen) -> None:
    before = view(seen)
    other = paused(SCHEDULE)
    seen.page.locator('[data-part="chart"]').select_option("paused")
    settle(seen)
    assert view(seen) == before
    longest = int(np.argmax(other.wait))
    button = seen.page.locator(".gantt-longest tbody button").first
    assert button.inner_text() == str(SCHEDULE.workload["id"][longest])
    button.click()
    settle(seen)
    assert tip(seen) == told(other, longest)


def test_jobs_smaller_than_a_pixel_are_neither_lost_nor_blown_up(browser: Browser, tmp_path: Path) -> None:
    """The ink on the picture is that of the processors in use, though no job is as large as four pixels."""
    schedule = first_come(20_000, 1_000, 11, load=0.6, largest=8)
    same = replace(schedule.workload, columns={**schedule.workload.columns, "user": np.full(20_000, -1)}, names={})
    made = fragment([Chart("a", replace(schedule, workload=same))])
    ink = """() => {
      const canvas = document.querySelector('[data-part="picture"]');
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
      copy.drawImage(canvas, 0, 0);
      const { data } = copy.getImageData(70, 166, canvas.width - 70 - 16, canvas.height - 166 - 40);
      return data.reduce((sum, value, k) => sum + (k % 4 === 0 ? 255 - value : 0), 0) / (data.length / 4);
    }"""
    with opened(browser, written(tmp_path, made)) as seen:
        ready(seen)
        seen.page.locator('[data-part="colour"]').select_option("user")
        seen.page.locator('[data-do="all"]').click()
        settle(seen)
        expected = utilization(timeline(schedule)) * (255 - OTHERS[0])
        assert 0.4 * (255 - OTHERS[0]) < expected
        # The lines of the grid are over it.
        assert seen.page.evaluate(ink) == pytest.approx(expected, rel=0.02)


def test_strips_show_the_queue_and_the_processors_in_use(browser: Browser, tmp_path: Path) -> None:
    """Against metrics.system, where the page has but a part of the trace and of the jobs that wait."""
    schedule = first_come(3_000, 100, 9, load=1.3)
    made = fragment([Chart("a", schedule)], most_jobs=400)
    header, (chart,) = unpacked(made)
    begin, end = header["stretch"]
    assert len(chart["late"]) > 20
    line = timeline(schedule)
    with opened(browser, written(tmp_path, made)) as seen:
        ready(seen)
        instants = np.random.default_rng(1).integers(begin, end, 500)
        at = np.searchsorted(line.times, instants, side="right") - 1
        shown = seen.page.evaluate("(all) => all.map((at) => figure.now(at))", instants.tolist())
        assert [now["waiting"] for now in shown] == line.queue_jobs[at].tolist()
        assert [now["busy"] for now in shown] == line.busy[at].tolist()
        about = seen.page.locator('[data-part="about"]').inner_text()
        assert f"The stretch in which jobs waited most, {len(chart['id'])} of 3,000 jobs" in about
        assert f"from {instant(begin)} to {instant(end)}. Dates and hours are UTC." in about
        assert seen.is_quiet(), seen


def test_without_dates_names_or_users(browser: Browser, tmp_path: Path) -> None:
    """Days count from the trace's beginning. And a number of 60 bits, which is no number of JavaScript, is exact."""
    big = 2**60 + 1
    columns = {key: np.array(values) for key, values in {
        "id": [big, 7], "submit": [100_000, 100_060], "size": [3, 4], "runtime": [7_200, 90], "limit": [-1, 3_600],
    }.items()}  # fmt: skip
    workload = Workload("two", columns, 4, Provenance("test"))
    none = np.full(2, -1, np.int64)
    start = np.array([100_000, 107_200])
    schedule = Schedule(workload, Cluster(4), "x", "limit", start, workload.submit, none, none, 0)
    with opened(browser, written(tmp_path, fragment([Chart("x", schedule)])), device_scale_factor=2) as seen:
        ready(seen)
        seen.page.mouse.move(*where(seen, big))
        assert tip(seen) == {
            "Job": str(big), "Processors": "3", "Submitted": "day 1 03:46:40", "Waited": "0 s",
            "Started": "day 1 03:46:40", "Ended": "day 1 05:46:40", "Run time": "2 h", "Limit": "unknown",
        }  # fmt: skip
        shape = "((c) => [c.width / c.clientWidth, c.height / c.clientHeight])(document.querySelector('canvas'))"
        assert seen.page.evaluate(shape) == [2, 2]
        assert seen.is_quiet(), seen


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], "No job can be drawn: "),
        ([(0, -1, 1, 5)], "No job can be drawn: "),
        ([(0, 0, 1, 5)] * 3, "No job can be drawn: "),
        ([(0, -1, 1, 5), (0, 0, 1, 60)], "All 1 job that started, of 2: 1 m from day 0 00:00:00 to day 0 00:01:00. "),
        ([(0, 0, 1, 5), (0, 0, 1, 5)], "All 2 jobs: 5 s from day 0 00:00:00 to day 0 00:00:05. "),
    ],
)
def test_little_or_nothing_to_draw(browser: Browser, tmp_path: Path, rows: list[Row], text: str) -> None:
    made = fragment([Chart("x", schedule_of(rows))], most_jobs=2)
    with opened(browser, written(tmp_path, made, made)) as seen:
        ready(seen)
        assert seen.page.evaluate("dovetailGantt.ready.then((all) => all.length)") == 2
        assert text in seen.page.locator('[data-part="about"]').first.inner_text()
        assert seen.is_quiet(), seen


def test_broken_data_say_so(browser: Browser, tmp_path: Path) -> None:
    made = fragment([Chart("x", schedule_of([(0, 0, 1, 5)]))])
    broken = replace(made, html=made.html.replace('data-part="data">', 'data-part="data">AAAA'))
    with opened(browser, written(tmp_path, broken)) as seen:
        seen.page.wait_for_function("document.body.innerText.includes('This browser could not draw the chart')")
        assert seen.complaints


def test_the_policy_of_the_page_is_enforced_and_watched(seen: Seen) -> None:
    """What a hostile name would have to do is tried here: the browser refuses it, and it is written down."""
    attack = "const s = document.createElement('script'); s.textContent = 'window.owned = 1'; document.body.append(s)"
    seen.page.evaluate(f"() => {{ {attack} }}")
    assert seen.page.evaluate("typeof window.owned") == "undefined"
    seen.page.evaluate(
        "() => { document.body.append(Object.assign(new Image(), { src: 'http://127.0.0.1:9/x.png' })) }"
    )
    seen.page.wait_for_timeout(100)
    assert len(seen.complaints) == 2
    assert all("Content Security Policy" in text for text in seen.complaints)
    seen.complaints.clear()
    seen.requests.clear()


@pytest.mark.parametrize("width", [1280, 1920])
def test_nothing_is_wider_than_the_window(browser: Browser, tmp_path: Path, width: int) -> None:
    long = replace(SCHEDULE.workload, names={"user": ("w" * 300,) * 20, "name": ("m" * 300,) * 4})
    made = fragment([Chart("t" * 200, replace(SCHEDULE, workload=long))])
    with opened(browser, written(tmp_path, made), width=width) as seen:
        ready(seen)
        for mode in ("wait", "user"):
            seen.page.locator('[data-part="colour"]').select_option(mode)
            settle(seen)
            assert seen.page.evaluate("document.documentElement.scrollWidth") == width
        seen.page.set_viewport_size({"width": width - 300, "height": 900})
        settle(seen)
        job = in_view(seen, SCHEDULE, 3)[1]
        seen.page.mouse.move(*where(seen, int(SCHEDULE.workload["id"][job])))
        assert tip(seen)["Job"] == str(SCHEDULE.workload["id"][job])


def test_a_hundred_thousand_jobs_open_in_3_s_and_are_redrawn_in_half_a_second(browser: Browser, tmp_path: Path) -> None:
    made = fragment([Chart("first come", first_come(100_000, 300, 10))])
    assert len(unpacked(made)[1][0]["id"]) == 100_000
    opening_ms, redrawing_ms = quickest_ms(browser, written(tmp_path, made))
    assert opening_ms < 3_000
    assert redrawing_ms < 500
