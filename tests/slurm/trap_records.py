"""A dump by hand with every trap that is known of sacct's records, and what becomes of each."""

from __future__ import annotations

from typing import Final

from dovetail.slurm.records import FIELDS
from tests.slurm.traps import NAMES

T: Final = 1_790_000_000
KEPT, LEFT_OUT, AGAIN = "kept", "left out", "again"
WAITED = "still waited when the records were read"
RAN = "still ran when the records were read"
ONE: Final = "billing=1,cpu=1,mem=1000M,node=1"
GPUS: Final = "billing=16,cpu=16,gres/gpu=2,gres/gpu:a100=2,mem=64000M,node=1"
PLAIN: Final = {
    **dict.fromkeys(FIELDS, ""), "Submit": f"{T}", "Eligible": f"{T}", "Start": f"{T + 60}", "End": f"{T + 660}",
    "Suspended": "00:00:00", "State": "COMPLETED", "TimelimitRaw": "60", "ReqTRES": ONE, "AllocTRES": ONE,
    "ReqNodes": "1", "NNodes": "1", "NodeList": "c1", "User": "ann", "Account": "bio", "Partition": "batch",
    "QOS": "normal", "Reason": "None", "Flags": "SchedBackfill", "Restarts": "0", "Exclusive": "NO",
    "Cluster": "here", "JobName": "run",
}  # fmt: skip
"""A record without a trap; DBIndex, JobIDRaw and JobID are its own."""
NOT_GIVEN: Final = {"AllocTRES": "", "NodeList": "None assigned"}
WAITS: Final = {**NOT_GIVEN, "Start": "Unknown", "End": "Unknown", "State": "PENDING"}
MORE_NAMES: Final = (
    "", "\0", "a\0b", "\u202egnp.exe", "\x1b]0;x\x07", "\x7f", "\u2028", "\ud800", "~", "~~"
)  # fmt: skip
WRITTEN: Final = ("User", "Account", "Partition", "QOS", "Reservation", "Constraints", "Reason")
"""Texts beside the name that somebody chose."""
TWICE: Final = "2026-10-25T02:{}:00"
"""In an hour that clocks of Berlin show twice."""
GONE: Final = {**NOT_GIVEN, "State": "CANCELLED by 1001"}
TRAPS: Final[tuple[tuple[dict[str, str], str], ...]] = (
    ({}, KEPT),
    ({"JobID": "900_4"}, KEPT),
    ({"JobID": "901+1"}, KEPT),
    ({"JobID": "902_[5-9%2]", **WAITS}, WAITED),
    ({"JobID": "903_[1,3,5,7,9,11,...", **WAITS}, WAITED),
    ({"State": "REQUEUED", "JobIDRaw": "77"}, KEPT),
    ({"Submit": f"{T + 660}", "Start": f"{T + 661}", "End": f"{T + 700}", "JobIDRaw": "77"}, KEPT),
    ({"State": "NODE_FAIL", "JobIDRaw": "78"}, KEPT),
    ({"State": "PREEMPTED"}, KEPT),
    ({"State": "TIMEOUT"}, KEPT),
    ({**GONE, "Start": "None"}, KEPT),
    ({**GONE, "Start": f"{T + 660}"}, KEPT),
    ({**GONE, "State": "CANCELLED+", "Start": "Unknown"}, KEPT),
    ({**GONE, "State": "DEADLINE", "Start": "None"}, KEPT),
    ({**WAITS, "Eligible": "Unknown"}, WAITED),
    ({"Eligible": f"{T + 50}"}, KEPT),
    ({"Eligible": "Unknown"}, KEPT),
    ({"Eligible": f"{T - 50}"}, KEPT),
    ({"Suspended": "00:05:00"}, KEPT),
    ({"Suspended": "300"}, KEPT),
    ({"Suspended": "9" * 19}, KEPT),
    ({"ReqTRES": GPUS, "AllocTRES": GPUS}, KEPT),
    ({"ReqTRES": "cpu=1,mem=0,node=1", "AllocTRES": "cpu=1,mem=180G,node=1"}, KEPT),
    ({"Exclusive": "NODE", "AllocTRES": "cpu=128,node=1"}, KEPT),
    ({"AllocTRES": "cpu=128,energy=18446744073709551614"}, KEPT),
    ({"ReqTRES": "cpu=9,node=2", "AllocTRES": "cpu=9,node=2", "NNodes": "2"}, KEPT),
    ({"ReqTRES": "", "AllocTRES": "node=1"}, "no processors"),
    ({"AllocTRES": "cpu=,=,,x"}, KEPT),
    ({"TimelimitRaw": "UNLIMITED"}, KEPT),
    ({"TimelimitRaw": "Partition_Limit"}, KEPT),
    ({"TimelimitRaw": "9" * 9}, KEPT),
    ({"TimelimitRaw": "soon"}, KEPT),
    ({"State": ""}, KEPT),
    ({"State": "\x1b[31m"}, KEPT),
    ({"State": "RUNNING", "End": "Unknown"}, RAN),
    ({"State": "COMPLETED", "End": "Unknown"}, "ended, and nobody knows when"),
    ({"State": "FAILED", "Start": "None"}, "ended, and nobody knows when it started"),
    ({"State": "SUSPENDED", "End": "Unknown"}, RAN),
    ({"State": "RESIZING"}, KEPT),
    ({"End": f"{T + 10}"}, "ended before it started"),
    ({"Start": f"{T - 9}"}, "started before it was submitted"),
    ({**GONE, "Start": "None", "End": f"{T - 1}"}, "left before it was submitted"),
    ({"Submit": "Unknown"}, "no time of submission"),
    ({"Submit": "yesterday"}, LEFT_OUT),
    ({"End": "9" * 14}, LEFT_OUT),
    ({"Start": "-5"}, LEFT_OUT),
    ({"JobIDRaw": "9" * 30}, LEFT_OUT),
    ({"JobIDRaw": "-4"}, LEFT_OUT),
    ({"JobIDRaw": ""}, LEFT_OUT),
    ({"JobIDRaw": "\u0665"}, LEFT_OUT),
    ({"JobID": "77.batch", "JobIDRaw": "77.batch"}, LEFT_OUT),
    ({"JobID": "77.0"}, LEFT_OUT),
    ({"DBIndex": f"{2**64 - 1}"}, KEPT),
    ({"End": "9999-12-31T23:59:59"}, LEFT_OUT),
    ({"Submit": "0001-01-01T00:00:00"}, LEFT_OUT),
    ({"AllocTRES": "cpu=2G"}, f"more than {10**9:,} processors"),
    ({"AllocTRES": "cpu=1,mem=1E,gres/gpu=1P"}, KEPT),
    (
        {"Submit": TWICE.format(50), "Eligible": TWICE.format(50), "Start": TWICE.format(10), "End": TWICE.format(20)},
        KEPT,
    ),
    ({"Submit": "2026-03-29T02:30:00", "Start": "2026-03-29T03:30:00"}, "a time that the clock skipped in spring"),
    ({"User": "(null)", "Account": "none", "QOS": "Unknown"}, KEPT),
    ({"NodeList": "c[1-"}, KEPT),
    ({"NodeList": "c" * 9_999}, KEPT),
    *(({"JobName": name}, KEPT) for name in (*NAMES, *MORE_NAMES)),
    *(({field: "\x1b[2J\u202e\n<b>"}, KEPT) for field in WRITTEN),
)
"""What is odd of a record, and what becomes of it."""


def records() -> list[tuple[dict[str, str], str]]:
    """All of them, each with numbers of its own unless the trap has others; the first once more."""
    made = []
    for at, (odd, fate) in enumerate(TRAPS):
        number = odd.get("JobIDRaw", f"{1000 + at}")
        made.append(({**PLAIN, "DBIndex": f"{2**63 + at}", "JobIDRaw": number, "JobID": number, **odd}, fate))
    return [*made, (made[0][0], AGAIN)]


def encoded(text: str) -> bytes:
    """As sacct prints it: any bytes may stand in a name; a lone surrogate becomes one that is no UTF-8."""
    return text.encode("utf-8", "surrogatepass")


def dump(rows: list[list[bytes]], delimiter: bytes, closed: bool, line: bytes = b"\n") -> bytes:
    """Records with the header first."""
    end = delimiter * closed + line
    return b"".join(delimiter.join(row) + end for row in rows)
