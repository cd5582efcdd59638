"""The command `dovetail`: verbs are registered here and live in one file each."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout, suppress
from errno import EDQUOT, EFBIG, EIO, ENOSPC
from typing import Annotated, Any, NoReturn

import typer

from dovetail.cli import (
    bench,
    check,
    cluster,
    compare,
    deadline,
    demo,
    history,
    import_slurm,
    policies,
    predict,
    prepare,
    replay,
    report,
    screen,
    study,
    tune,
    warm,
    whatif,
    workload,
)
from dovetail.cli.compiling import show_compiling
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
app.command("history", cls=screen.Grouped)(history.history_command)
app.command("tune", cls=screen.Grouped)(tune.tune_command)
app.command("whatif", cls=screen.Grouped)(whatif.whatif_command)
app.command("policies")(policies.policies_command)
app.command("check")(check.check_command)
app.command("warm")(warm.warm_command)
workload.app.command("import-slurm", cls=screen.Grouped)(import_slurm.import_slurm_command)
app.add_typer(workload.app, name="workload")
app.add_typer(cluster.app, name="cluster")
app.add_typer(study.app, name="study")
app.add_typer(predict.app, name="predict")
app.add_typer(deadline.app, name="deadline")
app.add_typer(bench.app, name="bench")


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
        with _plain() if any(_is_control(one) for word in sys.argv for one in word) else nullcontext():
            try:
                app()
            finally:
                if sys.stdout is not None:  # closed from the beginning
                    sys.stdout.flush()  # what cannot be written is then told as any other error
    except ModuleNotFoundError as error:
        if not error.name or error.name.partition(".")[0] == "dovetail":
            raise
        _fail(prepare.lacking(error.name))
    except BrokenPipeError:  # who read what is printed has seen enough
        _forget_output()
        raise SystemExit(1) from None
    except OSError as error:
        _forget_output()
        _fail(_of_system(error))
    except (DovetailError, MemoryError) as error:
        _fail(str(error) or "out of memory")


def _is_control(character: str) -> bool:
    return unicodedata.category(character) == "Cc"


class _Plain:
    """A stream that lets no control character through but the end of a line, and says that it is no terminal."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if not isinstance(text, str):  # so libraries find out that it takes no bytes
            raise TypeError("a text is needed")
        self._stream.write("".join("\N{REPLACEMENT CHARACTER}" if _is_control(c) and c != "\n" else c for c in text))
        return len(text)

    def isatty(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _plain() -> Iterator[None]:
    """Where an argument has a control character nothing that is printed has one: whoever quotes it, it cannot speak to
    the terminal. There are no colours then."""
    with redirect_stdout(_Plain(sys.stdout)), redirect_stderr(_Plain(sys.stderr)):
        yield


def _fail(text: str) -> NoReturn:
    """Say what is wrong. Messages name files and quote what they hold: nothing of it may speak to the terminal."""
    print("dovetail:", "\n".join(printable(line, 2_000) for line in text.split("\n")), file=sys.stderr)
    raise SystemExit(2) from None


def _of_system(error: OSError) -> str:
    """What the system said, and of what. Files that we write are named by their errors: else it is what is printed."""
    said = error.strerror or str(error)
    if error.filename:
        return f"{error.filename}: {said}"
    return f"standard output cannot be written: {said}" if error.errno in (ENOSPC, EDQUOT, EFBIG, EIO) else said


def _forget_output() -> None:
    """Let what could not be printed go: Python would try again at its end, and tell in its own words."""
    with suppress(OSError, ValueError, AttributeError):  # no file of the system's, or none at all
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
