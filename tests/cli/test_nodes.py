"""Clusters of nodes on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.engine.replay import replay
from dovetail.io.clusters import cluster_named
from dovetail.io.read import read_workload
from dovetail.metrics import summarize
from dovetail.policies.registry import policy
from dovetail.workloads.filters import clean, fits_nodes
from dovetail.workloads.scenarios import apply
from tests.cli.test_cli import lines
from tests.command import run

NODES = """\
shared = "gpus"

[[nodes]]
kind = "thin"
count = 14
cores = 4

[[nodes]]
kind = "gpu"
count = 1
cores = 8
gpus = 2
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of 300 jobs, and 15 nodes that have as many cores as its machine had processors."""
    folder = tmp_path_factory.mktemp("nodes")
    (folder / "mine.toml").write_text(NODES)
    made = run("workload", "generate", folder / "made.swf", "--jobs", "300", "--processors", "64", "--load", "0.9")
    assert made.returncode == 0, made.stderr
    return folder


def test_a_replay_on_nodes_is_that_of_the_engine(folder: Path) -> None:
    args = ("replay", folder / "made.swf", "--cluster", folder / "mine.toml", "--scenario", "per-node=8", "--json")
    rows = lines(run(*args, "--policy", "easy:place=first", "--policy", "easy:place=worst"))
    cluster = cluster_named(str(folder / "mine.toml"))
    asked = apply(clean(read_workload(folder / "made.swf"), ["standard"]), "per-node=8")
    jobs = fits_nodes(asked, cluster)
    assert 0 < len(jobs) < len(asked)  # units of more than four cores fit on one node only
    for row in rows:
        schedule = replay(jobs, policy(row["policy"]), cluster=cluster)
        assert row["metrics"]["utilization_cores"] == summarize(schedule)["utilization_cores"]
        assert row["metrics"]["mean_wait_s"] == summarize(schedule)["mean_wait_s"]
        assert (row["jobs"], row["processors"], row["nodes"]) == (len(jobs), 64, 15)
        assert [kind["count"] for kind in row["cluster"]["kinds"]] == [14, 1]
    assert rows[0]["metrics"]["mean_wait_s"] != rows[1]["metrics"]["mean_wait_s"]
    told = run(
        "workload", "describe", folder / "made.swf", "--scenario", "per-node=8", "--cluster", folder / "mine.toml"
    )
    assert "does not fit on the idle nodes" in told.stdout


def test_the_table_and_the_introduction_name_nodes(folder: Path) -> None:
    done = run("replay", folder / "made.swf", "--cluster", folder / "mine.toml", "--policy", "easy")
    assert done.returncode == 0, done.stderr
    assert "300 jobs over" in done.stderr
    assert "on 15 nodes in 2 kinds, 64 cores, estimate: limit" in done.stderr
    assert "stranded" in done.stdout
    counted = run("replay", folder / "made.swf", "--policy", "easy")
    assert "on 64 processors, estimate: limit" in counted.stderr
    assert "stranded" not in counted.stdout


@pytest.mark.slow
def test_compare_draws_nodes(folder: Path) -> None:
    out = folder / "compare.html"
    args = ("compare", folder / "made.swf", "easy:place=first", "easy:place=best", "--no-open", "-o", out)
    done = run(*args, "--cluster", folder / "mine.toml")
    assert done.returncode == 0, done.stderr
    page = out.read_text(encoding="utf-8")
    assert "15 nodes with 64 cores" in page
    assert "--cluster mine.toml" in page


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--cluster", "nix"), "no cluster 'nix': choose from eurora, kit-fh2, or name a file"),
        (("--cluster", "nix.toml"), "nix.toml: no such file"),
        (("--cluster", "eurora", "--processors", "9"), "the nodes say how many processors there are"),
        (("--outages", "none.csv"), "--outages needs --cluster"),
        (("--cluster", "eurora", "--outages", "none.csv"), "none.csv: no such file"),
        (("--cluster", "eurora", "--policy", "cp-af"), "cp-af counts processors and cannot place jobs on nodes"),
        (("--cluster", "eurora", "--policy", "easy:place=near"), "place=near: choose from first, best, worst"),
    ],
)
def test_a_wrong_cluster_is_named_with_the_choices(folder: Path, args: tuple[str, ...], says: str) -> None:
    done = run("replay", folder / "made.swf", *args)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Compiling" not in done.stderr
    assert "Traceback" not in done.stderr
