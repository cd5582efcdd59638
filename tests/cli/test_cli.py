"""The command line as a person uses it: output and exit codes."""

from __future__ import annotations

import functools
import http.server
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dovetail.io.read import read_workload
from dovetail.optimize.window.bounds import workload_bounds
from dovetail.policies.lists import ORDERS
from dovetail.policies.registry import families, names, policy, use_of
from dovetail.workloads.filters import clean
from tests.command import COMMAND, run
from tests.conftest import TRACES, needs_traces


def in_a_process(*args: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """For what happens before or below Python code of ours: imports, memory."""
    command = [str(COMMAND), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(env or {})}, timeout=300)


def lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trace") / "made.swf.gz"
    made = run("workload", "generate", path, "--jobs", "400", "--processors", "64", "--load", "0.9", "--seed", "3")
    assert made.returncode == 0, made.stderr
    return path


@pytest.mark.slow
def test_replay_prints_one_object_per_run_with_all_fields(trace: Path) -> None:
    rows = lines(run("replay", trace, "--policy", "easy", "--policy", "list-reg", "--estimate", "runtime", "--json"))
    assert [row["policy"] for row in rows] == ["easy", "list-reg"]
    for row in rows:
        assert row["trace"] == "made"
        assert row["estimate"] == "runtime"
        assert row["jobs"] == 400
        assert row["processors"] == 64
        assert row["passes"] > 400
        assert set(row["cpu_s"]) == {"read", "replay"}
        assert row["peak_mb"] > 10
        wanted = {"bsld", "af_s", "awf_s", "p2sf_s", "mean_wait_s", "max_wait_s", "utilization"}
        assert wanted <= set(row["metrics"])
        assert all(row["metrics"][name] > 0 for name in wanted)


@pytest.mark.slow
def test_the_table_marks_the_best_and_names_units(trace: Path) -> None:
    done = run("replay", trace, "-p", "strict-fcfs", "-p", "easy")
    assert done.returncode == 0, done.stderr
    assert "400 jobs" in done.stderr
    assert "mean wait" in done.stdout
    row = next(line for line in done.stdout.splitlines() if " easy " in line)
    assert row.count("*") >= 2
    assert "Changes are against strict-fcfs." in done.stdout
    assert "No room for" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    wide = run("replay", trace, "-p", "strict-fcfs", "-p", "easy", "--wide")
    assert "loss of" in wide.stdout
    assert "No room for" not in wide.stdout


IDLE = """
from dataclasses import dataclass
import dovetail as dt

@dataclass(frozen=True)
class Idle(dt.Policy):
    name: str = "idle"
    def decide(self, state):
        small = [int(job) for job in state.waiting if state.size[job] < 4]
        return dt.Plan(starts=small[:1] if state.free >= 4 else [])
"""


def test_a_policy_that_never_starts_some_jobs_is_best_in_nothing(trace: Path, tmp_path: Path) -> None:
    """It waits least, as those who wait for ever are not counted: the tables say so, and the exit code."""
    (tmp_path / "idle.py").write_text(IDLE)
    idle = f"{tmp_path / 'idle.py'}:Idle"
    found = run("replay", trace, "-p", "easy", "-p", idle, "-p", "sjf-easy", "--json")
    rows = {row["policy"]: row["metrics"] for row in map(json.loads, found.stdout.splitlines())}
    many, jobs = rows["idle"]["jobs_unstarted"], rows["idle"]["jobs"]
    assert found.returncode == 3
    assert 0 < many < jobs
    assert rows["idle"]["mean_wait_s"] < rows["easy"]["mean_wait_s"]
    shown = run("replay", trace, "-p", "easy", "-p", idle, "-p", "sjf-easy")
    assert shown.returncode == 3
    assert f"idle never started {many} of {jobs} jobs: its numbers are of the others alone" in shown.stderr
    text = shown.stdout.splitlines()
    at = next(n for n, line in enumerate(text) if line.strip().startswith("idle"))
    assert "*" not in text[at]
    assert "%" not in text[at + 1]
    assert " ".join(f"{text[at + 1]} {text[at + 2]}".split()).startswith(f"never started {many} of {jobs} jobs")
    page = run("compare", trace, "easy", idle, "--no-open", "-o", tmp_path / "page.html")
    assert page.returncode == 3
    assert f"never started {many} of {jobs} jobs" in (tmp_path / "page.html").read_text()
    assert "% less" not in (tmp_path / "page.html").read_text()
    study = f'policies = ["easy", "{idle}"]\n[[traces]]\npath = "{trace}"\n'
    (tmp_path / "study.toml").write_text(f'name = "one"\nbaseline = "easy"\n{study}')
    store, report = tmp_path / "study.store", tmp_path / "r.html"
    for args in (
        ("study", "run", tmp_path / "study.toml"),
        ("study", "results", store),
        ("report", store, "-o", report),
    ):
        done = run(*args)
        assert (done.returncode, f"never started {many} of {jobs} jobs" in done.stderr) == (3, True), done.stderr
    assert f"never started {many} of {jobs} jobs" in report.read_text()


