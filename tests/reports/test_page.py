"""The page: its numbers are those of the content, foreign text stays text, and a real browser shows it well."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from math import isfinite, nan
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from dovetail.errors import InputError
from dovetail.metrics.catalog import METRICS
from dovetail.reports.dark import NAMES, on_dark, themed_svg
from dovetail.reports.page import MOST_PICTURED, render, write
from dovetail.reports.page_data import Case, Content, Entry
from dovetail.reports.summary_text import summary
from tests.conftest import ROOT
from tests.reports.browser import Seen, chromium, needs_chromium, opened
from tests.reports.contents import HOSTILE, case, compared, entry, hostile, page, typical


@dataclass
class Found:
    """One cell of a table: its words, the exact value behind it, its classes."""

    words: list[str] = field(default_factory=list)
    value: float = nan
    classes: str = ""


class Reader(HTMLParser):
    """All tables of a page by class, the words of its paragraphs, its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[tuple[str, list[list[Found]]]] = []
        self.sentences: list[str] = []
        self.scripts: list[str] = []
        self.stack: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.stack.append(tag)
        if tag == "table":
            self.tables.append((found.get("class", ""), []))
        elif tag == "tr":
            self.tables[-1][1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][1][-1].append(Found(classes=found.get("class", "")))
        elif tag == "data":
            self.tables[-1][1][-1][-1].value = float(found["value"])
        elif tag == "p":
            self.sentences.append("")
        elif tag == "script":
            self.scripts.append("" if "type" not in found else "data: ")

    def handle_endtag(self, tag: str) -> None:
        while self.stack and self.stack.pop() != tag:
            pass

    def handle_data(self, text: str) -> None:
        if "script" in self.stack:
            self.scripts[-1] += text
        elif {"td", "th"} & set(self.stack) and text.strip():
            self.tables[-1][1][-1][-1].words += text.split()
        elif "p" in self.stack:
            self.sentences[-1] += text

    def of(self, kind: str) -> list[list[list[Found]]]:
        return [rows for name, rows in self.tables if name == kind]


UNITS = {"(s)": 1, "(min)": 60, "(h)": 3600, "(d)": 86400, "(%)": 0.01}


@pytest.fixture(scope="module")
def usual() -> Content:
    return page(typical())


@pytest.fixture(scope="module")
def usual_page(usual: Content) -> str:
    return render(usual)


@pytest.fixture(scope="module")
def hostile_page() -> str:
    return render(hostile())


@pytest.mark.slow
def test_numbers_are_those_of_the_content(usual: Content, usual_page: str) -> None:
    entries, shown = usual.cases[0].entries, 0
    for rows in (*Reader(usual_page).of("case-table"), *Reader(usual_page).of("expert-table")):
        heads = [" ".join(cell.words) for cell in rows[0]]
        assert [row[0].words[0] for row in rows[1:]] == [e.policy for e in entries]
        for at, head in enumerate(heads[1:], 1):
            column = next(c for c in METRICS if head.startswith(c.head))
            unit = next((s for text, s in UNITS.items() if text in head), 1)
            for one, row in zip(entries, rows[1:], strict=True):
                value, words = one.metrics[column.key], [w for w in row[at].words if w != "★"]
                assert row[at].value == value  # to the last bit, for who reads the page with a program
                digits = len(words[0].partition(".")[2])
                printed = float(words[0].replace(",", "")) * unit
                assert abs(printed - value) <= 0.500001 * unit * 10**-digits
                shown += 1
    assert shown == len(entries) * (len(METRICS) - 3)  # nobody has a deadline, and no site is known


def test_bill_and_carbon_are_shown_where_a_site_is_known() -> None:
    metrics = {"mean_wait_s": 7200.0, "energy_cost": 61.25, "co2_kg": 400.0}
    text = render(page(case([entry("easy", metrics), entry("thrift", metrics)])))
    (rows,) = Reader(text).of("case-table")
    heads = [" ".join(cell.words) for cell in rows[0]]
    assert heads[2:] == ["bill", "CO2 (kg)"]
    assert [cell.value for cell in rows[1][2:]] == [61.25, 400.0]


