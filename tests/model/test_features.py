"""Features joined by and, or, not: which kinds of node will do; and nodes that differ only by them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.model.cluster import NodeKind, Typical, by_node, with_features
from dovetail.model.features import chosen
from dovetail.model.requests import requests_of
from dovetail.model.workload import Workload
from dovetail.referee import check_schedule
from tests.slow.node_cases import random_nodes_case

NAMES = ("a", "b", "c", "gpu_v100", "n-17.x")


def drawn(rng: random.Random, depth: int = 4) -> tuple[str, Callable[[set[str]], bool]]:
    """An expression as text, and what it says of a set of names."""
    if depth == 0 or rng.random() < 0.3:
        name = rng.choice(NAMES)
        return name, lambda have: name in have
    if rng.random() < 0.2:
        text, holds = drawn(rng, 0)
        return f"!{text}", lambda have: not holds(have)
    parts = [drawn(rng, depth - 1) for _ in range(rng.randint(2, 3))]
    space, every = rng.choice(("", " ")), rng.random() < 0.5
    text = f"{space}{'&' if every else '|'}{space}".join(f"({text})" for text, _ in parts)
    return text, lambda have: (all if every else any)(holds(have) for _, holds in parts)


def test_expressions_mean_what_they_say() -> None:
    rng = random.Random(1)
    held = [{name for name in NAMES if rng.random() < 0.5} for _ in range(40)]
    for _ in range(500):
        text, holds = drawn(rng)
        found = chosen(text, lambda name: np.array([name in have for have in held]))
        assert found.tolist() == [holds(have) for have in held], text


def test_and_binds_more_than_or_and_not_more_than_both() -> None:
    held = [set(), {"a"}, {"b"}, {"c"}, {"a", "b"}, {"b", "c"}, {"a", "b", "c"}]

    def where(text: str) -> list[int]:
        return np.flatnonzero(chosen(text, lambda name: np.array([name in have for have in held]))).tolist()

    assert where("a|b&c") == where("b&c|a") == [1, 4, 5, 6]
    assert where("(a|b)&c") == [5, 6]
    assert where("!a&b") == [2, 5]
    assert where("!(a|b)") == [0, 3]
    assert where("!!a") == where("a")


@pytest.mark.parametrize("text", ["", "&", "a&", "|a", "a b", "(a", "a)", "()", "a!", "a(b)", "a&|b", "(" * 10_000])
def test_what_is_unclear_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match="joined by & and"):
        chosen(text, lambda name: np.ones(1, bool))


def test_kinds_are_split_where_their_nodes_differ() -> None:
    cluster = by_node(("cores",), (NodeKind("thin", 4, (8,), ("old",)), NodeKind("fat", 2, (32,))))
    made = with_features(cluster, {"short": range(1, 5), "n3": [3]})
    assert [(kind.name, kind.count, kind.features) for kind in made.kinds] == [
        ("thin", 1, ("old",)), ("thin", 2, ("old", "short")), ("thin", 1, ("old", "short", "n3")),
        ("fat", 1, ("short",)), ("fat", 1, ()),
    ]  # fmt: skip
    assert made.capacity[made.kind_of].tolist() == cluster.capacity[cluster.kind_of].tolist()
    assert made.having("short&!n3")[made.kind_of].tolist() == [False, True, True, False, True, False]
    assert made.having("").all()
    assert not made.having("nowhere").any()


def test_typical_jobs_keep_their_nodes() -> None:
    typical = (Typical(0.5, (1,), 1000, 0b01), Typical(0.5, (1,), 1000, 0b10))
    cluster = by_node(("cores",), (NodeKind("thin", 2, (8,)), NodeKind("fat", 2, (32,))))
    made = with_features(replace(cluster, typical=typical), {"n1": [1], "n2": [2]})
    assert [one.kinds for one in made.typical] == [0b0011, 0b1100]


def test_a_name_for_each_node_changes_no_schedule() -> None:
    """Every node is then a kind of its own."""
    most = 0
    for seed in range(60):
        case = random_nodes_case(random.Random(f"split {seed}"))
        named = with_features(case.cluster, {f"n{node}": [node] for node in range(case.cluster.nodes)})
        most = max(most, len(named.kinds))
        one, other = (replay(case.workload, "easy", cluster=cluster) for cluster in (case.cluster, named))
        assert one.start.tolist() == other.start.tolist()
        assert one.placement is not None
        assert other.placement is not None
        assert one.placement.node.tolist() == other.placement.node.tolist()
    assert most > 15


def test_features_are_names_on_nodes_that_are_there() -> None:
    cluster = by_node(("cores",), (NodeKind("thin", 2, (8,)),))
    for nodes_of, says in (({"a": [-1]}, "no node -1"), ({"a": [2]}, "no node 2"), ({"a b": [0]}, "without spaces")):
        with pytest.raises(ValueError, match=says):
            with_features(cluster, nodes_of)
    named = with_features(cluster, {"a": [0]})
    named.having("a")[:] = True
    assert named.having("a").tolist() == [True, False]


def test_jobs_of_a_partition_run_there_alone() -> None:
    """Of one that the cluster does not know they run anywhere; of several, with commas, in any of these."""
    kinds = tuple(NodeKind(name, 2, (4,), (name,)) for name in "abc")
    cluster = by_node(("cores",), kinds)
    known = with_features(cluster, {"partition=left": [0, 1, 2], "partition=right": [4, 5]})
    names = {"partition": ("left", "right", "gone", "left,right", "left,gone"), "feature": ("a|c",)}
    rows = [(-1, -1), (0, -1), (1, -1), (2, -1), (3, -1), (4, -1), (0, 0), (3, 0), (-1, 0)]
    columns = {
        "id": np.arange(9), "submit": np.zeros(9, int), "size": np.ones(9, int), "runtime": np.full(9, 5),
        "limit": np.full(9, 5), "partition": np.array([one for one, _ in rows]),
        "feature": np.array([one for _, one in rows]),
    }  # fmt: skip
    workload = Workload("parts", columns, 24, names=names)
    asked = requests_of(workload, known)
    where = [np.flatnonzero(asked.sets[row]) for row in asked.among]
    nodes = [np.flatnonzero(np.isin(known.kind_of, some)).tolist() for some in where]
    left, right, every = [0, 1, 2], [4, 5], list(range(6))
    assert nodes == [every, left, right, every, left + right, left, [0, 1], [0, 1, 4, 5], [0, 1, 4, 5]]
    plain = requests_of(workload, cluster)
    assert plain.sets[plain.among].all(axis=1).tolist() == [True] * 6 + [False] * 3
    made = replay(workload, "easy", cluster=known)
    assert check_schedule(made) == []
