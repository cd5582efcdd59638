"""A replay on disk: written now and then, so that it goes on from there after a kill.

All that changes while a replay runs is arrays. They are written as they are, sealed by a hash, into a file that is
named after all that the replay depends on: another replay, or other code, has another file. Kernels trust what they
are given, so a file that another user could have written is not read.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from math import inf
from pathlib import Path
from typing import Any, Final

import numba
import numpy as np

from dovetail.arrays import Ints
from dovetail.engine.compiled import Replay
from dovetail.errors import InputError
from dovetail.kernels.announce import remark
from dovetail.kernels.kept import SEAL, own, own_folder, sealed, write
from dovetail.kernels.passes.rule import fitted
from dovetail.model.schedule import Lost

EVERY_S: Final = 60.0
"""Seconds of the clock between two writes."""


class Saved:
    """The file of one replay in a folder. `depends` are texts, `arrays` tuples of arrays and numbers, that together say
    all that the replay depends on, the code apart."""

    def __init__(self, folder: Path, depends: Sequence[str], arrays: Any, every_s: float = EVERY_S) -> None:
        own_folder(folder)
        h = hashlib.sha256(_code())
        for text in depends:
            h.update(f"{len(text)}:{text}".encode())
        for part in _flat(arrays, numbers=True):
            h.update(repr(part).encode() if not isinstance(part, np.ndarray) else np.ascontiguousarray(part).tobytes())
        self.path = folder / f"{h.hexdigest()[:32]}.replay"
        self._every_s, self._last = every_s, time.monotonic()

    def keep(self, going: Replay) -> None:
        """Write the replay as it is, unless that was done just now. Where that cannot be, it goes on all the same."""
        if time.monotonic() - self._last < self._every_s:
            return
        made = BytesIO()
        np.savez(made, **_arrays(going))
        try:
            write(self.path, sealed(self.path.name, made.getvalue()))
        except InputError as error:
            remark(f"The replay is not written down any more: {error}.")
            self._every_s = inf
        self._last = time.monotonic()

    def gone_on(self, fresh: Replay) -> Replay:
        """The replay as it was when it was last written; as it is if that never was."""
        data = own(self.path, "replay", "begins anew")
        if data is None:
            return fresh
        with np.load(BytesIO(data[SEAL:]), allow_pickle=False) as found:
            made = _made(fresh, dict(found))
        remark(f"The replay goes on from {self.path}, with {made.started:,} jobs started.")
        return made

    def done(self) -> None:
        """It has come to its end: nobody needs the file any more."""
        self.path.unlink(missing_ok=True)


def _code() -> bytes:
    """A hash of all that the package does."""
    package = Path(__file__).parents[1]
    h = hashlib.sha256(f"{np.__version__} {numba.__version__}".encode())
    for path in sorted(package.rglob("*.py")):
        h.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    return h.digest()


def _flat(value: Any, *, numbers: bool = False) -> Iterator[Any]:
    """The arrays in tuples of tuples, in turn; with what else is in them (`numbers`)."""
    if isinstance(value, tuple):
        for part in value:
            yield from _flat(part, numbers=numbers)
    elif numbers or isinstance(value, np.ndarray):
        yield value


def _filled(like: Any, arrays: Iterator[Any]) -> Any:
    """The same tuples with other arrays."""
    if isinstance(like, np.ndarray):
        return next(arrays)
    if isinstance(like, tuple):
        return getattr(type(like), "_make", tuple)(_filled(part, arrays) for part in like)
    return like


def _arrays(going: Replay) -> dict[str, Any]:
    lost, first = going.lost, going.first_arrive
    units = [one.nodes for one in lost], [one.devices for one in lost]
    numbers = [(one.job, one.start, one.end, one.estimate, len(one.nodes)) for one in lost]
    return {
        **{f"at{i}": array for i, array in enumerate(_flat((going.run, going.cap, going.learner)))},
        "to_come": np.array([len(going.failures), len(going.leaving)]),
        "lost": np.array(numbers, np.int64).reshape(-1, 5),
        "units": np.array([np.concatenate([*some, np.empty(0, np.int64)]) for some in units], np.int64),
        "first_arrive": np.array([*first.items()], np.int64).reshape(-1, 2),
    }


def _made(fresh: Replay, found: dict[str, Ints]) -> Replay:
    arrays = iter([found[f"at{i}"] for i in range(sum(name.startswith("at") for name in found))])
    run, cap, learner = (_filled(part, arrays) for part in (fresh.run, fresh.cap, fresh.learner))
    failures, leaving = found["to_come"].tolist()
    places = np.split(found["units"], np.cumsum(found["lost"][:, 4])[:-1], axis=1)
    return replace(
        fresh, run=run, cap=cap, learner=learner, rule=fitted(fresh.rule, cap, run.lists.shape[1]),
        failures=fresh.failures[:failures], leaving=fresh.leaving[:leaving],
        lost=[
            Lost(job, start, end, where[0].copy(), where[1].copy(), estimate)
            for (job, start, end, estimate, _), where in zip(found["lost"].tolist(), places, strict=False)
        ],
        first_arrive=dict(found["first_arrive"].tolist()),
    )  # fmt: skip
