"""`dovetail compare`: two policies, one trace, one page in the browser."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli import prepare
from dovetail.cli.replay import replayed
from dovetail.cli.report import Out, Pair, told
from dovetail.errors import SettingError


def compare_command(
    trace: Annotated[
        str, typer.Argument(metavar="TRACE", help="SWF (plain, gz, xz, zst), Parquet, Eurora's or Alibaba's CSV.")
    ],
    policies: Annotated[
        list[str], typer.Argument(metavar="POLICY...", help="The baseline, then one or more to compare with it.")
    ],
    estimate: prepare.Estimate = "limit",
    processors: Annotated[int | None, typer.Option(min=1, max=10**9, help="Size of the cluster.")] = None,
    cluster: prepare.ClusterName = None,
    seed: Annotated[int, typer.Option(min=0, help="For policies and scenarios that draw at random.")] = 0,
    filters: prepare.Filters = None,
    scenarios: prepare.Scenarios = None,
    overrun: prepare.Overrun = "cut",
    pair: Pair = "weeks",
    out: Out = Path("compare.html"),
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Show the page in the browser.")] = True,
    as_json: prepare.Json = False,
) -> None:
    """Replay a trace under policies and show the difference on one page. Exit code 3: one never started some jobs."""
    from dataclasses import replace

    from dovetail.engine.replay import warm
    from dovetail.policies.registry import policy as policy_named
    from dovetail.studies.cases import of_schedules

    if len(set(policies)) < len(policies):
        raise SettingError(f"a policy is given twice: {' '.join(policies)}")
    chosen = [policy_named(name) for name in policies]
    nodes = prepare.nodes_named(cluster, processors)
    for one in chosen:
        warm(one, nodes is not None)
    workload = prepare.load(trace, filters, scenarios, overrun, seed, processors, nodes)
    prepare.need_jobs(workload)
    schedules = [replayed(workload, one, estimate, seed, cluster=nodes)[0] for one in chosen]
    case = of_schedules([replace(one, policy=name) for one, name in zip(schedules, policies, strict=True)], pair)
    command = ["dovetail", "compare", Path(trace).name, *policies, "--estimate", estimate, "--pair", pair]
    command += ["--processors", str(processors)] if processors else []
    command += ["--cluster", Path(cluster).name] if cluster else []
    command += [word for one in filters or () for word in ("--filter", one)]
    command += [word for one in scenarios or () for word in ("--scenario", one)]
    command += ["--overrun", overrun, "--seed", str(seed)]
    case.report(out, command=shlex.join(command))
    told(out, as_json)
    if browser and not as_json and _has_screen():
        import webbrowser

        prepare.say("opening it")
        webbrowser.open(out.resolve().as_uri())
    prepare.end((entry.policy, entry.unstarted) for entry in case.entries)


def _has_screen() -> bool:
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
