"""Records as a workload: each is a job, or set aside with a reason."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from dovetail.errors import InputError
from dovetail.io.write import write
from dovetail.model.workload import Workload
from dovetail.slurm.history import AGAIN, Understood, is_history, read_history
from dovetail.slurm.records import FIELDS
from tests.slurm.trap_records import AGAIN as AGAIN_FATE
from tests.slurm.trap_records import KEPT, LEFT_OUT, dump, encoded, records

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
    assert log.header["TimeZoneString"] == ("UTC",)


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


def test_each_run_of_a_job_whose_nodes_failed_is_a_job(tmp_path: Path) -> None:
    """Slurm gives it another submission for each run, and another place in its database."""
    runs = [(1000, 1000, 1030, "NODE_FAIL"), (1030, 1100, 1200, "NODE_FAIL"), (1200, 1300, 1400, "COMPLETED")]
    rows = [record("9", 9, *run) for run in runs]
    indexed = [f"{at}|{record('9', 9, 1000, *run[1:])}" for at, run in enumerate(runs, 1)]
    for head, each in ((HEAD, rows), (f"DBIndex|{HEAD}", indexed)):
        log, told = read(tmp_path, *each, *each[:2], head=head)
        assert log["id"].tolist() == [9, 9 + AGAIN, 9 + 2 * AGAIN]
        assert log.runtime.tolist() == [30, 100, 100]
        assert log["status"].tolist() == [0, 0, 1]
        assert (told.records, told.again, len(log.set_aside)) == (3, 2, 0)
        assert any(text.startswith("2 jobs with the number of an earlier one") for text in told.notes)


@pytest.mark.parametrize(("many", "users", "said"), [(100, ("ann",), 1), (99, ("ann",), 0), (100, ("ann", "bob"), 0)])
def test_who_sees_only_their_own_jobs_is_told(tmp_path: Path, many: int, users: tuple[str, ...], said: int) -> None:
    rows = (record(str(n), n, 1000, 1000, 1010, user=users[n % len(users)]) for n in range(many))
    _, told = read(tmp_path, *rows)
    assert sum("all 100 jobs are of one user" in text for text in told.notes) == said


def test_the_same_record_from_two_windows_is_one_and_the_later_counts(tmp_path: Path) -> None:
    log, told = read(tmp_path, record("9", 9, 1000, 1000, "Unknown", "RUNNING"), record("9", 9, 1000, 1000, 1500))
    assert (log.runtime.tolist(), told.again) == ([500], 1)


def test_what_cannot_be_is_set_aside(tmp_path: Path) -> None:
    log, told = read(
        tmp_path, record("1", 1, 1000, 990, 1100), record("2", 2, 1000, 1100, 1090), record("4", 4, 1000, 1000, 1010),
        record("3", 3, 1000, 1000, 1010, asked="", given="node=1"), record("4.batch", 4, 1000, 1000, 1010),
        record("8", 8, 1000, 1000, "Unknown"), record("9", 9, 1000, "soon", 1100), record("10", -10, 1000, 1000, 1100),
        record("11", 11, 1000, "None", 1100, "FAILED"),
    )  # fmt: skip
    assert log["id"].tolist() == [4]
    assert log.set_aside.counts() == {
        "ended before it started": 1, "started before it was submitted": 1,
        "no processors": 1, "ended, and nobody knows when": 1,
        "ended, and nobody knows when it started": 1,
    }  # fmt: skip
    left_out = [text for text in told.notes if "left out" in text]
    assert len(left_out) == 3
    assert any(text.startswith("1 left out: steps of jobs") for text in left_out)
    assert any("such as 'soon'" in text for text in left_out)


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
    with pytest.raises(InputError, match="no job in it; 1 left out: Submit is no time such as"):
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
    head = "JobID|Submit|Start|End|Cluster|State|NCPUS|"
    with pytest.raises(InputError, match="jobs of 2 clusters"):
        read(tmp_path, "1|1|2|3|a|COMPLETED|1|", "2|1|2|3|b|COMPLETED|1|", head=head)
    with pytest.raises(InputError, match="not asked for End"):
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


def test_tasks_and_parts_are_jobs_without_raw_numbers_too(tmp_path: Path) -> None:
    head = "JobID|Submit|Start|End|State|NCPUS"
    rows = [f"{number}|1000|1000|1010|COMPLETED|1" for number in ("3_0", "3_1", "3_2", "5+0", "5+1", "6", "6.batch")]
    log, told = read(tmp_path, *rows, head=head)
    assert (len(log), told.again) == (6, 0)
    assert sorted(log["id"] % AGAIN) == [3, 3, 3, 5, 5, 6]


def test_a_step_does_not_take_the_place_of_its_job(tmp_path: Path) -> None:
    head = "DBIndex|JobID|JobIDRaw|Submit|Start|End|State|NCPUS"
    rows = [f"9|{number}|1000|1000|1010|COMPLETED|4" for number in ("3_1|5", "3_1.batch|5.batch", "3_1.0|5.0")]
    log, _ = read(tmp_path, *rows, head=head)
    assert log["id"].tolist() == [5]


def test_each_size_of_a_resized_job_is_a_record(tmp_path: Path) -> None:
    head = "JobID|JobIDRaw|Submit|Start|End|State|NCPUS"
    log, told = read(tmp_path, "7|7|1000|1000|1100|RESIZING|4", "7|7|1000|1100|1300|COMPLETED|8", head=head)
    assert (log.size.tolist(), log.runtime.tolist(), told.again) == ([4, 8], [100, 200], 0)


def test_an_index_of_the_database_that_says_nothing_is_not_believed(tmp_path: Path) -> None:
    head = "DBIndex|JobIDRaw|Submit|Start|End|State|NCPUS"
    log, _ = read(tmp_path, *(f"0|{n}|1000|1000|1010|COMPLETED|1" for n in range(5)), head=head)
    assert log["id"].tolist() == [0, 1, 2, 3, 4]


def test_resources_that_nobody_counted_are_left_out(tmp_path: Path) -> None:
    given = "cpu=128,energy=18446744073709551614,node=1"
    log, told = read(tmp_path, *(record(str(n), n, 1000, 1000, 1010, given=f"{given},billing=x{n}") for n in range(9)))
    assert any("and 8 texts more" in text for text in told.notes)
    log, _ = read(tmp_path, record("1", 1, 1000, 1000, 1010, given=given))
    assert log.size.tolist() == [128]


def test_the_later_hour_only_where_the_job_asks_for_it(tmp_path: Path) -> None:
    """Who left before the start has no start to go by; a suspension is no part of Elapsed."""
    head = "JobID|Submit|Start|End|State|Elapsed|Suspended|NCPUS"
    rows = [
        "1|2026-10-25T01:50:00|Unknown|2026-10-25T02:10:00|CANCELLED by 1|00:00:00|00:00:00|4",
        "2|2026-10-25T01:50:00|2026-10-25T02:10:00|2026-10-25T03:10:00|COMPLETED|01:00:00|01:00:00|4",
    ]
    log, _ = read(tmp_path, *rows, head=head, zone="Europe/Berlin")
    assert log["leaves_s"].tolist() == [1200, -1]
    assert (log["wait"].tolist(), log.runtime.tolist()) == ([-1, 1200], [-1, 7200])


def test_names_of_who_is_set_aside_are_not_kept(tmp_path: Path) -> None:
    log, _ = read(
        tmp_path, record("1", 1, 1000, 1000, 1010, user="none", name="a\x01"),
        record("3", 3, 1000, 1000, 1010, name="a\x02"),
        record("2", 2, 1000, 1000, "Unknown", "RUNNING", user="secretbob"),
    )  # fmt: skip
    assert log.names["user"] == ("ann", "none")
    assert log.names["name"] == ("a�",)


def test_without_a_word_on_nodes_their_number_is_unknown(tmp_path: Path) -> None:
    head = "JobID|Submit|Start|End|State|NCPUS"
    log, told = read(tmp_path, "1|1000|1000|1010|COMPLETED|1", "2|1000|1000|1010|COMPLETED|9", head=head)
    assert (log["shape"].tolist(), log["units"].tolist(), log["unit_cores"].tolist()) == ([0, 2], [1, 9], [1, 1])
    assert any("not asked for NNodes" in text for text in told.missing)


@pytest.mark.parametrize(
    ("text", "whose"),
    [
        (b"JobID|Submit|State\n", True), (b"\xef\xbb\xbfUser~JobIDRaw~Submit~\n", True), (b"\n {}", True),
        (b"JobID,Submit,State\n", False), (b"User|Submit|Start|End|cores\n", False), (b"PAR1", False), (b"", False),
        (b"JobID" + b"|" * (1 << 20) + b"\n", False),
    ],
)  # fmt: skip
def test_whose_file_it_is(tmp_path: Path, text: bytes, whose: bool) -> None:
    (tmp_path / "file").write_bytes(text)
    assert is_history(tmp_path / "file") is whose
    assert not is_history(tmp_path)


def test_why_jobs_waited(tmp_path: Path) -> None:
    """`None` is no reason; what is foreign speaks to no terminal."""
    head = HEAD.replace("Suspended|", "Suspended|Reason|")
    some = [
        record(str(n), n, 1000, 1000, 1100, suspended=f"00:00:00|{why}")
        for n, why in enumerate(("None", "Dependency", "", "\x1b[31mBad", "Dependency"), 1)
    ]
    log, _ = read(tmp_path, *some, head=head)
    called = [log.called("reason", number) for number in log["reason"].tolist()]
    assert called == ["", "Dependency", "", "\N{REPLACEMENT CHARACTER}[31mBad", "Dependency"]


@pytest.mark.parametrize("form", ["txt", "json"])
def test_why_recorded_jobs_waited(form: str) -> None:
    """As `sacct` printed them: 26 tasks waited for others of their array."""
    log, _ = read_history(RECORDED / f"26.05.{form}.xz")
    many = Counter(log.called("reason", number) for number in log["reason"].tolist())
    assert many == {"": 160, "JobArrayTaskLimit": 26, "BeginTime": 10, "Dependency": 5, "JobHeldUser": 5}


def test_every_trap(tmp_path: Path) -> None:
    """Each record of a dump by hand is kept, set aside, left out, or the same once more, as it is written there."""
    made = records()
    rows = [[encoded(fields[name]) for name in FIELDS] for fields, _ in made]
    rows[1:1] = [rows[0][:-3], [*rows[0], b"more"]]  # left out, too
    (tmp_path / "dump.txt").write_bytes(dump([[name.encode() for name in FIELDS], *rows], b"~7e1~", True))
    log, told = read_history(tmp_path / "dump.txt", zone="Europe/Berlin")
    fates = Counter(fate for _, fate in made)
    assert (len(log), told.again) == (fates.pop(KEPT), fates.pop(AGAIN_FATE))
    left_out = sum(step.removed for step in log.provenance.steps if step.name.startswith("records left out"))
    assert left_out == fates.pop(LEFT_OUT) + 2
    assert log.set_aside.counts() == fates
    assert told.records == log.provenance.lines == len(log) + len(log.set_aside)
    shown = [text for texts in log.names.values() for text in texts]
    assert all(text.isprintable() for text in (*shown, *told.notes, *told.missing))
    assert set(shown) >= {"a|b", "two�lines", "�[31mred�[0m", "�gnp.exe"}
