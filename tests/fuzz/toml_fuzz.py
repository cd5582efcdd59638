"""Mutated TOML against the readers of clusters, sites and studies. A record is a line. What is accepted is judged by
the parsed file itself; a cluster that is refused must break a rule."""

from __future__ import annotations

import random
import re
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

from dovetail.errors import DovetailError
from dovetail.io.clusters import read_cluster
from dovetail.io.sites import read_site
from dovetail.studies.spec import read_study
from tests.fuzz.common import NASTY, Tally, asked, worse_bytes, written

CLUSTER = """name = "made"
shared = "gpus"

[[nodes]]
kind = "thin"
count = 3
cores = 16
memory_gb = 64
features = ["thin", "a-b"]

[[nodes]]
kind = "fat"
count = 21
cores = 48
memory_gb = 1_024
gpus = 4

[features]
short = "0-4,7"
n3 = "3"
"""
SITE = """name = "here"
currency = "EUR"
busy_w = 9.5
idle_w = 3
tariff = 0.02
[off]
after = "10m"
wake = "5m"
processors = 4
w = 0.25
[cooling]
plant = "air"
full_kw = 1
[temperature]
constant = 20
[price]
file = "hours.csv"
column = "EUR"
begins = 2021-01-01T01:00:00
[carbon]
constant = 350
"""
STUDY = """name = "small"
policies = ["easy", "list-reg", {name = "list", order = "sjf", reserve = [1, 8]}]
baseline = "easy"
estimates = ["limit", "runtime"]
scenarios = [["deadlines=0.2"], []]
spans = ["all", "each 30d"]
seeds = 8
keep = "metrics"
counting = "all"
every = "0"
feedback = false

[[traces]]
name = "made"
generate = {jobs = 2000, processors = 64, load = 0.85}

[[traces]]
path = "no.swf"
processors = 64

[[exclude]]
policy = "list:*"
estimate = "runtime"
"""
HOURS = b"when,EUR\n2021-01-01 00:00:00,10.5\n2021-01-01 01:00:00,-3\n2021-01-01 02:00:00,7.25\n"
_WORDS = """
0 1 -1 2 7 64 1000000 1000000001 99999999999999999999 0x10 0o7 0b1 1_0 1__0 +1 007 1.5 -1.5 1e3 1e400 nan inf
-inf -0.0 true false 2021-01-01 2021-01-01T00:00:00Z 07:32:00 [] {} [[]] [1] ["a"] [1,"a"] {a=1} [{}]
"""
VALUES = (
    *_WORDS.split(),
    '"easy"', '"list:reserve=9"', '"plan-af:decodes=x"', '"x.py:Y"', '"each 0d"', '"1d..2d"', '"5m"', '"-5m"', '"1e5h"',
    '"$HOME/x"', '"~nobody/x"', '"../hours.csv"', '"air"', '"all"', '"a|b"', '["a|b"]', '[""]', "[true]", '""', "''",
    "'''x\ny'''", '"\\u0000"', '"\\u202e"', '"\\U0001F600"', '"' + "x" * 900 + '"', "[" * 60 + "]" * 60, "9" * 5_000,
    '{name = "list", reserve = [1, 1]}', '[{name = "list"}]', '[{reserve = 1}]', '["easy", "easy"]', "",
)  # fmt: skip


def quoted(text: str) -> str:
    clean = "".join(c if c.isprintable() and c not in '"\\' else f"\\u{ord(c):04x}" for c in text if ord(c) < 0xD800)
    return f'"{clean}"'


def worse_line(line: str, rng: random.Random) -> str:
    key, equals, value = line.partition("=")
    way = rng.randrange(9)
    if way <= 3 and equals:
        return f"{key}= {rng.choice(VALUES)}"
    if way == 4 and equals:
        return f"{key}= {quoted(rng.choice(NASTY))}"
    if way == 5:
        return (
            f"{rng.choice(('cout', 'corse', 'é', 'a.b', quoted(rng.choice(NASTY)), '', 'variance'))} ={value or ' 1'}"
        )
    if way == 6:
        return f"{line}\n{line}"
    if way == 7:
        return ""
    return worse_bytes(line.encode(), rng).decode("utf-8", "replace")


def one(rng: random.Random, folder: Path) -> Tally:
    """Many small files: one alone is soon read."""
    (folder / "hours.csv").write_bytes(HOURS)
    tally = Tally()
    for _ in range(50):
        kind = rng.choice((CLUSTER, CLUSTER, SITE, SITE, STUDY))
        lines = kind.splitlines()
        places = [at for at, line in enumerate(lines) if line]
        chosen = rng.sample(places, rng.choice((0, 1, 1, 2, 4, len(places))))
        for at in chosen:
            lines[at] = worse_line(lines[at], rng)
        if rng.random() < 0.1:
            rng.shuffle(lines)
        data = "\n".join(lines).encode("utf-8", "surrogatepass")
        if rng.random() < 0.1:
            data = worse_bytes(data, rng)
        path = written(folder, "made.toml", data)
        records = len(places)
        accepted = _study(path) if kind is STUDY else _site(path) if kind is SITE else _cluster(path)
        tally.add(Tally(1, records, len(chosen), *((records, 0, 0, 0) if accepted else (0, 0, records, 1))))
    return tally


def _parsed(path: Path) -> dict[str, Any] | None:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return None


def _whole(value: Any, least: int) -> bool:
    return type(value) is int and least <= value <= 10**9


