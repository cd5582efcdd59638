"""Every cell of a study is what a replay of its own would be: no cell has another one's run."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

from dovetail.engine.replay import replay
from dovetail.io.read import read_workload
from dovetail.io.sites import read_site
from dovetail.io.swf import write_swf
from dovetail.metrics import summarize
from dovetail.model.schedule import Schedule
from dovetail.studies.store import Store
from dovetail.studies.task import Cell
from dovetail.workloads.filters import clean
from dovetail.workloads.lublin import lublin
from dovetail.workloads.scenarios import apply
from tests.studies.small import ran

SITE = 'busy_w = 20\nidle_w = 3\ntariff = 0.05\n[price]\nfile = "prices.csv"\ncolumn = "eur"\n'
SCENARIOS = (
    "power=5",
    "power=500",
    "power=5..9",
    "scale-load=1.3",
    "sample=0.7",
    "deadlines=0.5",
    "set-load=0.7",
    "nudge=0.5",
)
POLICIES = ("easy", "list-sjf", "conservative", "thrift", "daily")


def direct(folder: Path, cell: Cell, steps: tuple[str, ...]) -> tuple[Schedule, dict[str, float]]:
    """A cell without a study: read, cleaned, changed, replayed and measured, one call after another."""
    site = read_site(folder / f"{cell.trace}.toml")
    workload = clean(read_workload(folder / f"{cell.trace}.swf"), ["standard"])
    for step in steps:
        workload = apply(workload, step, seed=cell.seed)
    schedule = replay(workload, cell.policy, estimate=cell.estimate, seed=cell.seed, site=site)
    return schedule, summarize(schedule, site)


def at_site(folder: Path, name: str, busy_w: int = 20) -> str:
    """A trace of a study, at a site of its own where every other hour is dear."""
    (folder / f"{name}.toml").write_text(SITE.replace("20", str(busy_w)))
    rows = "".join(f"2024-01-01 {hour:02d}:00,{90 if hour % 2 else 10}\n" for hour in range(24))
    (folder / "prices.csv").write_text(f"time,eur\n{rows}")
    return f'[[traces]]\npath = "{name}.swf"\nsite = "{name}.toml"\n'


def kept(store: Store, name: str) -> tuple[Schedule, dict[str, float]]:
    schedule = store.schedule(name)
    assert schedule is not None
    frame = store.frame({name})
    return schedule, frame.row(0, named=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_every_cell_of_a_random_study_equals_its_direct_replay(tmp_path: Path, seed: int) -> None:
    draw = Random(seed)
    text = 'name = "random"\n'
    scenarios: list[list[str]] = [[], *([one] for one in draw.sample(SCENARIOS, 2)), ["power=5"], ["power=6"]]
    scenarios = [list(one) for one in dict.fromkeys(map(tuple, scenarios))]
    text += f"scenarios = {scenarios!r}\nseeds = {draw.sample(range(99), 2)!r}\n"
    text += f"policies = {draw.sample(POLICIES, 3)!r}\nestimates = {draw.sample(['limit', 'runtime', 'recent'], 2)!r}\n"
    for name in ("a", "b"):
        write_swf(lublin(draw.randrange(20, 60), 16, seed=draw.randrange(99), load=0.9), tmp_path / f"{name}.swf")
        text += at_site(tmp_path, name, draw.randrange(10, 30))
    store, tasks = ran(tmp_path, text)
    assert len(tasks) == 2 * len(scenarios) * 2 * 3 * 2
    for task in tasks:
        schedule, metrics = kept(store, task.name)
        wanted, measured = direct(tmp_path, task.cell, tuple(task.cell.scenario.split()))
        assert schedule.workload.digest() == wanted.workload.digest()
        for column in ("start", "arrive", "promised_first", "promised_last", "said", "accepted"):
            assert np.array_equal(getattr(schedule, column), getattr(wanted, column)), (task.cell, column)
        assert {key: repr(metrics[key]) for key in measured} == {key: repr(one) for key, one in measured.items()}


def test_jobs_that_draw_more_power_use_more_energy(tmp_path: Path) -> None:
    write_swf(lublin(300, 64, seed=1, load=0.6), tmp_path / "a.swf")
    text = 'name = "power"\npolicies = ["easy"]\nscenarios = ["power=5", "power=500"]\n'
    store, tasks = ran(tmp_path, text + at_site(tmp_path, "a"))
    found = [kept(store, task.name)[1] for task in tasks]
    wanted = [direct(tmp_path, task.cell, (task.cell.scenario,))[1] for task in tasks]
    for metric in ("energy_kwh", "energy_jobs_kwh", "energy_cost"):
        assert [one[metric] for one in found] == [one[metric] for one in wanted]
    assert found[1]["energy_jobs_kwh"] == pytest.approx(100 * found[0]["energy_jobs_kwh"])
    assert [round(one["energy_jobs_kwh"], 2) for one in found] == [0.58, 58.17]
