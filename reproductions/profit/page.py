"""Which schedules the page on the profit paper needs, its tables from their metrics, and its claims from the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from dovetail.studies.task import Cell
from reproductions.claims import NO, PART, YES, Judged
from reproductions.profit.schedules import HIGH, MAIN, NODES, RULES, STRETCHES, VARIED, solve
from reproductions.running import Work
from reproductions.runs import Run, Runs
from reproductions.values import Content, Key, Values

__all__ = ["cells", "solve", "values"]

SCENARIOS: Final = ("air, winter", "air, summer", "hybrid, winter", "hybrid, summer")
"""Plant and season, in the order of the paper's tables."""
ONE: Final = "air, summer"
SEEDS: Final = (0, 1, 2)
CHEAP: Final = "K1 0.02"
"""The table of the variant in which energy counts."""
BEST: Final = "multisearch"
HELD: Final = "delaysearch:decodes=100"
"""The searches at the paper's K1."""
MACHINES: Final = {"pool": "", "nodes": NODES}
MULTI: Final = "daily:search=multi"
DELAY: Final = "daily:search=delay,decodes=1000"
RELAX: Final = "daily:search=relax,deterministic=0.1"
CP: Final = "daily:search=cp"
PLAN: Final = "plan:objective=profit,decodes=20"
SEARCHES: Final = {MULTI: "MultiSearch", DELAY: "DelaySearch", RELAX: "RelaxationSearch"}
CALLED: Final = {**{rule: rule for rule in RULES}, CP: "CP's default", **SEARCHES, PLAN: "ours"}
OTHERS: Final = {
    "as above": (MULTI, "1,200", "runtime"),
    "a segment for tomorrow": ("daily:search=multi,tomorrow=yes", "1,200", "runtime"),
    "only jobs that have come are known (and the plan carried out as EASY)": (
        "daily:known=submitted", "1,200", "runtime",
    ),
    "jobs run for their limits (equation 2)": (MULTI, "1,200", "limit"),
    "the other stretch: up to 2,400 cores, from day 532.40": (MULTI, "2,400", "runtime"),
    "the other stretch, DelaySearch": (DELAY, "2,400", "runtime"),
    "the other stretch, ours": (PLAN, "2,400", "runtime"),
    "limits, ours": (PLAN, "1,200", "limit"),
}  # fmt: skip
"""Variations in scenario ONE by row of their table: the scheduler, the stretch, and how long jobs run."""


def cells(_: Work) -> list[Cell]:
    """All schedules, what the tables need first."""
    found = [_cell(way, f"{place}; {MAIN}") for place in SCENARIOS for way in (*RULES, BEST, HELD)]
    found += [_cell(way, f"{ONE}; {HIGH}") for way in (*RULES, BEST)]
    found += [_cell(way, f"{ONE}; {MAIN}", 0, width) for width in STRETCHES for way in (*RULES, BEST, HELD)]
    found += [_cell(NODES + way, f"{ONE}; {MAIN}", 0, width) for width in STRETCHES for way in (*RULES, BEST)]
    found += [_cell(way, place, seed) for seed in SEEDS for place in SCENARIOS for way in (*RULES, MULTI, PLAN)]
    found += [_cell(DELAY, place, seed) for seed in SEEDS for place in SCENARIOS]
    found += [_cell(way, place) for way in (CP, RELAX) for place in SCENARIOS]
    found += [_cell(way, ONE, 0, *like[1:]) for like in OTHERS.values() for way in (*RULES, like[0])]
    found += [_cell(way, f"{ONE}; {varied}") for varied in list(VARIED)[2:] for way in (*RULES, MULTI)]
    found += [_cell(NODES + rule, ONE) for rule in RULES]
    return list(dict.fromkeys(found))


def _cell(way: str, place: str, seed: int = 0, stretch: str = "1,200", length: str = "runtime") -> Cell:
    return Cell(stretch, place, "all", way, length, seed)


class _Found:
    """The runs that are there."""

    def __init__(self, runs: Runs) -> None:
        self._runs = {run.cell: run for run in runs}

    def get(self, way: str, place: str, *more: Any) -> Run | None:
        return self._runs.get(_cell(way, place, *more))

    def best(self, ways: Sequence[str], place: str, *more: Any) -> Run | None:
        """The most profitable of some ways; None where one is missing."""
        found = [run for way in ways if (run := self.get(way, place, *more))]
        return max(found, key=lambda run: run.numbers["profit"]) if len(found) == len(ways) else None

    def search(self, place: str, seed: int = 0) -> Run | None:
        """The best of the paper's searches; with other seeds than 0 RelaxationSearch is not run."""
        return self.best(list(SEARCHES)[: 2 if seed else 3], place, seed)