def test_the_schedule_out_holds_the_simulated_waits(trace: Path, tmp_path: Path) -> None:
    import polars as pl

    row = lines(run("replay", trace, "-p", "easy", "--out", tmp_path / "out", "--json"))[0]
    files = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert files == ["made.easy.limit.parquet", "made.easy.limit.swf.gz"]
    frame = pl.read_parquet(tmp_path / "out" / files[0])
    waits = frame["wait"].to_numpy()
    assert waits.mean() == pytest.approx(row["metrics"]["mean_wait_s"], rel=1e-12)
    assert (frame["end"] - frame["start"] == frame["runtime"]).all()
    log = read_workload(tmp_path / "out" / files[1])
    assert np.array_equal(log["wait"], waits)


def test_the_same_command_gives_the_same_numbers(trace: Path, tmp_path: Path) -> None:
    outs = []
    for name in ("a", "b"):
        row = lines(run("replay", trace, "-p", "list-saf", "--out", tmp_path / name, "--json"))[0]
        outs.append((row["metrics"], (tmp_path / name / "made.list-saf.limit.swf.gz").read_bytes()))
    assert outs[0] == outs[1]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--policy", "esay"), "no policy 'esay'; did you mean easy?\n"),
        (("--policy", "shiny"), "`dovetail policies` lists all"),
        (("--policy", "easy:color=red"), "choose from order"),
        (("--policy", "nowhere.py:Mine"), "no such file"),
        (("--estimate", "guess"), "choose from runtime, limit"),
        (("--processors", "1", "--filter", "known_size"), "need more than the cluster's 1 processors"),
        (("--filter", "shiny"), "choose from standard"),
        (("--filter", "standrd"), "did you mean standard?"),
        (("--scenario", "scale-lod=2"), "did you mean scale-load?"),
        (("--scenario", "span=1"), "span"),
        (("--every", "soon"), "is not a duration"),
        (("--counting", "some"), "ended"),
        (("--overrun", "stop"), "cut"),
    ],
)
def test_a_wrong_setting_is_named_with_the_choices(trace: Path, args: tuple[str, ...], says: str) -> None:
    done = run("replay", trace, *args)
    assert done.returncode == 2, done.stdout + done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    done = run("replay", tmp_path / "no.swf")
    assert done.returncode == 2
    assert "no.swf" in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_left_is_an_error_that_says_why(tmp_path: Path) -> None:
    log = tmp_path / "empty.swf"
    log.write_text("; MaxProcs: 8\n1 0 0 0 1 -1 -1 1 10 -1 1 1 1 -1 -1 -1 -1 -1\n")
    done = run("replay", log)
    assert done.returncode == 2
    assert "no jobs are left" in done.stderr
    assert "run time" in done.stderr


