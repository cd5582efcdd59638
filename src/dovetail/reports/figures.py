"""The pictures of a case: each with what it shows, how to read it, and a key to its lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite

from dovetail.metrics.catalog import metric_of
from dovetail.reports import estimate_figures, tradeoff_figures
from dovetail.reports.columns import named, shared
from dovetail.reports.curves import DAY, HOUR, WEEK, Curves, curves
from dovetail.reports.dark import themed_svg
from dovetail.reports.line_figures import ALL_AREA, ALL_JOBS, busy_figure, queue_figure, wait_area_figure, waits_figure
from dovetail.reports.page_data import Case, Entry
from dovetail.reports.panel_figures import FEW, MOST_ROWS, changed, changes_figure, wait_map_figure
from dovetail.reports.style import BETTER, GREY, INK, STROKES, WORSE, Stroke, settings, svg
from dovetail.reports.tables import judged
from dovetail.units import duration


@dataclass(frozen=True)
class Key:
    """One line of a legend."""

    label: str
    stroke: Stroke
    hollow: bool = False


@dataclass(frozen=True)
class Picture:
    """One picture of a page."""

    title: str
    caption: str
    svg: str
    key: tuple[Key, ...] = ()
    wide: bool = False
    kind: str = ""
    """For the style sheet, where a picture needs rules of its own."""
    expert: bool = False
    """Whether it takes more than the words below it to read it."""


def drawable(case: Case) -> list[Entry]:
    """The policies that pictures show as lines: the first few whose starts were kept, and the one that waited least."""
    kept, best = [entry for entry in case.entries if entry.schedule is not None], least_wait(case)
    shown = kept[: len(STROKES)]
    return shown if best is None or best in shown else [*shown[:-1], best]


def least_wait(case: Case) -> Entry | None:
    """Of the policies whose starts were kept, the first of them apart, the one with the least mean wait; one that never
    started some jobs only if there is no other."""
    others = [entry for entry in case.entries if entry.schedule is not None][1:]
    return min(others, key=lambda entry: (bool(entry.unstarted), _mean_wait(entry)), default=None)


def _mean_wait(entry: Entry) -> float:
    found = entry.metrics.get("mean_wait_s", inf)
    return found if isfinite(found) else inf


def pictures(case: Case, name: str) -> list[Picture]:
    """All pictures that the case has data for. `name` makes the ids in them unique on the page."""
    drawn: list[Curves] = []
    for entry in drawable(case):
        if entry.schedule is not None:  # one at a time: a large schedule needs much memory
            drawn.append(curves(entry.policy, entry.schedule(), drawn[0] if drawn else None))
    with settings():
        made = [_changes(case, f"{name}-change")] if changed(case)[0] else []
        if len(case.entries) >= tradeoff_figures.FEWEST and tradeoff_figures.columns_of(case):
            made.append(_matrix(case, f"{name}-matrix"))
        if tradeoff_figures.front(case):
            made.append(_front(case, f"{name}-front"))
        if drawn and len(drawn[0].job_share.x):
            made += [
                _waits(drawn, f"{name}-wait"),
                _queue(drawn, f"{name}-queue"),
                _busy(drawn, f"{name}-busy"),
                _wait_area(drawn, f"{name}-area"),
                _wait_map(case, drawn, f"{name}-map"),
            ]
        made += _estimates(case, f"{name}-said")
    return [replace(picture, svg=themed_svg(picture.svg, picture.kind == "matrix")) for picture in made]


def _estimates(case: Case, name: str) -> list[Picture]:
    """The estimates of run times under the baseline, if they are from a predictor."""
    if not case.entries or case.entries[0].schedule is None:
        return []
    first, schedule = case.entries[0], case.entries[0].schedule()
    if not estimate_figures.is_learned(schedule):
        return []
    found = estimate_figures.estimates_of(schedule)
    title = "How near estimates were"
    caption = (
        f"Share of the jobs that ended within a multiple of their estimate, under {named(first.policy)}: the"
        f" nearer the line is to a step at 1, the better. {found.before:.1%} of the jobs ended before their estimate,"
        f" {found.by:.1%} no later than it. R2 is {found.r2:.2f} ({found.limit_r2:.2f} for the limits), the mean error"
        f" {duration(round(found.error_s))} ({duration(round(found.limit_error_s))})."
    )
    key = (Key(named(case.estimate), STROKES[0]), Key("limit", STROKES[1]))
    made = [Picture(title, caption, svg(estimate_figures.within_figure(found), f"{name}-within", title), key)]
    if found.users:
        title = "Whose run times could be predicted"
        caption = "R2 of the estimates, for the users with the most jobs. Hollow: that of their limits."
        users = (Key("better than the limits", Stroke(BETTER, (), "o")), Key("worse", Stroke(WORSE, (), "o")))
        made.append(Picture(title, caption, svg(estimate_figures.users_figure(found), f"{name}-users", title), users))
    if case.with_limits is not None:
        title = "Which jobs gained from it"
        caption = (
            f"Mean wait under {named(first.policy)} by the share of its limit that a job used: with limits as"
            f" estimates, and with {named(case.estimate)}."
        )
        drawn = estimate_figures.gain_figure(estimate_figures.gain_of(case.with_limits(), schedule))
        bars = (Key("limits", Stroke(GREY, (), "s")), Key(named(case.estimate), Stroke(INK, (), "s")))
        made.append(Picture(title, caption, svg(drawn, f"{name}-gain", title), bars))
    return made


def _key(drawn: Sequence[Curves]) -> tuple[Key, ...]:
    return tuple(Key(named(c.policy), stroke) for c, stroke in zip(drawn, STROKES, strict=False))


def _changes(case: Case, name: str) -> Picture:
    title = f"Change against {named(case.entries[0].policy)}"
    caption = "Each mark is how a policy changed a metric against the baseline, which is the line at 0."
    key: tuple[Key, ...] = ()
    if any(judged(entry) for entry in case.entries):
        over = f" over {named(case.pairing)}" if case.pairing else ""
        caption += (
            f" Marks with bars are of the comparison{over}, and bars its confidence intervals; filled marks are those"
            " whose whole bar lies on one side of 0. Hollow ones could not be told from the baseline, or were not"
            " compared."
        )
        key = (
            Key("better", Stroke(BETTER, (), "o")),
            Key("worse", Stroke(WORSE, (), "s")),
            Key("unclear", Stroke(GREY, (), "o"), hollow=True),
        )
    else:
        caption += " Too little could be compared in pairs, so there are no intervals."
    caption += " An arrow leads to a value off the scale."
    if len(case.entries) > 1 + MOST_ROWS:
        caption += f" Of {len(case.entries) - 1} policies the first {MOST_ROWS} are drawn; the table has all."
    caption += _left_out(case)
    return Picture(title, caption, svg(changes_figure(case), name, title), key, wide=True, expert=True)


def _matrix(case: Case, name: str) -> Picture:
    title = "Policies against metrics"
    caption = (
        f"Each cell is the value in the table as percent of that of {named(case.entries[0].policy)}. Blue: better,"
        " orange: worse, the darker the more. ★ marks the best of a column. It says nothing of chance."
    )
    if len(case.entries) > tradeoff_figures.MOST_NAMED:
        caption += (
            f" Of {len(case.entries)} policies the first {tradeoff_figures.MOST_NAMED} are drawn; the table has all."
        )
    drawn = svg(tradeoff_figures.matrix_figure(case), name, title)
    return Picture(title, caption + _left_out(case), drawn, wide=True, kind="matrix", expert=True)


def _front(case: Case, name: str) -> Picture:
    x, y = case.axes
    title = f"{metric_of(x).head} against {metric_of(y).head}"
    caption = (
        "Each mark is a policy, by the values in the table; down and to the left is better. The line joins the"
        " policies that no other beats in both: the front. Hollow marks are beaten by another in both, or in one at a"
        f" tie. An arrow at the edge stands for a value of more than {tradeoff_figures.FAR:g} times the baseline's."
    )
    if len(found := tradeoff_figures.front(case)) > tradeoff_figures.MOST_NAMED:
        caption += f" Of {len(found)} marks, {tradeoff_figures.MOST_NAMED} have names."
    key = (
        Key("baseline", Stroke(INK, (), "s")),
        Key("on the front", Stroke(BETTER, (), "o")),
        Key("beaten in both", Stroke(GREY, (), "o"), hollow=True),
    )
    drawn = svg(tradeoff_figures.front_figure(case), name, title)
    return Picture(title, caption + _left_out(case), drawn, key, wide=True, expert=case.axes == Case.axes)


def _left_out(case: Case) -> str:
    """What the labels of a picture do not say because all policies of a name share it."""
    gone = shared([entry.policy for entry in case.entries])
    return f" Left out of the names: {', '.join(named(one) for one in gone)}." if gone else ""


def _waits(drawn: Sequence[Curves], name: str) -> Picture:
    title = "How long jobs waited"
    caption = (
        "Share of all jobs that waited no longer than the duration below: the higher a curve, the shorter the waits."
        " Its left end, over 0, is the share of jobs that did not wait at all."
    )
    return Picture(title, caption, svg(waits_figure(drawn), name, title), _key(drawn))


def _queue(drawn: Sequence[Curves], name: str) -> Picture:
    title = "How many jobs were waiting"
    caption = (
        f"Jobs in the queue, averaged over {_each(drawn[0].queue_bin_s)}: hills are congestion, and the policy whose"
        " line is lower had the shorter queue then."
    )
    return Picture(title, caption, svg(queue_figure(drawn), name, title), _key(drawn))


def _busy(drawn: Sequence[Curves], name: str) -> Picture:
    title = "How busy the cluster was"
    caption = (
        f"Utilisation, averaged over {_each(drawn[0].busy_bin_s)}: the work is the same under all policies, so lines"
        " part only where one of them does it later than another."
    )
    return Picture(title, caption, svg(busy_figure(drawn), name, title), _key(drawn))


def _each(bin_s: int) -> str:
    known = {HOUR: "each hour", DAY: "each day", WEEK: "each week"}
    return known.get(bin_s, f"every {duration(bin_s)}")


def _wait_area(drawn: Sequence[Curves], name: str) -> Picture:
    title = "Which jobs did the waiting: small or large ones"
    caption = (
        "Area is processors times run time. Above: how many of the jobs, and how much of all computation, belong to"
        " jobs up to an area. Below: the processor time that these jobs waited for; where a line climbs steeply, jobs"
        " of that area did the waiting."
    )
    workload = (Key("jobs", ALL_JOBS), Key("computation", ALL_AREA))
    return Picture(title, caption, svg(wait_area_figure(drawn), name, title), (*workload, *_key(drawn)))


def _wait_map(case: Case, drawn: Sequence[Curves], name: str) -> Picture:
    best = least_wait(case)
    shown = [drawn[0], *(c for c in drawn[1:] if best is not None and c.policy == best.policy)]
    title = "Mean wait by size and run time of the job"
    caption = (
        "Each cell is the mean wait of the jobs of that size and run time: the darker, the longer. Hatched cells have"
        f" fewer than {FEW} jobs, so their means say little."
    )
    if len(shown) > 1:
        caption += f" Beside {named(drawn[0].policy)} stands, of the others, the one with the least mean wait."
    return Picture(title, caption, svg(wait_map_figure(shown), name, title), wide=len(shown) > 1)
