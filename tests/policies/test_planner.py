"""The planner: never worse than the lists it begins with, the same in both engines, optimal where that is known."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from dovetail.arrays import NEVER, Floats, Ints
from dovetail.engine.compiled import new_replay
from dovetail.engine.replay import replay
from dovetail.engine.stepped import Stepper
from dovetail.errors import PolicyError, SettingError
from dovetail.kernels.compile import jit
from dovetail.kernels.planner.search import (
    AF,
    AWF,
    BSLD,
    FLOAT_ROWS,
    PASF,
    REPAIRS,
    RHO,
    SCALE,
    SPAN,
    TERMS,
    WAIT,
    _least,
    cost,
    powers,
)
from dovetail.metrics import af_s, awf_s, bsld, pasf_s
from dovetail.metrics.jobs import Outcomes, outcomes
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.workload import Workload
from dovetail.optimize.window.objective import parse
from dovetail.optimize.window.terms import terms
from dovetail.policies.planner import Planner
from dovetail.policies.registry import policy
from dovetail.referee import check_schedule
from tests.slow import planning as slow
from tests.slow.policies import SlowJob
from tests.slow.workloads import random_jobs, with_deadlines, workload_of


@jit
def cost_at(rule: Any, size: int, estimate: int, wait: float) -> float:
    return cost(rule, size, estimate, wait, 0.5, 1.5)


@jit
def least(rule: Any, size: int, estimate: int, wait: float) -> float:
    return _least(rule, size, estimate, wait, 0.5, 1.5)


@jit
def gap(f: float, q: float, m: int) -> float:
    return powers(f, q, m)


OBJECTIVES = ("af", "awf", "bsld", "p2sf", "pasf:1", "wait", "makespan")


def drawn(seed: int) -> tuple[Workload, int, Ints, bool]:
    rng = random.Random(seed)
    feedback = rng.random() < 0.3
    jobs, capacity = random_jobs(rng, too_small=rng.random() < 0.4, feedback=feedback)
    return workload_of(jobs, capacity), capacity[0], np.array([job.estimate for job in jobs], np.int64), feedback


def planner(seed: int) -> Planner:
    rng = random.Random(-seed)
    objective = rng.choice([*OBJECTIVES, "af+0.5*p2sf", "bsld+wait", "awf+makespan"])
    window, starve = rng.choice([1, 3, 100]), rng.choice([None, None, 0, 15])
    foresight = rng.choice([0, 0, 1, 5])
    return Planner(
        objective, decodes=rng.choice([0, 5, 60]), window=window, foresight=foresight, starve_s=starve, long_s=None
    )


@pytest.mark.slow
def test_both_engines_agree_and_the_referee_has_nothing_to_say() -> None:
    for seed in range(150):
        workload, processors, estimate, feedback = drawn(seed)
        every_s = random.Random(seed + 1).choice([0, 0, 7])
        whole, stepped = (
            replay(
                workload, planner(seed), cluster=Cluster(processors), estimate=estimate, feedback=feedback,
                every_s=every_s, seed=seed, event_by_event=by_event,
            )
            for by_event in (False, True)
        )  # fmt: skip
        assert whole.start.tolist() == stepped.start.tolist(), seed
        assert whole.passes == stepped.passes
        assert check_schedule(whole) == []


def watched(seed: int, chosen: Planner) -> list[tuple[State, Plan]]:
    workload, processors, estimate, feedback = drawn(seed)
    seen: list[tuple[State, Plan]] = []
    stepper = Stepper(
        workload, Cluster(processors), chosen, estimate, seed=seed, feedback=feedback,
        see=lambda state, plan: seen.append((state, plan)),
    )  # fmt: skip
    stepper.advance()
    return [(s, p) for s, p in seen if any(s.size[job] <= s.free for job in s.waiting.tolist())]


def starts_of(state: State, plan: Plan) -> dict[int, int]:
    return {job: state.now if job in plan.starts else plan.expected[job] for job in state.waiting.tolist()}


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_in_each_pass_no_list_plan_is_better(objective: str) -> None:
    """The guarantee of the design, against plans made second by second."""
    passes = better = 0
    for seed in range(30):
        for state, plan in watched(seed, Planner(objective, decodes=40, long_s=None)):
            got = slow.value(objective, state, starts_of(state, plan))
            waiting = state.waiting.tolist()
            lists = slow.list_orders(state)
            standing = state.standing.expected
            lists.append(sorted(waiting, key=lambda job, at=standing: at.get(job, NEVER)))  # type: ignore[misc]
            best = min(slow.value(objective, state, slow.placed(state, order)) for order in lists)
            assert got <= best * (1 + 1e-12), (seed, state.now)
            passes += 1
            better += got < best * (1 - 1e-9)
    assert passes > 250
    assert better > 0


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["af", "awf", "bsld"])
def test_small_queues_are_arranged_as_well_as_any_order_can(objective: str) -> None:
    cases = 0
    for seed in range(60):
        for state, plan in watched(seed, Planner(objective, decodes=400, long_s=None)):
            if not 2 <= len(state.waiting) <= 5:
                continue
            cases += 1
            got = slow.value(objective, state, starts_of(state, plan))
            orders = permutations(state.waiting.tolist())
            best = min(slow.value(objective, state, slow.placed(state, order)) for order in orders)
            assert got == pytest.approx(best, rel=1e-12), (seed, state.now)
    assert cases > 100


@pytest.mark.slow
def test_a_plan_is_a_list_plan_of_some_order() -> None:
    """Starts are those that list scheduling gives in the order of the starts: nobody idles on purpose."""
    for seed in range(40):
        for state, plan in watched(seed, Planner("p2sf", decodes=30)):
            starts = starts_of(state, plan)
            again = slow.placed(state, sorted(starts, key=lambda job: starts[job]))
            assert again == starts


def starving_come_first(seed: int) -> tuple[int, int]:
    """Those that have waited too long are placed first, in order of arrival. How many they are, and how many others."""
    starving = others = 0
    starve_s = (0, 3, 8)[seed % 3]
    for state, plan in watched(seed, Planner("bsld", decodes=20, starve_s=starve_s)):
        waiting = sorted(state.waiting.tolist(), key=lambda job: state.submit[job])
        first = [job for job in waiting if state.now - state.submit[job] >= starve_s]
        wanted, starts = slow.placed(state, first), starts_of(state, plan)
        assert {job: starts[job] for job in first} == wanted, (seed, state.now)
        starving, others = starving + len(first), others + len(waiting) - len(first)
    return starving, others


def test_starving_jobs_come_first() -> None:
    counts = [starving_come_first(seed) for seed in range(30)]
    assert min(sum(column) for column in zip(*counts, strict=True)) > 100


def no_list_is_better(state: State, plan: Plan, value: Callable[[dict[int, int]], float], rounding: float) -> None:
    """A plan is no worse by a value than the plan of any list order."""
    best = min(value(slow.placed(state, order)) for order in slow.list_orders(state))
    assert value(starts_of(state, plan)) <= best * (1 + rounding), state


def slow_commitment(state: State, starts: dict[int, int], counts: dict[int, float]) -> float:
    """What a plan costs those who may come, second by second: jobs of the sizes and weights of `counts` (by job that
    came) come at a rate of one each in the time that they cover. They wait until what has started leaves room, for the
    largest size of their class."""
    span = max(state.now - min(int(state.submit[job]) for job in counts), 1)
    running = [(state.expected_end(job), int(state.size[job])) for job in state.running.tolist()]
    ended = max([end for end, _ in running] + [at + int(state.estimate[job]) for job, at in starts.items()])
    total = 0.0
    for t in range(state.now, ended):
        started = [(at + int(state.estimate[job]), int(state.size[job])) for job, at in starts.items() if at <= t]
        held = [(end, size) for end, size in running + started if end > t]
        for job, weight in counts.items():
            octave = math.floor(2 * math.log2(state.size[job]) + 1e-9)
            size = math.ceil(2 ** ((octave + 1) / 2) - 1e-9) - 1
            free = state.processors - sum(of for _, of in held)
            until = t
            for end, of in sorted(held):
                if free < size:
                    free, until = free + of, end
            # The mean over the second of what is left of the wait then.
            total += weight * max(until - t - 0.5, 0) / span
    return total


def by_size(state: State) -> Any:
    """Whose wait counts more: wide jobs."""
    return 0.2 + state.size[state.waiting] / state.processors


def commitment_counts(seed: int, planner: Planner) -> int:
    """No list plan is better where the price of commitment counts too. Who may come counts as who waits does, and by
    favour no more than any of them. Returns how many passes were looked at."""
    passes = 0
    for state, plan in watched(seed, planner):
        waiting = state.waiting.tolist()
        if len(waiting) > 8 or not any(state.size[job] <= state.free for job in waiting):
            continue
        part = dict(zip(waiting, by_size(state) if planner.favour else np.ones(len(waiting)), strict=True))

        def counts(job: int, state: State = state) -> float:
            size = float(state.size[job])
            return size ** (1 + planner.wide) * float(state.estimate[job]) if planner.objective == "awf" else 1.0

        def response(starts: dict[int, int], state: State = state, part: Any = part, counts: Any = counts) -> float:
            each = ((job, at - int(state.submit[job]) + int(state.estimate[job])) for job, at in starts.items())
            return float(sum(part[job] * counts(job) * time for job, time in each))

        usual = response(slow.placed(state, slow.list_orders(state)[0]))
        here = (state.submit >= 0) & (state.submit <= state.now)  # the column has been filled since
        price = planner.commit * min(1.0, *part.values()) / usual
        came = {int(job): price * counts(int(job)) for job in np.flatnonzero(here)}

        def value(
            starts: dict[int, int], state: State = state, usual: float = usual, came: Any = came, of: Any = response
        ) -> float:
            return float(of(starts)) / usual + slow_commitment(state, starts, came)

        no_list_is_better(state, plan, value, 1e-9)
        passes += 1
    return passes


@pytest.mark.slow
@pytest.mark.parametrize(
    "planner", [Planner("af"), Planner("awf", wide=0.5), Planner("af", favour=by_size)], ids=["af", "wide", "favour"]
)
def test_the_price_of_commitment_counts(planner: Planner) -> None:
    planner = replace(planner, decodes=20, long_s=None, commit=0.7)
    assert sum(commitment_counts(seed, planner) for seed in range(40)) > 100


def test_who_knows_who_comes_has_no_price_of_commitment() -> None:
    with pytest.raises(SettingError, match="it has no commit"):
        policy("offline-af:commit=0.5")


def long_waits_count(seed: int) -> int:
    """No list plan is better where a long wait counts more than its seconds, and in AWF wide jobs more than theirs."""
    passes, long_s, wide = 0, 40, 0.5
    for state, plan in watched(seed, Planner("awf", decodes=20, long_s=long_s, wide=wide)):
        waiting = state.waiting.tolist()
        if len(waiting) > 20:
            continue

        def value(starts: dict[int, int], state: State = state) -> float:
            total = 0.0
            for job, at in starts.items():
                wait, d, size = at - int(state.submit[job]), int(state.estimate[job]), int(state.size[job])
                total += d * size ** (1 + wide) * (wait + long_s * (wait / long_s) ** 4 + d)
            return total

        no_list_is_better(state, plan, value, 1e-12)
        passes += 1
    return passes


@pytest.mark.slow
def test_long_waits_and_wide_jobs_count() -> None:
    assert sum(map(long_waits_count, range(40))) > 200


def promises_are_kept_as_well_as_by_lists(seed: int) -> int:
    """No list plan that keeps all promises is better: those that it would break come first when it is made again.
    Returns how many list plans were made again."""
    rng, patient, again = random.Random(seed), 0.1, 0
    jobs, capacity = random_jobs(rng)
    workload = workload_of(with_deadlines(rng, jobs), capacity)
    seen: list[tuple[State, Plan]] = []
    Stepper(
        workload, Cluster(capacity[0]), Planner("af", 0, long_s=None, patient=patient), np.array(workload.limit),
        see=lambda state, plan: seen.append((state, plan)),
    ).advance()  # fmt: skip
    for state, plan in seen:
        waiting, estimate = state.waiting.tolist(), state.estimate.tolist()
        if len(waiting) > 10 or not any(state.size[job] <= state.free for job in waiting):
            continue
        accepted = {job for job in waiting if plan.deadlines.get(job, -1) >= 0}
        due = {job: plan.deadlines[job] if job in accepted else plan.promised[job] + estimate[job] for job in waiting}

        def value(starts: dict[int, int], state: State = state, due: Any = due, accepted: Any = accepted) -> float:
            if any(at + state.estimate[job] > due[job] for job, at in starts.items()):
                return np.inf
            ends = {job: at - int(state.submit[job]) + int(state.estimate[job]) for job, at in starts.items()}
            return sum((patient if job in accepted else 1.0) * end for job, end in ends.items())

        lists = []
        for order in slow.list_orders(state):
            starts, urgent = dict[int, int](), set[int]()
            for _ in range(1 + REPAIRS):
                rest = [job for job in order if job not in urgent and job not in accepted]
                soon = sorted(waiting, key=due.__getitem__)
                last = [job for job in soon if job in accepted and job not in urgent]
                starts = slow.placed(state, [*(job for job in soon if job in urgent), *rest, *last])
                late = {job for job, at in starts.items() if at + estimate[job] > due[job]} - urgent
                if not late:
                    break
                urgent |= late
                again += 1
            lists.append(value(starts))
        assert value(starts_of(state, plan)) <= min(lists) * (1 + 1e-12), (seed, state.now)
    return again


@pytest.mark.slow
def test_promises_are_kept_as_well_as_by_lists() -> None:
    assert sum(map(promises_are_kept_as_well_as_by_lists, range(80))) > 1000


@pytest.mark.slow
def test_same_seed_same_starts_and_another_seed_others() -> None:
    from dovetail.workloads.lublin import lublin

    workload = lublin(800, 32, seed=4, load=1.0)
    starts = [replay(workload, policy("plan-awf"), seed=seed).start.tolist() for seed in (3, 3, 4)]
    assert starts[0] == starts[1] != starts[2]


def test_powers_and_the_least_cost() -> None:
    rng = random.Random(5)
    for _ in range(300):
        q, d, m = rng.randrange(10**5), rng.randrange(1, 10**5), rng.randrange(1, 7)
        f = q + d
        assert gap(float(f), float(q), m) == pytest.approx((f**m - q**m) / d, rel=1e-12)
        floats = np.zeros((FLOAT_ROWS, TERMS + 1))
        floats[SCALE, :TERMS] = [rng.choice([0.0, 0.0, rng.random()]) for _ in range(TERMS)]
        floats[SCALE, SPAN] = 0.0  # not a cost of one job
        floats[SCALE, PASF] *= 1e-9
        floats[RHO, 0] = rng.uniform(0, 2e5)
        rule = Planner("p2sf", long_s=rng.choice([None, 10**5])).rule()
        rule = rule._replace(space=rule.space._replace(floats=floats))
        size = rng.randrange(1, 100)
        low = least(rule, size, d, float(q))
        for wait in (q, q + 1, q + rng.randrange(10**6), floats[RHO, 0], floats[RHO, 0] / 2):
            if wait >= q:
                here = cost_at(rule, size, d, float(wait))
                assert low <= here + 1e-9 * max(abs(here), abs(low))


def test_each_term_of_a_cost_is_what_its_formula_says() -> None:
    """One term at a time, of weight 1."""
    rng = random.Random(6)
    for _ in range(40):
        q, d, size = rng.randrange(100), rng.randrange(1, 100), rng.randrange(1, 9)
        level, rho = rng.randrange(4), rng.uniform(0, 100)
        over, under = (((q + d) ** m - q**m) / m for m in (level + 2, level + 1))
        long_s = rng.choice((None, rng.randrange(1, 90)))
        counts = q + (long_s * (q / long_s) ** 4 if long_s else 0)
        f = counts + d
        wanted = {
            AF: f, AWF: 1.5 * size * d * f, BSLD: max(1, f / max(d, 10)), WAIT: counts / 2,
            PASF: size * (level + 1) * (over - rho * under),
        }  # fmt: skip
        for term, value in wanted.items():
            floats = np.zeros((FLOAT_ROWS, TERMS + 1))
            floats[SCALE, term], floats[RHO, 0] = 1.0, rho
            rule = Planner(f"pasf:{level}", long_s=long_s).rule()
            rule = rule._replace(space=rule.space._replace(floats=floats))
            assert cost_at(rule, size, d, float(q)) == pytest.approx(value, rel=1e-9), term


def test_objectives_are_the_metrics() -> None:
    for seed in range(20):
        for state, plan in watched(seed, Planner("af", decodes=5))[:5]:
            starts = starts_of(state, plan)
            jobs = np.array(list(starts), np.int64)
            wait = np.array(list(starts.values()), np.int64) - state.submit[jobs]
            measured = Outcomes(state.size[jobs], state.estimate[jobs], wait)
            wanted = {"af": af_s(measured), "awf": awf_s(measured), "bsld": bsld(measured), "p2sf": pasf_s(measured, 2)}
            for name, number in wanted.items():
                assert slow.value(name, state, starts) == pytest.approx(number, rel=1e-12)


def test_names_and_settings() -> None:
    made = policy("plan:objective=af+0.5*p2sf,decodes=50,window=20,foresight=4,starve=2d,ms=20,hot=1,cold=0.1")
    assert made == Planner("af+0.5*p2sf", 50, 20, 4, 172_800, 20.0, 1.0, 0.1, name=made.name)
    assert policy("plan-bsld") == Planner("bsld", foresight=4, long_s=2 * 86400, commit=0.5, name="plan-bsld")
    assert policy("plan-p2sf") == Planner("p2sf", 200, foresight=4, name="plan-p2sf")
    assert policy("plan-af:long=none").long_s is None  # type: ignore[attr-defined]
    assert policy("plan-af") == Planner("af", long_s=8 * 86400, name="plan-af")
    weights, level = terms(parse("2*af+bsld+af+0.5*pasf:3+wait+3*makespan"))
    assert (weights.tolist(), level) == ([3.0, 0.0, 1.0, 0.5, 1.0, 3.0], 3)
    for text, says in {
        "plan:objective=waits": "no objective 'waits'; choose from af, awf, bsld, p2sf",
        "plan:objective=0*af": "the weight '0' is not a number above 0",
        "plan:objective=p2sf+pasf:3": "the search knows one PaSF",
        "plan:objective=pasf:1.5": "of a whole level from 0 to 16",
        "plan:ms=0": "must be above 0",
        "plan:window=0": "must be from 1 to 10,000 jobs",
        "plan:decodes=-1": "must be from 0 to",
        "plan:foresight=-1": "must be from 0 to 256 jobs",
        "plan:hot=0.1,cold=1": "hot must not be below cold",
        "plan:sweep=once": "no setting 'sweep'",
        "plan-xyz": "no policy 'plan-xyz'",
    }.items():
        with pytest.raises(SettingError, match=says.replace("*", r"\*")):
            policy(text)


@pytest.mark.slow
def test_a_long_queue_is_planned_as_a_whole() -> None:
    """With a window of three, all waiting jobs together are still arranged no worse than by any list."""
    better = 0
    for seed in range(25):
        for state, plan in watched(seed, Planner("awf", decodes=40, window=3, long_s=None)):
            if len(state.waiting) <= 3:
                continue
            got = slow.value("awf", state, starts_of(state, plan))
            lists = slow.list_orders(state)
            best = min(slow.value("awf", state, slow.placed(state, order)) for order in lists)
            assert got <= best * (1 + 1e-12), (seed, state.now)
            better += got < best * (1 - 1e-9)
    assert better > 0


def wide_first(unit: float) -> Planner:
    """Counts a second of a wide job's wait as 1000 of that unit, of others' as one."""

    class WideFirst(Planner):
        def weigh(self, state: State) -> Floats:
            return np.where(state.size[state.waiting] > 1, 1000.0, 1.0) * unit

    return WideFirst("wait")


def narrow_and_wide() -> Workload:
    rows = [(0, 2), (1, 1), (1, 1), (1, 1), (1, 1), (2, 2)]
    return workload_of([SlowJob(submit, (size,), 10, 10) for submit, size in rows], (2,))


def test_a_user_says_what_waiting_counts() -> None:
    plain, weighed = (
        [replay(narrow_and_wide(), made, event_by_event=step).start[-1] for step in (False, True)]
        for made in (Planner("wait"), wide_first(1.0))
    )
    assert plain == [30, 30]
    assert weighed == [10, 10]


def test_what_waiting_counts_is_in_any_unit() -> None:
    """Only how much more one job counts than another matters."""
    assert replay(narrow_and_wide(), wide_first(2.0**-30)).start[-1] == 10


def test_a_budget_in_milliseconds_plans_no_worse_than_none() -> None:
    from dovetail.workloads.lublin import lublin

    workload = lublin(300, 32, seed=4, load=1.0)
    timed, listed = (af_s(outcomes(replay(workload, policy(p)))) for p in ("plan:ms=2", "list-fcfs"))
    assert timed < listed


def test_foreseen_jobs_never_start_and_nobody_waits_for_them_on_an_idle_cluster() -> None:
    for seed in range(40):
        workload, processors, estimate, feedback = drawn(seed)
        for known in (estimate, np.asarray(workload.runtime)):
            chosen = Planner("bsld", decodes=20, foresight=6, starve_s=10**6)
            made = replay(workload, chosen, cluster=Cluster(processors), estimate=known, feedback=feedback)
            assert check_schedule(made) == []  # all jobs start, and each once


def sparse_jobs() -> Workload:
    """Many short jobs with long limits on a wide machine: a plan has entries for all that runs."""
    rng, submit, jobs = random.Random(1), 0, []
    for _ in range(400):
        submit += rng.randint(50, 150)
        jobs.append(SlowJob(submit, (rng.randint(1, 20),), rng.randint(100, 1500), rng.randint(1500, 90_000)))
    return workload_of(jobs, (1000,))


@pytest.mark.slow
def test_a_plan_has_room_for_all_who_may_come() -> None:
    """Beside hundreds of running jobs, also in a replay that begins with room for one."""
    workload = sparse_jobs()
    estimate = np.asarray(workload.limit)
    rule = Planner("bsld", decodes=3, foresight=256).rule()
    starts = []
    for room in (1, 64, 1024):
        at = new_replay(workload, Cluster(1000), rule, estimate, room=room)
        at.advance()
        starts.append(at.start.tolist())
    assert starts[0] == starts[1] == starts[2]


def test_weights_must_be_numbers() -> None:
    class Wrong(Planner):
        def weigh(self, state: State) -> Floats:
            return np.full(len(state.waiting), -1.0)

    with pytest.raises(PolicyError, match="one number of at least 0 for each waiting job"):
        replay(sparse_jobs(), Wrong("wait"))


def test_numbers_beyond_all_floats_leave_a_plan() -> None:
    jobs = [SlowJob(0, (2**30,), 2**58, 2**58) for _ in range(3)]
    made = replay(workload_of(jobs, (2**30,)), Planner("pasf:16"))
    assert sorted(made.start.tolist()) == [0, 2**58, 2**59]
