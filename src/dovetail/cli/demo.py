"""`dovetail demo`: a first page, from nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli import prepare, screen
from dovetail.cli.compare import compared, need_page
from dovetail.cli.replay import replay_command

_JOBS, _PROCESSORS, _LOAD = 6_500, 128, 0.68
"""Eighteen weeks of jobs: enough for intervals over weeks."""
_POLICIES = ("easy", "sjf-easy", "plan-af")


def demo_command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the log and the page go.")] = Path(
        "dovetail-demo"
    ),
    seed: prepare.Seed = 1,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Show the page in the browser.")] = True,
    as_json: prepare.Json = False,
) -> None:
    """Generate a log of 18 weeks, replay it under three policies, and show the page; a table where the extra studies,
    which draws pages, is not installed."""
    from dovetail.engine.replay import warm
    from dovetail.files import folder as make_folder
    from dovetail.io.write import write
    from dovetail.policies.registry import policy
    from dovetail.workloads.lublin import lublin

    policies = {name: policy(name) for name in _POLICIES}
    for one in policies.values():
        warm(one)
    log, page = folder / "log.swf.gz", folder / "page.html"
    make_folder(folder)
    workload = lublin(_JOBS, _PROCESSORS, seed=seed, load=_LOAD, kind="batch")
    write(workload, log)
    if not as_json:
        prepare.say(
            f"wrote {log}: {len(workload):,} jobs on {_PROCESSORS} processors, by the model of Lublin and Feitelson"
        )
    command = f"dovetail compare {log.name} {' '.join(_POLICIES)}"
    try:
        need_page()
    except ModuleNotFoundError as error:
        replay_command([str(log)], list(_POLICIES), as_json=as_json)
        screen.tell(f"A table and no page: {prepare.lacking(str(error.name))}")
        return
    compared(workload, policies, page, command, browser=browser, as_json=as_json)
    if not as_json:
        screen.tell(f"Again, or with other policies: dovetail compare {log} {' '.join(_POLICIES)}")
        screen.tell("With your own jobs: dovetail workload import jobs.csv -o jobs.parquet")