def test_waits_without_a_deadline_are_shown_where_there_are_deadlines() -> None:
    metrics = {"mean_wait_s": 7200.0, "regular_mean_wait_s": 3600.0}
    with_them, without = (
        render(page(case([entry("dbf", {k: metrics[k] for k in keys})]))) for keys in (tuple(metrics), ("mean_wait_s",))
    )
    words = "The mean wait, of the jobs that have no deadline."
    assert words in with_them
    assert words not in without


def test_changes_intervals_and_marks() -> None:
    metrics = {"mean_wait_s": 7200.0, "bsld": 10.0, "utilization": 0.5}
    versus = {"mean_wait_s": compared(-0.14, "better", 0.04), "bsld": compared(0.2, "worse")}
    rows = [
        entry("easy", metrics),
        entry("a", {"mean_wait_s": 6480.0, "bsld": 12.5, "utilization": 0.6}, versus),
        entry("b", {"mean_wait_s": 3600.0, "bsld": 10.0, "utilization": nan}, {"bsld": compared(-0.3, "unclear", 0.4)}),
    ]
    text = render(page(case(rows)))
    assert text.count('title="48 pairs; Wilcoxon p: 0.001, after Holm&#39;s correction 0.01; effect +0.00"') == 3
    (table,), (expert,) = Reader(text).of("case-table"), Reader(text).of("expert-table")
    words, expert_words = ([[" ".join(cell.words) for cell in row] for row in each] for each in (table, expert))
    assert words == [
        ["policy", "mean wait (h)", "utilisation (%) more is better"],
        ["easy baseline mean of 48 runs", "2.00", "50.0"],
        ["a mean of 48 runs", "1.80 −10.0 % ✓ −14.0 % [−18.0, −10.0]", "★ 60.0 +20.0 %"],
        ["b mean of 48 runs", "★ 1.00 −50.0 %", "–"],
    ]
    meaning = next(metric.meaning for metric in METRICS if metric.key == "bsld")
    assert [row[1] for row in expert_words] == [
        f"BSLD {meaning}", "10.0", "12.5 +25.0 % ✗ +20.0 % [+15.0, +25.0]", "10.0 0.0 % −30.0 % [−70.0, +10.0]",
    ]  # fmt: skip
    assert [row[0] for row in expert_words] == [row[0] for row in words]
    classes = [[cell.classes for cell in row[1:]] for row in table[1:]]
    assert classes == [["", ""], ["better", " best"], [" best", ""]]
    assert [row[1].classes for row in expert[1:]] == ["", "worse", "unclear"]


def test_who_never_starts_some_jobs_is_best_in_nothing() -> None:
    idle = {"mean_wait_s": 1.0, "utilization": 0.9, "jobs": 300.0, "jobs_unstarted": 41.0}
    rows = [
        Entry("easy", {"mean_wait_s": 7200.0, "utilization": 0.5}), Entry("idle", idle),
        Entry("a", {"mean_wait_s": 3600.0, "utilization": 0.6}),
    ]  # fmt: skip
    text = render(page(case(rows, pairing="")))
    (table,) = Reader(text).of("case-table")
    assert [[" ".join(cell.words) for cell in row] for row in table[1:]] == [
        ["easy baseline", "2.00", "50.0"],
        ["idle never started 41 of 300 jobs", "0.00", "90.0"],
        ["a", "★ 1.00 −50.0 %", "★ 60.0 +20.0 %"],
    ]
    assert "idle never started 41 of 300 jobs" in " ".join(Reader(text).sentences).replace("\u00a0", " ")
    shown = case(rows, pairing="")
    assert "never started 41 of 300 jobs" in repr(shown)
    assert "never started 41 of 300 jobs" in shown._repr_html_()


