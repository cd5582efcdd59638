"""Records as a workload: each is a job, or set aside with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.errors import InputError
from dovetail.io.write import write
from dovetail.model.workload import Workload
from dovetail.slurm.history import AGAIN, Understood, read_history

HEAD = "JobID|JobIDRaw|Submit|Eligible|Start|End|State|TimelimitRaw|ReqTRES|AllocTRES|NodeList|User|Suspended|JobName|"
RECORDED = Path(__file__).parent / "recorded"
ONE = "cpu=1,mem=1000M,node=1"


def record(
    number: str, raw: int, submit: int, start: int | str, end: int | str, state: str = "COMPLETED", eligible: int = 0,
    limit: str = "5", asked: str = ONE, given: str = ONE, nodes: str = "c1", user: str = "ann", name: str = "run",
    suspended: str = "00:00:00",
) -> str:  # fmt: skip
    texts = [
        number,
        raw,
        submit,
        eligible or submit,
        start,
        end,
        state,
        limit,
        asked,
        given,
        nodes,
        user,
        suspended,
        name,
    ]
    return "|".join(map(str, texts)) + "|"


def read(folder: Path, *records: str, head: str = HEAD, zone: str = "UTC") -> tuple[Workload, Understood]:
    path = folder / "dump.txt"
    path.write_text("\n".join((head, *records, "")))
    return read_history(path, zone=zone)


def test_times_are_from_the_first_submission_on(tmp_path: Path) -> None:
    log, _ = read(tmp_path, record("2", 2, 1000, 1060, 1160, eligible=1030), record("1", 1, 990, 990, 1000))
    assert (log["id"].tolist(), log.submit.tolist(), log["wait"].tolist()) == ([1, 2], [0, 10], [0, 60])
    assert (log.runtime.tolist(), log.limit.tolist()) == ([10, 100], [300, 300])
    assert log["not_before_s"].tolist() == [0, 30]
    assert log.header["UnixStartTime"] == ("990",)


def test_who_was_cancelled_before_the_start_leaves(tmp_path: Path) -> None:
    """22.05 may give such a job a start: it was given nothing."""
    gone = [
        record(str(n), n, 1000, start, 1100, "CANCELLED by 7", given="", nodes="None assigned")
        for n, start in ((1, "None"), (2, 1100))
    ]
    log, told = read(tmp_path, *gone, record("3", 3, 1000, 1000, 1100))
    assert log["leaves_s"].tolist() == [100, 100, -1]
    assert log.runtime.tolist() == [-1, -1, 100]
    assert log["wait"].tolist() == [-1, -1, 0]
    assert log["status"].tolist() == [5, 5, 1]
    assert any(text.startswith("2 jobs cancelled") for text in told.notes)


def test_what_waits_and_runs_is_set_aside(tmp_path: Path) -> None:
    log, told = read(
        tmp_path, record("3_1", 3, 1000, "Unknown", "Unknown", "PENDING", given="", nodes="None assigned"),
        record("3_1", 4, 1000, 1010, "Unknown", "RUNNING"),
        record("5", 5, 1000, "Unknown", "Unknown", "PENDING", given="", nodes="None assigned"),
        record("6", 6, 1000, 1000, 1001),
    )  # fmt: skip
    assert log["id"].tolist() == [6]
    assert log.set_aside.counts() == {
        "what waits of an array, whose tasks have records of their own": 1,
        "still waited when the records were read": 1, "still ran when the records were read": 1,
    }  # fmt: skip
    assert told.records == len(log) + len(log.set_aside) == log.provenance.lines


def test_each_run_of_a_requeued_job_is_a_job(tmp_path: Path) -> None:
    log, told = read(tmp_path, record("9", 9, 1000, 1000, 1030, "REQUEUED"), record("9", 9, 1030, 1150, 1200))
    assert log["id"].tolist() == [9, 9 + AGAIN]
    assert log.runtime.tolist() == [30, 50]
    assert any(text.startswith("1 job requeued") for text in told.notes)
    write(log, tmp_path / "jobs.parquet")  # numbers differ


def test_the_same_record_from_two_windows_is_one_and_the_later_counts(tmp_path: Path) -> None:
    log, told = read(tmp_path, record("9", 9, 1000, 1000, "Unknown", "RUNNING"), record("9", 9, 1000, 1000, 1500))
    assert (log.runtime.tolist(), told.again) == ([500], 1)


def test_what_cannot_be_is_set_aside(tmp_path: Path) -> None:
    log, _ = read(
        tmp_path, record("1", 1, 1000, 990, 1100), record("2", 2, 1000, 1100, 1090), record("4", 4, 1000, 1000, 1010),
        record("3", 3, 1000, 1000, 1010, asked="", given="node=1"), record("5.batch", 5, 1000, 1000, 1010),
    )  # fmt: skip
    assert log["id"].tolist() == [4]
    assert log.set_aside.counts() == {
        "a step of a job, not a job": 1, "ended before it started": 1, "started before it was submitted": 1,
        "no processors": 1,
    }  # fmt: skip


def test_shapes(tmp_path: Path) -> None:
    whole = "cpu=16,mem=64000M,node=1,gres/gpu=2,gres/gpu:a100=2"
    log, told = read(
        tmp_path, record("1", 1, 1000, 1000, 1010, given=whole),
        record("2", 2, 1000, 1000, 1010, asked="cpu=8,mem=8G,node=2", given="cpu=8,mem=8G,node=2"),
        record("3", 3, 1000, 1000, 1010, asked="cpu=64,node=1", given="cpu=64,node=5", nodes="c[1-4],f1"),
        record("4", 4, 1000, 1000, 1010, asked="cpu=9,node=2", given="cpu=9,node=2", nodes="c[1-2]"),
    )  # fmt: skip
    assert log["units"].tolist() == [1, 2, 64, 9]
    assert log["unit_cores"].tolist() == [16, 4, 1, 1]
    assert log["unit_memory_mb"].tolist() == [64000, 4096, 0, 0]
    assert log["unit_gpus"].tolist() == [2, 0, 0, 0]  # not four
    assert log["shape"].tolist() == [0, 1, 1, 2]
    assert told.shapes == {"told": 1, "inferred": 2, "unknown": 1}


def test_limits(tmp_path: Path) -> None:
    texts = ("60", "UNLIMITED", "Partition_Limit", "")
    log, _ = read(tmp_path, *(record(str(n), n, 1000, 1000, 1010, limit=text) for n, text in enumerate(texts)))
    assert log.limit.tolist() == [3600, -1, -1, -1]
    head = HEAD.replace("TimelimitRaw", "Timelimit")
    log, _ = read(tmp_path, record("1", 1, 1000, 1000, 1010, limit="1-02:03:00"), head=head)
    assert log.limit.tolist() == [93780]


def test_written_times_are_of_a_zone(tmp_path: Path) -> None:
    """In the night of 25 October 2026 clocks of Berlin show the hour from two to three twice."""
    head = "JobID|Submit|Start|End|State|Elapsed|NCPUS"
    rows = [
        "1|2026-10-25T01:50:00|2026-10-25T02:10:00|2026-10-25T02:40:00|COMPLETED|01:30:00|4",
        "2|2026-10-25T02:30:00|2026-10-25T02:10:00|2026-10-25T02:20:00|COMPLETED|00:10:00|4",
        "3|2026-03-29T02:30:00|2026-03-29T03:10:00|2026-03-29T03:20:00|COMPLETED|00:10:00|4",
    ]
    log, told = read(tmp_path, *rows, head=head, zone="Europe/Berlin")
    assert log.runtime.tolist() == [5400, 600]
    assert log["wait"].tolist() == [1200, 2400]
    assert log.set_aside.counts() == {"a time that the clock skipped in spring": 1}
    assert any("eligible" in text for text in told.missing)
    with pytest.raises(InputError, match="is no time such as"):
        read(tmp_path, rows[0].replace("2026-10-25T01:50:00", "yesterday"), head=head)


def test_hostile_names_are_harmless(tmp_path: Path) -> None:
    log, _ = read(tmp_path, record("1", 1, 1000, 1000, 1010, name="\x1b[31m<b>", user="=cmd()"))
    assert [log.called("name", 0), log.called("user", 0)] == ["�[31m<b>", "=cmd()"]
    write(log, tmp_path / "jobs.csv")
    assert ",=cmd" not in (tmp_path / "jobs.csv").read_text()


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no job in it"):
        read(tmp_path)
    with pytest.raises(InputError, match=r"no record can be kept \(1: still ran"):
        read(tmp_path, record("1", 1, 1000, 1010, "Unknown", "RUNNING"))
    with pytest.raises(InputError, match="jobs of 2 clusters"):
        read(tmp_path, "1|1|a|COMPLETED|1|", "2|1|b|COMPLETED|1|", head="JobID|Submit|Cluster|State|NCPUS|")
    with pytest.raises(InputError, match="not asked for Start"):
        read(tmp_path, "1|1|COMPLETED|1|", head="JobID|Submit|State|NCPUS|")
    with pytest.raises(InputError, match="no dump"):
        read_history(tmp_path)


def test_what_26_05_printed() -> None:
    """The jobs of traps.py on a Slurm 26.05, recorded: as sacct printed them, and as JSON."""
    plain, told = read_history(RECORDED / "26.05.txt.xz")
    other, _ = read_history(RECORDED / "26.05.json.xz")
    assert (len(plain), told.records, told.shapes) == (206, 206, {"told": 192, "inferred": 14, "unknown": 0})
    assert plain.digest() == other.digest()
    whole = (plain["exclusive"] > 0) & (plain["wait"] >= 0)
    assert plain["unit_cores"][whole].tolist() == [1, 2, 3, 4, 5, 1]  # what was asked; they were given all
    assert set(plain.size[whole].tolist()) == {16, 160}
