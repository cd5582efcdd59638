"""The front door: what `import dovetail` shows, and that each name does what docs/python.md says."""

from __future__ import annotations

import inspect
import os
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dovetail as dt
from dovetail.kernels import watch
from dovetail.kernels.compile import inner, jit
from dovetail.model.workload import NAMED
from tests.conftest import ROOT

HOSTILE = '<script>alert("x")</script>\x1b[31m & co'


@pytest.fixture(scope="module")
def log() -> dt.Workload:
    return dt.generate(1_000, 32, load=0.9, seed=1)


@pytest.fixture(scope="module")
def easy(log: dt.Workload) -> dt.Schedule:
    return dt.replay(log, "easy")


class Greedy(dt.Policy):
    """Starts whatever fits, in order of arrival."""

    def decide(self, state: dt.State) -> dt.Plan:
        free, starts = state.free, []
        for job in state.waiting.tolist():
            if state.size[job] <= free:
                free -= int(state.size[job])
                starts.append(job)
        return dt.Plan(starts=starts)


class Plain:
    """No Policy by descent: an object with decide(state) will do."""

    def decide(self, state: dt.State) -> dt.Plan:
        return Greedy().decide(state)


def spent(code: str) -> float:
    """CPU seconds of a Python that runs this; the least of three."""
    found = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def test_the_import_is_light() -> None:
    heavy = ("numpy", "polars", "numba", "matplotlib", "typer", "dovetail.api", "dovetail.model")
    code = f"import sys, dovetail; dir(dovetail); print([name for name in {heavy!r} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert said.strip() == "[]"
    assert spent("import dovetail") - spent("pass") < 0.1


def test_dir_shows_all_names_and_nothing_else() -> None:
    assert dir(dt) == sorted(dt.__all__)
    assert 20 <= len(dt.__all__) <= 28
    for name in dt.__all__:
        found = getattr(dt, name)
        assert found is not None
        if callable(found):
            assert len(inspect.getdoc(found) or "") > 20, f"{name} says nothing of itself"
    with pytest.raises(AttributeError, match=r"no attribute 'reply'; it has .*replay"):
        dt.reply  # noqa: B018


def test_names_are_taken_wherever_a_policy_is(log: dt.Workload) -> None:
    wanted = dt.replay(log, "greedy-fcfs").start
    for given in (dt.policy("greedy-fcfs"), Greedy, Greedy(), Plain, Plain()):
        assert (dt.replay(log, given).start == wanted).all()
    assert dt.policy(Greedy()).name == "Greedy"
    assert dt.policy(dt.Planner(objective="af")).compiled
    assert dt.predictor(dt.predictor("recent")).name == "recent"
    with pytest.raises(dt.DovetailError, match="did you mean easy"):
        dt.replay(log, "eazy")


def test_a_log_is_read_cleaned_and_written(log: dt.Workload, tmp_path: Path) -> None:
    for name in ("log.swf.gz", "log.parquet"):
        dt.write(log, tmp_path / name)
        again = dt.read(tmp_path / name)
        assert again.digest() == log.digest()
    assert len(again.provenance.steps) > 0
    assert dt.read(tmp_path / "log.swf.gz", filters=()).provenance.steps == ()
    small = dt.read(tmp_path / "log.swf.gz", scenarios="span=0d..1d", processors=8)
    assert small.processors == 8
    assert small.size.max() <= 8 < log.size.max()
    assert small.submit[-1] < 86_400 < log.submit[-1]
    both = dt.prepare(log, scenarios=["span=0d..1d", "scale-load=2"])
    assert both.span_s < 43_200 + 60
    with pytest.raises(dt.DovetailError, match="cluster"):
        dt.prepare(log, processors=8, cluster="eurora")


def test_a_schedule_is_written(easy: dt.Schedule, tmp_path: Path) -> None:
    dt.write(easy, tmp_path / "easy.swf")
    assert (dt.read(tmp_path / "easy.swf")["wait"] == easy.wait).all()
    dt.write(easy, tmp_path / "easy.parquet")
    assert pl.read_parquet(tmp_path / "easy.parquet")["start"].to_list() == easy.start.tolist()


def test_the_frame_of_a_schedule(easy: dt.Schedule) -> None:
    frame = easy.jobs()
    assert frame["id"].to_list() == easy.workload["id"].tolist()
    assert frame["wait_s"].to_list() == easy.wait.tolist()
    assert frame["end"].to_list() == easy.end.tolist()
    assert frame["estimate_s"].to_list() == easy.workload.limit.tolist()
    assert frame["promised"].null_count() == len(easy.start)
    assert frame["user"].dtype == pl.String
    never = replace(easy, start=np.where(np.arange(len(easy.start)) == 3, -1, easy.start)).jobs()
    assert never["start"].is_null().to_list().index(True) == 3
    assert [never[name].null_count() for name in ("start", "end", "wait_s")] == [1, 1, 1]


