"""The slow policies against schedules worked out by hand, the referee, and what must hold on any workload."""

from __future__ import annotations

import gzip
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from dovetail.referee import check_schedule
from tests.conftest import TRACES, needs_traces
from tests.slow.policies import Conservative, ListPolicy, SlowJob, order_key, slow_replay
from tests.slow.workloads import random_jobs, schedule_of

ORDERS = ("fcfs", "sjf", "ljf", "saf", "laf", "spf", "small", "large", "wfp3", "unicef", "xfactor")
SWEEPS = ("submit", "each-end", "repeat", "start", "now", "none")
SEEDS = range(20)
LISTS = [
    *(ListPolicy(order, reserve) for order in ORDERS for reserve in ("strict", 0, 1, "all")),
    ListPolicy("fcfs", 1, backfill="sjf"),
    ListPolicy("saf", 3, backfill="large"),
    ListPolicy("sjf", 2, starvation=20),
    ListPolicy("fcfs", 0, backfill="sjf", starvation=10),
    ListPolicy("fcfs", 1, relax=0.5),
    ListPolicy("fcfs", 2, slack=0.3),
    ListPolicy("sjf", "all", slack=1.0, starvation=15),
]
POLICIES: list[ListPolicy | Conservative] = [*LISTS, *(Conservative(sweep) for sweep in SWEEPS)]


def job(submit: int, size: int, runtime: int, estimate: int | None = None) -> SlowJob:
    return SlowJob(submit, (size,), runtime, estimate or runtime)


# Lists, by hand ---------------------------------------------------------------------------------------------

DEPTH_A = [job(0, 3, 10), job(1, 4, 5), job(2, 1, 9), job(3, 1, 3)]
DEPTH_B = [job(0, 3, 10), job(0, 3, 10), job(0, 4, 5), job(1, 1, 25)]


@pytest.mark.parametrize(
    ("jobs", "reserve", "starts"),
    [
        # Nobody passes job 1:    0 0 0 |1 1|2 2        0 until 10, 1 until 15, then 2 and 3
        (DEPTH_A, "strict", [0, 10, 15, 15]),
        # 2 runs 2..11 in the free processor, 3 takes a processor of 0 at 10..13, so 1 must wait for 13
        (DEPTH_A, 0, [0, 13, 2, 10]),
        # 1 is reserved at 10: 2 would end at 11, 3 ends at 6 and may pass
        (DEPTH_A, 1, [0, 10, 15, 3]),
        (DEPTH_A, "all", [0, 10, 15, 3]),
        # 0 until 10, 1 (3 of 4) until 20; 3 fits beside both, 1..26, and pushes 2, which has no reservation
        (DEPTH_B, 1, [0, 10, 26, 1]),
        # now 2 is reserved at 20..25, and 3 (25 s long) fits only after it
        (DEPTH_B, 2, [0, 10, 20, 25]),
        (DEPTH_B, "all", [0, 10, 20, 25]),
    ],
)
def test_reservation_depth(jobs: Sequence[SlowJob], reserve: int | str, starts: list[int]) -> None:
    assert slow_replay(jobs, 4, ListPolicy("fcfs", reserve)).start == starts


@pytest.mark.parametrize(
    ("order", "starts"),
    [  # jobs a, b, c, d of 5, 8, 5, 8 processors for 5, 4, 6, 3 s on 8 processors: one at a time
        ("fcfs", [0, 5, 9, 15]),  # aaaaa bbbb cccccc ddd
        ("sjf", [7, 3, 12, 0]),  # ddd bbbb aaaaa cccccc      3 4 5 6
        ("ljf", [6, 11, 0, 15]),  # cccccc aaaaa bbbb ddd     6 5 4 3
        ("saf", [3, 14, 8, 0]),  # ddd aaaaa cccccc bbbb      24 25 30 32
        ("laf", [10, 0, 4, 15]),  # bbbb cccccc aaaaa ddd     32 30 25 24
        ("spf", [3, 8, 12, 0]),  # ddd aaaaa bbbb cccccc      72 125 128 180
        ("small", [0, 11, 5, 15]),  # aaaaa cccccc bbbb ddd   5 5 8 8
        ("large", [7, 0, 12, 4]),  # bbbb ddd aaaaa cccccc    8 8 5 5
    ],
)
def test_orders(order: str, starts: list[int]) -> None:
    jobs = [job(0, 5, 5), job(0, 8, 4), job(0, 5, 6), job(0, 8, 3)]
    assert slow_replay(jobs, 8, ListPolicy(order, "all")).start == starts


