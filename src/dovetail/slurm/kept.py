"""Records as columns of numbers, in as much memory as is given: what is more waits in temporary files.

A text is its place among the different texts of its field.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dovetail.arrays import Ints
from dovetail.errors import SettingError

if TYPE_CHECKING:
    import polars as pl

Places: TypeAlias = NDArray[np.int64] | slice
"""Some of the records, in an order."""
NO_NUMBER: Final = -(1 << 63)
_AT_ONCE: Final = 1 << 20
NO_PLACE: Final = -1
"""Of no text: the last of a list stands for it."""


@dataclass
class _Column:
    texts: list[str] | None
    """The different texts; None: it is of numbers."""
    place: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    """Of the text that polars knows by a number; -1: it is new."""
    alive: pl.Series | None = None
    """Polars forgets what its numbers of texts stand for when the last series of their kind is gone."""
    held: list[NDArray[Any]] = field(default_factory=list)
    file: IO[bytes] | None = None
    mapped: mmap.mmap | None = None

    @property
    def kind(self) -> np.dtype[Any]:
        return np.dtype(np.int64 if self.texts is None else np.int32)

    def add(self, given: pl.Series, codes: pl.Series) -> None:
        """Some records more; `codes`: the numbers by which polars knows texts."""
        missing = codes.is_null().to_numpy() if codes.has_nulls() else None
        numbers = (codes if missing is None else codes.fill_null(0)).to_numpy()
        self.alive = given[:0] if self.alive is None else self.alive
        if self.texts is None:
            self.held.append(numbers if missing is None else np.where(missing, NO_NUMBER, numbers))
            return
        if (most := int(numbers.max(initial=0)) + 1) > len(self.place):
            more = np.full(max(most, 2 * len(self.place)) - len(self.place), NO_PLACE, np.int32)
            self.place = np.concatenate([self.place, more])
        found = self.place[numbers]
        new = np.flatnonzero((found == NO_PLACE) & (True if missing is None else ~missing))
        if len(new):
            some, first = np.unique(numbers[new], return_index=True)
            self.place[some[np.argsort(first)]] = np.arange(len(self.texts), len(self.texts) + len(some))
            self.texts += given.gather(new[np.sort(first)]).cast(str).to_list()
            found = self.place[numbers]
        self.held.append(found if missing is None else np.where(missing, np.int32(NO_PLACE), found))

    def nothing(self, many: int) -> None:
        """Records that do not have it."""
        self.held.append(np.full(many, NO_NUMBER if self.texts is None else NO_PLACE, self.kind))

    def put_away(self) -> None:
        """Into the file."""
        try:
            if self.file is None:
                self.file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - it has no name, and goes with the process
            for values in self.held:
                left = memoryview(values.tobytes())
                while left:
                    left = left[self.file.write(left) :]
        except OSError as error:
            where = f"temporary files in {tempfile.gettempdir()}"
            raise SettingError(f"{where}: {error.strerror}; give more --memory, or TMPDIR another folder") from error
        self.held.clear()

    def whole(self) -> NDArray[Any]:
        """Of all records."""
        if self.file is None:
            self.held = [np.concatenate(self.held)] if len(self.held) > 1 else self.held
            return self.held[0]
        if self.mapped is None:
            self.put_away()
            self.mapped = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(self.mapped, self.kind)


@dataclass
class Kept:
    """All records so far. `memory`: bytes that they may take."""

    memory: int
    columns: dict[str, _Column] = field(default_factory=dict)
    held: int = 0
    """Bytes in memory."""
    many: int = 0

    def __len__(self) -> int:
        return self.many

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def add(self, frame: pl.DataFrame) -> None:
        """Some more: texts are categories, all else are integers."""
        import polars as pl

        for given, codes in zip(frame, frame.select(pl.all().to_physical()), strict=True):
            if given.name not in self.columns:
                self.columns[given.name] = _Column([] if isinstance(given.dtype, pl.Categorical) else None)
                self._lacking(self.columns[given.name])
            self.columns[given.name].add(given, codes)
        for name in self.columns.keys() - frame.columns:
            self.columns[name].nothing(len(frame))
        self.many += len(frame)
        self.held += len(frame) * sum(one.kind.itemsize for one in self.columns.values())
        if self.held > self.memory:
            for column in self.columns.values():
                column.put_away()
            self.held = 0

    def _lacking(self, column: _Column) -> None:
        """The records so far do not have it."""
        for begin in range(0, self.many, _AT_ONCE):
            column.nothing(min(_AT_ONCE, self.many - begin))
            if any(other.file is not None for other in self.columns.values()):
                column.put_away()

    def complete(self) -> None:
        """No more will come."""
        for column in self.columns.values():
            column.place, column.alive = np.empty(0, np.int32), None

    def texts(self, name: str) -> Sequence[str]:
        """The different texts of a field."""
        return self.columns[name].texts or () if name in self.columns else ()

    def which(self, name: str, some: Places) -> NDArray[np.int32]:
        """The places of the texts of some records."""
        if name not in self.columns:
            return np.full(self.count(some), NO_PLACE, np.int32)
        found: NDArray[np.int32] = self.columns[name].whole()[some]
        return found

    def numbers(self, name: str, some: Places, otherwise: int) -> Ints:
        """A field of some records."""
        if name not in self.columns:
            return np.full(self.count(some), otherwise)
        found: Ints = self.columns[name].whole()[some]
        return np.where(found == NO_NUMBER, otherwise, found)

    def count(self, some: Places) -> int:
        """How many they are."""
        return len(range(*some.indices(self.many))) if isinstance(some, slice) else len(some)

    def close(self) -> None:
        """Their files are gone."""
        for column in self.columns.values():
            if column.file is not None:
                column.file.close()

    def rest(self) -> None:
        """Give back what memory files have taken for now."""
        for column in self.columns.values():
            if column.mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
                column.mapped.madvise(mmap.MADV_DONTNEED)
