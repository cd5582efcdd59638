"""Several objectives at once: the front and the matrix against obvious code, and names that leave each other room."""

from __future__ import annotations

import re
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dovetail.reports.columns import labels, shared
from dovetail.reports.figures import pictures
from dovetail.reports.page import render
from dovetail.reports.page_data import Case, Entry
from dovetail.reports.style import BETTER, GREY, INK, settings
from dovetail.reports.tradeoff_figures import MOST_NAMED, front, front_figure, matrix_figure, of_baseline, shade
from tests.reports.browser import chromium, needs_chromium, opened
from tests.reports.contents import HOSTILE, case, entry, page
from tests.reports.test_page import OVERLAPS, TOO_WIDE


def plane(*values: tuple[float, float], names: tuple[str, ...] = ()) -> Case:
    """A case of policies with these AF and P2SF."""
    called = names or tuple(f"p{at}" for at in range(len(values)))
    return case([entry(name, {"af_s": x, "p2sf_s": y}) for name, (x, y) in zip(called, values, strict=True)])


def random_plane(seed: int, policies: int, near: float = 0.4) -> Case:
    rng = np.random.default_rng(seed)
    values = np.rint(1000 * (1 + near * rng.standard_normal((policies, 2)).clip(-2, 2))).tolist()
    return plane(*(tuple(pair) for pair in values))


def test_dominated_are_those_that_another_beats() -> None:
    for seed in range(50):
        shown = random_plane(seed, 3 + seed % 6, near=(0.002, 0.4)[seed % 2])  # ties among the first
        values = [(e.metrics["af_s"], e.metrics["p2sf_s"]) for e in shown.entries]
        for point in front(shown):
            x, y = values[point.entry]
            assert (point.x, point.y) == pytest.approx((x / values[0][0], y / values[0][1]), rel=1e-15)
            beaten = [(a <= x and b < y) or (a < x and b <= y) for a, b in values]
            assert point.dominated == any(beaten)


def test_too_few_have_no_front() -> None:
    assert front(plane((1, 1), (2, 2))) == []
    assert front(plane((1, 1), (2, 2), (nan, 3))) == []
    assert front(plane((0, 1), (2, 2), (3, 3))) == []  # nothing is a percentage of 0
    two = [picture.title for picture in pictures(plane((1, 1), (2, 2)), "a")]
    assert two == ["Change against p0"]
    three = [picture.title for picture in pictures(plane((1, 1), (2, 2), (3, 1)), "a")]
    assert three == ["Change against p0", "Policies against metrics", "AF against P2SF"]


def test_marks_steps_and_edges() -> None:
    shown = plane((100, 100), (80, 120), (90, 90), (90, 95), (95, 740))
    with settings():
        ax = front_figure(shown).axes[0]
    drawn = [(np.asarray(line.get_xydata()), line) for line in ax.lines]
    (steps,) = (data for data, line in drawn if len(data) > 2)
    assert np.allclose(steps, [(0.8, 1.2), (0.9, 1.2), (0.9, 0.9)])
    marks: dict[tuple[float, float], tuple[Any, ...]] = {
        (round(float(data[0, 0]), 9), round(float(data[0, 1]), 9)): (
            line.get_marker(), line.get_color(), line.get_markerfacecolor(),
        )
        for data, line in drawn
        if len(data) == 1
    }  # fmt: skip
    assert marks.pop((1.0, 1.0)) == ("s", INK, "#ffffff")  # (90, 90) beats the baseline
    assert marks.pop((0.8, 1.2)) == marks.pop((0.9, 0.9)) == ("o", BETTER, BETTER)
    assert marks.pop((0.9, 0.95)) == ("o", GREY, "#ffffff")
    (((x, y), how),) = marks.items()
    assert how == ("^", GREY, "#ffffff")
    assert x == 0.95
    assert 1.2 < y < ax.get_ylim()[1]
    texts = {text.get_text() for text in ax.texts}
    assert texts == {"p0 (baseline)", "p1", "p2", "p3", "p4: P2SF 740.0 %"}


def crowded(policies: int) -> Case:
    """Points that nearly coincide, in three heaps, under long names."""
    rng = np.random.default_rng(3)
    heaps = rng.choice([0.8, 1.0, 1.2], policies)
    values = np.stack([heaps, 2 - heaps], axis=1) * 1000 + rng.integers(0, 4, (policies, 2))
    names = tuple(f"plan:objective=af+{at}*p2sf,decodes=50,window={at}" for at in range(policies))
    return plane(*(tuple(pair) for pair in values.tolist()), names=names)


@needs_chromium
def test_names_never_cover_each_other(tmp_path: Path) -> None:
    odd = plane(*(((i % 3) + 1, 2 - i / 10) for i in range(5)), names=(*HOSTILE, "W" * 300))
    cases = [crowded(MOST_NAMED), crowded(30), random_plane(1, 17, 0.01), plane(*[(5, 5)] * 6), odd]
    path = tmp_path / "page.html"
    path.write_text(render(page(*cases)), encoding="utf-8")
    with chromium() as browser:
        for width in (760, 1280, 1920):
            with opened(browser, path, width) as seen:
                assert seen.page.evaluate(OVERLAPS) == []
                assert seen.page.evaluate(TOO_WIDE) == []
                assert seen.is_quiet(), seen


