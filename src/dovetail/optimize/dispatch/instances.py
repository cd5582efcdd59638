"""Dispatch problems in files, so that all models can be given the same ones. JSON; what is read is checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from dovetail.errors import InputError
from dovetail.model.cluster import NodeKind, by_node
from dovetail.optimize.dispatch.problem import DispatchProblem, Queued, Running

FORMAT: Final = "dovetail-dispatch-1"
MOST_BYTES: Final = 256 * 2**20
MOST_NODES: Final = 1_000_000
MOST_UNITS: Final = 1_000_000
_MOST: Final = 2**40  # no number of a file is larger: sums of them stay exact


def save_problem(problem: DispatchProblem, path: str | Path) -> None:
    """Write a problem. Same problem, same bytes."""
    cluster = problem.cluster
    content = {
        "format": FORMAT,
        "now": problem.now,
        "resources": cluster.resources,
        "shared": cluster.shared,
        "kinds": [[kind.name, kind.count, kind.capacity, kind.features] for kind in cluster.kinds],
        "queue": [
            [job.job, job.arrive, job.duration, job.units, job.need, job.kinds, job.per_node] for job in problem.queue
        ],
        "running": [[job.job, job.remaining, job.nodes, job.need] for job in problem.running],
    }
    try:
        Path(path).write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(path, 0, f"cannot be written: {error.strerror or error}") from error


def load_problem(path: str | Path) -> DispatchProblem:
    """Read a problem. InputError says what is wrong with a file that is none."""
    path = Path(path)
    try:
        if path.is_file() and path.stat().st_size > MOST_BYTES:
            raise InputError(path, 0, f"larger than {MOST_BYTES:,} bytes: not a dispatch problem")
        content = json.loads(path.read_text(encoding="utf-8"))
        return _problem(content)
    except OSError as error:
        raise InputError(path, 0, f"cannot be read: {error.strerror or error}") from error
    except RecursionError:
        raise InputError(path, 0, "not a dispatch problem: its lists are nested too deeply") from None
    except ValueError as error:  # what is not UTF-8 or not JSON, and every rule that a problem breaks
        raise InputError(path, 0, f"not a dispatch problem: {error}") from error


def _problem(content: Any) -> DispatchProblem:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"must be an object with the format {FORMAT!r}")
    resources = _texts(content.get("resources"), "resources")
    shared = content.get("shared", "")
    if not isinstance(shared, str):
        raise ValueError("shared: must be a text")
    kinds = []
    for row in _rows(content.get("kinds"), 4, "kinds"):
        if not isinstance(row[0], str):
            raise ValueError("kinds: the name of a kind must be a text")
        kinds.append(NodeKind(row[0], _int(row[1], "count"), _ints(row[2], "capacity"), _texts(row[3], "features")))
    if not 1 <= sum(kind.count for kind in kinds) <= MOST_NODES:
        raise ValueError(f"kinds: must be from 1 to {MOST_NODES:,} nodes")
    cluster = by_node(resources, tuple(kinds), shared)
    queue = tuple(
        Queued(
            _int(row[0], "job"), _int(row[1], "arrive"), _int(row[2], "duration"), _int(row[3], "units"),
            _ints(row[4], "need"), _bits(row[5], len(kinds)), _int(row[6], "per_node"),
        )
        for row in _rows(content.get("queue"), 7, "queue")
    )  # fmt: skip
    running = tuple(
        Running(_int(row[0], "job"), _int(row[1], "remaining"), _ints(row[2], "nodes"), _ints(row[3], "need"))
        for row in _rows(content.get("running"), 4, "running")
    )
    if sum(job.units for job in queue) > MOST_UNITS:
        raise ValueError(f"queue: at most {MOST_UNITS:,} units")
    jobs = [job.job for job in queue] + [job.job for job in running]
    if len(set(jobs)) < len(jobs):
        raise ValueError("a job is named twice")
    return DispatchProblem(_int(content.get("now"), "now"), cluster, queue, running)


def _rows(value: Any, width: int, name: str) -> list[list[Any]]:
    if not isinstance(value, list) or not all(isinstance(row, list) and len(row) == width for row in value):
        raise ValueError(f"{name}: must be a list of lists of {width}")
    return value


def _ints(value: Any, name: str) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{name}: must be a list of whole numbers")
    return tuple(_int(one, name) for one in value)


def _texts(value: Any, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"{name}: must be a list of texts")
    return tuple(value)


def _int(value: Any, name: str) -> int:
    if type(value) is not int or not -_MOST <= value <= _MOST:
        raise ValueError(f"{name}: must be a whole number of at most {_MOST} in size")
    return value


def _bits(value: Any, kinds: int) -> int:
    if type(value) is not int or not 0 <= value < 1 << kinds:
        raise ValueError(f"kinds of a job: must be bits of the {kinds} kinds")
    return value
