"""Clusters from files: what comes with Dovetail, a user's own, and everything that is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.errors import InputError, SettingError
from dovetail.io.clusters import MOST_BYTES, cluster_named, read_cluster, write_cluster
from dovetail.model.cluster import NodeKind

TWO = """
name = "two"
shared = "gpus"
[[nodes]]
kind = "plain"
count = 3
cores = 8
memory_gb = 64
[[nodes]]
kind = "fast"
count = 2
gpus = 4
cores = 16
memory_gb = 128
features = ["A100", "fast"]
"""


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "cluster.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_file_is_read(tmp_path: Path) -> None:
    cluster = read_cluster(written(tmp_path, TWO))
    assert cluster.resources == ("cores", "memory_gb", "gpus")
    assert cluster.kinds == (NodeKind("plain", 3, (8, 64, 0)), NodeKind("fast", 2, (16, 128, 4), ("A100", "fast")))
    assert (cluster.processors, cluster.nodes, cluster.shared) == (56, 5, "gpus")
    assert cluster_named(str(tmp_path / "cluster.toml")) == cluster


def test_eurora_is_64_nodes() -> None:
    cluster = cluster_named("eurora")
    assert (cluster.nodes, cluster.processors) == (64, 1024)
    totals = [sum(kind.count * kind.capacity[place] for kind in cluster.kinds) for place in range(4)]
    assert dict(zip(cluster.resources, totals, strict=True)) == {
        "cores": 1024, "memory_gb": 60 * 16 + 4 * 32, "gpus": 64, "mics": 64,
    }  # fmt: skip
    # As in the node table: first 32 nodes with MICs, then 32 with GPUs.
    assert [cluster.kinds[kind].capacity[2:] for kind in cluster.kind_of] == [(0, 2)] * 32 + [(2, 0)] * 32


def test_kit_fh2_is_thin_and_fat() -> None:
    cluster = cluster_named("kit-fh2")
    assert [(kind.name, kind.count, kind.capacity) for kind in cluster.kinds] == [
        ("thin", 1152, (20, 64, 0)),
        ("fat", 21, (48, 1024, 4)),
    ]
    assert cluster.processors == 24048


@pytest.mark.parametrize("name", ["", "Eurora", "none", "../eurora", "eurora.csv"])
def test_an_unknown_name_lists_the_valid_ones(name: str) -> None:
    with pytest.raises(SettingError, match=r"eurora, kit-fh2, or name a file: one called \.toml"):
        cluster_named(name)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('name = "two"', "name = 2", "name = 2: must be a text"),
        ('name = "two"', 'label = "two"', "no key 'label': choose from name, shared"),
        ('shared = "gpus"', 'shared = "cores"', "shared='cores'"),
        ('shared = "gpus"', 'shared = "mics"', "shared='mics'"),
        ('shared = "gpus"', "shared = 1", "must be a text"),
        ("gpus = 4", "gpus = 63", "at most 62 gpus"),
        ("gpus = 4", "gpus = -1", "gpus = -1: must be a whole number from 0"),
        ("gpus = 4", "gpus = 2.5", "gpus = 2.5: must be a whole number"),
        ("gpus = 4", "gpus = true", "gpus = True: must be a whole number"),
        ("gpus = 4", "GPUs = 4", "'GPUs' cannot be a resource"),
        ("gpus = 4", '"" = 4', "'' cannot be a resource"),
        (
            "gpus = 4",
            "variance = 4",
            "'variance' cannot be a resource: its name is of a-z, 0-9 and _, at most 50, and not variance",
        ),
        ("gpus = 4", "gpus = [4]", "gpus = a list"),
        ("gpus = 4", "cores = 4", "not TOML"),
        ("count = 3", "count = 0", "count = 0: must be a whole number from 1"),
        ("count = 3", "", "count = missing"),
        ("count = 3", "count = 2000000", "more than 1,000,000 nodes"),
        ("cores = 8\n", "", "cores = missing"),
        ("cores = 8\n", "cores = 900000000\n", "more than 1,000,000,000 cores"),
        ("cores = 8\n", "cores = 99999999999999999999\n", "at most|to 1,000,000,000"),
        ('kind = "plain"', 'kind = "fast"', "same name"),
        ('kind = "plain"', "", "kind = missing"),
        ('kind = "plain"', 'kind = "\\u0007"', "needs a name"),
        ('features = ["A100", "fast"]', 'features = "A100"', "list of texts"),
        ('features = ["A100", "fast"]', 'features = ["A|B"]', "without spaces, &"),
        ('features = ["A100", "fast"]', "features = [1]", "list of texts"),
        ("[[nodes]]", "[nodes]", "not TOML|no nodes"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in TWO
    with pytest.raises(InputError, match=says):
        read_cluster(written(tmp_path, TWO.replace(old, new)))


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (b"", 0, "no nodes"),
        (b"nodes = []", 0, "no nodes"),
        (b"nodes = [1]", 0, "no nodes"),
        (b"\n\nname = ?\n", 3, "not TOML"),
        (b"\xff\xfe", 0, "not UTF-8"),
        (b"a = " + b"[" * 50_000, 0, "not TOML"),
        (b"#" * (MOST_BYTES + 1), 0, "too many"),
    ],
)
def test_hostile_files_are_refused(tmp_path: Path, text: bytes, line: int, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        read_cluster(written(tmp_path, text))
    assert caught.value.line == line


def test_more_kinds_than_a_number_has_bits(tmp_path: Path) -> None:
    text = "".join(f'[[nodes]]\nkind = "k{i}"\ncount = 1\ncores = 1\n' for i in range(200))
    assert len(read_cluster(written(tmp_path, text)).kinds) == 200


FOUR = '[[nodes]]\nkind = "thin"\ncount = 4\ncores = 8\nfeatures = ["old"]\n[features]\n'


def test_features_of_single_nodes(tmp_path: Path) -> None:
    found = read_cluster(written(tmp_path, FOUR + 'short = "0-1, 3"\nn3 = "3"\n'))
    assert [(kind.count, kind.features) for kind in found.kinds] == [
        (2, ("old", "short")), (1, ("old",)), (1, ("old", "short", "n3")),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('short = "0-4"', "nodes go from 0 to 3"),
        ('short = "3-1"', "nodes go from 0 to 3, upwards"),
        ('short = "all"', "must be numbers of nodes"),
        ('short = ""', "must be numbers of nodes"),
        ("short = 3", "must be numbers of nodes"),
        ('"a|b" = "3"', "must be a text without spaces"),
    ],
)
def test_features_that_are_not_of_nodes(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_cluster(written(tmp_path, FOUR + line))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        cluster_named(str(tmp_path / "none.toml"))
    with pytest.raises(InputError, match="a directory"):
        read_cluster(tmp_path)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        '[[nodes]]\nkind = "a \\"b\\""\ncount = 3\nhosts = "c[1-2],d"\ncores = 4\nfeatures = ["ib", "partition=x"]\n'
        '[[nodes]]\nkind = "g"\ncount = 1\nhosts = "g07"\ncores = 2\ngpus = 4\n[licences]\n"m-1" = 3\n'
    )
    cluster = read_cluster(path)
    assert cluster.names == ("c1", "c2", "d", "g07")
    write_cluster(cluster, tmp_path / "again.toml", "again")
    assert read_cluster(tmp_path / "again.toml") == cluster


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"c[1-2]"', '"c[1-3]"', "3 names .* for 2 nodes"),
        ('"c[1-2]"', '"c1,c1"', "different names of nodes"),
        ('"c[1-2]"', '"c["', "no list of hosts"),
        ('"c[1-2]"', "3", "hosts = 3: must be a list such as"),
        ('hosts = "g1"', "", "hosts = missing"),
        ("cores = 2", f"{'a.' * 2000}b = 2", "more than 100 dots in a line"),
    ],
)
def test_names_that_cannot_be(tmp_path: Path, old: str, new: str, says: str) -> None:
    text = '[[nodes]]\nkind = "c"\ncount = 2\nhosts = "c[1-2]"\ncores = 4\n'
    text += '[[nodes]]\nkind = "g"\ncount = 1\nhosts = "g1"\ncores = 2\n'
    (tmp_path / "c.toml").write_text(text.replace(old, new))
    with pytest.raises(InputError, match=says):
        read_cluster(tmp_path / "c.toml")
