"""The page on resources that bind: from a small store, and its statements where the answer is plain."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from dovetail.studies.grid import tasks_of
from dovetail.studies.papers import binding
from dovetail.studies.papers.binding import Case, Found, statements
from dovetail.studies.papers.page import Runs
from dovetail.studies.spec import read_study
from dovetail.studies.store import Store, cluster_of
from dovetail.workloads.resample import loads
from tests.conftest import TRACES
from tests.studies.small import ran

STUDY = Path(binding.__file__).with_name("binding.toml")
SMALL = """\
name = "binding"
policies = ["easy:place=scarce", "sjf-easy:place=scarce", "plan-bsld:decodes=5,window=10,place=scarce",
  "plan-af:decodes=5,window=10,place=scarce"]
estimates = "runtime"
scenarios = ["set-load=3"]
seeds = 2
keep = "metrics"
"""


def test_the_page(tmp_path: Path) -> None:
    whole = STUDY.read_text(encoding="utf-8")
    text = SMALL + whole[whole.index("[[traces]]") : whole.index("[[exclude]]")].replace("jobs = 500", "jobs = 60")
    nodes = STUDY.with_name("binding-nodes.toml")
    (tmp_path / nodes.name).write_text(nodes.read_text(encoding="utf-8"), encoding="utf-8")
    store, tasks = ran(tmp_path, text)
    made = binding.page(Runs(TRACES, store, tasks))
    assert (made.facts["missing"], made.facts["statements"]) == (0, 3)
    assert made.text.count("| load 3, run times known | cores, memory, GPUs |") == 3
    root = ElementTree.fromstring(made.pictures["binding.svg"])  # noqa: S314 (made above)
    assert "by number of resources" in root.attrib["aria-label"]
    lost = next(task for task in tasks if task.cell.seed == 1)
    (store.path / "runs" / f"{lost.name}.parquet").unlink()
    part = binding.page(Runs(TRACES, store, tasks))  # one seed is left, which has no interval
    assert (part.facts["missing"], part.facts["statements"], part.pictures) == (1, 0, {})


def made(ratios: list[list[float]]) -> Found:
    """A case with two lists and planners that need so much of the better one, by number of resources and seed."""
    case = Case("set-load=0.9", "limit")
    traces = {}
    for number, of_seeds in enumerate(ratios):
        seeds = {seed: {"bsld": 10.0, "mean_wait_s": 100.0, "af_s": 1000.0} for seed in range(len(of_seeds))}
        plans = {
            seed: {name: value * ratio for name, value in seeds[seed].items()} for seed, ratio in enumerate(of_seeds)
        }
        worse = {seed: {name: 2 * value for name, value in one.items()} for seed, one in seeds.items()}
        traces[str(number)] = {"easy": worse, "sjf-easy": seeds, "plan-bsld:decodes=3": plans, "plan-af": plans}
    return Found({case: traces}, 0)


def test_gains_are_over_the_best_list() -> None:
    gain = made([[0.8, 0.8], [0.5, 0.5]]).gain(Case("set-load=0.9", "limit"), "1", "bsld")
    assert (gain.best, gain.list_mean, gain.planner_mean) == ("sjf-easy", 10, 5)
    assert gain.interval == pytest.approx((50, 50, 50))


@pytest.mark.parametrize(
    ("last", "grows"),
    [([0.50, 0.52, 0.48], True), ([0.88, 0.9, 0.92], False), ([0.3, 0.9, 1.2], False)],
    ids=["more", "less", "who knows"],
)
def test_a_gain_grows_where_the_interval_says_so(last: list[float], grows: bool) -> None:
    said = statements(made([[0.8, 0.81, 0.79], [0.7, 0.7, 0.7], last]))
    assert [one.holds for one in said] == [grows] * 3
    assert said[0].text.startswith("BSLD (`plan-bsld`), load 0.9, limits")
    assert "20 %, 30 %" in said[0].ours


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
