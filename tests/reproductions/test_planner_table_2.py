"""The planner beside Table 2 of CP: what is published, what is measured of schedules, and which runs are asked for."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import pairwise

import numpy as np
import pytest

from dovetail.engine.contract import random_workload
from dovetail.engine.replay import replay
from dovetail.engine.stepped import Stepper
from dovetail.metrics import af_s, outcomes
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.policies.registry import policy
from dovetail.studies.spec import Match, read_study
from dovetail.studies.task import Cell
from reproductions.claims import Judged
from reproductions.folders import find
from reproductions.passes import passes_of
from reproductions.planner_table_2 import page
from reproductions.runs import Run, Runs
from reproductions.values import Value, Values, read_printed

FOLDER = find("planner-table-2")
PRINTED = read_printed(FOLDER.path)
# The lowest of each column, taken down apart from the table; a lost digit of the solver's as 0.
LOWEST = {
    "AF, runtime": (76, 54, 70, 48, 78),
    "AWF, runtime": (90, 86, 78, 89, 97),
    "BSLD, runtime": (29, 15, 23, 12, 16),
    "P2SF, runtime": (90, 100, 97, 99.5, 100),
    "AF, limit": (74, 49, 88, 52, 71),
    "AWF, limit": (91, 81, 73, 87, 95),
    "BSLD, limit": (38, 20, 45, 25, 6),
    "P2SF, limit": (94, 100, 99, 100, 100),
}


@pytest.mark.parametrize("table", LOWEST)
def test_the_best_published_values(table: str) -> None:
    assert tuple(page.best(PRINTED, table, log).percent for log in page.LOGS) == LOWEST[table]


def test_methods_of_the_best_and_lost_digits() -> None:
    assert page.best(PRINTED, "AF, limit", "SDSC-SP2").method == "EASY"
    assert page.best(PRINTED, "P2SF, limit", "CTC-SP2").method == "List-REG"
    assert page.best(PRINTED, "P2SF, runtime", "KTH-SP2").method == "CP-P2SF+"
    lost = {(table, log) for table in LOWEST for log in page.LOGS if page.best(PRINTED, table, log).lost}
    assert lost == {("BSLD, runtime", "SDSC-SP2")}


@pytest.mark.parametrize(
    ("ours", "told"), [(75.4, "yes"), (75.5, "by rounding"), (75.9, "by rounding"), (76.0, "no"), (80.0, "no")]
)
def test_below_a_printed_whole_number(ours: float, told: str) -> None:
    assert page.below(ours, 76) == told


def test_queue_lengths_are_those_that_a_policy_sees() -> None:
    for case in range(20):
        workload, cluster = random_workload(np.random.Generator(np.random.PCG64([11, case])))
        seen: list[int] = []

        def see(state: State, plan: Plan, seen: list[int] = seen) -> None:
            seen.append(len(state.waiting))

        Stepper(workload, cluster, policy("list-saf"), np.array(workload.limit), see=see).advance()
        made = replay(workload, policy("list-saf"), cluster=cluster)
        assert passes_of(made)[1].tolist() == seen


def test_quarters_are_means_over_seconds() -> None:
    workload, cluster = random_workload(np.random.Generator(np.random.PCG64([12, 5])))
    made = replay(workload, policy("list-reg"), cluster=cluster, estimate="runtime")
    found = page.measure(made, lambda _: made)
    first, last = int(made.arrive.min()), int(made.arrive.max())
    edges = [first + (last - first) * i // 4 for i in range(5)]
    pairs = list(zip(made.arrive.tolist(), made.start.tolist(), strict=True))
    queue = [sum(arrive <= t < start for arrive, start in pairs) for t in range(first, last)]
    wanted = [np.mean(queue[a - first : b - first]) for a, b in pairwise(edges)]
    assert max(wanted) > 0
    assert [found[f"queue_{part}"] for part in range(1, 5)] == pytest.approx(wanted, rel=1e-12)


def test_a_run_takes_the_place_of_what_is_carried() -> None:
    workload, cluster = random_workload(np.random.Generator(np.random.PCG64([12, 5])))
    made = {name: replay(workload, policy(name), cluster=cluster) for name in ("list-reg", "plan-af")}
    runs = []
    for name, one in made.items():
        numbers = dict.fromkeys(FOLDER.about.metrics, 1.0) | {"af_s": af_s(outcomes(one))}
        runs.append(Run(Cell("KTH-SP2", "", "all", name, "limit", 0), numbers, 2.5, "", ""))
    found = page.values(Runs(runs), PRINTED)
    percent = 100 * af_s(outcomes(made["plan-af"])) / af_s(outcomes(made["list-reg"]))
    assert found["KTH-SP2, limit", "plan-af", "AF"] == pytest.approx(percent)
    assert found["KTH-SP2, limit", "list-reg", "AF"] == af_s(outcomes(made["list-reg"]))
    values = Values({key: Value(one, "", "run") for key, one in found.items()}, PRINTED)
    row = page.diagonal(values, "AF", "limit")[0]
    assert row[:5] == ["KTH-SP2", "`plan-af`", "74 (CP-AF)", "74", f"{percent:.1f}"]
    assert row[6:9] == [found["KTH-SP2, limit", "plan-af", "AF, below"], "1.00", ""]
    assert page.counts(values)["missing"] == len(page.study_runs()) - 2


def test_seeds_of_a_cell_are_one_mean() -> None:
    """Below or not is a matter of the mean; the longest wait is that of the worst."""
    runs = []
    for name, seed, af, wait in (("list-reg", 0, 200.0, 10), ("plan-af", 0, 147.0, 12), ("plan-af", 1, 150.0, 30)):
        numbers = dict.fromkeys(FOLDER.about.metrics, 1.0) | {"af_s": af, "max_wait_s": wait}
        runs.append(Run(Cell("KTH-SP2", "", "all", name, "limit", seed), numbers, 2.5, "", ""))
    found = page.values(Runs(runs), PRINTED)
    cell = ("KTH-SP2, limit", "plan-af")
    assert [found[*cell, column] for column in ("AF", "AF, spread", "longest wait")] == [74.25, 1.5, 3.0]
    assert str(found[*cell, "AF, below"]).startswith("no")  # 73.5 alone would be below 74 by rounding
    values = Values({key: Value(one, "", "run") for key, one in found.items()}, PRINTED)
    assert page.diagonal(values, "AF", "limit")[0][4] == "74.2 ± 0.8"
    assert ("KTH-SP2", "plan-af", "limit") in page.more_seeds(values)


def test_by_default_a_cell_with_a_very_long_wait_does_not_count() -> None:
    found: dict[str, list[str]] = {}
    for wait in (10, 30):
        runs = []
        for name, af, longest in (("list-reg", 200.0, 10), ("plan-af", 100.0, wait), ("plan-af:long=16d", 100.0, wait)):
            numbers = dict.fromkeys(FOLDER.about.metrics, 1.0) | {
                "af_s": af,
                "af_s_but_last": af,
                "max_wait_s": longest,
            }
            runs.append(Run(Cell("KTH-SP2", "", "all", name, "limit", 0), numbers, 2.5, "", ""))
        values = Values({key: Value(one, "", "run") for key, one in page.values(Runs(runs), PRINTED).items()}, PRINTED)
        found[f"{wait}"] = [page.facts(values, "AF", mode)[1] for mode in page.MODES]
    assert found == {"10": ["1", "1"], "30": ["0", "1"]}


def test_the_page_shows_what_the_study_asks_for() -> None:
    study, offline = (read_study(FOLDER.path / f"{name}.toml") for name in ("study", "study-offline"))
    assert study.include == offline.include == []
    for trace in study.traces:
        for estimate in study.estimates:
            wanted = [
                one
                for part in (study, offline)
                for one in part.policies
                if trace.label in [own.label for own in part.traces]
                and estimate in part.estimates
                and not any(left_out(rule, trace.label, one, estimate) for rule in part.exclude)
            ]
            assert sorted(["list-reg", *page.asked(trace.label, estimate)]) == sorted(wanted)


def left_out(rule: Match, trace: str, name: str, estimate: str) -> bool:
    pairs = ((rule.trace, trace), (rule.policy, name), (rule.estimate, estimate))
    return all(any(fnmatchcase(value, pattern) for pattern in patterns) for patterns, value in pairs)


def test_statements_say_how_much_they_rest_on() -> None:
    values = Values({("t", "", log): Value(one, "", "run") for log, one in zip(page.LOGS, (1, 3), strict=False)}, {})
    logs = list(page.LOGS)
    assert page.listed(values, "t", below=2).holds == "in part, so far"
    assert page.listed(values, "t", below=2, among=logs[:1]).holds == "yes"
    assert page.listed(values, "t", below=2, among=logs[1:2]) == Judged("KTH-SP2 1.0, CTC-SP2 3.0", "no")


@pytest.mark.parametrize(("value", "text"), [(None, "-"), (0.01234, "0.012"), (1.26, "1.3"), (23.4, "23")])
def test_milliseconds_have_two_digits(value: float | None, text: str) -> None:
    assert page.milliseconds(value) == text
