"""`recorded`: what the log says happened, as a row beside policies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dovetail as dt
from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.io.clusters import cluster_named
from dovetail.io.read import read_workload
from dovetail.model.cluster import NodeKind, by_node
from dovetail.model.workload import Provenance, Step, Workload
from dovetail.referee import check_schedule
from dovetail.reports.summary_text import summary
from dovetail.reports.tables import of_case
from dovetail.studies.cases import of_runs
from dovetail.workloads.lublin import lublin
from dovetail.workloads.scenarios import apply
from tests.conftest import TRACES, needs_traces

LOG = lublin(300, 64, seed=4, load=0.9)


def with_waits(log: Workload, wait: object) -> Workload:
    return log.with_columns(Step("waits"), wait=np.asarray(wait))


def test_what_a_policy_did_is_found_again_in_its_log() -> None:
    easy = dt.replay(LOG, "easy")
    again = dt.replay(with_waits(LOG, easy.wait), "recorded")
    assert np.array_equal(again.start, easy.start)
    found, wanted = dt.summarize(again), dt.summarize(easy)
    assert found == {**wanted, "rules_broken": 0}
    assert "rules_broken" not in wanted


def test_rules_that_the_log_breaks_are_counted(tmp_path: Path) -> None:
    columns = {"id": [1, 2, 3], "submit": [0, 0, 5], "size": [2, 1, 2], "runtime": [10, 10, 10], "limit": [10, 10, 10]}
    made = Workload("log", {name: np.array(row) for name, row in columns.items()}, 2, Provenance("test"))
    log = with_waits(made, [0, 0, 5])  # the second begins beside the first, which has the whole machine
    case = dt.compare(log, ["easy", "recorded"])
    assert case.policies == ("recorded", "easy")
    assert case.entries[0].metrics["rules_broken"] == 1
    assert [row.note for row in of_case(case).rows] == ["as the log says; 1 start breaks a rule", ""]
    assert "as the log says" in repr(case)
    assert "as the log says" in case._repr_html_()
    case.report(tmp_path / "page.html")  # with more rows in its chart than the machine has processors
    assert "as the log says; 1 start breaks a rule" in (tmp_path / "page.html").read_text()


def test_it_comes_first_and_is_never_best() -> None:
    log = with_waits(LOG, np.zeros(len(LOG)))  # nobody waited: no policy can be better
    case = dt.compare(log, ["easy", "recorded", "list-saf"])
    assert case.policies == ("recorded", "easy", "list-saf")
    waits = next(at for at, head in enumerate(of_case(case).heads) if head.text == "mean wait")
    assert not any(cell.best for cell in of_case(case).rows[0].cells)
    assert [row.cells[waits].best for row in of_case(case).rows].count(True) == 1
    several = of_runs({name: [replay(log, name)] * 2 for name in ("easy", "recorded")})
    assert several.policies == ("recorded", "easy")


def test_where_it_cannot_be_told() -> None:
    some = with_waits(LOG, np.where(np.arange(len(LOG)) < 2, -1, 0))
    with pytest.raises(SettingError, match="does not say when 2 of its 300 jobs started"):
        dt.replay(some, "recorded")
    with pytest.raises(SettingError, match="when 300 of its 300"):
        dt.replay(LOG, "recorded")
    with pytest.raises(SettingError, match="what the log says"):
        dt.replay(some, "recorded", every_s=30)
    whole = with_waits(LOG, np.zeros(len(LOG)))
    one_core, shared = (
        by_node(("cores", "gpus"), (NodeKind("a", LOG.processors, (1, 0)),), shared) for shared in ("", "gpus")
    )
    with pytest.raises(SettingError, match="on which nodes 300 of its 300 jobs ran"):
        dt.replay(whole, "recorded", cluster=one_core)
    with pytest.raises(SettingError, match="which gpus of a node a job had"):
        dt.replay(whole, "recorded", cluster=shared)
    with pytest.raises(SettingError, match="with its own feedback"):
        dt.replay(whole, "recorded", feedback=True)
    for scenario in ("scale-load=2", "set-load=0.5", "sample=0.5", "sample-users=0.5"):
        with pytest.raises(SettingError, match="what would have happened with"):
            dt.replay(apply(whole, scenario), "recorded")
    dt.replay(apply(whole, "span=0d..1d"), "recorded")


def test_a_record_that_nobody_can_beat_is_not_called_beaten() -> None:
    case = dt.compare(with_waits(LOG, np.zeros(len(LOG))), ["recorded", "easy", "list-ljf"])
    told = " ".join(summary(case.page()).sentences)
    assert "less than under recorded" not in told
    assert "Of the policies, the mean wait was least under" in told


@needs_traces
def test_on_the_nodes_of_eurora() -> None:
    """The log says which job ran where, and no start breaks a rule."""
    days, cluster = read_workload(TRACES / "heterogeneous" / "eurora_jobs_merged.csv.gz"), cluster_named("eurora")
    made = replay(days, "recorded", cluster=cluster)
    assert check_schedule(made) == []
    assert made.placement is not None
    moved = replace(made.placement, node=(made.placement.node + 1) % cluster.nodes)
    assert len(check_schedule(replace(made, placement=moved))) > 20
