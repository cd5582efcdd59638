"""Small files of the shapes in which sites have published their jobs. They are made here, after the descriptions."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from dovetail.engine.replay import replay
from dovetail.errors import InputError, SettingError
from dovetail.io.table import read_any
from dovetail.model.workload import Workload
from dovetail.policies.registry import policy
from dovetail.referee import assert_valid
from tests.command import run

BEGAN = datetime(2024, 3, 1, 8, tzinfo=UTC)
Rows = list[tuple[int, int, int, int, int]]
JOBS: Rows = [(60 * i, 60 * i + 7 * i, 300 + 40 * i, 600 + 60 * i, 1 + i % 3) for i in range(12)]
"""Submit, start, run time, limit, size; what each file holds, beside rows that are to be set aside."""


def at(seconds: int, zone: str = "UTC") -> datetime:
    return (BEGAN + timedelta(seconds=seconds)).astimezone(ZoneInfo(zone))


def times(rows: Rows) -> tuple[list[datetime], list[datetime], list[datetime]]:
    """When jobs were submitted, started and ended."""
    return [at(row[0]) for row in rows], [at(row[1]) for row in rows], [at(row[1] + row[2]) for row in rows]


def theta(folder: Path) -> list[Path]:
    """Times with fractions or without, numbers as floats, more columns than are read; no nodes in one row, an end
    before the start in another, and no times in a third."""
    head = (
        "JOB_NAME,COBALT_JOBID,MACHINE_NAME,QUEUED_TIMESTAMP,START_TIMESTAMP,END_TIMESTAMP,USERNAME_GENID,"
        "PROJECT_NAME_GENID,QUEUE_NAME,WALLTIME_SECONDS,RUNTIME_SECONDS,NODES_USED,NODES_REQUESTED,EXIT_STATUS"
    )
    rows = []
    for i, ((submit, start, end), job) in enumerate(zip(zip(*times(JOBS), strict=True), JOBS, strict=True)):
        when = [f"{one:%F %T}" + ".000000" * (i % 2) for one in (submit, start, end)]
        who = ["87523541", "911", "default"]
        rows.append([f"{i}.x", f"{100 + i}.0", "theta", *when, *who, f"{job[3]}.0", "1.0", f"{job[4]}.0", "9.0", i % 2])
    one, late = rows[0], rows[-1][4]
    rows += [[*one[:11], "0.0", "0.0", 0], [*one[:4], late, *one[5:]], [*one[:3], "", "", "", *one[6:]]]
    path = folder / "ANL-ALCF-DJC-THETA_20230101_20231231.csv.gz"
    path.write_bytes(gzip.compress("\n".join([head, *(",".join(map(str, row)) for row in rows)]).encode()))
    return [path]


def frontier(folder: Path) -> list[Path]:
    """The limit in minutes, as its name does not say."""
    submit, start, end = times(JOBS)
    frame = pl.DataFrame({
        "job_idx": [str(i) for i in range(12)], "submit_time": submit, "start_time": start, "end_time": end,
        "wall_time": [row[3] // 60 for row in JOBS], "run_time": [row[2] for row in JOBS],
        "node_count": [row[4] for row in JOBS], "completion_state": ["COMPLETED", "TIMEOUT"] * 6,
        "user_id": ["u1", "u2"] * 6, "project_id": ["p"] * 12, "queue": ["batch-normal"] * 12,
        "node_list": [["x1"]] * 12, "mean_power": [500.0 * row[4] for row in JOBS],
    })  # fmt: skip
    frame.write_parquet(path := folder / "frontier-completed-job-info.parquet")
    return [path]


def fugaku(folder: Path) -> list[Path]:
    """Times as text with their zone, `exit state` with a blank, power that no job draws, an embedding that is not read,
    two months."""
    paths = []
    for month, some in (("23_03", JOBS[:6]), ("23_04", JOBS[6:])):
        text = [[one.astimezone(ZoneInfo("Asia/Tokyo")).isoformat(" ") for one in column] for column in times(some)]
        frame = pl.DataFrame({
            "jid": [f"jid_{row[0]}" for row in some], "usr": ["usr_0"] * 6, "jnam": ["jnam_1"] * 6,
            "adt": text[0], "qdt": text[1], "sdt": text[1], "edt": text[2],
            "elpl": [float(row[3]) for row in some], "nnuma": [row[4] for row in some], "nnumr": [9] * 6,
            "avgpcon": [100.0 * row[4] for row in some[:4]] + [-3.0, 1e200], "exit state": ["completed", "failed"] * 3,
            "duration": [float(row[2]) for row in some], "embedding": [[0.5] * 4] * 6,
        })  # fmt: skip
        frame.write_parquet(folder / f"{month}.parquet")
        paths.append(folder / f"{month}.parquet")
    return paths


def marconi(folder: Path) -> list[Path]:
    """The limit in minutes, power as a list of samples, a job that never started."""
    submit, start, end = times(JOBS)
    rows = [*JOBS, (50, 0, 0, 600, 2)]
    frame = pl.DataFrame({
        "job_id": range(13), "submit_time": [*submit, at(50)], "eligible_time": [*submit, None],
        "start_time": [*start, None], "end_time": [*end, None],
        "time_limit": [row[3] // 60 for row in rows], "run_time": [row[2] for row in rows],
        "num_nodes_alloc": [row[4] for row in rows], "num_cores_alloc": [128 * row[4] for row in rows],
        "user_id": [7] * 13, "group_id": [25200] * 13, "partition": ["1"] * 13, "qos": ["0"] * 13,
        "job_state": ["COMPLETED", "FAILED"] * 6 + ["CANCELLED"], "nodes": [[1, 2]] * 13,
        "node_power_consumption": [[1000 * row[4], 2000 * row[4]] for row in JOBS] + [[]],
    })  # fmt: skip
    frame.write_parquet(path := folder / "job_table.parquet")
    return [path]


def in2p3(folder: Path) -> list[Path]:
    """Names of sacct, but seconds since 1970, and the limit in seconds."""
    head = "jobid submit eligible start end elapsed timelimit alloccpus allocgpus partition state user account"
    base = int(BEGAN.timestamp())
    who = ("htc", "COMPLETED", "user0137", "account01")
    rows = [
        (i, base + submit, base + submit, base + start, base + start + runtime, runtime, limit, size, 0, *who)
        for i, (submit, start, runtime, limit, size) in enumerate(JOBS)
    ]
    path = folder / "09.tsv"
    path.write_text("\n".join("\t".join(map(str, row)) for row in (head.split(), *rows)))
    return [path]


def kestrel(folder: Path) -> list[Path]:
    """Each file in a zone of its own, durations in nanoseconds; a column that is empty throughout in one of them."""
    paths = []
    for month, zone, some in ((10, "UTC", JOBS[:6]), (11, "America/Denver", JOBS[6:])):
        when = zip(("submit_time", "start_time", "end_time"), times(some), strict=True)
        gpus = pl.Series([None] * 6, dtype=pl.Null) if month == 10 else pl.Series([1] * 6)
        frame = pl.DataFrame({
            "id": [f"{row[0]}_{i}" for i, row in enumerate(some)], "job_id": [row[0] for row in some],
            "wallclock_req": pl.Series([timedelta(seconds=row[3]) for row in some], dtype=pl.Duration("ns")),
            "processors_req": [1] * 6, "processors_used": [row[4] for row in some], "nodes_used": [1] * 6,
            "user_hash": ["ab12cd3"] * 6, "account_hash": ["0f0f0f0"] * 6, "partition": ["short", "short,shared"] * 3,
            "qos": ["normal"] * 6, "state": ["CANCELLED by 7"] * 6, "state_simple": ["COMPLETED", "CANCELLED"] * 3,
            "gpus_requested": gpus,
            **{name: pl.Series(values).dt.convert_time_zone(zone) for name, values in when},
        })  # fmt: skip
        frame.write_parquet(folder / f"kestrel_jobs_2023{month}_0.parquet")
        paths.append(folder / f"kestrel_jobs_2023{month}_0.parquet")
    return paths


def eagle(folder: Path) -> list[Path]:
    """Tasks of an array have one number, times name no zone, and a name holds commas and quotes."""
    head = (
        "job_id,user,account,partition,qos,wallclock_req,nodes_req,processors_req,gpus_req,mem_req,submit_time,"
        "start_time,end_time,run_time,state,name,work_dir,submit_line"
    )
    who, what = "532939,user0014,account0003,partition001,normal", 'COMPLETED,"a, ""b""",/x,"sbatch a, b"'
    rows = [
        f"{who},{job[3]}.0,1,{job[4]},0,0.0,{submit:%F %T},{start:%F %T},{end:%F %T},{job[2]}.0,{what}"
        for submit, start, end, job in zip(*times(JOBS), JOBS, strict=True)
    ]
    path = folder / "eagle_data.csv"
    path.write_text("\n".join([head, *rows]))
    return [path]


