"""Steps a second of the Gymnasium environment, beside the compiled replay of the same jobs, in one run.

python benchmarks/environment.py
"""

from __future__ import annotations

import time

import dovetail as dt
from dovetail.engine.replay import replay


def steps(env: dt.Environment, episodes: int) -> tuple[int, float]:
    """How many steps drawn actions made, and the CPU seconds they took."""
    made, began = 0, time.process_time()
    for seed in range(episodes):
        _, info = env.reset(seed=seed)
        env.action_space.seed(seed)
        over = False
        while not over:
            sample = env.action_space.sample
            action = sample(info["action_mask"]) if "action_mask" in info else sample()
            _, _, over, _, info = env.step(action)
            made += 1
    return made, time.process_time() - began


def main() -> None:
    log = dt.generate(20_000, 128, load=0.85, seed=1)
    easy = dt.policy("easy")
    replay(log, easy)
    began = time.process_time()
    passes = sum(replay(log, easy).passes for _ in range(5))
    compiled = passes / (time.process_time() - began)
    print(f"compiled replay, easy          {compiled:>12,.0f} passes a second of CPU")
    for action in ("job", "order"):
        env = dt.Environment(log, action=action)
        steps(env, 1)
        made, took = steps(env, 20)
        rate = made / took
        print(f"environment, action={action:<10} {rate:>12,.0f} steps a second of CPU: 1/{compiled / rate:,.0f}")


if __name__ == "__main__":
    main()
