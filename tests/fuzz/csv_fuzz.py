"""Mutated lines against the readers of published tables (the Eurora days, Alibaba's pods and nodes), judged by a
second, slow and obvious reading of each line."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from dovetail.io.alibaba import NODE_FIELDS, POD_FIELDS, read_nodes, read_pods
from dovetail.io.csv import LONGEST
from dovetail.io.eurora import FIELDS, read_eurora
from dovetail.model.workload import Workload
from tests.fuzz.common import Tally, asked, worse_bytes, worse_fields, written

Row = dict[str, int | str]


class WrongError(Exception):
    """A line that must be set aside."""


def whole(text: str, least: int, most: int) -> int:
    if not text or len(text) > 18 or not set(text) <= set("0123456789") or not least <= int(text) <= most:
        raise WrongError
    return int(text)


def eurora(texts: list[str]) -> Row:
    line = dict(zip(FIELDS, texts, strict=True))
    times = []
    for name in ("submit", "start", "end"):
        if not re.match(r"(19|20)\d\d-", line[name]) or len(line[name]) != 19 or not line[name].isascii():
            raise WrongError
        try:
            times.append(datetime.strptime(line[name], "%Y-%m-%d %H:%M:%S"))
        except ValueError:
            raise WrongError from None
        if line[name] != f"{times[-1]:%Y-%m-%d %H:%M:%S}":
            raise WrongError
    if times != sorted(times) or not line["queue"]:
        raise WrongError
    units, cores = whole(line["req_nodes"], 1, 10**9), whole(line["req_cores"], 1, 10**9)
    gpus, mics = whole(line["gpus"], 0, 10**9), whole(line["mics"], 0, 10**9)
    if cores % units or gpus % units or mics % units:
        raise WrongError
    kb = whole(line["mem_kb_used"], 0, 10**15)
    whole(line["cores"], 0, 10**9)
    hours, colon, minutes = line["req_walltime_hhmm"].partition(":")
    if not colon or not 1 <= len(hours) <= 4 or len(minutes) != 2 or int(whole(minutes, 0, 99)) > 59:
        raise WrongError
    gigabytes = next(n for n in range(kb // (units * 2**20), 10**10) if n * units * 2**20 >= kb)
    seconds = timedelta(seconds=1)
    return {
        "id": whole(line["job_id"], 0, 10**15), "at": (times[0] - datetime(2000, 1, 1)) // seconds,
        "wait": (times[1] - times[0]) // seconds, "runtime": (times[2] - times[1]) // seconds,
        "limit": 60 * (60 * whole(hours, 0, 9999) + int(minutes)), "size": cores, "units": units,
        "unit_cores": cores // units, "unit_gpus": gpus // units, "unit_mics": mics // units,
        "unit_memory_gb": gigabytes, "queue": line["queue"],
    }  # fmt: skip


def pod(texts: list[str]) -> Row:
    line = dict(zip(POD_FIELDS, texts, strict=True))
    begin, end = (whole(line[name], 0, 10**10) for name in ("creation_time", "deletion_time"))
    if end < begin:
        raise WrongError
    gpus = whole(line["num_gpu"], 0, 10**9)
    cores = whole(line["cpu_milli"], 1, 10**9)
    return {
        "id": whole(line["name"].split("-")[-1], 0, 10**9), "at": begin, "runtime": end - begin, "limit": end - begin,
        "size": cores, "unit_cores": cores, "units": 1, "unit_memory_mb": whole(line["memory_mib"], 0, 10**9),
        "unit_gpus": gpus, "gpu_share": whole(line["gpu_milli"], 1 if gpus else 0, 1000),
        "status": 1 if line["pod_phase"] == "Succeeded" else 0 if line["pod_phase"] == "Failed" else -1,
        "feature": "|".join(one for one in line["gpu_spec"].split("|") if one),
    }  # fmt: skip


def node(texts: list[str]) -> Row:
    line = dict(zip(NODE_FIELDS, texts, strict=True))
    gpus = whole(line["gpu"], 0, 10**9)
    if "|" in line["model"] or (line["model"] == "") != (gpus == 0):
        raise WrongError
    return {
        "id": whole(line["sn"].split("-")[-1], 0, 10**9), "cores": whole(line["cpu_milli"], 1, 10**9),
        "memory": whole(line["memory_mib"], 0, 10**9), "gpus": gpus, "model": line["model"],
    }  # fmt: skip


def expected(data: bytes, names: tuple[str, ...], judge: Callable[[list[str]], Row]) -> tuple[dict[int, Row], set[int]]:
    """By line number: what each kept line says; and the lines that must be set aside."""
    kept: dict[int, Row] = {}
    aside, seen = set[int](), set[Any]()
    for number, line in enumerate(data.split(b"\n"), 1):
        if number == 1 or not line.strip():
            continue
        text = line.rstrip(b"\r")
        try:
            if len(line) > LONGEST or any(not 32 <= byte <= 126 for byte in text):
                raise WrongError
            texts = text.decode().split(",")
            if len(texts) != len(names):
                raise WrongError
            row = judge(texts)
            if row["id"] in seen:
                raise WrongError
            seen.add(row["id"])
            kept[number] = row
        except WrongError:
            aside.add(number)
    return kept, aside


def compare(log: Workload, kept: dict[int, Row], aside: set[int]) -> None:
    assert log.provenance.lines == len(log) + len(log.set_aside) == len(kept) + len(aside)
    assert set(log.set_aside.line.tolist()) == aside
    assert len(log.set_aside) == len(aside)
    order = sorted(kept, key=lambda line: (kept[line]["at"], line))
    assert log["line"].tolist() == order
    base = int(kept[order[0]]["at"]) // 86_400 * 86_400 if "queue" in log else 0
    for name in kept[order[0]]:
        if name == "at":
            assert log.submit.tolist() == [int(kept[line]["at"]) - base for line in order]
        elif name in ("queue", "feature"):
            assert [log.called(name, n) for n in log.get(name)] == [kept[line][name] for line in order]
        else:
            assert log[name].tolist() == [kept[line][name] for line in order], name


def _eurora_line(number: int, rng: random.Random) -> list[str]:
    begin = datetime(2014, 3, 31) + timedelta(seconds=rng.randrange(400_000))
    start = begin + timedelta(seconds=rng.randrange(9_000))
    end = start + timedelta(seconds=rng.randrange(90_000))
    units, cores = rng.choice((1, 1, 2, 4)), rng.choice((1, 8, 16))
    return [
        str(number), rng.choice(("R", "parallel", "debug")), str(begin), str(start), str(end), str(units),
        str(units * cores), "1", f"{rng.randrange(100):02}:{rng.randrange(60):02}", str(units * cores),
        str(units * rng.randrange(3)), "0", str(rng.randrange(10**8)), "node001", "", "1.5",
    ]  # fmt: skip


def _pod_line(number: int, rng: random.Random) -> list[str]:
    begin, gpus = rng.randrange(10**7), rng.randrange(3)
    return [
        f"openb-pod-{number:04}", str(rng.choice((1000, 8000))), "30000", str(gpus),
        str(rng.choice((460, 1000)) if gpus else 0), rng.choice(("", "V100M16|V100M32", "P100")), "LS",
        rng.choice(("Succeeded", "Failed", "Running")), str(begin), str(begin + rng.randrange(10**6)), str(begin),
    ]  # fmt: skip


def _node_line(number: int, rng: random.Random) -> list[str]:
    gpus = rng.randrange(3)
    model = rng.choice(("P100", "T4")) if gpus else ""
    return [f"openb-node-{number:04}", str(rng.choice((64000, 96000))), "262144", str(gpus), model]


def one(rng: random.Random, folder: Path) -> Tally:
    """One file of one of the three kinds, read and judged."""
    kind = rng.choices(("eurora", "pods", "nodes"), (5, 5, 1))[0]
    names, line, judge = {
        "eurora": (FIELDS, _eurora_line, eurora), "pods": (POD_FIELDS, _pod_line, pod),
        "nodes": (NODE_FIELDS, _node_line, node),
    }[kind]  # fmt: skip
    part = rng.choice((0.5, 0.9)) if kind != "nodes" else rng.choice((0.0, 0.001))
    lines, mutated = [",".join(names).encode()], 0
    for number in range(first := rng.randrange(10**6), first + rng.choice((2, 50, 500, 2_000))):
        made = line(number, rng)
        if rng.random() >= part:
            lines.append(",".join(made).encode())
            continue
        mutated += 1
        if rng.random() < 0.8:
            lines.append(",".join(worse_fields(made, rng)).encode("utf-8", "surrogatepass"))
        else:
            lines.append(worse_bytes(",".join(made).encode(), rng))
        if rng.random() < 0.02:
            lines.append(lines[-1])
    data = rng.choice((b"\n", b"\n", b"\r\n")).join(lines) + rng.choice((b"", b"\n", b"\n\n"))
    path = written(folder, "table.csv", data)
    kept, aside = expected(data, names, judge)
    tally = Tally(1, len(kept) + len(aside), mutated)
    if kind == "nodes":
        _check_nodes(path, kept, aside, tally)
        return tally
    log, refused = asked(lambda: (read_eurora if kind == "eurora" else read_pods)(path))
    if log is None:
        assert not kept, f"{len(kept)} good lines were refused: {refused}"
        assert refused is not None
        assert refused.line == min(aside, default=0)
        tally.refused, tally.refused_files = tally.records, 1
    else:
        compare(log, kept, aside)
        tally.kept, tally.set_aside = len(log), len(log.set_aside)
    return tally


def _check_nodes(path: Path, kept: dict[int, Row], aside: set[int], tally: Tally) -> None:
    """A list of nodes is a machine: one line that cannot be read refuses it."""
    cluster, refused = asked(lambda: read_nodes(path))
    alike = Counter((row["cores"], row["memory"], row["gpus"], row["model"]) for row in kept.values())
    many = len(alike) > 62 or any(int(gpus) > 62 for _, _, gpus, _ in alike)
    if cluster is None:
        assert refused is not None
        assert aside or many or not kept, f"refused: {refused}"
        assert not aside or refused.line == min(aside)
        tally.refused, tally.refused_files = tally.records, 1
    else:
        assert not aside
        assert not many
        found = {(*kind.capacity, *(kind.features or ("",))): kind.count for kind in cluster.kinds}
        assert found == dict(alike)
        tally.kept = sum(found.values())
