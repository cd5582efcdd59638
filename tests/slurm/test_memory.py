"""Records that take more memory than they may: they wait in files, and the workload is the same."""

from __future__ import annotations

import random
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dovetail.errors import SettingError
from dovetail.io.write import write
from dovetail.slurm.history import History, read_history
from dovetail.slurm.kept import NO_NUMBER, NO_PLACE, Kept
from dovetail.slurm.records import FIELDS, Stretch, stretches
from tests.conftest import CASES
from tests.slurm.trap_records import dump, encoded, records

TOKEN = b"~7e1~"


def random_dump(rng: random.Random, many: int) -> bytes:
    """Records with every trap, some of them twice, in any order."""
    known = [[encoded(fields[name]) for name in FIELDS] for fields, _ in records()]
    places = [FIELDS.index(name) for name in ("DBIndex", "JobIDRaw")]
    rows = []
    for at in range(many):
        row = list(rng.choice(known))
        for place in places * (rng.random() < 0.8):
            row[place] = b"%d" % (10**6 + at)
        rows += [row] * rng.choice((1, 1, 1, 2))
    rng.shuffle(rows)
    return dump([[name.encode() for name in FIELDS], *rows], TOKEN, True)


@pytest.mark.parametrize("seed", range(max(CASES // 20, 3)))
def test_how_much_is_in_memory_does_not_matter(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = tmp_path / "dump.txt"
    path.write_bytes(random_dump(rng, 600))
    log, told = read_history(path, zone="Europe/Berlin")
    write(log, tmp_path / "log.parquet")
    for block, memory in ((1 << 22, 1), (4_000, 1), (4_000, 10_000), (40_000, 300_000)):
        less, of_less = read_history(path, zone="Europe/Berlin", block=block, memory=memory)
        write(less, tmp_path / "less.parquet")
        assert (tmp_path / "less.parquet").read_bytes() == (tmp_path / "log.parquet").read_bytes()
        assert (less.provenance, of_less, less.names) == (log.provenance, told, log.names)
        assert less.set_aside.counts() == log.set_aside.counts()
        assert np.array_equal(less.set_aside.line, log.set_aside.line)


def test_no_more_is_held_than_may_be() -> None:
    data = random_dump(random.Random(1), 600)
    with closing(History("dump", memory=40_000)) as history:
        for one in stretches(iter([data]), "dump", 20_000):
            history.add([one])
            assert history.kept.held <= 40_000
        assert all(column.file is not None for column in history.kept.columns.values())


@pytest.mark.parametrize("memory", [1, 2_000, 1 << 30])
def test_columns_come_back(memory: int) -> None:
    """Whatever some records lack, and whether polars knows texts by other numbers in the meantime."""
    rng = random.Random(memory)
    told = list[dict[str, int | str | None]]()
    with closing(Kept(memory)) as kept:
        for _ in range(30):
            names = [name for name in ("a", "b", "text", "other") if rng.random() < 0.8] or ["a"]
            rows: list[dict[str, int | str | None]] = [
                {
                    name: None if rng.random() < 0.2 else rng.randrange(9) if name in "ab" else f"{rng.randrange(40)}"
                    for name in names
                }
                for _ in range(rng.randrange(1, 50))
            ]
            kinds = {name: pl.Int64 if name in "ab" else pl.String for name in names}
            frame = pl.DataFrame(rows, schema=kinds)
            kept.add(frame.with_columns(pl.col(pl.String).cast(pl.Categorical)))
            told += rows
        some = np.array(rng.sample(range(len(told)), 40))
        assert len(kept) == len(told)
        for places in (slice(0, len(told)), slice(3, 90), some):
            wanted = [told[at] for at in np.arange(len(told))[places]]
            for name in "ab":
                expected = [NO_NUMBER if row.get(name) is None else row[name] for row in wanted]
                assert kept.numbers(name, places, NO_NUMBER).tolist() == expected
            for name in ("text", "other"):
                texts = [None if at == NO_PLACE else kept.texts(name)[at] for at in kept.which(name, places).tolist()]
                assert texts == [row.get(name) for row in wanted]
        assert kept.numbers("c", some, 7).tolist() == [7] * 40


def window(*rows: dict[str, str]) -> Stretch:
    """Some records as they are printed, with fields of their own."""
    return Stretch(pl.DataFrame(rows, schema=dict.fromkeys(rows[0], pl.String)))


ONE = {"JobIDRaw": "7", "Submit": "1000", "Start": "1000", "End": "1100", "State": "COMPLETED", "NCPUS": "4"}


@pytest.mark.parametrize("memory", [1, 1 << 30])
def test_windows_that_asked_for_other_fields(memory: int) -> None:
    """The number that people see is the raw one where it was not asked for."""
    with closing(History("dump", memory=memory)) as history:
        history.add([window({**ONE, "JobID": "7", "User": "ann"}, {**ONE, "JobIDRaw": "8", "JobID": "8", "User": "b"})])
        history.add([window(ONE), window({**ONE, "JobIDRaw": "9", "Account": "x"})])
        log, told = history.workload("dump")
    assert (log["id"].tolist(), told.again) == ([7, 8, 9], 1)
    assert [log.called("user", at) for at in log["user"].tolist()] == ["", "b", ""]
    assert [log.called("account", at) for at in log["account"].tolist()] == ["", "", "x"]


def test_every_index_of_a_database_is_another() -> None:
    with closing(History("dump")) as history:
        history.add([window({**ONE, "DBIndex": str(1 << 63)}, {**ONE, "DBIndex": "5"})])
        log, told = history.workload("dump")
    assert (len(log), told.again) == (2, 0)


def test_a_record_with_too_many_nodes_is_set_aside() -> None:
    many = {**ONE, "JobIDRaw": "8", "NNodes": "2000000000", "AllocTRES": "cpu=4", "Exclusive": "NODE"}
    with closing(History("dump")) as history:
        history.add([window({**ONE, "NNodes": "1", "AllocTRES": "cpu=4", "Exclusive": ""}, many)])
        log, _ = history.workload("dump")
    assert (len(log), log.set_aside.counts()) == (1, {"more than 1,000,000,000 nodes": 1})


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with (
        closing(History("dump", memory=1)) as history,
        pytest.raises(SettingError, match=r"No space.*TMPDIR"),
    ):
        history.add([window(ONE)])


def test_many_that_wait_take_no_longer() -> None:
    """Each is looked for among the others once, however few records are looked at together."""
    rows = [{**ONE, "JobIDRaw": str(at), "JobID": f"3_{at}", "State": "PENDING", "Start": "Unknown", "End": "Unknown"}
            for at in range(20_000)]  # fmt: skip
    spent = []
    for memory in (1 << 30, 1 << 20):  # at once, and in 20 pieces
        with closing(History("dump", memory=memory)) as history:
            history.add([window(*rows, {**ONE, "JobID": "1"})])
            began = time.process_time()
            log, _ = history.workload("dump")
            spent.append(time.process_time() - began)
        assert len(log) == 1
    assert spent[1] < 5 * spent[0] + 0.5
