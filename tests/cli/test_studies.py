"""`study`, `report` and `compare` as a person uses them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dovetail.io.read import read_workload
from tests.cli.test_cli import lines
from tests.command import run
from tests.studies.small import written

STUDY = """\
name = "A <small> study"
policies = ["easy", "easy-sjbf"]
estimates = ["limit", "runtime"]
seeds = 6

[[traces]]
name = "made"
generate = {jobs = 300, processors = 32, load = 0.9}

[[exclude]]
estimate = "runtime"
policy = "easy-sjbf"
seed = 5
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = written(tmp_path_factory.mktemp("study"), STUDY)
    (result,) = lines(run("study", "run", path, "--json", "--workers", "1"))
    assert (result["cells"], result["done"], result["ran"], result["failed"]) == (23, 23, 23, {})
    return path


@pytest.mark.slow
def test_a_plan_runs_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    path = written(tmp_path, STUDY)
    cells = lines(run("study", "plan", path, "--json"))
    assert len(cells) == 23
    assert {cell["done"] for cell in cells} == {False}
    assert all(cell["jobs"] == 300 and 0 < cell["cost_cpu_s"] < 1 for cell in cells)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_a_plan_counts_what_is_there(study: Path) -> None:
    table = run("study", "plan", study).stdout
    assert re.search(r"made +easy-sjbf +11 +0 ", table)
    assert "23 cells: 1 trace x 1 scenario x 1 span x 2 policies x 2 estimates x 6 seeds" in table


def test_results_say_better_only_by_verdict(study: Path) -> None:
    store = study.with_suffix(".store")
    rows = lines(run("study", "results", store, "--json"))
    assert [(row["estimate"], row["policy"], row["runs"]) for row in rows] == [
        ("limit", "easy", 6), ("limit", "easy-sjbf", 6), ("runtime", "easy", 5), ("runtime", "easy-sjbf", 5),
    ]  # fmt: skip
    verdicts = [one["verdict"] for row in rows for metric, one in row["versus"].items() if metric in SHOWN]
    assert len(verdicts) == 10
    table = run("study", "results", store).stdout
    for verdict in ("better", "worse"):
        assert table.count(verdict) == verdicts.count(verdict)
    assert rows[3]["remarks"] == ["Only the 5 of 6 spans and seeds that all policies have are counted."]
    assert rows[3]["remarks"][0] in table
    assert [one["pairs"] for one in rows[3]["versus"].values()] == [5] * 5
    assert {one["verdict"] for one in rows[3]["versus"].values()} == {"unclear"}  # five pairs are too few


SHOWN = ("mean_wait_s", "bsld", "af_s", "awf_s", "p2sf_s")


@pytest.mark.slow
def test_a_report_is_one_file_with_the_name_escaped(study: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    (said,) = lines(run("report", study.with_suffix(".store"), "-o", page, "--json"))
    assert said == {"page": str(page), "bytes": page.stat().st_size}
    text = page.read_text()
    assert "A &lt;small&gt; study" in text
    assert "<small> study" not in text
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)


@pytest.mark.slow
def test_compare_makes_a_page_and_opens_nothing_without_a_screen(tmp_path: Path) -> None:
    trace, page = tmp_path / "made.parquet", tmp_path / "page.html"
    assert run("workload", "generate", trace, "--jobs", "500", "--processors", "32").returncode == 0
    done = run("compare", trace, "easy", "list-reg", "-o", page, env={"DISPLAY": "", "WAYLAND_DISPLAY": ""})
    assert done.returncode == 0, done.stderr
    assert "opening" not in done.stderr
    assert "list-reg" in page.read_text()
    assert len(read_workload(trace)) == 500


@pytest.mark.slow
def test_compare_tells_policies_of_one_name_apart(tmp_path: Path) -> None:
    trace, page = tmp_path / "made.parquet", tmp_path / "page.html"
    assert run("workload", "generate", trace, "--jobs", "300", "--processors", "32", "--load", "0.9").returncode == 0
    for file, base in (("a", "easy"), ("b", "list-saf")):
        text = f"from dovetail.policies.registry import policy\nP = policy('{base}')\n"
        (tmp_path / f"{file}.py").write_text(text)
    names = [f"{tmp_path}/{file}.py:P" for file in "ab"]
    done = run("compare", trace, *names, "-o", page, "--no-open", "--scenario", "scale-load=1.1", "--pair", "users")
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert all(f"{file}.py:" in text for file in "ab")
    assert "--scenario scale-load=1.1" in text
    assert "--pair users" in text
    again = run("compare", trace, "easy", "easy", "--no-open")
    assert (again.returncode, "given twice" in again.stderr) == (2, True)


@pytest.mark.slow
def test_a_missing_library_is_named(study: Path, tmp_path: Path) -> None:
    arguments = ["dovetail", "report", str(study.with_suffix(".store")), "-o", str(tmp_path / "x.html")]
    script = f"import sys; sys.modules['jinja2'] = None; sys.argv = {arguments}\n"
    script += "from dovetail.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    extra = "'jinja2>=3.1' 'matplotlib>=3.10' 'pydantic>=2.11' 'scipy>=1.15'"
    assert done.stderr == f"dovetail: this needs jinja2, which is not installed: pip install {extra}\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("report", "{here}"), "not a store's"),
        (("study", "results", "{here}"), "not a store's"),
        (("study", "run", "{here}/none.toml"), "cannot be read"),
        (("study", "run", "{study}", "--on", "cloud"), "choose local, dask://HOST:PORT, slurm"),
        (("report", "{store}", "--pair", "days"), "no pairing 'days': choose one of runs, weeks, users"),
        (("compare", "{here}/none.swf", "easy", "eazy"), "no policy 'eazy'"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments: tuple[str, ...], says: str, study: Path, tmp_path: Path) -> None:
    places = {"here": tmp_path, "study": study, "store": study.with_suffix(".store")}
    done = run(*(argument.format(**places) for argument in arguments))
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
