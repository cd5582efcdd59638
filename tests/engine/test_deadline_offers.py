"""What deadline can be promised to a job, and what its patience saves the others."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.engine.deadline_offers import Offers, offers
from dovetail.errors import SettingError
from dovetail.model.cluster import Cluster
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.base import RulePolicy
from dovetail.policies.deadline import DeadlineBackfilling
from dovetail.policies.registry import policy
from dovetail.units import WEEK_S

HOUR = 3600
NOW = 3 * WEEK_S


def weekly() -> Workload:
    """Each week the same, on 4 processors: an hour before its end a job of all for 3 hours, one of all after it."""
    submit = [week * WEEK_S + at for week in range(3) for at in (WEEK_S - HOUR, WEEK_S)]
    columns = {
        "id": np.arange(6),
        "submit": np.array(submit),
        "size": np.full(6, 4),
        "runtime": np.full(6, 3 * HOUR),
        "limit": np.full(6, 3 * HOUR),
    }
    return Workload("weekly", columns, 4, Provenance("made here"))


def asked(deadlines_s: list[int], size: int = 4, chosen: str = "dbf", now: int = NOW) -> Offers:
    made = policy(chosen)
    assert isinstance(made, RulePolicy)
    return offers(weekly(), Cluster(4), made, now=now, size=size, limit_s=HOUR, deadlines_s=deadlines_s, weeks=2)


def test_by_hand() -> None:
    """One job runs for two more hours, one has come just now and waits: the new one starts after both, in 5 hours."""
    found = asked([5 * HOUR, 6 * HOUR, WEEK_S])
    assert (found.running, found.waiting) == (1, 1)
    assert found.promised_s == 5 * HOUR
    assert found.earliest_s == 6 * HOUR
    assert [offer.accepted for offer in found.offers] == [False, True, True]
    assert found.wait_s == (5 * HOUR, 5 * HOUR)
    assert all(offer.saved_s == (0, 0) for offer in found.offers)  # nobody comes before it has run
    assert found.offers[0].wait_s == found.wait_s


def test_a_job_that_can_wait_saves_what_comes_after_it() -> None:
    """A week with another job an hour after now: it need not wait for the one with a deadline."""
    base = weekly()
    columns = {name: np.array(values) for name, values in base.columns.items()}
    extra = {"id": 9, "submit": 2 * WEEK_S + HOUR, "size": 4, "runtime": 2 * HOUR, "limit": 2 * HOUR}
    columns = {name: np.append(values, extra[name]) for name, values in columns.items()}
    order = np.argsort(columns["submit"], kind="stable")
    workload = Workload("weekly", {k: v[order] for k, v in columns.items()}, 4, Provenance("made here"))
    found = offers(
        workload, Cluster(4), DeadlineBackfilling(), now=NOW, size=4, limit_s=HOUR, deadlines_s=[WEEK_S], weeks=2
    )
    # In the future like the last week a job comes that can now go first: it waits an hour less, on 4 processors.
    assert found.offers[0].saved_s == (HOUR, 0)
    assert found.offers[0].saved_processor_s == (4 * HOUR, 0)
    assert found.offers[0].wait_s == (7 * HOUR, 5 * HOUR)


def test_on_an_idle_machine_the_job_itself_is_not_among_those_that_run() -> None:
    found = offers(
        weekly(), Cluster(4), DeadlineBackfilling(), now=NOW - 2 * HOUR, size=4, limit_s=HOUR, deadlines_s=[], weeks=1
    )
    assert (found.running, found.waiting, found.promised_s, found.earliest_s) == (0, 0, 0, HOUR)
    assert found.wait_s == (0,)


def test_each_future_is_one_week_and_no_more() -> None:
    """Two jobs a week, each of all processors for half a week, each submitted an hour before the last one ends. A job
    that can wait lets those of the week to come go first, and then no more come."""
    half = WEEK_S // 2
    columns = {
        "id": np.arange(7), "submit": half * np.arange(1, 8) - HOUR, "size": np.full(7, 4),
        "runtime": half + HOUR * (np.arange(7) == 0), "limit": half + HOUR * (np.arange(7) == 0),
    }  # fmt: skip
    found = offers(
        Workload("full", columns, 4, Provenance("made here")), Cluster(4), DeadlineBackfilling(), now=NOW, size=4,
        limit_s=HOUR, deadlines_s=[8 * WEEK_S], weeks=2,
    )  # fmt: skip
    assert found.wait_s == (half, half)
    assert found.offers[0].wait_s == (3 * half, 3 * half)
    assert found.offers[0].saved_s == (2 * HOUR, 2 * HOUR)


def test_what_cannot_be_asked() -> None:
    with pytest.raises(SettingError, match="no such job runs on 4"):
        asked([HOUR], size=5)
    with pytest.raises(SettingError, match="makes no offers: choose dbf"):
        asked([HOUR], chosen="conservative")
    for now in (WEEK_S, NOW + 1):
        with pytest.raises(SettingError, match="does not have the 2 weeks before"):
            asked([HOUR], now=now)
