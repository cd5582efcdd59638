"""The page on Tables 1 to 3 and Figs. 2 to 7 of DBF: jobs with deadlines make room for the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import isfinite, isnan
from typing import Final

import numpy as np

from dovetail.io.read import read_workload
from dovetail.studies.papers.dbf_figure_1 import PAPERS, SOURCES, anomalies
from dovetail.studies.papers.dbf_figures import pictures
from dovetail.studies.papers.dbf_runs import (
    CALLED,
    CBF,
    DBF,
    EASY,
    GUARDED,
    PLANNED,
    SHARES,
    Numbers,
    Results,
    results,
)
from dovetail.studies.papers.page import (
    LOGS,
    Page,
    Runs,
    Statement,
    facts_of,
    filled,
    grid,
    held,
    made_with,
    stated,
)
from dovetail.units import duration

NAME: Final = "dbf-tables"
EXTRA: Final = "ALCF-Mira-2018"
"""Not a log of the paper."""
STABLE: Final = 0.1
"""Waits that differ by less from share to share are called stable here."""
ON_PAR: Final = 0.02
"""A wait above another by less is on par with it."""

TABLE_2: Final[Mapping[str, tuple[int, ...]]] = {
    "SDSC-BLUE": (126_084, 94_564, 63_043, 31_522),
    "SDSC-DS": (51_772, 38_829, 25_886, 12_943),
    "HPC2N": (162_297, 121_723, 81_150, 40_576),
}
"""Regular jobs by share."""
TABLE_3: Final[Mapping[str, tuple[int, ...]]] = {
    "SDSC-BLUE": (273, 274, 278, 313, 215, 138),
    "SDSC-DS": (120, 133, 127, 122, 109, 58),
    "HPC2N": (1383, 1791, 2066, 1827, 441, 183),
}
"""Seconds: DBF by share, CBF, EASY; on a notebook of 2013."""

Of = Callable[[Numbers], float]


def page(runs: Runs) -> Page:
    """The page and its pictures, from whatever is in the store."""
    found = results(runs)
    logs = [log for log in (*PAPERS, EXTRA) if log in found.jobs]
    there = [log for log in PAPERS if log in found.jobs]
    said = _statements(found, PAPERS) if found.complete(PAPERS) else []
    parts = [
        _summary(said, found),
        f"## Made with\n\n{made_with(NAME)}\n\n{LOGS} {_MADE}",
        _READING,
        f"## What the paper says, in numbers\n\n{stated('DBF, Section 6.3', said)}" if said else "",
        _planner(found, logs),
        _tables(runs, found, there),
        _figures(found, logs),
        _DIFFERENCES,
    ]
    drawn = pictures(found, logs) if logs else {}
    return Page(filled(parts), held(said), {**facts_of(said), "missing": found.missing}, drawn)


def _summary(said: Sequence[Statement], found: Results) -> str:
    told = f"{held(said)}." if said else "Too few runs are there to say what holds."
    gap = f" {found.missing} runs of the study are not in the store." if found.missing else ""
    return f"""
# Tables 1 to 3 and Figs. 2 to 7 of DBF, recomputed

"DBF" is N'takpé and Suter, Don't Hurry Be Happy: a Deadline-Based Backfilling Approach (JSSPP 2017): a share of the
jobs need only end by a deadline, and regular jobs, those without one, start earlier for it
([deadlines](../deadlines.md)). Three of its four logs are here. ANL-Intrepid could not be had; {EXTRA}, another and
later machine of the same site, stands beside them and is not compared. [Fig. 1](dbf-figure-1.md) has a page of its
own. {told}{gap}

DBF is Algorithm 1 as printed (`dbf:guard=no`); `dbf` is the same with a guard, which keeps every deadline that was
accepted; `plan-deadline` is our planner, with the same promises. CBF is `conservative`.
"""


_MADE: Final = (
    "Five seeds draw which jobs have a deadline; `plan-deadline` has one. Intervals are of 95 %, over the seeds."
)

_READING: Final = """
## How to read it

