"""docs/results/energy-fronts.md and its two figures, from the results of fronts.py.

python benchmarks/fronts_page.py --results fronts.jsonl [more.jsonl] [--folder docs/results]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.fronts import BUSY_W, CLOSER, GERMANY, HELD, LIMITS, LOGS, PLANNED, PLANNER, TEXAS, VARIANTS, Row

from dovetail.metrics.comparison import block_length, compare
from dovetail.studies.papers.page import LOGS as THANKS
from dovetail.studies.papers.page import filled, grid, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

VALUE: Final = {"cost": "bill", "carbon": "co2_kg"}
WEEKS: Final = {"cost": "bill_weeks", "carbon": "co2_weeks"}
TWO: Final = list(LIMITS)[:2]


class Found:
    """What was measured, by front."""

    def __init__(self, *paths: Path) -> None:
        rows = [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
        self.bounds = {row["bounds"]["log"]: row["bounds"] for row in rows if "bounds" in row}
        self.prices = [row["prices"] for row in rows if "prices" in row]
        self.week: Row = next((row["week"] for row in rows if "week" in row), {})
        self.rows = [row for row in rows if "policy" in row]

    def front(self, log: str, site: str, saves: str = "cost", estimate: str = "limit", variant: str = "") -> list[Row]:
        """Its baseline first."""
        wanted = {"log": log, "site": site, "saves": saves, "estimate": estimate, "variant": variant}
        return [row for row in self.rows if wanted.items() <= row.items()]


def best(front: Sequence[Row], most: float) -> Row:
    """The replay that saves most of those with no longer a wait than allowed; at worst the baseline."""
    key = VALUE[front[0]["saves"]]
    tried = [row for row in front[1:] if row["policy"] != "easy" and row["longer"] <= most]
    return min([front[0], *tried], key=lambda row: row[key])


def saved(front: Sequence[Row], most: float) -> float:
    """In per cent."""
    key = VALUE[front[0]["saves"]]
    return float(100 - 100 * best(front, most)[key] / front[0][key])


def with_interval(front: Sequence[Row], most: float) -> str:
    """What is saved, in per cent, with its interval over weeks."""
    weeks = [np.array(row[WEEKS[front[0]["saves"]]]) for row in (front[0], best(front, most))]
    found = compare(*weeks, block=block_length(len(weeks[0])))
    text = f"{shown(-100 * found.change)}"
    return text if isnan(found.low) else f"{text} [{shown(-100 * found.high)}, {shown(-100 * found.low)}]"


def percent(most: float) -> str:
    return f"{most:+.0%}".replace("%", " %")


def shown(value: float) -> str:
    return f"{value:.1f}".replace("-0.0", "0.0")


def savings(found: Found, saves: str) -> str:
    """The first tables."""
    head = ["", "jobs", "weeks", "utilization", "mean wait, `list-reg` (h)"]
    head += [f"{site.name}, ≤ {percent(most)}" for site in (GERMANY, TEXAS) for most in TWO]
    rows = []
    for log in LOGS:
        about, base = found.bounds[log], found.front(log, GERMANY.name)[0]
        cells = [log, f"{about['jobs']:,}", str(about["weeks"]), f"{about['utilization']:.0%}"]
        cells.append(f"{base['mean_wait_s'] / 3600:.1f}")
        for site in (GERMANY, TEXAS):
            front = found.front(log, site.name, saves)
            cells += [with_interval(front, most) if front else "" for most in TWO]
        rows.append(cells)
    return grid(head, rows)


def ladder(found: Found) -> str:
    """What stands in the way, one thing after the other."""
    rows = [["half of the work is in jobs of at least (h)", *(f"{found.bounds[x]['work_median_h']:.1f}" for x in LOGS)]]

    def line(words: str, key: str) -> None:
        rows.append([words, *(shown(100 - 100 * found.bounds[log][key]) for log in LOGS)])

    line("jobs may be split, on a machine without end", "split_free")
    line("jobs may be split, on the machine as it is: **no schedule that starts jobs by then saves more**", "split")
    line("... with starts up to 7 days after arrival", "split_week")
    line("whole jobs, each later than under `list-reg` as it likes, nobody in its way", "wait_free")
    for most in reversed(LIMITS):
        line(f"... mean wait ≤ {percent(most)}", f"wait_{most:g}")
    for estimate, words in (("runtime", "`thrift`, run times known"), ("limit", "`thrift`")):
        for most in reversed(LIMITS):
            fronts = [found.front(log, GERMANY.name, estimate=estimate) for log in LOGS]
            rows.append(
                [f"{words}, ≤ {percent(most)}", *(shown(saved(front, most)) if front else "" for front in fronts)]
            )
    return grid(["saved of the bill, Germany 2021 (%)", *LOGS], rows)


def variants(found: Found) -> str:
    """One thing changed at a time."""
    head = ["", *(f"{log}, ≤ {percent(most)}" for log in CLOSER for most in LIMITS)]
    rows = []
    for variant in (None, *VARIANTS):
        name, site = (variant.name, variant.place.name) if variant else ("", GERMANY.name)
        fronts = [found.front(log, site, variant=name) for log in CLOSER]
        rows.append([name or "as above", *(shown(saved(front, most)) for front in fronts for most in LIMITS)])
    return grid(head, rows)


def held_jobs(found: Found) -> str:
    """Jobs held on arrival beside thrift."""
    rows = []
    names = ("`thrift`", "then `list-reg`", "then `easy`", "then `easy`, against `easy`")
    for log in LOGS:
        easy = next(row for row in found.front(log, GERMANY.name) if row["policy"] == "easy")
        fronts = [found.front(log, GERMANY.name, variant=name) for name in ("", *(one.name for one in HELD))]
        cells = [with_interval(front, most) for front in fronts for most in TWO]
        rows.append([log, shown(100 * easy["longer"]), *cells])
    return grid(["", "wait, `easy` (%)", *(f"{name}, ≤ {percent(most)}" for name in names for most in TWO)], rows)


def planned(found: Found) -> str:
    """The planner for money beside thrift."""
    rows = []
    for log in PLANNED:
        front, thrift = (found.front(log, GERMANY.name, variant=name) for name in (PLANNER.name, ""))
        if not front:
            continue
        dearest = max(front[1:], key=lambda row: row["wait"])
        cells = [f"{100 * dearest['longer']:+.0f}", shown(100 - 100 * dearest["bill"] / front[0]["bill"])]
        cells += [text for most in TWO for text in (shown(saved(thrift, most)), with_interval(front, most))]
        rows.append([log, *cells, f"{max(row['cpu_s'] for row in front[1:]):.0f}"])
    head = ["", "nobody is held: wait (%)", "saved (%)"]
    head += [f"{name}, ≤ {percent(most)}" for most in TWO for name in ("`thrift`", "planner")]
    return grid([*head, "CPU s of a replay, at most"], rows)


def prices(found: Found) -> str:
    """How far and how long they are low."""
    hours = ("8", "12", "16", "20")
    head = ["prices", *(f"cheapest {h} h of each day" for h in hours), "stays below the day's median for (h)"]
    rows = [[one["site"], *(f"{100 * one[h]:.0f} %" for h in hours), f"{one['low_h']:.1f}"] for one in found.prices]
    return grid(head, rows)


def draw_fronts(found: Found) -> Figure:
    """A column for each trace, a row for each site: what is saved against how much longer the mean wait is."""
    from dovetail.reports.style import GREY, STROKES, figure

    made = figure(720, 380)
    axes = made.subplots(2, len(LOGS), sharex=True, sharey="row")
    for row, site in zip(axes, (GERMANY, TEXAS), strict=True):
        for ax, log in zip(row, LOGS, strict=True):
            for most in TWO if found.front(log, site.name) else ():
                ax.axvline(100 * most, color=GREY, linewidth=0.6, linestyle=":")
            for saves, variant, words, stroke in (
                ("cost", "", "bill, thrift", STROKES[1]), ("carbon", "", "carbon, thrift", STROKES[2]),
                ("cost", PLANNER.name, "bill, planner", STROKES[3]),
            ):  # fmt: skip
                if front := found.front(log, site.name, saves, variant=variant):
                    _line(ax, front, {**stroke.line, "markersize": 3, "label": words})
            ax.set_xlim(-85, 104)
            ax.set_xticks([-50, 0, 20, 100])
            ax.set_xlabel("mean wait, % longer")
            ax.tick_params(labelbottom=True)
        row[0].set_ylabel(f"{site.name}\nsaved, % of list-reg's")
    for ax, log in zip(axes[0], LOGS, strict=True):
        ax.set_title(f"{log} ({found.front(log, GERMANY.name)[0]['mean_wait_s'] / 3600:.1f} h)")
    axes[-1, -1].axis("off")
    axes[-1, -1].legend(*axes[0, 0].get_legend_handles_labels(), loc="center left", frameon=False)
    return made


def _line(ax: Axes, front: Sequence[Row], style: dict[str, Any]) -> None:
    """The replays that none beats in both."""
    key = VALUE[front[0]["saves"]]
    kept = [row for row in front if row["policy"] != "easy"]
    points = sorted((100 * row["longer"], 100 - 100 * row[key] / front[0][key]) for row in kept)
    shown_: list[tuple[float, float]] = []
    for x, y in points:
        if not shown_ or y > shown_[-1][1]:
            shown_.append((x, y))
    ax.plot(*zip(*shown_, strict=True), **style)


def draw_week(week: Row) -> Figure:
    """Price, temperature and power, hour by hour."""
    from calendar import day_name

    from dovetail.reports.style import STROKES, figure

    made = figure(640, 360)
    axes = made.subplots(3, 1, sharex=True, height_ratios=[2, 1, 3])
    hours = np.arange(len(week["price"]) + 1) / 24
    for ax, values, label in (
        (axes[0], week["price"], "price\nUSD/MWh"), (axes[1], week["temperature"], "outside\n°C"),
    ):  # fmt: skip
        ax.stairs(values, hours, color=STROKES[0].colour, baseline=None)
        ax.set_ylabel(label)
    for kw, stroke, name in zip(week["kw"], (STROKES[0], STROKES[2]), ("list-reg", "thrift"), strict=True):
        axes[2].stairs(kw, hours, color=stroke.colour, baseline=None, label=name, linewidth=1.2)
    dear = np.array([*week["price"], 0.0]) > np.median(week["price"])
    for ax in axes:
        where = {"where": dear, "step": "post", "transform": ax.get_xaxis_transform()}
        ax.fill_between(hours, 0, 1, color="#f0f0f0", linewidth=0, zorder=0, **where)
    axes[2].set_ylim(bottom=0)
    axes[2].set_ylabel("power, cooling\nincluded, kW")
    axes[2].set_xticks(range(8), [*day_name, ""], ha="left")
    axes[2].set_xlim(0, 7)
    axes[2].legend(loc="lower right", bbox_to_anchor=(1, 0.97), frameon=False, ncols=2)
    return made


def spread(values: Sequence[float]) -> str:
    """From the least to the most, in per cent."""
    return f"{shown(min(values))} to {shown(max(values))} %"


def page(found: Found) -> str:
    """docs/results/energy-fronts.md"""
    fronts = [found.front(log, GERMANY.name) for log in LOGS]
    week = found.week
    bounds = found.bounds.values()
    here = next(one for one in found.prices if one["site"] == GERMANY.name)
    easy = [found.front(log, GERMANY.name, variant=HELD[2].name) for log in LOGS]
    numbers = {
        "busy": f"{BUSY_W:g}",
        "least": spread([saved(front, 0.05) for front in fronts]),
        "more": spread([saved(front, 0.20) for front in fronts]),
        "twice": spread([saved(front, 1.00) for front in fronts]),
        "split": spread([100 - 100 * one["split"] for one in bounds]),
        "split_free": spread([100 - 100 * one["split_free"] for one in bounds]),
        "whole": spread([100 - 100 * one["wait_free"] for one in bounds]),
        "whole_least": spread([100 - 100 * one["wait_0.05"] for one in bounds]),
        "used": spread([100 * one["utilization"] for one in bounds]),
        "cheap": f"{100 * here['16']:.0f} %",
        "low": f"{here['low_h']:.0f} h",
        "laf": spread([100 * found.front(log, GERMANY.name, variant="order=laf, against list-laf")[0]["mean_wait_s"]
                       / found.front(log, GERMANY.name)[0]["mean_wait_s"] - 100 for log in CLOSER]),
        "hours": spread([one["work_median_h"] for one in bounds]).replace("%", "h"),
        "minutes": spread([3 * front[0]["mean_wait_s"] / 3600 for front in fronts]).replace("%", "min"),
        "known": spread([saved(found.front(log, GERMANY.name, estimate="runtime"), 1.00) for log in LOGS]),
        "held_least": spread([saved(found.front(log, GERMANY.name, variant=HELD[1].name), 0.05) for log in LOGS]),
        "easy_least": spread([saved(front, 0.05) for front in easy]),
        "easy_more": spread([saved(front, 0.20) for front in easy]),
        "week_log": week["log"], "week_policy": week["policy"], "week_number": str(week["number"] + 1),
        "week_longer": f"{week['longer']:.0%}".replace("%", " %"),
    }  # fmt: skip
    parts = [
        HOW, "## Bill", "Saved, in per cent [95 % interval over weeks], at no more than so much longer a mean wait:",
        savings(found, "cost"), "## Carbon", savings(found, "carbon"), PLANS, planned(found), PLANS_MEAN,
        FRONT, WEEK_WORDS, "## Why it is less than published", WHY, ladder(found), REASONS, prices(found), ONE_BY_ONE,
        variants(found), SAYS, "## Held on arrival", HELD_SAYS, held_jobs(found), HELD_MEANS, MADE, THANKS,
    ]  # fmt: skip
    return filled([part.format(**numbers) if "{" in part else part for part in parts])


HOW: Final = """
# What waiting for cheap hours saves