def test_changes_are_explained_where_the_baseline_is_what_the_log_recorded() -> None:
    rows = [Entry("recorded", {"mean_wait_s": 7200.0, "rules_broken": 3.0}), Entry("a", {"mean_wait_s": 3600.0})]
    text = render(page(case(rows, pairing="")))
    assert "Below each value: its change against recorded." in text
    idle = Entry("idle", {"mean_wait_s": 7200.0, "jobs": 300.0, "jobs_unstarted": 41.0})
    assert "Below each value" not in render(page(case([idle, rows[1]], pairing="")))


@pytest.mark.slow
def test_summary_and_foot(usual: Content, usual_page: str) -> None:
    sentences = [text.replace("\u00a0", " ") for text in Reader(usual_page).sentences]
    told = summary(usual)
    assert sentences[0] == told.headline
    first = sentences.index(told.headline, 1)  # again in the fold, with all that is left to say
    assert sentences[first : first + 1 + len(told.more)] == [told.headline, *told.more]
    for text in ("One run failed.", "dovetail report study.toml", "Lars Malinowsky", "0.1.0"):
        assert f">{text}<" in usual_page


def many(cases: int) -> Content:
    base = entry("easy", {"mean_wait_s": 7200.0, "bsld": 10.0})
    found = []
    for at in range(cases):
        verdict = ("better", "worse", "unclear")[at % 3]
        values = {"mean_wait_s": 72.0 * (90 - at), "bsld": 12.5}
        one = entry("a", values, {"mean_wait_s": compared(-(at + 20) / 100, verdict)})
        found.append(case([base, one], f"T{at}"))
    return page(*found)


def test_overview_of_several_cases() -> None:
    text = render(many(4))
    wait, bsld = Reader(text).of("overview")
    assert [" ".join(cell.words) for cell in wait[0]] == ["case", "baseline", "a"]
    assert [[" ".join(cell.words) for cell in row] for row in wait[1:]] == [
        ["T0, estimate: limit", "2.00 h", "✓ −10.0 %"],
        ["T1, estimate: limit", "2.00 h", "✗ −11.0 %"],
        ["T2, estimate: limit", "2.00 h", "−12.0 %"],
        ["T3, estimate: limit", "2.00 h", "✓ −13.0 %"],
        ["better / worse", "", "2 / 1 of 4"],
    ]
    assert [row[2].value for row in wait[1:5]] == pytest.approx([-0.1, -0.11, -0.12, -0.13])
    assert len(bsld) == 5  # no verdicts, no counts of them
    targets = re.findall(r'<a href="#([\w-]+)"', text)
    assert set(targets) == {"overview", "case-1", "case-2", "case-3", "case-4", "metrics"}
    assert all(f'id="{target}"' in text for target in targets)
    assert "Starts of jobs were not kept" in text


def test_one_case_has_no_contents_and_no_overview(usual_page: str) -> None:
    assert "<nav" not in usual_page
    assert ">Overview<" not in usual_page


@pytest.mark.slow
def test_pictures_are_drawn_for_the_first_cases_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dovetail.reports.page.MOST_PICTURED", 1)
    full = typical([f"policy-{at}" for at in range(10)], jobs=4000)
    text = render(page(full, *many(2).cases))
    assert text.count("<figure") == 8
    assert text.count("only its first 1 cases have pictures") == 2
    assert "More than 8 lines could not be told apart. Not drawn as lines: policy-8, policy-9." in text
    pictures = sum(len(svg.encode()) for svg in re.findall(r"<figure.*?</figure>", text, re.DOTALL))
    assert MOST_PICTURED * pictures < 2_500_000  # leaves as much for the Gantt charts and the rest


@pytest.mark.slow
def test_what_pictures_leave_out_is_said() -> None:
    several = replace(typical().entries[0], runs=8)
    text = render(page(case([several, entry("<lost>", {"bsld": 1.0})])))
    assert "The pictures of waits, queue and cluster show one run of each policy." in text
    assert "Starts of jobs were not kept, so not drawn as lines: &lt;lost&gt;." in text


