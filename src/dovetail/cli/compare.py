"""`dovetail compare`: policies, one trace, one page in the browser."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.cli import prepare, screen
from dovetail.cli.replay import replayed
from dovetail.cli.report import Out, Pair, told
from dovetail.errors import SettingError

if TYPE_CHECKING:
    from dovetail.model.cluster import Cluster
    from dovetail.model.workload import Workload
    from dovetail.policies.base import Policy


def compare_command(
    trace: Annotated[
        str, typer.Argument(metavar="TRACE", help="SWF (plain, gz, xz, zst), Parquet, Eurora's or Alibaba's CSV.")
    ],
    policies: Annotated[
        list[str],
        typer.Argument(
            metavar="POLICY...",
            help="The baseline, then one or more to compare with it.",
            autocompletion=prepare.policy_names,
        ),
    ],
    estimate: prepare.Estimate = "limit",
    processors: prepare.Processors = None,
    cluster: prepare.ClusterName = None,
    outages: prepare.Outages = None,
    seed: prepare.Seed = 0,
    filters: prepare.Filters = None,
    scenarios: prepare.Scenarios = None,
    overrun: prepare.Overrun = "cut",
    pair: Pair = "weeks",
    out: Out = Path("compare.html"),
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Show the page in the browser.")] = True,
    as_json: prepare.Json = False,
) -> None:
    """Replay a trace under policies and show the difference on one page. Exit code 3: one never started some jobs."""
    from dovetail.names import unknown
    from dovetail.policies.registry import policy as policy_named
    from dovetail.studies.cases import PAIRINGS

    if pair not in PAIRINGS[1:]:
        raise SettingError(f"--pair: {unknown('pairing of single replays', pair, PAIRINGS[1:])}")
    if len(set(policies)) < len(policies):
        raise SettingError(f"a policy is given twice: {' '.join(policies)}")
    need_page()
    chosen = [policy_named(name) for name in policies]
    nodes = prepare.nodes_named(cluster, processors, outages)
    workload = prepare.load(trace, filters, scenarios, overrun, seed, processors, nodes)
    prepare.need_jobs(workload)
    prepare.make_ready(workload, chosen, nodes, estimate=estimate)
    command = ["dovetail", "compare", Path(trace).name, *policies, "--estimate", estimate, "--pair", pair]
    command += ["--processors", str(processors)] if processors else []
    command += ["--cluster", Path(cluster).name] if cluster else []
    command += [word for one in filters or () for word in ("--filter", one)]
    command += [word for one in scenarios or () for word in ("--scenario", one)]
    command += ["--overrun", overrun, "--seed", str(seed)]
    compared(
        workload, dict(zip(policies, chosen, strict=True)), out, shlex.join(command),
        estimate=estimate, seed=seed, cluster=nodes, pair=pair, browser=browser, as_json=as_json,
    )  # fmt: skip


def compared(
    workload: Workload, policies: Mapping[str, Policy], out: Path, command: str, *, estimate: str = "limit",
    seed: int = 0, cluster: Cluster | None = None, pair: str = "weeks", browser: bool = True, as_json: bool = False,
) -> None:  # fmt: skip
    """Replay a workload under policies, write the page, tell its first sentences, and open it. Policies by the names
    that the page calls them."""
    from dataclasses import replace

    from dovetail.reports.summary_text import summary
    from dovetail.studies.cases import of_schedules

    schedules = [
        replace(replayed(workload, one, estimate, seed, cluster=cluster)[0], policy=name)
        for name, one in policies.items()
    ]
    case = of_schedules(schedules, pair)
    case.report(out, command=command)
    if as_json:
        prepare.print_case(case, page=str(out), bytes=out.stat().st_size)
    else:
        for sentence in summary(case.page()).sentences:
            screen.tell(sentence)
        told(out, as_json)
    if browser and not as_json and _has_screen():
        import webbrowser

        prepare.say("opening it")
        webbrowser.open(out.resolve().as_uri())
    prepare.end((entry.policy, entry.unstarted) for entry in case.entries)


def need_page() -> None:
    """ModuleNotFoundError, before anything is replayed, where what a page is made with is not installed."""
    for library in ("jinja2", "matplotlib", "scipy.stats"):
        import_module(library)


def _has_screen() -> bool:
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