A job with a deadline is to have ended within 24 hours, or within 10 times its limit if that is longer. As in the paper,
regular jobs that waited under none of CBF, EASY and DBF are left out of Figs. 2, 3 and 5 and of what is said of them;
all jobs count in Fig. 4. The stretch is (wait + limit) / limit. Late are all jobs that ended after their deadlines;
DBF accepts a deadline only if it can be met; most of the late ones had been refused.
"""


def _statements(found: Results, logs: Sequence[str]) -> list[Statement]:
    return [*_waits(found, logs), *_details(found, logs), *_deadlines(found, logs), *_times(found, logs)]


def _wait(n: Numbers) -> float:
    return n.wait_s


def _places(logs: Sequence[str], holds: Callable[[str, float], bool]) -> list[tuple[str, float]]:
    """The configurations, log and share, where something holds."""
    return [(log, share) for log in logs for share in SHARES if holds(log, share)]


def _named(places: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{log} {100 * share:.0f} %" for log, share in places) or "none"


def _spread(values: Sequence[float]) -> float:
    return max(values) / min(values) - 1


def _waits(found: Results, logs: Sequence[str]) -> list[Statement]:
    """Fig. 2 and Fig. 4."""

    def less(one: str, other: str, of: Of = _wait, slack: float = 0.0) -> Callable[[str, float], bool]:
        return lambda log, share: found.mean(log, share, one, of) < (1 + slack) * found.mean(log, share, other, of)

    many = len(logs) * len(SHARES)
    spreads = {p: [_spread([found.mean(log, s, p, _wait) for s in SHARES]) for log in logs] for p in (CBF, EASY)}
    easy_less = _places(logs, less(EASY, CBF))
    not_cbf = _places(logs, lambda log, share: not less(DBF, CBF)(log, share))
    not_easy = _places(logs, lambda log, share: not less(DBF, EASY)(log, share))
    curves = {log: [found.mean(log, share, DBF, _wait) for share in SHARES] for log in logs}
    straight = [float(np.corrcoef(SHARES, curve)[0, 1]) for curve in curves.values()]
    falls = [all(a > b for a, b in pairwise(curve)) for curve in curves.values()]
    factor = found.mean("SDSC-DS", 0.2, CBF, _wait) / found.mean("SDSC-DS", 0.2, DBF, _wait)
    blue = found.mean("SDSC-BLUE", 0.2, DBF, _wait) / found.mean("SDSC-BLUE", 0.2, EASY, _wait) - 1
    first = [found.mean(log, 0.2, DBF, _wait) / found.mean(log, 0.2, EASY, _wait) - 1 for log in logs]

    def all_jobs(n: Numbers) -> float:
        return n.all_wait_s

    above = _places(logs, lambda log, share: not less(DBF, CBF, all_jobs)(log, share))
    later = [(log, share) for log in logs for share in SHARES[1:]]
    par = [place for place in later if less(DBF, EASY, all_jobs, ON_PAR)(*place)]
    gains = [
        [1 - found.mean(log, s, DBF, all_jobs) / found.mean(log, s, CBF, all_jobs) for s in SHARES] for log in logs
    ]
    grows = [all(a < b for a, b in pairwise(gain)) for gain in gains]
    return [
        Statement(
            "the mean wait of regular jobs is stable for CBF and EASY when the share grows",
            "; ".join(f"{CALLED[p]} differs by up to {_percents(values)}" for p, values in spreads.items()),
            _some([max(values) < STABLE for values in spreads.values()]),
        ),
        Statement(
            "EASY consistently has a smaller mean wait than CBF",
            f"in {len(easy_less)} of {many} configurations",
            _some([log_share in easy_less for log_share in _places(logs, lambda *_: True)]),
        ),
        Statement("DBF is below CBF in all configurations", f"not in: {_named(not_cbf)}", not not_cbf),
        Statement(
            "DBF is below EASY in all configurations but SDSC-BLUE with 20 %, where EASY is slightly better",
            f"not in: {_named(not_easy)}; SDSC-BLUE with 20 %: {100 * blue:+.1f} %",
            _some([set(not_easy) <= {("SDSC-BLUE", 0.2)}, 0 < blue < 0.1]),
        ),
        Statement(
            "a linear decrease of the mean wait when the share grows",
            f"falls from share to share on {sum(falls)} of {len(logs)} logs; correlation {_numbers(straight, '.3f')}",
            all(falls) and max(straight) < -0.98,
        ),
        Statement(
            "on SDSC-DS it falls by more than a factor of two against CBF already with 20 %",
            f"by a factor of {factor:.2f}",
            factor > 2,
        ),
        Statement(
            "with 20 %, at least on par with EASY, up to 25 % less (taken as 20 to 30 %)",
            f"{_percents(first, '+.1f')}",
            _some([*(change < ON_PAR for change in first), -0.3 < min(first) < -0.2]),
        ),
        Statement(
            "the mean wait of all jobs is below that of CBF too (Fig. 4), and the more so the larger the share",
            f"not in: {_named(above)}; grows with the share on {sum(grows)} of {len(logs)} logs",
            _some([not above, all(grows)]),
        ),
        Statement(
            "it is similar to that of EASY or lower for most workloads with at least 40 %",
            f"in {len(par)} of {len(later)} configurations",
            len(par) > len(later) / 2,
        ),
    ]


def _details(found: Results, logs: Sequence[str]) -> list[Statement]:
    """Fig. 3 and Fig. 5."""
    blue = {policy: found.found["SDSC-BLUE", 0.2, 0, policy] for policy in (EASY, DBF)}
    third = blue[DBF].quartiles_s[1] - blue[EASY].quartiles_s[1]
    longest = blue[EASY].max_wait_s - blue[DBF].max_wait_s

    def top(n: Numbers) -> float:
        return n.max_stretch

    ratio = {
        log: [found.mean(log, share, DBF, top) / found.mean(log, share, EASY, top) for share in SHARES] for log in logs
    }
    better = [float(np.mean(ratio[log])) for log in logs]
    return [
        Statement(
            "SDSC-BLUE with 20 %: above 25 % of the regular jobs start at once with EASY; the first quartile of DBF is"
            " 2.5 minutes",
            f"{100 * blue[EASY].at_once:.1f} %; {duration(round(blue[DBF].quartiles_s[0]))}",
            _some([blue[EASY].at_once > 0.25, 60 <= blue[DBF].quartiles_s[0] <= 300]),
        ),
        Statement(
            "there the third quartile is less than half an hour in favour of EASY, and the maximum about 12 hours less"
            " with DBF",
            f"DBF less EASY: {_signed(third)}; {_signed(-longest)}",
            _some([0 < third < 1800, 6 * 3600 < longest < 18 * 3600]),
        ),
        Statement(
            "the largest stretch is similar to that of EASY (SDSC-DS) or better (SDSC-BLUE, HPC2N)",
            f"of that of EASY, mean over the shares: {_percents(better)}",
            _some([value < (1.1 if log == "SDSC-DS" else 1.0) for log, value in zip(logs, better, strict=True)]),
        ),
    ]


def _deadlines(found: Results, logs: Sequence[str]) -> list[Statement]:
    """Fig. 6 and Fig. 7."""
    late = [[found.mean(log, share, DBF, lambda n: n.late_short + n.late_long) for share in SHARES] for log in logs]
    driven = [[(found.jobs[log] - found.regular[log, share]) for share in SHARES] for log in logs]
    worst = float((np.array(late) / np.array(driven)).max())
    short = [
        sum(found.mean(log, s, DBF, lambda n: n.late_short) for s in SHARES)
        / max(sum(found.mean(log, s, DBF, lambda n: n.late_short + n.late_long) for s in SHARES), 1)
        for log in logs
    ]
    at_once = [found.mean(log, share, DBF, lambda n: n.driven_at_once) for log in logs for share in SHARES]
    usage = [[100 * found.mean(log, share, DBF, lambda n: n.usage) for share in SHARES] for log in logs]
    falls = [all(a > b for a, b in pairwise(curve)) for curve in usage]
    above = [found.mean(log, share, DBF, lambda n: n.above_80) for log in logs for share in SHARES]
    missed = {
        policy: sum(int(n.missed) for key, n in found.found.items() if key[3] == policy) for policy in (DBF, GUARDED)
    }
    return [
        Statement(
            "the number of deadlines that were not respected is extremely small (Fig. 6)",
            f"{'; '.join(_numbers(of, '.0f') for of in late)}: {100 * worst:.2f} % of the jobs with a deadline at most",
            worst < 0.01,
        ),
        Statement(
            "DBF keeps every deadline that it accepted",
            f"accepted and late in all runs: DBF {missed[DBF]}, `dbf` {missed[GUARDED]}",
            missed[GUARDED] == 0 and missed[DBF] == 0,
        ),
        Statement(
            "a vast majority of them are of jobs with a deadline of 24 hours, but for HPC2N",
            f"share of those: {_percents(short)}",
            _some([short[0] > 2 / 3, short[1] > 2 / 3, short[2] < 0.5]),
        ),
        Statement(
            "almost half of the jobs with a deadline start at once",
            f"{100 * float(np.mean(at_once)):.1f} %, mean of the configurations",
            0.4 < float(np.mean(at_once)) < 0.5,
        ),
        Statement(
            "of the others, the more have deadlines the less they use of them, 17.3 % at most (Fig. 7)",
            f"falls on {sum(falls)} of {len(logs)} logs; {max(map(max, usage)):.1f} % at most",
            _some([all(falls), max(map(max, usage)) < 20]),
        ),
        Statement(
            "less than 1 % of the jobs with a deadline used more than 80 % of it",
            f"{100 * max(above):.2f} % at most",
            max(above) < 0.01,
        ),
    ]


def _times(found: Results, logs: Sequence[str]) -> list[Statement]:
    """Table 3."""
    over = [
        found.mean(log, share, DBF, lambda n: n.cpu_s) / found.mean(log, share, CBF, lambda n: n.cpu_s) - 1
        for log in logs
        for share in SHARES
    ]
    return [
        Statement(
            "DBF takes 25 % longer than CBF (Table 3)",
            f"{100 * float(np.mean(over)):+.0f} % in the mean of the configurations, {100 * max(over):+.0f} % at most",
            0.1 < float(np.mean(over)) < 0.4,
        )
    ]


def _planner(found: Results, logs: Sequence[str]) -> str:
    """Ours against dbf, on the same jobs."""
    if not found.has(PLANNED):
        return ""
    rows = []
    for log in logs:
        for share in SHARES:
            pair = [found.found.get((log, share, 0, policy)) for policy in (GUARDED, PLANNED)]
            if pair[0] is None or pair[1] is None:
                rows.append([log, f"{100 * share:.0f}", *["not run"] + [""] * 7])
                continue
            dbf, plan = pair[0], pair[1]
            change = 100 * (plan.every_wait_s / dbf.every_wait_s - 1)
            rows.append(
                [
                    log, f"{100 * share:.0f}", f"{dbf.every_wait_s:,.0f}", f"{plan.every_wait_s:,.0f}",
                    f"**{change:+.1f}**", f"{100 * (plan.all_wait_s / dbf.all_wait_s - 1):+.1f}",
                    f"{dbf.every_max_wait_s / 3600:,.0f} / {plan.every_max_wait_s / 3600:,.0f}",
                    f"{dbf.refused:,} / {plan.refused:,}",
                    f"{dbf.late_short + dbf.late_long} / {plan.late_short + plan.late_long}",
                    f"{dbf.missed} / {plan.missed}", f"{plan.cpu_s:,.0f}",
                ]
            )  # fmt: skip
    head = ["log", "share, %", "dbf: mean wait of all regular jobs, s", "plan-deadline, s", "change, %"]
    head += ["of all jobs, %", "longest wait, h", "refused", "late", "accepted and late", "CPU, s"]
    return f"""
