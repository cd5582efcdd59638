"""The Eurora days: 5,930 jobs of CINECA's machine, 31 March to 4 April 2014, as PBS recorded them.

What the columns of eurora_jobs_merged.csv mean, and what becomes of them:

- Times are local, without a change of the clock in these days. Second 0 is the midnight before the first submit, so
  that the hour of the day is known. wait is start - submit, what PBS made of it; runtime is end - start and may pass
  the limit by minutes: the filter `standard` cuts it.
- req_nodes is the number of units: PBS put each on a node, some on the same one. Cores, GPUs and MICs are of the
  whole job and divide by the units; a line where one does not is set aside.
- size is req_cores. `cores` is what the record of the nodes adds up to. It differs for one job, whose node is listed
  twice and would have had 24 of 16 cores in use; there the request counts, a recorded step.
- Memory is what PBS set aside for the job on its nodes (mem_kb_used), per unit, in whole GB, rounded up. The column
  mem_gb is the same for 4,652 jobs. For 701 it says 200 where PBS gave 200 MB: the unit of the request is lost. For
  the others it says 1, the default, where the request was by node. So we do not read it. With this rule no job asks
  for more than a node has: the largest unit has 20 GB, as four nodes of the cluster `eurora` can give.
- queue R are reservations; they are jobs as the others. Users and names are not in the file.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import numpy as np

from dovetail.io.clusters import cluster_named
from dovetail.io.csv import count, read_table
from dovetail.model.workload import Column, Provenance, Step, Workload

FIELDS: Final = (
    "job_id", "queue", "submit", "start", "end", "req_nodes", "req_cores", "mem_gb", "req_walltime_hhmm", "cores",
    "gpus", "mics", "mem_kb_used", "nodes_used", "app_type", "predicted_power_w",
)  # fmt: skip
KB_PER_GB: Final = 1 << 20
THANKS: Final = "CINECA, and the authors of PA-HPC-SIM (Borghesi and others)"
_LIMIT: Final = re.compile(r"([0-9]{1,4}):([0-5][0-9])", re.ASCII)
_INSTANT: Final = re.compile(r"(?:19|20)[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}", re.ASCII)
_EPOCH: Final = datetime(2000, 1, 1)
_DAY_S: Final = 86_400
_LARGE: Final = (44, 45, 55, 64)
_ORDER: Final = (*(node for node in range(1, 65) if node not in _LARGE), *_LARGE)
"""The nodes of the log in the order of the cluster `eurora`: those with 32 GB are the last."""


def read_eurora(path: str | Path) -> Workload:
    """Read the Eurora days. The head of this file says what each column becomes."""
    table = read_table(path, FIELDS, _job)
    names = ("id", "submit", "wait", "runtime", "limit", "size", "units", "unit_memory_gb", "unit_gpus", "unit_mics")
    columns: dict[str, Column] = {name: table.column(place) for place, name in enumerate(names)}
    twice = int(table.column(len(names)).sum())
    places = tuple(dict.fromkeys(row[-2] for row in table.rows if row[-2]))
    number = {place: at for at, place in enumerate(places)}
    columns["ran_on"] = np.array([number.get(row[-2], -1) for row in table.rows], np.int64)
    queues = tuple(sorted({row[-1] for row in table.rows}))
    columns["queue"] = np.array([queues.index(row[-1]) for row in table.rows], np.int64)
    columns["unit_cores"] = columns["size"] // columns["units"]
    columns["line"] = table.line
    midnight = int(columns["submit"].min()) // _DAY_S * _DAY_S
    columns["submit"] = columns["submit"] - midnight
    moved = int(np.count_nonzero(columns["submit"] < np.maximum.accumulate(columns["submit"])))
    order = np.argsort(columns["submit"], kind="stable")
    done = (("cores as requested where the record has others", twice), ("sorted by submit", moved))
    steps = tuple(Step(name, changed=changed) for name, changed in done if changed)
    path = Path(path)
    provenance = Provenance(path.name, table.sha256, len(table.rows) + len(table.aside), THANKS, steps)
    begins = (_EPOCH + timedelta(seconds=midnight)).isoformat(" ")
    return Workload(
        "eurora", {name: values[order] for name, values in columns.items()}, cluster_named("eurora").processors,
        provenance, table.aside, {"Computer": ("Eurora, CINECA",), "StartTime": (f"{begins} local time",)},
        {"queue": queues, "ran_on": places},
    )  # fmt: skip


def _job(texts: list[str]) -> tuple[int | str, ...]:
    """A line as numbers, with its nodes and its queue at the end and before them whether its cores are recorded
    otherwise."""
    line = dict(zip(FIELDS, texts, strict=True))
    submit, start, end = (_instant(line[name], name) for name in ("submit", "start", "end"))
    if not submit <= start <= end:
        raise ValueError("submit, start and end are not in this order")
    units = count(line["req_nodes"], "req_nodes", 1)
    cores = count(line["req_cores"], "req_cores", 1)
    gpus, mics = count(line["gpus"], "gpus"), count(line["mics"], "mics")
    if cores % units or gpus % units or mics % units:
        raise ValueError("cores, GPUs or MICs do not divide by the nodes")
    memory = count(line["mem_kb_used"], "mem_kb_used", 0, 10**15)
    if not line["queue"]:
        raise ValueError("no queue")
    return (
        count(line["job_id"], "job_id", 0, 10**15), submit, start - submit, end - start,
        _limit(line["req_walltime_hhmm"]), cores, units, -(-memory // (units * KB_PER_GB)), gpus // units,
        mics // units, int(cores != count(line["cores"], "cores")), _nodes(line["nodes_used"], units), line["queue"],
    )  # fmt: skip


def _nodes(text: str, units: int) -> str:
    """The nodes of a job as the cluster numbers them, those with 32 GB last; empty where they are not known. Of one job
    they are listed twice."""
    texts = text.split("+")
    texts = texts if len(texts) == units else list(dict.fromkeys(texts))
    known = {str(node): str(at) for at, node in enumerate(_ORDER)}
    return " ".join(known[one] for one in texts) if len(texts) == units and set(texts) <= set(known) else ""


def _instant(text: str, what: str) -> int:
    if not _INSTANT.fullmatch(text):
        raise ValueError(f"{what} is not an instant as 2014-03-31 08:51:10")
    return round((datetime.fromisoformat(text) - _EPOCH).total_seconds())


def _limit(text: str) -> int:
    found = _LIMIT.fullmatch(text)
    if not found:
        raise ValueError("req_walltime_hhmm is not hours and minutes as 04:00")
    return 3600 * int(found[1]) + 60 * int(found[2])
