"""The page on the planner's terms: what it computes, by hand."""

from __future__ import annotations

import pytest

from dovetail.studies.spec import read_study
from dovetail.studies.task import Cell
from reproductions.folders import find
from reproductions.planner_terms import page
from reproductions.runs import Run, Runs
from reproductions.values import Value, Values

FOLDER = find("planner-terms")


def made(trace: str, policy: str, span: str, seed: int, **numbers: float) -> Run:
    every = dict.fromkeys(FOLDER.about.metrics, 1.0) | numbers
    return Run(Cell(trace, "", span, policy, "limit", seed), every, 2.0, "", "")


def test_settings_are_in_per_cent_with_their_geometric_mean() -> None:
    runs = []
    for log, af in zip(page.CHOOSING, (100.0, 200.0, 50.0), strict=True):
        runs += [made(log, "list-reg", page.SPAN, 0, af_s=100.0, max_wait_s=10.0)]
        runs += [made(log, "plan:objective=af,long=8d", page.SPAN, 0, af_s=af, max_wait_s=25.0)]
    found = page.values(Runs(runs), {})
    assert found["AF, limit", "af,long=8d", "mean"] == pytest.approx(100.0)
    assert found["AF, limit", "af,long=8d", "SDSC-DS"] == 100.0
    assert found["AF, limit", "af,long=8d", "longest wait"] == "2.5, 2.5, 2.5"
    assert not page.values(Runs(runs[:-1]), {})  # a log is missing: there is no mean


def test_a_term_is_a_change_by_seeds() -> None:
    runs = []
    for seed, (without, with_) in enumerate(((100, 90), (100, 88), (200, 184))):
        for policy, awf, wait in (("awf", without, 10.0), ("awf,wide=0.2", with_, 15.0)):
            runs.append(made("RICC", page.PLAN + policy, "all", seed, awf_s=awf, max_wait_s=wait))
    found = page.values(Runs(runs), {})
    table = "AWF, wide=0.2, limit"
    assert found[table, "RICC", "change"] == pytest.approx(-10.0)
    half = 4.3026527 * 2 / 3**0.5  # Student's t for two degrees of freedom, the deviation of -10, -12, -8
    assert [found[table, "RICC", part] for part in ("low", "high")] == pytest.approx([-10 - half, -10 + half])
    assert found[table, "RICC", "longest"] == 1.5
    values = Values({key: Value(one, "", "run") for key, one in found.items()}, {})
    assert page.terms(values) == [
        ["AWF, wide=0.2", "limits", "not run", "-10.0 [-15.0, -5.0] (1.5 x)", "not run", "not run"]
    ]
    assert page.helps(values, "AWF, wide=0.2", "limit").holds == "yes"
    assert page.helps(values, "AWF, wide=0.2", "limit", "average").ours == "RICC -10.0 %: -10.0 %"
    assert page.shortens(values, "AWF, wide=0.2", "limit").holds == "no"


def test_the_studies_have_what_the_page_asks_for() -> None:
    names = ("study.toml", "study-others.toml", "study-windows.toml")
    chosen, rest, windows = (read_study(FOLDER.path / name) for name in names)
    assert {path.name for path in FOLDER.studies} == set(names)
    assert tuple(trace.label for trace in chosen.traces) == page.CHOOSING
    assert tuple(trace.label for trace in rest.traces) == page.OTHERS
    assert (chosen.spans, rest.seeds) == ([page.SPAN], list(range(page.SEEDS)))
    assert {f"{page.PLAN}{one}" for _, *pair in page.TERMS.values() for one in pair} <= set(rest.policies)
    assert tuple(trace.label for trace in windows.traces) == page.LONG_QUEUES
    planners = [f"{page.PLAN}af,window={one}{more}" for one in page.WINDOWS for more in ("", ",commit=0.5")]
    assert (windows.policies, windows.seeds) == (planners, list(range(page.SEEDS)))
