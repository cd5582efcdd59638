"""`dovetail bench`: a frozen suite, entries from any program, the referee's verdict, one table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.cli import prepare, screen
from dovetail.errors import SettingError

if TYPE_CHECKING:
    from dovetail.model.workload import Workload
    from dovetail.studies.bench import Line, Suite

app = typer.Typer(no_args_is_help=True, help="A benchmark that any program can enter.")
Given = Annotated[
    Path | None, typer.Option("--suite", metavar="FILE", help="A suite of your own; default: the frozen one.")
]
Logs = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Where logs may lie already; else they are fetched.")]
Scores = Annotated[Path, typer.Argument(metavar="SCORES", help="A table of scores, as CSV.")]


def _workloads(suite: Suite, logs: Path | None) -> dict[str, Workload]:
    return {case.name: suite.workload(case, logs) for case in suite.cases}


@app.command("export")
def export_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the cases go, as SWF.")],
    given: Given = None,
    logs: Logs = None,
    as_json: prepare.Json = False,
) -> None:
    """Write the cases for a program to schedule: CASE.swf, with each job's submit, size, limit and run time."""
    from dovetail.files import folder as make_folder
    from dovetail.io.write import write
    from dovetail.studies.bench import read_suite

    suite = read_suite(given)
    make_folder(folder)
    for case in suite.cases:
        workload = suite.workload(case, logs)
        write(workload, folder / f"{case.name}.swf")
        if as_json:
            prepare.print_json({
                "case": case.name, "file": str(folder / f"{case.name}.swf"), "jobs": len(workload),
                "processors": workload.processors, "sha256": workload.digest(), "held_out": case.held_out,
            })  # fmt: skip
        else:
            held = "  held out: choose nothing by it" if case.held_out else ""
            typer.echo(f"{case.name:<12}{len(workload):>7,} jobs{workload.processors:>8,} processors{held}")
    if not as_json:
        screen.tell(
            f"Estimates: {' and '.join(suite.estimates)}. An entry has CASE.ESTIMATE.swf for each, and entry.toml."
        )


@app.command("enter")
def enter_command(
    policies: Annotated[
        list[str], typer.Argument(metavar="POLICY...", autocompletion=prepare.policy_names, help="One entry of each.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="A folder for each entry goes here.")],
    given: Given = None,
    logs: Logs = None,
    seed: prepare.Seed = 0,
    as_json: prepare.Json = False,
) -> None:
    """Make entries of our policies: every case and estimate replayed, every pass timed."""
    from dataclasses import asdict

    from dovetail.policies.registry import policy
    from dovetail.studies.bench import enter, read_suite

    suite = read_suite(given)
    for name in policies:
        policy(name)
    workloads = _workloads(suite, logs)
    for name in policies:
        where = out / "".join(one if one.isalnum() or one in "-._=" else "_" for one in name)
        made = enter(name, where, suite, workloads, seed, tell=lambda text: None if as_json else prepare.say(text))
        if as_json:
            prepare.print_json({**asdict(made), "folder": str(where)})
        else:
            screen.tell(f"{where}: {made.budget} ({made.p999_ms:g} ms in 999 of 1,000 passes), {made.cpu_s:g} s of CPU")


@app.command("judge")
def judge_command(
    entries: Annotated[list[Path], typer.Argument(metavar="ENTRY...", help="Folders with entry.toml and schedules.")],
    scores: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the scores into this table, in place of older ones.")
    ] = None,
    ours: Annotated[
        bool, typer.Option("--ours", help="`bench enter` made them here: believe the times of passes in them.")
    ] = False,
    given: Given = None,
    logs: Logs = None,
    as_json: prepare.Json = False,
) -> None:
    """Check entries by the referee and score them. Exit code 3: a schedule is refused."""
    from dataclasses import asdict

    from dovetail.studies.bench import (
        BOUND,
        VALID,
        bounds,
        judge,
        read_entry,
        read_scores,
        read_suite,
        with_scores,
        write_scores,
    )

    suite = read_suite(given)
    known = read_scores(scores) if scores is not None else None
    workloads = _workloads(suite, logs)
    names = [read_entry(path, suite).name for path in entries]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise SettingError(f"two of these entries are called {twice!r}")
    if known is not None and suite.baseline in names and not ours:
        raise SettingError(f"{suite.baseline!r} is what all others are a share of: give the entry another name")
    found = [score for path in entries for score in judge(path, suite, workloads, ours=ours)]
    for score in found:
        if as_json:
            prepare.print_json(asdict(score))
        elif score.verdict != VALID:
            screen.tell(f"{score.entry}, {score.case}, {score.estimate}: {score.verdict}")
    if known is not None and scores is not None:
        bounded = known.filter((known["suite"] == suite.name) & (known["entry"] == BOUND))
        write_scores(with_scores(known, [*found, *(() if len(bounded) else bounds(suite, workloads))]), scores)
    valid = sum(score.verdict == VALID for score in found)
    if not as_json:
        screen.tell(f"{valid} of {len(found)} schedules are valid.")
    if valid < len(found):
        raise typer.Exit(3)


@app.command("table")
def table_command(
    scores: Scores,
    given: Given = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="As Markdown, for a page.")] = False,
    wide: screen.Wide = False,
    as_json: prepare.Json = False,
) -> None:
    """Print the table: each metric as a share of the baseline's, the geometric mean over cases."""
    from dataclasses import asdict

    from dovetail.errors import InputError
    from dovetail.studies.bench import lines, read_scores, read_suite

    suite = read_suite(given)
    table = read_scores(scores)
    if not len(table):
        raise InputError(scores, 0, "no scores: dovetail bench judge ENTRY --scores FILE writes them")
    for held_out in (False, True):
        cases = [one.name for one in suite.cases if one.held_out == held_out]
        for estimate in suite.estimates if cases else ():
            found = lines(table, suite, estimate, held_out=held_out)
            if as_json:
                for line in found:
                    prepare.print_json({**asdict(line), "estimate": estimate, "held_out": held_out})
                continue
            title = f"{'Held out' if held_out else 'Tried on'}: {', '.join(cases)}. Estimate: {estimate}."
            if markdown:
                typer.echo("\n".join(_markdown(title, found)))
            else:
                _print(title, found, suite, wide)