def _change(new: Run | None, old: Run | None, metric: str = "profit") -> float | None:
    """In per cent."""
    return 100 * (new.numbers[metric] / old.numbers[metric] - 1) if new and old else None


def _number(run: Run | None, metric: str, times: float = 1) -> float | None:
    return times * run.numbers[metric] if run else None


def values(runs: Runs, printed: Mapping[Key, Content]) -> dict[Key, Content]:
    """The cells of all tables that have the runs they need."""
    there, found = _Found(runs), dict[Key, Content | None]()
    for place in SCENARIOS:
        found |= _at_their_tariff(there, place) | _of_scenario(there, place)
        found["Figs. 5 to 8", "best of the paper", place] = printed["CP", place, "over"]
    for way, name in CALLED.items():
        one = there.get(way, SCENARIOS[0])
        found["All", name, "in use %"] = _number(one, "used", 100)
        found |= {("All", name, metric): _number(one, metric) for metric in ("watts", "makespan_d")}
        every = [run for place in SCENARIOS for seed in SEEDS if (run := there.get(way, place, seed))]
        if way in (CP, *SEARCHES) and len(every) >= (4 if way in (CP, RELAX) else 12):
            found |= {("Time", name, key): number for key, number in _of_days(every).items()}
    found |= _depends(there)
    for width in STRETCHES:
        for machine in MACHINES:
            found |= _by_width(there, width, machine)
    return {key: content for key, content in found.items() if content is not None}


def _by_width(there: _Found, width: str, machine: str) -> dict[Key, Content | None]:
    """At K1 from Table 2, by the widest job and the machine: the searches over the best rule that stops at a job which
    does not fit, and over the best that goes on."""
    prefix, like = MACHINES[machine], (f"{ONE}; {MAIN}", 0, width)
    strict, other, best = (there.best([prefix + way for way in ways], *like) for ways in (RULES[:3], RULES[3:], RULES))
    multi, held = (there.get(prefix + way, *like) for way in (BEST, HELD))
    row: dict[str, Content | None] = {
        "over strict": _change(multi, strict), "over other": _change(multi, other), "held": _change(held, multi),
        "search used": _number(multi, "used", 100), "search makespan": _number(multi, "makespan_d"),
        "makespan": _number(best, "makespan_d"), "work": _number(best, "work_d"), "jobs": _number(best, "jobs"),
    }  # fmt: skip
    for kind, run in (("strict", strict), ("other", other)):
        row |= {kind: run.cell.policy.removeprefix(NODES) if run else None, f"{kind} used": _number(run, "used", 100)}
    return {("Widths", f"{width}, {machine}", key): content for key, content in row.items()}


def _depends(there: _Found) -> dict[Key, Content | None]:
    """MultiSearch, or what a row says, over the best rules; and what nodes cost the rules."""
    found: dict[Key, Content | None] = {}
    rows: dict[str, tuple[Any, ...]] = {text: (way, ONE, 0, *like) for text, (way, *like) in OTHERS.items()}
    for text, (way, *like) in {**rows, **{text: (MULTI, f"{ONE}; {text}") for text in VARIED}}.items():
        rule, strict, run = (there.best(ways, *like) for ways in (RULES, RULES[:3], [way]))
        if rule and strict and run:
            row: dict[str, Content | None] = {"rule": rule.cell.policy, "jobs": _number(rule, "jobs")}
            row |= {"over": _change(run, rule), "over strict": _change(run, strict)}
            row |= {"used": _number(rule, "used", 100), "strict used": _number(strict, "used", 100)}
            found |= {("Depends", text, key): content for key, content in row.items()}
    if (rule := there.best([NODES + rule for rule in RULES], ONE)) is not None:
        name = rule.cell.policy.removeprefix(NODES)
        row = {"rule": name, "used": _number(rule, "used", 100), "search": _change(there.get(MULTI, ONE), rule)}
        row["pool"] = _change(there.get(name, ONE), rule)
        found |= {("Nodes", "300 nodes", key): content for key, content in row.items()}
    return found