@pytest.mark.slow
def test_same_bytes_in_another_process(usual_page: str) -> None:
    command = [sys.executable, "-m", "tests.reports.contents"]
    environment = {**os.environ, "PYTHONHASHSEED": "1", "SOURCE_DATE_EPOCH": "1", "LC_ALL": "C"}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    assert done.stdout == usual_page.encode()


def test_heavy_libraries_are_loaded_late() -> None:
    heavy = "[m for m in ('matplotlib', 'jinja2', 'numba', 'polars', 'scipy') if m in sys.modules]"
    command = [sys.executable, "-c", f"import sys, dovetail.reports.page; print({heavy})"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "[]\n"


def test_written_beside_and_renamed(tmp_path: Path) -> None:
    content, path = many(1), tmp_path / "report.html"
    path.write_text("old")
    write(content, path)
    assert path.read_text(encoding="utf-8") == render(content)
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InputError, match="cannot be written"):
        write(content, tmp_path / "missing" / "report.html")


def test_only_the_pages_own_script_may_run(usual_page: str) -> None:
    scripts = Reader(usual_page).scripts
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', usual_page)
    allowed = re.findall(r"&#39;(sha256-[^&]+)&#39;", policy)
    hashes = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        for script in scripts
        if not script.startswith("data: ")
    ]
    assert allowed == [f"sha256-{one}" for one in hashes]
    assert policy.startswith("default-src &#39;none&#39;;")
    assert "unsafe-eval" not in policy
    bare = render(many(1))
    assert "script-src &#39;none&#39;" in bare
    assert "<script" not in bare


@pytest.mark.slow
def test_foreign_text_stays_text(hostile_page: str) -> None:
    lower = hostile_page.lower()
    assert "<script>alert" not in lower
    assert "<img" not in lower
    assert "{{" in lower  # a template in a name is not run
    assert "49" not in Reader(hostile_page).of("case-table")[0][3][0].words
    assert "\x00" not in hostile_page
    assert "\u202e" not in hostile_page
    names = [" ".join(row[0].words) for row in Reader(hostile_page).of("case-table")[0][1:]]
    assert names[0].startswith("<script>alert(1)</script>")
    assert names[1].replace("= ", "=").startswith('"><img src=x onerror=alert(1)>')  # it may be broken behind an =


def test_empty_contents() -> None:
    assert "There is nothing to show" in render(Content("Empty", ()))
    nobody = Case("A", "limit", 0, 1, 0, ())
    assert "No policy has a metric to show." in render(Content("Nobody", (nobody,)))
    unknown = entry("easy", {"mean_wait_s": nan, "something_else": 1.0})
    assert "No policy has a metric to show." in render(page(case([unknown, replace(unknown, policy="b")])))
    assert not isfinite(unknown.metrics["mean_wait_s"])


# In a real browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


OVERLAPS = """() => [...document.querySelectorAll("figure > svg")].flatMap(svg => {
  const boxes = [...svg.querySelectorAll("text")].filter(t => t.textContent.trim()).map(t => {
    const b = t.getBoundingClientRect();
    return {text: t.textContent, left: b.left, right: b.right, top: b.top, bottom: b.bottom};
  });
  const clash = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.5;
  const found = [];
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach(b => {
    if (clash(a, b)) found.push(svg.getAttribute("aria-label") + ": " + a.text + " | " + b.text);
  }));
  return found;
})"""

FITS = """(kind) => [...document.querySelectorAll(kind)].every((table) => {
  const box = table.closest(".box");
  return box.scrollWidth <= box.clientWidth;
})"""

TOO_WIDE = """() => [...document.querySelectorAll("body *")].filter(e => {
  const box = e.closest(".box, .wide"), scrolls = box && e !== box;
  const b = e.getBoundingClientRect();
  return !scrolls && b.width > 0 && (b.right > innerWidth + 0.5 || b.left < -0.5);
}).map(e => e.tagName + " " + e.textContent.slice(0, 60))"""


