"""Every number of `summarize` has words, a unit and a direction."""

from __future__ import annotations

import pytest

import dovetail as dt
from dovetail.metrics.catalog import METRICS, metric_of


@pytest.fixture(scope="module")
def found() -> dict[str, float]:
    """All metrics of a schedule with deadlines, at a site."""
    log = dt.prepare(dt.generate(40, 16, seed=3), scenarios="deadlines=0.5")
    return dt.summarize(dt.replay(log, "easy"), dt.Site("here", busy_mw=5_000, idle_mw=1_000))


def test_every_metric_of_a_page_is_a_metric(found: dict[str, float]) -> None:
    assert {metric.key for metric in METRICS} <= set(found)


def test_shares_are_shares(found: dict[str, float]) -> None:
    """A share is from 0 to 1, seconds are called so, and no word repeats a unit."""
    for key, value in found.items():
        metric = metric_of(key)
        assert metric.key == key
        assert (metric.kind == "seconds") == key.endswith("_s") == (metric.unit == "s")
        if metric.kind == "share" and key != "deadline_usage":  # of a late job it is more
            assert 0 <= value <= 1, key
        assert not metric.words.endswith((" s", " kwh", " kw")), key


@pytest.mark.parametrize(
    ("key", "unit", "kind", "more"),
    [
        ("wait_p50_s", "s", "seconds", False),
        ("short_mean_wait_s", "s", "seconds", False),
        ("energy_idle_kwh", "kWh", "ratio", False),
        ("peak_kw", "kW", "ratio", False),
        ("co2_kg", "kg", "ratio", False),
        ("utilization", "", "share", True),
        ("utilization_gpus", "", "share", True),
        ("utilization_variance", "", "ratio", False),
        ("stranded_gpus", "", "share", False),
        ("regular_at_once", "", "share", True),
        ("deadline_usage_above_80", "", "share", False),
        ("max_queue_jobs", "", "ratio", False),
        ("profit", "", "ratio", True),
    ],
)
def test_a_name_says_its_unit(key: str, unit: str, kind: str, more: bool) -> None:
    metric = metric_of(key)
    assert (metric.unit, metric.kind, metric.more_is_better) == (unit, kind, more)
