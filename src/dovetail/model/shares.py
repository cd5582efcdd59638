"""Whose turn it is: a tree of accounts with shares, what they have used, and where each user stands.

Accounts are the branches of a tree, users its leaves; each has shares among its siblings. What a user uses counts for
all accounts above as well, and fades by a half-life. Siblings stand in the order of their share over their part of what
was used: who has used least of what is due to it comes first, with all users below it. This is the fair tree of Cox and
Morrison, as the batch systems that have it compute it: to the bit, their constants and their ties included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dovetail.arrays import Floats, Ints, Mask
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
            if self._depth(member) > MOST_LEVELS:
                raise SettingError(f"member {member}: accounts stand in a circle, or more than {MOST_LEVELS} deep")

    def _depth(self, member: int) -> int:
        """How many accounts stand above a member, itself counted; not beyond what is allowed."""
        depth = 0
        while member >= 0 and depth <= MOST_LEVELS:
            depth, member = depth + 1, self.above[member]
        return depth

    @cached_property
    def below(self) -> dict[int, Ints]:
        """The members of each account; -1: those above which there is none."""
        above = self.over
        return {member: np.flatnonzero(above == member) for member in (-1, *np.flatnonzero(~self.is_user).tolist())}

    # The same once more, to count with.

    @cached_property
    def is_user(self) -> Mask:
        return np.asarray(self.user, bool)

    @cached_property
    def over(self) -> Ints:
        return np.asarray(self.above, np.int64)

    @cached_property
    def parts(self) -> Amounts:
        return np.asarray(self.due, np.longdouble)

    @cached_property
    def as_account(self) -> Mask:
        found: Mask = np.asarray(self.shares) == AS_ITS_ACCOUNT
        return found

    @cached_property
    def flat(self) -> bool:
        """Whether accounts stand beside each other, each with users and nothing else below it."""
        with_users = np.unique(self.over[self.is_user]).tolist()
        return with_users == np.flatnonzero(~self.is_user).tolist() and bool((self.over[~self.is_user] < 0).all())

    @cached_property
    def due(self) -> tuple[float, ...]:
        """The part of its siblings' shares that each member has."""
        total = {a: sum(max(self.shares[member], 0) for member in members) for a, members in self.below.items()}
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

    def add(self, users: npt.ArrayLike, processors: npt.ArrayLike, seconds: npt.ArrayLike) -> None:
        """Users have had so many processors for so long, until now. It has faded as if all of it had begun then."""
        lasted, members = np.atleast_1d(np.asarray(seconds, np.float64)), np.atleast_1d(users)
        used: Amounts = (lasted * self._keeps**lasted * np.asarray(processors, np.float64)).astype(np.longdouble)
        for one in used:  # one by one: a sum in another order has other last digits
            self.total += one
        above = self.tree.over
        while len(members):
            np.add.at(self.amount, members, used)
            members = above[members]
            members, used = members[members >= 0], used[members >= 0]

    def standing(self) -> Floats:
        """Where each user stands, from 1 (first) down to above 0; users who tie stand at the same place. 0: no user."""
        return standing(self.tree, self.amount, self.total)


def standing(tree: Tree, amount: npt.ArrayLike, total: Any) -> Floats:
    """Where each user of a tree stands, of what members have used and what was used in all; 0 for accounts."""
    level = _levels(tree, np.asarray(amount, np.longdouble), np.longdouble(total))
    found, users = np.zeros(len(tree.above)), int(tree.is_user.sum())
    if users:
        parts = [_in_accounts(tree, level)] if tree.flat else _users(tree, level, -1, tied=False)
        members, tied = (np.concatenate(some) for some in zip(*parts, strict=True))
        first = np.maximum.accumulate(np.where(tied, 0, np.arange(users)))  # of those that tie
        found[members] = (users - first) / users
    return found


def _users(tree: Tree, level: Amounts, above: int, *, tied: bool) -> Iterator[tuple[Ints, Mask]]:
    """The users below an account, the first in turn first, and whether each ties with the one before it. `tied`: the
    account does with what stands before it. The most underserved come first; of those that tie, users before
    accounts."""
    members = tree.below[above]
    members = members[np.lexsort((~tree.is_user[members], -level[members]))]
    same = np.concatenate([[tied], level[members[1:]] == level[members[:-1]]])[: len(members)]
    accounts = np.flatnonzero(~tree.is_user[members])
    begin = 0
    for i in accounts.tolist():
        yield members[begin:i], same[begin:i]
        yield from _users(tree, level, int(members[i]), tied=bool(same[i]))
        begin = i + 1
    yield members[begin:], same[begin:]


def _in_accounts(tree: Tree, level: Amounts) -> tuple[Ints, Mask]:
    """The same for a flat tree, all accounts at once."""
    accounts, users = np.flatnonzero(~tree.is_user), np.flatnonzero(tree.is_user)
    accounts = accounts[np.argsort(-level[accounts], kind="stable")]
    place, same = np.zeros(len(level), np.int64), np.zeros(len(level), bool)
    place[accounts] = np.arange(len(accounts))
    same[accounts[1:]] = level[accounts[1:]] == level[accounts[:-1]]
    users = users[np.lexsort((-level[users], place[tree.over[users]]))]
    account, own = tree.over[users], level[users]
    tied = same[account]
    tied[1:] = np.where(account[1:] == account[:-1], own[1:] == own[:-1], tied[1:])
    return users, tied


def _levels(tree: Tree, used: Amounts, total: np.longdouble) -> Amounts:
    """How much of what is due to each member it has not used: its share over its part of what its siblings used."""
    above, due = np.append(used, total)[tree.over], tree.parts
    part = np.divide(used, above, out=np.zeros_like(used), where=above != 0)
    level = np.divide(due, part, out=np.full_like(due, inf), where=part != 0)
    level[due == 0] = 0
    level[tree.as_account] = inf
    return level
