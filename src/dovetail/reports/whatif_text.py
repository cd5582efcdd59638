"""What would have become of waits, in sentences, and as sheets for the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from typing import Final

from dovetail.io.local_times import zone_of
from dovetail.io.swf import header_count
from dovetail.metrics.history import written
from dovetail.metrics.whatif import Answer, Change, Trust, Weeks, WhatIf
from dovetail.reports.columns import DASH, named
from dovetail.reports.sheets import Cells, Sheet
from dovetail.units import duration

MOST_PARTS: Final = 8
"""That a sentence names."""
NAME: Final = 100
SOME: Final = 0.1
"""In percent: a smaller part of all waiting is not told."""
CHANCE: Final = "By chance: 95 % of all pairs of a replay of today and one of the change."


def asked(one: Answer) -> str:
    """What was asked."""
    return named(one.waits.name, NAME)


def headline(one: Answer) -> str:
    """What it comes to, in a sentence."""
    made = one.all
    if not made.told:
        return f"{asked(one)}: no difference beyond chance."
    word = "shorter" if made.then_s < made.today_s else "longer"
    by, then, today = map(_told, (abs(made.then_s - made.today_s), made.then_s, made.today_s))
    said = f"{asked(one)}: waits would be {word} by {by} on average, {then} instead of {today}"
    if others := _parts(one, 1 if word == "shorter" else -1):
        part, against = others[0]
        whose = named(part, 40) if part.startswith("submitted") else f"of {named(part, 40)}"
        said += f"; but of jobs {whose} {'longer' if word == 'shorter' else 'shorter'} by {_told(against)}"
    return f"{said}."


def more(one: Answer) -> Iterator[str]:
    """Who leaves, who gains and who loses, whether it holds from week to week, and what must be said."""
    if one.today.left or one.waits.left:
        yield f"Jobs that leave before they start: {one.waits.left:,.1f}; today {one.today.left:,.1f}."
    unseen, today = (100 * float(its.unseen.mean()) for its in (one.waits, one.today))
    if max(unseen, today) >= SOME:
        yield (
            f"Of all waiting, {unseen:.1f} % is behind as many jobs as a cycle of the backfill tries (bf_max_job_test,"
            f" _user, _part), today {today:.1f} %: whatever room there is, it may not come to these."
        )
    for word, sign in (("gains", -1), ("loses", 1)):
        if parts := _parts(one, sign):
            shown = "; ".join(f"{named(part, 40)} {_told(by)}" for part, by in parts[:MOST_PARTS])
            rest = f"; {len(parts) - MOST_PARTS} more (--json)" if len(parts) > MOST_PARTS else ""
            yield f"Who {word}, by how much on average: {shown}{rest}."
    yield from _from_week_to_week(one)
    yield from one.waits.notes


def _parts(one: Answer, sign: int) -> list[tuple[str, float]]:
    """The parts of the jobs that gain (-1) or lose (1) beyond chance, and how much: the most first."""
    changes = ((part, sign * (some.then_s - some.today_s)) for part, some in one.groups.items() if some.told)
    return sorted(((part, by) for part, by in changes if by > 0), key=lambda pair: -pair[1])


def _from_week_to_week(one: Answer) -> Iterator[str]:
    if one.weeks is None:
        return
    clear = [made.then_s < made.today_s for made in one.weeks.changes if made.told]
    weeks, overall = len(one.weeks.changes), one.weeks.overall
    yield (
        f"Of {weeks} weeks, waits are shorter beyond chance in {sum(clear)}, longer in {len(clear) - sum(clear)},"
        f" neither in {weeks - len(clear)}."
    )
    if not isnan(overall.low):
        same = one.all.told and overall.verdict == ("better" if one.all.then_s < one.all.today_s else "worse")
        yield (
            f"Each week counted alike, the change is {100 * overall.change:+.1f} %, 95 % interval"
            f" {100 * overall.low:+.1f} to {100 * overall.high:+.1f} %"
            f"{': it holds from week to week' if same else ''}."
        )


def trusted(trust: Trust | None) -> list[str]:
    """Whether today's settings, replayed, are what happened; a warning stands second."""
    if trust is None:
        return ["Can it be trusted? The history does not say when its jobs started: nothing to compare with."]
    said = [
        f"Can it be trusted? {trust.jobs:,} jobs waited {duration(round(trust.recorded_s))} on average. Today's"
        f" settings, replayed, say {duration(round(trust.replayed_s))} ({duration(round(trust.low_s))} to"
        f" {duration(round(trust.high_s))} by chance alone); {100 * trust.within_hour:.0f} % of jobs start within"
        f" an hour of when they did. In use: {100 * trust.recorded_busy:.1f} % of the cores, replayed"
        f" {100 * trust.replayed_busy:.1f} %."
    ]
    if trust.far:
        said.append(
            "WARNING: that is far from what happened. Something decides on this site that the replay does not know;"
            " its answers are about another site than yours."
        )
    return said