def test_the_frame_knows_names_deadlines_and_nodes(log: dt.Workload) -> None:
    n = len(log)
    named = replace(
        log,
        columns={**log.columns, "user": np.arange(n) % 3 - 1, "wait": np.full(n, 7), "deadline_s": np.full(n, 10**6)},
        names={"user": ("ann", HOSTILE)},
    )
    frame = dt.replay(dt.prepare(named, (), "per-node=4"), "easy", cluster="eurora").jobs()
    assert frame["user"].to_list()[:3] == [None, "ann", HOSTILE]
    assert set(frame["recorded_wait_s"]) == {7}
    assert frame["deadline"].to_list() == (named.submit + 10**6).tolist()
    assert all(nodes and max(nodes) < 64 for nodes in frame["nodes"].to_list())
    kept = dt.replay(named, "dbf").jobs()
    assert set(kept["accepted"]) <= {0, 1}
    assert kept["promised"].null_count() < n
    assert named.jobs().columns[:4] == ["id", "user", "size", "submit"]


def test_the_page_has_all_names_and_columns(log: dt.Workload) -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    names, rest = page.partition("## Names")[2].split("## What compare gives")
    assert [name for name in dt.__all__ if f"`{name}`" not in names.partition("Wherever")[0]] == []
    full = {name: np.zeros(len(log), np.int64) for name in (*NAMED, "wait", "deadline_s")}
    made = dt.replay(replace(log, columns={**log.columns, **full, "deadline_s": np.full(len(log), 10**9)}), "dbf")
    columns = {*made.jobs().columns, "nodes"}
    assert [name for name in columns if f"`{name}`" not in rest.partition("## Frames")[2]] == []


@pytest.mark.slow
def test_a_comparison_shows_itself(log: dt.Workload, tmp_path: Path) -> None:
    found = dt.compare(log, ["easy", "list-saf", Greedy])
    assert found.policies == ("easy", "list-saf", "Greedy")
    assert found.frame()["policy"].to_list() == list(found.policies)
    easy = found.schedules["easy"]
    assert found.frame()["mean_wait_s"][0] == dt.summarize(easy)["mean_wait_s"] == easy.wait.mean()
    one = found.versus("list-saf")["bsld"]
    assert one.verdict == "unclear"
    with pytest.raises(dt.DovetailError, match=r"did you mean list-saf\?.*baseline is easy"):
        found.versus("list-safe")
    text = repr(found)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert len(text.splitlines()) == 9
    assert "list-saf" in found._repr_html_()
    found.report(tmp_path / "page.html")
    assert "list-saf" in (tmp_path / "page.html").read_text(encoding="utf-8")
    with pytest.raises(dt.DovetailError, match="given twice"):
        dt.compare(log, ["easy", "easy"])


def test_several_workloads_are_pairs(log: dt.Workload) -> None:
    six = [dt.generate(100, 32, load=0.9, seed=seed) for seed in range(6)]
    found = dt.compare(six, ["easy", "list-saf"])
    one = found.versus("list-saf")["mean_wait_s"]
    waits = [dt.replay(each, "list-saf").wait.mean() for each in six]
    assert one.pairs == 6
    assert one.other == pytest.approx(np.mean(waits))
    assert found.frame()["runs"].to_list() == [6, 6]
    assert "6 workloads" in repr(found)
    with pytest.raises(dt.DovetailError, match="each is a pair"):
        dt.compare(six, ["easy", "list-saf"], pair="users")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["waits", "queue", "utilization", "wait-area", "wait-map", "changes", "matrix"])
def test_plots(easy: dt.Schedule, kind: str) -> None:
    other = dt.replay(easy.workload, "list-saf")
    figure: Any = dt.plot([easy, other], kind)
    png, size = figure._repr_png_()
    assert png.startswith(b"\x89PNG")
    assert size["width"] > 300
    if kind in ("waits", "queue", "utilization"):
        assert [text.get_text() for text in figure.legends[0].get_texts()] == ["easy", "list-saf"]