def _at_their_tariff(there: _Found, place: str) -> dict[Key, Content | None]:
    """Tables 1 and 2 at K1 from Table 2."""
    found: dict[Key, Content | None] = {}
    for varied in (MAIN, HIGH):
        rule, multi, held = (there.best(ways, f"{place}; {varied}") for ways in (RULES, [BEST], [HELD]))
        search = max((run for run in (multi, held) if run), key=lambda run: run.numbers["profit"], default=None)
        if search and rule:
            a_day = search.numbers["profit_a_day"] - rule.numbers["profit_a_day"]
            found["Table 2", place, "a day" if varied == MAIN else "a day, high"] = a_day
        if search and rule and varied == MAIN:
            found |= {("Table 1", place, "search"): _change(search, rule), ("Table 1", place, "rule"): rule.cell.policy}
            found["Table 1", place, "shorter"] = 100 * (1 - search.numbers["makespan_d"] / rule.numbers["makespan_d"])
            for key, run in (("search", search), ("rule", rule)):
                found["Table 1", place, f"PUE {key}"] = _number(run, "pue")
                found["Table 1", place, f"{key} makespan"] = _number(run, "makespan_d")
    return found


def _of_scenario(there: _Found, place: str) -> dict[Key, Content | None]:
    rule, search = there.best(RULES, place), there.search(place)
    multi, plain, ours = (there.get(way, place) for way in (MULTI, CP, PLAN))
    found: dict[Key, Content | None] = {}
    for way, name in CALLED.items():
        run = there.get(way, place)
        found["All", name, place] = _number(run, "profit")
        if way in (*SEARCHES, PLAN):
            found["Figs. 5 to 8", name, place] = _change(run, plain)
        if run and rule and way in (CP, MULTI, DELAY, PLAN):
            least = [y for _, y in rule.curves["profits"]]
            ahead = ((x, y - least[min(i, len(least) - 1)]) for i, (x, y) in enumerate(run.curves["profits"]))
            found |= {(f"figure: {place}", name, f"{x:g}"): y for x, y in ahead}
        if run and way in SEARCHES:
            gain, seconds = (
                _change(run, rule if way == MULTI else multi),
                run.numbers["best_s" if way != MULTI else "search_s"],
            )
            found["Table 3", place, name] = (
                "no better plan" if not seconds else gain and gain * run.numbers["days"] / seconds
            )
    if plain:
        days = f"{plain.numbers['searched']:.0f} of {plain.numbers['days']:.0f}"
        found |= {("CP", place, "planned"): days, ("CP", place, "over"): _change(search, plain)}
        name = CALLED[search.cell.policy] if search else ""
        found["CP", place, "how"] = f"{name}; CP-SAT has a plan on {days} days"
    if search and rule:
        found[CHEAP, place, "shorter"] = 100 * (1 - search.numbers["makespan_d"] / rule.numbers["makespan_d"])
    found[CHEAP, place, "over search"] = _change(ours, search)
    for column, way, rules in (("search", "", RULES), ("ours", PLAN, RULES), ("strict", MULTI, RULES[:3])):
        news = [there.get(way, place, seed) if way else there.search(place, seed) for seed in SEEDS]
        gains = [_change(new, there.best(rules, place, seed)) for seed, new in zip(SEEDS, news, strict=True)]
        known = [gain for gain in gains if gain is not None]
        if len(known) == len(SEEDS):
            spread = {"": fmean(known), " low": min(known), " high": max(known)}
            found |= {(CHEAP, place, column + end): number for end, number in spread.items()}
    return found


def _of_days(runs: Sequence[Run]) -> dict[str, float | None]:
    """How a search fared on all days."""
    total = {key: sum(run.numbers[key] for run in runs) for key in runs[0].numbers}
    return {
        "days": total["searched"], "improved": 100 * total["improved"] / total["days"],
        "gained": 100 * total["gained"] / total["day_profit"], "a day": total["search_s"] / total["searched"],
        "to best": total["best_s"] / total["improved"] if total["improved"] else None,
        "most": max(run.numbers["search_most_s"] for run in runs),
    }  # fmt: skip


def reached(values: Values, table: str, row: str, column: str) -> Judged:
    """As much as published, or in part if more than nothing."""
    ours, printed = values.need(table, row, column), values.printed_number(table, row, column) or 0
    low, high, days = (values.number(table, row, key) for key in (f"{column} low", f"{column} high", "days"))
    how = values.ours.get((table, row, "how"))
    text = (
        f"{ours:.1f} % of {days:.0f} days"
        if days
        else f"{ours:.2f} %"
        if low is None
        else f"{ours:.2f} ({low:.2f} to {high:.2f}) %"
    )
    return Judged(f"{text} ({how.content})" if how else text, YES if ours >= printed else PART if ours > 0 else NO)


def same_pue(values: Values, row: str) -> Judged:
    """The search and the rule have the same PUE."""
    both = [f"{values.need('Table 1', row, f'PUE {one}'):.2f}" for one in ("search", "rule")]
    return Judged(" and ".join(both), YES if both[0] == both[1] else NO)