## The planner with deadlines

`plan-deadline` keeps the promises of `dbf`: accepted deadlines, and that no regular job starts later than it was first
planned to. Within them it minimises the mean response, in which a job with an accepted deadline counts a tenth. Where
two numbers stand, the first is of `dbf`. The seed is the first. Its settings were chosen on KTH-SP2 and
SDSC-SP2 (`examples/studies/deadline-tuning.toml`).

{grid(head, [row + [""] * (len(head) - len(row)) for row in rows])}
"""


def _tables(runs: Runs, found: Results, logs: Sequence[str]) -> str:
    ones = []
    for name in logs:
        log = read_workload(runs.log(f"archive/{SOURCES[name].file}.swf.gz"))
        ours, printed = anomalies(log), SOURCES[name].anomalies
        cells = [f"{a:,}" if a == b else f"**{a:,}** ({b:,})" for a, b in zip(ours, printed, strict=True)]
        ones.append([name, *cells])
    head = ["log", "run time missing", "processors missing", "more processors than asked for", "over the limit"]
    twos = [
        [name, f"{found.jobs[name]:,} ({SOURCES[name].jobs:,})"]
        + [f"{found.regular.get((name, s), 0):,} ({p:,})" for s, p in zip(SHARES, TABLE_2[name], strict=True)]
        for name in logs
    ]
    shares = [f"{100 * share:.0f} %" for share in SHARES]
    threes = []
    for name in logs:
        spent = [found.mean(name, share, DBF, lambda n: n.cpu_s) for share in SHARES]
        spent += [
            float(np.mean([found.mean(name, share, policy, lambda n: n.cpu_s) for share in SHARES]))
            for policy in (CBF, EASY)
        ]
        threes.append([name, *(f"{a:.1f} ({b:,})" for a, b in zip(spent, TABLE_3[name], strict=True))])
    return f"""
