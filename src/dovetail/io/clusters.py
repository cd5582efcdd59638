"""Clusters by node, from TOML files: those that come with Dovetail, and a user's own (docs/nodes.md has the form)."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, Final

from dovetail.errors import InputError, SettingError
from dovetail.files import beside
from dovetail.io.alibaba import NODE_FIELDS, read_nodes
from dovetail.io.csv import MOST, first_line
from dovetail.io.node_list import MOST_NAMED, host_list, hosts, node_list
from dovetail.io.outages import read_outages
from dovetail.io.streams import regular_file
from dovetail.model.cluster import Cluster, NodeKind, by_node, with_features
from dovetail.model.features import NAME as FEATURE
from dovetail.model.features import PLAIN
from dovetail.names import unknown
from dovetail.units import printable

MOST_BYTES: Final = 1 << 20
"""Bytes of a file: four thousand kinds of node need as many, and a hostile one cannot keep the parser busy."""
MOST_DOTS: Final = 100
"""In a line, outside of quotes."""
_QUOTED: Final = re.compile(r'"[^"]*"')
MOST_NODES: Final = 1_000_000
"""Ten times what the largest machines have; a replay on this many takes 1 GB."""
_WORDS: Final = ("kind", "count", "features", "hosts")
"""Keys of a kind of node that are not resources."""
_TAKEN: Final = ("variance",)
"""No resource is called so: `utilization_variance` is a metric."""
_RESOURCE: Final = re.compile(r"[a-z][a-z0-9_]{0,49}", re.ASCII)
_LINE: Final = re.compile(r"\(at line (\d+)")


def cluster_named(text: str, folder: Path = Path()) -> Cluster:
    """The cluster of that name, or the one that a file describes, as seen from a folder: TOML, or a list of nodes as
    Alibaba's."""
    built_in = _built_in()
    if text in built_in:
        return _cluster(_parsed(built_in[text], text), text, folder)
    path = folder / Path(text).expanduser()
    if path.suffix == ".toml":
        return read_cluster(path)
    if path.is_file() and first_line(path) == ",".join(NODE_FIELDS):
        return read_nodes(path)
    raise SettingError(
        f"no cluster {printable(text)!r}: choose from {', '.join(built_in)}, or name a file: one called .toml, or a"
        f" list of nodes that begins with {','.join(NODE_FIELDS)}"
    )


def read_cluster(path: str | Path) -> Cluster:
    """Read a cluster from a TOML file. InputError for whatever is not as docs/nodes.md says."""
    return _cluster(read_toml(Path(path), "a cluster"), path, Path(path).parent)


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """What a small TOML file says."""
    path = regular_file(path)
    try:
        with path.open("rb") as stream:
            raw = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(path, 0, f"cannot be read: {error.strerror}") from error
    if len(raw) > MOST_BYTES:
        raise InputError(path, 0, f"more than {MOST_BYTES:,} bytes, too many for the description of {what}")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(path, 0, f"not UTF-8 text: {error}") from error
    return _parsed(text, path)


