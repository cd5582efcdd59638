"""Policies by name: what the names mean, which settings there are, and errors that say what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dovetail.errors import PolicyError, SettingError
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.policies.base import Policy
from dovetail.policies.conservative import Conservative
from dovetail.policies.lists import ORDERS, ListPolicy
from dovetail.policies.registry import aliases, names, policy
from tests.conftest import ROOT


def same(text: str, wanted: ListPolicy | Conservative) -> bool:
    """Equal but for the name, which is the text."""
    made = policy(text)
    assert made.name == text.lower()
    fields = {**vars(made), "name": ""}
    return type(made) is type(wanted) and fields == {**vars(wanted), "name": ""}


@pytest.mark.parametrize("order", ORDERS)
def test_names_with_an_order(order: str) -> None:
    assert same(f"strict-{order}", ListPolicy(order, "strict"))
    assert same(f"greedy-{order}", ListPolicy(order, 0))
    assert same(f"list-{order}", ListPolicy(order, "all"))
    assert same(f"{order}-easy", ListPolicy(order, 1))
    assert same(f"easy-{order}bf", ListPolicy("fcfs", 1, order))
    assert same(f"{order}-justbf", ListPolicy(order, "all"))
    assert same(f"{order}-aggressive", ListPolicy(order, 0))
    assert same(f"{order}-passive", ListPolicy(order, "strict"))


def test_names_without_an_order() -> None:
    assert same("easy", ListPolicy("fcfs", 1))
    assert same("EASY", ListPolicy("fcfs", 1))
    assert same("easy-sjbf", ListPolicy("fcfs", 1, "sjf"))
    assert same("list", ListPolicy("fcfs", "all"))
    assert same("list-reg", ListPolicy("fcfs", "all"))
    assert same("justbf", ListPolicy("fcfs", "all"))
    assert same("aggressive", ListPolicy("fcfs", 0))
    assert same("passive", ListPolicy("fcfs", "strict"))
    assert same("conservative", Conservative("once"))


def test_every_listed_name_is_one() -> None:
    listed = [name for name in names() if "..." not in name and "/" not in name]
    assert len(listed) == len(set(listed)) > 4 * len(ORDERS)
    for name in listed:
        assert policy(name).name == name
    assert set(aliases()) <= set(listed)


def test_the_documentation_lists_every_name() -> None:
    """In the table of families in docs/policies.md: no name is missing, and none is there that does not exist."""
    page = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    table = page.partition("## All of them, by family")[2].partition("\n## ")[0]
    rows = [line.split("|")[2] for line in table.splitlines() if line.startswith("| [")]
    written = {name for row in rows for name in re.findall("`([^`:/]+)`", row)}
    told = {name.replace("ORDER", order) for name in written for order in ORDERS}
    assert told == {name for name in names() if ":" not in name}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("list:order=wfp3,reserve=4", ListPolicy("wfp3", 4)),
        ("list:reserve=none", ListPolicy("fcfs", 0)),
        ("list:reserve=first", ListPolicy("fcfs", 1)),
        ("list:reserve=all", ListPolicy("fcfs", "all")),
        ("list:reserve=strict", ListPolicy("fcfs", "strict")),
        ("easy:backfill=saf,starve=2h", ListPolicy("fcfs", 1, "saf", 7200)),
        ("saf-easy:relax=0.5", ListPolicy("saf", 1, relax=0.5)),
        ("easy:slack=1", ListPolicy("fcfs", 1, slack=1.0)),
        ("list: order = sjf , reserve = 2", ListPolicy("sjf", 2)),
        ("conservative:sweep=by-start", Conservative("by-start")),
        ("list:", ListPolicy()),
    ],
)
def test_settings(text: str, wanted: ListPolicy | Conservative) -> None:
    made = policy(text)
    assert {**vars(made), "name": ""} == {**vars(wanted), "name": ""}
    assert made.name == (text if "=" in text else "list")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", ("no policy 'nonsense'", "`dovetail policies` lists all")),
        ("list-nonsense", ("no policy 'list-nonsense'",)),
        ("sjf", ("no policy 'sjf'; did you mean sjf-easy?",)),
        ("consrvative", ("did you mean conservative?",)),
        ("", ("no policy ''", "`dovetail policies` lists all")),
        ("easy:colour=red", ("no setting 'colour'", "order, reserve, backfill, starve, relax, slack")),
        ("conservative:reserve=1", ("no setting 'reserve'", "sweep")),
        ("conservative:sweep=x", ("sweep=x", "once, each-end, repeat, by-start, start-now, none")),
        ("list:order=x", ("order=x", *ORDERS, "path/to/file.py:function")),
        ("list:order=given", ("order=given",)),
        ("easy:backfill=x", ("backfill=x", *ORDERS)),
        ("list:reserve=some", ("reserve=some", "strict, none, first, all, or a number")),
        ("list:reserve=-1", ("reserve=-1", "strict, none, first, all, or a number")),
        ("easy:starve=soon", ("starve=soon", "36h")),
        ("easy:relax=much", ("relax=much",)),
        ("easy:relax=-1", ("relax=-1", "from 0 to")),
        ("easy:slack=nan", ("slack=nan", "from 0 to")),
        ("easy:relax=inf", ("relax=inf", "from 0 to")),
        ("list:reserve=0,relax=1", ("reserve=1 or more",)),
        ("strict-fcfs:slack=1", ("reserve=1 or more",)),
        ("easy:starve", ("'starve' is not a setting", "name=value")),
        ("easy:starve=", ("'starve=' is not a setting", "name=value")),
    ],
)
def test_errors_list_the_choices(text: str, words: tuple[str, ...]) -> None:
    with pytest.raises(SettingError) as caught:
        policy(text)
    for word in words:
        assert word in str(caught.value)


# From files -------------------------------------------------------------------------------------------------

GOOD = """
from dovetail import Plan, Policy, State


