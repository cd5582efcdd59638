"""Pictures: what is computed for them, against obvious code; what is drawn, against what was computed."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import replace
from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail import metrics
from dovetail.metrics.catalog import METRICS
from dovetail.metrics.system import bin_edges, bin_length
from dovetail.model.schedule import Schedule
from dovetail.reports import curves as computed
from dovetail.reports.columns import change, interval, named, percent, scale
from dovetail.reports.curves import Curves, curves
from dovetail.reports.figures import Picture, drawable, pictures
from dovetail.reports.line_figures import busy_figure, queue_figure, wait_area_figure, waits_figure
from dovetail.reports.page_data import Entry
from dovetail.reports.panel_figures import FEW, changed, changes_figure, size_labels, wait_map_figure
from dovetail.reports.style import duration_ticks, settings, short_duration, svg, text_colour
from tests.metrics.schedules import feasible, schedule_of
from tests.reports.contents import HOSTILE, case, compared, entry, schedule, typical

MADE = schedule("easy", 0)


@pytest.fixture(scope="module")
def two() -> list[Curves]:
    first = curves("easy", MADE)
    return [first, curves("other", schedule("other", 3, mean_wait_s=40_000), first)]


# Computing


def test_share_of_jobs_by_wait() -> None:
    found = curves("easy", MADE).waits
    waits = [int(wait) for wait in MADE.wait]
    assert found.x[0] == 0
    assert found.x[-1] == max(waits)
    assert len(found.x) <= 1 + computed.POINTS
    for x, y in zip(found.x, found.y, strict=True):
        assert y == sum(wait <= x for wait in waits) / len(waits)
    assert found.y[0] == sum(wait == 0 for wait in waits) / len(waits) > 0.3
    assert found.y[-1] == 1


@given(feasible(least=1), st.integers(1, 40))
def test_queue_is_the_mean_of_each_bin(made: Schedule, bin_s: int) -> None:
    line = metrics.timeline(made)
    edges = bin_edges(line.times, bin_s)
    found = computed.binned(line.times, line.queue_jobs, edges)
    jobs = list(zip(made.arrive.tolist(), made.start.tolist(), strict=True))
    assert len(found) == -(-line.span_s // bin_s)
    for low, high, mean in zip(edges[:-1], edges[1:], found, strict=True):
        waiting = [sum(arrive <= second < start for arrive, start in jobs) for second in range(low, high)]
        assert mean == sum(waiting) / len(waiting)
    assert computed.middles(edges).tolist() == [
        (low + high) / 2 - edges[0] for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]


def test_a_policy_that_ends_much_later_has_no_more_points() -> None:
    first = curves("easy", MADE)
    assert first.queue_bin_s == 6 * computed.HOUR  # 40 d in at most 400 bins
    late = schedule("late", 1, mean_wait_s=10 * 86400 * 40)
    found = curves("late", late, first)
    assert found.queue_bin_s % first.queue_bin_s == 0
    assert found.queue_bin_s > first.queue_bin_s
    assert len(found.queue.x) <= computed.MOST_POINTS
    assert len(found.busy.x) <= computed.MOST_POINTS


@pytest.mark.parametrize(
    ("span_s", "most", "length"),
    [
        (0, 400, 1),
        (400, 400, 1),
        (401, 400, 5),
        (400 * 86400, 400, 86400),
        (10**10, 400, 364 * 86400),
        (10**11, 400, 414 * 604800),
    ],
)
def test_bin_length(span_s: int, most: int, length: int) -> None:
    assert bin_length(span_s, most) == length
    assert span_s <= most * length


def test_utilisation_adds_up_to_the_area() -> None:
    found = curves("easy", MADE)
    line = metrics.timeline(MADE)
    lengths = np.diff(bin_edges(line.times, found.busy_bin_s))
    assert float((found.busy.y * lengths).sum() * 512) == pytest.approx(float(metrics.outcomes(MADE).area.sum()), 1e-12)


def test_wait_area_by_job_area() -> None:
    big = schedule("easy", 0, jobs=3000)
    found, jobs = curves("easy", big), metrics.outcomes(big)
    assert len(found.wait_area.x) <= 2 + computed.POINTS
    assert found.wait_area.x[0] == jobs.area.min()
    assert found.wait_area.x[-1] == jobs.area.max()
    for at in range(0, len(found.wait_area.x), 7):
        small = jobs.area <= found.wait_area.x[at]
        assert found.wait_area.y[at] == (jobs.size * jobs.wait)[small].sum()
        assert found.job_share.y[at] == small.mean()
        assert found.area_share.y[at] == pytest.approx(jobs.area[small].sum() / jobs.area.sum(), 1e-12)


def test_wait_map() -> None:
    jobs = metrics.outcomes(MADE)
    found = computed.wait_map(jobs, computed.size_rows(jobs.size))
    waits = defaultdict(list)
    for size, runtime, wait in zip(jobs.size, jobs.runtime, jobs.wait, strict=True):
        row = max(at for at, least in enumerate(found.sizes) if size >= least)
        column = max(at for at, least in enumerate(computed.RUNTIMES) if runtime >= least)
        waits[row, column].append(int(wait))
    for (row, column), count in np.ndenumerate(found.jobs):
        inside = waits[row, column]
        assert count == len(inside)
        assert found.mean_s[row, column] == pytest.approx(sum(inside) / len(inside) if inside else nan, nan_ok=True)


def test_rows_of_a_wait_map() -> None:
    assert computed.size_rows(np.array([1])) == (1,)
    assert computed.size_rows(np.array([1, 9])) == (1, 2, 3, 5, 9)
    assert computed.size_rows(np.array([93_312])) == (1, 2, 9, 65, 513, 4097, 32769)
    assert size_labels((1, 2, 3, 5)) == ["1", "2", "3–4", "≥ 5"]
    assert size_labels((1,)) == ["≥ 1"]


# Drawing


def test_lines_are_those_computed(two: list[Curves]) -> None:
    with settings():
        waits, queue, busy, area = waits_figure(two), queue_figure(two), busy_figure(two), wait_area_figure(two)
    for at, c in enumerate(two):
        line = waits.axes[0].lines[at]
        assert np.array_equal(line.get_ydata(), c.waits.y)
        assert np.array_equal(np.asarray(line.get_xdata())[1:], c.waits.x[1:])
        left = waits.axes[0].get_xlim()[0]
        assert left < float(np.asarray(line.get_xdata())[0]) < 1  # 0 s has a place on the logarithmic axis
        assert np.array_equal(queue.axes[0].lines[at].get_xdata(), c.queue.x / 86400)
        assert np.array_equal(queue.axes[0].lines[at].get_ydata(), c.queue.y)
        assert np.array_equal(busy.axes[0].lines[at].get_ydata(), c.busy.y)
        assert np.array_equal(area.axes[1].lines[at].get_xdata(), c.wait_area.x)
    assert [line.get_ydata().tolist() for line in area.axes[0].lines] == [  # type: ignore[union-attr]
        two[0].job_share.y.tolist(),
        two[0].area_share.y.tolist(),
    ]
    unit = re.findall(r"processor (\w+)$", area.axes[1].get_title("left"))[0]
    seconds = {"days": 86400, "years": 365 * 86400, "hours": 3600}[unit]
    assert np.array_equal(area.axes[1].lines[1].get_ydata(), two[1].wait_area.y / seconds)
    assert queue.axes[0].get_xlabel() == "days since the first arrival"


def test_a_short_schedule_is_drawn_in_its_own_units() -> None:
    one = [curves("easy", schedule_of([(100, 100, 2, 50), (110, 150, 6, 20)]))]
    with settings():
        made = queue_figure(one)
    assert made.axes[0].get_xlabel() == "seconds since the first arrival"
    assert made.axes[0].lines[0].get_ydata().tolist() == [0.0] * 10 + [1.0] * 40 + [0.0] * 20  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_schedule_of_one_moment_is_drawn() -> None:
    one = Entry("easy", {}, schedule=lambda: schedule_of([(5, 5, 1, 1)]))
    titles = [picture.title for picture in pictures(case([one]), "a")]
    assert titles[0] == "How long jobs waited"
    assert len(titles) == 5


def test_changes_show_comparison_interval_and_verdict() -> None:
    base = entry("easy", {"mean_wait_s": 100.0, "bsld": 10.0, "af_s": 50.0, "utilization": 0.5})
    one = entry(
        "a", {"mean_wait_s": 90.0, "bsld": 12.0, "af_s": 50.0}, {"mean_wait_s": compared(-0.12, "better", 0.03)}
    )
    far = entry("b", {"mean_wait_s": 400.0}, {"mean_wait_s": compared(3.0, "worse", 0.1)})
    found = case([base, one, far])
    assert [column.key for column in changed(found)[0]] == ["mean_wait_s", "bsld"]  # AF did not change
    with settings():
        made = changes_figure(found)
    wait, bsld = made.axes[:2]
    marks = [(line.get_marker(), line.get_markerfacecolor(), *line.get_xydata().tolist()) for line in wait.lines]  # type: ignore[union-attr]
    assert ("None", "#0072B2", [-0.15, 0.0], [-0.09, 0.0]) in marks
    assert ("o", "#0072B2", [-0.12, 0.0]) in marks
    assert (">", "#D55E00", [1.0, 1.0]) in marks  # off the scale: an arrow and the number
    assert [text.get_text() for text in wait.texts] == ["+300 %"]
    hollow = [line for line in bsld.lines if line.get_marker() == "o"]
    assert [line.get_markerfacecolor() for line in hollow] == ["#ffffff"]  # no comparison, no colour
    assert hollow[0].get_xdata() == pytest.approx([0.2])
    assert [text.get_text() for text in wait.get_yticklabels()] == ["a", "b"]


def test_names_that_are_alike_when_short_are_numbered() -> None:
    names = [f"list:order=wfp3,{'x' * 40}{at}{'y' * 40}" for at in range(2)]
    found = case([entry("easy", {"bsld": 1.0}), *(entry(name, {"bsld": 2.0}) for name in names)])
    with settings():
        labels = [text.get_text() for text in changes_figure(found).axes[0].get_yticklabels()]
    assert [label[:3] for label in labels] == ["2. ", "3. "]  # as rows of the table


def test_wait_map_cells(two: list[Curves]) -> None:
    with settings():
        made = wait_map_figure(two)
    for ax, c in zip(made.axes, two, strict=False):
        filled, few = c.wait_map.jobs > 0, (c.wait_map.jobs > 0) & (c.wait_map.jobs < FEW)
        expected = {
            (col + 0.5, row + 0.5): short_duration(float(c.wait_map.mean_s[row, col]))
            for row, col in np.argwhere(filled)
        }
        assert {text.get_position(): text.get_text() for text in ax.texts} == expected
        assert sum(bool(patch.get_hatch()) for patch in ax.patches) == few.sum() > 0


# As SVG


def ids(text: str) -> list[str]:
    return re.findall(r'\bid="([^"]+)"', text)


@pytest.fixture(scope="module")
def usual() -> list[Picture]:
    return pictures(typical(), "c1")


@pytest.fixture(scope="module")
def hostile() -> list[Picture]:
    return pictures(typical(HOSTILE), "c2")


@pytest.mark.slow
def test_pictures_on_one_page_do_not_share_ids(usual: list[Picture], hostile: list[Picture]) -> None:
    made = [picture.svg for picture in usual + hostile]
    assert len(made) == 16
    every = Counter(one for text in made for one in ids(text))
    assert every.most_common(1)[0][1] == 1
    for text in made:
        referred = set(re.findall(r'(?:url\(|href=")#([^")]+)', text))
        assert referred == set(ids(text)) != set()
        assert "<style" not in text
        assert "<metadata" not in text
        assert 'aria-label="' in text


@pytest.mark.slow
def test_no_more_lines_than_can_be_told_apart_and_no_picture_is_large() -> None:
    full = typical([f"policy-{at}" for at in range(10)], jobs=4000)
    full = replace(full, entries=(full.entries[0], entry("lost", {}), *full.entries[1:]))
    best = full.entries[-1]
    full = replace(full, entries=(*full.entries[:-1], replace(best, metrics={**best.metrics, "mean_wait_s": 1.0})))
    shown = [f"policy-{at}" for at in (0, 1, 2, 3, 4, 5, 6, 9)]
    assert [e.policy for e in drawable(full)] == shown
    found = pictures(full, "a")
    assert [picture.wide for picture in found] == [True, True, True, False, False, False, False, True]
    assert [key.label for key in found[3].key] == shown
    assert len({key.stroke for key in found[3].key}) == 8
    assert {picture.title: len(picture.svg) for picture in found if len(picture.svg.encode()) > 80_000} == {}


@pytest.mark.slow
def test_foreign_text_stays_text_in_a_picture(hostile: list[Picture]) -> None:
    for picture in hostile:
        assert "<script" not in picture.svg
        assert "<img" not in picture.svg
        assert picture.svg.count("<svg") == picture.svg.count("</svg>") == 1
    change_picture = hostile[0].svg
    assert "$x_1$" in change_picture  # not taken for mathematics
    assert "_hidden" in change_picture
    assert "\x00" not in change_picture


@pytest.mark.slow
def test_same_bytes_whatever_the_settings_of_the_user(usual: list[Picture]) -> None:
    import matplotlib

    with matplotlib.rc_context({"lines.linewidth": 9, "svg.fonttype": "path", "font.size": 30}):
        assert pictures(typical(), "c1") == usual
        assert matplotlib.rcParams["font.size"] == 30


def test_empty_figure_has_a_name() -> None:
    from matplotlib.figure import Figure

    with settings():
        assert svg(Figure(), "a", 'x"<').startswith('<svg viewBox="0 0 460.8 345.6"')


# Numbers as people read them


def test_numbers() -> None:
    assert [percent(share) for share in (-0.136, 0.0001, -0.0001, 0.9994, 1.0, 17.86, nan)] == [
        "−13.6 %", "0.0 %", "0.0 %", "+99.9 %", "+100 %", "+1,786 %", "–",
    ]  # fmt: skip
    assert interval(-0.181, 0.09) == "[−18.1, +9.0]"
    assert change(100, 90) == pytest.approx(-0.1)
    assert np.isnan([change(0, 1), change(nan, 1), change(1, nan)]).all()
    assert [short_duration(s) for s in (0, 59, 61, 3600, 36000, 86400, 20 * 86400)] == [
        "0 s", "59 s", "1 m", "1.0 h", "10 h", "1.0 d", "20 d",
    ]  # fmt: skip
    assert named("abcdefghijkl", 12) == "abcdefghijkl"
    assert named("abc" + 100 * "d" + "efghijk", 9) == "abcd…hijk"
    assert named("a\nb\x00\u202e") == "a�b��"
    assert text_colour((1, 1, 1)) == "#000000"
    assert text_colour((0, 0, 0.5)) == "#ffffff"


def test_units_of_a_column() -> None:
    wait, bsld, busy = (next(c for c in METRICS if c.key == key) for key in ("mean_wait_s", "bsld", "utilization"))
    for values, unit, text in (
        ([6840.0, 3600.0, 9999.0], "h", "1.90"),
        ([6840.0, 10.0, 20.0], "s", "6,840.0"),
        ([300.0], "min", "5.00"),
        ([262194.0, nan], "d", "3.03"),
    ):
        found = scale(wait, values)
        assert (found.unit, found.text(values[0])) == (unit, text)
    assert scale(bsld, [92.6877]).text(92.6877) == "92.7"
    assert scale(busy, [0.6856]).text(0.6856) == "68.6"
    assert scale(wait, [nan]).text(nan) == "–"
    assert scale(wait, [0.0]).text(0.0) == "0"


def test_ticks_of_durations() -> None:
    assert duration_ticks(1, 90_000, 10) == [
        (1, "1 s"), (10, "10 s"), (60, "1 min"), (600, "10 min"), (3600, "1 h"), (21600, "6 h"), (86400, "1 d"),
    ]  # fmt: skip
    assert [text for _, text in duration_ticks(1, 90_000, 4)] == ["1 s", "1 min", "1 h", "1 d"]
    century = 36500 * 86400
    assert [text for _, text in duration_ticks(50, century, 3)] == ["1 min", "30 d", "100 years"]
    assert duration_ticks(2, 3, 4) == []
