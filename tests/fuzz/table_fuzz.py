"""Mutated tables of jobs (CSV, TSV, semicolons, bars) against their reader, judged by a second, slow and obvious
reading of each row. Files whose bytes are damaged are judged by their counts and caps only."""

from __future__ import annotations

import csv
import io
import random
import re
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from dovetail.io.table import read_any
from dovetail.model.workload import Workload
from tests.fuzz.common import NASTY, Tally, asked, worse_bytes, written

NONE = {"", "unknown", "none", "n/a", "na", "null", "nan", "-", "invalid"}
NO_LIMIT = {"unlimited", "infinite", "partition_limit"}
DONE = {
    1: {"completed", "complete", "cd", "done", "success", "succeeded", "finished", "ok"},
    5: {"cancelled", "canceled", "ca", "killed"},
    0: {"failed", "fail", "timeout", "to", "error", "f", "node_fail", "nf", "boot_fail", "deadline", "out_of_memory",
        "oom", "preempted", "pr"},
}  # fmt: skip
RUNNING = {"running", "r", "suspended", "pending", "pd", "requeued", "resizing", "completing"}
HEADS = {
    "id": ("JobID", "job_id", "id"), "submit": ("Submit", "submit_time", "QTime"), "start": ("Start", "start time"),
    "end": ("End", "EndTime"), "wait": ("wait",), "runtime": ("Elapsed", "ElapsedRaw", "runtime_min"),
    "limit": ("Timelimit", "TimelimitRaw", "walltime_hours"), "size": ("NCPUS", "cores"), "nodes": ("NNodes",),
    "user": ("User",), "group": ("Account",), "name": ("JobName",), "status": ("State",), "": ("Comment2", "Odd"),
}  # fmt: skip
PER = {"runtime_min": 60, "TimelimitRaw": 60, "walltime_hours": 3600}


class BadError(Exception):
    """A value that must refuse its file."""


def number(text: str) -> Decimal | None:
    """A decimal number as it is usually written, None for any other text."""
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def plain(text: str) -> str:
    """A text without blanks around it; empty where it says that nothing is known."""
    text = text.strip()
    return "" if text.lower() in NONE else text


def instant(text: str) -> int | None:
    """Seconds since 1970; None: there is none."""
    if not (text := plain(text)):
        return None
    seconds = number(text)
    if seconds is not None and not re.fullmatch(r"(19|20)[0-9]{6}", text):
        if abs(float(seconds)) >= 1e11:
            seconds /= 1000
        if abs(float(seconds)) >= 1e11:
            raise BadError
        return int(seconds.to_integral_value(ROUND_FLOOR))
    text = text.replace("/", "-")
    if found := re.fullmatch(
        r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:?\d\d)", text.replace(" ", "T", 1)
    ):
        form, text = "%Y-%m-%dT%H:%M:%S%z", f"{found[1]}T{found[2]}{found[4]}"
    elif found := re.fullmatch(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d)(:\d\d)?(\.\d{1,9})?", text):
        form, text = "%Y-%m-%dT%H:%M:%S", f"{found[1]}T{found[2]}{found[3] or ':00'}"
        if found[4] and not found[3]:
            raise BadError
    elif re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        form = "%Y-%m-%d"
    elif re.fullmatch(r"\d{8}", text):
        form = "%Y%m%d"
    elif re.fullmatch(r"\d\d?\.\d\d?\.\d{4} \d\d:\d\d(:\d\d)?", text):
        form = "%d.%m.%Y %H:%M:%S" if text.count(":") == 2 else "%d.%m.%Y %H:%M"
    else:
        raise BadError
    leap = re.search(r":\d\d:60", text) is not None
    try:
        when = datetime.strptime(text.replace(":60", ":59") if leap else text, form)
    except ValueError:
        raise BadError from None
    zero = datetime(1970, 1, 1, tzinfo=UTC)
    return leap + ((when if when.tzinfo else when.replace(tzinfo=UTC)) - zero) // timedelta(seconds=1)


def duration(text: str, per: int) -> int:
    """Seconds, rounded up; -1: there is none."""
    text = plain(text)
    if text.lower() in NO_LIMIT or text in ("", "-1", "-1.0"):
        return -1
    if (value := number(text)) is not None:
        if value == -1:
            return -1
        value *= per
    elif found := re.fullmatch(r"([0-9]{1,5})-([0-9]{1,2})(?::([0-9]{1,2}))?", text):
        value = Decimal(int(found[1]) * 86400 + int(found[2]) * 3600 + int(found[3] or 0) * 60)
    elif found := re.fullmatch(r"(?:([0-9]{1,5})-)?(?:([0-9]{1,6}):)?([0-9]{1,6}):([0-9]{1,2})(?:\.[0-9]+)?", text):
        days, hours, minutes, seconds = (int(one or 0) for one in found.groups())
        value = Decimal(days * 86400 + hours * 3600 + minutes * 60 + seconds)
    else:
        raise BadError
    if not 0 <= float(value) < 1e9:
        raise BadError
    return int(Decimal(round(float(value), 6)).to_integral_value(ROUND_CEILING))