@pytest.mark.slow
def test_names_stand_clear_of_marks_and_all_are_there() -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with settings():
        for shown in (crowded(MOST_NAMED), crowded(30), random_plane(2, 17, 0.02)):
            made = front_figure(shown)
            ax, canvas = made.axes[0], FigureCanvasAgg(made)
            canvas.draw()  # type: ignore[no-untyped-call]
            points = [np.asarray(line.get_xydata()) for line in ax.lines]
            marks = [ax.transData.transform(data[0]) for data in points if len(data) == 1]
            assert len(marks) == len(front(shown)) == len(shown.entries)
            assert len(ax.texts) == min(len(shown.entries), MOST_NAMED)
            inside = ax.get_window_extent()
            for text in ax.texts:
                box = super(type(text), text).get_window_extent()  # without the line that leads to the mark
                assert not any(box.contains(x, y) for x, y in marks)
                assert inside.x0 - 1 <= box.x0 < box.x1 <= inside.x1 + 1
                assert inside.y0 - 1 <= box.y0 < box.y1 <= inside.y1 + 1


def test_cells_are_percent_of_the_baseline() -> None:
    keys = ("af_s", "bsld", "utilization")
    rows = {"a": (200.0, 4.0, 0.5), "b": (100.0, 8.0, 0.6), "c": (500.0, 50.0, nan), "d": (200.0, 3.0, 0.25)}
    shown = case([Entry(name, dict(zip(keys, values, strict=True))) for name, values in rows.items()])
    with settings():
        ax = matrix_figure(shown).axes[0]
    found = [[text.get_text() for text in ax.texts[4 * at : 4 * at + 4]] for at in range(3)]
    assert found == [
        ["100.0 %", "200.0 %", "1,250 %", "★ 75.0 %"],
        ["100.0 %", "★ 50.0 %", "250.0 %", "100.0 %"],
        ["100.0 %", "★ 120.0 %", "–", "50.0 %"],
    ]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["BSLD", "AF", "utilisation (more\nis better)"]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a (baseline)", "b", "c", "d"]
    colours = [patch.get_facecolor()[:3] for patch in ax.patches]
    assert colours[0] == (1, 1, 1)
    for at, multiple in ((1, 2.0), (2, 12.5), (3, 0.75), (9, 1 / 1.2), (11, 2.0)):  # more utilisation is bluer
        assert colours[at] == pytest.approx(shade(multiple))
    assert colours[10] == pytest.approx(shade(nan))


def test_shades() -> None:
    assert shade(1) == (1, 1, 1)
    assert shade(2) == shade(100) == pytest.approx((0xD5 / 255, 0x5E / 255, 0))
    assert shade(0.5) == shade(0) == pytest.approx((0, 0x72 / 255, 0xB2 / 255))
    assert shade(2**0.5) == pytest.approx(tuple((1 + c) / 2 for c in shade(2)))
    assert [of_baseline(m) for m in (0.8744, 9.999, 9.9996, 12.3, nan)] == [
        "87.4 %", "999.9 %", "1,000 %", "1,230 %", "–",
    ]  # fmt: skip


def test_labels_leave_out_what_all_share() -> None:
    plans = [f"plan:objective={what},decodes=50" for what in ("af", "af+0.1*p2sf", "p2sf")]
    assert labels(["easy", *plans]) == ["easy", "plan:af", "plan:af+0.1*p2sf", "plan:p2sf"]
    assert shared(["easy", *plans]) == ["plan:decodes=50"]
    assert labels(["list:order=sjf,reserve=1", "list:order=sjf,reserve=8"]) == ["list:reserve=1", "list:reserve=8"]
    assert labels(["plan:objective=af", "plan:objective=af,decodes=50"]) == ["plan", "plan:decodes=50"]
    assert labels(["plan", "plan:decodes=50"]) == ["plan", "plan:decodes=50"]
    assert shared(["easy", "list-reg", plans[0]]) == []
    assert labels([plans[0]]) == ["plan:af,decodes=50"]
    # Where shortening would make two alike, nothing is left out.
    alike = ["plan:objective=x", "plan:order=x"]
    assert labels(alike) == alike
    long = [f"list:order=wfp3,{'x' * 40}{at}{'y' * 40}" for at in range(2)]
    assert [label[:3] for label in labels(long)] == ["1. ", "2. "]
    assert len(set(labels([*HOSTILE, *plans]))) == 7
    assert not re.search(r"[\x00\u202e]", "".join(labels(HOSTILE)))


@pytest.mark.slow
def test_captions_say_what_the_names_leave_out() -> None:
    made = pictures(crowded(30), "a")
    for picture in made:
        assert "Left out of the names: plan:decodes=50." in picture.caption
    assert "Of 30 marks, 17 have names." in made[2].caption
    assert "the first 17 are drawn" in made[1].caption
