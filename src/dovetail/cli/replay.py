"""`dovetail replay`: one or more traces under one or more policies, compared in a table."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli import prepare, screen
from dovetail.errors import SettingError
from dovetail.process import cpu_s, peak_mb

if TYPE_CHECKING:
    from dovetail.energy.site import Site
    from dovetail.model.cluster import Cluster, PowerCap
    from dovetail.model.schedule import Schedule
    from dovetail.model.turns import Turns
    from dovetail.model.workload import Workload

_LONG = 50_000  # jobs from which on a progress bar is worth showing
_RANKS = {
    "mean_wait_s": 0,
    "wait_p95_s": 1,
    "bsld": 2,
    "utilization": 3,
    "awf_s": 4,
    "p2sf_s": 5,
    "max_wait_s": 7,
    "af_s": 8,
}
"""Which columns are left out last where there is no room."""
_OWNERS = 10
"""So many accounts, users, ... are shown of each policy, those that waited longest."""
_SHORT = {"wait_p95_s": "95 % wait", "utilization": "utilis-\nation"}


def replay_command(
    traces: Annotated[
        list[str], typer.Argument(metavar="TRACE", help="SWF (plain, gz, xz, zst), Parquet, Eurora's or Alibaba's CSV.")
    ],
    policy: prepare.Policies = None,
    estimate: prepare.Estimate = "limit",
    processors: prepare.Processors = None,
    cluster: prepare.ClusterName = None,
    outages: prepare.Outages = None,
    seed: prepare.Seed = 0,
    filters: prepare.Filters = None,
    scenarios: prepare.Scenarios = None,
    overrun: prepare.Overrun = "cut",
    counting: Annotated[
        str,
        typer.Option(
            metavar="all|ended",
            help="all jobs, or only those ended by the last submission.",
            rich_help_panel=prepare.JOBS,
        ),
    ] = "all",
    feedback: Annotated[
        bool,
        typer.Option(
            "--feedback", help="SWF fields 17 and 18 make a job wait for another.", rich_help_panel=prepare.JOBS
        ),
    ] = False,
    every: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="Passes only at multiples of this (30s); 0: at each arrival and end.",
            rich_help_panel=prepare.DECISIONS,
        ),
    ] = "0",
    charge: Annotated[
        bool,
        typer.Option(
            "--charge-decisions",
            help="Add the CPU time of each pass to the waits, in whole seconds.",
            rich_help_panel=prepare.DECISIONS,
        ),
    ] = False,
    fair_starts: Annotated[
        int,
        typer.Option(
            min=0, metavar="JOBS", help="Jobs to measure unfairness on: their starts if none had come after them."
        ),
    ] = 0,
    gaps: Annotated[
        bool, typer.Option("--gaps", help="Say how far each result can be from the best of any policy, at most.")
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(
            "--by", metavar="COLUMN|FILE", help="What each account, user, ... had: a column, or a file of shares."
        ),
    ] = None,
    energy: Annotated[
        Path | None,
        typer.Option(
            metavar="SITE.toml",
            help="Say what energy, cooling and carbon each schedule costs.",
            rich_help_panel=prepare.MACHINE,
        ),
    ] = None,
    power_cap: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1e9,
            metavar="KW",
            help="Never draw more, cooling apart; needs --energy for the powers.",
            rich_help_panel=prepare.MACHINE,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write each schedule to this folder, as SWF and Parquet.")
    ] = None,
    perfetto: Annotated[
        bool, typer.Option("--perfetto", help="Write them as traces for ui.perfetto.dev too; needs --out.")
    ] = False,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write long replays down there, every minute, to go on after a kill."),
    ] = None,
    wide: screen.Wide = False,
    as_json: prepare.Json = False,
) -> None:
    """Replay TRACEs under policies and compare them. Exit code 3: a policy never started some jobs."""
    from dovetail.io.sites import read_site
    from dovetail.metrics.jobs import COUNTING
    from dovetail.metrics.shares import by_owner
    from dovetail.model.cluster import Cluster
    from dovetail.model.turns import need_owners
    from dovetail.names import unknown
    from dovetail.policies.registry import policy as policy_named
    from dovetail.reports.page_data import unstarted as words_of
    from dovetail.units import parse_duration
    from dovetail.workloads.filters import fits_counted

    policies = sorted((policy_named(name) for name in policy or ["easy"]), key=lambda one: not one.from_record)
    try:
        every_s = parse_duration(every)
    except ValueError as error:
        raise SettingError(f"--every: {error}") from error
    if counting not in COUNTING:
        raise SettingError(f"--counting: {unknown('rule', counting, COUNTING)}")
    if fair_starts and feedback:
        raise SettingError("--fair-starts cannot be measured with --feedback: without later jobs there is no feedback")
    if perfetto and out is None:
        raise SettingError("--perfetto needs --out: the folder to write the traces to")
    if gaps and (feedback or counting != "all"):
        raise SettingError("--gaps needs all jobs, each arriving at its submit: leave out --feedback and --counting")
    owners = _by(by) if by is not None else None
    nodes = prepare.nodes_named(cluster, processors, outages)
    site = read_site(energy) if energy is not None else None
    cap = _cap(power_cap, site)
    written: set[str] = set()
    unstarted = []
    for path in traces:
        clock = time.process_time()
        workload = prepare.load(path, filters, scenarios, overrun, seed, processors, nodes)
        machine = nodes
        if cap is not None:
            machine = replace(nodes or Cluster(workload.processors), cap=cap)
            workload = fits_counted(workload, machine)
        prepare.need_jobs(workload)
        if isinstance(owners, str):
            need_owners(workload, owners, "--by ")
        elif owners is not None:
            owners.owners(workload)
        read_s = time.process_time() - clock
        how: dict[str, Any] = {"feedback": feedback, "every_s": every_s, "charge_decisions": charge, "site": site}
        how["keep"] = keep is not None
        prepare.make_ready(workload, policies, machine, estimate=estimate, **how)
        if not as_json:
            _introduce(workload, estimate, nodes)
        rows, bounds = [], None
        for chosen in policies:
            schedule, replay_s = replayed(
                workload, chosen, estimate, seed, feedback, every_s, machine, charge, site, keep
            )
            row = _row(schedule, counting, read_s, replay_s)
            if fair_starts:
                row["metrics"] |= _unfairness(schedule, chosen, fair_starts, every_s, counting, site)
            if owners is not None:
                row["owners"] = by_owner(schedule, owners, counting)
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
                _write(schedule, out, written, perfetto, as_json)
        if not as_json:
            _table(rows, workload, wide)
            if nodes is not None:
                _node_table(rows, nodes, wide)
            if "deadline_jobs" in rows[0]["metrics"]:
                _deadline_table(rows, wide)
            if site is not None:
                _energy_table(rows, site, wide)
            if gaps:
                _gap_table(rows, wide)
            if owners is not None:
                _owner_table(rows, owners if isinstance(owners, str) else owners.by, wide)
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
    keep: Path | None = None,
) -> tuple[Schedule, float]:
    """The schedule, and the CPU seconds that it took; with a bar where it takes long."""
    from dovetail.engine.replay import replay

    long = not policy.compiled or len(workload) >= _LONG
    with prepare.counted(policy.name, len(workload), "jobs", long) as tell:
        clock = cpu_s()
        schedule = replay(
            workload, policy, cluster=cluster, estimate=estimate, seed=seed, feedback=feedback, every_s=every_s,
            progress=tell, charge_decisions=charge, site=site, keep=keep,
        )  # fmt: skip
        return schedule, cpu_s() - clock


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
        "peak_mb": peak_mb(),
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


def _cap(kw: float | None, site: Site | None) -> PowerCap | None:
    from dovetail.model.cluster import PowerCap

    if kw is None:
        return None
    if site is None:
        raise SettingError("--power-cap needs --energy, which says what processors draw")
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
    """How far above the best possible each value is at most, as a share; nan where it is no schedule of
    all jobs by the rules."""
    if metrics["jobs_unstarted"] or metrics.get("rules_broken"):
        return dict.fromkeys(bounds, nan)
    return {key: metrics[key] / bound - 1 if bound else nan for key, bound in bounds.items()}


def _gap_table(rows: list[dict[str, Any]], wide: bool) -> None:
    """The bounds, and below them one row of gaps per policy."""
    from dovetail.metrics.catalog import metric_of

    bounds = rows[0]["bounds"]
    shown = [metric_of(key) for key in _RANKS if key in bounds]
    found = [f"{bounds[one.key]:,.0f} {one.unit}" if one.unit else f"{bounds[one.key]:,.3f}" for one in shown]
    _filled(
        rows, "gaps", [(one.key, one.head, _percent) for one in shown],
        "A gap says how far above the best of any policy a result is at most. The truth lies between it and 0.",
        wide=wide, missing="none", above=("lower bound", *("none" if "nan" in text else text for text in found)),
    )  # fmt: skip


def _table(rows: list[dict[str, Any]], workload: Workload, wide: bool) -> None:
    """One row per policy; below each value its change against the first; the best of a column is marked."""
    from dovetail.reports.page_data import Case, Entry
    from dovetail.reports.tables import of_case

    entries = tuple(Entry(row["policy"], row["metrics"]) for row in rows)
    case = Case(workload.name, rows[0]["estimate"], len(workload), workload.processors, workload.span_s, entries)
    made = of_case(case)
    columns = []
    for at, head in enumerate(made.heads):
        cells = []
        for row in made.rows:
            cell = row.cells[at]
            value = f"[bold green]*{cell.text}[/]" if cell.best else cell.text
            cells.append(f"{value}\n{cell.change}" if cell.change else value)
        title = screen.titled(_SHORT.get(head.key, head.text), head.unit)
        columns.append(screen.Column(title, cells, _RANKS.get(head.key, 9)))
    cpu = [f"{row['cpu_s']['replay']:.2f}" for row in rows]
    notes = []
    if any(cell.best for row in made.rows for cell in row.cells):
        notes.append("* best. Lower is better, utilisation apart.")
    if any(cell.change for row in made.rows for cell in row.cells):
        notes.append(f"Changes are against {_plain(rows[0]['policy'])}.")
    names = [("policy", [_name(row) for row in rows])]
    screen.print_table(names, [*columns, screen.Column("CPU\n(s)", cpu, 6)], " ".join(notes), wide=wide)


def _node_table(rows: list[dict[str, Any]], cluster: Cluster, wide: bool) -> None:
    """How much of each resource was in use, and how much of it lay idle where no core was free."""
    cores, *others = cluster.resources
    columns = [(f"utilization_{name}", f"{name}\nin use", _percent) for name in (cores, *others)]
    columns += [(f"stranded_{name}", f"{name}\nstranded", _percent) for name in others]
    _filled(
        rows, "metrics", columns,
        "In use: the share of each resource that jobs had, from the first arrival to the last end. Stranded: the share"
        " that was free on nodes without a free core, while jobs waited.",
        wide=wide, missing="none",
    )  # fmt: skip


def _energy_table(rows: list[dict[str, Any]], site: Site, wide: bool) -> None:
    """What was drawn, what it cost and what jobs earned."""
    money = _plain(site.currency)
    columns = (
        ("energy_kwh", "energy\n(kWh)", "{:,.0f}".format),
        ("energy_cost", f"bill\n({money})", "{:,.2f}".format),
        ("revenue", f"revenue\n({money})", "{:,.2f}".format),
        ("profit", f"profit\n({money})", "{:,.2f}".format),
        ("co2_kg", "carbon\n(kg CO2)", "{:,.0f}".format),
        ("peak_kw", "peak\n(kW)", "{:,.1f}".format),
        ("pue", "PUE\n", "{:.3f}".format),
        ("energy_cooling_kwh", "of it cooling\n(kWh)", "{:,.0f}".format),
        ("energy_idle_kwh", "of it idle\n(kWh)", "{:,.0f}".format),
    )
    note = f"At {_plain(site.name)}, from the first arrival to the last end."
    _filled(rows, "energy", columns, note, wide=wide)


def _deadline_table(rows: list[dict[str, Any]], wide: bool) -> None:
    """How the jobs without a deadline fared, and what became of the deadlines."""
    columns = (
        ("regular_mean_wait_s", "mean wait of others (s)", "{:,.0f}".format),
        ("deadline_jobs", "deadlines asked", "{:,}".format),
        ("deadlines_refused", "refused", "{:,.0f}".format),
        ("deadlines_late", "late", "{:,}".format),
        ("deadlines_missed", "accepted and late", "{:,.0f}".format),
        ("deadline_usage", "time used", "{:.1%}".format),
        ("regular_at_once", "others at once", "{:.1%}".format),
        ("regular_stretch", "stretch of others", "{:,.2f}".format),
    )
    _filled(
        rows, "metrics", columns,
        "Others have no deadline. Only a policy that knows of deadlines refuses some. Time used: the part of the time"
        " until its deadline that a job took, of jobs that waited.",
        wide=wide,
    )  # fmt: skip


def _by(text: str) -> str | Turns:
    """What --by says: a column, or what a file says of shares."""
    from dovetail.io.turns import read_turns
    from dovetail.model.turns import OWNERS
    from dovetail.names import unknown

    if text.endswith(".toml"):
        return read_turns(text)
    if text not in OWNERS:
        raise SettingError(f"--by: {unknown('column', text, OWNERS)}")
    return text


def _owner_table(rows: list[dict[str, Any]], by: str, wide: bool) -> None:
    """For each policy, who waited longest on average, with what was due and received."""
    policies, names, found = list[str](), list[str](), list[dict[str, Any]]()
    for row in rows:
        shown = row["owners"] if wide else row["owners"][:_OWNERS]
        policies += [_name(row), *[""] * (len(shown) - 1)]
        names += [_plain(one["name"]) for one in shown]
        found += shown
    columns = (
        ("mean_wait_s", "mean wait\n(s)", "{:,.0f}".format), ("received_share", "received", "{:.1%}".format),
        ("due_share", "due", "{:.1%}".format), ("bsld", "BSLD", "{:,.1f}".format), ("jobs", "jobs", "{:,.0f}".format),
    )  # fmt: skip
    made = []
    for at, (key, head, written) in enumerate(columns):
        cells = [written(one[key]) if isfinite(one[key]) else "" for one in found]
        made += [screen.Column(head, cells, at)] if any(cells) else []
    more = len(rows[0]["owners"]) - _OWNERS
    notes = [f"{more:,} more: --wide shows all."] if more > 0 and not wide else []
    screen.print_table([("policy", policies), (_plain(by), names)], made, *notes, wide=wide)


def _filled(
    rows: list[dict[str, Any]],
    part: str,
    columns: Sequence[tuple[str, str, Callable[[float], str]]],
    *notes: str,
    wide: bool,
    missing: str = "",
    above: Sequence[str] = (),
) -> None:
    """One row per policy, of numbers in a part of its results. A column: key, head, and how its numbers are written.
    Where there is no room, the last are left out."""
    names = [*above[:1], *(_name(row) for row in rows)]
    made = []
    for at, (key, head, written) in enumerate(columns):
        cells = [written(row[part][key]) if isfinite(row[part][key]) else missing for row in rows]
        made.append(screen.Column(head, [*above[at + 1 : at + 2], *cells], at))
    screen.print_table([("gap" if above else "policy", names)], made, *notes, wide=wide)


def _name(row: dict[str, Any]) -> str:
    from dovetail.reports.page_data import Entry

    return screen.policy(Entry(row["policy"], row["metrics"]), "knows the future" if row["clairvoyant"] else "")


def _plain(text: str) -> str:
    """Foreign text for a table."""
    from rich.markup import escape

    from dovetail.units import printable

    return escape(printable(text, 60))


def _percent(share: float) -> str:
    return f"{100 * share:,.1f} %"


def _write(schedule: Schedule, out: Path, written: set[str], perfetto: bool, quiet: bool) -> None:
    """Write under a name that no other schedule of this command has (`written`): traces may share a file name."""
    from dovetail.files import folder
    from dovetail.io.write import write

    folder(out)
    stem = re.sub(r"[^A-Za-z0-9.=_-]+", "-", f"{schedule.workload.name}.{schedule.policy}.{schedule.estimate}")[:150]
    if stem in written:
        stem = next(f"{stem}.{n}" for n in itertools.count(2) if f"{stem}.{n}" not in written)
    written.add(stem)
    files = [
        out / f"{stem}{suffix}" for suffix in (".swf.gz", ".parquet", *([".perfetto.json.gz"] if perfetto else []))
    ]
    for file in files:
        write(schedule, file)
    if not quiet:
        prepare.say(f"wrote {', '.join(map(str, files[:-1]))} and {files[-1]}")