def size(text: str) -> int:
    if not (text := plain(text)):
        return 0
    value = number(text)
    if value is None or not float(value).is_integer() or abs(float(value)) >= 2**53:  # as a float has it
        raise BadError
    return int(float(value))


Row = dict[str, Any]


def judged(heads: dict[str, str], rows: list[dict[str, str]]) -> tuple[dict[int, Row], dict[int, str], int]:
    """Kept rows by line, the reasons of the others, and the line of the value that refuses the file (0: none)."""
    found: list[Row] = [{} for _ in rows]
    columns = ["size" if "size" in heads else "nodes", "submit", "start", "end", "wait", "runtime", "limit"]
    for name in (one for one in columns if one in heads):
        for at, row in enumerate(rows):
            try:
                if name in ("size", "nodes"):
                    found[at]["size"] = size(row[name])
                elif name in ("submit", "start", "end"):
                    found[at][name] = instant(row[name])
                else:
                    found[at][name] = duration(row[name], PER.get(heads[name], 1))
            except BadError:
                return {}, {}, at + 2
    kept: dict[int, Row] = {}
    aside: dict[int, str] = {}
    names = {row["id"].strip() for row in rows} if "id" in heads else set()
    for at, facts in enumerate(found):
        submit, start, end = (facts.get(name) for name in ("submit", "start", "end"))
        wait: int = facts.get("wait", -1)
        runtime: int = facts.get("runtime", -1)
        if "start" not in heads and submit is not None and wait >= 0:
            start = submit + wait
        if "submit" not in heads and start is not None and wait >= 0:
            submit = start - wait
        if "end" in heads:
            runtime = -1 if end is None else runtime if start is None else end - start
        word = re.split(r"[^a-z_]", plain(rows[at].get("status", "")).lower())[0]
        parent = re.match(r"([0-9]+([_+][0-9]+)?)\.", rows[at].get("id", "").strip())
        if parent and parent[1] in names:
            aside[at + 2] = "a step of a job, not a job"
        elif submit is None:
            aside[at + 2] = "no time of submission"
        elif start is None if "start" in heads or "wait" in heads else runtime < 0:
            aside[at + 2] = "never started"
        elif end is not None and start is not None and end < start:
            aside[at + 2] = "ended before it started"
        elif runtime < 0 or word in RUNNING:
            aside[at + 2] = "no end: it still ran, or its end is not known"
        elif start is not None and start < submit:
            aside[at + 2] = "started before it was submitted"
        elif facts["size"] <= 0:
            aside[at + 2] = "no processors"
        else:
            status = next((code for code, words in DONE.items() if word in words), -1)
            kept[at + 2] = {
                "submit": submit, "size": facts["size"], "runtime": runtime, "limit": facts.get("limit", -1),
                "wait": -1 if start is None else start - submit, "status": status,
                "user": plain(rows[at].get("user", "")),
            }  # fmt: skip
    return kept, aside, 0


def beyond(kept: dict[int, Row]) -> bool:
    """Whether a value passes the caps that a log has."""
    first = min(row["submit"] for row in kept.values())
    times = [row[name] for row in kept.values() for name in ("wait", "runtime", "limit")]
    times += [row["submit"] - first for row in kept.values()]
    return bool(max(times) > 10**10 or max(row["size"] for row in kept.values()) > 10**9)


def compare(log: Workload, heads: dict[str, str], kept: dict[int, Row], aside: dict[int, str]) -> None:
    reasons = [log.set_aside.reasons[code] for code in log.set_aside.reason]
    assert dict(zip(log.set_aside.line.tolist(), reasons, strict=True)) == aside
    order = sorted(kept, key=lambda line: (kept[line]["submit"], line))
    assert log["line"].tolist() == order
    first = kept[order[0]]["submit"]
    assert log.submit.tolist() == [kept[line]["submit"] - first for line in order]
    for name in ("size", "runtime", "limit", "wait", *(["status"] if "status" in heads else [])):
        assert log[name].tolist() == [kept[line][name] for line in order], name
    if "user" in heads:
        for found, line in zip(log["user"], order, strict=True):
            name = str(kept[line]["user"])
            assert log.called("user", found) == name or len(name) > 200 or not name.isprintable()


def written_time(seconds: int, form: int) -> str:
    when = datetime(2026, 1, 1) + timedelta(seconds=seconds)
    forms = (
        when.isoformat(), when.isoformat(" "), f"{when:%Y/%m/%d %H:%M:%S}", f"{when.isoformat()}Z",
        f"{when:%d.%m.%Y %H:%M:%S}", f"{when.isoformat()}.25", f"{when.isoformat()}+00:00",
        str(1767225600 + seconds), f"{1767225600 + seconds}.5",
        str(1000 * (1767225600 + seconds)), f"{when.isoformat()}+0200",
    )  # fmt: skip
    return forms[form % len(forms)]


