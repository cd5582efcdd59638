"""The simulation itself: some of its cases, that it finds a planted bug, and that what it writes down can be run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from dovetail.model.cluster import Cluster
from tests.simulate.cases import Case, draw
from tests.simulate.checks import CHECKS, Trial, judged, wanted
from tests.simulate.planted import BUGS, hunted, planted
from tests.simulate.run import Totals, reported, simulate
from tests.simulate.shrink import shrunk

COMPILED = ("ListPolicy", "Conservative", "DeadlineBackfilling", "Planner")
"""Kinds of policy whose kernels other tests need too."""


def plain(seed: int) -> bool:
    """A small case that needs no kernel which no other test compiles."""
    case = draw(seed)
    slack = getattr(case.rule, "keeps_promises", False) and type(case.rule).__name__ == "ListPolicy"
    return type(case.rule).__name__ in COMPILED and not (case.large or slack or case.cluster.counted)


@pytest.mark.slow
def test_cases_of_a_range_of_seeds_are_judged_and_nothing_is_wrong() -> None:
    totals = Totals()
    simulate((seed for seed in range(40) if plain(seed)), totals, say=False)
    assert totals.violations == []
    assert totals.cases > 15
    assert totals.events > 5_000
    assert totals.checks["slow"] > 5
    assert {"referee", "stepped", "resumed", "shifted", "metrics", "scenario"} <= set(totals.checks)


def test_the_same_seed_is_the_same_case() -> None:
    for seed in range(30):
        assert draw(seed).text() == draw(seed).text()
    assert len({draw(seed).text() for seed in range(30)}) == 30


@pytest.mark.slow
def test_everything_is_drawn() -> None:
    """Drawn, not run: every kind of policy, of machine and of estimate, and cases for every check."""
    seen: Counter[str] = Counter()
    for seed in range(600):
        case = draw(seed)
        seen.update([type(case.rule).__name__, *wanted(case, seed)])
        seen.update(name for name in ("feedback", "every_s", "site", "large") if getattr(case, name))
        seen.update(name for name in ("cap", "kinds", "shared", "typical") if getattr(case.cluster, name))
        seen[case.estimate.partition(":")[0] if isinstance(case.estimate, str) else "given"] += 1
    kinds = {"ListPolicy", "Conservative", "DeadlineBackfilling", "Planner", "Offline", "Thrift", "MoneyPlanner"}
    kinds |= {"ByProfit", "Daily", "Solver", "Dispatch", "Switch", "UserPolicy"}
    others = {"feedback", "every_s", "site", "large", "cap", "kinds", "shared", "limit", "runtime", "given", "quantile"}
    rare = {"process", "killed", "Solver", "Dispatch", "Switch", "Daily"}
    assert {name for name in kinds | others | set(CHECKS) if not seen[name]} <= rare


def broken() -> Case:
    """A case of which a check says something: its estimates are no upper bounds, and promises are asked for."""
    jobs = {name: np.array(values) for name, values in {
        "id": [1, 2, 3, 4, 5], "submit": [3, 3, 4, 9, 20], "size": [2, 4, 4, 1, 1], "runtime": [9, 2, 2, 7, 1],
        "limit": [3, 2, 2, 7, 1],
    }.items()}  # fmt: skip
    return Case("conservative:sweep=repeat", jobs, Cluster(4))


def test_what_fails_is_made_small_and_written_as_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that finds jobs of more than 3 processors wrong is left with one such job, and plain settings."""

    def too_large(trial: Trial) -> Iterator[str]:
        yield from ["too large"] * bool((trial.case.jobs["size"] > 3).any())

    monkeypatch.setitem(CHECKS, "referee", replace(CHECKS["referee"], judge=too_large))
    case = broken()
    small = shrunk(case, "referee", "too large")
    assert (len(small), small.policy) == (1, "conservative")
    assert (small.jobs["submit"].tolist(), small.jobs["size"].tolist()) == ([0], [4])
    text = reported(7, case, "referee", ["too large"], 5)
    assert text.startswith("\nVIOLATION seed 7, check referee: too large\nSmaller (5 jobs to 1): too large")
    program = text.partition("\n\n")[2]
    names: dict[str, object] = {}
    exec(program.replace("print(", "said = ("), names)  # noqa: S102 - what a reader is told to run
    assert names["said"] == ["too large"]


def test_an_error_that_nobody_expects_is_a_violation() -> None:
    said = judged(Trial(replace(broken(), policy="list:order=nobody")), "referee")
    assert said[0].startswith("SettingError: order=nobody: choose from")


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_every_bug_can_be_planted(bug: object) -> None:
    with planted(bug) as env:  # type: ignore[arg-type]
        assert env["PYTHONPATH"]


@pytest.mark.slow
def test_a_planted_bug_is_found() -> None:
    row = hunted(next(bug for bug in BUGS if bug.name == "mean"), most_s=60)
    assert row["found_by"] == "metrics"
    assert str(row["said"]).startswith("mean_wait_s")
