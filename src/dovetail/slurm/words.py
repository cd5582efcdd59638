"""The words of Slurm's programs: times, durations, limits, memory, TRES, devices, states, numbers of jobs.

One function each. A text that is none of Slurm's words raises ValueError with the rule, to stand behind a place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from dovetail.arrays import NEVER
from dovetail.units import printable

MOST_TEXT: Final = 1 << 20
"""Characters of a text that is read."""
UNLIMITED: Final = -1
"""Of a limit: none is set."""
MOST_COUNT: Final = 1 << 50
"""Of any resource: KiB of memory, or pieces."""
_NO_TIME: Final = ("", "unknown", "none", "n/a")
_ELAPSED: Final = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d{2})(?:\.\d{1,6})?", re.ASCII)
_LIMIT: Final = re.compile(
    r"(?P<days>\d{1,9})-(?:(?P<h>\d{1,9})(?::(?P<m>\d{1,9})(?::(?P<s>\d{1,9}))?)?)?"
    r"|(?:(?P<h3>\d{1,9}):)?(?P<m2>\d{1,9}):(?P<s2>\d{1,9})|(?P<m1>\d{1,9})",
    re.ASCII,
)
_NO_LIMIT: Final = ("-1", "infinite", "unlimited")
_MEMORY: Final = re.compile(r"(\d{1,18})(?:\.(\d{1,6}))?([KMGTPE]?)B?([cn]?)", re.ASCII | re.IGNORECASE)
_KIB: Final = {"K": 1, "M": 1 << 10, "G": 1 << 20, "T": 1 << 30, "P": 1 << 40, "E": 1 << 50}
_COUNT: Final = re.compile(r"(\d{1,20})(?:\.(\d{1,6}))?([KMGTPE]?)", re.ASCII | re.IGNORECASE)
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50, "E": 1 << 60}
_TRES: Final = re.compile(r"[a-z_]+(?:/[^,=]{1,200})?")
_GRES: Final = re.compile(r"[A-Za-z_][\w-]{0,49}", re.ASCII)
_JOB: Final = re.compile(
    r"(?P<job>\d{1,10})(?:_(?:(?P<task>\d{1,10})|\[(?P<tasks>[^\]]*)\]?)|\+(?P<part>\d{1,5}))?(?:\.(?P<step>[\w+]+))?",
    re.ASCII,
)
STATES: Final = {
    "BOOT_FAIL": "BF", "CANCELLED": "CA", "COMPLETED": "CD", "DEADLINE": "DL", "FAILED": "F", "NODE_FAIL": "NF",
    "OUT_OF_MEMORY": "OOM", "PENDING": "PD", "PREEMPTED": "PR", "RUNNING": "R", "SUSPENDED": "S", "TIMEOUT": "TO",
}  # fmt: skip
"""The states of a job, and how Slurm abbreviates them."""
SIGNS: Final = {
    "COMPLETING": "CG", "CONFIGURING": "CF", "EXPEDITING": "EX", "LAUNCH_FAILED": "", "POWER_UP_NODE": "",
    "RECONFIG_FAIL": "", "REQUEUED": "RQ", "REQUEUE_FED": "RF", "REQUEUE_HOLD": "RH", "RESIZING": "RS",
    "RESV_DEL_HOLD": "RD", "REVOKED": "RV", "SIGNALING": "SI", "SPECIAL_EXIT": "SE", "STAGE_OUT": "SO",
    "STOPPED": "ST", "UPDATE_DB": "",
}  # fmt: skip
"""What may stand beside a state, or in its place."""
_BY_SHORT: Final = {short: word for word, short in (STATES | SIGNS).items() if short}


def instant(text: str) -> int:
    """Seconds since 1970 of a time printed with SLURM_TIME_FORMAT=%s; NEVER where Slurm knows none."""
    if text.lower() in _NO_TIME:
        return NEVER
    if not re.fullmatch(r"\d{1,18}", text, re.ASCII):
        raise ValueError(f"{_shown(text)} is no time: seconds since 1970, Unknown or None")
    return int(text)


def elapsed_s(text: str) -> int:
    """Seconds of a duration that Slurm prints: `1-02:03:04`, `02:03:04`, `03:04.567`. Parts of a second are left out;
    -1 where there is none."""
    if text.lower() in (*_NO_TIME, "invalid"):
        return -1
    found = _ELAPSED.fullmatch(text)
    if not found or (found[1] and not found[2]):
        raise ValueError(f"{_shown(text)} is no duration such as 1-02:03:04")
    days, hours, minutes, seconds = (int(one or 0) for one in found.groups())
    return 86_400 * days + 3600 * hours + 60 * minutes + seconds


def limit_minutes(text: str) -> int:
    """Whole minutes of a limit as users and slurm.conf write it: `90`, `1:30` (minutes and seconds), `1:30:00`, `1-2`
    (days and hours), `1-2:30`, `UNLIMITED`. Slurm rounds seconds up. To sbatch 0 is no limit."""
    if text.lower() in _NO_LIMIT:
        return UNLIMITED
    found = _LIMIT.fullmatch(text)
    if not found:
        raise ValueError(f"{_shown(text)} is no limit: minutes, 1:30:00, 1-2:30 or UNLIMITED")
    part = {name: int(digits or 0) for name, digits in found.groupdict().items()}
    minutes = part["m"] + part["m2"] + part["m1"] + 60 * (part["h"] + part["h3"]) + 1440 * part["days"]
    return minutes - (-(part["s"] + part["s2"]) // 60)


def memory_kib(text: str) -> tuple[int, str]:
    """KiB of an amount of memory, MiB where it names no unit, and what it is for: `c` each core, `n` each node (as
    before 21.08), empty: all of the job."""
    found = _MEMORY.fullmatch(text)
    if not found:
        raise ValueError(f"{_shown(text)} is no amount of memory such as 4000M")
    whole, part, unit, each = found.groups()
    amount = _scaled(whole, part, _KIB[unit.upper() or "M"])
    if amount > MOST_COUNT:
        raise ValueError(f"{_shown(text)} is more memory than at most {MOST_COUNT:,} KiB")
    return amount, each.lower()


def tres(text: str) -> dict[str, int]:
    """Trackable resources by name: `cpu=4,mem=8000M,gres/gpu:a100=2`. Memory is in KiB, all else counted. A number that
    nothing can have is Slurm's word for one that is not known: it is left out."""
    found: dict[str, int] = {}
    for piece in filter(None, _within(text).split(",")):
        name, equals, amount = piece.partition("=")
        counted = _COUNT.fullmatch(amount)
        if not equals or not _TRES.fullmatch(name) or not counted:
            raise ValueError(f"{_shown(piece)} is no resource such as cpu=4")
        whole, part, unit = counted.groups()
        scale = _KIB[unit.upper() or "M"] if name == "mem" else _UNITS[unit.upper()]
        number = _scaled(whole, part, scale)
        if number <= MOST_COUNT:
            found[name] = number
    return found


