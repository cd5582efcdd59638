"""Many cases, one after another: judged, counted, and what fails made small and written down."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from dovetail.errors import DovetailError
from tests.simulate import faults, files, scenarios
from tests.simulate.cases import OWN, TINY, Case, draw
from tests.simulate.checks import Trial, judged, wanted
from tests.simulate.shrink import SECONDS, kind_of, shrunk

__all__ = ["Totals", "Trial", "faults", "files", "judged", "scenarios", "seeds_from", "simulate"]

EVERY_S: Final = 15
"""A line tells how far it is."""


@dataclass
class Totals:
    """What was done: cases by kind of policy, how often each check was tried, and what it said."""

    cases: int = 0
    events: int = 0
    policies: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    violations: list[tuple[int, str, str]] = field(default_factory=list)
    """The case's number, the check, and what it said."""

    def line(self, seed: int, began: float) -> str:
        took = max(time.process_time() - began, 1e-9)
        rate = f"{self.events / took:,.0f} events/s"
        return (
            f"seed {seed:,}: {self.cases:,} cases, {self.events:,} events, {len(self.violations)} violations,"
            f" {took:,.0f} s of CPU, {rate}"
        )


def simulate(
    seeds: Iterable[int], totals: Totals, *, say: bool = True, shrink_s: float = SECONDS, stop: bool = False
) -> None:
    """Judge the cases of these numbers. `stop`: at the first violation."""
    began, told, shown = time.process_time(), time.monotonic(), set[tuple[str, str, str]]()
    for seed in seeds:
        case = draw(seed)
        trial = Trial(case)
        kind_of_policy = type(case.rule).__name__
        totals.policies[kind_of_policy] += 1
        if refused(trial):
            totals.policies[f"{kind_of_policy} (refused)"] += 1
            totals.cases += 1
            continue
        for name in wanted(case, seed):
            before = time.perf_counter()
            found = judged(trial, name)
            totals.seconds[name] += time.perf_counter() - before  # type: ignore[assignment]
            totals.checks[name] += 1
            totals.violations += [(seed, name, said) for said in found[:1]]
            kind = (name, kind_of_policy, kind_of(found[0])) if found else ("", "", "")
            if found and say and kind not in shown:
                shown.add(kind)
                print(reported(seed, case, name, found, shrink_s), flush=True)
            if found and stop:
                break
        totals.cases += 1
        totals.events += trial.events
        if stop and totals.violations:
            return
        if say and time.monotonic() - told > EVERY_S:
            told = time.monotonic()
            print(totals.line(seed, began), file=sys.stderr, flush=True)


def seeds_from(first: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> Iterator[int]:
    """A number, and all after it until so many seconds have passed on a clock."""
    until, seed = clock() + seconds, first
    while seed == first or clock() < until:
        yield seed
        seed += 1


def refused(trial: Trial) -> bool:
    """Whether a policy of the papers says in a line that it cannot do this, as of shared devices."""
    if type(trial.case.rule).__name__ not in TINY:
        return False
    try:
        return not len(trial.made.start)
    except DovetailError:
        return True


def reported(seed: int, case: Case, check: str, found: list[str], shrink_s: float) -> str:
    """What is wrong, and the smallest case that shows it."""
    small = shrunk(case, check, found[0], shrink_s)
    said = judged(Trial(small), check)
    lines = [f"\nVIOLATION seed {seed}, check {check}: {found[0]}", *(f"  and {text}" for text in found[1:4])]
    lines += [f"Smaller ({len(case)} jobs to {len(small)}): {said[0] if said else 'it does not fail again'}", _HEAD]
    text = small.text().replace(OWN, "tests/simulate/own.py")
    return "\n".join([*lines, text + f"print(judged(Trial(case), {check!r}))\n"])


_HEAD = """
import numpy as np
from dovetail.model.cluster import Cluster, NodeKind, Outage, PowerCap, Typical
from tests.simulate.cases import Case, site_of
from tests.simulate.run import Trial, judged
"""
