"""Mutated SWF records against the reader, judged by a second, slow and obvious reading of each line.

Seeded, without further tools:  python -m tests.fuzz.swf_fuzz --records 1000000 --seed 1
Guided by atheris:              python -m tests.fuzz.swf_fuzz -runs=100000
"""

from __future__ import annotations

import argparse
import io
import random
import re
import sys
import time
from decimal import ROUND_FLOOR, Context, Decimal

from dovetail.errors import InputError
from dovetail.io import swf
from dovetail.io.swf import FIELDS, REASONS, read_swf_stream
from dovetail.kernels import swf as kernel
from dovetail.model.workload import Workload

HEADER = b"; Version: 2.2\n; MaxProcs: 128\n"
MOST_SECONDS = 2.0
"""CPU time that one batch may take with its check; a batch of 2,000 records takes a tenth of a second."""
_NUMBER = re.compile(rb"-?[0-9]+(\.[0-9]+)?\Z")
_EXACT = Context(prec=5_000)  # a line has at most 4,096 digits
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


def expected(data: bytes) -> tuple[dict[int, Row], dict[int, str]]:
    """What a file must give, by line number: the values of each kept line, the reason of each other one."""
    kept: dict[int, Row] = {}
    aside: dict[int, str] = {}
    seen: set[float] = set()
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        line = line.removesuffix(b"\r")
        start = line[: kernel.LONGEST].lstrip(b" \t")
        if start.startswith(b";") or (not start and len(line) <= kernel.LONGEST):
            continue
        code, row = judge(line)
        if code == kernel.KEPT and row[0] in seen:
            code = kernel.DUPLICATE
        if code == kernel.KEPT:
            seen.add(row[0])
            kept[number] = row
        else:
            aside[number] = REASONS[code]
    return kept, aside


def check(data: bytes) -> int:
    """Read bytes as a log and compare with the slow reading. Returns the records; AssertionError if wrong."""
    kept, aside = expected(data)
    refused: InputError | None = None
    try:
        workload = read_swf_stream(io.BytesIO(data), "fuzz", "fuzz")
    except InputError as error:
        refused = error
    if refused is None:
        _compare(workload, kept, aside)
    else:
        first = min(aside, default=0)
        assert not kept, f"{len(kept)} good lines were refused: {refused}"
        assert refused.line == first, f"{refused} instead of line {first}"
        assert not first or refused.rule.startswith(aside[first]), f"{refused} instead of {aside[first]}"
    return len(kept) + len(aside)


def _compare(workload: Workload, kept: dict[int, Row], aside: dict[int, str]) -> None:
    got_aside = workload.set_aside
    assert workload.provenance.lines == len(workload) + len(got_aside)
    reasons = [got_aside.reasons[code] for code in got_aside.reason]
    assert dict(zip(got_aside.line.tolist(), reasons, strict=True)) == aside
    columns = [workload[c].tolist() if c in workload else [-1] * len(workload) for c in FIELDS]
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


def batch(rng: random.Random) -> bytes:
    """A header and records, about half of them mutated, joined by the line ends that files have."""
    parts = [HEADER]
    first = rng.randrange(0, 1_000_000)
    for number in range(first, first + rng.choice((2, 50, 500, 2_000))):
        line = record(number, rng)
        if rng.random() < 0.5:
            line = mutate(line, rng)
        parts.append(line)
        chance = rng.random()
        parts.append(b"\n" if chance < 0.97 else b"\r\n" if chance < 0.99 else b"" if chance < 0.995 else b"\r")
    return b"".join(parts)


def seeded(records: int, seed: int) -> dict[str, float]:
    """Check so many records; the same for the same seed. Returns counts and times.

    Each batch reaches the kernel in pieces of another size, so that they end anywhere in a line.
    """
    rng = random.Random(seed)
    done, batches, slowest = 0, 0, 0.0
    piece = swf.PIECE
    check(HEADER + record(1, rng))  # compiles
    began = time.process_time()
    while done < records:
        data = batch(rng)
        swf.PIECE = rng.choice((piece, 9_999, 777))
        start = time.process_time()
        done += check(data)
        slowest = max(slowest, time.process_time() - start)
        assert slowest < MOST_SECONDS, f"batch {batches} of seed {seed} took {slowest:.1f} s"
        batches += 1
    swf.PIECE = piece
    return {
        "records": done,
        "batches": batches,
        "cpu_s": time.process_time() - began,
        "slowest_batch_s": slowest,
    }


def guided(arguments: list[str]) -> None:
    """Let atheris choose the bytes, led by the branches of the kernels, which run uncompiled for it."""
    import atheris

    for name in ("parse_number", "parse_fields", "parse_lines"):
        setattr(kernel, name, atheris.instrument_func(getattr(kernel, name).py_func))
    total = [0, 0]

    def one(data: bytes) -> None:
        total[0] += check(HEADER + data)
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


def main(arguments: list[str]) -> None:
    if any(text.startswith("--") for text in arguments[1:]):
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("--records", type=int, default=1_000_000)
        parser.add_argument("--seed", type=int, default=1)
        chosen = parser.parse_args(arguments[1:])
        print(seeded(chosen.records, chosen.seed))
    else:
        guided(arguments)


if __name__ == "__main__":
    main(sys.argv)
