"""One pass on large machines: what is started and placed is what the page says."""

from __future__ import annotations

from statistics import median

import pytest

from reproductions.folders import find
from reproductions.nodes_scale.page import CASES, SEEDS, one_pass
from reproductions.values import read_carried


@pytest.mark.parametrize(("name", "percent"), CASES)
def test_what_a_pass_decides_is_on_the_page(name: str, percent: int) -> None:
    """On the smallest machine."""
    passes = [one_pass(1000, name, percent / 100, seed) for seed in SEEDS]
    kept = read_carried(find("nodes-scale").path)
    for key in ("jobs_started", "units_placed"):
        printed = kept[f"{name}, {percent} %", "1000", key.replace("_", " ")].content
        assert median(one[key] for one in passes) == printed