def good_cluster(table: dict[str, Any] | None) -> bool:
    """Whether docs/nodes.md allows it."""
    if table is None or not set(table) <= {"name", "shared", "nodes", "features"}:
        return False
    nodes, shared = table.get("nodes"), table.get("shared", "")
    if not isinstance(table.get("name", ""), str) or not isinstance(shared, str):
        return False
    if not isinstance(nodes, list) or not nodes or not all(isinstance(node, dict) for node in nodes):
        return False
    for node in nodes:
        kind, features = node.get("kind"), node.get("features", [])
        rest = {key: value for key, value in node.items() if key not in ("kind", "count", "cores", "features")}
        if not isinstance(kind, str) or not 0 < len(kind) <= 200 or not kind.isprintable():
            return False
        if not isinstance(features, list) or not all(isinstance(one, str) and _plain(one) for one in features):
            return False
        if not _whole(node.get("count"), 1) or not _whole(node.get("cores"), 1):
            return False
        if not all(re.fullmatch("[a-z][a-z0-9_]{0,49}", key) and key != "variance" for key in rest):
            return False
        if not all(_whole(value, 0) for value in rest.values()) or (shared and node.get(shared, 0) > 62):
            return False
    known = {key for node in nodes for key in node} - {"kind", "count", "cores", "features"}
    if shared and shared not in known:
        return False
    if len({node["kind"] for node in nodes}) < len(nodes) or sum(node["count"] for node in nodes) > 10**6:
        return False
    if sum(node["count"] * node["cores"] for node in nodes) > 10**9:
        return False
    return good_features(table.get("features", {}), sum(node["count"] for node in nodes))


def _plain(name: str) -> bool:
    return name != "" and not any(letter in "&|!()" or letter.isspace() for letter in name)


def good_features(table: Any, nodes: int) -> bool:
    """Whether the section says of nodes that are there what they have."""
    if not isinstance(table, dict) or not all(_plain(name) and isinstance(text, str) for name, text in table.items()):
        return False
    ranges = [_range(piece) for text in table.values() for piece in text.split(",")]
    return all(found and found[0] <= found[1] < nodes for found in ranges)


def _range(piece: str) -> tuple[int, int] | None:
    """First and last of what is written 3 or 3-5."""
    numbers = piece.strip().split("-")
    if len(numbers) > 2 or not all(number.isascii() and number.isdecimal() and len(number) < 10 for number in numbers):
        return None
    return int(numbers[0]), int(numbers[-1])


def _cluster(path: Path) -> bool:
    cluster, refused = asked(lambda: read_cluster(path))
    table = _parsed(path)
    assert (cluster is not None) == good_cluster(table), f"refused: {refused}"
    if cluster is None or table is None:
        return False
    more = {name: [_range(piece) for piece in text.split(",")] for name, text in table.get("features", {}).items()}
    kinds, left = list(cluster.kinds), 0
    number = 0
    for node in table["nodes"]:
        capacity = tuple(node.get(resource, 0) for resource in cluster.resources)
        for _ in range(node["count"] if more else 1):
            kind = kinds[0]
            left = left or kind.count
            named = (name for name, ranges in more.items() if any(a <= number <= b for a, b in filter(None, ranges)))
            assert (kind.name, kind.capacity) == (node["kind"], capacity)
            assert kind.features == (*node.get("features", []), *named)
            left -= 1 if more else kind.count
            number += 1
            if left == 0:
                kinds.pop(0)
    assert not kinds
    assert cluster.processors == sum(node["count"] * node["cores"] for node in table["nodes"])
    return True


def _near(found: int, value: Any, scale: int) -> None:
    """What was read is the number in the file, in small units, rounded."""
    assert type(value) in (int, float)
    exact = Fraction(value) * scale
    assert abs(found - exact) <= Fraction(1, 2) + abs(exact) / 2**50, f"{found} for {value}"


def _site(path: Path) -> bool:
    site, _ = asked(lambda: read_site(path))
    if site is None:
        return False
    table = _parsed(path)
    assert table is not None
    assert (site.name, site.currency) == (table.get("name", "made"), table.get("currency", "EUR"))
    for found, key, scale in (
        (site.busy_mw, "busy_w", 1000),
        (site.idle_mw, "idle_w", 1000),
        (site.tariff, "tariff", 10**6),
    ):
        assert 0 <= found <= 10**12
        _near(found, table.get(key, 0), scale)
    assert (site.off is None) == ("off" not in table)
    if site.off is not None:
        assert site.off.processors == table["off"].get("processors", 1)
        assert min(site.off.after_s, site.off.wake_s, site.off.mw) >= 0
    for hours, key, scale in (
        (site.temperature_mc, "temperature", 1000),
        (site.price, "price", 10**6),
        (site.carbon, "carbon", 1000),
    ):
        if "constant" in table.get(key, {}):
            _near(int(hours.values[0]), table[key]["constant"], scale)
        elif key in table:
            assert hours.values.tolist() == [10_500 * scale // 1000, -3 * scale, 7_250 * scale // 1000]
    return True


def _study(path: Path) -> bool:
    """A study may have several mistakes: each is a line that begins with the file and perhaps its line."""
    try:
        study = read_study(path)
    except DovetailError as error:
        for line in str(error).split("\n"):
            assert line.isprintable(), f"not printable: {line!r}"
            assert line.startswith(str(path)), f"{line!r} does not say where"
            assert len(line) < 2_000
        return False
    table = _parsed(path)
    assert table is not None
    assert study.name == table["name"]
    assert len(study.traces) == len(table["traces"])
    assert (
        study.seeds == table["seeds"]
        if isinstance(table.get("seeds"), list)
        else len(study.seeds) == table.get("seeds", 1)
    )
    assert len(set(study.policies)) == len(study.policies) > 0
    return True
