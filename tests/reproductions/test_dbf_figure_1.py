"""Fig. 1 of DBF: arrivals by the clock on the wall, by hand and against the datetime library."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from dovetail.errors import DovetailError
from dovetail.io.read import read_workload
from reproductions.dbf_figure_1.arrivals import arrivals, local, longest, periods, spans, winter
from reproductions.dbf_figure_1.page import ANOMALIES, FILES, PAPERS, anomalies, in_experiments
from reproductions.folders import find
from reproductions.values import read_printed
from tests.conftest import TRACES, needs_traces


@pytest.mark.parametrize("name", ["US/Pacific", "Europe/Stockholm", "America/Chicago"])
def test_local_time_is_that_of_the_datetime_library(name: str) -> None:
    zone, draw = ZoneInfo(name), random.Random(5)
    changes = [datetime(2001, 4, 1, 10, tzinfo=UTC), datetime(2001, 10, 28, 1, tzinfo=UTC)]
    near = [int(change.timestamp()) + draw.randint(-7200, 7200) for change in changes for _ in range(200)]
    at = np.array(sorted([*near, *(draw.randint(956_000_000, 1_140_000_000) for _ in range(500))]))
    for seconds, shown in zip(at.tolist(), local(at, zone).tolist(), strict=True):
        wall = datetime.fromtimestamp(seconds, zone)
        assert shown == int(wall.replace(tzinfo=UTC).timestamp())
    assert winter(zone).utcoffset(None) == datetime(2001, 1, 15, tzinfo=zone).utcoffset()


def test_arrivals_by_hand() -> None:
    # Two weeks from Monday 2001-01-01 0:00 UTC: a job each hour, and four more on each Tuesday from 9 to 10.
    begin = int(datetime(2001, 1, 1, tzinfo=UTC).timestamp())
    every = [begin + 3600 * hour for hour in range(14 * 24)]
    more = [begin + 86400 * day + 9 * 3600 + minute * 60 for day in (1, 8) for minute in range(1, 5)]
    found = arrivals(np.array(sorted(every + more)), UTC)
    assert found.mean == (14 * 24 + 8) / (14 * 24)
    assert found.hourly.tolist() == [1 + 8 / 14 if hour == 9 else 1 for hour in range(24)]
    assert found.daily.tolist() == [24, 28, 24, 24, 24, 24, 24]
    assert found.peak == [9]
    assert found.rate(range(8, 12)) == 1 + 2 / 14
    assert found.quiet_nights == 1
    east = arrivals(np.array(sorted(every + more)), winter(ZoneInfo("Europe/Stockholm")))
    assert east.peak == [10]


def test_a_night_with_many_arrivals_is_not_quiet() -> None:
    begin = int(datetime(2001, 1, 1, tzinfo=UTC).timestamp())
    noon = [begin + 86400 * day + 43200 for day in range(12)]
    night = [begin + 86400 * 3 + 7200 + second for second in range(5)]
    assert arrivals(np.array(sorted(noon + night)), UTC).quiet_nights == 9 / 10


def test_a_log_of_days_is_refused() -> None:
    with pytest.raises(DovetailError, match="less than a week"):
        arrivals(np.array([0, 86400]), UTC)


def test_hours_in_words() -> None:
    assert spans([8, 9, 10]) == "8 to 11"
    assert spans([0, 1, 5, 22, 23]) == "5 to 6 and 22 to 2"
    assert spans([18, 23]) == "18 to 19 and 23 to 24"
    assert spans(list(range(24))) == "0 to 24"
    assert periods([]) == []
    assert longest([0, 5, 6, 23]) == (5, 2)
    assert longest([0, 1, 5, 6, 23]) == (23, 3)


@needs_traces
@pytest.mark.parametrize("name", PAPERS)
def test_the_logs_have_the_numbers_that_the_paper_prints(name: str) -> None:
    log = read_workload(TRACES / FILES[name])
    printed = read_printed(find("dbf-figure-1").path)
    assert {words: printed["jobs", name, words] for words in ANOMALIES.values()} == {
        ANOMALIES[key]: count for key, count in anomalies(log).items()
    }
    assert int(in_experiments(name, log).sum()) == printed["jobs", name, "jobs of the experiments"]
