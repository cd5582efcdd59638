"""Mutated SWF records against the reader, judged by a second, slow and obvious reading of each line.

Seeded:             python -m tests.fuzz --reader swf
Guided by atheris:  python -m tests.fuzz.swf_fuzz -runs=100000
"""

from __future__ import annotations

import io
import random
import re
import sys
from decimal import ROUND_FLOOR, Context, Decimal
from pathlib import Path

from dovetail.io import swf
from dovetail.io.swf import FIELDS, REASONS, read_swf_stream
from dovetail.io.swf_wide import UNREADABLE
from dovetail.kernels import swf as kernel
from dovetail.model.workload import Workload
from tests.fuzz.common import Tally, asked

HEADER = b"; Version: 2.2\n; MaxProcs: 128\n"
_NUMBER = re.compile(rb"-?[0-9]+(\.[0-9]+)?\Z")
_EXACT = Context(prec=5_000)  # a line has at most 4,096 digits
SIZE = FIELDS.index("size")
_TIMES = {2, 3, 4, 9, 18}

Row = tuple[float, ...]


def judge(line: bytes) -> tuple[int, Row]:
    """The code that a line (without its line end; neither blank nor comment) must get, and its 18 values."""
    if len(line) > kernel.LONGEST:
        return kernel.LONG, ()
    if any(byte != 9 and not 32 <= byte <= 126 for byte in line):
        return kernel.BYTES, ()
    texts = line.split()
    if len(texts) != 18:
        return kernel.FIELDS, ()
    values: list[float] = []
    for place, text in enumerate(texts, start=1):
        if not _NUMBER.match(text):
            return kernel.NUMBER, ()
        exact = Decimal(text.decode())
        if abs(int(exact)) > 2**63 - 1:
            return kernel.HUGE, ()
        if place == 6:
            values.append(float(text))
            continue
        if place in _TIMES:
            exact = _EXACT.add(exact, Decimal("0.5")).to_integral_value(ROUND_FLOOR)
            if abs(exact) > 10**10:
                return kernel.TIME, ()
        elif exact != int(exact):
            return kernel.FRACTION, ()
        if place in (5, 8) and abs(exact) > 10**9:
            return kernel.SIZE, ()
        if place == 1 and exact < 0:
            return kernel.JOB, ()
        values.append(int(exact))
    return (kernel.PARTIAL if values[10] in (2, 3, 4) else kernel.KEPT), tuple(values)


def judge_wide(line: bytes) -> tuple[int, Row]:
    """As `judge`, for a log with up to 21 fields; behind the 18 values the GPUs and the soft wall time. The size is
    the product in the descriptor, where there is one."""
    fields = line.split()
    more = [text.decode("ascii", "replace") for text in fields[18:]]
    if (code := judge(line)[0]) == kernel.LONG:
        return code, ()
    wrong = code if code == kernel.BYTES else kernel.FIELDS
    numbers = [-1, -1]
    for at, text in enumerate(more[:2]):
        if not re.fullmatch(r"-?[0-9]{1,11}(\.[0-9]*)?", text):
            return wrong, ()
        numbers[at] = max(round(Decimal(text)), -1)
    size = re.fullmatch(r"(?:.*:)?([1-9][0-9]{0,8})x([1-9][0-9]{0,8})", more[2]) if len(more) == 3 else None
    product = int(size[1]) * int(size[2]) if size else 0
    if not 18 <= len(fields) <= 21 or max(numbers[0], product) > 10**9 or numbers[1] > 10**10:
        return wrong, ()
    if len(more) == 3 and not (more[2].isascii() and more[2].isprintable()):
        return wrong, ()
    code, row = judge(b" ".join(fields[:18]))
    if row and product:
        row = (*row[:SIZE], product, *row[SIZE + 1 :])
    return code, (*row, *numbers) if row else row


