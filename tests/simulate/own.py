"""Policies, orders and predictors in Python, given to replays by name as a user's own would be."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.predict.base import Job, Predictor


class SmallestFirst:
    """What fits starts, the smallest first; ties by arrival. It knows nodes as little as power caps."""

    name = "smallest-first"
    cannot = {"nodes": "counts processors", "cap": "keeps no power cap"}  # noqa: RUF012 - as a user would write it

    def decide(self, state: State) -> Plan:
        free, starts = state.free, []
        for job in sorted(state.waiting.tolist(), key=lambda job: int(state.size[job])):
            if state.size[job] <= free:
                free -= int(state.size[job])
                starts.append(job)
        return Plan(starts)


class OneByOne:
    """One job at a time, each announced a second before: it asks to be woken, and remembers by its memory."""

    name = "one-by-one"

    cannot = SmallestFirst.cannot

    def decide(self, state: State) -> Plan:
        if len(state.running) or not len(state.waiting):
            return Plan()
        first = int(state.waiting[0])
        if state.standing.memory.get("next") != first:
            return Plan(wake=state.now + 1, memory={"next": first}, reasons={first: "announced"})
        if state.standing.wake is not None and state.now < state.standing.wake:
            return Plan(wake=state.standing.wake, memory=state.standing.memory)
        return Plan([first])


def by_area(state: State) -> Any:
    """An order that is asked for at each pass."""
    return state.size[state.waiting] * state.estimate[state.waiting]


def by_user(state: State) -> Any:
    """An order that reads who submitted a job, asked for once."""
    return state.user[state.waiting] % 3


by_user.static = True  # type: ignore[attr-defined]


class Half(Predictor):
    """Half of the limit, or the longest run time of the user that is known."""

    name = "half"

    def __init__(self) -> None:
        self.longest: dict[int, int] = {}

    def estimate(self, job: Job) -> float:
        return self.longest.get(job.user, job.limit / 2)

    def observe(self, job: Job, runtime_s: int) -> None:
        self.longest[job.user] = max(runtime_s, self.longest.get(job.user, 0))


def oldest_first(state: State) -> Any:
    """An order that moves with time, as floats."""
    return -np.sqrt((state.now - state.submit[state.waiting]).astype(np.float64))
