"""`dovetail report`: a store as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.prepare import Json, end, print_json, say

Pair = Annotated[
    str,
    typer.Option(
        metavar="WHAT", help="What makes a pair: runs (same span and seed), weeks or users; default: what fits."
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page to write.")]


def report_command(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="What `dovetail study run` made.")],
    out: Out = Path("report.html"),
    pair: Pair = "",
    as_json: Json = False,
) -> None:
    """Write one self-contained page about all runs of a study."""
    from dovetail.studies.cases import write_page
    from dovetail.studies.store import Store

    shown = write_page(Store(store), out, pair)
    for note in shown.notes:
        say(note)
    told(out, as_json)
    end(shown.unstarted)


def told(out: Path, as_json: bool) -> None:
    """Say where a page is and how large."""
    size = out.stat().st_size
    if as_json:
        print_json({"page": str(out), "bytes": size})
    else:
        say(f"wrote {out} ({size / 1e6:.1f} MB): open it in a browser")
