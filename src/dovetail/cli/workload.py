"""`dovetail workload`: look at traces, convert, generate and fetch them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.prepare import ClusterName, Filters, Json, Overrun, Scenarios, load, nodes_named, print_json, say

if TYPE_CHECKING:
    from dovetail.model.workload import Workload

app = typer.Typer(no_args_is_help=True, help="Look at traces, convert, generate and fetch them.")


@app.command("describe")
def describe_command(
    traces: Annotated[
        list[str], typer.Argument(metavar="TRACE", help="SWF (plain, gz, xz, zst), Parquet, Eurora's or Alibaba's CSV.")
    ],
    filters: Filters = None,
    scenarios: Scenarios = None,
    overrun: Overrun = "cut",
    seed: Annotated[int, typer.Option(min=0, help="For scenarios that draw at random.")] = 0,
    cluster: ClusterName = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="List every job that was set aside, with line and reason.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what is in a trace, and what was set aside and why."""
    nodes = nodes_named(cluster)
    for path in traces:
        workload = load(path, filters, scenarios, overrun, seed, cluster=nodes)
        facts = _facts(workload)
        if lines:
            aside = workload.set_aside
            pairs = zip(aside.line.tolist(), aside.id.tolist(), aside.reason.tolist(), strict=True)
            facts["lines_set_aside"] = [{"line": a, "job": b, "reason": aside.reasons[c]} for a, b, c in pairs]
        print_json(facts) if as_json else _show(facts)


def _facts(workload: Workload) -> dict[str, Any]:
    import numpy as np

    from dovetail.workloads.scenarios import offered_load

    def spread(values: Any) -> dict[str, float]:
        if not len(values):
            return {}
        marks = np.percentile(values, [0, 25, 50, 75, 95, 100])
        return dict(zip(("min", "p25", "median", "p75", "p95", "max"), map(float, marks), strict=True))

    past = workload.provenance
    n = len(workload)
    span = workload.span_s
    used = workload.runtime[workload.limit > 0] / workload.limit[workload.limit > 0]
    return {
        "name": workload.name,
        "source": past.source,
        "sha256": past.sha256,
        "jobs": n,
        "lines": past.lines,
        "set_aside": workload.set_aside.counts(),
        "steps": [{"step": s.name, "removed": s.removed, "changed": s.changed} for s in past.steps],
        "processors": workload.processors,
        "span_s": span,
        "offered_load": offered_load(workload) if span and workload.processors else float("nan"),
        "users": len(np.unique(workload["user"])) if "user" in workload else 0,
        "size_processors": spread(workload.size),
        "runtime_s": spread(workload.runtime),
        "limit_s": spread(workload.limit),
        "limit_used_share": spread(used),
        "acknowledge": past.acknowledge,
    }


def _show(facts: dict[str, Any]) -> None:
    from dovetail.units import duration, printable

    def times(spread: dict[str, float]) -> str:
        return ", ".join(f"{name} {duration(value)}" for name, value in spread.items())

    kept, lines = facts["jobs"], facts["lines"]
    typer.echo(f"{printable(facts['name'])}: {kept:,} jobs on {facts['processors']:,} processors")
    typer.echo(f"  span           {duration(facts['span_s'])}, offered load {facts['offered_load']:.3f}")
    typer.echo(f"  users          {facts['users']:,}")
    if kept:
        sizes = ", ".join(f"{name} {value:,.0f}" for name, value in facts["size_processors"].items())
        typer.echo(f"  size           {sizes} processors")
        typer.echo(f"  run time       {times(facts['runtime_s'])}")
        typer.echo(f"  limit          {times(facts['limit_s'])}")
        if facts["limit_used_share"]:
            used = ", ".join(f"{name} {100 * value:.0f} %" for name, value in facts["limit_used_share"].items())
            typer.echo(f"  limit used     {used}")
    if lines:
        typer.echo(f"  lines          {lines:,} read = {kept:,} kept + {lines - kept:,} set aside")
    for reason, count in facts["set_aside"].items():
        typer.echo(f"    {count:>9,}  {printable(reason)}")
    for step in facts["steps"]:
        if step["changed"]:
            typer.echo(f"    {step['changed']:>9,}  changed: {printable(step['step'])}")
    for row in facts.get("lines_set_aside", ()):
        typer.echo(f"    line {row['line']}, job {row['job']}: {printable(row['reason'])}")
    if facts["acknowledge"]:
        typer.echo(f"  thanks to      {printable(facts['acknowledge'], 400)}")


def _write(workload: Workload, out: Path, as_json: bool) -> None:
    """Write a workload, and say what is in it."""
    from dovetail.io.write import write

    write(workload, out)
    facts = {"out": str(out), "jobs": len(workload), "set_aside": workload.set_aside.counts()}
    if as_json:
        print_json(facts)
    else:
        say(f"wrote {out}: {len(workload):,} jobs; {len(workload.set_aside):,} set aside")


