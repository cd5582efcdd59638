"""`dovetail study`: many replays from one file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli import screen
from dovetail.cli.prepare import Json, end, print_case, print_json, say
from dovetail.cli.report import Pair

if TYPE_CHECKING:
    from dovetail.reports.page_data import Case, Entry
    from dovetail.studies.runner import Outcome, Standing
    from dovetail.studies.store import Store
    from dovetail.studies.task import Task

app = typer.Typer(no_args_is_help=True, help="Many replays from one file: plan, run, and look at the results.")

File = Annotated[Path, typer.Argument(metavar="STUDY", help="The study, a TOML file.")]
Where = Annotated[
    Path | None, typer.Option("--store", metavar="FOLDER", help="Where runs are kept; default: beside the study.")
]
On = Annotated[
    str,
    typer.Option("--on", metavar="ENGINE", help="local, dask://HOST:PORT, slurm, slurm:partition=NAME,time=2h, parsl."),
]
Workers = Annotated[
    int | None, typer.Option(min=1, max=100_000, help="Processes at once; default: this machine's cores, Slurm 8.")
]
_SHOWN = 20


@app.command("plan")
def plan_command(path: File, store: Where = None, as_json: Json = False) -> None:
    """Show the cells of a study and about what they will cost, and run none."""
    from dovetail.studies.runner import prepare
    from dovetail.studies.store import Store

    given = _store(path, store)
    with TemporaryDirectory() as folder:
        there = Store(given if given.is_dir() else folder)
        _, tasks, costs = prepare(path, there, say)
        missing = {task.name for task in tasks} - there.names()
        if as_json:
            for task in tasks:
                _print_cell(task, costs[task.name], task.name not in missing)
            return
        _show_plan(tasks, costs, missing)


@app.command("run")
def run_command(
    path: File,
    store: Where = None,
    on: On = "local",
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Run the cells of a study that are missing from its store. Stop it at any moment and run it again."""
    from dovetail.studies.executors import engine
    from dovetail.studies.runner import prepare, run_missing
    from dovetail.studies.store import Store

    there = Store(_store(path, store))
    chosen = engine(on, workers, there.path.resolve())
    study, tasks, costs = prepare(path, there, say)
    names = [task.name for task in tasks]
    there.write_study(study, path.read_text(encoding="utf-8"), names)
    began = time.monotonic()
    with shown(set(names), there, on) as tell:
        outcome = run_missing(tasks, there, chosen, costs, tell)
    _finish(tasks, there, outcome, time.monotonic() - began, as_json)


@app.command("results")
def results_command(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="What `dovetail study run` made.")],
    pair: Pair = "",
    wide: screen.Wide = False,
    as_json: Json = False,
) -> None:
    """Print each policy's metrics and how they compare with the baseline's, pair by pair."""
    from dovetail.studies.cases import content
    from dovetail.studies.store import Store

    shown = content(Store(store), pair)
    for note in shown.notes:
        say(note)
    for case in shown.cases:
        print_case(case) if as_json else _show_case(case, wide)
    end(shown.unstarted)


def _show_case(case: Case, wide: bool) -> None:
    from rich.markup import escape

    from dovetail.metrics.catalog import metric_of
    from dovetail.reports.columns import percent, scale
    from dovetail.reports.tables import in_pairs, moved, paired
    from dovetail.studies.cases import IN_GROUPS
    from dovetail.units import printable

    def cell(entry: Entry, metric: str, text: str) -> str:
        found, by = paired(entry, metric), moved(case, entry, metric)
        if entry is not case.entries[0] and isfinite(by):
            text += f"\n{percent(by)}"
        if found:
            colour = {"better": "green", "worse": "red"}.get(found.verdict, "default")
            by_pairs = escape(in_pairs(found).replace(" [", "\n["))
            text += f"\n{by_pairs}\n[{colour}]{found.verdict}[/]"
        return text

    energy = [key for key in ("energy_cost", "co2_kg") if all(key in entry.metrics for entry in case.entries)]
    columns = []
    for rank, key in enumerate([*IN_GROUPS, *energy]):
        metric, values = metric_of(key), [entry.metrics[key] for entry in case.entries]
        unit = scale(metric, values)
        cells = [cell(entry, key, unit.text(value)) for entry, value in zip(case.entries, values, strict=True)]
        columns.append(screen.Column(screen.titled(metric.head, unit.unit), cells, rank))
    said = [screen.policy(entry) for entry in case.entries]
    over = f"; below changes, those of means over {case.pairing} with 95 % intervals" if case.pairing else ""
    over = over or ("" if case.entries[0].unstarted else "; no statistics: too few pairs")
    screen.tell(f"{printable(case.title)}: {case.jobs:,} jobs, {case.machine}{over}")
    remarks = [escape(printable(remark, 500)) for remark in case.remarks]
    screen.print_table([("policy", said)], columns, *remarks, wide=wide)


def _store(path: Path, store: Path | None) -> Path:
    return store or path.with_suffix(".store")


