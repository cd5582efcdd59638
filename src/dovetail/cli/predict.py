"""`dovetail predict`: how well run times are predicted, and what that does to schedules."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli import prepare, screen
from dovetail.cli.check import Cases, Seed, show
from dovetail.cli.replay import replayed
from dovetail.errors import SettingError

if TYPE_CHECKING:
    from dovetail.arrays import Ints
    from dovetail.model.workload import Workload
    from dovetail.policies.base import Policy

app = typer.Typer(no_args_is_help=True, help="What predicts run times, how well, and what for.")

_POLICIES = ("easy-sjbf", "list-saf", "list-laf", "list-reg")
_ESTIMATES = (
    "recent",
    "similar",
    "hierarchy",
    "survival",
    "neighbours",
    "online",
    "quantile:level=0.5",
    "quantile",
    "runtime",
)
_METRICS = ("bsld", "af_s", "awf_s", "p2sf_s")


@app.command("evaluate", cls=screen.Grouped)
def evaluate_command(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="SWF (plain, gz, xz, zst) or Parquet.")],
    estimates: Annotated[
        list[str] | None, typer.Option("--estimate", "-e", metavar="NAME", help="A predictor; repeat.")
    ] = None,
    policies: prepare.Policies = None,
    filters: prepare.Filters = None,
    scenarios: prepare.Scenarios = None,
    overrun: prepare.Overrun = "cut",
    wide: screen.Wide = False,
    as_json: prepare.Json = False,
) -> None:
    """Replay a trace with each predictor under each policy, and compare with the users' limits."""
    from dovetail.metrics import summarize
    from dovetail.metrics.estimates import LEVELS, mean_error_s, outlived, pinball_s, r2
    from dovetail.policies.registry import policy as policy_named
    from dovetail.predict.registry import predictor
    from dovetail.reports.page_data import unstarted

    asked = ["limit", *(one for one in estimates or _ESTIMATES if one != "limit")]
    for name in asked:
        predictor(name)
    chosen = [policy_named(name) for name in policies or _POLICIES]
    if any(one.from_record for one in chosen):
        raise SettingError("recorded uses no estimates: there is nothing to evaluate")
    workload = prepare.load(trace, filters, scenarios, overrun, 0)
    prepare.need_jobs(workload)
    for name in asked:
        prepare.make_ready(workload, chosen, None, estimate=name)
    rows: list[dict[str, Any]] = []
    heard: dict[str, Ints] = {}
    left: list[tuple[str, str]] = []
    for one in chosen:
        for name in asked:
            schedule, cpu_s = replayed(workload, one, name, 0)
            metrics = summarize(schedule)
            row: dict[str, Any] = {"table": "estimates", "trace": workload.name, "policy": one.name, "estimate": name}
            said, ran = schedule.said, workload.runtime
            if one is chosen[0]:
                heard[name] = said
            row |= {"r2": r2(said, ran), "mean_error_s": mean_error_s(said, ran), "outlived": outlived(said, ran)}
            row["pinball_s"] = {str(level): pinball_s(said, ran, level) for level in LEVELS}
            row["metrics"] = {key: metrics[key] for key in _METRICS}
            if name == "limit":  # the first of each policy
                limits = metrics
            row["jobs_unstarted"] = metrics["jobs_unstarted"]
            entire = not metrics["jobs_unstarted"] and not limits["jobs_unstarted"]
            row["change"] = {key: metrics[key] / limits[key] - 1 if entire else nan for key in _METRICS}
            left.append((f"{one.name} with {name}", unstarted(metrics)))
            row["cpu_s"] = round(cpu_s, 4)
            rows.append(row)
            if as_json:
                prepare.print_json(row)
    calibration = _calibration(workload, chosen[0], heard) if any(one.startswith("quantile") for one in asked) else []
    if as_json:
        for row in calibration:
            prepare.print_json(row)
    else:
        _table(rows, wide)
        if calibration:
            _calibration_table(calibration, wide)
    prepare.end(left)


@app.command("advise")
def advise_command(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="History: SWF (plain, gz, xz, zst) or Parquet.")],
    user: Annotated[str, typer.Option("--user", "-u", help="Whose job: a name, or a number where there are no names.")],
    name: Annotated[str | None, typer.Option("--name", "-n", help="The job's name, or its number.")] = None,
    size: Annotated[int | None, typer.Option("--size", "-s", min=1, help="Processors.")] = None,
    filters: prepare.Filters = None,
    overrun: prepare.Overrun = "cut",
    as_json: prepare.Json = False,
) -> None:
    """Say which limit to ask for, and how likely a job like this is to be stopped by it."""
    from dataclasses import asdict

    from dovetail.predict.advise import advise
    from dovetail.units import duration

    workload = prepare.load(trace, filters, None, overrun, 0)
    prepare.need_jobs(workload)
    called = None if name is None else _number(workload, "name", name)
    found = advise(workload, user=_number(workload, "user", user), name=called, size=size)
    if as_json:
        prepare.print_json(asdict(found))
        return
    screen.tell(
        f"{found.jobs:,} jobs of the same {', '.join(found.alike)}; limits so far: {duration(found.median_limit_s)}"
        f" (median); {found.censored:,} ran to their limits"
    )
    for risk, limit_s in found.limits:
        text = "no limit can be named: too few jobs, or too many that ran to their limits"
        if limit_s is not None:
            text = f"ask for {duration(limit_s)}"
        screen.tell(f"risk of being stopped {100 * risk:3.0f} %: {text}", "  ", "    ")