def as_toml(value: Any) -> str:
    """A text, a number or a list of them, as TOML writes it."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _built_in() -> dict[str, str]:
    """The text of each cluster that comes with Dovetail, by name."""
    folder = resources.files("dovetail.io").joinpath("clusters")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name)
    return {file.name.removesuffix(".toml"): file.read_text(encoding="utf-8") for file in files}


def _parsed(text: str, path: str | Path) -> dict[str, Any]:
    for number, line in enumerate(text.split("\n"), 1):
        if (
            line.count(".") > MOST_DOTS and _QUOTED.sub("", line).count(".") > MOST_DOTS
        ):  # the parser takes the square of their number
            raise InputError(path, number, f"more than {MOST_DOTS:,} dots in a line")
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        at = _LINE.search(str(error))
        raise InputError(path, int(at[1]) if at else 0, f"not TOML: {printable(str(error))}") from error


def _cluster(table: Mapping[str, Any], path: str | Path, folder: Path) -> Cluster:
    """The cluster that a parsed file of a folder describes, after checks of all that it says."""
    keys = ("name", "shared", "nodes", "features", "outages", "licences")
    for key in table:
        if key not in keys:
            raise InputError(path, 0, unknown("key", printable(key), keys))
    for key in ("name", "shared", "outages"):
        if not isinstance(table.get(key, ""), str):
            raise InputError(path, 0, f"{key} = {shown(table[key])}: must be a text")
    nodes = table.get("nodes")
    if not isinstance(nodes, list) or not nodes or not all(isinstance(entry, dict) for entry in nodes):
        raise InputError(path, 0, "no nodes: write a section [[nodes]] for each kind of node")
    try:
        names = dict.fromkeys(key for entry in nodes for key in entry if key not in (*_WORDS, "cores"))
        order = ("cores", *names)
        kinds = tuple(_kind(entry, order) for entry in nodes)
        if len({kind.name for kind in kinds}) < len(kinds):
            raise ValueError("two kinds of node have the same name: give each its own")
        if sum(kind.count for kind in kinds) > MOST_NODES:
            raise ValueError(f"more than {MOST_NODES:,} nodes")
        if sum(kind.count * kind.capacity[0] for kind in kinds) > MOST:
            raise ValueError(f"more than {MOST:,} cores")
        found = by_node(order, kinds, table.get("shared", ""))
        found = replace(found, names=_names(nodes, kinds))
        found = with_features(found, _nodes_of(table.get("features", {}), found.nodes))
        found = replace(found, licences=_licences(table.get("licences", {})))
    except ValueError as error:
        raise InputError(path, 0, str(error)) from error
    named = table.get("outages")
    if named and (Path(named).is_absolute() or ".." in Path(named).parts):
        raise InputError(path, 0, f"outages = {shown(named)}: must be a file beside this one, or in a folder there")
    return replace(found, outages=read_outages(folder / named, found.nodes)) if named else found


def _kind(entry: Mapping[str, Any], order: tuple[str, ...]) -> NodeKind:
    name = entry.get("kind")
    if not isinstance(name, str) or not name or printable(name) != name:
        raise ValueError(f"kind = {shown(name)}: each [[nodes]] needs a name, a text of 1 to 200 characters")
    for key in entry:
        if key not in _WORDS and (key in _TAKEN or not _RESOURCE.fullmatch(key)):
            raise ValueError(
                f"kind {name!r}: {printable(key)!r} cannot be a resource: its name is of a-z, 0-9 and _, at most 50,"
                f" and not {', '.join(_TAKEN)}"
            )
    features = entry.get("features", [])
    if not isinstance(features, list) or not all(isinstance(f, str) and FEATURE.fullmatch(f) for f in features):
        raise ValueError(f"kind {name!r}: features = {shown(features)}: must be a list of texts {PLAIN}")
    where = f"kind {name!r}"
    count, cores = _whole(entry, where, "count", 1), _whole(entry, where, "cores", 1)
    rest = [_whole(entry, where, resource, 0) if resource in entry else 0 for resource in order[1:]]
    return NodeKind(name, count, (cores, *rest), tuple(features))


def _names(nodes: list[dict[str, Any]], kinds: tuple[NodeKind, ...]) -> tuple[str, ...]:
    """What the nodes are called; nothing, if none of them has a name."""
    if not any("hosts" in entry for entry in nodes):
        return ()
    found = list[str]()
    for entry, kind in zip(nodes, kinds, strict=True):
        text = entry.get("hosts")
        if not isinstance(text, str):
            raise ValueError(f"kind {kind.name!r}: hosts = {shown(text)}: must be a list such as c[1-4], as for others")
        names = hosts(text)
        if len(names) != kind.count or not all(map(FEATURE.fullmatch, names)):
            raise ValueError(
                f"kind {kind.name!r}: hosts = {shown(text)}: {len(names):,} names {PLAIN}, for {kind.count:,} nodes"
            )
        found += names
    return tuple(found)


def write_cluster(cluster: Cluster, path: str | Path, name: str, outages: str = "") -> None:
    """Write nodes as they are read, one section for each kind. `outages`: the file of them, beside this one."""
    lines = [f"name = {_text(name)}", *([f"shared = {_text(cluster.shared)}"] if cluster.shared else [])]
    lines += [f"outages = {_text(outages)}"] if outages else []
    first = 0
    for kind in cluster.kinds:
        lines += ["", "[[nodes]]", f"kind = {_text(kind.name)}", f"count = {kind.count}"]
        if cluster.names:
            lines.append(f"hosts = {_text(host_list(cluster.names[first : first + kind.count]))}")
        first += kind.count
        has = zip(cluster.resources, kind.capacity, strict=True)
        lines += [f"{resource} = {count}" for resource, count in has]
        if kind.features:
            lines.append(f"features = [{', '.join(map(_text, kind.features))}]")
    if cluster.licences:
        lines += ["", "[licences]", *(f"{_text(licence)} = {count}" for licence, count in cluster.licences)]
    with beside(Path(path)) as new:
        new.write_text("\n".join([*lines, ""]), encoding="utf-8")


def _text(text: str) -> str:
    """A text of TOML."""
    return json.dumps(printable(text, 1 << 20), ensure_ascii=False)


def _licences(table: Any) -> tuple[tuple[str, int], ...]:
    """How many there are of each licence."""
    if not isinstance(table, dict):
        raise ValueError(f"licences = {shown(table)}: must be a section [licences] of names and numbers")
    for name in table:
        if not FEATURE.fullmatch(name):
            raise ValueError(f"licence {printable(name)!r}: must be a text {PLAIN}")
    return tuple((name, _whole(table, "licences", name, 0)) for name in table)


def _nodes_of(table: Any, nodes: int) -> dict[str, list[int]]:
    """Which nodes have which further features, of a table of texts as 0-9,12."""
    if not isinstance(table, dict):
        raise ValueError(f"features = {shown(table)}: must be a section [features] of names and nodes")
    found, named = dict[str, list[int]](), 0
    for name, text in table.items():
        if not FEATURE.fullmatch(name):
            raise ValueError(f"feature {printable(name)!r}: must be a text {PLAIN}")
        try:
            found[name] = node_list(text if isinstance(text, str) else "", nodes)
        except ValueError as error:
            raise ValueError(f"features: {printable(name)} = {shown(text)}: {error}") from error
        named += len(found[name])
        if named > MOST_NAMED:
            raise ValueError(f"features: more than {MOST_NAMED:,} nodes are named in all")
    return found


def _whole(entry: Mapping[str, Any], where: str, key: str, least: int) -> int:
    value = entry.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MOST:
        raise ValueError(f"{where}: {key} = {shown(value)}: must be a whole number from {least} to {MOST:,}")
    return value


def shown(value: Any) -> str:
    """A value of a TOML file as a message names it."""
    if isinstance(value, dict | list):
        return f"a {type(value).__name__}"
    return "missing" if value is None else printable(repr(value))
