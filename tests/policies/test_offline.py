"""Policies that know the future: declared, marked, and never by mistake."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dovetail.cli.main import app
from dovetail.engine.contract import check_policy
from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.metrics import af_s
from dovetail.metrics.jobs import outcomes
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.policies.base import Policy
from dovetail.policies.planner import Offline
from dovetail.policies.registry import policy
from dovetail.referee import check_schedule
from tests.policies.published.test_solver import jobs_of
from tests.policies.test_planner import drawn


class Sees(Policy):
    """Starts what fits, and keeps what it was shown."""

    name = "sees"

    def __init__(self) -> None:
        self.seen: list[State] = []

    def decide(self, state: State) -> Plan:
        self.seen.append(replace(state, submit=state.submit.copy()))
        fits = np.cumsum(state.size[state.waiting]) <= state.free
        return Plan(starts=state.waiting[fits].tolist())


class Knows(Sees):
    clairvoyant = True


def test_only_a_clairvoyant_policy_is_shown_the_future() -> None:
    workload = jobs_of([0, 0, 3, 9], [1, 1, 1, 1], [5, 4, 2, 2], 2)
    told = np.array([50, 40, 20, 20])
    honest, knowing = Sees(), Knows()
    for chosen in (honest, knowing):
        replay(workload, chosen, estimate=told)
    assert all(len(state.future) == 0 for state in honest.seen)
    assert all(state.estimate.tolist() == told.tolist() for state in honest.seen)
    assert all(set(state.submit.tolist()) <= {-1, *range(state.now + 1)} for state in honest.seen)
    assert [(state.now, state.future.tolist()) for state in knowing.seen][:3] == [(0, [2, 3]), (3, [3]), (4, [3])]
    assert all(state.estimate.tolist() == [5, 4, 2, 2] for state in knowing.seen)
    assert all(state.submit.tolist() == [0, 0, 3, 9] for state in knowing.seen)


def test_an_offline_plan_waits_for_who_is_worth_it() -> None:
    """One processor: a long job waits, a short one comes in a second. Started at once, the long one costs AF
    (100 + 100) / 2, after the short one (102 + 1) / 2. Nobody on line can know."""
    workload = jobs_of([0, 1], [1, 1], [100, 1], 1)
    assert replay(workload, policy("offline-af"), estimate="runtime").start.tolist() == [2, 1]
    assert replay(workload, policy("offline:foresight=0"), estimate="runtime").start.tolist() == [0, 100]
    assert replay(workload, policy("plan-af"), estimate="runtime").start.tolist() == [0, 100]


def test_an_offline_plan_peeks_and_the_contract_says_so() -> None:
    findings = check_policy(policy("offline-af:decodes=20"), cases=4)
    broken = [finding.clause for finding in findings if finding.broken]
    assert broken == ["no peeking: later submissions do not change earlier starts"]


def test_with_feedback_nobody_knows_the_future() -> None:
    workload, processors, estimate, _ = drawn(1)
    with pytest.raises(SettingError, match="with feedback they are not known"):
        replay(workload, policy("offline-af"), cluster=Cluster(processors), estimate=estimate, feedback=True)


def test_tables_mark_who_knows_the_future(tmp_path: Path) -> None:
    log = tmp_path / "two.swf"
    log.write_text("; MaxProcs: 1\n" + "".join(f"{i} {i} -1 9 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1\n" for i in (1, 2)))
    command = ["replay", str(log), "-p", "easy", "-p", "offline-af"]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0, shown.output
    lines = [line.split("  ")[0].strip() for line in shown.output.splitlines()]
    assert lines[lines.index("offline-af") + 1] == "knows the future"
    assert shown.output.count("knows the future") == 1
    printed = CliRunner().invoke(app, [*command, "--json"])
    rows = [json.loads(line) for line in printed.stdout.splitlines()]
    assert [(row["policy"], row["clairvoyant"]) for row in rows] == [("easy", False), ("offline-af", True)]
    assert "knows the future" not in CliRunner().invoke(app, command[:4]).output


def test_both_engines_agree_and_the_referee_has_nothing_to_say() -> None:
    for seed in range(40):
        workload, processors, estimate, _ = drawn(seed)
        chosen = Offline("awf", decodes=10, foresight=seed % 7, window=3 + seed % 9)
        whole, stepped = (
            replay(workload, chosen, cluster=Cluster(processors), estimate=estimate, seed=seed, event_by_event=step)
            for step in (False, True)
        )
        assert whole.start.tolist() == stepped.start.tolist(), seed
        assert check_schedule(whole) == []


@pytest.mark.slow
def test_knowing_the_future_pays() -> None:
    from dovetail.workloads.lublin import lublin

    workload = lublin(600, 32, seed=4, load=1.0)
    knows, does_not = (
        af_s(outcomes(replay(workload, policy(name), estimate="runtime"))) for name in ("offline-af", "plan-af")
    )
    assert knows < does_not


def test_names_and_settings() -> None:
    assert policy("offline-awf:foresight=7") == Offline("awf", foresight=7, name="offline-awf:foresight=7")
    with pytest.raises(SettingError, match="foresight=-1: must be from 0 to 256 jobs"):
        policy("offline:foresight=-1")
