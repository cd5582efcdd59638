"""The models on the same instances: which are taken, and what is compared once all of a machine's are solved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from typing import Final

import numpy as np

from dovetail.optimize.dispatch.problem import Limits
from reproductions.runs import Run, Runs
from reproductions.values import Content, Key

SMALL, LARGE = "Eurora", "KIT"
PCP19, PCP21, ONCE, PCP21S, HCP19 = "PCP'19", "PCP'21", "PCP'21, one search", "PCP'21s", "HCP'19"
UNDER: Final = "sjf-easy:place=scarce"
"""The policy of the replays that instances are taken from."""
LONGEST_S: Final = 16
"""The longest limit of a search, the paper's delta_max."""
EVERY: Final = 10
"""Of the moments of a replay, sizes and list plans are counted at each tenth."""
SAME: Final = 1e-6
"""Total slowdowns are equal if they differ by no more than this part."""


@dataclass(frozen=True)
class Sample:
    """Which instances of a replay are taken: where classes of queues begin, and how many of each class a model gets."""

    least: tuple[int, ...]
    many: Mapping[str, int]
    limits: Mapping[str, Limits] = field(default_factory=dict)


MODELS: Final = {PCP19: "pcp19", PCP21: "pcp21", ONCE: "pcp21", PCP21S: "pcp21s", HCP19: "hcp19"}
BY_CLOCK: Final = {f"{PCP19}, {s} s of the clock": Limits(s, s, clock="wall") for s in (LONGEST_S, 2 * LONGEST_S)}
"""Where PCP'19 finds nothing on the large machine, it is tried again with seconds of the clock."""
SAMPLES: Final = {
    SMALL: Sample((1, 2, 6, 11, 21, 41, 101), {PCP19: 4, PCP21: 4, ONCE: 4, HCP19: 1}, {ONCE: Limits(1, 1)}),
    LARGE: Sample(
        (1, 2, 6, 11, 21), {PCP19: 10, PCP21: 2, PCP21S: 2, HCP19: 2}, {PCP19: Limits(LONGEST_S, LONGEST_S), **BY_CLOCK}
    ),
}

Answers = Mapping[str, Run]
"""What the models made of an instance, by their names."""


def values(runs: Runs, _: Mapping[Key, Content]) -> dict[Key, Content]:
    """What the replays say of sizes and list plans, and the answers of each machine that has all of them."""
    found = _passes(runs)
    for trace, make in ((SMALL, _small), (LARGE, _large)):
        instances = solved(runs, trace)
        if instances:
            many = {name: sum(name in one for one in instances) for name in SAMPLES[trace].many}
            found |= {("solved", trace, name): count for name, count in many.items()}
            found["solved", trace, "instances"] = len(instances)
            found |= make(instances)
    return found


def _passes(runs: Runs) -> dict[Key, Content]:
    found: dict[Key, Content] = {}
    for row, trace, estimate in (("runtime", SMALL, "runtime"), ("limit", SMALL, "limit"), (LARGE, LARGE, "runtime")):
        if run := runs.get(trace, UNDER, estimate):
            found |= {("passes", row, key): one for key, one in run.numbers.items() if one == one}
    both = [runs.get(SMALL, UNDER, estimate) for estimate in ("runtime", "limit")]
    known = [run.numbers for run in both if run]
    if len(known) == 2:
        many = sum(one["looked_at"] for one in known)
        found["passes", "both", "looked_at"] = many
        for key in ("ratio_above_1", "every_below", "lists_mean"):
            found["passes", "both", key] = sum(one[key] * one["looked_at"] for one in known) / many
        for key, make in (("lists_least", min), ("lists_most", max)):
            found["passes", "both", key] = make(one[key] for one in known)
        for key in ("lists_higher", "lists_lower", "lists_other_now"):
            found["passes", "both", key] = sum(one[key] for one in known)
    return found


