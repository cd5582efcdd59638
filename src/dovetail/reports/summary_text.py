"""The summary of a page in plain words, for those who run a cluster and not a statistics course.

It calls a policy better or worse, or says that it cut or raised something, only where a comparison's verdict says so.
Without comparisons the numbers of this replay are told, and that they are no more than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import Final

from dovetail.metrics.catalog import MAIN, METRICS, Metric, metric_of
from dovetail.metrics.comparison import Comparison
from dovetail.reports.columns import change, named, scale
from dovetail.reports.page_data import Case, Content, Entry
from dovetail.reports.tables import judged, moved, paired
from dovetail.units import duration, printable

MOST_POLICIES: Final = 4
"""Policies that get a sentence of their own; the tables have all."""
MOST_NAMES: Final = 6
"""Names in one list of them."""
NOTABLE: Final = 0.05
"""A longest wait that differs by less is not worth a sentence."""

SPOKEN: Final = tuple(column for column in METRICS if column in MAIN or column.key in ("max_wait_s", "utilization"))
"""The metrics that sentences tell of; the others say nearly the same as one of these."""

_MEAN_WAIT, _LONGEST = metric_of("mean_wait_s"), metric_of("max_wait_s")


@dataclass(frozen=True)
class Told:
    """What a page says in words, the most important first."""

    warnings: tuple[str, ...]
    """Who left jobs waiting for ever: to be seen before anything else."""
    headline: str
    more: tuple[str, ...]
    """What is left to say; with the headline 3 to 8 sentences where there is something to compare."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """All of it."""
        return (*self.warnings, self.headline, *self.more)


def summary(content: Content) -> Told:
    """A page in words."""
    cases = [case for case in content.cases if case.entries]
    if not cases:
        return Told((), "There is nothing to show: no case has a policy that was replayed.", ())
    found: Iterable[str]
    if content.sentences:
        found = [printable(sentence, 2_000) for sentence in content.sentences]
    elif len(cases) > 1:
        found = _of_many(cases)
    elif len(cases[0].entries) == 1:
        found = _of_one_policy(cases[0])
    else:
        found = _compared(cases[0]) if _has_comparisons(cases[0]) else _observed(cases[0])
    headline, *more = found
    return Told(tuple(_unstarted(cases)), headline, tuple(more))


def setting(case: Case) -> str:
    """Where a case happened: On KTH-SP2 (28,481 jobs over 339 d 4 h, 100 processors) with run times known."""
    where = ", ".join(named(part) for part in (case.trace, case.detail) if part)
    span = f" over {duration(case.span_s)}" if case.span_s > 0 else ""
    return f"On {where} ({case.jobs:,} jobs{span}, {case.machine}) {_told(case.estimate)}"


def _told(estimate: str) -> str:
    if estimate == "limit":
        return "with the users' limits as estimates"
    if estimate == "runtime":
        return "with all run times known beforehand"
    return f"with the estimate {named(estimate)}"


def _unstarted(cases: Sequence[Case]) -> Iterable[str]:
    """Who left jobs waiting for ever: what its numbers are, and are not."""
    found = [(case, entry) for case in cases for entry in case.entries if entry.unstarted]
    for case, entry in found[:MOST_POLICIES]:
        where = f" on {named(case.title)}" if len(cases) > 1 else ""
        rule = "Its numbers are of the others alone, so it is compared with nobody and is best in nothing"
        if len(case.entries) == 1:
            rule = "Its numbers are of the others alone"
        elif entry is case.entries[0]:
            rule = "Its numbers are of the others alone, and it is the baseline: so nobody is compared with it"
        yield f"{named(entry.policy)} {entry.unstarted}{where}. {rule}."
    if len(found) > MOST_POLICIES:
        yield f"{len(found) - MOST_POLICIES} more did so, as the tables say."


def _has_comparisons(case: Case) -> bool:
    return any(judged(entry) for entry in case.entries)


# One case, compared


def _compared(case: Case) -> Iterable[str]:
    base, others = named(case.entries[0].policy), case.entries[1:]
    compared = sorted((entry for entry in others if judged(entry)), key=lambda entry: _value(entry, _MEAN_WAIT))
    for entry in compared[:MOST_POLICIES]:
        yield _headline(case, entry)
        if effects := _effects(case, entry):
            yield effects
    if rest := compared[MOST_POLICIES:]:
        yield f"The table has the others: {_names(rest)}."
    if alone := [entry for entry in others if not judged(entry) and not entry.unstarted]:
        yield f"Too little could be compared in pairs for {_names(alone)}, so no statement is made there."
    many = sum(not entry.unstarted for entry in others)
    were = "policy was" if many == 1 else "policies were"
    level = next(100 * found.confidence for entry in others for found in entry.versus.values())
    yield (
        f"{setting(case)}, {many} {were} compared with {base}. Ranges are {level:g} % intervals over"
        f" {named(case.pairing)}, which speak of this workload and not of others."
    )


def _headline(case: Case, entry: Entry) -> str:
    """`X: mean wait 14.3 h instead of 18.3 h: 22 % less. Week by week: 20 % less, 16 to 24 %.`"""
    base, own = _value(case.entries[0], _MEAN_WAIT), _value(entry, _MEAN_WAIT)
    unit = scale(_MEAN_WAIT, (base, own))
    by, found = moved(case, entry, _MEAN_WAIT.key), paired(entry, _MEAN_WAIT.key)
    values = f"{unit.text(own)} {unit.unit} instead of {unit.text(base)} {unit.unit}"
    text = f"{named(entry.policy)}: mean wait {values}{f': {_less(by)}' if isfinite(by) else ''}."
    return f"{text} {_each(case)}: {_less_range(found)}." if found else text


def _each(case: Case) -> str:
    """`Week by week`."""
    unit = case.pairing.rpartition(" ")[2].removesuffix("s") or "pair"
    return f"{unit.capitalize()} by {unit}"


def _less(share: float) -> str:
    return f"{_percent(share)} {'less' if share < 0 else 'more'}"


def _less_range(found: Comparison) -> str:
    """`20 % less, 16 to 24 %`, or that it may be none."""
    if found.verdict == "unclear":
        return f"no difference could be shown ({_less(found.low)} to {_less(found.high)})"
    return f"{_less(found.change)}, {_interval(found)}"


def _spoken(entry: Entry) -> list[tuple[Metric, Comparison]]:
    found = ((column, paired(entry, column.key)) for column in SPOKEN)
    return [(column, one) for column, one in found if one]


def _effects(case: Case, entry: Entry) -> str:
    """What else a policy did by that comparison, good before bad: `It cut the ... by 14 % (...), but raised ...`"""
    rest = [(column, found) for column, found in _spoken(entry) if column is not _MEAN_WAIT]
    good, bad = (_moves([f for f in rest if f[1].verdict == each]) for each in ("better", "worse"))
    said = ", but ".join(filter(None, (good, bad)))
    parts = [f"{_each(case)}, it {said}."] if said else []
    if _LONGEST.key not in entry.versus and (longest := _longest(case, entry)):
        parts.append(f"{longest[0].upper()}{longest[1:]}.")
    return " ".join(parts)


def _moves(found: Sequence[tuple[Metric, Comparison]]) -> str:
    """`cut the mean wait by 14 % (9 to 18 %) and raised the utilisation by 2.0 % (1.0 to 3.0 %)`."""
    down = [f"the {c.words} by {_percent(f.change)} ({_interval(f)})" for c, f in found if f.change < 0]
    up = [f"the {c.words} by {_percent(f.change)} ({_interval(f)})" for c, f in found if f.change >= 0]
    return _listed(f"{verb} {_listed(part)}" for verb, part in (("cut", down), ("raised", up)) if part)


def _interval(found: Comparison) -> str:
    """Of a change that is clear: `16 to 24 %`."""
    small, large = sorted((abs(found.low), abs(found.high)))
    return f"{_percent(small).removesuffix(' %')} to {_percent(large)}"


def _longest(case: Case, entry: Entry) -> str:
    """The longest wait is that of one job, so it is told and not judged."""
    base, other = (each.metrics.get(_LONGEST.key, nan) for each in (case.entries[0], entry))
    by = change(base, other)
    if not isfinite(by) or abs(by) < NOTABLE:
        return ""
    way = "longer" if by > 0 else "shorter"
    size = f"{_percent(by)} {way}" if by < 1 else f"{1 + by:.1f} times as long"
    return f"its longest wait was {size} ({duration(other)}, not {duration(base)})"


# One case, one replay of each


def _observed(case: Case) -> Iterable[str]:
    base, others = case.entries[0], case.entries[1:]
    name = named(base.policy)
    if sentence := _least(case, _MEAN_WAIT):
        yield sentence
    yield f"{setting(case)}, {len(case.entries)} policies were replayed; changes are against {name}."
    rest = [(column, _winners(case, column)) for column in MAIN if column is not _MEAN_WAIT]
    if told := [f"the {column.words} under {_some(who)}" for column, who in rest if who]:
        yield f"As to other metrics, least was {_listed(told)}."
    for entry in sorted((e for e in others if not e.unstarted), key=lambda e: _value(e, _MEAN_WAIT))[:2]:
        shorter = _value(entry, _MEAN_WAIT) < _value(base, _MEAN_WAIT)
        if shorter and change(_value(base, _LONGEST), _value(entry, _LONGEST)) > NOTABLE:
            yield f"{named(entry.policy)} had a lower mean wait than {name}, but {_longest(case, entry)}."
    if not base.unstarted:
        yield _no_statistics(case.entries)


def _least(case: Case, column: Metric) -> str:
    who, base = _winners(case, column), case.entries[0]
    if not who:
        return ""
    least = min(_value(entry, column) for entry in case.entries if entry.contends)
    of = "Of the policies, the" if base.recorded else "The"
    text = f"{of} {column.words} was least under {_some(who)}: {_amount(column, least)}"
    by = change(_value(base, column), least)
    if named(base.policy) in who or base.unstarted or not isfinite(by):
        return text + "."
    return f"{text}, {_less(by)} than under {named(base.policy)} ({_amount(column, _value(base, column))})."


def _winners(case: Case, column: Metric) -> list[str]:
    """The policies with the least value, of those that contend; none where all have the same."""
    entire = [entry for entry in case.entries if entry.contends]
    values = [_value(entry, column) for entry in entire]
    if not any(isfinite(value) for value in values) or len(set(values)) == 1:
        return []
    return [named(e.policy) for e, value in zip(entire, values, strict=True) if value == min(values)]


def _no_statistics(entries: Sequence[Entry]) -> str:
    runs = max(entry.runs for entry in entries)
    what = "Each policy was replayed once" if runs == 1 else f"These are means over up to {runs} runs"
    why = "with too little to compare in pairs"
    return f"{what}, {why}: no statistical statement is made, and small differences may be chance."


def _of_one_policy(case: Case) -> Iterable[str]:
    entry = case.entries[0]
    known = [(c, value) for c in METRICS if isfinite(value := entry.metrics.get(c.key, nan))]
    if told := [f"the {c.words} was {_amount(c, value)}" for c, value in known if c.key in _ALONE]:
        yield f"{_listed(told)[0].upper()}{_listed(told)[1:]}."
    yield f"{setting(case)}, {named(entry.policy)} was replayed."
    yield "There is no other policy to compare it with."


_ALONE: Final = ("mean_wait_s", "max_wait_s", "utilization")


# Several cases


def _of_many(cases: Sequence[Case]) -> Iterable[str]:
    bases = list(dict.fromkeys(named(case.entries[0].policy) for case in cases))
    base = bases[0] if len(bases) == 1 else "the first policy of each case"
    policies = list(dict.fromkeys(entry.policy for case in cases for entry in case.entries[1:]))
    compared = [case for case in cases if _has_comparisons(case)]
    traces = _some([named(trace) for trace in dict.fromkeys(case.trace for case in cases)])
    count = "; brackets count the cases in which paired comparisons say so" if compared else ""
    were = "policy was" if len(policies) == 1 else "policies were"
    best = max(policies, key=lambda policy: len(_lower(policy, cases)[0]), default="")
    if best:
        yield _lower_in(best, cases, base)
    yield f"{len(policies)} {were} compared with {base} in {len(cases)} cases, on {traces}{count}."
    if not compared:
        for policy in [policy for policy in policies if policy != best][: MOST_POLICIES - 1]:
            yield _lower_in(policy, cases, base)
        yield _no_statistics([entry for case in cases for entry in case.entries])
        return
    counts = {policy: _counts(policy, compared) for policy in policies}
    clear = [policy for policy in policies if any(b or w for b, w, _ in counts[policy].values())]
    clear.sort(key=lambda policy: counts[policy]["mean_wait_s"][1] - counts[policy]["mean_wait_s"][0])
    for policy in clear[:MOST_POLICIES]:
        yield _verdicts(policy, counts[policy], base)
    if rest := clear[MOST_POLICIES:]:
        yield f"The overview has the verdicts on {_some([named(policy) for policy in rest])}."
    if unclear := [p for p in policies if p not in clear and any(n for _, _, n in counts[p].values())]:
        names = _some([named(policy) for policy in unclear], "or")
        yield f"No difference from {base} could be shown for {names} in the main metrics in any case."
    if alone := len(cases) - len(compared):
        yield f"In {alone} of the {len(cases)} cases too little could be compared in pairs: they do not count here."


def _counts(policy: str, cases: Sequence[Case]) -> dict[str, tuple[int, int, int]]:
    """By metric: cases in which the policy was better, was worse, was compared at all."""
    entries = [entry for case in cases for entry in case.entries[1:] if entry.policy == policy]
    verdicts = {c.key: [e.versus[c.key].verdict for e in entries if c.key in e.versus and judged(e)] for c in MAIN}
    return {key: (found.count("better"), found.count("worse"), len(found)) for key, found in verdicts.items()}


def _verdicts(policy: str, counts: dict[str, tuple[int, int, int]], base: str) -> str:
    said = []
    for at, word in enumerate(("better", "worse")):
        found = [f"the {c.words} ({counts[c.key][at]} of {counts[c.key][2]})" for c in MAIN if counts[c.key][at]]
        said += [f"{word} in {_listed(found)}"] if found else []
    return f"Against {base}, {named(policy)} was {', but '.join(said)}."


def _lower(policy: str, cases: Sequence[Case]) -> tuple[list[Entry], list[Entry]]:
    """A policy in the cases in which its mean wait was lower than the baseline's, and in those that can be compared."""
    pairs = [(case, entry) for case in cases for entry in case.entries[1:] if entry.policy == policy]
    known = [(entry, by) for case, entry in pairs if isfinite(by := moved(case, entry, _MEAN_WAIT.key))]
    return [entry for entry, by in known if by < 0], [entry for entry, _ in known]


