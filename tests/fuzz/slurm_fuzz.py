"""Mutated records of Slurm's accounting against their reader. They come from what a real sacct printed and from a dump
by hand with every trap; the counts must add up, fast and slow splitting agree, and every text be harmless."""

from __future__ import annotations

import csv
import json
import lzma
import random
import re
import time
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from dovetail.io.parquet import read_parquet
from dovetail.io.write import write
from dovetail.model.workload import Workload
from dovetail.slurm.history import Understood, read_history
from dovetail.slurm.records import FIELDS, layout_of, slowly, stretches
from tests.fuzz.common import NASTY, Tally, asked, worse_bytes, worse_fields, written
from tests.slurm.trap_records import TRAPS, dump, encoded, records

RECORDED = Path(__file__).parent.parent / "slurm" / "recorded"
MOST_S = 1.0
"""CPU seconds that a batch may take."""
VALUES = {name: sorted({odd[name] for odd, _ in TRAPS if name in odd}) for name in FIELDS}
NEEDED = ("JobIDRaw", "Submit", "Start", "End", "State")
TOKEN = b"~9c41~"
LAYOUTS = ((TOKEN, True), (TOKEN, True), (b"|", True), (b"|", False), (TOKEN, False), (b"^x y^", True))
LOOKED_AT = re.compile(r"=|\+|@|-(?![0-9])")
"""How a cell begins that a spreadsheet would run."""


@cache
def base() -> tuple[dict[str, str], ...]:
    """Records as they were printed."""
    text = lzma.decompress((RECORDED / "26.05.txt.xz").read_bytes())
    layout = layout_of(text)
    assert layout is not None
    printed = [row for one in stretches(iter([text]), "recorded") for row in one.frame.iter_rows(named=True)]
    return tuple({**fields, "Cluster": "here"} for fields in (*printed, *(fields for fields, _ in records())))


@cache
def objects() -> tuple[str, ...]:
    """Jobs of JSON."""
    found = json.loads(lzma.decompress((RECORDED / "26.05.json.xz").read_bytes()))["jobs"]
    return tuple(json.dumps(one) for one in found)


