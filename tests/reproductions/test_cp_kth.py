"""The rows of CP for KTH-SP2: what is shown of runs, what is claimed, and a week as one problem."""

from __future__ import annotations

import random

import pytest

from dovetail.studies.task import Cell
from reproductions.cp_kth.page import METRICS, SOLVERS, offline, planned, reached, values
from reproductions.runs import Run, Runs
from reproductions.values import NotRunError, Value, Values
from tests.slow.workloads import random_jobs, workload_of

TABLE = "KTH-SP2, runtime"


def made(policy: str, af_s: float) -> Run:
    numbers = {**dict.fromkeys(METRICS.values(), 100.0), "af_s": af_s, "max_wait_s": 1.0}
    solver = {"searches": 4.0, "proved": 0.25, "better": 0.5} if policy.startswith("cp") else {}
    return Run(Cell("KTH-SP2", "", "all", policy, "runtime", 0), {**numbers, **solver}, 1.0, "", "")


def shown(runs: list[Run]) -> Values:
    return Values({key: Value(one, "", "run") for key, one in values(Runs(runs), {}).items()}, {})


@pytest.mark.parametrize(("af_s", "holds"), [(76.4, "yes"), (77.9, "in part"), (78.1, "no")])
def test_a_printed_number_is_reached(af_s: float, holds: str) -> None:
    runs = [made("list-reg", 100.0), made(f"cp-af:{SOLVERS['CP-SAT']}", af_s), made("plan-af", 77.0)]
    found = shown(runs)
    assert reached(found, "AF", "76", "runtime").holds == holds
    assert planned(found, "AF", "runtime").holds == ("yes" if af_s > 77 else "no")
    assert found.need(TABLE, f"cp-af:{SOLVERS['CP-SAT']}", "proved %") == 25
    best = shown([*runs, made(f"cp-af:{SOLVERS['CP Optimizer']}", 70.0)])
    assert reached(best, "AF", "76", "runtime").holds == "yes"


def test_what_has_no_run_is_not_judged() -> None:
    with pytest.raises(NotRunError):
        reached(shown([made("list-reg", 100.0)]), "AF", "76", "runtime")


def test_a_week_lies_between_bound_and_list() -> None:
    jobs, capacity = random_jobs(random.Random(3))
    found = offline(workload_of(jobs[:6], capacity[:1]))
    assert found["bound"] <= found["proved_bound"] <= found["value"] <= found["list"]
    assert found["value"] <= found["planner"] + 1e-9
    assert found["proved"] == 1
