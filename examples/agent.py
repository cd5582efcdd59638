"""Agents in Dovetail's Gymnasium environment: a random one, and one that learns an order of the queue in a minute.

    python examples/agent.py

The learner has four weights, for what the environment shows of a waiting job (its size, its estimate, how long it has
waited, whether it fits). They are found by the cross-entropy method: draw weights, keep the best, draw around these.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import dovetail as dt


def episode(env: dt.Environment, weights: np.ndarray | None, seed: int) -> float:
    """The reward of one episode; without weights actions are drawn."""
    seen, _ = env.reset(seed=seed)
    env.action_space.seed(seed)
    over, reward = False, 0.0
    while not over:
        action = env.action_space.sample() if weights is None else np.tanh(seen["waiting"] @ weights)
        seen, reward, over, _, _ = env.step(action.astype(np.float32))
    return reward


def trained(env: dt.Environment, rounds: int, seed: int = 0, drawn: int = 16, kept: int = 4) -> np.ndarray:
    """The weights that did best, on episodes of other seeds than those of the test: four for each weights and round."""
    random = np.random.default_rng(seed)
    mean, spread = np.zeros(4), np.ones(4)
    for at in range(rounds):
        tried = mean + spread * random.standard_normal((drawn, 4))
        seeds = range(10_000 + 4 * at, 10_004 + 4 * at)
        rewards = [np.mean([episode(env, one, seed) for seed in seeds]) for one in tried]
        best = tried[np.argsort(rewards)[-kept:]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.05
    return mean


def main() -> None:
    asked = argparse.ArgumentParser(description="A random and a trained agent.")
    asked.add_argument("--rounds", type=int, default=3, help="of training; twenty seconds of CPU each")
    given = asked.parse_args()
    log = dt.generate(20_000, 128, load=0.85, seed=1)
    env = dt.Environment(log, action="order", metric="bsld")
    began = time.process_time()
    weights = trained(env, given.rounds)
    print(f"trained for {time.process_time() - began:.0f} s of CPU")
    print("weights of size, estimate, wait, fits:", np.round(weights, 2))
    for name, one in (("random", None), ("trained", weights)):
        rewards = [episode(env, one, seed) for seed in range(20)]
        print(f"{name}: BSLD {-np.mean(rewards):+.1%} against easy, on average over 20 other episodes")


if __name__ == "__main__":
    main()
