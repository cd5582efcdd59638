"""`dovetail whatif`: what other settings, nodes or limits would have done to a site's own history."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli import prepare, screen
from dovetail.cli.report import told
from dovetail.errors import SettingError

if TYPE_CHECKING:
    from dovetail.metrics.whatif import Answer, WhatIf


def whatif_command(
    history: Annotated[str, typer.Argument(metavar="HISTORY", help="Jobs: the Parquet of `workload import-slurm`.")],
    cluster: Annotated[
        Path,
        typer.Option(metavar="CLUSTER.toml", help="Nodes, with CLUSTER.slurm.json beside: `cluster import-slurm`."),
    ],
    questions: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="CHANGE,...", help="bf_window=2880, nodes+=10%, load*=1.2, ...; repeat to ask more."
        ),
    ] = None,
    sweeps: Annotated[
        list[str] | None, typer.Option("--sweep", metavar="KEY=LOW..HIGH", help="A curve: bf_window=720..10080, or /7.")
    ] = None,
    policies: Annotated[
        list[str] | None, typer.Option("--policy", "-p", metavar="POLICY", help="Another policy in place of Slurm's.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--questions", metavar="FILE.toml", help="Questions that come back, with names.")
    ] = None,
    phases: Annotated[int, typer.Option(min=2, max=1000, help="Of the backfill's clock, each a replay.")] = 20,
    filters: prepare.Filters = None,
    overrun: prepare.Overrun = "cut",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default: one for each core.")] = None,
    on: Annotated[str, typer.Option(help="Where: local, dask://HOST:PORT, slurm.")] = "local",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write one page with figures, for a meeting.")
    ] = None,
    wide: screen.Wide = False,
    as_json: prepare.Json = False,
) -> None:
    """Say what would have become of waits, had the site been set up otherwise.

    First comes whether today's settings, replayed, are what happened. A change is told only where it is larger than
    what the chance of when cycles begin makes by itself.
    """
    from dovetail.io.clusters import cluster_named
    from dovetail.names import spoken
    from dovetail.policies.slurm import as_told
    from dovetail.slurm.scheduling import kept_beside, read_kept
    from dovetail.studies import whatif
    from dovetail.studies.executors import engine
    from dovetail.studies.questions import Site, swept
    from dovetail.studies.spec import Questions, read_questions
    from dovetail.units import printable

    kept = read_questions(file) if file else Questions()
    asking = [*(questions or ()), *(one for text in (*(sweeps or ()), *kept.sweeps) for one in swept(text))]
    others = [*(policies or ()), *kept.policies]
    if not asking and not others and not kept.questions:
        raise SettingError("nothing is asked: give --set bf_window=2880, --set nodes+=10%, --policy easy, ...")
    beside = kept_beside(cluster)
    if not beside.is_file():
        raise SettingError(f"{beside} is not there: `dovetail cluster import-slurm ... --out {cluster}` writes both")
    nodes = cluster_named(str(cluster))
    workload = prepare.load(history, filters, None, overrun, 0, None, nodes)
    prepare.need_jobs(workload)
    policy, notes = as_told(read_kept(beside))
    site = Site(workload, nodes, policy)
    asked = whatif.alternatives(site, asking, kept.questions)
    asked += [whatif.Alternative(spoken(name), site, name) for name in others]
    for one in asked:
        try:
            prepare.make_ready(one.site.workload, [one.decides], one.site.cluster)
        except SettingError as error:
            raise SettingError(f"{printable(one.name, 60)}: {error}") from error
    with prepare.counted("what if", len(asked) * phases, "replays", not as_json) as tell:
        found = whatif.waits(asked, engine(on, workers, Path()), phases, tell)
    made = whatif.answered(site, found, notes)
    if out is not None:
        from dovetail.reports.whatif_page import write

        options = {"--set": questions, "--sweep": sweeps, "--policy": policies, "--filter": filters}
        words = ["dovetail", "whatif", Path(history).name, "--cluster", cluster.name, "--phases", str(phases)]
        words += [word for name, texts in options.items() for text in texts or () for word in (name, text)]
        words += [*(["--questions", file.name] if file else []), *(["--overrun", overrun] if overrun != "cut" else [])]
        write(made, out, shlex.join(words))
        told(out, as_json)
    if as_json:
        prepare.print_json({
            "history": workload.name, "jobs": len(workload), "phases": phases,
            "trust": None if made.trust is None else asdict(made.trust) | {"far": made.trust.far},
            "not_followed": notes, "remarks": made.remarks,
            "today": {
                "mean_wait_s": float(made.today.means(made.started).mean()), "busy": float(made.today.busy.mean())
            },
            "answers": [_told(one) for one in made.answers],
        })  # fmt: skip
        return
    _say(made, wide)


def _told(one: Answer) -> dict[str, Any]:
    import numpy as np

    sides = {"": one.waits, "_today": one.today}
    means = {
        f"{name}{side}": float(np.mean(getattr(its, name)))
        for side, its in sides.items()
        for name in ("left", "busy", "unseen")
    }
    return {
        "asked": one.waits.name, **asdict(one.all), "told": one.all.told, **means,
        "groups": {name: asdict(made) for name, made in one.groups.items()},
        "weeks": one.weeks and asdict(one.weeks), "notes": one.waits.notes,
    }  # fmt: skip


def _say(made: WhatIf, wide: bool) -> None:
    """All of it for people."""
    from dovetail.reports.whatif_text import CHANCE, UNSAID, answers_sheet, headline, more, trust_sheet, trusted
    from dovetail.units import printable

    for sentence in trusted(made.trust):
        screen.tell(sentence)
    if made.trust is not None:
        screen.print_sheet(trust_sheet(made.trust), wide)
    screen.facts(("not followed", printable(text, 200)) for text in made.not_followed)
    for sentence in (*made.remarks, UNSAID):
        screen.tell(sentence)
    screen.print_sheet(answers_sheet(made), wide)
    screen.tell(CHANCE)
    for one in made.answers:
        screen.tell(headline(one))
        for sentence in more(one):
            screen.tell(sentence, "  ", "  ")