## Tables 1, 2 and 3

Published numbers are in brackets; in Table 1 only where ours differ.

{grid([*head, "over it by a minute"], ones)}

Table 2: regular jobs by the share with a deadline. We draw the share rounded to the nearest job.

{grid(["log", "jobs", *shares], twos)}

Table 3: seconds for a whole log, mean over seeds; theirs are of a simulator in Python on a notebook, ours CPU seconds
of one core of a shared machine, the metrics included. `python benchmarks/deadlines.py` measures the ratios alone.

{grid(["log", *(f"DBF {share}" for share in shares), "CBF", "EASY"], threes)}
"""


def _figures(found: Results, logs: Sequence[str]) -> str:
    if not logs:
        return ""
    texts = {
        2: "Mean wait of regular jobs by the share with a deadline. Bars: 95 % intervals over the seeds.",
        3: "Waits of regular jobs: the part that waited at most so long (first seed; the axis is logarithmic from 6"
        " minutes on).",
        4: "Mean wait of all jobs.",
        5: "Largest stretch of a regular job (logarithmic): mean over the seeds, and from the least to the most.",
        6: "Jobs that ended after their deadlines, mean over the seeds.",
        7: "Share of the time until the deadline that was used, of jobs that did not start at once.",
    }
    shown = "\n\n".join(
        f"**Fig. {number}.** {text}\n\n![Fig. {number} of DBF, drawn by Dovetail](dbf-figure-{number}.svg)"
        for number, text in texts.items()
    )
    rows = []
    for log in logs:
        for policy in CALLED:
            cells = []
            for share in SHARES:
                mean, half = found.mean(log, share, policy, _wait), found.half(log, share, policy, _wait)
                cells.append(
                    "not run" if isnan(mean) else f"{mean:,.0f}" + (f" ± {half:,.0f}" if isfinite(half) else "")
                )
            rows.append([log, CALLED[policy], *cells])
    table = grid(["log", "policy", *(f"{100 * share:.0f} %" for share in SHARES)], rows)
    return f"## Figs. 2 to 7\n\n{shown}\n\nThe numbers of Fig. 2, in seconds:\n\n{table}"


_DIFFERENCES: Final = """
## What the paper leaves open, and what was done

- A job whose deadline is refused "is considered as regular": here it is one in every way, so Algorithm 1 finds its
  place and tentative jobs make room for it too. Many of those end in time after all.
- After ends, the plan is compressed: firm jobs first, then tentative ones, one at a time with all others fixed. The
  paper says nothing on how CBF compresses its plan; ours does it at each end, and comes close to EASY. A CBF that
  compresses less would be worse, and leave DBF more to gain.
- Passes also happen at planned starts: with Algorithm 1, one may fall on an instant at which no job arrives or ends.
- 28 jobs of SDSC-DS ask for more than the 1,368 processors of the eight-way nodes: they get all of them.
"""


def _some(holds: Sequence[bool]) -> str:
    return "yes" if all(holds) else "in part" if any(holds) else "no"


def _percents(values: Sequence[float], form: str = ".1f") -> str:
    return ", ".join(f"{format(100 * value, form)} %" for value in values)


def _numbers(values: Sequence[float], form: str) -> str:
    return ", ".join(format(value, form) for value in values)


def _signed(seconds: float) -> str:
    return f"{'+' if seconds >= 0 else '-'}{duration(round(abs(seconds)))}"
