"""`dovetail workload import-slurm`, from what a real sacct printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dovetail.io.read import read_workload
from tests.command import run

RECORDED = Path(__file__).parent.parent / "slurm" / "recorded" / "26.05.txt.xz"


def test_it_says_what_was_understood(tmp_path: Path) -> None:
    made = run("workload", "import-slurm", RECORDED, "-o", tmp_path / "jobs.parquet", "--processors", "160")
    assert not made.returncode, made.stderr
    text = " ".join(made.stdout.split())
    assert "what jobs ask of nodes: 192 told, 14 inferred, 0 unknown" in text
    assert "206 read = 206 kept + 0 set aside" in text
    assert "5 jobs requeued: each run is a job" in text
    assert max(map(len, made.stdout.splitlines())) <= 80
    assert "dovetail compare" in made.stderr
    assert len(read_workload(tmp_path / "jobs.parquet")) == 206


def test_as_json_and_without_identities(tmp_path: Path) -> None:
    words = ("-o", tmp_path / "jobs.parquet", "--json", "--anonymize")
    told = json.loads(run("workload", "import-slurm", RECORDED, *words).stdout)
    assert told["understood"]["shapes"] == {"told": 192, "inferred": 14, "unknown": 0}
    assert (told["jobs"], told["understood"]["records"]) == (206, 206)
    log = read_workload(tmp_path / "jobs.parquet")
    assert not {"root", "daemon"} & {name for names in log.names.values() for name in names}


def test_a_replay_of_it(tmp_path: Path) -> None:
    run("workload", "import-slurm", RECORDED, "-o", tmp_path / "jobs.parquet", "--processors", "160")
    done = run("replay", tmp_path / "jobs.parquet", "--policy", "recorded", "--json")
    assert not done.returncode, done.stderr
    assert (
        json.loads(done.stdout.splitlines()[0])["jobs"] == 200
    )  # without five that were cancelled, and one without a limit


def test_import_hands_over_what_sacct_printed(tmp_path: Path) -> None:
    """Both commands say the same of it, and make the same of it: with bars, with any delimiter, and as JSON."""
    head = "JobID|Submit|Start|End|State|NCPUS|JobName"
    rows = (
        '1|100|110|160|COMPLETED|4|"a',
        "2|100|Unknown|160|CANCELLED|4|",
        "3|100|Unknown|Unknown|PENDING|4|b|",
    )
    bars = tmp_path / "bars.txt"
    bars.write_text("\n".join((head, *rows, "")))
    for source in (bars, RECORDED, RECORDED.with_name("26.05.json.xz")):
        made = []
        for verb in ("import", "import-slurm"):
            done = run("workload", verb, source, "-o", tmp_path / "jobs.parquet")
            assert not done.returncode, done.stderr
            made.append((done.stdout, done.stderr, read_workload(tmp_path / "jobs.parquet").digest()))
        assert made[0] == made[1]
        assert "shapes" in made[0][0]
    refused = run("workload", "import", bars, "-o", tmp_path / "jobs.parquet", "--columns", "size=NCPUS")
    assert "the fields of sacct have their names" in refused.stderr
    table = tmp_path / "table.csv"
    table.write_text("\n".join((head, *rows[:1], "")).replace("|", ",").replace('"a', '"a,b"'))
    assert "understood" in run("workload", "import", table, "-o", tmp_path / "jobs.parquet").stdout
    assert read_workload(tmp_path / "jobs.parquet").names["name"] == ("a,b",)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-o", "x.parquet"), "name a dump, or ask sacct with --from"),
        ((RECORDED,), "give --out"),
        (("-o", "x.parquet", "--from", "2026-01-01"), "give --dump FOLDER"),
        (("-o", "x.parquet", "--from", "soon", "--dump", "d"), "is no day such as 2026-01-31"),
        (("-o", "x.parquet", "--from", "2026-01-01", "--dump", "d", "--window", "0"), "must be a second at least"),
        (("-o", "x.parquet", "--from", "2026-01-01", "--dump", "d", "--window", "x"), "is not a duration"),
        (("-o", "x.parquet", "--from", "2026-01-01", "--dump", "d", "--anonymize"), "--anonymize keeps no dump"),
        (("-o", "x.parquet", "--from", "2026-01-01", "--dump", "d"), "there is no sacct on this machine"),
        ((RECORDED, "-o", "x.parquet", "--tz", "Mars"), "no time zone"),
        (("nothing.txt", "-o", "x.parquet"), "no such file"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str | Path, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("workload", "import-slurm", *words, env={"PATH": str(tmp_path)})
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())


def test_the_line_for_who_may_run_it(tmp_path: Path) -> None:
    words = ("--print-command", "--from", "2026-01-01", "--to", "2026-02-01", "--submit-lines")
    done = run("workload", "import-slurm", *words, env={"PATH": str(tmp_path)})
    assert done.stdout.startswith("umask 077; env TZ=UTC SLURM_TIME_FORMAT=%s ")
    for word in ("--starttime 2026-01-01T00:00:00", "--endtime 2026-02-01T00:00:00", ",SubmitLine", "> dump.txt"):
        assert word in done.stdout


def test_the_policy_of_a_machine(tmp_path: Path) -> None:
    """What a Slurm says of itself becomes a policy by its settings, and what that leaves out is told."""
    machine, out = RECORDED.with_name("machine-24.11"), tmp_path / "c.toml"
    made = json.loads(run("cluster", "import-slurm", machine, "-o", out, "--json").stdout)
    assert made["policy"] == f"slurm:conf={tmp_path / 'c.slurm.json'}"
    shown = run("policies", made["policy"])
    assert not shown.returncode, shown.stderr
    run("workload", "import-slurm", RECORDED, "-o", tmp_path / "jobs.parquet", "--cluster", out)
    done = run("replay", tmp_path / "jobs.parquet", "--cluster", out, "--policy", made["policy"], "--json")
    assert not done.returncode, done.stderr
    conf = tmp_path / "slurm.conf"
    conf.write_text((machine / "slurm.conf").read_text() + "\nSchedulerType=sched/builtin\n")
    made = json.loads(run("cluster", "import-slurm", conf, "-o", out, "--json").stdout)
    assert not made["policy"]
    assert any("only sched/backfill" in note for note in made["notes"])