def _cells(line: Line) -> Iterator[str]:
    from dovetail.studies.bench import METRICS

    for key in METRICS:
        value = line.values.get(key, math.nan)
        yield "" if math.isnan(value) else f"{value:.3f}"


def _budget(line: Line) -> str:
    return f"{line.budget}, declared" if line.how == "declared" else line.budget


def _markdown(title: str, found: list[Line]) -> Iterator[str]:
    yield from (f"**{title}**", "", "| entry | a pass | " + " | ".join(_HEADS.values()) + " |")
    yield "|---|---|" + "---:|" * len(_HEADS)
    for line in (one for one in found if not one.problem):
        yield f"| {_plain(line.entry)} | {_plain(_budget(line))} | {' | '.join(_cells(line))} |"
    yield ""
    for line in (one for one in found if one.problem):
        yield from (f"Without numbers: {_plain(line.entry)}. {_plain(line.problem)}", "")


_HEADS: Mapping[str, str] = {
    "mean_wait_s": "mean wait", "wait_p95_s": "95 % wait", "max_wait_s": "longest wait", "bsld": "BSLD",
    "awf_s": "AWF", "p2sf_s": "P2SF",
}  # fmt: skip


def _plain(text: str) -> str:
    """Foreign text in a cell of Markdown: nothing of it is markup."""
    return "".join(f"\\{one}" if one in "\\|`<>[]_*~&#!" else one for one in text)


def _print(title: str, found: list[Line], suite: Suite, wide: bool) -> None:
    from rich.markup import escape

    screen.tell(title)
    shown = [line for line in found if not line.problem]
    columns = [
        screen.Column(head, list(cells), rank)
        for rank, (head, cells) in enumerate(zip(_HEADS.values(), zip(*map(_cells, shown), strict=True), strict=True))
    ] if shown else []  # fmt: skip
    words = [("entry", [escape(line.entry) for line in shown]), ("budget", [escape(_budget(line)) for line in shown])]
    screen.print_table(words, columns, f"A share of {escape(suite.baseline)}'s; lower is better.", wide=wide)
    for line in found:
        if line.problem:
            screen.tell(f"{line.entry}: {line.problem}")