@needs_chromium
@pytest.mark.parametrize(
    ("kind", "width"),
    [
        ("usual", 390),
        ("usual", 760),
        ("usual", 1280),
        ("usual", 1920),
        ("hostile", 390),
        ("hostile", 1280),
        ("hostile", 1920),
    ],
)
def test_shown_well(
    browser: Browser, tmp_path: Path, usual_page: str, hostile_page: str, kind: str, width: int
) -> None:
    path = tmp_path / "report.html"
    path.write_text(usual_page if kind == "usual" else hostile_page, encoding="utf-8")
    with opened(browser, path, width) as seen:
        seen.page.evaluate("window.dovetailGantt.ready")  # the charts are drawn
        assert seen.page.evaluate("document.querySelectorAll('details[open]').length") == 0
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        seen.page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true })")
        assert seen.page.locator("figure > svg").count() == (8 if kind == "usual" else 16)
        assert seen.page.evaluate(OVERLAPS) == []
        assert seen.page.evaluate(TOO_WIDE) == []
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        columns = "getComputedStyle(document.querySelector('.pictures')).gridTemplateColumns.split(' ').length"
        assert seen.page.evaluate(columns) == {390: 1, 760: 1, 1280: 2, 1920: 3}[width]
        if kind == "usual":  # what all readers look at fits a phone, what experts do a laptop
            assert seen.page.evaluate(FITS, ".case-table")
            assert width < 1280 or seen.page.evaluate(FITS, ".expert-table")
        assert seen.is_quiet(), seen


# The least contrast (WCAG 2) of text with the paper, and what it says; text on coloured cells apart.
CONTRAST = """() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map((c) => c / 255).map((c) =>
      c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = light(getComputedStyle(document.documentElement).backgroundColor);
  const against = (colour) => (Math.max(light(colour), paper) + 0.05) / (Math.min(light(colour), paper) + 0.05);
  const all = (kind) => [...document.querySelectorAll(kind)].filter((e) => e.textContent.trim());
  const colours = [
    ...all("body *").filter((e) => !e.closest("svg, canvas, option, script"))
      .map((e) => [e, getComputedStyle(e).color]),
    ...all("figure > svg text").map((e) => [e, getComputedStyle(e).fill]).filter(([e, fill]) => e.closest(".matrix")
      || !["rgb(255, 255, 255)", "rgb(0, 0, 0)"].includes(fill)),
  ];
  const found = colours.map(([e, colour]) => [against(colour), e.textContent.slice(0, 40)]);
  return found.sort((a, b) => a[0] - b[0])[0];
}"""


@needs_chromium
def test_dark_where_the_reader_asks_for_it(browser: Browser, tmp_path: Path, usual_page: str) -> None:
    path = tmp_path / "report.html"
    path.write_text(usual_page, encoding="utf-8")
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    corner = """() => {
      const canvas = document.querySelector('[data-part="picture"]');
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      const { data } = copy.getImageData(0, 170, canvas.width, canvas.height - 220);
      return data.reduce((sum, c, at) => sum + (at % 4 === 3 ? 0 : c), 0) / (0.75 * data.length);
    }"""
    with opened(browser, path, color_scheme="dark") as seen:
        seen.page.evaluate("window.dovetailGantt.ready")
        seen.page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true })")
        assert seen.page.evaluate(paper) == "rgb(21, 24, 28)"
        least, text = seen.page.evaluate(CONTRAST)
        assert least >= 4.5, text
        assert seen.page.evaluate(corner) < 100  # few jobs run: nearly all of the chart is paper
        white = (
            "[...document.querySelectorAll('figure > svg :is(path, use)')].filter((e) => e.style.fill === '#ffffff')"
        )
        assert seen.page.evaluate(f"{white}.length") == 0
        seen.page.emulate_media(media="print")
        assert seen.page.evaluate(paper) == "rgb(255, 255, 255)"
        brightens(seen, corner)
        seen.page.emulate_media(media="screen", color_scheme="light")
        assert seen.page.evaluate(paper) == "rgb(255, 255, 255)"
        least, text = seen.page.evaluate(CONTRAST)
        assert least >= 4.5, text
        brightens(seen, corner)
        assert seen.is_quiet(), seen


