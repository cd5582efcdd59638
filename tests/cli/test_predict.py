"""`dovetail predict evaluate`, and the predictors on a real log against the published table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dovetail.engine.replay import replay
from dovetail.io.read import read_workload
from dovetail.metrics.estimates import calibration, ended_within, pinball_s, r2
from dovetail.policies.registry import policy
from dovetail.studies.cases import content
from dovetail.studies.store import Store
from tests.cli.test_cli import lines
from tests.command import run
from tests.conftest import TRACES, needs_traces


def test_every_predictor_under_every_policy_beside_the_limits(tmp_path: Path) -> None:
    trace = tmp_path / "made.swf.gz"
    assert run("workload", "generate", trace, "--jobs", "300", "--processors", "64", "--load", "0.9").returncode == 0
    rows = lines(
        run("predict", "evaluate", trace, "-p", "easy", "-p", "list-reg", "-e", "recent", "-e", "runtime", "--json")
    )
    assert {row["table"] for row in rows} == {"estimates"}
    more = lines(run("predict", "evaluate", trace, "-p", "easy", "-e", "quantile", "--json"))
    calibration = [row for row in more if row["table"] == "calibration"]
    assert len(more) == 2 + len(calibration)
    assert [(row["policy"], row["estimate"]) for row in rows] == [
        (name, said) for name in ("easy", "list-reg") for said in ("limit", "recent", "runtime")
    ]
    for limit, recent, known in (rows[:3], rows[3:]):
        assert limit["change"] == dict.fromkeys(("bsld", "af_s", "awf_s", "p2sf_s"), 0)
        assert (known["r2"], known["mean_error_s"], known["outlived"]) == (1, 0, 0)
        assert set(known["pinball_s"].values()) == {0}
        assert 0 < recent["outlived"] < 1
        for row in (recent, known):
            for key, change in row["change"].items():
                assert row["metrics"][key] == pytest.approx(limit["metrics"][key] * (1 + change))
    made = read_workload(trace)
    for row in calibration:
        said = replay(made, policy("easy"), estimate=f"quantile:level={row['level']}").said[30:]
        ran = made.runtime[30:]
        assert (row["jobs"], row["ended_before"], row["ended_by"]) == (270, np.mean(ran < said), np.mean(ran <= said))
        assert row["pinball_s"] == pinball_s(said, ran, row["level"])
        assert row["pinball_limit_s"] == pinball_s(made.limit[30:], ran, row["level"])
    assert [row["level"] for row in calibration] == [0.5, 0.8, 0.95, 0.99]
    twice = lines(run("predict", "evaluate", trace, "-p", "easy", "-e", "recent", "-e", "recent", "--json"))
    assert twice[1]["change"] == twice[2]["change"] == rows[1]["change"]
    shown = run("predict", "evaluate", trace, "-p", "easy", "-e", "recent")
    assert shown.returncode == 0
    assert "outlived" in shown.stdout
    wrong = run("predict", "evaluate", trace, "-e", "guess")
    assert wrong.returncode == 2
    assert "no estimate 'guess': choose from" in wrong.stderr


def test_check_says_which_clause_is_broken() -> None:
    kept = run("predict", "check", "recent", "--cases", "3", "--json")
    assert kept.returncode == 0
    assert set(lines(kept)[0]["clauses"].values()) == {"kept"}
    broken = run("predict", "check", "runtime", "--cases", "3")
    assert broken.returncode == 1
    assert "BROKEN  no peeking" in broken.stdout


@needs_traces
@pytest.mark.parametrize(
    ("log", "published"),
    [("KTH-SP2", {"recent": 0.33, "survival": 0.60, "limit": 0.59}), ("SDSC-SP2", {"recent": 0.52, "survival": -0.33})],
)
def test_r2_is_that_of_table_iv(log: str, published: dict[str, float]) -> None:
    """Packing, Table IV (a) and (c): BSLD of EASY-SJBF, AWF of LAF-JustBF."""
    workload = read_workload(TRACES / "papers" / f"{log}.swf.gz")
    for name, wanted in published.items():
        schedule = replay(workload, policy("list-laf" if name == "survival" else "easy-sjbf"), estimate=name)
        assert r2(schedule.said, workload.runtime) == pytest.approx(wanted, abs=0.015)


@needs_traces
@pytest.mark.parametrize(("log", "least"), [("KTH-SP2", 0.7), ("SDSC-SP2", 0.6)])
def test_our_quantiles_are_calibrated(log: str, least: float) -> None:
    """And the median is about as close as the best published prediction of the run time, or closer (0.64 on both)."""
    workload = read_workload(TRACES / "papers" / f"{log}.swf.gz")
    counted = slice(len(workload) // 10, None)
    ran = workload.runtime[counted]
    for level in (0.5, 0.8, 0.95, 0.99):
        whole = replay(workload, policy("list-reg"), estimate=f"quantile:level={level}").said
        said = whole[counted]
        before, by = ended_within(said, ran)
        assert before - 0.005 < level < by + 0.005
        assert calibration(level, whole, whole, whole, workload).off_by_user < 0.04  # without shifts by user 0.08
        if level < 0.9:
            assert pinball_s(said, ran, level) < pinball_s(workload.limit[counted], ran, level)
        if level == 0.5:
            assert r2(said, ran) > least


@pytest.mark.slow
def test_what_was_said_is_kept_in_the_store(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(
        'name = "said"\npolicies = ["easy"]\nestimates = ["limit", "recent"]\nkeep = "starts"\n'
        '[[traces]]\nname = "made"\ngenerate = {jobs = 100, processors = 16, load = 0.9}\n',
        encoding="utf-8",
    )
    assert run("study", "run", study, "--store", tmp_path / "s").returncode == 0
    store = Store(tmp_path / "s")
    schedules = {one.estimate: one for name in store.names() if (one := store.schedule(name)) is not None}
    cases = {case.estimate: case.with_limits for case in content(store).cases}
    assert cases["limit"] is None
    assert cases["recent"] is not None
    assert cases["recent"]().estimate == "limit"
    for name, kept in schedules.items():
        again = replay(kept.workload, policy("easy"), estimate=name)
        assert np.array_equal(kept.said, again.said)
    assert np.array_equal(schedules["limit"].said, schedules["limit"].workload.limit)
    [known] = [name for name in store.names() if (one := store.schedule(name)) is not None and one.estimate == "limit"]
    old = tmp_path / "s" / "runs" / f"{known}.parquet"
    pl.read_parquet(old).drop("said").write_parquet(old)  # as runs were before
    (one,) = [one for name in store.names() if (one := store.schedule(name)) is not None and one.estimate == "limit"]
    assert np.array_equal(one.said, one.workload.limit)
    assert len(store.frame()) == 2
    wrong = study.read_text(encoding="utf-8").replace('"recent"', '"my.py:Mine"')
    study.write_text(wrong, encoding="utf-8")
    assert "my.py: no such file" in run("study", "run", study, "--store", tmp_path / "t").stderr