def _print_cell(task: Task, cost_s: float, done: bool) -> None:
    from dataclasses import asdict

    facts = {"jobs": task.jobs, "processors": task.processors, "cost_cpu_s": round(cost_s, 3), "done": done}
    print_json({"run": task.name, **asdict(task.cell), **facts})


def _show_plan(tasks: list[Task], costs: dict[str, float], missing: set[str]) -> None:
    """One line per trace and policy: a grid of thousands of cells stays readable."""
    from rich.markup import escape

    from dovetail.units import duration, printable

    rows: dict[tuple[str, str], list[Task]] = {}
    for task in tasks:
        rows.setdefault((task.cell.trace, task.cell.policy), []).append(task)
    rows["all", ""] = tasks
    due = [[task for task in members if task.name in missing] for members in rows.values()]
    words = [(head, [escape(printable(key[at], 60)) for key in rows]) for at, head in enumerate(("trace", "policy"))]
    columns = (
        screen.Column("cells", [f"{len(members):,}" for members in rows.values()], 1),
        screen.Column("missing", [f"{len(members):,}" for members in due]),
        screen.Column("jobs replayed", [f"{sum(task.jobs for task in members):,}" for members in due], 2),
        screen.Column("CPU, about", [duration(sum(costs[task.name] for task in members)) for members in due]),
    )
    sizes = {axis: len({getattr(task.cell, axis) for task in tasks}) for axis in tasks[0].cell.__dataclass_fields__}
    grid = " x ".join(f"{n} {axis}{'s' if n != 1 else ''}" for axis, n in sizes.items()).replace("policys", "policies")
    screen.print_table(
        words,
        columns,
        f"{len(tasks):,} cells: {grid}, less what the rules leave out.",
        "The cost comes from short probes (or earlier runs); deep queues cost more. Divide it by the cores.",
    )


@contextmanager
def shown(wanted: set[str], store: Store, on: str) -> Iterator[Callable[[Standing], None]]:
    """Say what is there and what is to be run, and how far it is; on Ctrl-C say that what is done stays."""
    left = len(wanted - store.names())
    say(f"{len(wanted):,} cells, {len(wanted) - left:,} of them in {store.path}; {left:,} to run on {on}")
    try:
        with _progress(left) as tell:
            yield tell
    except KeyboardInterrupt:
        say(f"stopped; {len(wanted & store.names()):,} runs are kept. The same command goes on from there.")
        raise typer.Exit(130) from None


@contextmanager
def _progress(cells: int) -> Iterator[Callable[[Standing], None]]:
    """One bar for all cells on a terminal; elsewhere a line now and then."""
    from rich.console import Console

    console = Console(stderr=True)
    if not cells:
        yield lambda standing: None
    elif console.is_terminal:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[pace]}", markup=False))
        with Progress(*columns, console=console, transient=True) as bar:
            row = bar.add_task("cells", total=cells, pace="")
            yield lambda standing: bar.update(row, completed=standing.done, pace=_pace(standing))
    else:
        last = [time.monotonic()]

        def tell(standing: Standing) -> None:
            if time.monotonic() - last[0] >= 15:
                last[0] = time.monotonic()
                say(f"{standing.done:,} of {standing.total:,} cells, {_pace(standing)}")

        yield tell


def _pace(standing: Standing) -> str:
    from dovetail.units import duration

    left = "" if standing.left_s is None else f", {duration(round(standing.left_s))} left"
    failed = f", {standing.failed:,} failed" if standing.failed else ""
    return f"{standing.rate:.1f} cells/s{left}{failed}"


def _finish(tasks: list[Task], store: Store, outcome: Outcome, elapsed_s: float, as_json: bool) -> None:
    from dovetail.reports.page_data import unstarted
    from dovetail.units import duration, printable

    there = store.names()
    missing = [task for task in tasks if task.name not in there]
    if as_json:
        facts: dict[str, Any] = {"store": str(store.path), "cells": len(tasks), "done": len(tasks) - len(missing)}
        failed = {name: printable(why, 500) for name, why in outcome.failed.items()}
        lost = {"workers_lost": outcome.deaths, "elapsed_s": round(elapsed_s, 3), "sha256": store.digest()}
        print_json({**facts, "ran": outcome.done, "failed": failed, **lost})
    else:
        for task in missing[:_SHOWN]:
            cell = task.cell
            where = " ".join(filter(None, (cell.trace, cell.scenario, cell.span, cell.policy, cell.estimate)))
            why = outcome.failed.get(task.name, "not run")
            say(f"failed: {printable(where)} seed {cell.seed}: {printable(why, 500)}")
        if len(missing) > _SHOWN:
            say(f"... and {len(missing) - _SHOWN:,} more")
        again = f"; {outcome.deaths} batches lost with their worker" if outcome.deaths else ""
        say(f"{outcome.done:,} runs in {duration(round(elapsed_s, 1))}{again}")
        say(f"look at them: dovetail report {store.path}")
    if missing:
        raise typer.Exit(1)
    rows = store.frame({task.name for task in tasks}).iter_rows(named=True)
    end((f"{row['policy']} on {row['trace']} (seed {row['seed']})", unstarted(row)) for row in rows)