class Mine(Policy):
    def decide(self, state: State) -> Plan:
        return Plan()


class Named(Mine):
    name = "my own"


class Free:  # need not be derived from anything
    def decide(self, state):
        return Plan()


instance = Named()


class Slotted:
    __slots__ = ()

    def decide(self, state):
        return Plan()


class Picky(Mine):
    def __init__(self, size):
        self.size = size


class Undecided:
    pass


number = 7
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(GOOD)
    return path


def test_policies_from_a_file(file: Path) -> None:
    assert policy(f"{file}:Mine").name == "Mine"
    assert policy(f"{file}:Named").name == "my own"
    assert policy(f"{file}:Free").name == "Free"
    assert policy(f"{file}:instance").name == "my own"
    assert type(policy(f"{file}:instance")).__name__ == "Named"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Missing", "defines no 'Missing'"),
        ("Undecided", "Undecided has no method decide(state)"),
        ("number", "number has no method decide(state)"),
        ("Slotted", "Slotted needs a `name`"),
        ("Picky", "Picky() failed: TypeError"),
    ],
)
def test_what_is_wrong_in_a_file(file: Path, name: str, words: str) -> None:
    with pytest.raises(PolicyError) as caught:
        policy(f"{file}:{name}")
    assert words in str(caught.value)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("class Mine(:\n", "could not be loaded: SyntaxError"),
        ("import no_such_module_anywhere\n", "could not be loaded: ModuleNotFoundError"),
        ("1 / 0\n", "could not be loaded: ZeroDivisionError"),
    ],
)
def test_a_file_that_does_not_load(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(text)
    for name in (f"{path}:Mine", f"list:order={path}:key"):
        with pytest.raises(PolicyError, match=words):
            policy(name)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for text in (f"{tmp_path}/none.py:Mine", f"list:order={tmp_path}/none.py:key"):
        with pytest.raises(PolicyError, match=r"none\.py: no such file"):
            policy(text)


def test_settings_for_a_policy_from_a_file_are_refused(file: Path) -> None:
    with pytest.raises(SettingError, match="takes no settings"):
        policy(f"{file}:Mine,size=3")


def test_an_order_that_the_file_does_not_define(file: Path) -> None:
    with pytest.raises(PolicyError, match="defines no 'key'"):
        policy(f"list:order={file}:key,reserve=1")


def test_an_order_that_is_not_a_function(tmp_path: Path) -> None:
    path = tmp_path / "orders.py"
    path.write_text("five = 5\n")
    with pytest.raises(PolicyError, match="five is not a function"):
        policy(f"list:order={path}:five")


@pytest.mark.parametrize("setting", ["starve=99999999999999999999", f"starve={'9' * 400}", f"reserve={1 << 60}"])
def test_numbers_that_no_kernel_can_hold(setting: str) -> None:
    with pytest.raises(SettingError, match=setting.partition("=")[0]):
        policy(f"list:{setting}")


def test_what_an_object_declares_counts_and_it_is_not_copied() -> None:
    class Plain:
        clairvoyant, place = True, "gradient"

        def decide(self, state: State) -> Plan:
            return Plan()

    class Setting(Policy):
        def __init__(self) -> None:
            self.clairvoyant = True  # type: ignore[misc]  # as a user would
            self.calls = 0

        def decide(self, state: State) -> Plan:
            self.calls += 1
            return Plan(starts=[job for job in state.waiting.tolist() if state.size[job] <= state.free][:1])

    assert (policy(Plain()).clairvoyant, policy(Plain()).place, policy(Plain()).timed) == (True, "gradient", False)
    mine = Setting()
    assert policy(mine) is mine
    assert (mine.name, mine.clairvoyant) == ("Setting", True)


def test_a_backfill_order_is_a_built_in_one() -> None:
    with pytest.raises(SettingError, match="backfill="):
        ListPolicy(reserve=1, backfill=lambda state: state.waiting)  # type: ignore[arg-type]