`thrift` ([energy](../energy.md#waiting-for-a-cheap-hour)) against `list-reg`, the same list without waiting for cheap
hours, on the first weeks of five logs, with real hourly prices, carbon and weather. A log is put into the first week of
January, on the weekday and at the hour, local time, at which it began. A processor draws {busy} W while a job runs, and
nothing otherwise, so all of the bill can move; cooling is the plant `air`, built for full load. Estimates are limits.
CEA-Curie, which takes longest, is replayed in Germany alone.

For each front the price of wait is lowered in coarse steps, then some prices are tried that come close to 5 %, 20 % and
100 % longer a mean wait. Shown is the best of those that keep within it: chosen afterwards, on the same weeks. The
intervals are those of the [paired comparison](../statistics.md) of the bills by calendar week, in blocks of neighbours.
"""
PLANS: Final = """
## The planner

`plan:objective=cost,decodes=50` ([planning for money](../energy.md#planning-for-money)) in Germany 2021: saved of
`list-reg`'s bill, in per cent, at no more than so much longer a mean wait than `list-reg`'s.
"""
PLANS_MEAN: Final = """
With a price for waits the planner takes short jobs first, so waits are shorter than `list-reg`'s before anybody is
held: there is more wait to spend on cheap hours. `nobody is held` is its replay with the dearest wait.
"""
FRONT: Final = """
## The front

![What is saved against the wait](energy-fronts.svg)

Each mark is a replay that no other beats in both; in brackets the mean wait under `list-reg`. Dotted: 5 % and 20 %.
"""
WEEK_WORDS: Final = """
## One week

![Power, price and temperature over a week](energy-week.svg)

{week_log} in Germany 2021, week {week_number}: of all weeks the one in which `{week_policy}` (mean wait {week_longer}
longer) saves most. Grey: the dearer half of the hours.
"""
WHY: Final = """
The literature has 18 % ([TARDIS](https://arxiv.org/abs/2503.11011), 2025) and 23 %
([Yang et al.](http://sc13.supercomputing.org/schedule/event_detail.php-evid=pap433.html), SC 2013): the most that was
found, on other machines, with other prices and jobs that draw differently much. Here `thrift` saves {least} of the bill
in Germany at 5 % longer a wait, {more} at 20 % and {twice} at 100 %. From the first row down, one thing after the other
stands in the way. Jobs start no later than under `list-reg`, or 24 h after arrival if that is later; all but `thrift`
know run times and count the PUE of full load.
"""
REASONS: Final = """
**The machines are full.** Work that could be split and moved at will would save {split_free} if there were processors
without end, and {split} on those there are: that is a bound for every policy that starts jobs by then. With {used} of
the processors busy, work must run in most hours, and the cheapest 16 hours of each day are only {cheap} below the mean.
So 18 % were not to be had.

**Jobs are long.** Half of the work is in jobs of {hours} or more, and prices stay low for {low}. Jobs that must not be
split save {whole}, even with nobody in their way.

**5 % of a wait is little.** It is {minutes} for the mean job; a cheap hour is hours away. Within it whole jobs save
{whole_least}, with nobody in their way. What is left of that when they are in each other's way and run times are not
known is what `thrift` saves. With run times known, it saves {known} at twice the wait.

**Prices.** By how much the cheapest hours of each day are below the mean price (first 26 weeks; "two prices" are made
up: from 9 to 21 o'clock three times the price of the night):
"""
ONE_BY_ONE: Final = """
One thing changed at a time. Saved of the bill, in per cent; the mean wait may grow by so much of what it is under the
baseline with all jobs. In Germany 2021, against `list-reg`, if nothing else is said:
"""
SAYS: Final = """
Half of the jobs: three to four times the saving. Half of the jobs and two prices, day and night: the published 18 to
23 %, at 20 to 100 % longer a wait. Two prices alone do not bring it, nor do jobs that draw differently much: `thrift`
does not choose among jobs by what they draw, it only lets them wait. Idle power takes off a third to a half. A hold of
7 days saves no more at 5 and 20 %. The `window` hardly matters. Large areas first save more against a list in the same
order, but that list waits {laf} longer than `list-reg`; against `list-reg` no order is better on both logs. So the
defaults stay.
"""
HELD_SAYS: Final = """
Does `thrift` leave savings? It reserves for jobs that wait for a cheap hour, and that may keep others out, all the more
as limits are long. A simpler rule, made up for comparison: each job is held on arrival until the half hour at which its
energy and its wait would cost least if it were alone, and then comes to the queue; nothing is reserved for it before.
Saved of the bill in Germany 2021, against `list-reg`, and in the last two columns against `easy`, in per cent:
"""
HELD_MEANS: Final = """
Before `list-reg`, like with like, it saves about as much as `thrift`, and on SDSC-BLUE clearly more, although it knows
nothing of the queue. Before `easy` it saves {held_least} at no more than 5 % longer a wait than under `list-reg`, on
each log more than `thrift` (on SDSC-BLUE the intervals are apart); part of that is the wait that `easy` saves by
itself. Against `easy` it is {easy_least} at 5 % and {easy_more} at 20 %. So there is something to gain for `thrift`:
from backfilling as `easy` does, and from not reserving for jobs that are held.
"""
MADE: Final = """
## Made with

```
python benchmarks/fronts.py --json fronts.jsonl
python benchmarks/fronts_page.py --results fronts.jsonl
```
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True, nargs="+")
    parser.add_argument("--folder", type=Path, default=Path(__file__).resolve().parents[1] / "docs" / "results")
    given = parser.parse_args()
    found = Found(*given.results)
    drawn = {
        "energy-fronts": (lambda: draw_fronts(found), "What is saved against the wait"),
        "energy-week": (lambda: draw_week(found.week), "Power, price and temperature over a week"),
    }
    for name, (draw, label) in drawn.items():
        (given.folder / f"{name}.svg").write_text(picture(draw, name, label), encoding="utf-8")
    (given.folder / "energy-fronts.md").write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