UNSAID: Final = "Users who would have submitted otherwise are not modelled."


def when(found: WhatIf) -> str:
    """From when to when the history goes; empty where nobody knows."""
    workload = found.workload
    zone = zone_of(workload.header)
    epoch = header_count(workload.header, "UnixStartTime")
    if not epoch:
        return ""
    since, until = (written(epoch, int(workload.submit[at]), zone) for at in (0, -1))
    return f"{since} to {until} ({named(zone, 40)})"


def trust_sheet(trust: Trust) -> Sheet:
    """Recorded and replayed waits of each part of the jobs."""
    parts, many, was, now = zip(*trust.groups, strict=True) if trust.groups else ((),) * 4
    numbers = [
        Cells("jobs", [f"{one:,}" for one in many]), _durations("recorded", was), _durations("replayed", now),
    ]  # fmt: skip
    return Sheet("Mean waits, recorded and replayed", "mean wait of", [named(part, 40) for part in parts], numbers)


def answers_sheet(found: WhatIf) -> Sheet:
    """Today's settings first."""
    today = float(found.today.means(found.started).mean())
    rows = [Change(today, today, 0.0, 0.0), *(one.all for one in found.answers)]
    its = [found.today, *(one.waits for one in found.answers)]
    left = [one.left for one in its]
    numbers = [
        _durations("mean wait", [one.then_s for one in rows]),
        Cells("change", ["", *(_signed(one.then_s - one.today_s) for one in rows[1:])]),
        Cells("by chance", ["", *map(_range, rows[1:])], rank=1),
        Cells("cores in use", [f"{100 * one.busy.mean():.1f}" for one in its], "%", rank=2),
        *([Cells("leave unstarted", [f"{one:,.1f}" for one in left], "jobs", rank=2)] if any(left) else ()),
    ]
    return Sheet("What becomes of waits", "what if", [named(one.name, NAME) for one in its], numbers)


def groups_sheet(one: Answer) -> Sheet:
    """What becomes of the waits of each part of the jobs."""
    return _changes("Waits by part", "jobs of", one.groups)


def weeks_sheet(found: WhatIf, weeks: Weeks) -> Sheet:
    """And of those submitted in each week."""
    rows = zip(week_names(found, weeks.begins), weeks.changes, strict=True)
    return _changes("Waits by week", "week", dict(rows))


def week_names(found: WhatIf, begins: Sequence[int]) -> list[str]:
    """The day on which each week begins, or its number where nobody knows."""
    header = found.workload.header
    epoch, zone = header_count(header, "UnixStartTime"), zone_of(header)
    return [written(epoch, one, zone)[:10] or f"week {at}" for at, one in enumerate(begins, 1)]


def _changes(title: str, head: str, rows: Mapping[str, Change]) -> Sheet:
    numbers = [
        _durations("today", [one.today_s for one in rows.values()]),
        _durations("then", [one.then_s for one in rows.values()]),
        Cells("change", [_signed(one.then_s - one.today_s) for one in rows.values()]),
        Cells("by chance", [_range(one) for one in rows.values()]),
        Cells("beyond chance", ["yes" if one.told else "no" for one in rows.values()]),
    ]
    return Sheet(title, head, [named(name, 40) for name in rows], numbers)


def _durations(head: str, seconds: Sequence[float]) -> Cells:
    exact = ["" if isnan(one) else f"{one:,.1f} s" for one in seconds]
    return Cells(head, [DASH if isnan(one) else duration(round(one)) for one in seconds], exact=exact)


def _told(seconds: float) -> str:
    return duration(round(seconds)) if seconds >= 1 else "less than a second"


def _signed(seconds: float) -> str:
    if isnan(seconds):
        return DASH
    return f"{'-' if seconds < 0 else '+'}{duration(abs(round(seconds)))}"


def _range(one: Change) -> str:
    return DASH if isnan(one.low_s) else f"{_signed(one.low_s)} to {_signed(one.high_s)}"
