"""Last2 by the authors' rules: without them it is `recent`, and each does what it says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from dovetail.engine.contract import busy_workload
from dovetail.engine.replay import replay
from dovetail.model.workload import Provenance, Workload
from dovetail.studies.task import Cell
from reproductions.claims import YES
from reproductions.folders import find
from reproductions.packing_table_3.last2 import RULES, replayed
from reproductions.packing_table_3.page import POLICIES, READ_IN, rules_of
from reproductions.pages import content
from tests.slow.last2 import Last2

pytestmark = pytest.mark.xdist_group("last2")  # they compile kernels of their own

Row = tuple[int, int, int, int, int]
"""A job: submit, size, run time, limit, user."""


def log(processors: int, rows: Sequence[Row]) -> Workload:
    submit, size, runtime, limit, user = np.array(rows, np.int64).T
    columns = {"submit": submit, "size": size, "runtime": runtime, "limit": limit, "user": user}
    return Workload("small", {"id": np.arange(len(rows)), **columns}, processors, Provenance("by hand"))


@pytest.mark.parametrize("name", [policy for policy, _ in POLICIES.values()])
def test_without_rules_it_is_recent(name: str) -> None:
    for seed in range(5):
        workload, cluster = busy_workload(np.random.default_rng(seed))
        made, teller = replayed(workload, name, ())
        ours = replay(workload, name, estimate="recent")
        assert cluster.processors == workload.processors
        assert made.start.tolist() == ours.start.tolist()
        assert teller.first.tolist() == ours.said.tolist()
        assert teller.apart is None


@pytest.mark.parametrize("name", [policy for policy, _ in POLICIES.values()])
def test_it_is_the_slow_program_under_every_rule(name: str) -> None:
    other = 0
    for seed in range(6):
        workload, _ = busy_workload(np.random.default_rng(seed))
        for rules in (*([rule] for rule in RULES), list(RULES)):
            slow = Last2(name, rules, len(workload))
            starts = replay(workload, slow).start.tolist()
            made, teller = replayed(workload, name, rules)
            assert made.start.tolist() == starts
            assert teller.first.tolist() == slow.first.tolist()
            assert teller.at_start.tolist() == slow.at_start.tolist()
            other += teller.apart is not None
    assert other > 5


ALONE = [(0, 1, 10, 100, 1), (20, 1, 21, 100, 1), (50, 1, 5, 100, 1)]
AT_ONCE = [(0, 1, 10, 100, 1), (10, 1, 10, 100, 1)]
# Jobs 1 and 2 end in the same second, the later one of the log having started first.
TOGETHER = [(0, 2, 10, 100, 9), (1, 2, 10, 100, 1), (2, 1, 18, 100, 1), (30, 1, 10, 100, 1), (50, 1, 1, 100, 1)]


@pytest.mark.parametrize(
    ("rule", "rows", "without", "with_it"),
    [
        ("two", ALONE, [100, 10, 16], [100, 100, 16]),
        ("cut", ALONE, [100, 10, 16], [100, 10, 15]),
        ("arrivals-first", AT_ONCE, [100, 10], [100, 100]),
        ("by-start", TOGETHER, [100, 100, 100, 14, 14], [100, 100, 100, 14, 10]),
    ],
)
def test_estimates_on_arrival(rule: str, rows: Sequence[Row], without: list[int], with_it: list[int]) -> None:
    workload = log(3, rows)
    assert replayed(workload, "easy-sjbf", ())[1].first.tolist() == without
    assert replayed(workload, "easy-sjbf", (rule,))[1].first.tolist() == with_it


def test_a_waiting_job_is_estimated_anew() -> None:
    workload = log(1, [(0, 1, 10, 100, 1), (1, 1, 5, 100, 1)])
    for rules, at_start in (((), [100, 100]), (("anew",), [100, 10])):
        teller = replayed(workload, "easy-sjbf", rules)[1]
        assert teller.first.tolist() == [100, 100]
        assert teller.at_start.tolist() == at_start


def test_an_arrival_that_does_not_fit_makes_no_pass() -> None:
    # Job 1 outlives its estimate at 30: job 3 could start before job 2 from then on, and no job ends until 520.
    rows = [(0, 1, 10, 1000, 1), (20, 1, 500, 1000, 1), (21, 2, 10, 100, 2), (22, 1, 10, 50, 3), (40, 2, 10, 100, 4)]
    assert replayed(log(2, rows), "easy-sjbf", ())[0].start[3] == 40
    made, teller = replayed(log(2, rows), "easy-sjbf", ("fits",))
    assert made.start.tolist() == [0, 20, 520, 530, 540]
    apart = teller.apart
    assert apart is not None
    assert (apart.now, apart.free, apart.starts.tolist(), apart.others.tolist()) == (40, 1, [], [3])


def test_the_first_pass_that_differs() -> None:
    # Job 1 ends after a second, so the estimate of job 4 falls from 50 to 26 s, and it goes before job 5.
    rows = [
        (0, 1, 50, 100, 1),
        (60, 1, 1, 100, 1),
        (60, 2, 99, 99, 2),
        (60, 3, 9, 99, 3),
        (60, 1, 9, 99, 1),
        (60, 1, 9, 40, 4),
    ]
    made, teller = replayed(log(3, rows), "easy-sjbf", ("anew",))
    apart = teller.apart
    assert apart is not None
    assert (apart.now, apart.free, apart.starts.tolist(), apart.others.tolist()) == (61, 1, [4], [5])
    assert (teller.beside.said[4], apart.told[4], made.start[4], teller.beside.start[5]) == (50, 26, 61, 61)


def test_cells_say_their_rules() -> None:
    def rules(policy: str, estimate: str) -> list[str]:
        return rules_of(Cell("CTC-SP2", "", "all", policy, estimate, 0))

    assert rules("easy-sjbf", "theirs") == list(RULES)
    assert rules("list-saf", "theirs") == [rule for rule in RULES if rule != "fits"]
    assert rules("easy-sjbf", "theirs but anew") == [rule for rule in RULES if rule != "anew"]
    assert rules("easy-sjbf", "recent and two") == ["two"]
    assert set(READ_IN) == set(RULES)


def test_the_committed_runs_give_the_printed_numbers() -> None:
    made = content(find("packing-table-3"))
    ours = [one for one in made.said if one.whose == "ours"]
    assert [one.holds for one in ours] == [YES, YES]
    assert f"{made.values.need('Last2', 'EASY-SJBF, CTC-SP2', 'change'):.1f}" == "-19.0"
