"""Anonymized workloads: nothing of the names stays, everything of the schedule does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dovetail as dt
from dovetail.model.workload import Provenance, Step, Workload
from dovetail.workloads.anonymize import anonymize
from dovetail.workloads.filters import users
from tests.command import run

KEY = b"a secret of enough bytes"
JOBS = """JobID,User,Account,JobName,Partition,Submit,Start,End,NCPUS,Timelimit
901,alice,physics,secret-plan,batch,2024-01-01T00:00:00,2024-01-01T00:10:00,2024-01-01T01:00:00,4,2:00:00
905,bob,physics,run,batch,2024-01-01T00:01:00,2024-01-01T00:11:00,2024-01-01T01:00:00,2,2:00:00
907,alice,chemistry,run,long,2024-01-01T00:02:00,2024-01-01T00:12:00,2024-01-01T01:00:00,1,2:00:00
"""


def made() -> Workload:
    columns = {
        "id": [5, 9, 12], "submit": [0, 1, 2], "size": [1, 2, 1], "runtime": [5, 5, 5], "limit": [9, 9, 9],
        "user": [1, 0, 1], "group": [7, 7, 3], "after": [-1, 5, 99], "queue": [0, 0, 1],
    }  # fmt: skip
    return Workload(
        "the-site", {name: np.array(row) for name, row in columns.items()}, 4, Provenance("alice.csv", "abc", 3),
        header={
            "Installation": ("a site",), "MaxProcs": ("4",), "": ("by bob",),
            "MaxQueues": ("2\nqueue 1 is of alice@example.org",), "TimeZoneString": ("Europe/Berlin",),
        },
        names={"user": ("alice", "bob"), "queue": ("short", "long")},
    )  # fmt: skip


def test_the_same_name_gets_the_same_pseudonym_under_the_same_key_only() -> None:
    one, again, other = (anonymize(made(), key)[0] for key in (KEY, KEY, b"another secret of bytes"))
    assert one.digest() == again.digest()
    assert set(one.names["user"]).isdisjoint(other.names["user"])
    who = [one.called("user", number) for number in one["user"].tolist()]
    assert who[0] == who[2] != who[1]
    assert len(set(one["group"].tolist())) == 2
    assert one["group"][0] == one["group"][1] != one["group"][2]
    assert max(one["group"]) == 1  # a number without a name is replaced too


def test_what_names_somebody_is_gone_and_what_a_replay_reads_stays() -> None:
    log, changed = anonymize(made(), KEY)
    assert log["id"].tolist() == [1, 2, 3]
    assert log["after"].tolist() == [-1, 1, -1]
    assert log.header == {"MaxProcs": ("4",), "TimeZoneString": ("Europe/Berlin",)}
    assert "header: MaxProcs, TimeZoneString" in changed.kept
    assert "queue: short, long" in changed.kept
    assert (log.name, log.provenance.source, log.provenance.sha256) == ("anonymized", "anonymized", "")
    assert log.names["queue"] == ("short", "long")
    assert np.array_equal(dt.replay(log, "strict-fcfs").start, dt.replay(made(), "strict-fcfs").start)
    assert "user: 2 replaced by pseudonyms" in changed.replaced
    assert any("Installation" in text for text in changed.replaced)


def test_whom_a_filter_named_is_not_told() -> None:
    log, _ = anonymize(users(made(), exclude=(1,)), KEY)
    assert next(step.name for step in log.provenance.steps) == "user is some"
    assert set(log.set_aside.counts()) == {"user is some"}
    assert "line" not in anonymize(made().with_columns(Step("x"), line=np.array([7, 8, 9])), KEY)[0]


@pytest.mark.parametrize("suffix", ["parquet", "csv", "swf"])
def test_no_byte_of_a_name_is_in_the_file(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "alice.csv").write_text(JOBS)
    (tmp_path / "key").write_bytes(KEY)
    out = tmp_path / f"out.{suffix}"
    done = run("workload", "import", tmp_path / "alice.csv", "-o", out, "--anonymize", "--key", tmp_path / "key")
    assert done.returncode == 0, done.stderr
    for word in (b"alice", b"bob", b"physics", b"chemistry", b"secret-plan"):
        assert word not in out.read_bytes(), word
        assert word.decode() not in done.stdout.replace("alice.csv", "")
    assert "job name: 2 replaced by pseudonyms" in done.stdout
    assert "partition: batch, long" in done.stdout


def test_a_key_that_can_be_guessed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "key").write_text("short")
    asked = ("workload", "import", tmp_path / "jobs.csv", "-o", tmp_path / "out.csv")
    done = run(*asked, "--anonymize", "--key", tmp_path / "key")
    assert done.returncode == 2
    assert "can be guessed" in done.stderr
    assert run(*asked, "--key", tmp_path / "key").returncode == 2
