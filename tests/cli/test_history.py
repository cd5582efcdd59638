"""`dovetail history`: in the terminal, as JSON, as tables and as a page."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from dovetail.io.write import write
from dovetail.model.workload import Workload
from tests.command import run
from tests.metrics.test_history import some_log

RECORDED = Path(__file__).parent.parent / "slurm" / "recorded" / "26.05.txt.xz"


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Slurm's accounting."""
    path = tmp_path_factory.mktemp("history") / "jobs.parquet"
    made = run("workload", "import-slurm", RECORDED, "-o", path, "--processors", "160")
    assert not made.returncode, made.stderr
    return path


def test_it_fits_the_terminal(imported: Path) -> None:
    done = run("history", imported, "--tz", "Europe/Berlin")
    assert not done.returncode, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout
    for words in (
        "2026-11-18 22:24 to 2026-11-18 22:41 (Europe/Berlin)", "201 jobs ran for 8 core hours on 160 cores",
        "from its submission", "JobArrayTaskLimit", "as many tasks of its array ran", "up to 15 m",
        "5 jobs: left the queue before it started", "of the nodes",
    ):  # fmt: skip
        assert words in " ".join(done.stdout.split()), words


def test_wide_shows_both_waits(imported: Path) -> None:
    narrow, wide = (run("history", imported, *more).stdout for more in ((), ("--wide",)))
    assert "--wide adds those since submission" in narrow
    assert wide.count("longest") > narrow.count("longest")
    assert "No room" not in wide


def test_json_has_all_of_it(imported: Path) -> None:
    done = run("history", imported, "--json")
    told = json.loads(done.stdout)
    assert (told["waits"][0]["jobs"], told["processors"], told["zone"]) == (201, 160, "UTC")
    assert {row["group"]: row["jobs"] for row in told["waits"] if row["by"] == "reason"} == {
        "None": 155, "BeginTime": 10, "JobArrayTaskLimit": 26, "Dependency": 5, "JobHeldUser": 5,
    }  # fmt: skip
    assert told["longest"][1]["meaning"] == "was held by its user"
    assert told["set_aside"] == [{"jobs": 5, "why": "left the queue before it started"}]


def test_a_page_and_tables(imported: Path, tmp_path: Path) -> None:
    done = run("history", imported, "--out", tmp_path / "page.html", "--csv", tmp_path / "new" / "tables", "--json")
    assert not done.returncode, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["page"] == str(tmp_path / "page.html")
    assert "Waits by partition" in (tmp_path / "page.html").read_text()
    names = {path.name for path in (tmp_path / "new" / "tables").iterdir()}
    assert names == {f"{name}.csv" for name in
                     ("waits", "limits", "limit_use", "over_time", "longest", "set_aside")}  # fmt: skip


def test_names_are_no_formulas_and_speak_to_no_terminal(tmp_path: Path) -> None:
    log = some_log(3)
    users = ("=1+1", "+2", "-3", "@x", "[red]x[/red]", "\x1b[31mred")
    write(Workload("bad", log.columns, 128, names={**log.names, "user": users}), tmp_path / "bad.parquet")
    done = run("history", tmp_path / "bad.parquet", "--csv", tmp_path / "tables")
    assert not done.returncode, done.stderr
    assert "[red]x[/red]" in done.stdout
    assert "\x1b" not in done.stdout
    with (tmp_path / "tables" / "waits.csv").open(newline="") as stream:
        found = {row["group"] for row in csv.DictReader(stream) if row["by"] == "user"}
    assert {"'=1+1", "'+2", "'-3", "'@x", "[red]x[/red]", "\N{REPLACEMENT CHARACTER}[31mred"} <= found


def test_the_machine_is_that_of_the_cluster(tmp_path: Path) -> None:
    log = some_log(3)
    write(log, tmp_path / "log.parquet")
    (tmp_path / "gpus.toml").write_text('name = "here"\n[[nodes]]\nkind = "n"\ncount = 4\ncores = 32\ngpus = 2\n')
    done = run("history", tmp_path / "log.parquet", "--cluster", tmp_path / "gpus.toml")
    assert "of the GPUs" in " ".join(done.stdout.split()), done.stderr
    assert "on 64 cores" in run("history", tmp_path / "log.parquet", "--processors", "64").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing.swf",), "no such file"),
        ((str(RECORDED),), ""),
        (("LOG", "--tz", "Mars"), "no time zone"),
        (("LOG", "--processors", "4", "--cluster", "eurora"), "the nodes say how many"),
        (("LOG", "--top", "0"), "greater than or equal to 1"),
    ],
)
def test_what_cannot_be_is_one_line(imported: Path, words: tuple[str, ...], said: str) -> None:
    done = run("history", *(str(imported) if word == "LOG" else word for word in words))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert said.lower() in done.stderr.lower()


def test_lists_of_nodes_without_end_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dovetail.cli.history.MOST_NODES", 100_000)
    log = some_log(3)
    names = {**log.names, "ran_on": tuple(f"n{at}x[1-9000]" for at in range(30))}
    write(Workload("wide", log.columns, 128, names=names), tmp_path / "wide.parquet")
    done = run("history", tmp_path / "wide.parquet")
    assert "of the nodes" not in done.stdout
    assert "on which nodes jobs ran" in " ".join(done.stdout.split()), done.stderr