@pytest.mark.parametrize(
    ("order", "starts"),
    [
        # at 10, waits 6, 5, 3: p 1.5^3 * 8 = 27, q 23.1, r 16.9; at 14, q 3^3 * 5 = 135, r 3.5^3 * 5 = 214
        ("wfp3", [0, 10, 16, 14]),
        # at 10: p 6/(3 * 4) = 0.50, q 5/(2.32 * 3) = 0.72, r 0.65; at 13: p 9/12, r 6/4.64
        ("unicef", [0, 15, 10, 13]),
        # at 10: p 10/4 = 2.5, q 8/3 = 2.67, r 5/2 = 2.5; at 13: p 13/4, r 8/2
        ("xfactor", [0, 15, 10, 13]),
    ],
)
def test_orders_that_change_with_time(order: str, starts: list[int]) -> None:
    jobs = [job(0, 8, 10), job(4, 8, 4), job(5, 5, 3), job(7, 5, 2)]
    assert slow_replay(jobs, 8, ListPolicy(order, 1)).start == starts


def test_unicef_takes_the_logarithm_of_one_processor_as_one() -> None:
    assert order_key("unicef", job(0, 1, 5), 10) == -2.0
    assert order_key("unicef", job(0, 2, 5), 10) == -2.0
    assert order_key("unicef", job(0, 4, 5), 10) == -1.0


def test_backfill_order() -> None:
    """Both 2 (8 s) and 3 (3 s) could run beside 0 until 1 starts at 10, but not one after the other."""
    jobs = [job(0, 3, 10), job(0, 4, 5), job(0, 1, 8), job(0, 1, 3)]
    assert slow_replay(jobs, 4, ListPolicy("fcfs", 1)).start == [0, 10, 0, 15]
    assert slow_replay(jobs, 4, ListPolicy("fcfs", 1, backfill="sjf")).start == [0, 10, 15, 0]


def test_starvation() -> None:
    """Shortest first: 2 (1 s), 3, 4 (2 s), 1 (9 s). At 6 job 1 has waited 5 s and goes first."""
    jobs = [job(0, 1, 5), job(1, 1, 9), job(2, 1, 1), job(3, 1, 2), job(4, 1, 2)]
    assert slow_replay(jobs, 1, ListPolicy("sjf", 1)).start == [0, 10, 5, 6, 8]
    assert slow_replay(jobs, 1, ListPolicy("sjf", 1, starvation=5)).start == [0, 6, 5, 15, 17]


def test_relaxed_backfilling() -> None:
    """1 (all processors, 5 s) is reserved at 10; 2 (12 s beside 0) would push it to 12."""
    jobs = [job(0, 3, 10), job(0, 4, 5), job(0, 1, 12)]
    for allowed in (ListPolicy("fcfs", 1, slack=0.4), ListPolicy("fcfs", 1, relax=0.2)):
        result = slow_replay(jobs, 4, allowed)
        assert result.start == [0, 12, 0]
        assert (result.promised_first[1], result.promised_last[1]) == (10, 12)
    for refused in (
        ListPolicy("fcfs", 1, slack=0.39),
        ListPolicy("fcfs", 1, relax=0.19),
        ListPolicy("fcfs", 1),
    ):
        assert slow_replay(jobs, 4, refused).start == [0, 10, 15]


