"""The command `dovetail`: verbs are registered here and live in one file each."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dovetail.cli import check, compare, deadline, policies, predict, replay, report, study, warm, workload
from dovetail.cli.compiling import show_compiling
from dovetail.errors import DovetailError
from dovetail.units import printable
from dovetail.version import __version__

app = typer.Typer(
    name="dovetail",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # the plain help comes in half the time
    add_completion=False,
    help="Batch-job scheduling for clusters: replay real traces under any policy, exactly and fast.",
)
app.command("replay")(replay.replay_command)
app.command("compare")(compare.compare_command)
app.command("report")(report.report_command)
app.command("policies")(policies.policies_command)
app.command("check")(check.check_command)
app.command("warm")(warm.warm_command)
app.add_typer(workload.app, name="workload")
app.add_typer(study.app, name="study")
app.add_typer(predict.app, name="predict")
app.add_typer(deadline.app, name="deadline")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dovetail {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Options of the command itself."""


def main() -> None:
    """Run; an error that a person can act on is printed without a traceback, with exit code 2."""
    show_compiling()
    try:
        app()
    except ModuleNotFoundError as error:
        if not error.name or error.name.partition(".")[0] == "dovetail":
            raise
        text = f"this needs the package {error.name}, of an extra that is not installed: pip install {error.name}"
        print(f"dovetail: {text}", file=sys.stderr)
        raise SystemExit(2) from None
    except (DovetailError, OSError, MemoryError) as error:
        # Messages name files and quote what they hold: nothing of it may speak to the terminal.
        text = "\n".join(printable(line, 2_000) for line in (str(error) or "out of memory").split("\n"))
        print(f"dovetail: {text}", file=sys.stderr)
        raise SystemExit(2) from None
