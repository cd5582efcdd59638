"""Which schedules the page on the profit paper needs, in the order in which they are made."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dovetail.studies.papers.profit_runs import NODES, RULES, Case

SCENARIOS: Final = (("air", "winter"), ("air", "summer"), ("hybrid", "winter"), ("hybrid", "summer"))
"""Plant and season, in the order of the paper's tables."""
SEEDS: Final = (0, 1, 2)
MULTI: Final = "daily:search=multi"
DELAY: Final = "daily:search=delay,decodes=1000"
RELAX: Final = "daily:search=relax,deterministic=0.1"
CP: Final = "daily:search=cp"
SEARCHES: Final = (MULTI, DELAY, RELAX)
PLAN: Final = "plan:objective=profit,decodes=20"
TOMORROW: Final = "daily:search=multi,tomorrow=yes"
SUBMITTED: Final = "daily:known=submitted"
VARIED: Final = (
    *(Case("", "summer", "air", tariff=eur) for eur in (0.005, 0.08)),
    *(Case("", "summer", "air", price=eur) for eur in (60.0, 240.0)),
    *(Case("", "summer", "air", cooling=times) for times in (0.5, 2.0)),
)
"""What the stated tariff, price and cooling are replaced by, one at a time, in one scenario."""
ONE: Final = ("air", "summer")


def of(way: str, scenario: tuple[str, str], seed: int = 0, *, stretch: str = "1,200", length: str = "runtime") -> Case:
    """A case by its scenario."""
    plant, season = scenario
    return Case(way, season, plant, seed, stretch, length)


def cases() -> list[Case]:
    """All of them: what the tables need first."""
    found = [of(way, scenario, seed) for seed in SEEDS for scenario in SCENARIOS for way in (*RULES, MULTI, PLAN)]
    for seed in SEEDS:
        found += [of(DELAY, scenario, seed) for scenario in SCENARIOS]
        if seed == 0:
            found += [of(way, scenario) for way in (CP, RELAX) for scenario in SCENARIOS]
    found += [of(way, ONE, length="limit") for way in (*RULES, MULTI, PLAN)]
    found += [of(way, ONE, stretch="2,400") for way in (*RULES, MULTI, DELAY, PLAN)]
    found += [replace(varied, way=way) for varied in VARIED for way in (*RULES, MULTI)]
    found += [of(TOMORROW, ONE), of(SUBMITTED, ONE)]
    found += [of(NODES + rule, ONE) for rule in RULES]
    return found
