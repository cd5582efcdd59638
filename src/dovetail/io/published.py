"""Tables of jobs that sites have published: their columns, and what these mean where a name does not say it.

Written after the descriptions that came with the data and programs that read them; none of the files themselves was
read here. docs/catalog.md says where each comes from.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Published:
    """One of them. A table is of this kind if it has all these columns."""

    name: str
    columns: Mapping[str, str]
    """The column of each field."""
    minutes: tuple[str, ...] = ()
    """Fields in minutes; all other times are in seconds."""
    also: tuple[str, ...] = ()
    """Further columns by which it is known."""
    notes: tuple[str, ...] = ()
    """What a reader should know."""


_NODES: Final = "a job's size is its nodes"
PUBLISHED: Final = (
    Published(
        "ALCF's job tables (Mira, Theta, Polaris)",
        {
            "id": "COBALT_JOBID", "submit": "QUEUED_TIMESTAMP", "start": "START_TIMESTAMP", "end": "END_TIMESTAMP",
            "limit": "WALLTIME_SECONDS", "size": "NODES_USED", "user": "USERNAME_GENID",
            "group": "PROJECT_NAME_GENID", "queue": "QUEUE_NAME", "exit": "EXIT_STATUS",
        },
        notes=(_NODES, "its times name no zone: --tz says which"),
    ),
    Published(
        "Frontier's job-centric telemetry",
        {
            "id": "job_idx", "submit": "submit_time", "start": "start_time", "end": "end_time", "limit": "wall_time",
            "size": "node_count", "user": "user_id", "group": "project_id", "queue": "queue",
            "status": "completion_state", "power": "mean_power",
        },
        minutes=("limit",),
        notes=(_NODES, "a sample, most of it large jobs: its queue is not the machine's"),
    ),
    Published(
        "F-DATA (Fugaku)",
        {
            "id": "jid", "submit": "adt", "start": "sdt", "end": "edt", "limit": "elpl", "size": "nnuma",
            "user": "usr", "name": "jnam", "status": "exit state", "power": "avgpcon",
        },
        notes=(_NODES, "only jobs of which all counters are known, so its queue is not quite the machine's"),
    ),
    Published(
        "PM100 (Marconi100)",
        {
            "id": "job_id", "submit": "submit_time", "start": "start_time", "end": "end_time", "limit": "time_limit",
            "size": "num_nodes_alloc", "user": "user_id", "group": "group_id", "partition": "partition", "queue": "qos",
            "status": "job_state", "power": "node_power_consumption",
        },
        minutes=("limit",),
        notes=(_NODES, "only jobs that had their nodes to themselves: its queue is not the machine's"),
    ),
    Published(
        "IN2P3 2024",
        {
            "id": "jobid", "submit": "submit", "start": "start", "end": "end", "limit": "timelimit",
            "size": "alloccpus", "user": "user", "group": "account", "partition": "partition", "status": "state",
        },
        also=("allocgpus", "elapsed"),
        notes=("a job's size is its hardware threads",),
    ),
    Published(
        "Kestrel",
        {
            "id": "job_id", "submit": "submit_time", "start": "start_time", "end": "end_time",
            "limit": "wallclock_req", "size": "processors_used", "user": "user_hash", "group": "account_hash",
            "partition": "partition", "queue": "qos", "status": "state_simple",
        },
        notes=("jobs may share nodes; a job's size is its processors",),
    ),
    Published(
        "Eagle",
        {
            "id": "job_id", "submit": "submit_time", "start": "start_time", "end": "end_time",
            "limit": "wallclock_req", "size": "processors_req", "user": "user", "group": "account",
            "partition": "partition", "queue": "qos", "name": "name", "status": "state",
        },
        also=("gpus_req", "nodes_req"),
        notes=("its times name no zone: --tz says which", "a job's size is what it asked for"),
    ),
    Published(
        "CERIT's soft wall times",
        {
            "id": "jobID", "submit": "arrival", "wait": "wait", "runtime": "runtime", "size": "CPUs", "user": "user",
            "queue": "queue", "limit": "walltime", "soft": "softwall",
        },
        notes=("its columns have no names: they are taken for these by their number and kinds",),
    ),
)  # fmt: skip


def kind_of(columns: Collection[str]) -> Published | None:
    """The kind that has these columns."""
    return next((one for one in PUBLISHED if {*one.columns.values(), *one.also} <= set(columns)), None)


CERIT: Final = ("jobID", "arrival", "wait", "runtime", "CPUs", "memory", "user", "queue", "walltime", "softwall")
_ROW: Final = re.compile(rb"\s*\d+(?:\[\d*\])?(?:\s+-?\d+){4}\s+-?[\d.,]+\s+\S+\s+\S+(?:\s+-?\d+){2}\s*")


def without_names(data: bytes) -> pl.DataFrame | None:
    """CERIT's soft wall times as a table: ten fields with blanks between them, below comments. None if a line is
    another."""
    import polars as pl

    rows = []
    for line in io.BytesIO(data):  # most tables are another by their first line
        if line.strip() and not line.lstrip().startswith((b";", b"#")):
            if not _ROW.fullmatch(line):
                return None
            rows.append(line.decode("utf-8", "replace").split())
    return pl.DataFrame(rows, schema=dict.fromkeys(CERIT, pl.String), orient="row") if rows else None
