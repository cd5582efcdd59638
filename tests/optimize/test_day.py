"""A day planned for profit: against loops over seconds, and against the best of all plans."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from dovetail.arrays import Ints
from dovetail.energy.cooling import PLANTS, STEP_W, constant, plant_table
from dovetail.energy.series import Hours
from dovetail.energy.site import MILLION, Site
from dovetail.optimize.day.cpsat import solve_day
from dovetail.optimize.day.problem import (
    WITHIN_MC,
    Day,
    Placer,
    Segments,
    delay_search,
    in_order,
    multi_search,
    segments_of,
)


def random_day(rng: random.Random, jobs: int, length: int = 40) -> Day:
    processors = rng.choice((1, 2, 4, 9))
    sizes = [rng.randint(1, processors) for _ in range(jobs)]
    left = processors
    for _ in range(rng.randint(0, 2)):  # what runs fits
        if left:
            sizes.append(rng.randint(1, left))
            left -= sizes[-1]
    n = len(sizes)
    temperature = Hours(np.array([rng.randint(-5, 40) * 1000 for _ in range(5)]), rng.randint(0, 9), 7)
    price = Hours(np.array([rng.randint(0, 900) for _ in range(3)]) * MILLION, 0, 9)
    plant = plant_table("air", PLANTS["air"], processors * 2000)
    site = Site("s", 900_000, rng.choice((0, 100_000)), cooling=rng.choice((plant, constant(1000))),
                temperature_mc=temperature, price=price, tariff=rng.choice((1, 300)) * 1000)  # fmt: skip
    begin = rng.randint(0, 50)
    draws = np.array([size * rng.randint(100, 2000) * 1000 for size in sizes], np.int64)
    return Day(
        site, segments_of(site, begin, begin + length), processors, jobs,
        np.array([begin + (rng.randint(0, length + 3) if i < jobs else 0) for i in range(n)], np.int64),
        np.array([rng.choice((1, 3, 10, 50)) for _ in range(n)], np.int64), np.array(sizes, np.int64), draws,
        room_mw=rng.choice((-1, int(draws[:jobs].max(initial=0) + draws[jobs:].sum()))),
        tomorrow=rng.random() < 0.3,
    )  # fmt: skip


def used_at(day: Day, starts: Ints, second: int) -> list[int]:
    """The jobs that run in a second."""
    at = [*starts.tolist(), *day.earliest[day.jobs :].tolist()]
    return [job for job, begin in enumerate(at) if 0 <= begin <= second < begin + day.length[job]]


def slow_profit(day: Day, starts: Ints) -> float:
    """Equation 3, second by second."""
    total, times = 0.0, day.segments.times.tolist()
    for s, (begin, end) in enumerate(pairwise(times)):
        drawn = 0.0
        for second in range(begin, end):
            here = used_at(day, starts, second)
            total += sum(day.size[job] for job in here) * day.site.tariff / MILLION / 3600
            drawn += (sum(day.draw_mw[job] for job in here) + day.processors * day.site.idle_mw) / 1000
        watts = np.array([round(1000 * drawn / (end - begin))])
        pue = day.site.cooling.at(watts, day.segments.temperature_mc[s : s + 1])[0] / 1000
        total -= drawn * pue * day.segments.price[s] * 1000
    if day.tomorrow:
        for second in range(day.end, day.end + 200):
            for job in used_at(day, starts, second):
                total += day.size[job] * day.site.tariff / MILLION / 3600
                total -= day.draw_mw[job] * day.mean_pue * day.mean_price
    return total


def fits(day: Day, starts: Ints, seconds: range) -> bool:
    for second in seconds:
        here = used_at(day, starts, second)
        if sum(day.size[here]) > day.processors or 0 <= day.room_mw < sum(day.draw_mw[here]):
            return False
    return True


def slow_place(day: Day, order: Ints) -> list[int]:
    starts = np.full(day.jobs, -1, np.int64)
    for job in order.tolist():
        for at in range(day.earliest[job], day.end):
            starts[job] = at
            if fits(day, starts, range(at, at + int(day.length[job]))):
                break
            starts[job] = -1
    return starts.tolist()


@pytest.mark.parametrize("seed", range(150))
def test_placing_and_profit_are_those_of_slow_loops(seed: int) -> None:
    rng = random.Random(seed)
    day = random_day(rng, rng.randint(1, 12))
    order = np.array(rng.sample(range(day.jobs), day.jobs), np.int64)
    starts = Placer(day).place(order)
    assert starts.tolist() == slow_place(day, order)
    assert day.profit(starts) == pytest.approx(slow_profit(day, starts), rel=1e-9, abs=1e-9)


def test_segments_are_within_five_degrees() -> None:
    rng = random.Random(3)
    for _ in range(50):
        site = Site("s", 1, temperature_mc=Hours(np.array([rng.randint(0, 30) * 500 for _ in range(24)])))
        found = segments_of(site, 100, 86_500)
        assert found.times[0] == 100
        assert found.times[-1] == 86_500
        for begin, end, mean in zip(found.times, found.times[1:], found.temperature_mc, strict=False):
            inside = site.temperature_mc.at(np.arange(begin, end))
            assert inside.max() - inside.min() <= WITHIN_MC
            assert mean == round(inside.mean())
        warm = site.temperature_mc.at(found.times[:-1])
        for i in range(1, len(warm)):  # no segment could have been longer
            before = site.temperature_mc.at(np.arange(found.times[i - 1], found.times[i] + 1))
            assert before.max() - before.min() > WITHIN_MC


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_searches_only_gain(seed: int) -> None:
    rng = random.Random(1000 + seed)
    day = random_day(rng, rng.randint(2, 15))
    first = multi_search(day)
    orders = list(day.orders())
    assert len(orders) == 22
    assert first.profit == max(day.profit(Placer(day).place(order)) for order in orders)
    assert first.profit >= in_order(day).profit
    delayed = delay_search(day, first, decodes=200, delay_s=rng.choice((1, 7)))
    assert delayed.profit >= delayed.begun_with == first.profit
    assert delayed.profit == pytest.approx(day.profit(delayed.starts))
    assert (delayed.starts[delayed.starts >= 0] >= day.earliest[: day.jobs][delayed.starts >= 0]).all()
    assert fits(day, delayed.starts, range(day.begin, day.end + 60))


def test_a_job_held_back_makes_room() -> None:
    """In order of submission the narrow job comes first, and the wide one loses its end to the night. Held back, the
    narrow one loses less."""
    site = Site("s", 1000, tariff=MILLION)
    segments = Segments(np.array([0, 100]), np.array([20_000]), np.array([0.0]))
    day = Day(site, segments, 2, 2, np.array([0, 0]), np.array([50, 60]), np.array([1, 2]), np.full(2, 9))
    first = in_order(day)
    assert first.starts.tolist() == [0, 50]
    assert first.profit == pytest.approx((50 + 2 * 50) / 3600)
    found = delay_search(day, first, decodes=50, delay_s=20)
    assert found.improved
    assert found.starts.tolist() == [60, 0]
    assert found.profit == pytest.approx((40 + 2 * 60) / 3600)


def best_of_all(day: Day) -> float:
    choices = [[-1, *range(day.earliest[job], day.end)] for job in range(day.jobs)]
    plans = (np.array(plan, np.int64) for plan in product(*choices))
    return max(day.profit(plan) for plan in plans if fits(day, plan, range(day.begin, day.end + 60)))


@pytest.mark.parametrize("seed", range(25))
def test_cp_finds_the_best_of_all_plans(seed: int) -> None:
    rng = random.Random(2000 + seed)
    day = replace(random_day(rng, 3, 8), tomorrow=False)
    found = solve_day(day, None, deterministic_s=5, window=10)
    assert found is not None
    # The model rounds the load that is cooled to 500 W, and profits to a 2^42nd of what a day earns.
    seconds = np.diff(day.segments.times)
    most = (day.site.cooling.pue.max() / 1000 - 1) * STEP_W * 1000
    rounding = float((most * seconds * day.segments.price).sum()) + 1e-9
    assert found.profit >= best_of_all(day) - rounding
    assert found.profit == pytest.approx(day.profit(found.starts))
    assert fits(day, found.starts, range(day.begin, day.end + 60))


@pytest.mark.parametrize("seed", range(15))
def test_cp_goes_on_from_a_plan(seed: int) -> None:
    """Jobs outside of the window stay where they were."""
    rng = random.Random(3000 + seed)
    day = replace(random_day(rng, 8), tomorrow=False)
    first = multi_search(day)
    found = solve_day(day, first, deterministic_s=0.5, window=4)
    assert found is not None
    assert found.profit >= found.begun_with == first.profit
    assert fits(day, found.starts, range(day.begin, day.end + 60))
    outside = np.argsort(day.earliest[: day.jobs], kind="stable")[4:]
    assert (found.starts[outside] == first.starts[outside]).all()


def test_cp_knows_those_who_stay_where_they_are() -> None:
    """A plan for a day in which a long job outside of the window leaves room for a wide one only far in the night."""
    site = Site("s", 1000, tariff=MILLION)
    segments = Segments(np.array([0, 100]), np.array([20_000]), np.array([0.0]))
    day = Day(
        site, segments, 2, 4, np.array([0, 1, 2, 3]), np.array([60, 200, 5000, 50]), np.array([1, 2, 1, 1]),
        np.full(4, 9),
    )  # fmt: skip
    begin = replace(in_order(day), starts=np.array([0, -1, 2, -1]))
    worse = replace(begin, profit=0.0)  # a plan that it must find again
    found = solve_day(day, worse, deterministic_s=1, window=2)
    assert found is not None
    assert found.improved
    assert found.starts.tolist()[2:] == [2, -1]
    assert found.profit >= day.profit(begin.starts)