def devices(counts: dict[str, int], of: str = "gpu") -> dict[str, int]:
    """How many devices by their type, the empty text for those of no named type. Slurm may list the same ones twice,
    with their type and without."""
    typed = {name.partition(":")[2]: n for name, n in counts.items() if name.startswith(f"gres/{of}:")}
    rest = counts.get(f"gres/{of}", 0) - sum(typed.values())
    return {kind: n for kind, n in {**typed, "": rest}.items() if n > 0}


def gres(text: str) -> dict[str, int]:
    """Devices of a node as slurm.conf and scontrol write them, `gpu:a100:4(S:0-1),nic:2`, by the names that they have
    as trackable resources: `gres/gpu:a100`. What is there and never used up (no_consume) is left out."""
    found: dict[str, int] = {}
    for piece in filter(
        None, re.sub(r"\([^()]*\)", "", "" if text.lower() in ("(null)", "n/a") else _within(text)).split(",")
    ):
        name, *rest = piece.split(":")
        if not _GRES.fullmatch(name) or len(rest) > 3:
            raise ValueError(f"{_shown(piece)} is no device such as gpu:a100:4")
        counted = _COUNT.fullmatch(rest[-1]) if rest else None
        amount = _scaled(counted[1], counted[2], _UNITS[counted[3].upper()]) if counted else 1
        kinds = rest[:-1] if counted else rest
        if "no_consume" not in kinds and amount <= MOST_COUNT:
            name = ":".join([f"gres/{name}", *kinds])
            found[name] = found.get(name, 0) + amount
    return found


def _scaled(whole: str, part: str | None, unit: int) -> int:
    return int(whole) * unit + (int(part) * unit // 10 ** len(part) if part else 0)


@dataclass(frozen=True)
class State:
    """What became of a job: a word of STATES (or of SIGNS, where Slurm says no more), who cancelled it (-1: it does not
    say), and what stands beside the state."""

    word: str
    by: int = -1
    signs: tuple[str, ...] = ()


@cache
def state(text: str) -> State:
    """The state of a job: `COMPLETED`, `CANCELLED by 1001`, `CANCELLED+` (cut), `CD`, and as JSON has it
    `PENDING,REQUEUED`."""
    first, _, by = text.strip().partition(" by ")
    words = [_state_word(one.strip().upper()) for one in re.split(r"[,\s]+", first.strip()) if one]
    if not words or (by and not re.fullmatch(r"\d{1,10}", by.strip(), re.ASCII)):
        raise ValueError(f"{_shown(text)} is no state of a job")
    words.sort(key=lambda one: one not in STATES)
    return State(words[0], int(by) if by else -1, tuple(words[1:]))


def _state_word(text: str) -> str:
    """A state or a sign, whole; `CANCEL+` is CANCELLED."""
    if text in STATES or text in SIGNS:
        return text
    if text in _BY_SHORT:
        return _BY_SHORT[text]
    begun = [one for one in (*STATES, *SIGNS) if text.endswith("+") and one.startswith(text[:-1])]
    if len(text) < 4 or len(begun) != 1:
        raise ValueError(f"{_shown(text)} is no state of a job")
    return begun[0]


@dataclass(frozen=True)
class JobId:
    """The number of a job as people see it. `task` of an array, `part` of a heterogeneous job, or -1; `tasks`: those
    of an array that stand for themselves no longer or not yet; `step`: of a job."""

    job: int
    task: int = -1
    part: int = -1
    tasks: str = ""
    step: str = ""


def job_id(text: str) -> JobId:
    """`123`, `123_4`, `123_[1-10%2]`, `123+1`, `123.batch`. Slurm cuts a long list of tasks, bracket and all."""
    found = _JOB.fullmatch(_within(text))
    if not found:
        raise ValueError(f"{_shown(text)} is no number of a job such as 123, 123_4 or 123+1")
    task, part = (int(found[name]) if found[name] else -1 for name in ("task", "part"))
    return JobId(int(found["job"]), task, part, found["tasks"] or "", found["step"] or "")


def _within(text: str) -> str:
    if len(text) > MOST_TEXT:
        raise ValueError(f"{len(text):,} characters: at most {MOST_TEXT:,} are read")
    return text


def _shown(text: str) -> str:
    return repr(printable(text, 40))