def test_describe_accounts_for_every_line(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    good = "{} 0 0 5 1 -1 -1 1 10 -1 1 1 1 -1 -1 -1 -1 -1\n"
    log.write_text(
        "; MaxProcs: 8\n" + good.format(1) + "x\n" + good.format(2).replace(" 5 1 ", " 0 1 ") + good.format(3)
    )
    facts = lines(run("workload", "describe", log, "--lines", "--json"))[0]
    assert facts["lines"] == 4 == facts["jobs"] + sum(facts["set_aside"].values())
    assert {row["line"] for row in facts["lines_set_aside"]} == {3, 4}
    plain = run("workload", "describe", log)
    assert "4 read = 2 kept + 2 set aside" in plain.stdout


def test_convert_keeps_the_jobs(trace: Path, tmp_path: Path) -> None:
    for name in ("a.parquet", "a.swf", "a.swf.xz", "a.swf.zst"):
        assert lines(run("workload", "convert", trace, tmp_path / name, "--json"))[0]["jobs"] == 400
        assert read_workload(tmp_path / name).digest() == read_workload(trace).digest()


@pytest.mark.slow
def test_check_tells_a_good_policy_from_a_bad_one(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from dovetail import Plan, Policy, State\n"
        "class Good(Policy):\n"
        "    def decide(self, state: State) -> Plan:\n"
        "        job = next((int(j) for j in state.waiting if state.size[j] <= state.free), None)\n"
        "        return Plan(starts=[] if job is None else [job])\n"
        "class Lazy(Policy):\n"
        "    def decide(self, state: State) -> Plan:\n"
        "        return Plan(starts=[int(j) for j in state.waiting if state.size[j] == 1 <= state.free][:1])\n"
        "class Greedy(Policy):\n"
        "    def decide(self, state: State) -> Plan:\n"
        "        return Plan(starts=[int(j) for j in state.waiting])\n"
        "class Moody(Policy):\n"
        "    calls = 0\n"
        "    def decide(self, state: State) -> Plan:\n"
        "        Moody.calls += 1\n"
        "        fits = [int(j) for j in state.waiting if state.size[j] <= state.free]\n"
        "        return Plan(starts=fits[:1] if Moody.calls % 2 else [])\n"
        "class Seer(Policy):\n"
        "    def decide(self, state: State) -> Plan:\n"
        "        if len(state.size) % 2 == 0:\n"
        "            return Plan()\n"
        "        return Plan(starts=[int(j) for j in state.waiting if state.size[j] <= state.free][:1])\n"
    )
    broken = {
        name: [
            clause
            for clause, how in json.loads(run("check", f"{file}:{name}", "--json").stdout)["clauses"].items()
            if how != "kept"
        ]
        for name in ("Good", "Lazy", "Greedy", "Moody", "Seer")
    }
    assert broken["Good"] == []
    assert broken["Lazy"] == ["every job is started in the end"]
    assert any(clause.startswith("plans are legal") for clause in broken["Greedy"])
    assert any(clause.startswith("pure") for clause in broken["Moody"])
    assert any(clause.startswith("no peeking") for clause in broken["Seer"])
    assert run("check", f"{file}:Greedy").returncode == 1
    assert run("check", "easy", "--cases", "20").returncode == 0
    assert run("check", "conservative", "--cases", "20").returncode == 0


def test_fair_starts_add_unfairness(trace: Path) -> None:
    rows = lines(
        run("replay", trace, "-p", "list-reg", "-p", "list-saf", "-e", "runtime", "--fair-starts", "400", "--json")
    )
    assert rows[0]["metrics"]["fair_start_miss_total_s"] == 0  # nobody who comes later delays anybody
    assert rows[1]["metrics"]["fair_start_miss_total_s"] > 0


KEYS = ("bsld", "af_s", "awf_s", "p2sf_s")


def test_by_says_what_each_user_had(trace: Path, tmp_path: Path) -> None:
    shares = tmp_path / "s.toml"
    shares.write_text('by = "user"\nothers = 1\n[shares]\n1 = 5\n')
    first, second = lines(run("replay", trace, "-p", "easy", "-p", f"easy:order={shares}", "--by", shares, "--json"))
    for row in (first, second):
        assert sum(one["received_share"] for one in row["owners"]) == pytest.approx(1)
        assert sum(one["due_share"] for one in row["owners"]) == pytest.approx(1)
        assert sum(one["jobs"] for one in row["owners"]) == 400
    wait = [{one["name"]: one["mean_wait_s"] for one in row["owners"]}["1"] for row in (first, second)]
    assert wait[0] != wait[1]
    shown = run("replay", trace, "-p", "easy", "--by", "user").stdout
    assert "received" in shown
    assert "due" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "did you mean user" in run("replay", trace, "--by", "users").stderr
    assert "does not say of its jobs; it says" in run("replay", trace, "--by", "account").stderr


def test_gaps_are_those_of_the_bounds_of_the_workload(trace: Path) -> None:
    rows = lines(run("replay", trace, "-p", "easy", "-p", "list-saf", "--gaps", "--json"))
    expected = workload_bounds(clean(read_workload(trace), ["standard"]))
    for row in rows:
        assert row["bounds"] == expected
        assert set(row["gaps"]) == set(KEYS)
        for key in KEYS:
            assert row["gaps"][key] == pytest.approx((row["metrics"][key] - expected[key]) / expected[key], rel=1e-12)
            assert row["gaps"][key] > 0
    done = run("replay", trace, "-p", "easy", "-p", "list-saf", "--gaps")
    assert done.returncode == 0, done.stderr
    table = done.stdout[done.stdout.index(" gap ") :].splitlines()
    assert table[0].split() == ["gap", "BSLD", "AWF", "P2SF", "AF"]
    bound, easy, saf = table[2:5]
    shown = ("bsld", "awf_s", "p2sf_s", "af_s")
    assert set(shown) == set(KEYS)
    assert bound.split()[:3] == ["lower", "bound", f"{expected['bsld']:.3f}"]
    assert bound.split()[3:] == [text for key in shown[1:] for text in (f"{expected[key]:,.0f}", "s")]
    for line, row in ((easy, rows[0]), (saf, rows[1])):
        assert [float(text.replace(",", "")) for text in line.split()[1::2]] == [
            round(100 * row["gaps"][key], 1) for key in shown
        ]
    assert "gaps" not in lines(run("replay", trace, "--json"))[0]


@pytest.mark.parametrize("more", [("--feedback",), ("--counting", "ended")])
def test_gaps_are_refused_where_bounds_do_not_hold(trace: Path, more: tuple[str, ...]) -> None:
    done = run("replay", trace, "--gaps", *more)
    assert done.returncode == 2
    assert "--gaps needs all jobs" in done.stderr


def test_a_smaller_machine_sets_aside_what_cannot_fit(trace: Path) -> None:
    row = lines(run("replay", trace, "--processors", "8", "--json"))[0]
    assert row["processors"] == 8
    assert row["jobs"] == int((read_workload(trace).size <= 8).sum()) < 400


def test_policies_are_listed() -> None:
    listed = lines(run("policies", "--json"))[0]
    assert {"easy", "easy-sjbf", "saf-easy", "list-reg", "conservative", "justbf"} <= set(listed["policies"])
    shown = run("policies").stdout
    assert shown.startswith("Start here: easy")
    assert max(map(len, shown.splitlines())) <= 80


def test_every_policy_has_a_line_that_says_when_to_use_it() -> None:
    lacking = [name for name in names() if ":" not in name and not use_of(name)]
    assert not lacking
    meant = {key.replace("ORDER", order) for family in families().values() for key in family for order in ORDERS}
    assert all(policy(key).name for key in meant)


RAISES = """
class Raises:
    def decide(self, state):
        return 1 // (len(state.waiting) - len(state.waiting))
"""


def test_a_policy_that_raises_is_told_in_one_line(trace: Path, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(RAISES)
    done = run("replay", trace, "-p", f"{tmp_path / 'own.py'}:Raises")
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert (
        last == "dovetail: Raises.decide raised ZeroDivisionError: integer division or modulo by zero (own.py, line 4)"
    )


def test_help_is_grouped_and_short() -> None:
    shown = run("replay", "-h")
    assert shown.returncode == 0
    for title in ("Arguments:", "Decisions:", "The machine:", "The jobs:", "Options:"):
        assert f"\n{title}\n" in shown.stdout
    rest = shown.stdout.partition("Decisions:")[2]
    assert not any(kind in rest for kind in ("<int", "<str", "<path", "<float")), "an option without a metavar"


def test_names_are_completed_by_the_shell() -> None:
    asked = {"_DOVETAIL_COMPLETE": "complete_bash", "COMP_WORDS": "dovetail replay log -p sjf", "COMP_CWORD": "4"}
    done = in_a_process(env=asked)
    assert set(done.stdout.split()) == {"sjf-easy", "sjf-justbf", "sjf-aggressive", "sjf-passive"}


@pytest.mark.slow
def test_compare_says_as_json_what_its_page_says(trace: Path, tmp_path: Path) -> None:
    rows = lines(run("compare", trace, "easy", "sjf-easy", "--pair", "users", "--json", "-o", tmp_path / "p.html"))
    assert [row["policy"] for row in rows] == ["easy", "sjf-easy"]
    assert rows[0]["versus"] == {}
    assert {"change", "low", "high", "verdict"} <= set(rows[1]["versus"]["mean_wait_s"])
    assert rows[0]["bytes"] == (tmp_path / "p.html").stat().st_size


@pytest.mark.slow
def test_the_demo_is_long_enough_for_intervals(tmp_path: Path) -> None:
    rows = lines(run("demo", tmp_path / "new", "--json"))
    assert [row["policy"] for row in rows] == ["easy", "sjf-easy", "plan-af"]
    assert all(row["versus"]["mean_wait_s"]["low"] is not None for row in rows[1:])
    assert (tmp_path / "new" / "page.html").stat().st_size < 5_000_000
    assert len(read_workload(tmp_path / "new" / "log.swf.gz")) == 6_500


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[str]:
    """A local server that looks like the archive, with one real log."""
    folder = tmp_path / "www" / "l_kth_sp2"
    folder.mkdir(parents=True)
    (folder / "KTH-SP2-1996-2.swf.gz").symlink_to(TRACES / "archive" / "KTH-SP2-1996-2.swf.gz")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path / "www"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@needs_traces
def test_fetch_downloads_checks_and_keeps(archive: str, tmp_path: Path) -> None:
    env = {
        "DOVETAIL_ARCHIVE": archive,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "DOVETAIL_CACHE": str(tmp_path / "c"),
    }
    done = run("workload", "fetch", "kth-sp2", env=env)
    assert done.returncode == 0, done.stderr
    assert "acknowledge" in done.stderr.lower()
    path = Path(done.stdout.strip())
    assert path.read_bytes() == (TRACES / "archive" / "KTH-SP2-1996-2.swf.gz").read_bytes()
    again = run("workload", "fetch", "KTH-SP2", env={**env, "DOVETAIL_ARCHIVE": "http://127.0.0.1:9"})
    assert again.returncode == 0, again.stderr  # from the cache: nobody answers there
    assert run("workload", "fetch", "NO-LOG", env=env).returncode == 2


def test_schedules_of_traces_with_one_name_are_all_kept(trace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / trace.name
    other.parent.mkdir()
    done = run("workload", "convert", trace, other, "--scenario", "sample=0.5")
    assert done.returncode == 0, done.stderr
    out = tmp_path / "out"
    assert run("replay", trace, other, "--out", out).returncode == 0
    jobs = {path.name: len(read_workload(path)) for path in out.glob("*.swf.gz")}
    assert jobs == {"made.easy.limit.swf.gz": 400, "made.easy.limit.2.swf.gz": 200}


@pytest.mark.slow
def test_what_the_system_refuses_is_said_without_a_traceback(trace: Path, tmp_path: Path) -> None:
    for done in (
        run("replay", trace, "--out", trace),
        run("workload", "convert", trace, tmp_path / "late.swf", "--scenario", "scale-load=0.0000001"),
        in_a_process("workload", "generate", tmp_path / "much.swf", "--jobs", str(10**13)),
        run("replay", trace, "--processors", str(10**20)),
        run("check", "easy", "--seed", "-1"),
    ):
        assert done.returncode == 2
        assert done.stderr
        assert "Traceback" not in done.stderr


def test_names_do_not_speak_to_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "ev\x1b[31mil.swf"
    path.write_text("no log\n")
    done = run("replay", path)
    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    named = tmp_path / "mine.py"
    named.write_text(
        "from dovetail import Plan, Policy\n\n\nclass Mine(Policy):\n    name = '[/b]mine'\n\n"
        "    def decide(self, state):\n        return Plan(starts=state.waiting[:1])\n"
    )
    path.write_text("; MaxProcs: 1\n1 0 -1 10 1 -1 -1 1 20 -1 1 1 1 -1 1 -1 -1 -1\n")
    done = run("replay", path, "-p", f"{named}:Mine")
    assert done.returncode == 0, done.stderr
    assert "[/b]mine" in done.stdout