def test_no_slack_still_lets_a_reservation_go_back_to_where_it_was_first() -> None:
    """2 is first reserved at 20; when 0 ends at 5 that becomes 8; then 3 (5..15) pushes it to 15."""
    jobs = [job(0, 2, 5, 20), job(0, 2, 8), job(0, 4, 5), job(5, 2, 10)]
    assert slow_replay(jobs, 4, ListPolicy("fcfs", 1)).start == [0, 0, 8, 13]
    assert slow_replay(jobs, 4, ListPolicy("fcfs", 1, slack=0.0)).start == [0, 0, 15, 5]


def test_two_resources() -> None:
    """0 takes all memory until 5, so 1 waits for it; 2 needs none and has the processors."""
    jobs = [SlowJob(0, (2, 10), 5, 5), SlowJob(0, (1, 1), 4, 4), SlowJob(0, (2, 0), 3, 3)]
    assert slow_replay(jobs, (4, 10), ListPolicy("fcfs", 1)).start == [0, 5, 0]
    assert slow_replay(jobs, (4, 10), Conservative()).start == [0, 5, 0]
    assert slow_replay(jobs, (4, 10), ListPolicy("fcfs", "strict")).start == [0, 5, 5]


# Conservative, by hand --------------------------------------------------------------------------------------


def test_conservative_moves_up_when_a_job_ends_early() -> None:
    """0 was to run until 10 and ends at 4: 1 goes from 10 to 4, 2 from 15 to 9."""
    result = slow_replay([job(0, 2, 4, 10), job(0, 2, 5), job(0, 1, 3)], 2, Conservative())
    assert result.start == [0, 4, 9]
    assert result.promised_first == [0, 10, 15]
    assert result.promised_last == [0, 4, 9]
    assert result.passes == 4  # arrivals at 0, ends at 4, 9 and 12


@pytest.mark.parametrize(
    ("sweep", "starts"),
    [
        # A 0..10, X 0..20 (ends at 2), plan: C 10..20, B (both processors) 20..25. At 2, B first: C bars it
        # until 20; then C goes to 2. D comes at 3, finds 10..15 free; at 10 B can only go to 15.
        ("submit", [0, 0, 15, 2, 10]),
        ("each-end", [0, 0, 15, 2, 10]),
        # A second sweep brings B to 12; so does taking C, promised earlier, first. D then goes after B.
        ("repeat", [0, 0, 12, 2, 17]),
        ("start", [0, 0, 12, 2, 17]),
        # C can start at once, B cannot until D has ended.
        ("now", [0, 0, 15, 2, 10]),
        # Nobody moves, and D goes into the hole.
        ("none", [0, 0, 20, 10, 3]),
    ],
)
def test_sweeps_leave_holes_or_not(sweep: str, starts: list[int]) -> None:
    jobs = [job(0, 1, 10), job(0, 1, 2, 20), job(0, 2, 5), job(0, 1, 10), job(3, 1, 5)]
    assert slow_replay(jobs, 2, Conservative(sweep)).start == starts


@pytest.mark.parametrize(
    ("sweep", "starts"),
    [
        # 0 (until 10) and 1 (until 20) both end at 2; plan: C 10..20, B (both processors) 20..25.
        # Both gone: B goes to 2..7, before C, which goes to 7.
        ("submit", [0, 0, 2, 7]),
        # 0 gone, 1 not yet: B stays, C goes to 2..12; then 1 gone: B goes to 12.
        ("each-end", [0, 0, 12, 2]),
        ("repeat", [0, 0, 2, 7]),
        # C first: to 2..12; then B: to 12.
        ("start", [0, 0, 12, 2]),
        ("now", [0, 0, 2, 7]),
        ("none", [0, 0, 20, 10]),
    ],
)
def test_two_ends_in_one_moment(sweep: str, starts: list[int]) -> None:
    jobs = [job(0, 1, 2, 10), job(0, 1, 2, 20), job(0, 2, 5), job(0, 1, 10)]
    assert slow_replay(jobs, 2, Conservative(sweep)).start == starts