def solved(runs: Runs, trace: str) -> list[Answers]:
    """The instances of a machine with their answers; none unless all answers are there."""
    instances: dict[tuple[str, str], dict[str, Run]] = {}
    for run in runs:
        if run.cell.trace == trace and run.cell.policy != UNDER:
            instances.setdefault((run.cell.estimate, run.cell.span), {})[run.cell.policy] = run
    sample, found = SAMPLES[trace], list[Answers](instances.values())
    for estimate in ("runtime", "limit") if trace == SMALL else ("runtime",):
        for least in sample.least:
            inside = [one for one in found if _fact(one, "class") == least and _cell(one) == estimate]
            for name, many in sample.many.items():
                if not inside or sum(name in one for one in inside) < min(many, _fact(inside[0], "of_class")):
                    return []
    blocked = [one for one in found if trace == LARGE and not _planned(one[PCP19])]
    return [] if any(name not in one for one in blocked for name in BY_CLOCK) else found


def _fact(answers: Answers, name: str) -> float:
    """What is known of the instance itself."""
    return next(iter(answers.values())).numbers[name]


def _cell(answers: Answers) -> str:
    return next(iter(answers.values())).cell.estimate


def _planned(run: Run) -> bool:
    """Whether there is a plan for the whole window."""
    return not isnan(run.numbers["objective"])


@dataclass(frozen=True)
class Pair:
    """An instance that both PCP'19 and PCP'21 were given, and for how many passes it stands."""

    answers: Answers
    weight: float

    def ratio(self, key: str, name: str = PCP21) -> float:
        """A number of PCP'21 over that of PCP'19; nan where both are 0."""
        old, new = (self.answers[one].numbers[key] for one in (PCP19, name))
        return new / old if old else float("inf") if new else nan

    def neither_more(self, name: str = PCP21) -> bool:
        """In the region of Fig. 9: no longer, and no more fails."""
        old, new = (self.answers[one].numbers for one in (PCP19, name))
        return new["seconds"] <= old["seconds"] and new["conflicts"] <= old["conflicts"]


def pairs_of(instances: Sequence[Answers]) -> list[Pair]:
    """Those of a class stand for all passes of their class."""
    alike = Counter((_cell(one), _fact(one, "class")) for one in instances)
    return [Pair(one, _fact(one, "of_class") / alike[_cell(one), _fact(one, "class")]) for one in instances]


def share(pairs: Sequence[Pair], holds: Callable[[Pair], bool]) -> float:
    """The per cent of all passes, by what each instance stands for."""
    return 100 * sum(pair.weight for pair in pairs if holds(pair)) / sum(pair.weight for pair in pairs)


def _median(pairs: Sequence[Pair], number: Callable[[Pair], float]) -> float:
    """The median over all passes, by what each instance stands for."""
    ordered = sorted((number(pair), pair.weight) for pair in pairs)
    reached = np.cumsum([weight for _, weight in ordered])
    return ordered[int(np.searchsorted(reached, reached[-1] / 2))][0]


def _middle(numbers: Sequence[float], digits: int = 0) -> str:
    return f"{np.median(numbers):,.{digits}f}" if len(numbers) else ""


def _classes(instances: Sequence[Answers]) -> list[tuple[str, list[Answers]]]:
    """Instances by class of queue."""
    least = sorted({int(_fact(one, "class")) for one in instances})
    found = []
    for first, after in zip(least, [*least[1:], 0], strict=True):
        name = f"{first} or more" if not after else f"{first}" if after == first + 1 else f"{first} to {after - 1}"
        found.append((name, [one for one in instances if _fact(one, "class") == first]))
    return found