def expected(data: bytes) -> tuple[dict[int, Row], dict[int, str]]:
    """What a file must give, by line number: the values of each kept line, the reason of each other one."""
    kept: dict[int, Row] = {}
    aside: dict[int, str] = {}
    seen: set[float] = set()
    wide: bool | None = None
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        line = line.removesuffix(b"\r")
        start = line[: kernel.LONGEST].lstrip(b" \t")
        if start.startswith(b";") or (not start and len(line) <= kernel.LONGEST):
            continue
        if wide is None and 18 <= len(line.split()) <= 21 and len(line) <= kernel.LONGEST:
            wide = len(line.split()) > 18
        code, row = judge_wide(line) if wide else judge(line)
        if code == kernel.KEPT and row[0] in seen:
            code = kernel.DUPLICATE
        if code == kernel.KEPT:
            seen.add(row[0])
            kept[number] = row
        else:
            aside[number] = REASONS[code]
    words = {REASONS[kernel.FIELDS]: UNREADABLE} if wide else {}  # for all lines of such a log
    return kept, {number: words.get(reason, reason) for number, reason in aside.items()}


def check(data: bytes) -> Tally:
    """Read bytes as a log and compare with the slow reading. Returns the counts; AssertionError if wrong."""
    kept, aside = expected(data)
    workload, refused = asked(lambda: read_swf_stream(io.BytesIO(data), "fuzz", "fuzz"))
    tally = Tally(1, len(kept) + len(aside))
    if workload is not None:
        _compare(workload, kept, aside)
        tally.kept, tally.set_aside = len(workload), len(workload.set_aside)
    else:
        first = min(aside, default=0)
        assert refused is not None
        assert not kept, f"{len(kept)} good lines were refused: {refused}"
        assert refused.line == first, f"{refused} instead of line {first}"
        assert not first or refused.rule.startswith(aside[first]), f"{refused} instead of {aside[first]}"
        tally.refused, tally.refused_files = tally.records, 1
    return tally


def _compare(workload: Workload, kept: dict[int, Row], aside: dict[int, str]) -> None:
    got_aside = workload.set_aside
    assert workload.provenance.lines == len(workload) + len(got_aside)
    reasons = [got_aside.reasons[code] for code in got_aside.reason]
    assert dict(zip(got_aside.line.tolist(), reasons, strict=True)) == aside
    wide = any(len(row) > 18 for row in kept.values())
    names = (*FIELDS, "gpus", "soft_limit") if wide else FIELDS
    columns = [workload[c].tolist() if c in workload else [-1] * len(workload) for c in names]
    rows = zip(*columns, strict=True)
    assert dict(zip(workload["line"].tolist(), rows, strict=True)) == kept
    order = sorted(kept, key=lambda line: (kept[line][1], line))
    assert workload["line"].tolist() == order


NASTY = (
    b"-1 0 -0 1e5 NaN inf 0x1F +5 5. .5 - --1 1.5 -1.5 2.50 2 3 4 1,5 ; 12; 1.0 0.30000000000000004".split()
    + b"9223372036854775807 9223372036854775808 -9223372036854775808 10000000000 10000000001".split()
    + b"9999999999.5 10000000000.5 -10000000000.5 1000000000 1000000001 -0.5 -1.6 0.49999999999999999".split()
    + [b"1" * 40, b"1." + b"0" * 30 + b"1", b"\xd9\xa1", b"\0", b"1\x002", b"\r", b"\x0b", b"\x1b[31m"]
)


def record(number: int, rng: random.Random) -> bytes:
    """A valid line with the given job number."""
    run = rng.randrange(0, 90_000)
    cpu = b"%d" % run if rng.random() < 0.5 else b"%.2f" % (run * rng.random())
    head = b"%d %d %d %d %d" % (
        number,
        number * 7,
        rng.randrange(-1, 9_999),
        run,
        rng.choice((1, 8, 64, 128)),
    )
    memory = rng.randrange(9_999) if rng.random() < 0.01 else -1
    tail = b"%d %d %d -1" % (memory, rng.choice((-1, 1, 8, 64)), rng.choice((-1, 3600, 86_400)))
    rest = b"%d %d %d -1 %d 1 -1 -1" % (
        rng.choice((0, 1, 5)),
        rng.randrange(50),
        rng.randrange(9),
        rng.randrange(3),
    )
    return b" ".join((head, cpu, tail, rest))