@pytest.mark.parametrize("policy", [Conservative(), ListPolicy("fcfs", 1)])
def test_a_job_past_its_estimate_is_taken_to_end_a_second_from_now(policy: ListPolicy | Conservative) -> None:
    """0 was to end at 5 and ends at 8. At 6, when 2 comes, 1 is put at 7, so 2 (1 s, beside 0) may go now."""
    jobs = [job(0, 1, 8, 5), job(0, 2, 4), job(6, 1, 1), job(6, 1, 2)]
    result = slow_replay(jobs, 2, policy)
    assert result.start == [0, 8, 6, 12]
    assert (result.promised_first[1], result.promised_last[1]) == (5, 8)


# The replay, by hand ----------------------------------------------------------------------------------------


def test_feedback() -> None:
    """1 arrives 3 s after the end of 0, at 8; 3 right at that end, at 5, though its submit is 100."""
    jobs = [
        job(0, 1, 5),
        replace(job(2, 1, 4), after=0, think=3),
        job(3, 1, 10),
        replace(job(100, 1, 1), after=0),
    ]
    for policy in (ListPolicy("fcfs", 1), Conservative()):
        result = slow_replay(jobs, 1, policy, feedback=True)
        assert result.arrive == [0, 8, 3, 5]
        assert result.start == [0, 16, 5, 15]
    assert slow_replay(jobs, 1, ListPolicy("fcfs", 1)).start == [0, 5, 9, 100]


def test_jobs_larger_than_the_cluster_and_their_followers_take_no_part() -> None:
    jobs = [job(0, 5, 3), replace(job(0, 1, 3), after=0), job(1, 4, 2)]
    result = slow_replay(jobs, 4, ListPolicy("fcfs", "strict"), feedback=True)
    assert (result.start, result.arrive, result.passes) == ([-1, -1, 1], [-1, -1, 1], 2)
    assert slow_replay(jobs, 4, ListPolicy("fcfs", "strict")).start == [-1, 0, 3]


def test_periodic_passes() -> None:
    """Decisions at 10, 20, 30 only: 0 runs 10..14, 1 (there since 4) waits for 20, 2 comes at 27."""
    jobs = [job(3, 1, 4), job(4, 1, 3), job(27, 1, 1)]
    for policy in (ListPolicy("fcfs", 1), Conservative()):
        result = slow_replay(jobs, 1, policy, every=10)
        assert result.start == [10, 20, 30]
        assert result.passes == 3
        assert result.arrive == [3, 4, 27]


# On any workload --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_the_referee_finds_nothing(policy: ListPolicy | Conservative) -> None:
    for seed in SEEDS:
        rng = random.Random(seed)
        feedback, resources, every = seed % 3 == 0, 1 + seed % 2, 7 if seed % 5 == 0 else None
        jobs, capacity = random_jobs(rng, resources=resources, too_small=seed % 4 == 0, feedback=feedback)
        result = slow_replay(jobs, capacity, policy, feedback=feedback, every=every)
        for k in range(resources):
            assert check_schedule(schedule_of(jobs, capacity, result, k)) == [], seed


KEEPS_PROMISES: list[ListPolicy | Conservative] = [
    ListPolicy("fcfs", 1),
    ListPolicy("fcfs", 1, backfill="sjf"),
    *(Conservative(sweep) for sweep in SWEEPS),
]


@pytest.mark.parametrize("policy", KEEPS_PROMISES, ids=repr)
def test_promises_hold_when_estimates_are_upper_bounds(policy: ListPolicy | Conservative) -> None:
    promised = 0
    for seed in SEEDS:
        jobs, capacity = random_jobs(random.Random(seed))
        result = slow_replay(jobs, capacity, policy)
        assert check_schedule(schedule_of(jobs, capacity, result), promises=True) == [], seed
        promised += sum(first >= 0 for first in result.promised_first)
    assert promised > 100


