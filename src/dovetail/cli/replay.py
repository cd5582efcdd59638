"""`dovetail replay`: one or more traces under one or more policies, compared in a table."""

from __future__ import annotations

import itertools
import re
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli import prepare
from dovetail.clock import cpu_s
from dovetail.errors import SettingError

if TYPE_CHECKING:
    from rich.table import Table

    from dovetail.energy.site import Site
    from dovetail.model.cluster import Cluster, PowerCap
    from dovetail.model.schedule import Schedule
    from dovetail.model.workload import Workload

_LONG = 50_000  # jobs from which on a progress bar is worth showing
_SHOWN = ("bsld", "mean_wait_s", "max_wait_s", "af_s", "awf_s", "p2sf_s")


def replay_command(
    traces: Annotated[
        list[str], typer.Argument(metavar="TRACE", help="SWF (plain, gz, xz, zst), Parquet, Eurora's or Alibaba's CSV.")
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", "-p", metavar="NAME", help="A name (see `dovetail policies`) or file.py:Name; repeat."
        ),
    ] = None,
    estimate: prepare.Estimate = "limit",
    processors: Annotated[
        int | None, typer.Option(min=1, max=10**9, help="Size of the cluster; default: the trace's own.")
    ] = None,
    cluster: prepare.ClusterName = None,
    seed: Annotated[int, typer.Option(min=0, help="For policies and scenarios that draw at random.")] = 0,
    filters: prepare.Filters = None,
    scenarios: prepare.Scenarios = None,
    overrun: prepare.Overrun = "cut",
    counting: Annotated[
        str, typer.Option(help="all jobs, or only those ended by the last submission (all|ended).")
    ] = "all",
    feedback: Annotated[
        bool, typer.Option("--feedback", help="SWF fields 17 and 18 make a job wait for another.")
    ] = False,
    every: Annotated[
        str,
        typer.Option(metavar="DURATION", help="Passes only at multiples of this (30s); 0: at each arrival and end."),
    ] = "0",
    charge: Annotated[
        bool, typer.Option("--charge-decisions", help="Add the CPU time of each pass to the waits, in whole seconds.")
    ] = False,
    fair_starts: Annotated[
        int, typer.Option(min=0, help="Jobs to measure unfairness on: their starts if none had come after them.")
    ] = 0,
    gaps: Annotated[
        bool, typer.Option("--gaps", help="Say how far each result can be from the best of any policy, at most.")
    ] = False,
    energy: Annotated[
        Path | None, typer.Option(metavar="SITE.toml", help="Say what energy, cooling and carbon each schedule costs.")
    ] = None,
    power_cap: Annotated[
        float | None,
        typer.Option(
            min=0, max=1e9, metavar="KW", help="Never draw more, cooling apart; needs --energy for the powers."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write each schedule to this folder, as SWF and Parquet.")] = None,
    as_json: prepare.Json = False,
) -> None:
    """Replay TRACEs under policies and compare them. Exit code 3: a policy never started some jobs."""
    from dovetail.engine.replay import warm
    from dovetail.io.sites import read_site
    from dovetail.model.cluster import Cluster
    from dovetail.policies.registry import policy as policy_named
    from dovetail.reports.page_data import unstarted as words_of
    from dovetail.units import parse_duration
    from dovetail.workloads.filters import under_cap

    policies = [policy_named(name) for name in policy or ["easy"]]
    try:
        every_s = parse_duration(every)
    except ValueError as error:
        raise SettingError(f"--every: {error}") from error
    if fair_starts and feedback:
        raise SettingError("--fair-starts cannot be measured with --feedback: without later jobs there is no feedback")
    if gaps and (feedback or counting != "all"):
        raise SettingError("--gaps needs all jobs, each arriving at its submit: leave out --feedback and --counting")
    nodes = prepare.nodes_named(cluster, processors)
    site = read_site(energy) if energy is not None else None
    cap = _cap(power_cap, site, nodes)
    for chosen in policies:
        warm(chosen, nodes is not None)
    written: set[str] = set()
    unstarted = []
    for path in traces:
        clock = time.process_time()
        workload = prepare.load(path, filters, scenarios, overrun, seed, processors, nodes)
        machine = nodes
        if cap is not None:
            workload, machine = under_cap(workload, cap), Cluster(workload.processors, cap=cap)
        prepare.need_jobs(workload)
        read_s = time.process_time() - clock
        if not as_json:
            _introduce(workload, estimate, nodes)
        rows, bounds = [], None
        for chosen in policies:
            schedule, replay_s = replayed(workload, chosen, estimate, seed, feedback, every_s, machine, charge, site)
            row = _row(schedule, counting, read_s, replay_s)
            if fair_starts:
                row["metrics"] |= _unfairness(schedule, chosen, fair_starts, every_s, counting, site)
            if site is not None:
                row |= _energy(schedule, site, power_cap)
            if gaps:
                bounds = bounds or _bounds(workload)
                row |= {"bounds": bounds, "gaps": _gaps(row["metrics"], bounds)}
            rows.append(row)
            unstarted.append((row["policy"], words_of(row["metrics"])))
            if as_json:
                prepare.print_json(row)
            if out is not None:
                _write(schedule, out, written, as_json)
        if not as_json:
            _table(rows)
            if nodes is not None:
                _node_table(rows, nodes)
            if "deadline_jobs" in rows[0]["metrics"]:
                _deadline_table(rows)
            if site is not None:
                _energy_table(rows, site)
            if gaps:
                _gap_table(rows)
    prepare.end(unstarted)


def _introduce(workload: Workload, estimate: str, nodes: Cluster | None) -> None:
    from dovetail.model.cluster import Cluster
    from dovetail.units import duration, printable

    span = duration(workload.span_s)
    gone = len(workload.set_aside)
    machine = (nodes or Cluster(workload.processors)).in_words
    prepare.say(
        f"{printable(workload.name)}: {len(workload):,} jobs over {span} on {machine}, estimate: {estimate}"
        + (f"; {gone:,} job{'s' * (gone > 1)} set aside (see workload describe)" if gone else "")
    )


def replayed(
    workload: Workload,
    policy: Any,
    estimate: str,
    seed: int,
    feedback: bool = False,
    every_s: int = 0,
    cluster: Cluster | None = None,
    charge: bool = False,
    site: Site | None = None,
) -> tuple[Schedule, float]:
    """The schedule, and the CPU seconds that it took; with a bar where it takes long."""
    from dovetail.engine.replay import replay

    with _progress(len(workload), policy.name, not policy.compiled or len(workload) >= _LONG) as tell:
        clock = cpu_s()
        schedule = replay(
            workload, policy, cluster=cluster, estimate=estimate, seed=seed, feedback=feedback, every_s=every_s,
            progress=tell, charge_decisions=charge, site=site,
        )  # fmt: skip
        return schedule, cpu_s() - clock


@contextmanager
def _progress(jobs: int, name: str, wanted: bool) -> Iterator[Callable[[int], None] | None]:
    """A bar with rate and time left on the terminal; nothing where output is not a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not (wanted and console.is_terminal):
        yield None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"), TimeRemainingColumn(),
    )  # fmt: skip
    began = time.monotonic()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(name, total=jobs, rate="")

        def tell(done: int) -> None:
            rate = done / max(time.monotonic() - began, 1e-9)
            bar.update(task, completed=done, rate=f"{rate:,.0f} jobs/s")

        yield tell


def _row(schedule: Schedule, counting: str, read_s: float, replay_s: float) -> dict[str, Any]:
    from dovetail.metrics import summarize
    from dovetail.studies.store import nodes_of

    nodes = {"nodes": schedule.cluster.nodes, "cluster": nodes_of(schedule.cluster)} if schedule.cluster.kinds else {}
    return {
        "trace": schedule.workload.name,
        "policy": schedule.policy,
        "estimate": schedule.estimate,
        "processors": schedule.cluster.processors,
        **nodes,
        "jobs": len(schedule.workload),
        "passes": schedule.passes,
        "charged_s": schedule.charged_s,
        "seed": schedule.seed,
        "clairvoyant": schedule.clairvoyant,
        "workload_sha256": schedule.workload.digest(),
        "metrics": summarize(schedule, counting=counting),
        "cpu_s": {"read": round(read_s, 4), "replay": round(replay_s, 4)},
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "versions": schedule.versions,
    }


def _unfairness(
    schedule: Schedule, policy: Any, jobs: int, every_s: int, counting: str, site: Site | None
) -> dict[str, float]:
    from dovetail.engine.fair_starts import fair_starts
    from dovetail.metrics import unfairness
    from dovetail.predict.known import estimates

    guess = estimates(schedule.workload, schedule.estimate)
    fair = fair_starts(
        schedule.workload, policy, schedule.cluster, guess, every_s=every_s, sample=jobs, seed=schedule.seed, site=site
    )
    return unfairness(schedule, fair, counting)


def _cap(kw: float | None, site: Site | None, nodes: Cluster | None) -> PowerCap | None:
    from dovetail.model.cluster import PowerCap

    if kw is None:
        return None
    if site is None or nodes is not None:
        raise SettingError("--power-cap needs --energy, which says what processors draw, and no --cluster")
    return PowerCap(round(1e6 * kw), site.idle_mw, site.busy_mw)


def _energy(schedule: Schedule, site: Site, cap_kw: float | None) -> dict[str, Any]:
    from dovetail.metrics.energy import of_energy

    found = {"site": site.name, "currency": site.currency, "power_cap_kw": cap_kw}
    return {**found, "energy": of_energy(schedule, site)}


def _bounds(workload: Workload) -> dict[str, float]:
    """What no policy can beat on this workload, by metric; a few seconds where there are many jobs."""
    from rich.console import Console
    from rich.markup import escape

    from dovetail.optimize.window.bounds import workload_bounds
    from dovetail.units import printable

    console = Console(stderr=True)
    try:
        if not console.is_terminal:
            return workload_bounds(workload)
        with console.status(f"Bounds of {escape(printable(workload.name))}"):
            return workload_bounds(workload)
    except ValueError as error:
        raise SettingError(f"--gaps: {error}") from error


def _gaps(metrics: dict[str, float], bounds: dict[str, float]) -> dict[str, float]:
    """How far above the best possible each value is at most, as a share; nan where jobs that never ran are missing."""
    if metrics["jobs_unstarted"]:
        return dict.fromkeys(bounds, nan)
    return {key: metrics[key] / bound - 1 if bound else nan for key, bound in bounds.items()}


def _gap_table(rows: list[dict[str, Any]]) -> None:
    """The bounds, and below them one row of gaps per policy."""
    from dovetail.metrics.catalog import metric_of

    bounds = rows[0]["bounds"]
    shown = [metric_of(key) for key in _SHOWN if key in bounds]
    found = [f"{bounds[one.key]:,.0f} {one.unit}" if one.unit else f"{bounds[one.key]:,.3f}" for one in shown]
    prepare.print_table(
        _filled(
            rows, "gaps", [(one.key, one.head, _percent) for one in shown], "none",
            ("lower bound", *("none" if text.startswith("nan") else text for text in found)),
        ),
        "A gap says how far above the best of any policy a result is at most. The truth lies between it and 0.",
    )  # fmt: skip


def _table(rows: list[dict[str, Any]]) -> None:
    """One row per policy; below each value its change against the first; the best of a column is marked."""
    from dovetail.metrics.catalog import metric_of

    table = prepare.new_table(["policy"], [*(metric_of(key).title for key in _SHOWN), "utili-\nzation", "CPU\n(s)"])
    first = rows[0]["metrics"]
    entire = [row for row in rows if not row["metrics"]["jobs_unstarted"]]
    best = {key: min((row["metrics"][key] for row in entire), default=nan) for key in _SHOWN}
    for row in rows:
        cells = [_name(row)]
        for key in _SHOWN:
            value = row["metrics"][key]
            text = f"{value:,.2f}" if key == "bsld" else f"{value:,.0f}"
            if len(entire) > 1 and row in entire and value == best[key]:
                text = f"[bold green]*{text}[/]"
            if row is not rows[0] and first[key] and row in entire and rows[0] in entire:
                text += f"\n{100 * (value / first[key] - 1):+.1f} %"
            cells.append(text)
        table.add_row(*cells, _percent(row["metrics"]["utilization"]), f"{row['cpu_s']['replay']:.2f}")
    notes = []
    if len(entire) > 1:
        notes.append("* best. Changes are relative to the first policy. Lower is better, utilization apart.")
    if any(row["clairvoyant"] for row in rows):
        notes.append("policy *: knows the run times and the submissions to come, as no real scheduler can.")
    prepare.print_table(table, *notes)


def _node_table(rows: list[dict[str, Any]], cluster: Cluster) -> None:
    """How much of each resource was in use, and how much of it lay idle where no core was free."""
    cores, *others = cluster.resources
    columns = [(f"utilization_{cores}", f"in use:\n{cores}", _percent)]
    columns += [(f"utilization_{name}", f"\n{name}", _percent) for name in others]
    columns += [
        (f"stranded_{name}", f"{'' if at else 'stranded:'}\n{name}", _percent) for at, name in enumerate(others)
    ]
    prepare.print_table(
        _filled(rows, "metrics", columns, "none"),
        "In use: the share of each resource that jobs had, from the first arrival to the last end. Stranded: the share"
        " that was free on nodes without a free core, while jobs waited.",
    )


def _energy_table(rows: list[dict[str, Any]], site: Site) -> None:
    """What was drawn, what it cost and what jobs earned."""
    from rich.markup import escape

    from dovetail.units import printable

    money = escape(printable(site.currency, 12))
    columns = (
        ("energy_kwh", "energy\nkWh", "{:,.0f}".format),
        ("energy_idle_kwh", "of it idle\nkWh", "{:,.0f}".format),
        ("energy_cooling_kwh", "of it cooling\nkWh", "{:,.0f}".format),
        ("pue", "PUE\n", "{:.3f}".format),
        ("peak_kw", "peak\nkW", "{:,.1f}".format),
        ("energy_cost", f"bill\n{money}", "{:,.2f}".format),
        ("revenue", f"revenue\n{money}", "{:,.2f}".format),
        ("profit", f"profit\n{money}", "{:,.2f}".format),
        ("co2_kg", "carbon\nkg CO2", "{:,.0f}".format),
    )
    note = f"At {escape(printable(site.name))}, from the first arrival to the last end."
    prepare.print_table(_filled(rows, "energy", columns), note)


def _deadline_table(rows: list[dict[str, Any]]) -> None:
    """How the jobs without a deadline fared, and what became of the deadlines."""
    columns = (
        ("regular_mean_wait_s", "regular jobs:\nmean wait (s)", "{:,.0f}".format),
        ("regular_stretch", "\nstretch", "{:,.2f}".format),
        ("regular_at_once", "at\nonce", "{:.1%}".format),
        ("deadline_jobs", "deadlines\nasked", "{:,}".format),
        ("deadlines_refused", "\nrefused", "{:,.0f}".format),
        ("deadlines_late", "\nlate", "{:,}".format),
        ("deadlines_missed", "accepted\nand late", "{:,.0f}".format),
        ("deadline_usage", "\nused", "{:.1%}".format),
    )
    prepare.print_table(
        _filled(rows, "metrics", columns),
        "Regular jobs have no deadline. Only a policy that knows of deadlines refuses some. Used: the part of the time"
        " until its deadline that a job took, of jobs that waited.",
    )


def _filled(
    rows: list[dict[str, Any]],
    part: str,
    columns: Sequence[tuple[str, str, Callable[[float], str]]],
    missing: str = "",
    above: Sequence[str] = (),
) -> Table:
    """One row per policy, of numbers in a part of its results. A column: key, head, and how its numbers are written."""
    table = prepare.new_table(["gap" if above else "policy"], (head for _, head, _ in columns))
    if above:
        table.add_row(*above)
    for row in rows:
        values = [(row[part][key], written) for key, _, written in columns]
        table.add_row(_name(row), *(written(value) if isfinite(value) else missing for value, written in values))
    return table


def _name(row: dict[str, Any]) -> str:
    from rich.markup import escape

    from dovetail.reports.page_data import unstarted
    from dovetail.units import printable

    left = unstarted(row["metrics"]).replace("started ", "started\n")
    name = escape(printable(row["policy"], 40)) + (" *" if row["clairvoyant"] else "")
    return f"{name}\n[red]{left}[/]" if left else name


def _percent(share: float) -> str:
    return f"{100 * share:,.1f} %"


def _write(schedule: Schedule, out: Path, written: set[str], quiet: bool) -> None:
    """Write under a name that no other schedule of this command has (`written`): traces may share a file name."""
    from dovetail.io.schedules import write_schedule_parquet, write_schedule_swf

    out.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"[^A-Za-z0-9.=_-]+", "-", f"{schedule.workload.name}.{schedule.policy}.{schedule.estimate}")[:150]
    if stem in written:
        stem = next(f"{stem}.{n}" for n in itertools.count(2) if f"{stem}.{n}" not in written)
    written.add(stem)
    swf, parquet = out / f"{stem}.swf.gz", out / f"{stem}.parquet"
    write_schedule_swf(schedule, swf)
    write_schedule_parquet(schedule, parquet)
    if not quiet:
        prepare.say(f"wrote {swf} and {parquet}")
