"""Outages from a table: what is read, and everything that is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.errors import InputError
from dovetail.io.clusters import read_cluster
from dovetail.io.outages import read_outages, write_outages
from dovetail.model.cluster import Outage

HEAD = "nodes,begin,end,only,known\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "outages.csv"
    path.write_text(HEAD + text)
    return path


def test_what_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, "0-2  4,1d,36h,,\n3,100,200,training,50s\n1,7,9,,fails\n")
    outages = read_outages(path, 5)
    assert outages == (
        Outage((0, 1, 2, 4), 86_400, 129_600), Outage((3,), 100, 200, "training", 50), Outage((1,), 7, 9, fails=True)
    )  # fmt: skip
    write_outages(outages, path)
    assert read_outages(path, 5) == outages


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0,1,2,,\n0,5,5,,\n", ":3: it ends at 5, and begins at 5"),
        ("5,1,2,,\n", "nodes go from 0 to 4, upwards"),
        ("3-1,1,2,,\n", "nodes go from 0 to 4, upwards"),
        ("x,1,2,,\n", "must be numbers of nodes, as in 0-9 12"),
        (",1,2,,\n", "must be numbers of nodes"),
        ("0,soon,2,,\n", "begin: 'soon' is not a duration"),
        ("0,1,,,\n", "end: '' is not a duration"),
        ("0,1,2,,-1\n", "known: '-1' is not a duration"),
        ("0,1,99999999999,,\n", "longer than"),
        (f"0,1,2,{'x' * 201},\n", "a name of more than 200 characters"),
        ("0,1,2\n", "not 5 fields"),
        ("", "no line"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_outages(written(tmp_path, text), 5)


def test_a_cluster_file_names_its_outages(tmp_path: Path) -> None:
    written(tmp_path, "0-1,1h,2h,,\n")
    path = tmp_path / "mine.toml"
    path.write_text('outages = "outages.csv"\n[[nodes]]\nkind = "a"\ncount = 3\ncores = 4\n')
    assert read_cluster(path).outages == (Outage((0, 1), 3600, 7200),)
    path.write_text('outages = "none.csv"\n[[nodes]]\nkind = "a"\ncount = 3\ncores = 4\n')
    with pytest.raises(InputError, match=r"none\.csv"):
        read_cluster(path)
    path.write_text('outages = "../outages.csv"\n[[nodes]]\nkind = "a"\ncount = 3\ncores = 4\n')
    with pytest.raises(InputError, match="must be a file beside this one"):
        read_cluster(path)
    path.write_text('outages = 3\n[[nodes]]\nkind = "a"\ncount = 3\ncores = 4\n')
    with pytest.raises(InputError, match="outages = 3: must be a text"):
        read_cluster(path)


def test_many_nodes_are_refused_before_they_are_kept(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="are named in all"):
        read_outages(written(tmp_path, "0-999999,1,2,,\n" * 9), 10**6)


def test_many_nodes_have_room_in_a_line(tmp_path: Path) -> None:
    """As ranges, and in as many lines as it takes."""
    outages = (Outage(tuple(range(20_000)), 5, 9), Outage(tuple(range(0, 20_000, 2)), 7, 9), Outage((0, 1, 3), 8, 9))
    write_outages(outages, tmp_path / "out.csv")
    again = read_outages(tmp_path / "out.csv", 20_000)
    there = {begin: sorted(node for one in again if one.begin == begin for node in one.nodes) for begin in (5, 7, 8)}
    assert there == {one.begin: list(one.nodes) for one in outages}
    assert (tmp_path / "out.csv").read_text().splitlines()[-1].startswith("0-1 3,8,9")
