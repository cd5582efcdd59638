"""What could be saved at most, on jobs for which it is plain; and bills by week."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.arrays import Floats, Ints
from dovetail.energy.series import HOUR_S, Hours
from dovetail.energy.site import MILLION, Site
from dovetail.metrics.energy import UJ_PER_MWH, powers
from reproductions.energy_fronts.bounds import split_jobs, whole_jobs
from reproductions.energy_fronts.page import between, by_week, measured
from tests.metrics.schedules import schedule_of

PRICES = np.array([4.0, 2.0, 1.0, 3.0, 3.0, 3.0])
"""Of a processor for an hour."""
EDGES = HOUR_S * np.arange(len(PRICES) + 1)


def paid(at: Ints) -> Floats:
    found: Floats = np.interp(at, EDGES, np.concatenate([[0.0], np.cumsum(PRICES)]))
    return found


TWO = schedule_of([(0, 0, 1, HOUR_S), (0, HOUR_S, 1, HOUR_S)], processors=1)
"""Two jobs of an hour, one after the other: 4 + 2."""
SIZE = TWO.workload.size.astype(np.float64)
LAST = np.array([2, 2]) * HOUR_S


def test_no_schedule_costs_less_than_split_jobs() -> None:
    assert split_jobs(paid, SIZE, TWO, LAST, 0, 1) == pytest.approx(2 + 1)
    assert split_jobs(paid, SIZE, TWO, LAST, 0, np.inf) == pytest.approx(1 + 1)
    assert split_jobs(paid, SIZE, TWO, TWO.start, 0, 1) == pytest.approx(4 + 2)
    half = split_jobs(paid, np.array([2.0, 2.0]), TWO, LAST, 0, 3)  # three of four in the cheapest hour, one before
    assert half == pytest.approx(3 * 1 + 1 * 2)


def test_whole_jobs_wait_where_it_saves_most() -> None:
    assert whole_jobs(paid, SIZE, TWO, LAST, None) == pytest.approx(1 + 1)
    # They wait half an hour on average; twice that is an hour for one of the two: the first saves 2 by it, or
    # as much per hour by two hours, the second 1.
    assert whole_jobs(paid, SIZE, TWO, LAST, 1.0) == pytest.approx(2 + 2)
    assert whole_jobs(paid, SIZE, TWO, LAST, 0.0) == pytest.approx(4 + 2)


def test_bills_of_weeks_are_the_bill() -> None:
    rng = np.random.default_rng(0)
    rows = [(int(a), int(a + w), 2, int(r)) for a, w, r in rng.integers(1, 300_000, (40, 3))]
    rows = [(a * 7, s * 7, size, r) for a, s, size, r in rows]
    schedule = schedule_of(rows, processors=200)
    site = Site("test", 9_500, price=Hours(rng.integers(-5, 90, 100) * MILLION), carbon=Hours(rng.integers(1, 9, 7)))
    row = measured(schedule, site)
    assert len(row["bill_weeks"]) > 2
    assert sum(row["bill_weeks"]) == pytest.approx(row["bill"])
    assert sum(row["carbon_weeks"]) == pytest.approx(row["carbon"])
    drawn = powers(schedule, site)
    until = int(drawn.times[0]) + 604_800
    first = powers(schedule, site, until)
    cost = float((first.all_uw.astype(float) * first.price * np.diff(first.times)).sum()) / UJ_PER_MWH / MILLION
    assert row["bill_weeks"][0] == pytest.approx(cost)
    assert by_week(drawn, drawn.price, drawn.times[:1])[0] / UJ_PER_MWH / MILLION == pytest.approx(row["bill"])


def test_a_price_of_wait_is_sought_where_the_limit_is_passed() -> None:
    tried = {8.0: 0.01, 2.0: 0.10, 0.5: 0.02}
    assert between(tried, 0.05) == pytest.approx(4.0)
    assert between(tried, 0.50) == pytest.approx(0.125)
    assert between(tried, 0.00) == pytest.approx(32.0)
