"""A few mutated files of each reader; `python -m tests.fuzz` makes as many as are wanted."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz.__main__ import READERS, maker
from tests.fuzz.common import Tally


@pytest.mark.parametrize("reader", READERS)
def test_mutated_records(reader: str, tmp_path: Path) -> None:
    tally = Tally()
    for number in range(4):
        tally.add(maker(reader)(random.Random(f"{reader}/7/{number}"), tmp_path))
    tally.check()
    assert min(tally.mutated, tally.kept) > 0
