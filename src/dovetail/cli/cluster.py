"""`dovetail cluster`: nodes from a Slurm."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.cli import screen
from dovetail.cli.prepare import Json, print_json, say
from dovetail.errors import DovetailError, SettingError

if TYPE_CHECKING:
    from dovetail.model.cluster import Cluster
    from dovetail.slurm.machine import Machine

app = typer.Typer(no_args_is_help=True, help="The nodes of a cluster, from its Slurm.")


@app.command("import-slurm")
def import_slurm_command(
    source: Annotated[
        Path | None,
        typer.Argument(metavar="[SOURCE]", help="A folder of --dump, or a slurm.conf. Else Slurm is asked."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="OUT.toml", help="The cluster.")] = None,
    dump: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Keep what Slurm says there.")] = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="JOBS", help="The workload that the outages are for: it says when time begins."),
    ] = None,
    print_command: Annotated[
        bool, typer.Option("--print-command", help="Print the calls, for who may run them, and do nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make a cluster of what a Slurm says of its nodes and partitions.

    Beside OUT.toml it writes OUT.slurm.json, all that Slurm said, and with --log OUT.outages.csv: when nodes were down,
    drained or reserved.
    """
    from dovetail.files import beside
    from dovetail.io.clusters import read_cluster, write_cluster
    from dovetail.io.outages import write_outages
    from dovetail.io.read import read_workload
    from dovetail.policies.slurm import as_told
    from dovetail.slurm import scontrol
    from dovetail.slurm.conf import read_conf
    from dovetail.slurm.machine import NOTHING, SCHEDULING, unknown_settings
    from dovetail.slurm.scheduling import kept_beside
    from dovetail.units import printable

    if print_command:
        typer.echo(scontrol.command())
        return
    if out is None or out.suffix != ".toml":
        raise SettingError("nothing is written without --out: give --out cluster.toml")
    notes = list[str]()
    if source is None:
        if dump is None:
            raise SettingError(
                "nothing to read: name a SOURCE, or give --dump FOLDER to ask Slurm and keep its answers"
            )
        notes += scontrol.ask(dump)
        source = dump
    machine = scontrol.read_folder(source) if source.is_dir() else read_conf(source)
    cluster, named = machine.cluster(notes), ""
    if log is not None:
        workload = read_workload(log)
        first = workload.header.get("UnixStartTime", ("",))[0]
        if not re.fullmatch(r"\d{1,12}", first, re.ASCII):
            raise SettingError(
                f"{log} does not say when its first second was (UnixStartTime): take the import of sacct"
            )
        outages = machine.outages(cluster, int(first), workload.names.get("reservation", ()), notes)
        if outages:
            named = f"{out.stem}.outages.csv"
            write_outages(outages, out.with_name(named))
        cluster = replace(cluster, outages=outages)
    elif machine.events or machine.reservations:
        notes.append("when nodes were out is not in it: --log JOBS says when the time of the workload begins")
    write_cluster(cluster, out, out.stem, named)
    read_cluster(out)  # what is too large for a file of clusters is told now, not by the next command
    settings = kept_beside(out)
    with beside(settings) as new:
        new.touch(0o600)
        new.write_text(json.dumps(machine.kept(), indent=1) + "\n", encoding="utf-8")
    policy = f"slurm:conf={settings}"
    try:
        notes += as_told(machine)[1]
    except DovetailError as error:
        policy = ""
        notes.append(f"no replay decides as this Slurm does: {error}")
    strange = unknown_settings(machine)
    facts = _facts(machine, cluster)
    scheduling = {name: machine.config[name] for name in SCHEDULING if machine.config.get(name) not in NOTHING}
    if as_json:
        print_json({"out": str(out), "settings": str(settings), "policy": policy, **facts, "scheduling": scheduling,
                    "unknown": strange, "notes": notes})  # fmt: skip
        return
    screen.facts((name, _in_words(value)) for name, value in facts.items())
    screen.facts(((name, printable(text, 400)) for name, text in scheduling.items()), label=26)
    if strange:
        names = ", ".join(printable(one, 40) for one in strange)
        screen.facts([("not known", f"settings that no Slurm has that this was tried with, kept: {names}")])
    screen.facts(("noted", printable(text, 400)) for text in notes)
    then = f"; replays with --policy {policy} decide by these settings" if policy else ""
    say(f"wrote {out} and {settings}. Next: dovetail workload import-slurm ... --cluster {out}{then}")


def _facts(machine: Machine, cluster: Cluster) -> dict[str, object]:
    from dovetail.model.cluster import PARTITION

    return {
        "slurm": machine.version or "it does not say of which version", "cluster": cluster.in_words,
        "partitions": {name: len(machine.nodes_of(name)) for name in machine.partitions},
        "resources": {
            name: sum(kind.count * kind.capacity[r] for kind in cluster.kinds)
            for r, name in enumerate(cluster.resources)
        },
        "features": sorted({one for kind in cluster.kinds for one in kind.features if not one.startswith(PARTITION)}),
        "reservations": len(machine.reservations), "events": len(machine.events), "qos": len(machine.qos),
        "associations": len(machine.associations), "outages": len(cluster.outages),
    }  # fmt: skip


def _in_words(value: object) -> str:
    from dovetail.units import printable

    if isinstance(value, Mapping):
        return ", ".join(f"{printable(name, 40)} {count:,}" for name, count in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(printable(one, 40) for one in value) or "none"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))
