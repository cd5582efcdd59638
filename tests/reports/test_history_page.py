"""The page of what happened: its numbers, foreign names, and a real browser."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from dovetail.metrics.history import History, history_of
from dovetail.model.workload import Provenance, Workload
from dovetail.reports.history_page import render
from dovetail.reports.history_text import frames, sentences
from tests.metrics.test_history import CLUSTER, PLACES, ZONE, some_log
from tests.reports.browser import chromium, needs_chromium, opened
from tests.reports.contents import HOSTILE


def hostile() -> History:
    """All that others may name is named with ill intent."""
    log = some_log(7, 300)
    number = np.arange(len(log)) % len(HOSTILE)
    texts = ("account", "user", "qos", "reason", "partition")
    columns = {**log.columns, "submit": 7 * log.submit, **dict.fromkeys(texts, number)}
    names = {**log.names, **dict.fromkeys(texts, HOSTILE)}
    bad = Workload(HOSTILE[0], columns, 128, header=log.header, names=names)
    return history_of(bad, ZONE, CLUSTER, PLACES)


def usual(seed: int = 7, days: int = 7) -> History:
    log = some_log(seed, 300)
    return history_of(
        Workload("log", {**log.columns, "submit": days * log.submit}, 128, header=log.header, names=log.names), ZONE
    )


def test_the_page_says_what_the_numbers_are() -> None:
    found = usual()
    text = render(found, "dovetail history log.swf", Provenance("log.swf", "abc", acknowledge="Ann"))
    assert sentences(found)[0].replace(" ", "") in re.sub(r"[\s\u00a0]", "", text)
    cells = re.findall(r'title="([\d,]+) s">', text)
    assert f"{found.longest[0].since_submit_s:,}" in cells
    assert f"{found.entire.since_submit.mean_s[0]:,.0f}" in cells
    for word in ("Who waited", "When", "Limits", "The longest waits", "Notes", "Ann", "dovetail history log.swf"):
        assert word in text
    assert text == render(found, "dovetail history log.swf", Provenance("log.swf", "abc", acknowledge="Ann"))


def test_foreign_names_stay_text() -> None:
    text = render(hostile(), HOSTILE[1], Provenance(HOSTILE[0], HOSTILE[1], acknowledge=HOSTILE[0]))
    assert "<script" not in text
    assert "<img" not in text
    assert "<b>" not in text
    assert "{{" in text  # of a name: nobody filled it in
    assert not re.search("[\x00\x1b\u202e]", text)
    assert "script-src 'none'" in unescape(text)


def test_what_is_not_known_has_no_picture() -> None:
    log = some_log(1)
    plain = {name: log[name] for name in ("id", "submit", "size", "runtime", "wait")}
    found = history_of(Workload("plain", {**plain, "limit": np.full(len(log), -1)}, 0))
    text = render(found)
    for title in ("Mean wait by hour", "How much of their limits", "Waits by user", "since submit"):
        assert title not in text
    assert "How busy the cluster was" in text
    assert "the most that were in use at once" in text


def test_a_page_of_a_single_job() -> None:
    ones = {"id": 1, "submit": 5, "size": 1, "runtime": 0, "limit": -1, "wait": 0}
    log = Workload("one", {name: np.array([value]) for name, value in ones.items()}, 1)
    assert "Nine in ten jobs, or more, started at once" in render(history_of(log))


def test_frames_have_the_numbers() -> None:
    found = usual()
    made = frames(found)
    waits = made["waits"]
    assert waits["jobs"][0] == found.entire.jobs[0]
    assert waits["wait_mean_s"][0] == found.entire.wait.mean_s[0]
    assert waits["since_submit_p90_s"][0] == found.entire.since_submit.p90_s[0]
    assert made["over_time"]["backlog_core_h"].to_list() == found.over_time.backlog_core_h.tolist()
    assert made["limits"]["used_p50"][0] == found.limits[0].used[0, 1]
    assert made["set_aside"]["jobs"].sum() == sum(found.set_aside.values())


@needs_chromium
@pytest.mark.parametrize("width", [1280, 400])
def test_in_a_browser(tmp_path: Path, width: int) -> None:
    """It does nothing but show; nothing scrolls sideways but what has a box; names do not run into each other."""
    for name, found in (("usual", usual()), ("hostile", hostile())):
        path = tmp_path / f"{name}.html"
        path.write_text(render(found), encoding="utf-8")
        with chromium() as browser, opened(browser, path, width) as seen:
            assert seen.is_quiet(), seen
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
            seen.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
            assert seen.page.locator("figure svg").count() >= 7
            assert seen.page.evaluate(OUTSIDE) == []


OUTSIDE = """() => {
  const found = [];
  for (const svg of document.querySelectorAll('figure > svg')) {
    const box = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll('text')) {
      const own = text.getBoundingClientRect();
      if (own.left < box.left - 3 || own.right > box.right + 3) found.push(text.textContent);
    }
  }
  return found;
}"""
"""Texts that stand out of their picture."""