def one(rng: random.Random, folder: Path) -> Tally:
    """One dump, read and judged."""
    tally = Tally(1)
    if rng.random() < 0.02:
        data, count, tally.mutated = _of_json(rng)
        layout = None
    else:
        data, count, tally.mutated = _parsable(rng)
        layout = layout_of(data)
    path = written(folder, "dump.txt", data)
    block = rng.choice((1 + len(data) // 20, 1 << 18, 1 << 22))
    began = time.process_time()
    with warnings.catch_warnings(action="error"):
        found, _ = asked(
            lambda: read_history(path, rng.choice((0, 1_000)), rng.choice(("UTC", "Europe/Berlin")), block)
        )
    spent = time.process_time() - began
    assert spent < MOST_S, f"{spent:.1f} s for {len(data):,} bytes"
    tally.records = count
    compared = rng.random() < 0.1 and found is not None
    if layout is not None and (count < 0 or compared):
        rest, layout = data.replace(layout.line, b"\n").partition(b"\n")[2], replace(layout, line=b"\n")
        slow, many, left = slowly(rest.removesuffix(layout.end) + layout.end, layout, 0)
        tally.records = many + bool(left)
        assert count in (-1, tally.records), f"{count} records were put in, {tally.records} come out"
        if compared:
            fast = [row for one in stretches(iter([data]), "dump", block) for row in one.frame.rows()]
            assert fast == slow.frame.rows(), "fast is not slow"
    tally.records = max(tally.records, 0)
    if found is None:
        tally.refused, tally.refused_files = tally.records, 1
        return tally
    log, told = found
    judged(log, told)
    if rng.random() < 0.02:
        _written(log, folder)
    left_out = sum(step.removed for step in log.provenance.steps if step.name.startswith("records left out"))
    tally.kept, tally.set_aside = len(log), len(log.set_aside) + told.again + left_out
    return tally


def judged(log: Workload, told: Understood) -> None:
    """What holds of every workload of a history, whatever the records."""
    assert told.records == log.provenance.lines == len(log) + len(log.set_aside)
    assert sum(told.shapes.values()) == len(log) > 0
    assert len(set(log["id"].tolist())) == len(log)
    assert int(log.submit.min()) == 0
    assert min(int(log[name].min()) for name in ("wait", "runtime", "limit", "status")) >= -1
    assert int(log.size.min()) > 0
    own = log.get("exclusive") < 0
    assert (log["units"] * log["unit_cores"] == log.size)[own].all()
    steps = [step.name for step in log.provenance.steps]
    names = [text for texts in log.names.values() for text in texts]
    for text in (log.name, *names, *told.notes, *told.missing, *log.set_aside.reasons, *steps):
        assert text.isprintable(), f"not harmless: {text!r}"


def _written(log: Workload, folder: Path) -> None:
    """The same in a file, and no cell that a spreadsheet would run."""
    write(log, folder / "jobs.parquet")
    assert read_parquet(folder / "jobs.parquet").digest() == log.digest()
    write(log, folder / "jobs.csv")
    with (folder / "jobs.csv").open(encoding="utf-8", newline="") as stream:
        for cell in (cell for row in csv.reader(stream) for cell in row):
            assert cell.isprintable(), f"not harmless: {cell!r}"
            assert not LOOKED_AT.match(cell), f"a spreadsheet runs it: {cell!r}"


def _parsable(rng: random.Random) -> tuple[bytes, int, int]:
    """A dump as sacct -p or -P prints it, how many records it has (-1: that is for the reader to say, as delimiters or
    bytes are not what they should be), and how many of them were mutated."""
    delimiter, closed = rng.choice(LAYOUTS)
    kind = rng.choice(("values", "values", "fields", "damaged"))
    fields = [name for name in FIELDS if name != "Cluster" or rng.random() < 0.1]  # jobs of two are refused
    if rng.random() < 0.3:
        fields = [name for name in fields if name in NEEDED or rng.random() < 0.7]
    if rng.random() < 0.3:
        rng.shuffle(fields)
    known = [[encoded(record.get(name) or "") for name in fields] for record in base()]
    places = [(at, VALUES[name] or NASTY) for at, name in enumerate(fields) if name != "Cluster" or rng.random() < 0.01]
    own, rows = [fields.index(name) for name in ("DBIndex", "JobIDRaw") if name in fields], list[list[bytes]]()
    for at in range(count := rng.choice((3, 100, 5_000, 5_000))):
        texts = list(rng.choice(known))
        for place in own if rng.random() < 0.7 else ():  # a job of its own
            texts[place] = b"%d" % (10**6 + at)
        for _ in range(rng.choice((1, 1, 1, 3))):
            place, values = rng.choice(places)
            texts[place] = encoded(rng.choice(values if rng.random() < 0.8 else NASTY))
        if kind == "fields" and rng.random() < 0.1:
            texts = [encoded(text) for text in worse_fields([one.decode("utf-8", "replace") for one in texts], rng)]
        rows.append(texts)
    line = b"\r\n" if rng.random() < 0.05 else b"\n"
    data = dump([[name.encode() for name in fields], *rows], delimiter, closed, line)
    if kind == "damaged":
        for _ in range(rng.randrange(1, 5)):
            data = worse_bytes(data, rng)
    sure = kind == "values" and delimiter == TOKEN and closed and line == b"\n"
    return data, count if sure else -1, count


def _of_json(rng: random.Random) -> tuple[bytes, int, int]:
    """A dump as sacct --json prints it."""
    count = rng.choice((1, 50, 200))
    jobs = [json.loads(rng.choice(objects())) for _ in range(count)]
    for job in jobs if rng.random() < 0.7 else jobs[:1]:
        _worse(job, rng)
    data = json.dumps({"jobs": jobs}).encode()
    return (worse_bytes(data, rng) if rng.random() < 0.2 else data), count, count


def _worse(job: dict[str, Any], rng: random.Random) -> None:
    """One value of a job, however deep, made worse, or lost."""
    within: Any = job
    while True:
        key = rng.choice(list(within) if isinstance(within, dict) else range(len(within)))
        if not isinstance(within[key], dict | list) or not within[key] or rng.random() < 0.1:
            break
        within = within[key]
    huge = (10**30, 2**64 - 1, float("inf"))
    worse: tuple[Any, ...] = (None, -1, 0, 1.5, *huge, True, "", [], {}, {"set": True, "number": -7})
    if rng.random() < 0.1:
        del within[key]
    else:
        within[key] = rng.choice(worse) if rng.random() < 0.7 else rng.choice(NASTY)
