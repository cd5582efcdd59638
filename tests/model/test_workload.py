"""What a workload is known by: its digest follows from all that it says of its jobs, and from nothing else."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from multiprocessing import Pipe
from pathlib import Path

import numpy as np
import pytest

from dovetail.engine.replay import replay
from dovetail.io.eurora import FIELDS as EURORA
from dovetail.io.parquet import write_parquet
from dovetail.io.read import read_workload
from dovetail.io.swf import FIELDS as IN_SWF
from dovetail.io.swf import write_swf
from dovetail.model.workload import NAMED, OPTIONAL, REQUIRED, UNIT, Column, Provenance, Step, Workload
from tests.slow.policies import SlowJob
from tests.slow.workloads import workload_of

COLUMNS = (*REQUIRED, *OPTIONAL, f"{UNIT}gpus", f"{UNIT}memory_gb")


def full(**changes: object) -> Workload:
    """Four jobs of which everything is known, and the names of all that can have one."""
    columns: dict[str, Column] = {name: 100 * place + 7 * np.arange(4) for place, name in enumerate(COLUMNS, 1)}
    columns |= {name: np.array([0, 1, 1, 0]) for name in NAMED}
    columns["cpu_s"] = columns["cpu_s"] + 0.25
    columns["status"] = np.array([1, 0, 1, 5])
    names = {name: (f"{name} a", f"{name} b") for name in NAMED}
    return replace(Workload("full", columns, 64, Provenance("here"), names=names), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("column", COLUMNS)
def test_one_other_value_in_any_column_is_another_digest(column: str) -> None:
    workload = full()
    values = workload[column].copy()
    values[-1] += 0.5 if column == "cpu_s" else 1
    other = workload.with_columns(Step("changed"), **{column: values})
    assert (other.digest() == workload.digest()) == (column == "line")
    if column not in REQUIRED:
        named = {name: known for name, known in workload.names.items() if name != column}
        without = {name: values for name, values in workload.columns.items() if name != column}
        gone = replace(workload, columns=without, names=named)
        assert (gone.digest() == workload.digest()) == (column == "line")


@pytest.mark.parametrize("column", NAMED)
def test_so_is_one_other_name(column: str) -> None:
    workload = full()
    seen = {workload.digest()}
    for known in (("a", "b"), ("b", "a"), ("ab",), ("ab", ""), ("", "ab"), ("a", "b", ""), ("1:a", "b"), ("a\nb",), ()):
        seen.add(replace(workload, names={**workload.names, column: known}).digest())
    assert len(seen) == 10


def test_values_do_not_pass_from_one_column_to_the_next() -> None:
    workload = full()
    user, group = workload["user"], workload["group"]
    swapped = workload.with_columns(Step("swapped"), user=1 - user, group=group)
    assert swapped.digest() != workload.with_columns(Step("swapped"), user=user, group=1 - group).digest()


def test_what_says_nothing_counts_for_nothing() -> None:
    workload = full()
    needed = {name: workload[name] for name in REQUIRED}
    bare = replace(workload, columns=needed, names={})
    nothing = {name: np.full(4, -1) for name in COLUMNS if name not in REQUIRED}
    blank = replace(bare, columns=needed | nothing, names=dict.fromkeys(NAMED, ()))
    assert blank.digest() == bare.digest()
    assert replace(bare, name="other", processors=1, provenance=Provenance("there")).digest() == bare.digest()


def test_swf_and_parquet_of_the_same_jobs_have_the_same_digest(tmp_path: Path) -> None:
    workload = full()
    kept = {name: values for name, values in workload.columns.items() if name in IN_SWF}
    workload = replace(workload, columns=kept, names={})
    write_swf(workload, tmp_path / "jobs.swf")
    write_parquet(workload, tmp_path / "jobs.parquet")
    for file in ("jobs.swf", "jobs.parquet"):
        assert read_workload(tmp_path / file).digest() == workload.digest()
    write_parquet(full(), tmp_path / "full.parquet")
    assert read_workload(tmp_path / "full.parquet").digest() == full().digest()


def test_and_so_have_csv_and_those(tmp_path: Path) -> None:
    rows = [
        "7,Q,2014-03-31 08:51:10,2014-03-31 08:51:20,2014-03-31 09:00:00,1,4,1,04:00,4,0,0,900,n1,x,1",
        "8,Q,2014-03-31 08:52:10,2014-03-31 08:53:20,2014-03-31 09:10:00,1,2,1,01:00,2,0,0,900,n2,x,1",
    ]
    (tmp_path / "jobs.csv").write_text("\n".join([",".join(EURORA), *rows]) + "\n", encoding="utf-8")
    table = read_workload(tmp_path / "jobs.csv")
    write_parquet(table, tmp_path / "jobs.parquet")
    assert read_workload(tmp_path / "jobs.parquet").digest() == table.digest()
    kept = {name: values for name, values in table.columns.items() if name in IN_SWF}
    plain = replace(table, columns=kept, names={})  # an SWF file has neither units nor names
    write_swf(plain, tmp_path / "jobs.swf")
    assert read_workload(tmp_path / "jobs.swf").digest() == plain.digest() != table.digest()


def test_a_workload_and_a_schedule_go_to_another_process() -> None:
    workload = full(header={"Computer": "here"})
    there, here = Pipe()
    here.send(workload)
    for copied in (there.recv(), deepcopy(workload)):
        assert (copied.digest(), copied.name, copied.provenance) == (workload.digest(), "full", Provenance("here"))
        assert (copied.header, copied.names) == (workload.header, workload.names)
        with pytest.raises(ValueError, match="read-only"):
            copied["submit"][0] = 0
    made = replay(workload_of([SlowJob(0, (2,), 9, 9), SlowJob(1, (2,), 9, 9)], (3,)), "easy", event_by_event=True)
    here.send(made)
    copied = there.recv()
    assert copied.start.tolist() == made.start.tolist()
    assert copied.workload.digest() == made.workload.digest()
