"""The replay as a Gymnasium environment: its own checker, and every episode is a valid schedule."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from examples.agent import episode, trained
from gymnasium.utils.env_checker import check_env

import dovetail as dt
from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.metrics import summarize
from dovetail.model.workload import Workload
from dovetail.referee import assert_valid

ACTIONS = ("job", "order")


@pytest.fixture(scope="module")
def log() -> Workload:
    return dt.generate(2_000, 64, load=0.9, seed=1)


def drawn(env: dt.Environment, seed: int) -> tuple[float, int]:
    """The reward of an episode of drawn actions, and its steps. Each observation is in its space."""
    seen, info = env.reset(seed=seed)
    env.action_space.seed(seed)
    over, reward, steps = False, 0.0, 0
    while not over:
        assert env.observation_space.contains(seen)
        action = env.action_space.sample(info["action_mask"]) if "action_mask" in info else env.action_space.sample()
        seen, reward, over, _, info = env.step(action)
        steps += 1
    return reward, steps


@pytest.mark.parametrize("action", ACTIONS)
def test_gymnasiums_own_checker_finds_nothing(log: Workload, action: str) -> None:
    env = gymnasium.make("dovetail.studies.environment:dovetail/Cluster-v0", workload=log, jobs=32, action=action)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("window", [1, 8])
def test_every_episode_is_a_valid_schedule(log: Workload, action: Any, window: int) -> None:
    env = dt.Environment(log, jobs=100, window=window, action=action, metric="bsld")
    for seed in range(5):
        reward, _ = drawn(env, seed)
        assert env.schedule is not None
        assert_valid(env.schedule)
        base = summarize(replay(env.schedule.workload, dt.policy("easy")))["bsld"]
        assert reward == (base - summarize(env.schedule)["bsld"]) / base


def test_the_same_seed_is_the_same_episode(log: Workload) -> None:
    one, other = dt.Environment(log, jobs=100), dt.Environment(log, jobs=100)
    assert drawn(one, 7) == drawn(other, 7)
    assert one.schedule is not None
    assert other.schedule is not None
    assert one.schedule.start.tolist() == other.schedule.start.tolist()


@pytest.mark.parametrize("first", [0, 700, 1_900])
def test_an_agent_that_keeps_the_order_is_easy(log: Workload, first: int) -> None:
    """Equal numbers leave the queue as it is: the schedule of EASY, to the second, and a reward of 0."""
    env = dt.Environment(log, jobs=100, window=200, action="order")
    env.reset(options={"first": first})
    over, reward = False, 1.0
    while not over:
        _, reward, over, _, _ = env.step(np.zeros(200, np.float32))
    assert env.schedule is not None
    assert env.schedule.start.tolist() == replay(env.schedule.workload, dt.policy("easy")).start.tolist()
    assert reward == 0


def test_an_agent_that_starts_the_first_that_fits_is_greedy(log: Workload) -> None:
    env = dt.Environment(log, jobs=300, window=300)
    _, info = env.reset(seed=3)
    over = False
    while not over:
        _, _, over, _, info = env.step(int(np.argmax(info["action_mask"])))
    assert env.schedule is not None
    expected = replay(env.schedule.workload, dt.policy("greedy-fcfs")).start
    assert env.schedule.start.tolist() == expected.tolist()


def test_an_agent_that_never_starts_a_job_ends_too(log: Workload) -> None:
    env = dt.Environment(log, jobs=50)
    env.reset(seed=1)
    over = False
    while not over:
        _, reward, over, _, _ = env.step(env.window)
    assert reward < 0
    assert env.schedule is not None
    assert_valid(env.schedule)


def test_of_some_metrics_more_is_better(log: Workload) -> None:
    env = dt.Environment(log, jobs=100, metric="utilization")
    env.reset(seed=1)
    over = False
    while not over:
        _, reward, over, _, _ = env.step(-1)  # what is no job of the window lets time pass
    assert env.schedule is not None
    base = summarize(replay(env.schedule.workload, dt.policy("easy")))["utilization"]
    assert reward == (summarize(env.schedule)["utilization"] - base) / base < 0


def test_what_it_shows(log: Workload) -> None:
    env = dt.Environment(log, jobs=100, window=4)
    seen, info = env.reset(options={"first": 10})
    first = log.size[10] / 64
    assert seen["waiting"][0, 0] == np.float32(first)
    assert seen["waiting"][0, 2] == 0
    assert seen["waiting"][0, 3] == 1
    assert seen["machine"][0] == 1
    assert not seen["running"].any()
    assert info["action_mask"].tolist() == [1, 0, 0, 0, 1]
    seen, _, _, _, _ = env.step(0)
    assert seen["running"][0, 0] == np.float32(first)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"jobs": 0}, "an episode has from 1"),
        ({"jobs": 10**6}, "an episode has from 1"),
        ({"window": 0}, "at least one job"),
        ({"action": "both"}, "choose job or order"),
        ({"metric": "wiat"}, "wiat"),
        ({"baseline": "esay"}, "esay"),
    ],
)
def test_settings_are_checked(log: Workload, settings: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingError, match=told):
        dt.Environment(log, **settings)


@pytest.mark.slow
def test_the_example_learns() -> None:
    """A round is enough to be better than EASY and than chance, on episodes that it was not trained on."""
    env = dt.Environment(dt.generate(20_000, 128, load=0.85, seed=1), jobs=96, action="order", metric="bsld")
    weights = trained(env, 1, drawn=8, kept=2)
    learned, chance = (float(np.mean([episode(env, one, seed) for seed in range(12)])) for one in (weights, None))
    assert learned > max(chance, 0.0)
