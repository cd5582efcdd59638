"""The page of what would have become of waits: its numbers, foreign names, and a real browser."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from dovetail.metrics.whatif import Waits, WhatIf
from dovetail.model.cluster import PARTITION, NodeKind, by_node
from dovetail.policies.slurm import Slurm
from dovetail.reports.whatif_figures import curves
from dovetail.reports.whatif_page import render
from dovetail.reports.whatif_text import headline, more
from dovetail.studies.questions import Site
from dovetail.studies.whatif import answered
from dovetail.units import WEEK_S
from tests.policies.test_slurm import jobs
from tests.reports.browser import chromium, needs_chromium, opened
from tests.reports.contents import HOSTILE
from tests.reports.test_history_page import OUTSIDE

JOBS, PHASES = 400, 6
MONDAY = 1_772_409_600


def asked(weeks: int = 20, recorded: bool = True, names: tuple[str, ...] = ()) -> WhatIf:
    """Waits by chance: one alternative halves those of the first account and lengthens those of another, one does
    nothing, and three are a curve."""
    rng = np.random.default_rng(3)
    workload, _ = jobs(random.Random(5), JOBS)
    submit = np.sort(rng.integers(0, weeks * WEEK_S, JOBS))
    wait = rng.exponential(3000, JOBS).astype(np.int64) if recorded else np.full(JOBS, -1)
    columns = {**workload.columns, "submit": submit, "wait": wait}
    header = {"UnixStartTime": (str(MONDAY),), "TimeZoneString": ("Europe/Berlin",)}
    called = {**workload.names, "account": (names * 4)[: len(workload.names["account"])]} if names else workload.names
    log = replace(workload, name=names[0] if names else "log", columns=columns, header=header, names=called)
    kind = NodeKind("n", 8, (4,), (f"{PARTITION}batch", f"{PARTITION}urgent"))
    site = Site(log, by_node(("cores",), (kind,)), Slurm(bf_window=5))
    usual = np.maximum(wait, 500) * rng.uniform(0.95, 1.05, (PHASES, JOBS))
    first, last = (log["account"] == code for code in (0, len(called["account"]) - 1))
    better = usual * np.where(first, 0.5, np.where(last, 1.5, 0.9))
    better[0, :5] = np.nan
    wide = {name: usual * factor for name, factor in (("bf_window=60", 2), ("bf_window=600", 1.2))}
    found = {
        "today": usual, (names or ("more nodes (nodes+=25%)",))[-1]: better, "tier.urgent=3": usual[::-1],
        **wide, "bf_window=6000": 0.8 * usual,
    }  # fmt: skip
    busy = np.full(PHASES, 0.7)
    return answered(site, [Waits(name, seconds, busy) for name, seconds in found.items()], ["bf_licenses <b>"])


def test_weeks_are_those_of_submission() -> None:
    found = asked()
    more_nodes, same = found.answers[:2]
    assert more_nodes.weeks is not None
    assert same.weeks is not None
    assert len(more_nodes.weeks.begins) == 20
    assert found.started.tolist() == (~np.isnan(more_nodes.waits.seconds).any(axis=0)).tolist()
    here = found.started & (found.workload.submit // WEEK_S == 3)
    week = more_nodes.weeks.changes[3]
    assert week.then_s == pytest.approx(more_nodes.waits.seconds[:, here].mean())
    assert week.today_s == pytest.approx(found.today.seconds[:, here].mean())
    assert more_nodes.weeks.overall.verdict == "better"
    assert same.weeks.overall.verdict == "unclear"
    assert not same.all.told
    assert asked(weeks=1).answers[0].weeks is None


def test_sentences() -> None:
    nodes, same, *_, short = asked().answers
    assert headline(same) == "tier.urgent=3: no difference beyond chance."
    assert re.match(
        r"more nodes \(nodes\+=25%\): waits would be shorter by .* on average, .* instead of", headline(nodes)
    )
    text = " ".join(more(nodes))
    assert "Jobs that leave before they start: 0.8; today 0.0." in text
    assert re.search(r"Of 20 weeks, waits are shorter beyond chance in \d+, longer in \d+, neither in \d+\.", text)
    assert re.search(r"Each week counted alike, the change is -\d.* %: it holds from week to week\.", text)
    assert "it holds" not in " ".join(more(same))
    few = " ".join(more(asked(weeks=4).answers[0]))
    assert "Of 4 weeks" in few
    assert "counted alike" not in few
    assert "shorter" in headline(short)


def test_a_curve_is_of_values_that_were_tried() -> None:
    (name, tried), *others = curves(asked()).items()
    assert (name, [value for value, _ in tried], others) == ("bf_window", [60, 600, 6000], [])


def test_the_page_says_what_the_answers_are() -> None:
    found = asked()
    text = render(found, "dovetail whatif jobs.parquet")
    told = re.sub(r"<[^>]*>", "", unescape(text)).replace("\u00a0", " ")
    for one in found.answers:
        assert headline(one) in told
    for words in (
        "Can it be trusted? 400 jobs waited", "wide jobs starve", "not modelled", "Not followed: bf_licenses",
        "400 jobs, 2026-03-02", "Week by week", "Mean wait by bf_window", "dovetail whatif jobs.parquet",
    ):  # fmt: skip
        assert words in told
    assert f"{found.answers[0].all.then_s:,.1f} s" in text
    assert text == render(found, "dovetail whatif jobs.parquet")


def test_what_is_not_known_is_not_drawn() -> None:
    text = render(asked(weeks=1, recorded=False))
    assert "nothing to compare with" in text
    for words in ("Week by week", "recorded and replayed"):
        assert words not in text


def test_foreign_names_stay_text() -> None:
    text = render(asked(names=HOSTILE), HOSTILE[1])
    for words in ("<script", "<img", "<b>"):
        assert words not in text
    assert not re.search("[\x00\x1b\u202e]", text)
    assert "script-src 'none'" in unescape(text)


@needs_chromium
@pytest.mark.parametrize("width", [1920, 1280, 390])
def test_in_a_browser(tmp_path: Path, width: int) -> None:
    """It does nothing but show; nothing scrolls sideways but what has a box; names do not run into each other."""
    for name, found in (("usual", asked()), ("hostile", asked(names=HOSTILE)), ("bare", asked(1, recorded=False))):
        path = tmp_path / f"{name}.html"
        path.write_text(render(found), encoding="utf-8")
        with chromium() as browser, opened(browser, path, width) as seen:
            assert seen.is_quiet(), seen
            seen.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
            assert seen.page.locator("figure svg").count() >= 5
            assert seen.page.evaluate(OUTSIDE) == []