def test_plots_call_schedules_by_what_tells_them_apart(easy: dt.Schedule) -> None:
    figure = dt.plot([easy, dt.replay(easy.workload, "easy", estimate="runtime"), easy], "queue")
    shown = [text.get_text() for text in figure.legends[0].get_texts()]
    assert shown == ["1. easy, limit", "2. easy, runtime", "3. easy, limit"]
    with pytest.raises(dt.DovetailError, match="did you mean waits"):
        dt.plot(easy, "wait")
    with pytest.raises(dt.DovetailError, match="nothing to draw"):
        dt.plot(easy, "changes")
    with pytest.raises(dt.DovetailError, match="told apart"):
        dt.plot([], "waits")


def test_check_says_what_is_wrong(easy: dt.Schedule) -> None:
    class Forgetful(dt.Policy):
        def decide(self, state: dt.State) -> dt.Plan:
            return dt.Plan()

    assert dt.check(Greedy, cases=3) == []
    assert [finding.clause for finding in dt.check(Forgetful, cases=3)][:1] == ["every job is started in the end"]
    assert dt.check(dt.predictor("recent"), cases=2) == []
    assert dt.check(easy) == []
    early = replace(easy, start=easy.arrive - 1)
    assert "arriv" in str(dt.check(early)[0])


def test_clusters_and_sites_are_given_by_name(log: dt.Workload, tmp_path: Path) -> None:
    assert dt.replay(log, "easy", cluster=64).cluster == dt.Cluster(64)
    assert dt.replay(log, "easy", cluster="eurora").cluster.nodes == 64
    site = tmp_path / "site.toml"
    site.write_text("busy_w = 10\nidle_w = 2\n", encoding="utf-8")
    found = dt.summarize(dt.replay(log, "easy"), site)
    assert found["energy_kwh"] > 0
    assert "energy_cost" in dt.compare(log, ["easy"], site=str(site)).frame().columns
    with pytest.raises(dt.DovetailError, match="how large its machine is"):
        dt.replay(replace(log, processors=0), "easy")


@pytest.mark.slow
def test_a_study_runs_on_any_executor(tmp_path: Path) -> None:
    study = tmp_path / "two.toml"
    study.write_text(
        'name = "two"\npolicies = ["easy", "list-saf"]\nseeds = 6\n'
        '[[traces]]\nname = "made"\ngenerate = {jobs = 60, processors = 16, load = 0.9}\n',
        encoding="utf-8",
    )
    with ThreadPoolExecutor(2) as threads:
        store = dt.study(study, on=threads, workers=2)
    assert store.path == tmp_path / "two.store"
    assert store.frame().height == 12
    (case,) = store.cases()
    assert case.versus("list-saf")["bsld"].pairs == 6
    assert repr(store).endswith("two.store, 12 runs")
    dt.report(store, tmp_path / "page.html")
    assert dt.check(next(iter(case.schedules.values()))) == []


def test_reprs_are_short(log: dt.Workload, easy: dt.Schedule) -> None:
    assert repr(log) == "Workload: lublin-both, 1,000 jobs over 2 d 3 h on 32 processors"
    assert repr(easy) == ("Schedule: lublin-both under easy, 1,000 jobs, mean wait 1 h 36 m")
    seen: list[Any] = []

    class Watch(Greedy):
        def decide(self, state: dt.State) -> dt.Plan:
            plan = super().decide(state)
            seen.extend([state, plan])
            return plan

    dt.replay(log, Watch)
    nodes = dt.replay(log, "easy", cluster="eurora").cluster
    long = replace(log, name="n" * 500)
    found = [log, easy, nodes, long, replace(easy, workload=long, policy="p" * 500), dt.Plan(range(1000)), *seen]
    assert [one for one in map(repr, found) if len(one) > 200 or "array" in one] == []
    assert repr(seen[0]).startswith("State at ")
    assert repr(nodes) == "Cluster: 64 nodes in 3 kinds, 1,024 cores"


def test_foreign_names_cannot_speak(log: dt.Workload) -> None:
    hostile = replace(log, name=HOSTILE)
    greedy: Any = Greedy()
    greedy.name = HOSTILE
    found = dt.compare(hostile, ["easy", greedy])
    html = found._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    for text in (html, repr(found), repr(hostile), repr(found.schedules[HOSTILE])):
        assert "\x1b" not in text


def test_the_first_compilation_is_announced_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watch, "_SOON_S", 0.0)

    @inner
    def called(number: int) -> int:
        return number + 1

    @jit
    def kernel(number: int) -> int:
        return called(number) + 1

    kernel._cache.disable()  # type: ignore[attr-defined]
    assert kernel(1) == 3
    assert capsys.readouterr().err == "Compiling the kernel kernel, once on this machine. It may take a minute.\n"
    assert kernel(2) == 4
    assert capsys.readouterr().err == ""
