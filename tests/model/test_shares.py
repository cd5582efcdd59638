"""Shares: where users of a tree of accounts stand, and how what they used fades."""

from __future__ import annotations

import random

import numpy as np
import pytest

from dovetail.errors import SettingError
from dovetail.model.shares import AS_ITS_ACCOUNT, HALF, Tree, Usage, standing

SEEN = """\
root      1     0  1.000000
a        30  5618
  a1      5  1355
    fs1   3   980  0.272727
    fs2   1   375  0.181818
  a2     15  4262
    fs3   1  4262  0.090909
b        20  2316
  fs4     1  1900  0.545455
  fs5     1   416  0.636364
c        20  2360
  fs6    -1     0  0.454545
  fs7     2  2360  0.363636
d        10     0
  fs1     1     0  1.000000
  fs2     0     0  0.818182
e        10     0
  fs3     1     0  0.818182
"""
"""What `sshare -a` of a Slurm 22.05 said: members, shares (-1: parent), raw usage, and where users stand (FairShare).
`d` and `e` have used nothing and tie; `fs3` of `e` stands where the last of `d` does, who has no shares."""


def seen() -> tuple[Tree, list[float], dict[int, str]]:
    above, shares, users, used, told = list[int](), list[int](), list[bool](), list[float](), dict[int, str]()
    path: list[tuple[int, int]] = []
    for member, line in enumerate(SEEN.splitlines()):
        depth, words = len(line) - len(line.lstrip()), line.split()
        while path and path[-1][0] >= depth:
            path.pop()
        above.append(path[-1][1] if path else -1)
        shares.append(int(words[1]))
        used.append(float(words[2]))
        users.append(len(words) > 3)
        told |= {member: words[3]} if users[-1] else {}
        path.append((depth, member))
    return Tree(tuple(above), tuple(shares), tuple(users)), used, told


def test_users_stand_where_slurm_said() -> None:
    tree, used, told = seen()
    assert {user: f"{at:.6f}" for user, at in enumerate(standing(tree, used, 10295)) if at} == told


def random_tree(rng: random.Random) -> tuple[Tree, list[float], float]:
    above, shares, user = list[int](), list[int](), list[bool]()
    for member in range(rng.randint(1, 14)):
        accounts = [-1, *(m for m in range(member) if not user[m])]
        above.append(rng.choice(accounts))
        user.append(rng.random() < 0.6)
        shares.append(rng.choice((0, 1, 1, 2, 5, AS_ITS_ACCOUNT if user[-1] else 3)))
    tree = Tree(tuple(above), tuple(shares), tuple(user))
    used = [0.0] * len(above)
    for member in range(len(above)):
        if user[member]:
            amount = float(rng.choice((0, 0, 1, 2, 4, 8)))
            one = member
            while one >= 0:
                used[one] += amount
                one = above[one]
    return tree, used, sum(used[m] for m in range(len(above)) if above[m] < 0)


def slowly(tree: Tree, used: list[float], total: float) -> dict[int, float]:
    """By a list of groups that tie: each user has the best place of its group."""

    def level(member: int) -> np.longdouble:
        siblings = [m for m in range(len(tree.above)) if tree.above[m] == tree.above[member]]
        shares = sum(max(tree.shares[m], 0) for m in siblings)
        if tree.shares[member] == AS_ITS_ACCOUNT:
            return np.longdouble(np.inf)
        if not tree.shares[member]:
            return np.longdouble(0)
        of_all = used[tree.above[member]] if tree.above[member] >= 0 else total
        if not used[member]:
            return np.longdouble(np.inf)
        return np.longdouble(tree.shares[member] / shares) / (np.longdouble(used[member]) / np.longdouble(of_all))

    groups: list[list[int]] = []

    def visit(account: int, tied: bool) -> None:
        members = [m for m in range(len(tree.above)) if tree.above[m] == account]
        members.sort(key=lambda m: (-level(m), not tree.user[m]))
        for i, member in enumerate(members):
            same = tied if i == 0 else level(member) == level(members[i - 1])
            if not tree.user[member]:
                visit(member, same)
            elif same and groups:
                groups[-1].append(member)
            else:
                groups.append([member])

    visit(-1, False)
    users, before, found = sum(tree.user), 0, dict[int, float]()
    for group in groups:
        found |= dict.fromkeys(group, (users - before) / users)
        before += len(group)
    return found


def test_standing_is_that_of_slow_code() -> None:
    rng, several = random.Random(1), 0
    for _ in range(2000):
        tree, used, total = random_tree(rng)
        found = standing(tree, used, total)
        assert {user: at for user, at in enumerate(found.tolist()) if at} == slowly(tree, used, total)
        several += len(set(found.tolist())) > 3
    assert several > 500


def test_standing_in_a_flat_tree_too() -> None:
    rng, flat = random.Random(2), 0
    for _ in range(2000):
        accounts, users = rng.randint(1, 5), rng.randint(1, 9)
        above = [-1] * accounts + [rng.randrange(accounts) for _ in range(users)]
        shares = [rng.choice((0, 1, 1, 3)) for _ in above]
        tree = Tree(tuple(above), tuple(shares), tuple(a >= 0 for a in above))
        used = [0.0] * accounts + [float(rng.choice((0, 0, 1, 2, 4))) for _ in range(users)]
        for member in range(accounts, len(above)):
            used[above[member]] += used[member]
        found = standing(tree, used, sum(used[:accounts]))
        assert {user: at for user, at in enumerate(found.tolist()) if at} == slowly(tree, used, sum(used[:accounts]))
        flat += tree.flat
    assert 500 < flat < 2000


def test_what_was_used_fades_and_counts_for_all_above() -> None:
    tree = Tree((-1, 0, 0, -1, 3), (1, 1, 1, 1, 1), (False, True, True, False, True))
    usage = Usage(tree, half_life_s=3600)
    usage.add(1, processors=4, seconds=60)
    keeps = 1 - HALF / 3600
    assert float(usage.amount[1]) == float(usage.amount[0]) == pytest.approx(240 * keeps**60, rel=1e-15)
    usage.pass_to(3600)
    assert float(usage.amount[0]) == pytest.approx(240 * keeps**3660, rel=1e-12)
    assert float(usage.amount[0]) == pytest.approx(240 * keeps**60 / 2, rel=1e-3)
    usage.add(4, processors=1, seconds=10)
    assert usage.total == usage.amount[0] + usage.amount[3]
    assert usage.standing().tolist() == [0, 1 / 3, 2 / 3, 0, 1]
    forever = Usage(tree, half_life_s=0)
    forever.add(1, 2, 50)
    forever.pass_to(10**9)
    assert forever.amount.tolist() == [100, 100, 0, 0, 0]
    assert np.isfinite(usage.total)


@pytest.mark.parametrize(
    ("above", "shares", "user", "said"),
    [
        ((0,), (1,), (False,), "in a circle"),
        ((-1, 0), (1, 1), (True, True), "above it is no account"),
        ((-1,), (-1,), (False,), "has -1 shares"),
        ((-1,), (1, 2), (False,), "says of each member"),
    ],
)
def test_a_tree_that_cannot_be(
    above: tuple[int, ...], shares: tuple[int, ...], user: tuple[bool, ...], said: str
) -> None:
    with pytest.raises(SettingError, match=said):
        Tree(above, shares, user)
