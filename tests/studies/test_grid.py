"""Cells: every combination, less what the rules leave out; and what names a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dovetail.errors import InputError
from dovetail.io.swf import write_swf
from dovetail.model.workload import Workload
from dovetail.studies import grid
from dovetail.studies.grid import tasks_of
from dovetail.studies.spec import read_study
from dovetail.studies.store import Store
from dovetail.studies.task import Task, from_plain, plain
from dovetail.studies.worker import run_batch
from dovetail.workloads.lublin import lublin
from tests.studies.small import SMALL, prepared, written


def cells(path: Path, kept: list[Workload] | None = None) -> list[Task]:
    return tasks_of(read_study(path), path, (kept if kept is not None else []).append)


def trace(folder: Path, **changes: str) -> Path:
    """A study of one file of 300 jobs over several days."""
    write_swf(lublin(300, 16, seed=5, load=0.5), folder / "log.swf")
    text = 'name = "x"\npolicies = ["easy", "list-reg"]\n[[traces]]\npath = "log.swf"\n'
    for old, new in changes.items():
        text = {"head": new + "\n" + text, "tail": text + new + "\n"}[old]
    return written(folder, text)


def test_every_combination(tmp_path: Path) -> None:
    kept: list[Workload] = []
    tasks = cells(written(tmp_path), kept)
    spans = {task.cell.span for task in tasks if task.cell.seed == 0}
    assert "all" in spans
    for seed in (0, 1):
        mine = [task for task in tasks if task.cell.seed == seed]
        count = Counter((task.cell.policy, task.cell.estimate) for task in mine)
        assert len(count) == 6
        assert len(set(count.values())) == 1
        assert len(mine) == 6 * len({task.cell.span for task in mine})
    assert len({task.name for task in tasks}) == len(tasks)
    assert {w.digest() for w in kept} == {task.workload_sha256 for task in tasks}
    assert len(kept) == len({task.workload_sha256 for task in tasks})  # each is given once


def test_spans_cut_the_trace_into_whole_stretches(tmp_path: Path) -> None:
    kept: list[Workload] = []
    tasks = cells(trace(tmp_path, head='spans = ["all", "each 1d", "0d..2d"]'), kept)
    whole = next(w for w in kept if len(w) == 300)
    first, last = int(whole.submit[0]), int(whole.submit[-1])
    labels = list(dict.fromkeys(task.cell.span for task in tasks))
    days = [label for label in labels if label.startswith("1d ")]
    assert labels == ["all", *days, "0d..2d"]
    assert len(days) > 2
    by_label = {task.cell.span: task.workload_sha256 for task in tasks}
    for label in days:
        part = next(w for w in kept if w.digest() == by_label[label])
        number = int(label.split()[1])
        assert set((part.submit - first) // 86_400) == {number - 1}
        assert first + number * 86_400 <= last + 1
        inside = (whole.submit >= first + (number - 1) * 86_400) & (whole.submit < first + number * 86_400)
        assert np.array_equal(part["id"], whole["id"][inside])


def test_rules(tmp_path: Path) -> None:
    everything = cells(trace(tmp_path, head='estimates = ["limit", "runtime"]\nseeds = [3, 4]'))
    assert len(everything) == 8
    path = trace(
        tmp_path,
        head='estimates = ["limit", "runtime"]\nseeds = [3, 4]',
        tail='[[include]]\npolicy = "list*"\n[[include]]\nseed = 3\n[[exclude]]\nestimate = "run*"\nseed = [3]',
    )
    left = {(task.cell.policy, task.cell.estimate, task.cell.seed) for task in cells(path)}
    assert left == {
        ("list-reg", "limit", 3),
        ("list-reg", "limit", 4),
        ("list-reg", "runtime", 4),
        ("easy", "limit", 3),
    }


@pytest.mark.parametrize(
    ("tail", "line", "says"),
    [
        ('[[exclude]]\npolicy = "eazy"', 5, "this exclude rule is about no cell"),
        ('[[exclude]]\npolicy = "easy"\n[[include]]\ntrace = "x*"', 7, "this include rule is about no cell"),
        ('[[exclude]]\npolicy = "*"', 0, "the rules leave no cell"),
        ('filters = ["standart"]', 4, "trace 'log': no filter 'standart'; did you mean standard?"),
        ('scenarios = ["scale-load=x"]', 4, "trace 'log': 'x' is not a number"),
        ('scenarios = "span=900d..901d"', 4, "trace 'log': no jobs are left to replay"),
        ('[[traces]]\npath = "none.swf"', 6, "none.swf"),
        ('scenarios = ["scale-lod=2"]', 4, "no scenario 'scale-lod'; did you mean scale-load?"),
        ('[[traces]]\npath = "$NO_SUCH_NAME/none.swf"', 6, "the environment has no such variable"),
    ],
)
def test_what_cannot_be_prepared_is_named_with_its_line(tmp_path: Path, tail: str, line: int, says: str) -> None:
    with pytest.raises(InputError) as caught:
        cells(trace(tmp_path, tail=tail))
    assert says in str(caught.value)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("head", "line", "says"),
    [
        ('scenarios = [\n  [],\n  "scale-lod=2",\n]', 3, "no scenario 'scale-lod'; did you mean scale-load?"),
        ('scenarios = ["scale-load=0"]', 1, "a factor is a positive number"),
        ('spans = "each 1s"', 5, "makes more than 10,000 spans"),
    ],
)
def test_what_is_wrong_with_the_grid_is_named_there(tmp_path: Path, head: str, line: int, says: str) -> None:
    with pytest.raises(InputError) as caught:
        cells(trace(tmp_path, head=head))
    assert says in str(caught.value)
    assert caught.value.line == line


def test_traces_in_one_list_are_told_apart_by_their_lines(tmp_path: Path) -> None:
    trace(tmp_path)
    text = 'name = "x"\npolicies = ["easy"]\ntraces = [\n  {path = "log.swf"},\n  {path = "none.swf"},\n]\n'
    with pytest.raises(InputError) as caught:
        cells(written(tmp_path, text))
    assert caught.value.line == 5


def test_more_cells_than_anybody_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "MOST_CELLS", 11)
    assert len(cells(trace(tmp_path, head="seeds = 5"))) == 10
    with pytest.raises(InputError, match="more than 11 cells"):
        cells(trace(tmp_path, head="seeds = 6"))


def test_seeds_share_a_workload_unless_something_draws(tmp_path: Path) -> None:
    same = cells(trace(tmp_path, head="seeds = 3"))
    assert len({task.workload_sha256 for task in same}) == 1
    drawn = cells(trace(tmp_path, head='seeds = 3\nscenarios = [[], "sample=0.5"]'))
    per = {s: {t.workload_sha256 for t in drawn if t.cell.scenario == s} for s in ("", "sample=0.5")}
    assert [len(per[""]), len(per["sample=0.5"])] == [1, 3]
    made = cells(written(tmp_path, SMALL.replace('spans = ["all", "each 12h"]\n', "")))
    assert len({task.workload_sha256 for task in made}) == 2


def test_a_name_changes_with_all_that_matters_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = cells(trace(tmp_path))[0]
    assert from_plain(plain(first)) == first
    others = [
        replace(first, cell=replace(first.cell, seed=9)),
        replace(first, cell=replace(first.cell, estimate="runtime")),
        replace(first, workload_sha256="0"),
        replace(first, processors=17),
        replace(first, policy_sha256="1"),
        replace(first, estimate_sha256="1"),
        replace(first, counting="ended"),
        replace(first, every_s=30),
        replace(first, feedback=True),
        replace(first, keep="metrics"),
        replace(first, code="2"),
        replace(first, ortools="9"),
    ]
    assert len({first.name, *(task.name for task in others)}) == 13
    assert replace(first, policy="/elsewhere/x.py:Y", estimate="/elsewhere/x.py:Y", site="/x.toml").name == first.name
    monkeypatch.setattr("dovetail.studies.task.FORMAT", 3)
    assert cells(trace(tmp_path))[0].name != first.name


def test_a_policy_of_the_user_is_named_by_what_it_does(tmp_path: Path) -> None:
    def names(text: str) -> list[str]:
        (tmp_path / "mine.py").write_text(text)
        study = 'name = "x"\npolicies = ["mine.py:Mine"]\n[[traces]]\ngenerate = {jobs = 9, processors = 4}\n'
        return [task.name for task in cells(written(tmp_path, study))]

    text = (
        "from dovetail import Plan, Policy\nclass Mine(Policy):\n    def decide(self, state):\n        return Plan()\n"
    )
    assert names(text) == names(text + "# said\n") != names(text.replace("Plan()", "Plan([])"))


def test_files_that_could_be_mistaken_are_refused(tmp_path: Path) -> None:
    for folder, good in (("a b", True), ("a,b", False), ("a=b", False), ("a:b", False)):
        where = tmp_path / folder
        where.mkdir()
        (where / "mine.py").write_text("def shortest(job, now):\n    return job.limit\n")
        study = 'name = "x"\npolicies = ["list:order=mine.py:shortest"]\n[[traces]]\n'
        path = written(where, study + "generate = {jobs = 9, processors = 4}\n")
        if good:
            assert cells(path)[0].policy_sha256
        else:
            with pytest.raises(InputError, match=r"study.toml:2: .*cannot have = , or : in its path"):
                cells(path)


def test_so_is_an_estimate(tmp_path: Path) -> None:
    def task(text: str) -> Task:
        (tmp_path / "mine.py").write_text(text)
        study = 'name = "x"\npolicies = ["easy"]\nestimates = ["mine.py:Half"]\n[[traces]]\n'
        return cells(written(tmp_path, study + "generate = {jobs = 9, processors = 4}\n"))[0]

    with pytest.raises(InputError, match=r"study.toml:3: .*mine.py: Half has no method estimate\(job\)"):
        task("class Half:\n    pass\n")
    two = "    def estimate(self, job):\n        return job.limit / 2\n"
    two += "    def observe(self, job, runtime_s):\n        pass\n"
    with pytest.raises(InputError, match=r"study.toml:3: .*mine.py: Half is no dovetail.Predictor"):
        task("class Half:\n" + two)
    text = "from dovetail.predict.base import Predictor\nclass Half(Predictor):\n" + two
    first = task(text)
    assert first.name == task(text).name != task(text.replace("pass", "self.seen = job")).name
    assert (first.cell.estimate, first.estimate) == ("mine.py:Half", f"{tmp_path}/mine.py:Half")
    store = Store(tmp_path / "a.store")
    (now,) = prepared(tmp_path / "study.toml", store)
    assert [one["error"] for one in run_batch(str(store.path), [plain(now)])] == [""]
    made = store.schedule(now.name)
    assert made is not None
    assert made.said.tolist() == np.floor(made.workload.limit / 2 + 0.5).tolist()
    (tmp_path / "mine.py").write_text(text)
    (after,) = run_batch(str(store.path), [plain(now)])
    assert "has changed since the study began" in after["error"]
