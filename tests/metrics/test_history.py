"""What happened: held against slow and obvious counting on random small logs, and against a real log."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from statistics import fmean
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from dovetail.errors import SettingError
from dovetail.io.read import read_workload
from dovetail.metrics.history import DAYS, LIMITS_S, OTHERS, STEPS, UNKNOWN, History, history_of, written
from dovetail.metrics.over_time import Places
from dovetail.model.cluster import NodeKind, by_node
from dovetail.model.workload import Workload
from tests.conftest import TRACES, needs_traces

EPOCH = 1_774_700_000
"""The end of March 2026: the clock of Berlin skips an hour soon after."""
ZONE = "Europe/Berlin"


def some_log(seed: int, jobs: int = 60) -> Workload:
    """A log with all that may be there: held jobs, jobs that left, unknown runs, no limits, names that are missing."""
    rng = np.random.default_rng(seed)
    wait = rng.choice([0, 1, 7, 300, 5000, 90_000], jobs)
    left = rng.random(jobs) < 0.1
    lost = rng.random(jobs) < 0.1
    columns = {
        "id": np.arange(1, jobs + 1),
        "submit": np.sort(rng.integers(0, 300_000, jobs)),
        "size": rng.choice([1, 2, 3, 4, 5, 64, 100], jobs),
        "runtime": np.where(lost | left, -1, rng.choice([0, 1, 60, 899, 900, 4000, 200_000], jobs)),
        "limit": rng.choice([-1, 60, 900, 901, 3600, 86_400, 10**6], jobs),
        "wait": np.where(left, -1, wait),
        "not_before_s": np.where(rng.random(jobs) < 0.3, rng.integers(0, 6000, jobs), -1),
        "leaves_s": np.where(left, rng.integers(0, 9000, jobs), -1),
        "user": rng.integers(-1, 6, jobs),
        "partition": rng.integers(0, 2, jobs),
        "ran_on": rng.integers(-1, 4, jobs),
        "units": np.ones(jobs, np.int64),
        "unit_gpus": rng.integers(0, 3, jobs),
    }
    names = {"user": tuple("abcdef"), "partition": ("long", "short"), "ran_on": ("c0", "c[0-1]", "c[1-2]", "c2")}
    return Workload("some", columns, 128, header={"UnixStartTime": (str(EPOCH),)}, names=names)


PLACES = Places(np.array([0, 1, 3, 5, 6]), np.array([0, 0, 1, 1, 2, 2]), 3)
CLUSTER = by_node(("cores", "gpus"), (NodeKind("n", 4, (32, 2)),))


def ran(log: Workload) -> list[int]:
    return [at for at in range(len(log)) if log["wait"][at] >= 0 and log.runtime[at] >= 0]


def waits(log: Workload, at: int) -> tuple[int, int]:
    """Since it could start, and since its submission."""
    since = int(log["wait"][at])
    return max(since - max(int(log["not_before_s"][at]), 0), 0), since


def check_group(found: History, by: str, name: str, log: Workload, members: list[int]) -> None:
    groups = next(one for one in (found.entire, *found.by, found.week) if one is not None and one.by == by)
    at = groups.names.index(name)
    assert groups.jobs[at] == len(members)
    assert groups.core_h[at] == pytest.approx(sum(int(log.size[i] * log.runtime[i]) for i in members) / 3600)
    for kind, spread in enumerate((groups.wait, groups.since_submit)):
        some = [waits(log, i)[kind] for i in members]
        assert spread.mean_s[at] == pytest.approx(fmean(some))
        assert spread.longest_s[at] == max(some)
        for mark, values in ((50, spread.median_s), (90, spread.p90_s), (99, spread.p99_s)):
            assert values[at] == pytest.approx(np.percentile(some, mark))


@pytest.mark.parametrize("seed", range(12))
def test_waits_by_group(seed: int) -> None:
    log = some_log(seed)
    found, jobs = history_of(log, ZONE, top=100), ran(log)
    check_group(found, "all", "all jobs", log, jobs)
    for number in set(log["user"][jobs].tolist()):
        name = "abcdef"[number] if number >= 0 else UNKNOWN
        check_group(found, "user", name, log, [i for i in jobs if log["user"][i] == number])
    for name, low, high in (("1", 1, 1), ("3–4", 3, 4), ("65–128", 65, 128)):
        if some := [i for i in jobs if low <= log.size[i] <= high]:
            check_group(found, "cores", name, log, some)
    for name, some in {
        "no limit": [i for i in jobs if log.limit[i] < 0],
        "up to 15 m": [i for i in jobs if 0 < log.limit[i] <= LIMITS_S[0]],
        "up to 1 h": [i for i in jobs if 900 < log.limit[i] <= 3600],
        "over 7 d": [i for i in jobs if log.limit[i] > LIMITS_S[-1]],
    }.items():
        if some:
            check_group(found, "limit", name, log, some)
    assert all(one.jobs.sum() == len(jobs) and (one.jobs > 0).all() for one in found.by)


@pytest.mark.parametrize("seed", range(4))
def test_hours_are_those_of_the_clock_on_the_wall(seed: int) -> None:
    log = some_log(seed, 200)
    found, by = history_of(log, ZONE), dict[tuple[int, int], list[int]]()
    for i in ran(log):
        when = datetime.fromtimestamp(EPOCH + int(log.submit[i]), ZoneInfo(ZONE))
        by.setdefault((when.weekday(), when.hour), []).append(i)
    assert found.week is None or found.week.jobs.sum() == len(ran(log))
    for hour in {hour for _, hour in by}:
        members = sorted(i for (_, other), some in by.items() if other == hour for i in some)
        check_group(found, "hour of submission", f"{hour:02d}–{hour + 1:02d} h", log, members)
    for day in {day for day, _ in by}:
        members = sorted(i for (other, _), some in by.items() if other == day for i in some)
        check_group(found, "day of submission", DAYS[day], log, members)
    assert written(EPOCH, 0, ZONE) == f"{datetime.fromtimestamp(EPOCH, ZoneInfo(ZONE)):%Y-%m-%d %H:%M}"


def test_hours_of_the_week() -> None:
    log = some_log(3, 300)
    log = Workload("long", {**log.columns, "submit": 7 * log.submit}, 128, header=log.header, names=log.names)
    found = history_of(log, "UTC")
    for i in ran(log):
        when = datetime.fromtimestamp(EPOCH + int(log.submit[i]), UTC)
        same = [
            j for j in ran(log)
            if (then := datetime.fromtimestamp(EPOCH + int(log.submit[j]), UTC)).hour == when.hour
            and then.weekday() == when.weekday()
        ]  # fmt: skip
        name = f"{DAYS[when.weekday()]} {when.hour:02d}–{when.hour + 1:02d} h"
        check_group(found, "hour of the week", name, log, same)


def test_of_many_names_the_largest_are_told_apart() -> None:
    log = some_log(5)
    found = history_of(log, top=2)
    users = next(one for one in found.by if one.by == "user")
    work = {
        number: sum(int(log.size[i] * log.runtime[i]) for i in ran(log) if log["user"][i] == number)
        for number in set(log["user"][ran(log)].tolist())
    }
    largest = sorted(work, key=lambda number: -work[number])[:2]
    assert users.names == (*("abcdef"[n] if n >= 0 else UNKNOWN for n in largest), OTHERS)
    check_group(found, "user", OTHERS, log, [i for i in ran(log) if log["user"][i] not in largest])


@pytest.mark.parametrize("seed", range(8))
def test_limits(seed: int) -> None:
    log = some_log(seed)
    found = history_of(log, top=100)
    for use in found.limits:
        for at, name in enumerate(use.names):

            def mine(i: int, by: str = use.by, name: str = name) -> bool:
                return by == "all" or (log.called(by, int(log[by][i])) or UNKNOWN) == name

            members = [i for i in ran(log) if mine(i)]
            has = [i for i in members if log.limit[i] > 0]
            assert (use.jobs[at], use.without[at]) == (len(has), len(members) - len(has))
            if has:
                shares = [log.runtime[i] / log.limit[i] for i in has]
                assert use.used[at] == pytest.approx(np.percentile(shares, [10, 50, 90]))
            assert use.reached[at] == sum(log.runtime[i] >= log.limit[i] for i in has)
            assert use.asked_core_h[at] == pytest.approx(sum(log.size[i] * log.limit[i] for i in has) / 3600)
            part = sum(log.size[i] * min(log.runtime[i], log.limit[i]) for i in has) / 3600
            assert use.used_core_h[at] == pytest.approx(part)
    steps = [0] * (STEPS + 1)
    for i in ran(log):
        if log.limit[i] > 0:
            steps[min(int(STEPS * int(log.runtime[i]) // int(log.limit[i])), STEPS)] += 1
    assert found.limit_jobs.tolist() == steps


@pytest.mark.parametrize("seed", range(6))
def test_over_time(seed: int) -> None:
    """Second by second: what runs, on which nodes, and what waits."""
    log = some_log(seed, 25)
    short = {name: log[name] // 100 for name in ("submit", "wait", "runtime", "not_before_s", "leaves_s")}
    short = {name: np.where(log[name] < 0, -1, values) for name, values in short.items()}
    log = Workload("short", {**log.columns, **short}, 128, header=log.header, names=log.names)
    line = history_of(log, ZONE, CLUSTER, PLACES, bins=30).over_time
    begin, end = int(line.edges[0]), int(line.edges[-1])
    assert begin == log.submit[0]
    hosts = [PLACES.node[PLACES.first[v] : PLACES.first[v + 1]].tolist() for v in range(4)]
    cores, gpus, nodes, queue, backlog = ([0.0] * (end - begin) for _ in range(5))
    used: list[set[int]] = [set() for _ in cores]
    for i in range(len(log)):
        start = int(log.submit[i] + log["wait"][i])
        comes = int(log.submit[i] + max(log["not_before_s"][i], 0))
        if log["wait"][i] >= 0 and log.runtime[i] >= 0:
            for second in range(start, start + int(log.runtime[i])):
                cores[second - begin] += log.size[i]
                gpus[second - begin] += log["unit_gpus"][i]
                if log["ran_on"][i] >= 0:
                    used[second - begin].update(hosts[log["ran_on"][i]])
            leaves, work = start, log.size[i] * log.runtime[i] / 3600
        elif log["leaves_s"][i] >= 0:
            leaves, work = int(log.submit[i] + log["leaves_s"][i]), 0.0
        else:
            continue
        for second in range(comes, min(leaves, end)):
            queue[second - begin] += 1
            backlog[second - begin] += work
    nodes = [len(some) for some in used]
    for values, slow in (
        (line.busy["cores"] * 128, cores), (line.busy["gpus"] * 8, gpus), (line.busy["nodes"] * 3, nodes),
        (line.queue_jobs, queue), (line.backlog_core_h, backlog),
    ):  # fmt: skip
        means = [fmean(slow[a - begin : b - begin]) for a, b in zip(line.edges[:-1], line.edges[1:], strict=True)]
        assert values == pytest.approx(means, abs=1e-9)
    coarse = line.coarser(7)
    assert len(coarse.queue_jobs) <= 7
    assert coarse.edges[-1] == end
    first = coarse.edges[1] - begin
    assert coarse.busy["cores"][0] * 128 == pytest.approx(fmean(cores[:first]))


def test_what_is_left_out_is_counted() -> None:
    log = some_log(1)
    found = history_of(log)
    left = sum(1 for i in range(len(log)) if log["wait"][i] < 0)
    lost = len(log) - left - len(ran(log))
    assert left
    assert lost
    assert found.set_aside == {
        "no recorded wait, run time or size": lost,
        "left the queue before it started": left,
    }
    assert int(found.entire.jobs[0]) + sum(found.set_aside.values()) == len(log)


def test_the_longest_waits_come_with_their_reasons() -> None:
    log = some_log(2)
    reason = np.where(np.arange(len(log)) % 2, 0, -1)
    log = Workload("why", {**log.columns, "reason": reason}, 128, names={**log.names, "reason": ("Dependency\x1b",)})
    found = history_of(log, top=5)
    expected = sorted(ran(log), key=lambda i: (-int(log["wait"][i]), i))[:5]
    assert [one.job for one in found.longest] == [int(log["id"][i]) for i in expected]
    assert [one.reason for one in found.longest] == [
        "Dependency\N{REPLACEMENT CHARACTER}" if i % 2 else "" for i in expected
    ]
    assert found.longest[0].submitted == ""  # the log does not say when it began
    assert (found.since, found.week) == ("", None)
    assert any("when it began" in text for text in found.not_known)


@pytest.mark.parametrize("epoch", ["0", "-5", "99999999999999999", "soon"])
def test_a_time_that_no_calendar_has_is_none(epoch: str) -> None:
    log = some_log(4)
    log = Workload("odd", log.columns, 128, header={"UnixStartTime": (epoch,)}, names=log.names)
    assert history_of(log).since == ""


def test_a_log_without_waits_is_refused() -> None:
    log = some_log(0)
    with pytest.raises(SettingError, match="no job whose wait and run time are recorded"):
        history_of(Workload("none", {**log.columns, "wait": np.full(len(log), -1)}, 128))


def test_a_single_job_of_no_length() -> None:
    ones = {name: np.array([value]) for name, value in
            {"id": 1, "submit": 5, "size": 1, "runtime": 0, "limit": -1, "wait": 0}.items()}  # fmt: skip
    found = history_of(Workload("one", ones, 0))
    assert (found.span_s, found.by, found.limits, len(found.over_time.queue_jobs)) == (0, (), (), 0)
    assert found.guesses


@needs_traces
def test_a_real_log() -> None:
    """KTH-SP2 read by other means: each line's waits and areas, added up."""
    path = TRACES / "papers" / "KTH-SP2.swf.gz"
    with gzip.open(path, "rt") as stream:
        rows = [list(map(int, line.split())) for line in stream if not line.startswith(";")]
    found = history_of(read_workload(path), "Europe/Stockholm")
    all_waits = sorted(row[2] for row in rows)
    assert found.entire.jobs[0] == len(rows) == 28_481
    assert found.entire.wait.mean_s[0] == pytest.approx(sum(all_waits) / len(rows), rel=1e-12)
    assert found.entire.wait.median_s[0] == all_waits[len(rows) // 2]
    assert found.entire.wait.longest_s[0] == all_waits[-1] == 980_040
    work_h = sum(row[3] * row[7] for row in rows) / 3600
    assert found.entire.core_h[0] == pytest.approx(work_h, rel=1e-12)
    line = found.over_time
    assert np.diff(line.edges) @ line.busy["cores"] * 100 / 3600 == pytest.approx(work_h, rel=1e-12)
    waited_h = sum(row[2] for row in rows) / 3600
    assert np.diff(line.edges) @ line.queue_jobs / 3600 == pytest.approx(waited_h, rel=1e-12)
    assert (found.since, found.until) == ("1996-09-23 14:00", "1997-08-29 10:55")  # as its header says