def cerit(folder: Path) -> list[Path]:
    """No names of columns, numbers with a comma, a soft wall time in every second row."""
    base = int(BEGAN.timestamp())
    rows = [
        f"{16921 + i}[16921] {base + submit} {start - submit} {runtime} {size} {size}073741824,5"
        f" user{i % 3} q_2h {limit} {runtime if i % 2 else -1}"
        for i, (submit, start, runtime, limit, size) in enumerate(JOBS)
    ]
    path = folder / "CERIT-soft-wall"
    path.write_text("\n".join(["; jobID arrival wait runtime CPUs memory user queue walltime softwall", "", *rows]))
    return [path]


SHAPES: dict[str, tuple[Callable[[Path], list[Path]], str, dict[str, int]]] = {
    "theta": (theta, "ALCF's job tables (Mira, Theta, Polaris)",
              {"no processors": 1, "ended before it started": 1, "no time of submission": 1}),
    "frontier": (frontier, "Frontier's job-centric telemetry", {}),
    "fugaku": (fugaku, "F-DATA (Fugaku)", {}),
    "marconi": (marconi, "PM100 (Marconi100)", {"never started": 1}),
    "in2p3": (in2p3, "IN2P3 2024", {}),
    "kestrel": (kestrel, "Kestrel", {}),
    "eagle": (eagle, "Eagle", {}),
    "cerit": (cerit, "CERIT's soft wall times", {}),
}  # fmt: skip


