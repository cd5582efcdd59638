"""The statements of DBF, judged with CBF and DBF under each sweep: which jobs count, and the table of judgements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from dovetail.model.schedule import Schedule
from reproductions.claims import NOT_RUN, YES, Judged, judge, verdict
from reproductions.dbf_figure_1.page import PAPERS
from reproductions.dbf_tables.page import SHARES, measured
from reproductions.folders import find
from reproductions.runs import Points, Run, Runs
from reproductions.values import Content, Key, NotRunError, Value, Values

SWEEPS: Final = {
    "start-now": ("conservative:sweep=start-now", "dbf:guard=no,sweep=start-now"),
    "none": ("conservative:sweep=none", "dbf:guard=no,sweep=none"),
    "once": ("conservative", "dbf:guard=no"),
    "by-start": ("conservative:sweep=by-start", "dbf:guard=no"),
    "each-end": ("conservative:sweep=each-end", "dbf:guard=no"),
    "repeat": ("conservative:sweep=repeat", "dbf:guard=no"),
}
"""CBF and DBF under each. DBF has no more than three: beside the others it is that of `once`."""
SECTION_2: Final = "start-now"


FOUND: Final = {
    "cbf": ("wait_s",),
    "easy": ("wait_s", "max_wait_s", "max_stretch_waited", "third_quartile_s", "at_once"),
    "dbf": ("wait_s", "max_wait_s", "max_stretch_waited", "first_quartile_s", "third_quartile_s"),
}
"""What the statements ask of each policy, over the jobs that count."""
OF_DEADLINES: Final = (
    "deadline_at_once", "deadline_usage", "deadline_usage_above_80", "late_short", "late_long",
)  # fmt: skip
NO_REPLAY: Final = "longer"
"""The judge of the one statement that is about CPU times: these do not depend on the sweep alone."""


def measure(schedule: Schedule, beside: Callable[[str], Schedule]) -> dict[str, float | Points]:
    """Of a CBF, what each of the three policies does to the regular jobs that waited under one of them; of others, how
    many jobs were late."""
    found = measured(schedule, np.zeros(len(schedule.wait), np.bool_))
    late = {kind: found[kind] for kind in ("late_short", "late_long")}
    others = [dbf for cbf, dbf in SWEEPS.values() if cbf == schedule.policy]
    if not others:
        return late
    three = {"cbf": schedule, "easy": beside("easy"), "dbf": beside(others[0])}
    counts = np.any([one.wait > 0 for one in three.values()], axis=0) & (schedule.workload["deadline_s"] < 0)
    of_all = {name: measured(one, counts) for name, one in three.items()}
    asked = {f"{name}_{key}": of_all[name][key] for name, keys in FOUND.items() for key in keys}
    return {**late, **asked, "counted": int(counts.sum())}


def values(runs: Runs, printed: Mapping[Key, Content]) -> dict[Key, Content]:
    """Mean waits under each sweep, and how each statement of dbf-tables fares with them."""
    found: dict[Key, Content] = {}
    for sweep in SWEEPS:
        under = _under(runs, sweep)
        numbers = Values({key: Value(one, "", "run") for key, one in under.items() if one == one}, {})
        found |= {(f"{sweep}, {key[0]}", key[1], key[2]): one for key, one in under.items()}
        for claim in find("dbf-tables").claims:
            if claim.function != NO_REPLAY and (made := judge(claim, find("dbf-tables"), numbers)).holds != NOT_RUN:
                found |= {("holds", claim.says, sweep): made.holds, ("ours", claim.says, sweep): made.ours}
    return found


def _under(runs: Runs, sweep: str) -> dict[Key, Content]:
    """Under one sweep, what dbf-tables calls its values. Nothing where no job waited."""
    cbf, dbf = SWEEPS[sweep]
    found: dict[Key, Content] = {}
    for log in PAPERS:
        for share, scenario in SHARES.items():
            named = {"CBF": cbf, "EASY": "easy", "DBF": dbf}
            ran = {name: runs.get(log, one, scenario=scenario) for name, one in named.items()}
            if ran["CBF"] and ran["EASY"] and ran["DBF"] and ran["CBF"].numbers["counted"]:
                found |= _configuration(log, share, {name: run for name, run in ran.items() if run})
    missed = [run.numbers["deadlines_missed"] for run in runs if run.cell.policy == dbf]
    return {**found, **({("missed", "DBF", ""): sum(missed)} if found else {})}


def _configuration(log: str, share: str, ran: Mapping[str, Run]) -> dict[Key, Content]:
    three, found = ran["CBF"].numbers, {}
    for name, run in ran.items():
        found["mean_wait_s: " + log, name, share] = run.numbers["mean_wait_s"]
        for key in FOUND[name.lower()]:
            found[f"{key}: {log}", name, share] = three[f"{name.lower()}_{key}"]
            found[f"first seed: {name}", f"{log}, {share}", key] = three[f"{name.lower()}_{key}"]
    found |= {(f"{key}: {log}", "DBF", share): ran["DBF"].numbers[key] for key in OF_DEADLINES}
    found["Table 2", log, "jobs"], found["Table 2", log, share] = three["jobs"], three["regular_jobs"]
    found["counted", log, share] = three["counted"]
    return dict(found)


# The text of cells -------------------------------------------------------------------------------------------


def judged(values: Values, table: str, row: str, column: str) -> str:
    """Whether a statement holds under a sweep, and our numbers."""
    holds, ours = (values.text(kind, row, column, missing="") for kind in ("holds", "ours"))
    if not holds:
        return "-"
    return f"{holds if holds == YES else f'**{holds}**'}: {ours}"


def trio(values: Values, table: str, row: str, column: str) -> str:
    """Mean waits of regular jobs under CBF, EASY and DBF, in seconds."""
    log, _, share = row.partition(", ")
    found = [values.number(f"{column}, wait_s: {log}", name, share) for name in ("CBF", "EASY", "DBF")]
    return "-" if None in found else " / ".join(f"{one:,.0f}" for one in found if one is not None)


# Claims ------------------------------------------------------------------------------------------------------


def section_2(values: Values, statement: str) -> Judged:
    """A statement of the paper with the sweep of its Section 2."""
    holds, ours = (values.text(kind, statement, SECTION_2) for kind in ("holds", "ours"))
    if not holds:
        raise NotRunError(f"no run for {statement!r}")
    return Judged(ours, holds)


def _over_easy(values: Values, sweep: str) -> list[float]:
    """The mean wait of CBF over that of EASY, by log and share."""
    found = values.numbers(f"{sweep}, wait_s: *", "CBF")
    if not found:
        raise NotRunError(f"no run with {sweep}")
    return [one / values.need(table, "EASY", share) for (table, _, share), one in found.items()]


def times_easy(values: Values, sweep: str, factor: float) -> Judged:
    """CBF waits many times as long as EASY."""
    times = _over_easy(values, sweep)
    return Judged(f"{min(times):.0f} to {max(times):.0f} times", verdict(one > factor for one in times))


def near_easy(values: Values, sweep: str, by: float) -> Judged:
    """CBF waits about as long as EASY."""
    more = [one - 1 for one in _over_easy(values, sweep)]
    return Judged(f"{100 * min(more):+.1f} % to {100 * max(more):+.1f} %", verdict(abs(one) < by for one in more))


def not_halved(values: Values, sweep: str) -> Judged:
    """What the paper says of SDSC-DS, that DBF halves the mean wait, is not so."""
    cbf, dbf = (values.need(f"{sweep}, wait_s: SDSC-DS", name, "20 %") for name in ("CBF", "DBF"))
    return Judged(f"less by a factor of {cbf / dbf:.2f}", verdict([cbf / dbf <= 2]))