def _small(instances: Sequence[Answers]) -> dict[Key, Content]:
    """Figs. 7 to 9 and what stands beside them."""
    found: dict[Key, Content] = {}
    every = pairs_of(instances)
    for estimate in ("runtime", "limit"):
        here = [pair for pair in every if _cell(pair.answers) == estimate]
        qualities = [pair.ratio("objective") for pair in here]
        numbers = {
            "time": share(here, lambda p: 0.01 <= p.ratio("seconds") <= 1),
            "time, median": _median(here, lambda p: p.ratio("seconds")),
            "time, one search": share(here, lambda p: 0.01 <= p.ratio("seconds", ONCE) <= 1),
            "fails": share(here, lambda p: not p.ratio("conflicts") > 0.1),
            "region": share(here, Pair.neither_more), "region, one search": share(here, lambda p: p.neither_more(ONCE)),
            "quality": share(here, lambda p: abs(p.ratio("objective") - 1) <= SAME),
            "quality, least": min(qualities), "quality, most": max(qualities),
        }  # fmt: skip
        found |= {("pairs", estimate, key): one for key, one in numbers.items()}
    for row, inside in _classes(instances):
        found |= {("sizes", row, column): text for column, text in _sizes(inside).items()}
        found |= {("times", row, column): text for column, text in _times(inside).items()}
    return found


def _sizes(inside: Sequence[Answers]) -> dict[str, str]:
    """Formulas and CP-SAT's own counts: medians."""
    both = {"variables by formula": [(_fact(one, "pcp19_variables"), _fact(one, "pcp21_variables")) for one in inside]}
    for count in ("variables", "constraints"):
        both[f"CP-SAT's {count}"] = [(one[PCP19].numbers[count], one[PCP21].numbers[count]) for one in inside]
    found = {"instances": f"{len(inside)}"}
    for column, pairs in both.items():
        found[column] = " / ".join(_middle([pair[side] for pair in pairs]) for side in (0, 1))
        found[f"{column}, ratio"] = _middle([new / old for old, new in pairs], 2)
    return found


def _times(inside: Sequence[Answers]) -> dict[str, str]:
    found = {}
    for name in (PCP19, PCP21, ONCE, HCP19):
        numbers = [one[name].numbers for one in inside if name in one]
        seconds = [one["seconds"] for one in numbers]
        found[f"{name}: s, median (most)"] = f"{_middle(seconds, 2)} ({max(seconds, default=0):.1f})"
        found[f"{name}: fails"] = _middle([one["conflicts"] for one in numbers])
        found[f"{name} proved"] = f"{sum(one['proved'] == 1 for one in numbers)} of {len(numbers)}"
    return found


def _large(instances: Sequence[Answers]) -> dict[Key, Content]:
    """Plans on the large machine."""
    found: dict[Key, Content] = {}
    for row, inside in _classes(instances):
        formulas = [_middle([_fact(one, f"pcp{year}_variables") for one in inside]) for year in (19, 21)]
        found["large", row, "variables by formula"] = " / ".join(formulas)
        for name in SAMPLES[LARGE].many:
            runs = [one[name] for one in inside if name in one]
            seconds = _middle([run.numbers["seconds"] for run in runs], 1)
            found["large", row, name] = f"{sum(map(_planned, runs))} of {len(runs)}; {seconds} s"
    three = [one for one in instances if PCP21 in one]
    for name in (PCP21, PCP21S, HCP19):
        found["mean seconds", name, ""] = float(np.mean([one[name].numbers["seconds"] for one in three]))
    none = [one for one in instances if not _planned(one[PCP19])]
    clock = sum(not _planned(one[name]) for one in none for name in BY_CLOCK if f"{LONGEST_S} s" in name)
    old = {"tried": len(instances), "no plan": len(none), "none by clock": clock}
    plans = [_planned(one[name]) for one in three for name in (PCP21, PCP21S)]
    both = {"tried": len(plans), "plans": sum(plans), "complete": 100 * float(np.mean(plans))}
    for row, numbers in ((PCP19, old), ("PCP'21 and PCP'21s", both)):
        found |= {("large machine", row, key): count for key, count in numbers.items()}
    return found