def brightens(seen: Seen, corner: str) -> None:
    """The browser draws a canvas anew when it comes to it."""
    until = time.monotonic() + 20
    while seen.page.evaluate(corner) <= 155:
        assert time.monotonic() < until, seen.page.evaluate(corner)
        time.sleep(0.1)


def test_colours_of_pictures_are_those_of_the_style_sheet() -> None:
    light, dark = (ROOT / "src/dovetail/reports/page.css").read_text().split("@media", 2)[:2]
    for colour, name in NAMES.items():
        assert f"{name}: {colour};" in light
        assert f"{name}: " in dark
    assert on_dark("#ffffff") == "#15181c"
    assert f"--paper: {on_dark('#ffffff')};" in dark
    text = '<text style="fill:#ffffff">style="fill:#222222"</text>'
    drawn = f'<svg aria-label="fill:#222222"><path style="fill:#ffffff;stroke:#222222"/>{text}</svg>'
    assert themed_svg(drawn) == (
        f'<svg aria-label="fill:#222222"><path style="fill:var(--paper);stroke:var(--ink)"/>{text}</svg>'
    )


@needs_chromium
def test_foreign_text_is_seen_as_text_in_the_browser(browser: Browser, tmp_path: Path, hostile_page: str) -> None:
    path = tmp_path / "report.html"
    path.write_text(hostile_page, encoding="utf-8")
    with opened(browser, path) as seen:
        view = seen.page
        assert view.title() == HOSTILE[0]
        assert view.locator("h1").inner_text() == HOSTILE[0]
        assert view.evaluate("document.images.length") == 0
        assert view.evaluate("[...document.scripts].every(s => !s.textContent.includes('alert'))")
        texts = view.evaluate("[...document.querySelectorAll('figure > svg text')].map(t => t.textContent)")
        assert {HOSTILE[0], HOSTILE[1], HOSTILE[2]} <= set(texts)
        assert view.locator("footer li").nth(2).inner_text() == HOSTILE[2]
        assert seen.is_quiet(), seen
        view.evaluate("""() => {
          const script = document.createElement("script"), image = document.createElement("img");
          script.textContent = "window.ran = true";
          image.setAttribute("onerror", "window.ran = true");
          image.src = "https://example.invalid/x.png";
          document.body.append(script, image);
        }""")
        view.wait_for_timeout(200)
        assert view.evaluate("window.ran") is None
        refused = " ".join(seen.complaints)
        assert "inline script" in refused
        assert "example.invalid" in refused
        assert not seen.dialogs


@needs_chromium
def test_prints_without_controls(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(render(many(3)), encoding="utf-8")
    with opened(browser, path) as seen:
        seen.page.emulate_media(media="print")
        assert not seen.page.locator("nav").is_visible()
        assert seen.page.locator("h1").is_visible()
        pages = re.findall(rb"/Type\s*/Page\b", seen.page.pdf(prefer_css_page_size=True))
        assert len(pages) >= 4  # the head, and each case on a page of its own


@pytest.mark.slow
def test_a_page_of_very_many_rows_stays_small_and_says_what_is_left_out() -> None:
    base = typical()
    versus = {key: compared(-0.1, "better") for key in ("mean_wait_s", "bsld", "af_s", "awf_s", "p2sf_s")}
    metrics = base.entries[0].metrics
    entries = [entry(f"list:order=sjf,reserve={n}", metrics, versus if n else {}) for n in range(60)]
    text = render(page(*(case(entries, f"trace-{n}") for n in range(60))))
    assert len(text.encode()) < 2_450_000  # pictures of lines and Gantt charts come on top
    assert "50 of 60 cases are not on it" in text


@pytest.mark.slow
def test_remarks_of_a_case_stand_below_its_table() -> None:
    shown = replace(typical(), remarks=("Only <3> runs are counted.",))
    assert "Only &lt;3&gt; runs are counted." in render(page(shown))
