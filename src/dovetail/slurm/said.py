"""What the texts of records say, as numbers: each different text is read once."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from dovetail.arrays import Ints, Mask
from dovetail.errors import SettingError
from dovetail.io.node_list import hosts
from dovetail.kernels.swf import MOST_SECONDS
from dovetail.model.cluster import Cluster
from dovetail.model.features import chosen
from dovetail.slurm import words
from dovetail.slurm.kept import Kept, Places
from dovetail.slurm.machine import DEVICE
from dovetail.slurm.shapes import Amounts
from dovetail.units import printable

_T = TypeVar("_T")
CODES: Final = {word: at for at, word in enumerate((*words.STATES, *words.SIGNS))}
NO_NAME: Final = ("", "None assigned", "(null)", "Unknown", "None")
NO_TEXT: Final = ("", "(null)")
_NO_LIMIT: Final = ("unlimited", "partition_limit", "infinite", "-1", "", "n/a")
_WHOLE: Final = ("NODE", "EXCLUSIVE", "YES")
_ENDED: Final = {"COMPLETED": 1, "CANCELLED": 5}
"""States as SWF has them; all others are failures."""


@dataclass
class Said:
    """Of each text of a field a number, and behind them that of no text."""

    kept: Kept
    cluster: Cluster | None
    notes: list[str] = field(default_factory=list)
    """What could not be read."""

    def of(self, name: str, by_text: NDArray[Any], some: Places) -> NDArray[Any]:
        """What the texts of some records say."""
        return by_text[self.kept.which(name, some)]

    def read(self, name: str, read: Callable[[str], _T], otherwise: _T) -> list[_T]:
        """What each text of a field says; last what stands for no text."""
        made, wrong = list[_T](), list[str]()
        for text in self.kept.texts(name):
            try:
                made.append(read(text) if text else otherwise)
            except ValueError as error:
                wrong.append(str(error))
                made.append(otherwise)
        if wrong:
            more = f", and {len(wrong) - 1:,} texts more" if len(wrong) > 1 else ""
            self.notes.append(f"{name}: {min(wrong)}{more}: taken to be unknown")
        return [*made, otherwise]

    def _numbers(self, name: str, read: Callable[[str], int], otherwise: int = 0) -> Ints:
        return np.array(self.read(name, read, otherwise), np.int64)

    @cached_property
    def _state(self) -> list[words.State]:
        return self.read("State", words.state, words.State("UPDATE_DB"))

    @cached_property
    def word(self) -> Ints:
        """States, of a job that is to run again too."""
        return np.array([CODES["REQUEUED" if "REQUEUED" in one.signs else one.word] for one in self._state])

    @cached_property
    def status(self) -> Ints:
        """States as SWF has them."""
        return np.array([_ENDED.get(one.word, 0) for one in self._state])

    @cached_property
    def resized(self) -> Mask:
        """States of a job that went on with another size."""
        return np.array([*("RESIZING" in text for text in self.kept.texts("State")), False])

    @cached_property
    def _asked(self) -> list[dict[str, int]]:
        return self.read("ReqTRES", words.tres, {})

    @cached_property
    def _given(self) -> list[dict[str, int]]:
        return self.read("AllocTRES", words.tres, {})

    @cached_property
    def asked(self) -> Amounts:
        """What was asked for."""
        return _amounts(self._asked)

    @cached_property
    def given(self) -> Amounts:
        """What was had."""
        return _amounts(self._given)

    @cached_property
    def gave(self) -> Mask:
        """Whether anything is said of what was had."""
        return np.array([bool(one) for one in self._given])

    @cached_property
    def placed(self) -> dict[str, Mask]:
        """By field that tells it: who was given anything."""
        fields = [name for name in ("AllocTRES", "NodeList") if name in self.kept]
        return {name: np.array([*(text not in NO_NAME for text in self.kept.texts(name)), False]) for name in fields}

    @cached_property
    def lasted(self) -> Ints:
        """Elapsed."""
        return self._numbers("Elapsed", words.elapsed_s, -1)

    @cached_property
    def suspended(self) -> Ints:
        """Seconds, 0 if nobody says."""
        return np.maximum(self._numbers("Suspended", _suspended_s), 0)

    @cached_property
    def limit(self) -> tuple[str, Ints]:
        """The field that has limits, and seconds, -1 where there is none."""
        name = "TimelimitRaw" if "TimelimitRaw" in self.kept else "Timelimit"

        def seconds(text: str) -> int:
            if text.lower() in _NO_LIMIT:
                return -1
            return 60 * words.limit_minutes(text) if name == "TimelimitRaw" else words.elapsed_s(text)

        found = self._numbers(name, seconds, -1)
        return name, np.where((found > 0) & (found <= MOST_SECONDS), found, -1)

    @cached_property
    def whole(self) -> Mask:
        """Whether whole nodes were asked for."""
        return self._numbers("Exclusive", lambda text: int(text.upper() in _WHOLE)) > 0

    @cached_property
    def there(self) -> Ints:
        """How many cores a list of nodes has; -1: they are not all of the cluster, 0: nobody knows."""
        if self.cluster is None or not self.cluster.names:
            return np.zeros(len(self.kept.texts("NodeList")) + 1, np.int64)
        return self._numbers("NodeList", partial(_cores_of, self.cluster))

    @cached_property
    def kinds(self) -> tuple[Ints, list[str]]:
        """Types of GPU that the cluster knows by name: which are asked for."""
        if self.cluster is None:
            return np.zeros(len(self._asked), np.int64), [""]
        having = self.cluster.having
        names = [[f"{DEVICE}{one}" for one in words.devices(found) if one] for found in self._asked]
        asked = ["&".join(one for one in some if having(one).any()) for some in names]
        known, which = np.unique(asked, return_inverse=True)
        return which, known.tolist()

    def features(self, some: Places) -> Ints:
        """What some jobs ask for by name, as a place in `named`."""
        which, known = self.kinds
        constraint = self.kept.which("Constraints", some).astype(np.int64) % (len(self.kept.texts("Constraints")) + 1)
        found: Ints = constraint * len(known) + self.of("ReqTRES", which, some)
        return found

    def named(self) -> list[str]:
        """Features of nodes, and types of GPU."""
        texts, known = self.read("Constraints", _constraint, ""), self.kinds[1]
        return [f"({text})&{kind}" if text and kind else text or kind for text in texts for kind in known]


def _amounts(found: list[dict[str, int]]) -> Amounts:
    cores, nodes, memory = (np.array([one.get(name, 0) for one in found], np.int64) for name in ("cpu", "node", "mem"))
    return Amounts(cores, nodes, memory, np.array([sum(words.devices(one).values()) for one in found], np.int64))


def _constraint(text: str) -> str:
    """Features as the model has them. Counts ask for nodes of several kinds: any of these will do."""
    plain, counts = re.subn(r"\*\d{1,9}(?::\d{1,9})?", "", re.sub(r"[\[\]]", "", text))
    plain = plain.replace("&", "|") if counts else plain.replace(",", "&")
    try:
        chosen(plain, lambda _: np.zeros(1, bool))
    except SettingError as error:
        raise ValueError(f"{printable(text, 40)!r} joins no names of features by & and |") from error
    return plain


def _cores_of(cluster: Cluster, text: str) -> int:
    """All cores of a list of nodes; -1, if they are not all of the cluster."""
    if text in NO_NAME:
        return -1
    nodes = [cluster.number.get(name, -1) for name in hosts(text)] or [-1]
    return -1 if -1 in nodes else int(cluster.capacity[cluster.kind_of[nodes], 0].sum())


def _suspended_s(text: str) -> int:
    seconds = int(text[:19]) if text.isdigit() else words.elapsed_s(text)
    if seconds > MOST_SECONDS:
        raise ValueError(f"{printable(text, 40)!r} is longer than anything lasts")
    return seconds
