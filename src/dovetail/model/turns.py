"""Turns: whose turn it is, by the shares of accounts or by fixed priorities. An order of any list, a weight in
plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.errors import SettingError
from dovetail.model.shares import Tree
from dovetail.model.state import State
from dovetail.model.workload import Workload
from dovetail.names import unknown
from dovetail.units import DAY_S, printable

OWNERS: Final = ("account", "group", "user", "queue", "partition", "qos")
"""Columns of a workload that may say whose a job is."""
MOST: Final = 10**9
"""Shares or priority of one."""
UNKNOWN: Final = "unknown"
"""Whose a job is of which the log does not say it."""


@dataclass(frozen=True)
class Turns:
    """What is due to whom. `by`: the column that says whose a job is.

    With `shares`, by name, who has used least of what is due to it comes first, and below each its users, all with the
    same share; what was used counts half after `half_life_s` (0: it never fades) and is counted every `every_s`
    seconds. `others`: the shares of each that is not named; None: all are named. With `priority` instead, the highest
    comes first, whatever was used; `others` have that priority. `members`: who is in each that is no name of the column
    itself."""

    by: str
    shares: tuple[tuple[str, int], ...] = ()
    priority: tuple[tuple[str, float], ...] = ()
    members: tuple[tuple[str, tuple[str, ...]], ...] = ()
    others: float | None = None
    half_life_s: int = 7 * DAY_S
    every_s: int = 300
    source: str = ""
    """The file that says so."""
    among_seen: ClassVar[bool] = True
    """A user stands among those who have come by then, not among all that there are."""
    to_the_end: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if bool(self.shares) == bool(self.priority):
            raise SettingError("turns go by shares or by priority: give one of them")
        for name, value in (*self.shares, *self.priority, ("others", self.others or 0)):
            if not 0 <= value <= MOST or (self.shares and value != int(value)):
                raise SettingError(f"{printable(name)}: must be a number from 0 to {MOST:,}, whole where it is shares")
        if self.every_s < 1 or self.half_life_s < 0:
            raise SettingError("usage is counted every second at most, and its half-life is not below 0")

    def __call__(self, state: State) -> Floats:
        """Keys of the waiting jobs: whose turn it is comes first."""
        return -self.of(state)

    @staticmethod
    def of(state: State) -> Floats:
        """Where the waiting jobs stand: the larger, the sooner."""
        if not len(state.turn):
            raise SettingError("the state does not say whose turn it is (`turn`)")
        return state.turn[state.waiting]

    def owners(self, workload: Workload) -> tuple[Ints, dict[str, float]]:
        """Whose each job is, as a position in the second: what everybody has, by name, those that are not named too."""
        where = self.source or "turns"
        need_owners(workload, self.by, f"{where}: by = ")
        named: dict[str, float] = dict(self.shares or self.priority)
        of = {member: name for name, members in self.members for member in members}
        numbers, owner = np.unique(workload[self.by], return_inverse=True)
        names = [workload.called(self.by, number) or UNKNOWN for number in numbers.tolist()]
        names = [of.get(name, name) for name in names]
        for name in names:
            if name not in named and self.others is None:
                words = f"{where}: {unknown(self.by, printable(name), named)}".rstrip("?") + "."
                raise SettingError(f"{words} To add it, give it a number, or set `others` for all that are not named")
            named.setdefault(name, self.others or 0)
        place = {name: i for i, name in enumerate(named)}
        return np.array([place[name] for name in names], np.int64)[owner.reshape(-1)], named

    @property
    def known(self) -> dict[str, tuple[str, ...]]:
        """The names that it knows, by column."""
        of = dict(self.members)
        return {self.by: tuple(one for name, _ in self.shares or self.priority for one in of.get(name, (name,)))}

    def check(self, workload: Workload) -> None:
        """SettingError where it does not know whose jobs these are."""
        self.owners(workload)

    def fixed(self, workload: Workload) -> Floats | None:
        """Where the owner of each job stands, if that never changes."""
        if not self.priority:
            return None
        owner, named = self.owners(workload)
        return np.array([float(value) for value in named.values()])[owner]

    def tree(self, workload: Workload) -> tuple[Tree, Ints]:
        """The tree of accounts and users who have jobs, and which of its members each job is of."""
        owner, named = self.owners(workload)
        used, owner = np.unique(owner, return_inverse=True)  # an account without jobs stands nowhere
        pairs, user = np.unique(np.stack([owner.reshape(-1), workload.get("user")]), axis=1, return_inverse=True)
        accounts, users = len(used), pairs.shape[1]
        shares = np.array(list(named.values()), np.int64)[used].tolist()
        above = (*[-1] * accounts, *pairs[0].tolist())
        made = Tree(above, (*shares, *[1] * users), (*[False] * accounts, *[True] * users))
        return made, accounts + user.reshape(-1)

    def __str__(self) -> str:
        return self.source or f"by {self.by}"


@dataclass(frozen=True)
class TreeTurns:
    """Turns by shares of a tree that is given whole: accounts within accounts, and users with shares of their own.
    Everybody in it counts, with jobs or without."""

    whole: Tree
    place: Mapping[tuple[str, str], int] = field(hash=False)
    """Where in it who stands, by account and user."""
    half_life_s: int
    every_s: int
    to_the_end: bool
    """What a job has used since usage was last counted is, when it ends."""
    among_seen: ClassVar[bool] = False

    @property
    def known(self) -> dict[str, tuple[str, ...]]:
        """The names that it knows, by column."""
        return {name: tuple(sorted({pair[i] for pair in self.place})) for i, name in enumerate(("account", "user"))}

    def check(self, workload: Workload) -> None:
        """SettingError where jobs do not say whose they are."""
        for column in self.known:
            need_owners(workload, column, "shares of accounts and users: ")
        if self.place and len(workload) and (self.tree(workload)[1] < 0).all():
            raise SettingError(
                f"shares of accounts and users: none of the jobs of {workload.name} belongs to anybody who has some;"
                " a log without its names (--anonymize) does not go with them"
            )

    def fixed(self, workload: Workload) -> None:
        """It changes with what is used."""

    def tree(self, workload: Workload) -> tuple[Tree, Ints]:
        """The tree, and which of its members each job is of; -1: none."""
        return self.whole, workload.places(self.place, "account", "user")


def need_owners(workload: Workload, by: str, said: str) -> None:
    """SettingError where a workload does not say whose its jobs are."""
    if by not in workload.columns:
        known = ", ".join(name for name in OWNERS if name in workload.columns) or "none of these"
        raise SettingError(f"{said}{by!r}, which {workload.name} does not say of its jobs; it says {known}")