def mutate(line: bytes, rng: random.Random) -> bytes:
    """A line made worse in one of many ways. May hold or lack line ends."""
    fields = line.split()
    way = rng.randrange(12)
    place = rng.randrange(18)
    if way == 0:
        other = rng.randrange(18)
        fields[place], fields[other] = fields[other], fields[place]
    elif way == 1:
        fields[place] = b"-" + fields[place]
    elif way <= 4:
        fields[place] = rng.choice(NASTY)
    elif way == 5:
        del fields[place]
    elif way == 6:
        fields.insert(place, fields[place])
    elif way == 7:
        return line[: rng.randrange(len(line))]
    elif way == 8:
        at = rng.randrange(len(line))
        return line[:at] + bytes([rng.randrange(256)]) + line[at + 1 :]
    elif way == 9:
        at = rng.randrange(len(line))
        return line[:at] + rng.randbytes(rng.randrange(1, 40)) + line[at:]
    elif way == 10:
        return rng.choice((line + b"\n" + line, line + b"\r", b"\xef\xbb\xbf" + line, b"; " + line, b" \t" + line))
    else:
        filler = rng.choice((b" ", b"9", b"x", b"0", b"\t"))
        return line + filler * rng.choice((4095 - len(line), 4096 - len(line), 4097 - len(line), 9_000))
    return rng.choice((b" ", b"\t", b"   ")).join(fields)


def behind(line: bytes, rng: random.Random) -> tuple[bytes, int]:
    """A line with fields 19 to 21, half of them mutated; and whether it is."""
    fields = [b"%d" % rng.randrange(9), b"%d" % rng.randrange(9_999), rng.choice((b"-1", b"f:excl:25x16", b"3x4"))]
    mutated = rng.randrange(2)
    if mutated:
        fields[rng.randrange(3)] = rng.choice((*NASTY, b"99999x99999", b"0x4", b":2x2", b"a:2x2:3"))
        fields = fields[: rng.choice((0, 1, 2, 3, 3, 3))] + rng.choice(([], [], [], [b"7"]))
    return b" ".join((line, *fields)), mutated


def one(rng: random.Random, folder: Path) -> Tally:
    """A file of a header and records, half of them or most mutated, joined by the line ends that files have.

    It reaches the kernel in pieces of any size, so that they end anywhere in a line.
    """
    parts, mutated = [HEADER], 0
    wide, part, first = rng.random() < 0.1, rng.choice((0.5, 0.9)), rng.randrange(0, 1_000_000)
    for number in range(first, first + rng.choice((2, 50, 500, 2_000))):
        line = record(number, rng)
        if wide and number > first:
            line, more = behind(line, rng)
            parts.append(line + b"\n")
            mutated += more
            continue
        if wide:
            line += b" 4 60 2x8"
        elif number > first and rng.random() < part:  # the first says how many fields the log has
            line, mutated = mutate(line, rng), mutated + 1
        parts.append(line)
        chance = rng.random()
        parts.append(b"\n" if chance < 0.97 else b"\r\n" if chance < 0.99 else b"" if chance < 0.995 else b"\r")
    piece = swf.PIECE
    swf.PIECE = rng.choice((piece, 9_999, 777))
    try:
        tally = check(b"".join(parts))
    finally:
        swf.PIECE = piece
    tally.mutated = mutated
    return tally


def guided(arguments: list[str]) -> None:
    """Let atheris choose the bytes, led by the branches of the kernels, which run uncompiled for it."""
    import atheris

    for name in ("parse_number", "parse_fields", "parse_lines"):
        setattr(kernel, name, atheris.instrument_func(getattr(kernel, name).py_func))
    total = [0, 0]

    def one(data: bytes) -> None:
        total[0] += check(HEADER + data).records
        total[1] += 1
        if total[1] % 1_000 == 0:  # atheris ends the process itself: there is no later moment
            print(f"{total[0]} records in {total[1]} files", flush=True)

    def worse(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        lines = data.split(b"\n") if len(data) > 40 else [record(n, rng) for n in range(20)]
        at = rng.randrange(len(lines))
        if len(lines[at].split()) == 18 and rng.random() < 0.5:
            lines[at] = mutate(lines[at], rng)
        else:
            lines[at] = atheris.Mutate(lines[at], len(lines[at]) + 64)
        return b"\n".join(lines)[:most]

    atheris.Setup(arguments, one, custom_mutator=worse)
    atheris.Fuzz()


if __name__ == "__main__":
    guided(sys.argv)
