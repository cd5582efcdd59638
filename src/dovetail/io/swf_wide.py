"""SWF with more fields: used GPUs, the soft wall time, and a descriptor of nodes (`frontier:excl:2500x112`).

Such logs are not by the standard. The first job of a file says whether it is one of them. Its lines are cut to the 18
fields that the standard has, and what stood behind is kept here by line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from dovetail.kernels.swf import HOLD, LONGEST, MOST_PROCESSORS, MOST_SECONDS, N_FIELDS
from dovetail.model.workload import Column, Step, Workload

MOST_FIELDS: Final = 21
BEHIND: Final = ("gpus", "soft_limit", "descriptor")
"""The columns that fields 19 to 21 become."""
UNREADABLE: Final = "not 18 to 21 fields, or GPUs, soft wall time and nodes that cannot be read"
_NODES: Final = re.compile(r"(?:[!-~]*:)?([1-9][0-9]{0,8})x([1-9][0-9]{0,8})")
_MARK: Final = b"\xef\xbb\xbf"
"""What some editors put before the first byte."""
_NUMBER: Final = re.compile(rb"-?[0-9]{1,11}(?:\.[0-9]*)?")
_ALONE: Final = "excl"

Row = tuple[int, int, int, str]
"""Line, GPUs, soft wall time and descriptor."""


@dataclass
class Wide:
    """A log on its way to the reader of 18 fields."""

    wide: bool | None = None
    """Whether jobs have more fields; None: no job has been seen."""
    rows: list[Row] = field(default_factory=list)
    _rest: bytes = b""
    _line: int = 0

    def narrow(self, block: bytes, *, final: bool = False) -> bytes:
        """The block with 18 fields in each line. An incomplete last line is held back."""
        if self.wide is False:
            held, self._rest = self._rest, b""
            return held + block
        *lines, rest = (self._rest + block).split(b"\n")
        if final:
            lines, rest = [*lines, rest], b""
        self._rest = rest[:HOLD]  # of a line that is too long, enough to see that it is
        for at, text in enumerate(lines):
            fields = (text if self._line + at else text.removeprefix(_MARK)).split()
            if not fields or fields[0].startswith(b";") or len(text.removesuffix(b"\r")) > LONGEST:
                continue
            if self.wide is None:
                if not N_FIELDS <= len(fields) <= MOST_FIELDS:
                    continue
                self.wide = len(fields) > N_FIELDS
                if not self.wide:
                    break
            if (row := _row(self._line + at + 1, fields)) is not None:
                self.rows.append(row)
                lines[at] = b" ".join(fields[:N_FIELDS])
        self._line += len(lines)
        return b"\n".join(lines) + (b"" if final else b"\n" if lines else b"")

    def added(self, workload: Workload) -> Workload:
        """The workload with what stood behind field 18, by its lines."""
        lines, gpus, soft, texts = zip(*self.rows, strict=True) if self.rows else ((), (), (), ())
        where = np.searchsorted(np.array(lines, np.int64), workload["line"])
        here = np.array([*lines, -1], np.int64)[where] == workload["line"]
        known = {text: number for number, text in enumerate(sorted({text for text in texts if text}))}
        columns = {"gpus": gpus, "soft_limit": soft, "descriptor": [known.get(text, -1) for text in texts]}
        found = {name: _at(values, where, here) for name, values in columns.items() if max(values, default=-1) >= 0}
        made = workload.with_columns(Step("fields 19 to 21 kept"), **found)
        return _sized(made, tuple(known)) if known else made


def fields_behind(workload: Workload) -> list[list[str]]:
    """Fields 19 to 21 of each job, as far as the workload has any. A descriptor that the size no longer agrees with, as
    a scenario has changed it, is left out: a reader would take the size from it."""
    last = max((at for at, name in enumerate(BEHIND, 1) if name in workload), default=0)
    found = [[str(value) for value in workload.get(name).tolist()] for name in BEHIND[:last]]
    if last == len(BEHIND):
        texts, units = workload.names.get("descriptor", ()), workload.get("units")
        stale = (units > 0) & (workload.size != units * workload.get("unit_cores"))
        found[-1] = [
            re.sub(r"[^!-~]", "_", texts[at]) if 0 <= at < len(texts) and not old else "-1"
            for at, old in zip(workload["descriptor"].tolist(), stale.tolist(), strict=True)
        ]
    return found


def _at(values: Sequence[int], where: Column, here: Column) -> Column:
    return np.where(here, np.array([*values, -1], np.int64)[where], -1)


def _row(line: int, fields: list[bytes]) -> Row | None:
    """What stands behind field 18; None: it is not what it should be."""
    more = fields[N_FIELDS:]
    if len(fields) < N_FIELDS or len(more) > MOST_FIELDS - N_FIELDS:
        return None
    if not all(_NUMBER.fullmatch(text) for text in more[:2]):
        return None
    gpus, soft = (round(float(text)) for text in [*more[:2], b"-1", b"-1"][:2])
    text = more[2].decode("ascii", "replace") if len(more) == 3 else ""
    if not (gpus <= MOST_PROCESSORS and soft <= MOST_SECONDS and text.isprintable() and text.isascii()):
        return None
    if (nodes := _NODES.fullmatch(text)) and int(nodes[1]) * int(nodes[2]) > MOST_PROCESSORS:
        return None
    return line, max(gpus, -1), max(soft, -1), "" if text == "-1" else text


def _sized(workload: Workload, texts: tuple[str, ...]) -> Workload:
    """What the descriptors say of nodes. Fields 5 and 8 are unreliable beside them: N nodes of M cores are N x M
    processors."""
    which = workload["descriptor"]
    parts = [_NODES.fullmatch(text) for text in texts]
    facts: Mapping[str, list[int]] = {
        "units": [int(one[1]) if one else -1 for one in parts],
        "unit_cores": [int(one[2]) if one else -1 for one in parts],
        "exclusive": [int(_ALONE in text.split(":")) if one else -1 for one, text in zip(parts, texts, strict=True)],
    }
    found = {name: np.array([*values, -1], np.int64)[which] for name, values in facts.items()}
    size = np.where(found["units"] > 0, found["units"] * found["unit_cores"], workload.size)
    step = Step("processors as the descriptor says, nodes x cores", changed=int((size != workload.size).sum()))
    named = replace(workload, names={**workload.names, "descriptor": texts})
    return named.with_columns(step, size=size, **found)
