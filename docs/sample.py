"""Writes the log of the administrator's tutorial again: examples/sacct.txt.xz, made up, as `sacct -P -X` prints one.

    python docs/sample.py

Jobs are generated; what "happened" is a replay by reservations for all, every five minutes. Some rows are as logs have
them: cancelled before they started, still running, without a limit.
"""

from __future__ import annotations

import lzma
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import dovetail as dt

PATH = Path(__file__).resolve().parent.parent / "examples" / "sacct.txt.xz"
HEAD = "JobID|User|Account|Partition|Submit|Start|End|NCPUS|Timelimit|State"
FIRST = datetime(2026, 1, 5, 8, tzinfo=ZoneInfo("UTC"))
HERE = ZoneInfo("Europe/Berlin")


def clock(second: int) -> str:
    return (FIRST + timedelta(seconds=second)).astimezone(HERE).strftime("%Y-%m-%dT%H:%M:%S")


def lasting(seconds: int) -> str:
    """As sacct has it, in whole minutes, rounded up: 1-02:30:00."""
    minutes = -(-seconds // 60)
    days, minutes = divmod(minutes, 24 * 60)
    return (f"{days}-" if days else "") + f"{minutes // 60:02d}:{minutes % 60:02d}:00"


def text() -> str:
    jobs = dt.generate(5_400, 64, load=0.6, seed=7, kind="batch")
    rows = []
    for number, job in enumerate(dt.replay(jobs, "list-reg", every_s=300).jobs().iter_rows(named=True)):
        start, end, limit, state = clock(job["start"]), clock(job["end"]), lasting(job["limit_s"]), "COMPLETED"
        if job["runtime_s"] >= job["limit_s"]:
            state = "TIMEOUT"
        if number % 400 == 150:
            start, end, state = "None", clock(job["submit"] + 3600), "CANCELLED by 1001"
        if number % 900 == 450:
            limit = "UNLIMITED"
        if number >= 5_397:
            end, state = "Unknown", "RUNNING"
        user = int(job["user"])
        owner = f"user{user:02d}|group{user % 7}|batch"
        rows.append(f"{number + 1000}|{owner}|{clock(job['submit'])}|{start}|{end}|{job['size']}|{limit}|{state}")
    return "\n".join([HEAD, *rows, ""])


if __name__ == "__main__":
    PATH.write_bytes(lzma.compress(text().encode(), preset=9))