def _lower_in(policy: str, cases: Sequence[Case], base: str) -> str:
    lower, known = _lower(policy, cases)
    if not known:
        return f"{named(policy)} could be compared with {base} in no case."
    clear = [found.verdict == "better" for entry in lower if (found := paired(entry, _MEAN_WAIT.key))]
    clearly = f", clearly so in {sum(clear)}" if clear else ""
    where = f"in {len(lower)} of {len(known)} cases"
    return f"The mean wait under {named(policy)} was lower than under {base} {where}{clearly}."


# Words


def _value(entry: Entry, column: Metric) -> float:
    value = entry.metrics.get(column.key, nan)
    return value if isfinite(value) else inf


def _amount(column: Metric, value: float) -> str:
    if column.kind == "seconds":
        return duration(round(value))
    return f"{value:,.2f}" if column.kind == "ratio" else f"{100 * value:.1f} %"


def _percent(share: float) -> str:
    size = 100 * abs(share)
    return f"{size:,.0f} %" if size >= 9.95 else f"{size:.1f} %"


def _listed(parts: Iterable[str], last: str = "and") -> str:
    """a, b and c."""
    every = list(parts)
    return "".join(every) if len(every) < 2 else f"{', '.join(every[:-1])} {last} {every[-1]}"


def _some(names: Sequence[str], last: str = "and") -> str:
    """The first few of a list of names."""
    more = len(names) - MOST_NAMES
    return _listed(names if more <= 1 else [*names[:MOST_NAMES], f"{more} more"], last)


def _names(entries: Sequence[Entry], last: str = "and") -> str:
    return _some([named(entry.policy) for entry in entries], last)