@app.command("import")
def import_command(
    table: Annotated[Path, typer.Argument(metavar="FILE", help="Jobs as CSV, TSV, `sacct -P` or Parquet; or packed.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="OUT", help="Where to: .parquet, .swf, .swf.gz, .swf.xz, .swf.zst.")
    ],
    columns: Annotated[
        str, typer.Option(metavar="FIELD=COLUMN,...", help="Columns by unusual names: submit=Queued at,size=Slots.")
    ] = "",
    tz: Annotated[str, typer.Option(metavar="ZONE", help="Of times that name none: Europe/Berlin.")] = "UTC",
    processors: Annotated[int, typer.Option(min=0, max=10**9, help="Of the machine; 0: the most in use at once.")] = 0,
    as_json: Json = False,
) -> None:
    """Make a workload of your own table of jobs, and say what was understood of it."""
    from dataclasses import asdict

    from dovetail.io.table import parse_columns, read_any
    from dovetail.io.write import write
    from dovetail.units import printable

    workload, told = read_any(table, parse_columns(columns), tz=tz, processors=processors)
    write(workload, out)
    facts = _facts(workload)
    if as_json:
        print_json({"out": str(out), "understood": asdict(told), **facts})
        return
    typer.echo("understood")
    for name, column in told.columns.items():
        typer.echo(f"  {name:<14} {printable(column, 60)}")
    for title, texts in (("guessed", told.guesses), ("not known", told.missing)):
        for text in texts:
            typer.echo(f"{title:<16} {printable(text, 200)}")
    if told.ignored:
        typer.echo(f"{'not used':<16} {', '.join(printable(name, 30) for name in told.ignored)}")
    _show(facts)
    say(f"wrote {out}: dovetail compare {out} easy sjf-easy shows what another policy would have made of it")


@app.command("convert")
def convert_command(
    trace: Annotated[str, typer.Argument(help="SWF (plain, gz, xz, zst), Parquet, Eurora's or Alibaba's CSV.")],
    out: Annotated[Path, typer.Argument(help="Where to: .parquet, .csv, .swf, .swf.gz, .swf.xz, .swf.zst.")],
    filters: Filters = None,
    scenarios: Scenarios = None,
    overrun: Overrun = "cut",
    seed: Annotated[int, typer.Option(min=0, help="For scenarios that draw at random.")] = 0,
    raw: Annotated[bool, typer.Option("--raw", help="No filter at all: every job that could be read.")] = False,
    as_json: Json = False,
) -> None:
    """Clean a trace, put it through scenarios, and write it in another form."""
    _write(load(trace, [] if raw else filters, scenarios, overrun, seed), out, as_json)


@app.command("generate")
def generate_command(
    out: Annotated[Path, typer.Argument(help="Where to: .parquet, .swf, .swf.gz, .swf.xz, .swf.zst.")],
    jobs: Annotated[int, typer.Option(min=1, help="How many jobs.")] = 10_000,
    processors: Annotated[int, typer.Option(min=1, help="Size of the machine.")] = 128,
    load_: Annotated[float | None, typer.Option("--load", help="Offered load; default: the model's own.")] = None,
    kind: Annotated[str, typer.Option(help="both, batch, interactive, or untyped.")] = "both",
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same bytes.")] = 0,
    as_json: Json = False,
) -> None:
    """Generate a workload by the Lublin-Feitelson model, with user limits by the model of Tsafrir et al."""
    from dovetail.workloads.lublin import lublin

    _write(lublin(jobs, processors, seed=seed, load=load_, kind=kind), out, as_json)


@app.command("fetch")
def fetch_command(
    name: Annotated[str | None, typer.Argument(help="A log's name, such as KTH-SP2; none: list them.")] = None,
    as_json: Json = False,
) -> None:
    """Fetch a public log from the Parallel Workloads Archive, check it and keep it."""
    from dovetail.io.archive import catalog, fetch, find

    if name is None:
        for log in catalog().values():
            if as_json:
                print_json({"name": log.name, "file": log.file, "jobs": log.jobs, "processors": log.processors})
            else:
                typer.echo(f"{log.name:<14} {log.jobs:>9,} jobs {log.processors:>7,} processors  {log.file}")
        return
    path = fetch(name, progress=None if as_json else _tell())
    log = find(name)
    if as_json:
        print_json({"name": log.name, "path": str(path), "sha256": log.sha256, "acknowledge": log.acknowledge})
    else:
        typer.echo(str(path))
        say(f"Please acknowledge: {log.acknowledge}")


def _tell() -> Any:
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        return None
    return lambda done, _total=None: console.print(f"{done / 1e6:,.1f} MB", end="\r")
