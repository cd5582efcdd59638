"""The command `dovetail`: verbs are registered here and live in one file each."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dovetail.cli import check, compare, deadline, demo, policies, predict, replay, report, screen, study, workload
from dovetail.errors import DovetailError
from dovetail.units import printable
from dovetail.version import __version__

app = typer.Typer(
    name="dovetail",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # the plain help comes in half the time
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Batch-job scheduling for clusters: replay real traces under any policy, exactly and fast.",
)
app.command("demo")(demo.demo_command)
app.command("replay", cls=screen.Grouped)(replay.replay_command)
app.command("compare", cls=screen.Grouped)(compare.compare_command)
app.command("report")(report.report_command)
app.command("policies")(policies.policies_command)
app.command("check")(check.check_command)
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


def _extra(package: str) -> str:
    """The extra that a package is of; empty if it is of none."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        wanted = [one for one in requires("dovetail") or () if one.lower().startswith(package.lower())]
    except PackageNotFoundError:
        return ""
    return next((one.rpartition("extra == ")[2].strip("\"'") for one in wanted if "extra ==" in one), "")


def main() -> None:
    """Run; an error that a person can act on is printed without a traceback, with exit code 2."""
    try:
        app()
    except ModuleNotFoundError as error:
        if not error.name or error.name.partition(".")[0] == "dovetail":
            raise
        package = error.name.partition(".")[0]
        extra = _extra(package)
        wanted = f"dovetail[{extra}]" if extra else package
        print(f"dovetail: this needs {package}, which is not installed: pip install '{wanted}'", file=sys.stderr)
        raise SystemExit(2) from None
    except (DovetailError, OSError, MemoryError) as error:
        # Messages name files and quote what they hold: nothing of it may speak to the terminal.
        text = "\n".join(printable(line, 2_000) for line in (str(error) or "out of memory").split("\n"))
        print(f"dovetail: {text}", file=sys.stderr)
        raise SystemExit(2) from None
