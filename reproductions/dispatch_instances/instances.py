"""Dispatch problems in files, so that all models can be given the same ones. JSON; what is read is checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from dovetail.errors import InputError
from dovetail.model.cluster import NodeKind, by_node
from dovetail.optimize.dispatch.problem import DispatchProblem, Queued, Running

MOST_BYTES = 256 * 2**20
Whole = Annotated[int, Field(ge=-(2**40), le=2**40)]  # no number is larger: sums of them stay exact
Wholes = tuple[Whole, ...]
Texts = tuple[str, ...]


class _File(BaseModel):
    """A problem as it is written."""

    model_config = ConfigDict(strict=True)

    format: Literal["dovetail-dispatch-1"]
    now: Whole
    resources: Texts
    shared: str = ""
    kinds: list[tuple[str, Whole, Wholes, Texts]]
    queue: list[tuple[Whole, Whole, Whole, Whole, Wholes, Whole, Whole]]
    running: list[tuple[Whole, Whole, Wholes, Wholes]]

    def problem(self) -> DispatchProblem:
        """ValueError where the parts do not go together."""
        if not 1 <= sum(count for _, count, _, _ in self.kinds) <= 1_000_000:
            raise ValueError("kinds: must be from 1 to 1,000,000 nodes")
        if sum(job[3] for job in self.queue) > 1_000_000:
            raise ValueError("queue: at most 1,000,000 units")
        if any(not 0 <= job[5] < 1 << len(self.kinds) for job in self.queue):
            raise ValueError(f"kinds of a job: must be bits of the {len(self.kinds)} kinds")
        jobs = [job[0] for job in (*self.queue, *self.running)]
        if len(set(jobs)) < len(jobs):
            raise ValueError("a job is named twice")
        cluster = by_node(self.resources, tuple(NodeKind(*kind) for kind in self.kinds), self.shared)
        queue, running = tuple(Queued(*job) for job in self.queue), tuple(Running(*job) for job in self.running)
        return DispatchProblem(self.now, cluster, queue, running)


def save_problem(problem: DispatchProblem, path: str | Path) -> None:
    """Write a problem. Same problem, same bytes."""
    cluster = problem.cluster
    content = {
        "format": "dovetail-dispatch-1",
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
        return _File.model_validate_json(path.read_bytes()).problem()
    except OSError as error:
        raise InputError(path, 0, f"cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # what is not UTF-8 or not JSON, and every rule that a problem breaks
        raise InputError(path, 0, f"not a dispatch problem: {error}") from error