def read(shape: str, folder: Path) -> Workload:
    made, name, _ = SHAPES[shape]
    first, *more = made(folder)
    workload, told = read_any(first, more=more)
    assert told.published == name
    return workload


@pytest.mark.parametrize("shape", SHAPES)
def test_every_row_is_read_as_it_was_meant_or_set_aside(shape: str, tmp_path: Path) -> None:
    workload = read(shape, tmp_path)
    found = zip(*(workload[name].tolist() for name in ("submit", "wait", "runtime", "limit", "size")), strict=True)
    assert sorted((a, a + b, c, d, e) for a, b, c, d, e in found) == JOBS
    assert workload.header["UnixStartTime"] == (str(int(BEGAN.timestamp())),)
    assert workload.set_aside.counts() == SHAPES[shape][2]
    assert workload.provenance.lines == len(workload) + len(workload.set_aside)


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_replayed(shape: str, tmp_path: Path) -> None:
    workload = read(shape, tmp_path)
    schedule = replay(workload, policy("easy"))
    assert_valid(schedule)
    assert (schedule.start >= 0).all()


def test_states_and_powers(tmp_path: Path) -> None:
    assert read("theta", tmp_path)["status"].tolist() == [1, 0] * 6
    for shape, good in (("frontier", 0), ("fugaku", 0), ("marconi", 0), ("kestrel", 5)):
        assert read(shape, tmp_path)["status"].tolist() == [1, good] * 6, shape
    assert read("frontier", tmp_path)["power_mw"].tolist() == [500_000] * 12
    assert read("marconi", tmp_path)["power_mw"].tolist() == [1_500_000] * 12
    assert read("fugaku", tmp_path)["power_mw"].tolist() == ([100_000] * 4 + [-1, -1]) * 2
    assert read("cerit", tmp_path)["soft_limit"].tolist() == [row[2] if i % 2 else -1 for i, row in enumerate(JOBS)]


def test_the_command_says_what_it_is_and_what_to_know(tmp_path: Path) -> None:
    one, two = kestrel(tmp_path)
    done = run("workload", "import", str(one), str(two), "-o", str(tmp_path / "kestrel.parquet"))
    assert done.returncode == 0, done.stderr
    assert "By its columns this is Kestrel." in done.stdout
    assert "jobs may share nodes" in done.stdout
    again = json.loads(run("workload", "import", str(one), "-o", str(tmp_path / "k.parquet"), "--json").stdout)
    assert again["understood"]["published"] == "Kestrel"
    assert again["jobs"] == 6


def test_files_of_other_tables_are_refused_together(tmp_path: Path) -> None:
    one, *_ = kestrel(tmp_path)
    other = tmp_path / "other.parquet"
    pl.read_parquet(one).with_columns(submit_time=pl.lit("soon")).write_parquet(other)
    done = run("workload", "import", str(one), str(other), "-o", str(tmp_path / "x.parquet"))
    assert done.returncode == 2
    assert "not of one table" in done.stderr or "is no time" in done.stderr


def test_a_file_is_not_given_twice(tmp_path: Path) -> None:
    one, two = kestrel(tmp_path)
    with pytest.raises(InputError, match="given twice"):
        read_any(one, more=[two, one])


def test_columns_that_are_named_are_believed(tmp_path: Path) -> None:
    """What is known of a published table holds for its own columns only."""
    (path,) = marconi(tmp_path)
    workload, told = read_any(path, {"size": "num_cores_alloc"})
    assert workload.size.tolist() == [128 * row[4] for row in JOBS]
    assert not any("size" in note for note in told.guesses)
    assert read_any(path, {"limit": "time_limit"})[0].limit.tolist() == [row[3] for row in JOBS]
    assert read_any(path, {"limit": "run_time"})[0].limit.tolist() == [row[2] for row in JOBS]
    with pytest.raises(SettingError, match="give size"):
        read_any(path, {"nodes": "num_cores_alloc"})


def test_exit_codes_as_slurm_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("submit,start,end,cores,code\n1,2,9,1,0:0\n2,3,9,1,1:0\n3,4,9,1,0:9\n4,5,9,1,\n5,6,9,1,0\n")
    assert read_any(path, {"exit": "code"})[0]["status"].tolist() == [1, 0, 0, -1, 1]
    path.write_text("submit,start,end,cores,code\n1,2,9,1,fine\n")
    with pytest.raises(InputError, match="is no exit code"):
        read_any(path, {"exit": "code"})


def test_a_table_without_names_is_only_taken_for_one_if_all_of_it_is(tmp_path: Path) -> None:
    (path,) = cerit(tmp_path)
    path.write_text(path.read_text() + "\n17 1 2 3 4\n")
    with pytest.raises(InputError):
        read_any(path)
