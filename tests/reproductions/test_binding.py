"""Resources that bind: gains and claims where the answer is plain, and the jobs of the study."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.studies.grid import tasks_of
from dovetail.studies.spec import read_study
from dovetail.studies.store import Store, cluster_of
from dovetail.studies.task import Cell
from dovetail.workloads.resample import loads
from reproductions.binding import page
from reproductions.runs import Run, Runs
from reproductions.values import Value, Values

STUDY = Path(page.__file__).with_name("study.toml")
CASE = "load 0.9, limits"


def made(ratios: list[list[float]]) -> Values:
    """Two lists, and planners that need these parts of the better one, by number of resources and seed."""
    runs = []
    for trace, of_seeds in zip(page.RESOURCES, ratios, strict=True):
        for seed, ratio in enumerate(of_seeds):
            worth = {"easy": 2.0, "sjf-easy": 1.0, "plan-bsld:decodes=3": ratio, "plan-af": ratio}
            for policy, times in worth.items():
                numbers = {"bsld": 10 * times, "mean_wait_s": 100 * times, "af_s": 1000 * times}
                runs.append(Run(Cell(trace, "set-load=0.9", "all", policy, "limit", seed), numbers, 1.0, "", ""))
    return Values({key: Value(one, "", "run") for key, one in page.values(Runs(runs), {}).items()}, {})


def test_gains_are_over_the_best_list() -> None:
    found = made([[0.8, 0.8], [0.5, 0.5], [0.5, 0.5]])
    row = {key: found.ours["BSLD", f"{CASE}: cores, memory", key].content for key in ("best", "list", "planner")}
    assert row == {"best": "sjf-easy", "list": 10, "planner": 5}
    gain = [found.need("BSLD", f"{CASE}: cores, memory", key) for key in ("gain", "low", "high")]
    assert gain == pytest.approx([50, 50, 50])


def test_a_case_with_one_seed_has_no_gain() -> None:
    assert made([[0.8], [0.5], [0.5]]).ours == {}


@pytest.mark.parametrize(
    ("last", "verdict"),
    [([0.50, 0.52, 0.48], "yes"), ([0.88, 0.9, 0.92], "no"), ([0.3, 0.9, 1.2], "no")],
    ids=["more", "less", "unclear"],
)
def test_a_gain_grows_where_the_interval_says_so(last: list[float], verdict: str) -> None:
    found = made([[0.8, 0.81, 0.79], [0.7, 0.7, 0.7], last])
    for metric in page.METRICS:
        judged = page.grows(found, metric, CASE)
        assert judged.holds == verdict
        assert judged.ours.startswith("20 %, 30 %, ")


def test_the_jobs_are_the_same_and_the_resources_bind_alike(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.create()
    study = read_study(STUDY)
    study = study.model_copy(update={"seeds": [3], "scenarios": [["set-load=0.8"]], "exclude": []})
    tasks = tasks_of(study, STUDY, store.keep)
    works = {task.cell.trace: store.workload(task.workload_sha256) for task in tasks}
    names = ("cores", "memory_gb", "gpu_slices")
    first, last = works["cores"], works["cores, memory, GPUs"]
    for work in works.values():
        for column in ("submit", "units", "runtime", "limit", "size", "unit_cores"):
            assert work[column].tolist() == first[column].tolist()
    assert [[f"unit_{name}" in work for name in names] for work in works.values()] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    nodes = cluster_of(tasks[0].processors, tasks[0].cluster)
    share = loads(last.columns, nodes, int(last.submit[-1] - last.submit[0]))
    assert list(share) == list(names)
    assert list(share.values()) == pytest.approx([0.8] * 3, rel=0.01)