def test_rebuilding_all_reservations_does_not_keep_promises() -> None:
    """When a job ends early an earlier job may move into the way of a later one."""
    broken = 0
    for seed in SEEDS:
        jobs, capacity = random_jobs(random.Random(seed))
        result = slow_replay(jobs, capacity, ListPolicy("fcfs", "all"))
        broken += len(check_schedule(schedule_of(jobs, capacity, result), promises=True))
    assert broken > 0


@pytest.mark.slow
@pytest.mark.parametrize("order", [o for o in ORDERS if o not in ("wfp3", "unicef", "xfactor")])
@pytest.mark.parametrize("reserve", ["strict", 0, 1, 2, "all"])
def test_looking_every_second_changes_nothing(order: str, reserve: int | str) -> None:
    """Between two moments nothing gets better for anyone while keys stand still and estimates are bounds."""
    for seed in SEEDS[:8]:
        jobs, capacity = random_jobs(random.Random(seed))
        policy = ListPolicy(order, reserve)
        assert slow_replay(jobs, capacity, policy, every=1).start == slow_replay(jobs, capacity, policy).start


@pytest.mark.parametrize("sweep", SWEEPS)
def test_every_promised_start_falls_into_a_moment(sweep: str) -> None:
    """So waking conservative backfilling every second changes nothing either."""
    for seed in SEEDS:
        jobs, capacity = random_jobs(random.Random(seed))
        policy = Conservative(sweep)
        often, moments = slow_replay(jobs, capacity, policy, every=1), slow_replay(jobs, capacity, policy)
        assert (often.start, often.promised_first) == (moments.start, moments.promised_first)


def test_with_exact_estimates_some_policies_are_one() -> None:
    """Nothing ends early, so there is nothing to sweep and no reservation ever moves."""
    for seed in SEEDS:
        drawn, capacity = random_jobs(random.Random(seed), resources=1 + seed % 2)
        jobs = [replace(j, runtime=j.estimate) for j in drawn]
        every_job = slow_replay(jobs, capacity, ListPolicy("fcfs", "all")).start
        for sweep in SWEEPS:
            assert slow_replay(jobs, capacity, Conservative(sweep)).start == every_job
        for k in (1, 2):
            plain = slow_replay(jobs, capacity, ListPolicy("fcfs", k)).start
            assert slow_replay(jobs, capacity, ListPolicy("fcfs", k, slack=0.0)).start == plain


def test_the_ends_of_the_family() -> None:
    """So many reservations that all have one; so much slack that none counts; strict starts in order."""
    for seed in SEEDS:
        jobs, capacity = random_jobs(random.Random(seed), too_small=seed % 2 == 0)
        many = slow_replay(jobs, capacity, ListPolicy("saf", len(jobs)))
        assert many == slow_replay(jobs, capacity, ListPolicy("saf", "all"))
        loose = slow_replay(jobs, capacity, ListPolicy("fcfs", 1, relax=1e9))
        assert loose.start == slow_replay(jobs, capacity, ListPolicy("fcfs", 0)).start
        strict = slow_replay(jobs, capacity, ListPolicy("fcfs", "strict")).start
        assert strict == sorted(strict)


def test_same_seed_same_workload() -> None:
    for options in ({}, {"too_small": True}, {"feedback": True}):
        assert random_jobs(random.Random(5), **options) == random_jobs(random.Random(5), **options)
    assert random_jobs(random.Random(5)) != random_jobs(random.Random(6))


@needs_traces
def test_promises_hold_on_the_start_of_a_real_trace() -> None:
    jobs = []
    with gzip.open(TRACES / "papers" / "KTH-SP2.swf.gz", "rt") as lines:
        for line in lines:
            if not line.startswith(";"):
                f = [int(float(value)) for value in line.split()]
                jobs.append(SlowJob(f[1], (f[7],), f[3], f[8]))
    assert len(jobs) == 28481
    result = slow_replay(jobs[:1000], 100, Conservative())
    assert check_schedule(schedule_of(jobs[:1000], (100,), result), promises=True) == []
