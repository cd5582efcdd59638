"""The Eurora days made longer: shares, load, days, users, and the same bytes for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.errors import SettingError
from dovetail.io.clusters import cluster_named
from dovetail.io.read import read_workload
from dovetail.model.workload import Provenance, Step, Workload
from dovetail.units import DAY_S
from dovetail.workloads.filters import clean
from dovetail.workloads.resample import accelerated, lengthen, loads
from dovetail.workloads.scenarios import apply
from tests.conftest import TRACES, needs_traces
from tests.workloads.fits import cannot_run

EURORA = cluster_named("eurora")
UNITS = ("unit_cores", "unit_memory_gb", "unit_gpus", "unit_mics")


def small(seed: int = 0, jobs: int = 300) -> Workload:
    """Jobs of two days, of all classes."""
    rng = np.random.default_rng(seed)
    units = rng.integers(1, 3, jobs)
    cores = rng.choice([1, 8], jobs)
    gpus = (rng.random(jobs) < 0.3).astype(np.int64)
    return Workload(
        "small",
        {
            "id": np.arange(jobs),
            "submit": np.sort(rng.integers(0, 2 * DAY_S, jobs)),
            "size": units * cores,
            "runtime": rng.choice([60, 300, 2000, 9000], jobs),
            "limit": rng.choice([10_000, 20_000], jobs),
            "wait": np.full(jobs, 5),
            "units": units,
            "unit_cores": cores,
            "unit_memory_gb": np.ones(jobs, np.int64),
            "unit_gpus": gpus,
            "unit_mics": np.zeros(jobs, np.int64),
        },
        1024,
        Provenance("made", lines=jobs),
    )


def rows(workload: Workload) -> list[tuple[int, ...]]:
    names = ("size", "runtime", "limit", "units", *UNITS)
    return list(zip(*(workload[name].tolist() for name in names), strict=True))


@pytest.mark.parametrize("mix", ["recorded", "reported"])
@pytest.mark.parametrize("jobs", [1, 7, 300, 5000])
def test_whole_jobs_are_drawn_in_the_shares_of_the_mix(mix: str, jobs: int) -> None:
    source = small()
    longer = lengthen(source, jobs, 3, mix=mix)
    assert len(longer) == jobs
    assert set(rows(longer)) <= set(rows(source))
    assert longer["id"].tolist() == list(range(1, jobs + 1))
    assert "wait" not in longer
    fast, short = 0.772, 0.9314
    if mix == "recorded":
        fast, short = accelerated(source).mean(), (source.runtime < 3600).mean()
    assert abs(int(accelerated(longer).sum()) - jobs * fast) <= 0.5
    assert abs(int((longer.runtime < 3600).sum()) - jobs * short) <= 0.5


def test_the_step_makes_the_same_workload_again() -> None:
    source = small()
    once = lengthen(source, 4000, 5, mix="reported")
    step = once.provenance.steps[-1]
    text, _, seed = step.name.partition(" seed=")
    assert (text.rpartition("=")[0], seed, step.changed) == ("lengthen=4000,mix=reported,days", "5", 4000)
    again = apply(source, text, seed=5)
    assert again.digest() == once.digest()
    assert again["name"].tolist() == once["name"].tolist()
    assert lengthen(source, 4000, 6, mix="reported").digest() != once.digest()


def test_the_same_jobs_again_take_as_many_days_as_recorded() -> None:
    """Three jobs that are alike, of ten days: the first of them nine days before the others."""
    source = small(jobs=3).with_columns(
        Step("alike"), submit=np.array([0, 9 * DAY_S, 10 * DAY_S]), runtime=np.full(3, 60), limit=np.full(3, 100),
        size=np.full(3, 1), units=np.full(3, 1), unit_cores=np.full(3, 1), unit_gpus=np.zeros(3, np.int64),
    )  # fmt: skip
    assert lengthen(source, 3, 1).provenance.steps[-1].name == "lengthen=3,mix=recorded,days=10 seed=1"
    assert lengthen(source, 30, 1).provenance.steps[-1].name == "lengthen=30,mix=recorded,days=100 seed=1"


def test_users_and_names_are_synthetic_and_repeat() -> None:
    longer = lengthen(small(), 20_000, 1)
    assert all(text.startswith("synthetic-user-") for text in longer.names["user"])
    assert all(text.startswith("synthetic-job-") for text in longer.names["name"])
    assert longer["user"].min() == 0
    assert longer["user"].max() < len(longer.names["user"])
    # A name is a profile: jobs of one name ask for the same.
    for number in np.unique(longer["name"]).tolist():
        own = longer["name"] == number
        assert all(len(np.unique(longer[column][own])) == 1 for column in ("limit", "size", "units", *UNITS))


def test_sessions_come_again_on_following_days() -> None:
    """One recorded session, drawn over and over: at its time of day, its gaps kept."""
    source = small(jobs=3).with_columns(
        Step("one session"), submit=np.array([40_000, 40_100, 40_500]), runtime=np.array([10, 20, 30]),
        limit=np.full(3, 100), size=np.full(3, 1), units=np.full(3, 1), unit_cores=np.full(3, 1),
        unit_gpus=np.zeros(3, np.int64),
    )  # fmt: skip
    longer = lengthen(source, 3000, 2, days=100)
    first = longer.runtime == 10
    time_of_day = longer.submit[first] % DAY_S
    assert int(first.sum()) == 1000
    assert 38_200 <= time_of_day.min() < time_of_day.max() <= 41_800
    assert len(np.unique(longer.submit[first] // DAY_S)) > 90
    # Over a hundred years sessions are far apart, but for those that come again: most have one the day before.
    sparse = lengthen(source, 3000, 2, days=36_500)
    days = sparse.submit[sparse.runtime == 10] // DAY_S
    assert 0.5 < np.isin(days - 1, days).mean() < 0.9
    assert len(np.unique(days)) > 950  # about 14 of 1,000 share a day by chance
    pairs = sorted((longer.submit[first] + 100).tolist())
    assert pairs == sorted(longer.submit[longer.runtime == 20].tolist())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lengthen=", "number of jobs first"),
        ("lengthen=many", "number of jobs first"),
        ("lengthen=0", "from 1 to 10,000,000"),
        ("lengthen=99999999", "from 1 to 10,000,000"),
        ("lengthen=10,mix=other", "no mix 'other'; there are recorded, reported"),
        ("lengthen=10,days=0", "days from 1"),
        ("lengthen=10,days=x", "days=x"),
        ("lengthen=10,years=1", "no setting 'years'"),
    ],
)
def test_settings_that_are_wrong(text: str, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        apply(small(), text)


def test_it_is_for_the_eurora_days() -> None:
    source = small()
    columns = {name: values for name, values in source.columns.items() if name != "unit_mics"}
    with pytest.raises(SettingError, match="lacks the columns unit_mics"):
        lengthen(Workload("other", columns, 1024, Provenance("made")), 10, 0)
    slow = small().take(source.runtime < 3600, "short only")
    with pytest.raises(SettingError, match="lacks jobs"):
        lengthen(slow, 1000, 0, mix="reported")


@needs_traces
@pytest.mark.parametrize(("mix", "days"), [("recorded", None), ("reported", None), ("reported", 518)])
def test_400000_jobs_of_eurora(mix: str, days: int | None) -> None:
    source = clean(read_workload(TRACES / "heterogeneous" / "eurora_jobs_merged.csv.gz"), ["standard"])
    longer = lengthen(source, 400_000, 0, mix=mix, days=days)
    share = {"recorded": 918 / 5930, "reported": 0.772}[mix]
    assert accelerated(longer).mean() == pytest.approx(share, abs=1e-5)
    span_s = int(longer.submit[-1] - longer.submit[0])
    if days:
        assert round(span_s / DAY_S) == days
    else:
        recorded = loads(source.columns, EURORA, int(source.submit[-1] - source.submit[0]))
        assert max(loads(longer.columns, EURORA, span_s).values()) == pytest.approx(max(recorded.values()), rel=0.01)
    # The hours of the day are the record's: work by day, little by night.
    by_hour = np.bincount(longer.submit % DAY_S // 3600, minlength=24)
    assert by_hour[9:20].sum() > 2 * by_hour[20:].sum()
    assert cannot_run(longer.take(np.arange(len(longer)) < 2000, "some"), EURORA) == []