MILD = {
    "id": ("", "7", "7.batch", "7.0", "12_3", "x"), "submit": ("", "Unknown", "2026-01-31", "0", "20260131"),
    "start": ("", "Unknown", "2026-01-01T00:00:00", "none"), "end": ("", "Unknown", "2026-01-01T00:00:00"),
    "wait": ("", "0", "-1"), "runtime": ("", "0", "1-00:00:00", "03:04", "1.5", "-1"),
    "limit": ("", "UNLIMITED", "Partition_Limit", "1-02", "1-02:03", "10", "-1.0", "1e3"),
    "size": ("0", "-4", "4.0", "1e2", ""), "nodes": ("0", "", "2"), "user": ("", "o'neil", "a  b", "\u00e9", "$x"),
    "group": ("", "7"), "name": ("", "a b", "#!x", "\u202e"), "": ("?", ""),
    "status": ("", "RUNNING", "CANCELLED by 7", "PENDING", "odd", "completed", "NODE_FAIL", "Suspended"),
}  # fmt: skip
"""Values that refuse no file: rows with them are kept or set aside."""


def job(number: int, form: int, rng: random.Random) -> dict[str, str]:
    submit, wait, runtime = rng.randrange(10**7), rng.randrange(9_999), rng.randrange(90_000)
    clock = timedelta(seconds=runtime)
    return {
        "id": str(number), "submit": written_time(submit, form), "start": written_time(submit + wait, form),
        "end": written_time(submit + wait + runtime, form), "wait": str(wait),
        "runtime": rng.choice((str(runtime), f"{clock.days}-{clock - timedelta(clock.days)}")),
        "limit": rng.choice(("3600", "1-00:00:00", "30:00")), "size": str(rng.randrange(1, 99)),
        "nodes": str(rng.randrange(1, 9)), "user": rng.choice(("ann", "bob")), "group": "bio", "name": "fold",
        "": "x", "status": rng.choice(("COMPLETED", "FAILED", "CANCELLED by 9")),
    }  # fmt: skip


def one(rng: random.Random, folder: Path) -> Tally:
    """One table, read and judged."""
    times = (["submit", "wait", "runtime"], ["start", "wait", "end"], ["submit", "runtime"])
    wanted = list(rng.choice((["submit", "start", "end"], ["submit", "start", "end"], *times)))
    others = [name for name in HEADS if name not in ("submit", "start", "end", "wait", "runtime")]
    wanted += [name for name in (*others, "runtime") if name not in wanted and rng.random() < 0.6]
    if "size" not in wanted and "nodes" not in wanted:
        wanted.append("size")
    rng.shuffle(wanted)
    heads = {name: rng.choice(HEADS[name]) for name in wanted}
    kind = rng.choice(("mild", "harsh", "damaged"))
    part, form, many = rng.choice((0.3, 0.9)), rng.randrange(99), (500, 2_000) if kind == "mild" else (1, 5, 40)
    rows, mutated = list[dict[str, str]](), 0
    for at in range(first := rng.randrange(10**6), first + rng.choice(many)):
        row = job(at, form if rng.random() < 0.9 else rng.randrange(99), rng)
        if rng.random() < part:
            mutated += 1
            name = rng.choice(wanted)
            row[name] = rng.choice(MILD[name])
            if kind == "harsh" and rng.random() < 0.1:
                row[name] = rng.choice(NASTY)
            elif rng.random() < 0.1:
                other = rng.choice(("submit", "start", "end"))
                row["submit"], row[other] = row[other], row["submit"]
        rows.append(row)
        if rng.random() < 0.002:
            rows.append(row)
    data = _printed(heads, rows, rng)
    if kind == "damaged":
        mutated = 1
        for _ in range(rng.randrange(1, 5)):
            data = worse_bytes(data, rng)
    path = written(folder, "jobs.txt", data)
    log, refused = asked(lambda: read_any(path)[0])
    tally = Tally(1, len(rows), mutated)
    if log is not None:
        assert log.provenance.lines == len(log) + len(log.set_aside)
        tally.records, tally.kept, tally.set_aside = log.provenance.lines, len(log), len(log.set_aside)
    else:
        tally.refused, tally.refused_files = len(rows), 1
    if kind != "damaged":
        kept, aside, bad = judged(heads, rows)
        if log is None:
            assert refused is not None
            assert bad or not kept or beyond(kept), f"refused: {refused}"
            assert not bad or refused.line == bad, f"{refused}, instead of line {bad}"
        else:
            assert not bad, f"line {bad} should have been refused"
            assert log.provenance.lines == len(rows)
            compare(log, heads, kept, aside)
    return tally


def _printed(heads: dict[str, str], rows: list[dict[str, str]], rng: random.Random) -> bytes:
    """A table in one of the forms that there are."""
    separator = rng.choice((",", ",", "\t", ";", "|"))
    out = io.StringIO()
    table = csv.writer(out, delimiter=separator, lineterminator=rng.choice(("\n", "\r\n")))
    table.writerow(heads.values())
    table.writerows([row[name] for name in heads] for row in rows)
    return rng.choice((b"", b"", b"\xef\xbb\xbf")) + out.getvalue().encode("utf-8", "surrogatepass")
