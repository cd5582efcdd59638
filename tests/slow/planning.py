"""Plans, slowly: list scheduling second by second, and the objectives as their formulas say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from dovetail.model.state import State

KEYS: dict[str, Callable[[State, int], int]] = {
    "fcfs": lambda s, job: s.submit[job],
    "sjf": lambda s, job: s.estimate[job],
    "saf": lambda s, job: s.size[job] * s.estimate[job],
    "laf": lambda s, job: -s.size[job] * s.estimate[job],
    "spf": lambda s, job: s.size[job] * s.estimate[job] ** 2,
}
"""The orders of the list plans that planners begin with; smaller keys first, ties by arrival."""


def list_orders(state: State) -> list[list[int]]:
    """The waiting jobs in each of these orders."""
    return [sorted(state.waiting.tolist(), key=partial(key, state)) for key in KEYS.values()]


def free_seconds(state: State, horizon: int) -> list[int]:
    """Free processors in each of the next seconds, beside what runs."""
    free = [state.processors] * horizon
    for job in state.running.tolist():
        for t in range(min(state.expected_end(job) - state.now, horizon)):
            free[t] -= int(state.size[job])
    return free


def placed(state: State, order: Sequence[int]) -> dict[int, int]:
    """Each job of an order in turn at its earliest fit."""
    horizon = 2 + sum(int(state.estimate[job]) for job in [*state.running.tolist(), *order])
    free = free_seconds(state, horizon)
    starts = {}
    for job in order:
        size, length = int(state.size[job]), int(state.estimate[job])
        at = next(t for t in range(horizon) if all(f >= size for f in free[t : t + length]) and t + length <= horizon)
        for t in range(at, at + length):
            free[t] -= size
        starts[job] = state.now + at
    return starts


def value(objective: str, state: State, starts: dict[int, int]) -> float:
    """AF, AWF, BSLD (bound 10 s), PaSF, mean wait or makespan of a plan, with estimates for run times."""
    rows = []
    for job, at in starts.items():
        d, q = int(state.estimate[job]), at - int(state.submit[job])
        rows.append((int(state.size[job]), d, q, q + d))
    if objective == "af":
        return sum(f for *_, f in rows) / len(rows)
    if objective == "awf":
        return sum(r * d * f for r, d, _, f in rows) / sum(r * d for r, d, _, _ in rows)
    if objective == "bsld":
        return sum(max(1.0, f / max(d, 10)) for _, d, _, f in rows) / len(rows)
    if objective == "wait":
        return sum(q for _, _, q, _ in rows) / len(rows)
    if objective == "makespan":
        return max(at + int(state.estimate[job]) for job, at in starts.items()) - min(
            int(state.submit[job]) for job in starts
        )
    a = 2 if objective == "p2sf" else int(objective.removeprefix("pasf:"))
    over, under = (sum(r * (f**m - q**m) for r, _, q, f in rows) for m in (a + 2, a + 1))
    return float((a + 1) * over / ((a + 2) * under))
