"""The pages of the dispatcher paper: comparisons over blocks, and what is claimed of them."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.studies.task import Cell
from reproductions.dispatch_generated import page as generated
from reproductions.dispatch_tables.page import MS, blocks, called, fastest, no_worse, switched, values
from reproductions.runs import Run, Runs
from reproductions.values import Key, Value, Values


def made(policy: str, wait: list[float], ms: float, estimate: str = "limit", trace: str = "x") -> Run:
    """A run of 100 passes with these waits of its jobs, which run for 10 s."""
    waits = np.array(wait)
    curves = {"wait": list(enumerate(blocks(waits))), "slowdown": list(enumerate(blocks((waits + 10) / 10)))}
    means = {"wait_mean": waits.mean(), "slowdown_mean": (waits.mean() + 10) / 10}
    numbers = {"jobs": len(wait), "passes": 100, "wait_deviation": 0.0, "slowdown_deviation": 0.0, **means}
    predicted = {"limit": 0.0, "error": 0.0, "outlived": 0.0}
    return Run(Cell(trace, "", "all", policy, estimate, 0), {**numbers, **predicted}, ms / 10, "", "", curves)


def shown(found: dict[Key, float | str]) -> Values:
    return Values({key: Value(one, "", "run") for key, one in found.items()}, {})


@pytest.mark.parametrize(("ours", "ms", "holds"), [(5, 0.5, "yes"), (5, 2.0, "no"), (60, 0.5, "no"), (0, 1.0, "yes")])
def test_no_worse_and_faster(ours: int, ms: float, holds: str) -> None:
    runs = Runs([made("pcp21:solver=cp", [5] * 50, 100.0), made("easy", [ours] * 50, ms)])
    judged = no_worse(shown(values(runs, {})), "x, limit", "easy")
    assert judged.holds == holds
    assert f"{100 / ms:,.0f} times faster" in judged.ours


def test_names_say_who_and_how() -> None:
    names = {
        "pcp21:solver=cp": "PCP'21",
        "hcp19": "HCP'19, CP-SAT",
        "pcp19:limits=text": "PCP'19, CP-SAT, text",
        "pcp21:subset=all,limits=text,pairs=no": "PCP'21, CP-SAT, text, all jobs",
        "easy:place=scarce": "`easy:place=scarce`",
    }
    assert {policy: called(policy) for policy in names} == names


def test_who_is_fastest() -> None:
    runs = Runs([made("pcp21:solver=cp", [5] * 50, 100.0), made("hcp19:solver=cp", [5] * 50, 20.0)])
    found = shown(values(runs, {}))
    assert found.need("x", "PCP'21, limit", MS) == pytest.approx(100)
    assert fastest(found, "x, limit", ["HCP'19", "PCP'21"]).holds == "yes"
    assert fastest(found, "x, limit", ["PCP'21", "HCP'19"]).holds == "no"


@pytest.mark.parametrize(("wait", "holds"), [(5, "yes"), (7, "no")])
def test_switch_against_its_parts(wait: int, holds: str) -> None:
    parts = {"hcp19": 6, "pcp21": 20, "sjf-easy:place=scarce": 9, "switch": wait}
    runs = Runs([made(name, [float(one)] * 50, 1.0, "runtime") for name, one in parts.items()])
    judged = switched(shown(values(runs, {})), "x, runtime")
    assert judged.holds == holds
    assert "HCP'19, CP-SAT 1.60" in judged.ours


def test_intervals_are_over_blocks() -> None:
    """A difference that is one lucky block is no difference."""
    runs = Runs([made("pcp21:solver=cp", [0.0] * 100, 1.0), made("easy", [50.0] * 10 + [0.0] * 90, 1.0)])
    found = shown(values(runs, {}))
    mean, low, high = (found.need("less PCP'21: x, limit", "`easy`", f"wait{end}") for end in ("", ", from", ", to"))
    assert mean == 5
    assert low < 0 < high
    assert len(blocks(np.zeros(400_000))) == 50


@pytest.mark.parametrize(("wait", "holds"), [(10.0, "yes"), (30.0, "no")])
def test_similar_jobs_as_a_predictor(wait: float, holds: str) -> None:
    waits = {"similar": wait, "recent": 20.0, "limit": 40.0}
    runs = [made(generated.UNDER, [one] * 40_000, 1.0, name, "recorded mix") for name, one in waits.items()]
    found = shown(generated.values(Runs(runs), {}))
    assert generated.similar(found, "recorded mix", generated.UNDER).holds == holds
    assert found.number("predictors", "recorded mix, similar", "error") == 0
