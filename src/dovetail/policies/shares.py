"""Whose turn it is: a tree of accounts with shares, what they have used, and where each user stands.

Accounts are the branches of a tree, users its leaves; each has shares among its siblings. What a user uses counts for
all accounts above as well, and fades by a half-life. Siblings stand in the order of their share over their part of what
was used: who has used least of what is due to it comes first, with all users below it. This is the fair tree of Cox and
Morrison, as the batch systems that have it compute it: to the bit, their constants and their ties included.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dovetail.errors import SettingError

HALF: Final = 0.693
"""What the half-life is divided by is this, and not the logarithm of 2."""
AS_ITS_ACCOUNT: Final = -1
"""Shares of a user who has none of its own: it comes first in its account."""
MOST_LEVELS: Final = 100

Amounts = npt.NDArray[np.longdouble]
"""What was used, of each member of a tree, in processor-seconds that fade."""


@dataclass(frozen=True)
class Tree:
    """Members in any order: the account above each (its position; -1: none), its shares, and whether it is a user."""

    above: tuple[int, ...]
    shares: tuple[int, ...]
    user: tuple[bool, ...]

    def __post_init__(self) -> None:
        n = len(self.above)
        if not len(self.shares) == len(self.user) == n:
            raise SettingError("a tree of shares says of each member what is above it, its shares, and what it is")
        for member, (above, shares, user) in enumerate(zip(self.above, self.shares, self.user, strict=True)):
            if not -1 <= above < n or (above >= 0 and self.user[above]):
                raise SettingError(f"member {member}: above it is no account")
            if shares < (AS_ITS_ACCOUNT if user else 0):
                raise SettingError(f"member {member} has {shares} shares: they are 0 or more")
            if len(self._path(member)) > MOST_LEVELS:
                raise SettingError(f"member {member}: accounts stand in a circle, or more than {MOST_LEVELS} deep")

    def _path(self, member: int) -> list[int]:
        """A member and the accounts above it."""
        found = list[int]()
        while member >= 0 and len(found) <= MOST_LEVELS:
            found.append(member)
            member = self.above[member]
        return found

    @cached_property
    def paths(self) -> tuple[tuple[int, ...], ...]:
        """Each member with the accounts above it."""
        return tuple(tuple(self._path(member)) for member in range(len(self.above)))

    @cached_property
    def below(self) -> dict[int, list[int]]:
        """The members of each account; -1: those above which there is none."""
        found: dict[int, list[int]] = {member: [] for member in range(-1, len(self.above))}
        for member, above in enumerate(self.above):
            found[above].append(member)
        return found

    @cached_property
    def due(self) -> tuple[float, ...]:
        """The part of its siblings' shares that each member has."""
        total = {above: sum(max(self.shares[member], 0) for member in members) for above, members in self.below.items()}
        return tuple(
            max(shares, 0) / total[above] if total[above] else 0.0
            for above, shares in zip(self.above, self.shares, strict=True)
        )


class Usage:
    """What the members of a tree have used by an instant. `half_life_s`: 0: nothing fades."""

    def __init__(self, tree: Tree, half_life_s: float, now: float = 0) -> None:
        if half_life_s < 0:
            raise SettingError(f"a half-life of {half_life_s} s: it is 0 (nothing fades) or more")
        self.tree, self.now = tree, now
        self.amount: Amounts = np.zeros(len(tree.above), np.longdouble)
        self.total = np.longdouble(0)
        self._keeps = 1 - HALF / half_life_s if half_life_s else 1.0

    def pass_to(self, now: float) -> None:
        """Time passes: what was used fades."""
        left = max(self._keeps ** float(now - self.now), np.finfo(np.float64).tiny)
        self.amount *= left
        self.total *= np.longdouble(left)
        self.now = now

    def add(self, user: int, processors: float, seconds: float) -> None:
        """A user has had so many processors for so long, until now. It has faded as if all of it had begun then."""
        used = np.longdouble(seconds * self._keeps**seconds * processors)
        for member in self.tree.paths[user]:
            self.amount[member] += used
        self.total += used

    def standing(self) -> dict[int, float]:
        """Where each user stands, from 1 (first) down to above 0; users who tie stand at the same place."""
        return standing(self.tree, self.amount, self.total)


def standing(tree: Tree, amount: Amounts | Sequence[float], total: Any) -> dict[int, float]:
    """Where each user of a tree stands, of what members have used and what was used in all."""
    used = np.asarray(amount, np.longdouble)
    level = [_level(tree, used, np.longdouble(total), member) for member in range(len(tree.above))]
    rank = users = sum(tree.user)
    found: dict[int, float] = {}
    for before, (user, tied) in enumerate(_users(tree, level, -1, tied=False)):
        rank = rank if tied and before else users - before
        found[user] = rank / users
    return found


def _users(tree: Tree, level: Sequence[np.longdouble], above: int, *, tied: bool) -> Iterator[tuple[int, bool]]:
    """The users below an account, the first in turn first, and whether each ties with the one before it. `tied`: the
    account does with what stands before it."""
    members = _in_turn(tree, level, above)
    for before, member in zip([-1, *members], members, strict=False):
        same = tied if before < 0 else bool(level[member] == level[before])
        if tree.user[member]:
            yield member, same
        else:
            yield from _users(tree, level, member, tied=same)


def _level(tree: Tree, used: Amounts, total: np.longdouble, member: int) -> np.longdouble:
    """How much of what is due to a member it has not used: its share over its part of what its siblings used."""
    if tree.shares[member] == AS_ITS_ACCOUNT:
        return np.longdouble(inf)
    if tree.due[member] == 0:
        return np.longdouble(0)
    above = used[tree.above[member]] if tree.above[member] >= 0 else total
    part = used[member] / above if above else np.longdouble(0)
    return np.longdouble(tree.due[member]) / part if part else np.longdouble(inf)


def _in_turn(tree: Tree, level: Sequence[np.longdouble], above: int) -> list[int]:
    """The members of an account, the most underserved first; of those that tie, users before accounts."""
    return sorted(tree.below[above], key=lambda member: (-level[member], not tree.user[member]))
