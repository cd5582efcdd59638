"""`dovetail workload`: look at traces, convert, generate and fetch them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli import screen
from dovetail.cli.prepare import (
    WITHOUT_LIMITS,
    ClusterName,
    Filters,
    Json,
    Overrun,
    Scenarios,
    Seed,
    load,
    nodes_named,
    print_json,
    say,
)
from dovetail.errors import SettingError

if TYPE_CHECKING:
    from dovetail.model.cluster import Cluster
    from dovetail.model.workload import Workload

FORMS = ".parquet, .csv, .swf, .swf.gz, .swf.xz, .swf.zst"
MEMORY_MB = 512
"""For the records of a Slurm, unless another number is given."""
_SECRET = 16
"""Bytes that a key has at least."""
_LONGEST = 4_096
"""Bytes of a key that are read."""

app = typer.Typer(no_args_is_help=True, help="Look at traces, convert, generate and fetch them.")


@app.command("describe")
def describe_command(
    traces: Annotated[
        list[str], typer.Argument(metavar="TRACE", help="SWF (plain, gz, xz, zst), Parquet, Eurora's or Alibaba's CSV.")
    ],
    filters: Filters = None,
    scenarios: Scenarios = None,
    overrun: Overrun = "cut",
    seed: Seed = 0,
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
        facts = facts_of(workload)
        if lines:
            aside = workload.set_aside
            pairs = zip(aside.line.tolist(), aside.id.tolist(), aside.reason.tolist(), strict=True)
            facts["lines_set_aside"] = [{"line": a, "job": b, "reason": aside.reasons[c]} for a, b, c in pairs]
        print_json(facts) if as_json else show(facts)


def facts_of(workload: Workload) -> dict[str, Any]:
    """What is in a workload, as numbers."""
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
    known = (workload.limit > 0) & (workload.runtime >= 0)
    used = workload.runtime[known] / workload.limit[known]
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
        "runtime_s": spread(workload.runtime[workload.runtime >= 0]),
        "limit_s": spread(workload.limit[workload.limit > 0]),
        "limit_used_share": spread(used),
        "acknowledge": past.acknowledge,
    }


def show(facts: dict[str, Any]) -> None:
    """The same for people."""
    from dovetail.units import duration, printable

    def spread(of: dict[str, float], written: Callable[[float], str]) -> str:
        return ", ".join(f"{name} {written(value)}" for name, value in of.items())

    kept, lines = facts["jobs"], facts["lines"]
    screen.tell(f"{printable(facts['name'])}: {kept:,} jobs on {facts['processors']:,} processors")
    rows = [("span", f"{duration(facts['span_s'])}, offered load {facts['offered_load']:.3f}")]
    rows += [("users", f"{facts['users']:,}")]
    if kept:
        rows += [("size", f"{spread(facts['size_processors'], '{:,.0f}'.format)} processors")]
        rows += [("run time", spread(facts["runtime_s"], duration)), ("limit", spread(facts["limit_s"], duration))]
        rows += [("limit used", spread(facts["limit_used_share"], lambda share: f"{100 * share:.0f} %"))]
    rows += [("lines", f"{lines:,} read = {kept:,} kept + {lines - kept:,} set aside")] if lines else []
    rows += [(f"{count:>12,}", printable(reason)) for reason, count in facts["set_aside"].items()]
    steps = (step for step in facts["steps"] if step["changed"])
    rows += [(f"{step['changed']:>12,}", f"changed: {printable(step['step'])}") for step in steps]
    where = ((f"line {row['line']}, job {row['job']}: ", row["reason"]) for row in facts.get("lines_set_aside", ()))
    rows += [("", f"{place}{printable(reason)}") for place, reason in where]
    rows += [("thanks to", printable(facts["acknowledge"], 400))] if facts["acknowledge"] else []
    screen.facts((f"  {name}", text) for name, text in rows if text)


def _write(workload: Workload, out: Path, as_json: bool) -> None:
    """Write a workload, and say what is in it."""
    from dovetail.io.write import write

    write(workload, out)
    facts = {"out": str(out), "jobs": len(workload), "set_aside": workload.set_aside.counts()}
    if as_json:
        print_json(facts)
    else:
        say(f"wrote {out}: {len(workload):,} jobs; {len(workload.set_aside):,} set aside")


Out = Annotated[Path, typer.Option("--out", "-o", metavar="OUT", help=f"Where to: {FORMS}.")]
Zone = Annotated[str, typer.Option(metavar="ZONE", help="Of times that name none: Europe/Berlin.")]
Processors = Annotated[
    int | None, typer.Option(min=1, max=10**9, metavar="N", help="Of the machine; default: the most in use at once.")
]
Anonymize = Annotated[
    bool, typer.Option("--anonymize", help="Pseudonyms for users, groups and job names, to publish the jobs.")
]
Key = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", help="The secret of the pseudonyms; default: one made and thrown away."),
]


def anonymized(workload: Workload, wanted: bool, key: Path | None, as_json: bool) -> Workload:
    """The workload without identities, if that is wanted; what was changed is told."""
    import secrets

    from dovetail.errors import SettingError
    from dovetail.io.streams import regular_file
    from dovetail.workloads.anonymize import anonymize

    if not wanted:
        if key is not None:
            raise SettingError("--key is for --anonymize, which is not given")
        return workload
    secret = secrets.token_bytes(32)
    if key is not None:
        with regular_file(key).open("rb") as stream:
            secret = stream.read(_LONGEST).strip()
        if len(secret) < _SECRET or len(set(secret)) < _SECRET // 2:
            raise SettingError(
                f"--key {key}: a secret of fewer than {_SECRET} bytes, or of few different, can be guessed"
            )
    made, changed = anonymize(workload, secret)
    if not as_json:
        for title, texts in (("replaced", changed.replaced), ("kept", changed.kept)):
            screen.facts((title if not at else "", text) for at, text in enumerate(texts))
    return made


@app.command("import", cls=screen.Grouped)
def import_command(
    tables: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Jobs as CSV, TSV, `sacct -P`, Parquet or SWF; or packed. Several: one table's rows.",
        ),
    ],
    out: Out,
    columns: Annotated[
        str, typer.Option(metavar="FIELD=COLUMN,...", help="Columns by unusual names: submit=Queued at,size=Slots.")
    ] = "",
    tz: Zone = "UTC",
    processors: Processors = None,
    cluster: ClusterName = None,
    anonymous: Anonymize = False,
    key: Key = None,
    as_json: Json = False,
) -> None:
    """Make a workload of your own table of jobs, and say what was understood of it.

    What sacct printed is read as import-slurm reads it.
    """
    from dataclasses import asdict

    from dovetail.io.table import parse_columns, read_any
    from dovetail.slurm.history import is_history
    from dovetail.units import printable

    nodes = nodes_named(cluster, processors)
    size = nodes.processors if nodes is not None else processors or 0
    named = parse_columns(columns)
    table, *more = tables
    if is_history(table):
        if named:
            raise SettingError("--columns is for tables: the fields of sacct have their names")
        if more:
            raise SettingError("of what sacct printed one file is read: put them into one")
        import_history(table, out, nodes or size, tz, anonymous, key, as_json, MEMORY_MB)
        return
    workload, told = read_any(table, named, tz=tz, processors=size, more=more)
    if not as_json:
        if told.published:
            screen.tell(f"By its columns this is {told.published}.")
        screen.tell("understood")
        screen.facts((f"  {name}", printable(column, 60)) for name, column in told.columns.items())
    rows = [("guessed", text) for text in told.guesses] + [("not known", text) for text in told.missing]
    rows += [("not used", ", ".join(printable(name, 30) for name in told.ignored))] if told.ignored else []
    _imported(workload, out, rows, asdict(told), anonymous, key, as_json)


def import_history(
    source: Path, out: Path, machine: Cluster | int, zone: str, anonymous: bool, key: Path | None, as_json: bool,
    memory_mb: int,
) -> None:  # fmt: skip
    """Make a workload of what sacct printed, and say what was understood of it. `machine`: the cluster, or how many
    processors it has. `memory_mb`: what records may take beside the workload."""
    from dovetail.io.local_times import zone_named
    from dovetail.slurm.history import read_history

    size, nodes = (machine, None) if isinstance(machine, int) else (machine.processors, machine)
    workload, told = read_history(source, size, zone_named(zone), cluster=nodes, memory=memory_mb << 20)
    shapes = ", ".join(f"{many:,} {word}" for word, many in told.shapes.items())
    rows = [("shapes", f"what jobs ask of nodes: {shapes}")]
    rows += [("noted", text) for text in told.notes] + [("not known", text) for text in told.missing]
    understood = {
        "records": told.records, "again": told.again, "shapes": told.shapes, "notes": told.notes,
        "not_known": told.missing,
    }  # fmt: skip
    _imported(workload, out, rows, understood, anonymous, key, as_json)


def _imported(
    workload: Workload, out: Path, rows: Iterable[tuple[str, str]], understood: dict[str, Any], anonymous: bool,
    key: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Say what was understood, write the workload, and say what is in it."""
    from dovetail.io.write import write
    from dovetail.units import printable

    if not as_json:
        screen.facts((title, printable(text, 400)) for title, text in rows)
    workload = anonymized(workload, anonymous, key, as_json)
    write(workload, out)
    facts = facts_of(workload)
    if as_json:
        print_json({"out": str(out), "understood": understood, **facts})
        return
    show(facts)
    say(f"wrote {out}" if out.suffix == ".csv" else f"wrote {out}. {what_next(workload, out)}")


