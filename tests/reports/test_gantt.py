"""Gantt charts: which stretch of a trace and which data go into the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.model.cluster import Cluster, NodeKind, by_node
from dovetail.model.requests import requests_of
from dovetail.model.schedule import Schedule
from dovetail.reports.gantt import Chart, Stretch, accelerators, fragment, worst_stretch
from dovetail.units import printable
from tests.metrics.schedules import feasible, schedule_of
from tests.reports.charts import EVIL, first_come, paused, unpacked
from tests.reports.nodes import MIXED, placed, random_jobs

# The stretch.


def slow_stretch(schedules: Sequence[Schedule], most: int) -> tuple[int, Stretch]:
    """The seconds waited in the best stretch, and the first such: every arrival, every end, second by second."""
    best, found = -1, Stretch(0, 0)
    last = max(int(s.end.max()) for s in schedules)
    for begin in sorted({int(at) for s in schedules for at in s.arrive}):
        stop = begin
        while stop < last and all(np.sum((s.start < stop + 1) & (s.end > begin)) <= most for s in schedules):
            stop += 1
        seconds = np.arange(begin, stop)[:, None]
        waited = sum(int(np.sum((s.arrive <= seconds) & (s.start > seconds))) for s in schedules)
        if stop > begin and waited > best:
            best, found = waited, Stretch(begin, stop)
    return best, found


@pytest.mark.slow
@given(feasible(least=2, most=10), st.integers(1, 10))
@settings(max_examples=150, deadline=None)
def test_the_stretch_is_the_one_with_most_waiting(schedule: Schedule, most: int) -> None:
    schedules = [schedule, paused(schedule, 30)]
    best, expected = slow_stretch(schedules, most)
    if best < 0:
        chosen = worst_stretch(schedules, most)
        assert chosen.from_at == chosen.to_at
    else:
        assert worst_stretch(schedules, most) == expected


def test_where_too_many_start_at_once_another_stretch_is_taken() -> None:
    schedule = schedule_of([(0, 0, 1, 5), (0, 0, 1, 5), (0, 0, 1, 5), (100, 100, 1, 5)])
    assert worst_stretch([schedule], 2) == Stretch(100, 105)
    assert worst_stretch([schedule], 3) == Stretch(0, 100)


def test_the_opening_lies_within_the_stretch() -> None:
    header, _ = unpacked(fragment([Chart("fcfs", first_come(6_000, 100, 1))], most_jobs=5_000))
    (begin, end), (first, last) = header["stretch"], header["opening"]
    assert begin <= first < last <= end
    assert last - first < end - begin


# The data.


@pytest.mark.parametrize("most", [10_000, 500])
def test_the_data_are_those_of_the_schedule(most: int) -> None:
    schedule = first_come(2_000, 100, 2)
    other = replace(schedule, start=np.where(schedule.start % 7 == 0, -1, schedule.start))
    header, charts = unpacked(fragment([Chart("a", schedule), Chart("b", other)], most_jobs=2 * most))
    begin, end = header["stretch"]
    assert [chart["title"] for chart in header["charts"]] == ["a", "b"]
    assert [chart["started"] for chart in header["charts"]] == [2_000, np.count_nonzero(other.start >= 0)]
    for shown, chart in zip((schedule, other), charts, strict=True):
        ran = [j for j in range(2_000) if shown.start[j] >= 0 and shown.start[j] < end and shown.end[j] > begin]
        jobs = np.array(sorted(ran, key=lambda j: shown.start[j]))
        assert len(jobs) <= most
        assert chart["id"].tolist() == shown.workload["id"][jobs].tolist()
        assert np.cumsum(chart["start"]).tolist() == shown.start[jobs].tolist()
        assert chart["wait"].tolist() == shown.wait[jobs].tolist()
        for column in ("runtime", "limit", "size"):
            assert chart[column].tolist() == shown.workload[column][jobs].tolist()
        for column, texts in (("user", "users"), ("name", "names")):
            called = [printable(shown.workload.called(column, n)) for n in shown.workload[column][jobs].tolist()]
            assert [header[texts][code] for code in chart[column]] == called
        late = [at for at, start in zip(shown.arrive, shown.start, strict=True) if at < end and not 0 <= start < end]
        assert np.cumsum(chart["late"]).tolist() == sorted(late)


def test_users_with_most_work_come_first() -> None:
    schedule = first_come(2_000, 100, 3)
    header, _ = unpacked(fragment([Chart("a", schedule)]))
    work: dict[str, int] = {}
    for user, size, runtime in zip(*(schedule.workload[c].tolist() for c in ("user", "size", "runtime")), strict=True):
        work[f"user{user}"] = work.get(f"user{user}", 0) + size * runtime
    assert header["users"] == sorted(work, key=lambda user: -work[user])


def test_no_foreign_text_is_in_the_page_as_it_is_written() -> None:
    schedule = first_come(50, 10, 4)
    evil = replace(schedule, workload=replace(schedule.workload, name=EVIL[0]))
    made = fragment([Chart(EVIL[1], evil)])
    outside = made.html.replace(made.html.split('data-part="data">')[1].split("</script>")[0], "")
    assert "alert" not in outside
    assert made.html.count("<script") == made.html.count("</script") == 1
    assert "</script" not in made.script
    assert "</style" not in made.style


def test_scattered_jobs_make_the_stretch_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = first_come(2_000, 100, 5)
    _, (all_of_it,) = unpacked(fragment([Chart("a", schedule)]))
    limit = len(all_of_it["rectangle_job"]) - 1
    monkeypatch.setattr("dovetail.reports.gantt.MOST_RECTANGLES", limit)
    _, (less,) = unpacked(fragment([Chart("a", schedule)], most_jobs=2_000))
    assert len(less["rectangle_job"]) <= limit
    assert 900 < len(less["id"]) <= 1_000


def test_what_cannot_be_one_fragment_is_refused() -> None:
    schedule = first_come(20, 10, 6)
    with pytest.raises(ValueError, match="at least one chart"):
        fragment([])
    with pytest.raises(ValueError, match="same workload on the same cluster"):
        fragment([Chart("a", schedule), Chart("b", first_come(20, 10, 7))])
    with pytest.raises(ValueError, match="same workload on the same cluster"):
        fragment([Chart("a", schedule), Chart("b", replace(schedule, cluster=Cluster(11)))])


# Nodes.


def test_nodes_and_requests_are_in_the_page() -> None:
    schedule = placed(random_jobs(600, MIXED, 3), MIXED)
    late = replace(schedule, start=schedule.start + 1_000)
    header, charts = unpacked(fragment([Chart("a", schedule), Chart("b", late)]))
    nodes = header["nodes"]
    assert nodes["resources"] == ["cores", "memory_gb", "gpus"]
    assert nodes["kinds"] == [["gpu", 32, [16, 64, 2]], ["plain", 32, [32, 128, 0]]]
    assert (nodes["accelerators"], nodes["shared"]) == ([2], 2)
    asked = requests_of(schedule.workload, MIXED)
    read = header["column"]
    units, exclusive, share = (read(nodes["requests"][name]) for name in ("units", "exclusive", "share"))
    need = np.column_stack([read(place) for place in nodes["requests"]["need"]])
    assert len(units) < 300  # few differ
    for chart in charts:
        jobs, which = chart["id"] - 1, chart["request"]
        assert units[which].tolist() == asked.units[jobs].tolist()
        assert exclusive[which].tolist() == asked.exclusive[jobs].tolist()
        assert share[which].tolist() == asked.share[jobs].tolist()
        assert need[which].tolist() == asked.need[jobs].tolist()
        cores = np.bincount(chart["rectangle_job"].cumsum(), chart["rectangle_lanes"], len(jobs))
        plain = exclusive[which] == 0
        assert cores[plain].tolist() == (asked.units * asked.need[:, 0])[jobs][plain].tolist()


def test_without_a_placement_of_all_nothing_is_said_of_nodes() -> None:
    schedule = placed(random_jobs(50, MIXED, 4), MIXED)
    made = fragment([Chart("a", schedule), Chart("b", replace(schedule, placement=None))])
    assert "nodes" not in unpacked(made)[0]
    assert "the cluster counts processors" in made.html
    assert "A row is a node" in fragment([Chart("a", schedule)]).html


def test_what_counts_as_an_accelerator() -> None:
    kind = NodeKind("x", 1, (4, 8, 8, 1, 1))
    assert accelerators(by_node(("cores", "memory", "memory_gb", "mics", "gpus"), (kind,), shared="gpus")) == [3, 4]
    assert accelerators(by_node(("cores", "memory"), (NodeKind("x", 1, (4, 8)),))) == []
