"""Each transform on small workloads where the answer is plain, and on random ones."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.errors import SettingError
from dovetail.model.workload import Provenance, Workload
from dovetail.units import WEEK_S
from dovetail.workloads.lublin import lublin
from dovetail.workloads.scenarios import (
    RANDOM,
    apply,
    deadlines,
    demand,
    nudge,
    offered_load,
    per_node,
    periodic_deadlines,
    power,
    sample,
    sample_users,
    scale_load,
    set_load,
    shift_to_zero,
    span,
    stretches,
)


def workload(submit: list[int], processors: int = 4, **columns: list[int]) -> Workload:
    n = len(submit)
    given_columns: dict[str, list[int]] = {
        "id": list(range(1, n + 1)),
        "submit": submit,
        "size": [2] * n,
        "runtime": [100] * n,
        "limit": [200] * n,
        **columns,
    }
    arrays = {name: np.array(values, np.int64) for name, values in given_columns.items()}
    return Workload("made", arrays, processors, Provenance("made by hand", lines=n))


TEN = workload([100 * i + 7 for i in range(10)], user=[1, 1, 2, 2, 2, 3, 3, 3, 3, 4])


def test_the_load_counts_work_over_machine_time() -> None:
    assert offered_load(TEN) == 10 * 2 * 100 / (4 * 900)
    unknown = workload([0, 100], runtime=[-1, 100], size=[2, -1])
    assert offered_load(unknown) == 0


def test_a_workload_without_machine_or_span_has_no_load() -> None:
    for bad in (workload([0, 9], processors=0), workload([5]), workload([5, 5]), workload([])):
        with pytest.raises(SettingError, match="no load"):
            offered_load(bad)


def test_scaling_divides_distances_from_the_first_submit() -> None:
    twice = scale_load(TEN, 2)
    assert twice.submit.tolist() == [7 + 50 * i for i in range(10)]
    assert offered_load(twice) == 2 * offered_load(TEN)
    slower = scale_load(workload([10, 11, 12]), 0.3)
    assert slower.submit.tolist() == [10, 13, 17]
    step = twice.provenance.steps[-1]
    assert (step.name, step.changed, step.removed) == ("scale-load=2", 9, 0)
    assert TEN.submit.tolist() == [100 * i + 7 for i in range(10)]


def test_rounding_does_not_add_up() -> None:
    dense = scale_load(workload(list(range(0, 10_000, 3))), 7)
    assert np.abs(dense.submit - np.arange(0, 10_000, 3) / 7).max() <= 0.5


@given(
    st.lists(st.integers(0, 10**9), min_size=1, max_size=50),
    st.floats(0.01, 100, allow_nan=False),
)
def test_scaling_keeps_the_order_and_the_jobs(submit: list[int], factor: float) -> None:
    before = workload(sorted(submit))
    after = scale_load(before, factor)
    assert after["id"].tolist() == before["id"].tolist()
    assert after.submit[0] == before.submit[0]
    exact = before.submit[0] + (before.submit - before.submit[0]) / factor
    assert np.abs(after.submit - exact).max() <= 0.5 + 1e-4


@given(st.floats(0.01, 3))
def test_the_load_can_be_set(load: float) -> None:
    long = workload(list(range(0, 1_000_000, 1000)))
    after = set_load(long, load)
    assert offered_load(after) == pytest.approx(load, rel=0.5 / int(after.submit[-1]) + 1e-9)


def test_a_span_keeps_times_and_sets_the_rest_aside() -> None:
    middle = span(TEN, 107, 307)
    assert middle.submit.tolist() == [107, 207]
    assert middle["user"].tolist() == [1, 2]
    assert middle.set_aside.counts() == {"span=107..307": 8}
    assert middle.provenance.steps[-1].removed == 8


def test_weeks_are_a_partition() -> None:
    rng = np.random.default_rng(0)
    submit = np.sort(rng.integers(5, 5 * WEEK_S, 300))
    whole = workload(submit.tolist())
    parts = [span(whole, begin, end) for begin, end in stretches(whole)]
    assert np.concatenate([p["id"] for p in parts]).tolist() == whole["id"].tolist()
    for i, part in enumerate(parts):
        assert ((part.submit - submit[0]) // WEEK_S == i).all()
    assert stretches(workload([])) == []


def test_a_sample_is_a_random_part_in_order() -> None:
    big = workload(list(range(1000)))
    part = sample(big, 0.1, seed=1)
    assert len(part) == 100
    assert (np.diff(part["id"]) > 0).all()
    assert part.provenance.steps[-1].name == "sample=0.1 seed=1"
    assert sample(big, 0.1, seed=1)["id"].tolist() == part["id"].tolist()
    assert sample(big, 0.1, seed=2)["id"].tolist() != part["id"].tolist()
    assert len(sample(big, 1, seed=1)) == 1000
    # Over many seeds each job is kept equally often.
    kept = np.zeros(1000)
    for seed in range(400):
        kept[sample(big, 0.1, seed=seed)["id"] - 1] += 1
    z = (kept - 40) / np.sqrt(400 * 0.1 * 0.9)
    assert np.abs(z).max() < 5


def test_a_sample_of_users_keeps_all_their_jobs() -> None:
    for seed in range(10):
        part = sample_users(TEN, 0.5, seed)
        users = set(part["user"].tolist())
        assert len(users) == 2
        assert part["id"].tolist() == TEN["id"][np.isin(TEN["user"], list(users))].tolist()
    with pytest.raises(SettingError, match="no users"):
        sample_users(workload([1, 2]), 0.5, 0)


def test_processors_become_nodes() -> None:
    sizes = [1, 19, 20, 21, 40, 41, 1000, -1]
    done = per_node(workload(list(range(8)), size=sizes), 20, Fraction("3.2"))
    assert done["units"].tolist() == [1, 1, 1, 2, 2, 3, 50, 1]
    assert done["unit_cores"].tolist() == [1, 19, 20, 11, 20, 14, 20, 0]
    # 3.2 GB per core, rounded up: 60.8 is 61, 35.2 is 36, 44.8 is 45.
    assert done["unit_memory_gb"].tolist() == [4, 61, 64, 36, 64, 45, 64, 0]
    assert done.size.tolist() == sizes
    assert done.provenance.steps[-1].name == "per-node=20,memory=3.2"
    # A node of 3 cores has 7.5 GB by the rule, so no unit asks for 8.
    assert per_node(workload([0], size=[3]), 3, Fraction("2.5"))["unit_memory_gb"].tolist() == [7]
    assert "unit_memory_gb" not in per_node(TEN, 4)
    split = apply(workload(list(range(6)), size=[7, 20, 21, 30, 40, 1730]), "per-node=20,split=gcd")
    assert split["units"].tolist() == [1, 1, 21, 3, 2, 173]
    assert split["unit_cores"].tolist() == [7, 20, 1, 10, 20, 10]
    # 1.1 is 11/10: ten cores need 11 GB, not 12.
    assert apply(workload([0], size=[10]), "per-node=20,memory=1.1")["unit_memory_gb"].tolist() == [11]


def test_demands_are_even_and_load_each_resource_alike() -> None:
    jobs = per_node(lublin(2000, 8, seed=4), 1)
    names = ("cores", "memory_gb", "gpus")
    done = jobs
    for name in names:
        done = demand(done, name, 16, 7)
    work = jobs["units"] * jobs.runtime
    for name in names:
        amount = done[f"unit_{name}"]
        assert np.unique(amount).tolist() == list(range(1, 17))
        assert np.bincount(amount)[1:].min() > 80  # 125 of each are expected
        assert float(amount @ work) == pytest.approx(8.5 * float(work.sum()), rel=0.005)
    pairs = np.corrcoef([done[f"unit_{name}"] for name in names])[np.triu_indices(3, 1)]
    assert np.abs(pairs).max() < 0.1
    assert done.size.tolist() == (done["units"] * done["unit_cores"]).tolist()
    assert done.submit.tolist() == jobs.submit.tolist()
    alone = demand(jobs, "gpus", 16, 7)
    assert alone["unit_gpus"].tolist() == done["unit_gpus"].tolist()
    assert alone.size.tolist() == jobs.size.tolist()
    assert demand(jobs, "gpus", 16, 8)["unit_gpus"].tolist() != alone["unit_gpus"].tolist()
    assert "demand" in RANDOM
    assert apply(jobs, "demand=gpus:16", seed=7).provenance == alone.provenance


def test_demands_of_the_largest_jobs_are_drawn_as_those_of_small_ones() -> None:
    """What is nearest to the mean does not depend on the second: 10^9 units for 10^10 s do not fit in 64 bits."""
    units = [10**9, 10**9, 999_999_937, 5, 10**8]
    drawn = [
        demand(workload([0] * 5, units=units, runtime=[s * unit_s for s in (1000, 999, 500, 7, 1)]), "gpus", 16, 3)
        for unit_s in (1, 10**7)
    ]
    assert drawn[0]["unit_gpus"].tolist() == drawn[1]["unit_gpus"].tolist()


def test_powers_are_whole_milliwatts_from_the_least_to_the_most() -> None:
    drawn = power(TEN, Fraction("0.998"), Fraction(1), 5)
    assert set(drawn["power_mw"].tolist()) == {998, 999, 1000}
    assert drawn.provenance.steps[-1].changed == 10
    assert set(power(TEN, Fraction("7.8"), Fraction("7.8"), 5)["power_mw"].tolist()) == {7800}


def test_a_shift_starts_at_zero() -> None:
    moved = shift_to_zero(TEN)
    assert moved.submit.tolist() == [100 * i for i in range(10)]
    assert moved.provenance.steps[-1].changed == 10
    assert shift_to_zero(moved).provenance.steps[-1].changed == 0
    assert len(shift_to_zero(workload([]))) == 0


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("scale-load=1.5", scale_load(TEN, 1.5)),
        (" set-load=0.25 ", set_load(TEN, 0.25)),
        ("span=0..5m", span(TEN, 0, 300)),
        ("span=0d..1d", span(TEN, 0, 86400)),
        ("sample=0.3", sample(TEN, 0.3, 5)),
        ("sample-users=0.5", sample_users(TEN, 0.5, 5)),
        ("nudge=0.3", nudge(TEN, 0.3, 5)),
        ("deadlines=0.3", deadlines(TEN, 0.3, 5)),
        ("deadlines=0.3,least=2h,factor=3", deadlines(TEN, 0.3, 5, least_s=7200, factor=3)),
        ("periodic-deadlines=0.1", periodic_deadlines(TEN, 0.1)),
        ("per-node=4", per_node(TEN, 4)),
        ("per-node=1,memory=3.2", per_node(TEN, 1, Fraction(16, 5))),
        ("power=7.8", power(TEN, Fraction("7.8"), Fraction("7.8"), 5)),
        ("power=7.8..11.11", power(TEN, Fraction("7.8"), Fraction("11.11"), 5)),
        ("shift-to-zero", shift_to_zero(TEN)),
    ],
)
def test_the_command_line_form_does_the_same(text: str, same: Workload) -> None:
    done = apply(TEN, text, seed=5)
    assert done.digest() == same.digest()
    assert done.provenance == same.provenance


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("scale=2", "no scenario 'scale'; did you mean scale-load?"),
        ("brighter=2", "scale-load=FACTOR, set-load=LOAD, span=BEGIN..END"),
        ("", "scale-load=FACTOR"),
        ("scale-load", "form scale-load=FACTOR"),
        ("shift-to-zero=1", "form shift-to-zero"),
        ("scale-load=fast", "not a number"),
        ("scale-load=0", "positive"),
        ("scale-load=-1", "positive"),
        ("scale-load=nan", "positive"),
        ("scale-load=1e-14", "whole seconds"),
        ("set-load=inf", "positive"),
        ("span=3d", "not a span"),
        ("span=3x..4d", "not a duration"),
        ("span=3d..3d", "begins before"),
        ("sample=0", "share"),
        ("sample=1.1", "share"),
        ("sample-users=nan", "share"),
        ("nudge=2", "share"),
        ("deadlines=", "not a number"),
        ("deadlines=0", "share"),
        ("deadlines=0.2,least=-1h", "least"),
        ("deadlines=0.2,factor=-1", "from 0 to 10,000,000,000 s"),
        ("deadlines=0.2,factor=inf", "from 0 to"),
        ("deadlines=0.2,factor=nan", "from 0 to"),
        ("deadlines=0.2,factor=1e15", "from 0 to"),
        ("deadlines=0.2,often=1", "no setting"),
        ("periodic-deadlines=1", "below 1"),
        ("per-node=", "cores of a node"),
        ("per-node=20,split=odd", "choose from even, gcd"),
        ("per-node=x,memory=2", "cores of a node"),
        ("per-node=0", "from 1 to"),
        ("per-node=20,memory=0", "must be a number above 0"),
        ("per-node=20,memory=nan", "must be a number above 0"),
        ("per-node=20,memory=1e999", "must be a number above 0"),
        ("per-node=20,memory=-1", "must be a number above 0"),
        ("per-node=20,memory=900000", "memory is above 0 GB per core"),
        ("per-node=20,disk=1", "no setting 'disk'"),
        ("power=few", "power=7.8..11.11"),
        ("power=2..1.5", "power: 2 W is above 1.5 W"),
        ("demand=cores", "demand=memory_gb:16"),
        ("demand=cores:few", "demand=memory_gb:16"),
        ("demand=cores:0", "amounts are from 1 to"),
        ("demand=Cores:4", "called by a-z"),
        ("demand=cores:999999999", "amounts are from 1 to"),
        ("demand=cores:1000000000", "demand=memory_gb:16"),
        ("demand=cores:4", "units to ask for cores"),
    ],
)
def test_wrong_forms_say_what_is_right(text: str, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        apply(TEN, text)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(SettingError, match="seed"):
        sample(TEN, 0.5, -1)


def test_a_nudge_makes_some_limits_a_second_longer_and_changes_nothing_else() -> None:
    made = nudge(TEN, 0.3, 5)
    assert sorted((made.limit - TEN.limit).tolist()) == [0] * 7 + [1] * 3
    assert all(np.array_equal(made[name], TEN[name]) for name in ("id", "submit", "size", "runtime", "user"))
    assert not np.array_equal(nudge(TEN, 0.3, 6).limit, made.limit)
    assert (made.provenance.steps[-1].name, made.provenance.steps[-1].changed) == ("nudge=0.3 seed=5", 3)


def test_a_share_of_the_jobs_gets_deadlines() -> None:
    long = workload(list(range(10)), limit=[100] * 5 + [10_000] * 5)
    made = deadlines(long, 0.4, 3)
    asked = made["deadline_s"] >= 0
    assert asked.sum() == made.provenance.steps[-1].changed == 4
    assert made["deadline_s"][asked].tolist() == np.where(made.limit[asked] == 100, 86_400, 100_000).tolist()
    assert made["deadline_s"].tolist() != deadlines(long, 0.4, 4)["deadline_s"].tolist()
    assert all(np.array_equal(made[name], long[name]) for name in ("id", "submit", "size", "runtime", "limit"))


def test_jobs_that_come_again_and_again_are_to_end_before_the_next() -> None:
    daily = [(day * 1000, 1) for day in range(5)]
    others = [(10, 2), (1500, 2), (1501, 2), (3900, 2)]  # another user, at odd times
    submit, user = zip(*sorted(daily + others), strict=True)
    made = periodic_deadlines(workload(list(submit), user=list(user)), 0.1)
    found = {(int(at), int(who)): int(due) for at, who, due in zip(submit, user, made["deadline_s"], strict=True)}
    assert {at for at, due in found.items() if due >= 0} == {(1000, 1), (2000, 1), (3000, 1)}
    assert found[2000, 1] == 1000
    short = periodic_deadlines(workload([0, 150, 300, 450]), 0.1)  # the limit is 200: none could end in time
    assert short["deadline_s"].tolist() == [-1] * 4


@pytest.mark.parametrize(
    ("submit", "limit", "due"),
    [
        ([0, 200, 400], 200, 200),  # there is just time for the limit
        ([0, 199, 398], 200, -1),
        ([0, 1000, 2100], 200, 1000),  # the next comes later, or earlier, by just the tolerance
        ([0, 1000, 2101], 200, -1),
        ([0, 1000, 1900], 200, 1000),
        ([0, 1000, 1899], 200, -1),
        ([0, 1, 2], 1, 1),
        ([5, 5, 5], -1, -1),  # at once is not again and again
    ],
)
def test_the_bounds_of_periodic_deadlines(submit: list[int], limit: int, due: int) -> None:
    made = periodic_deadlines(workload(submit, limit=[limit] * 3), 0.1)
    assert made["deadline_s"].tolist() == [-1, due, -1]
