"""Licences: counted for all jobs together, on processors and on nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dovetail.engine.onward import begin_at
from dovetail.engine.replay import replay
from dovetail.engine.stepped import Stepper
from dovetail.errors import InputError, PolicyError, SettingError, StateError
from dovetail.io.clusters import read_cluster
from dovetail.model.cluster import Cluster, NodeKind, by_node
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.registry import policy
from dovetail.referee import check_plan, check_schedule
from dovetail.referee.state import check_state
from dovetail.studies.store import cluster_of, nodes_text
from dovetail.workloads.filters import fits_nodes
from tests.engine.first_fits import FirstFits

ROWS = {
    "id": [1, 2, 3], "submit": [0, 1, 2], "size": [2] * 3, "runtime": [5] * 3, "limit": [5] * 3,
    "licence_a": [1, 1, -1],
}  # fmt: skip
JOBS = Workload("three", {name: np.array(values) for name, values in ROWS.items()}, 8, Provenance("by hand"))
COUNTED = Cluster(8, licences=(("a", 1),))
ON_NODES = replace(by_node(("cores",), (NodeKind("n", 2, (4,)),)), licences=COUNTED.licences)


@pytest.mark.parametrize("cluster", [COUNTED, ON_NODES])
def test_who_holds_the_only_licence_keeps_others_waiting(cluster: Cluster) -> None:
    made = replay(JOBS, "easy", cluster=cluster)
    assert made.start.tolist() == [0, 5, 2]
    assert check_schedule(made) == []
    assert replay(JOBS, "easy", cluster=replace(cluster, licences=())).start.tolist() == [0, 1, 2]
    free = replace(replay(JOBS, "easy", cluster=replace(cluster, licences=())), cluster=cluster)
    (broken,) = check_schedule(free)
    assert broken.rule == "licences"
    assert broken.detail == "started at 1, which brings 2 licences of a into use where there are 1"


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(SettingError, match="three asks for what the cluster does not have: no licence 'a'"):
        replay(JOBS, "easy", cluster=Cluster(8, licences=(("b", 1),)))
    with pytest.raises(SettingError, match="three: job 1 holds 1 licences of a; there are 0"):
        replay(JOBS, "easy", cluster=Cluster(8, licences=(("a", 0),)))
    with pytest.raises(SettingError, match="cp-af counts no licences"):
        replay(JOBS, policy("cp-af"), cluster=COUNTED)
    with pytest.raises(PolicyError, match="starts job 1, which takes 1 licences of a; 0 are left"):
        replay(JOBS, FirstFits(), cluster=COUNTED)
    with pytest.raises(ValueError, match="different names"):
        Cluster(8, licences=(("a", 1), ("a", 2)))


def at_two(cluster: Cluster) -> State:
    """The state in which the second job waits for the licence and the third has just come."""
    seen: dict[int, State] = {}

    def see(state: State, plan: Plan) -> None:
        seen[state.now] = replace(state, start=state.start.copy())

    Stepper(JOBS, cluster, policy("easy"), JOBS.limit, see=see).advance(2)
    return seen[2]


@pytest.mark.parametrize("cluster", [COUNTED, ON_NODES])
def test_a_state_says_why_a_job_waits_and_can_be_gone_on_from(cluster: Cluster) -> None:
    state = at_two(cluster)
    plan = policy("easy").decide(state)
    assert plan.reasons == {1: "holds 1 licences of a; 0 are free"}
    assert check_plan(state, plan) == []
    assert "licences of a" in [one.rule for one in check_plan(state, replace(plan, starts=[1]))]
    none = replace(state, licences_total={"a": 1}, licences={"a": np.array([1, 2, 0])})
    assert policy("easy").decide(none).reasons == {1: "holds 2 licences of a; there are 1"}
    coming = replace(JOBS, columns={**JOBS.columns, "submit": JOBS.submit + 3})
    begun = begin_at(state, policy("easy"), coming)
    made = begun.fork(np.full(6, 5))
    made.advance()
    assert made.start.tolist() == [0, 5, 2, 10, 15, 5]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"licences": {}}, "`licences` must say who holds them"),
        ({"licences_total": {"a": -1}}, "must be from 0"),
        ({"licences": {"a": np.array([1, 1])}}, "has 2 numbers, and submit 3"),
        ({"licences": {"a": np.array([1, -1, 0])}}, "job 1 takes no number of licences of a from 0 on"),
        ({"licences": {"a": np.array([2, 1, 0])}}, "running jobs take more than the 1 licences of a that there are"),
    ],
)
def test_a_state_that_cannot_be(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(StateError, match=said):
        check_state(replace(at_two(COUNTED), **wrong))  # type: ignore[arg-type]


def test_a_study_counts_them() -> None:
    assert cluster_of(8, nodes_text(ON_NODES)) == ON_NODES


def test_a_cluster_with_licences_wants_to_know_who_holds_them() -> None:
    with pytest.raises(StateError, match="licences_total: must be what the cluster has"):
        check_state(replace(at_two(ON_NODES), licences_total={}, licences={}))


def test_who_holds_too_many_can_be_left_out() -> None:
    few = replace(ON_NODES, licences=(("a", 0),))
    assert fits_nodes(JOBS, few)["id"].tolist() == [3]


def test_a_file_says_how_many_there_are(tmp_path) -> None:  # type: ignore[no-untyped-def]
    nodes = "[[nodes]]\nkind = 'n'\ncount = 2\ncores = 4\n"
    (tmp_path / "c.toml").write_text(f"{nodes}[licences]\nmatlab = 3\n")
    assert read_cluster(tmp_path / "c.toml").licences == (("matlab", 3),)
    for wrong, said in (("a = -1", "a = -1: must be a whole"), ("'a b' = 1", "licence 'a b'"), ("a = 1.5", "a = 1.5")):
        (tmp_path / "c.toml").write_text(f"{nodes}[licences]\n{wrong}\n")
        with pytest.raises(InputError, match=said):
            read_cluster(tmp_path / "c.toml")