def what_next(workload: Workload, out: Path) -> str:
    """What to do with a workload that was imported."""
    policies = "recorded easy" if bool((workload.get("wait") >= 0).any()) else "easy"
    limits = "" if bool((workload.limit > 0).any()) else f" {WITHOUT_LIMITS}"
    return f"What another policy would have made of it: dovetail compare {out} {policies} sjf-easy{limits}"


@app.command("convert", cls=screen.Grouped)
def convert_command(
    trace: Annotated[str, typer.Argument(help="SWF (plain, gz, xz, zst), Parquet, Eurora's or Alibaba's CSV.")],
    out: Annotated[Path, typer.Argument(help=f"Where to: {FORMS}.")],
    filters: Filters = None,
    scenarios: Scenarios = None,
    overrun: Overrun = "cut",
    seed: Seed = 0,
    raw: Annotated[bool, typer.Option("--raw", help="No filter at all: every job that could be read.")] = False,
    anonymous: Anonymize = False,
    key: Key = None,
    as_json: Json = False,
) -> None:
    """Clean a trace, put it through scenarios, and write it in another form."""
    workload = load(trace, [] if raw else filters, scenarios, overrun, seed)
    _write(anonymized(workload, anonymous, key, as_json), out, as_json)


@app.command("generate")
def generate_command(
    out: Annotated[Path, typer.Argument(help="Where to: .parquet, .swf, .swf.gz, .swf.xz, .swf.zst.")],
    jobs: Annotated[int, typer.Option(min=1, help="How many jobs.")] = 10_000,
    processors: Annotated[int, typer.Option(min=1, help="Size of the machine.")] = 128,
    load_: Annotated[float | None, typer.Option("--load", help="Offered load; default: the model's own.")] = None,
    kind: Annotated[str, typer.Option(help="both, batch, interactive, or untyped.")] = "both",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Generate a workload by the Lublin-Feitelson model, with user limits by the model of Tsafrir et al."""
    from dovetail.workloads.lublin import lublin

    _write(lublin(jobs, processors, seed=seed, load=load_, kind=kind), out, as_json)


@app.command("failures")
def failures_command(
    out: Annotated[Path, typer.Argument(help="Where to: a table, for --outages.")],
    cluster: Annotated[str, typer.Option(metavar="NAME|FILE", help="Whose nodes fail.")],
    span: Annotated[str, typer.Option(help="For how long, from second 0 of the log on.")] = "90d",
    between: Annotated[str, typer.Option(help="Mean time from repair to failure, of a node.")] = "365d",
    repair: Annotated[str, typer.Option(help="Mean time to repair.")] = "8h",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Draw failures of nodes: what runs on a node that fails is lost, and runs again."""
    from dovetail.io.clusters import cluster_named
    from dovetail.io.outages import write_outages
    from dovetail.units import parse_duration
    from dovetail.workloads.failures import failures

    try:
        span_s, between_s, repair_s = (parse_duration(text) for text in (span, between, repair))
    except ValueError as error:
        raise SettingError(str(error)) from error
    drawn = failures(cluster_named(cluster).nodes, span_s, between_s, repair_s, seed)
    if not drawn:
        raise SettingError("no node fails in that time: nothing is written")
    write_outages(drawn, out)
    if as_json:
        print_json({"path": str(out), "failures": len(drawn)})
    else:
        screen.tell(f"{out}: {len(drawn):,} failures in {span}")


@app.command("fetch")
def fetch_command(
    name: Annotated[str | None, typer.Argument(help="A log's name, such as KTH-SP2; none: list them.")] = None,
    as_json: Json = False,
) -> None:
    """Fetch a public log from its host, check it and keep it; or say how to fetch it by hand."""
    from dataclasses import asdict

    from dovetail.io.archive import catalog, fetch, find

    if name is None:
        for log in catalog().values():
            if as_json:
                print_json(asdict(log))
            else:
                jobs, machine = _known(log.jobs, "jobs"), _known(log.processors, "processors")
                typer.echo(
                    f"{log.name:<17}{jobs:>15}{machine:>19}  {log.begins}  {'by hand' if log.by_hand else log.form}"
                )
        return
    path = fetch(name, progress=None if as_json else _tell())
    log = find(name)
    if as_json:
        print_json({"path": str(path), **asdict(log)})
        return
    typer.echo(str(path))
    if told := log.next_step(path):
        say(f"Next: {told}")
    if log.acknowledge:
        say(f"Please acknowledge: {log.acknowledge}")
    say(f"Please cite: {log.cite}{f'. Licence: {log.licence}' if log.licence else ''}")


def _known(number: int, what: str) -> str:
    return f"{number:,} {what}" if number else f"? {what}"


def _tell() -> Any:
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        return None
    return lambda done, _total=None: console.print(f"{done / 1e6:,.1f} MB", end="\r")