@app.command("check")
def check_command(
    estimate: Annotated[str, typer.Argument(help="path/to/file.py:Name, or the name of a built-in predictor.")],
    cases: Cases = 100,
    seed: Seed = 1,
    as_json: prepare.Json = False,
) -> None:
    """Check that a predictor keeps the contract, on small random workloads."""
    from dovetail.engine.contract import check_predictor
    from dovetail.predict.registry import predictor

    show(estimate, "estimate", check_predictor(predictor(estimate), cases=cases, seed=seed), cases, as_json)


def _calibration(workload: Workload, policy: Policy, heard: Mapping[str, Ints]) -> list[dict[str, Any]]:
    """How often jobs end within their quantiles. `heard`: estimates under this policy that are known already."""
    from dataclasses import asdict

    from dovetail.metrics.estimates import LEVELS, calibration

    def said(name: str) -> Ints:
        return heard[name] if name in heard else replayed(workload, policy, name, 0)[0].said

    limit, recent = said("limit"), said("recent")
    about = {"table": "calibration", "trace": workload.name, "policy": policy.name}
    return [
        about | asdict(calibration(level, said(f"quantile:level={level}"), limit, recent, workload)) for level in LEVELS
    ]


def _number(workload: Workload, column: str, text: str) -> int:
    """The number that stands for a name in a column."""
    known = workload.names.get(column, ())
    if text in known:
        return known.index(text)
    if not text.isdecimal():
        raise SettingError(f"{workload.name} knows no {column} {text!r}")
    return int(text)


def _table(rows: list[dict[str, Any]], wide: bool) -> None:
    """One row per policy and predictor."""
    from rich.markup import escape

    from dovetail.metrics.catalog import metric_of
    from dovetail.reports.columns import percent
    from dovetail.units import printable

    names, last = [], ""
    for row in rows:
        names.append(escape(printable(row["policy"], 40)) if row["policy"] != last else "")
        last = row["policy"]
    words = [("policy", names), ("estimate", [escape(printable(row["estimate"], 60)) for row in rows])]
    columns = [
        screen.Column("R2", [f"{row['r2']:.2f}" for row in rows], 2),
        screen.Column("error\n(s)", [f"{row['mean_error_s']:,.0f}" for row in rows], 1),
        screen.Column("outlived\n(%)", [f"{100 * row['outlived']:.1f}" for row in rows], 4),
    ]
    for at, key in enumerate(_METRICS):
        cells = [percent(row["change"][key]) if row["estimate"] != "limit" else "" for row in rows]
        columns.append(screen.Column(metric_of(key).head, cells, at and 2 + at))
    columns.append(screen.Column("CPU\n(s)", [f"{row['cpu_s']:.2f}" for row in rows], 9))
    screen.print_table(
        words,
        columns,
        "Changes are relative to the limits as estimates; lower is better. R2: 1 is perfect, 0 as good as the mean."
        " error: mean distance from the run time. outlived: share of jobs that run longer than estimated at arrival.",
        wide=wide,
    )


def _calibration_table(rows: list[dict[str, Any]], wide: bool) -> None:
    """One row per level."""
    from rich.markup import escape

    from dovetail.metrics.estimates import FEWEST_JOBS
    from dovetail.units import printable

    name = escape(printable(rows[0]["policy"], 60))
    shares = {"ended_before": "ended before\n(%)", "ended_by": "ended by\n(%)", "off_by_user": "off by user\n(points)"}
    losses = {"pinball_s": "pinball\n(s)", "pinball_limit_s": "of limit\n(s)", "pinball_recent_s": "of recent\n(s)"}
    columns = [screen.Column(head, [f"{100 * row[key]:.1f}" for row in rows]) for key, head in shares.items()]
    columns += [screen.Column(head, [f"{row[key]:,.1f}" for row in rows], 1) for key, head in losses.items()]
    screen.print_table(
        [("quantile (%)", [f"{100 * row['level']:g}" for row in rows])],
        columns,
        f"Calibration of `quantile` under {name}, without the first tenth of the jobs: {rows[0]['jobs']:,} jobs. It is"
        " calibrated if the quantile is between the shares of jobs that ended before and by then; off by user: how far"
        f" it is from that, on average, for users of at least {FEWEST_JOBS} jobs. Pinball loss: lower is better.",
        wide=wide,
    )
