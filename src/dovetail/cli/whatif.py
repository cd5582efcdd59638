"""`dovetail whatif`: what other settings, nodes or limits would have done to a site's own history."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli import prepare, screen
from dovetail.errors import SettingError

if TYPE_CHECKING:
    from dovetail.studies.whatif import Answer, Trust

MOST_PARTS = 8
"""That a sentence names."""


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
    phases: Annotated[int, typer.Option(min=2, max=1000, help="Of the backfill's clock, each a replay.")] = 20,
    filters: prepare.Filters = None,
    overrun: prepare.Overrun = "cut",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default: one for each core.")] = None,
    on: Annotated[str, typer.Option(help="Where: local, dask://HOST:PORT, slurm.")] = "local",
    wide: screen.Wide = False,
    as_json: prepare.Json = False,
) -> None:
    """Say what would have become of waits, had the site been set up otherwise.

    First comes whether today's settings, replayed, are what happened. A change is told only where it is larger than
    what the chance of when cycles begin makes by itself.
    """
    from dovetail.io.clusters import cluster_named
    from dovetail.policies.registry import policy as policy_named
    from dovetail.policies.slurm import as_told
    from dovetail.slurm.scheduling import read_kept
    from dovetail.studies import whatif
    from dovetail.studies.executors import engine
    from dovetail.studies.questions import Site, swept
    from dovetail.units import printable

    questions = [*(questions or ()), *(one for text in sweeps or () for one in swept(text))]
    if not questions and not policies:
        raise SettingError("nothing is asked: give --set bf_window=2880, --set nodes+=10%, --policy easy, ...")
    told = cluster.with_name(f"{cluster.stem}.slurm.json")
    if not told.is_file():
        raise SettingError(f"{told} is not there: `dovetail cluster import-slurm ... --out {cluster}` writes both")
    nodes = cluster_named(str(cluster))
    workload = prepare.load(history, filters, None, overrun, 0, None, nodes)
    prepare.need_jobs(workload)
    policy, notes = as_told(read_kept(told))
    site = Site(workload, nodes, policy)
    asked = whatif.alternatives(site, questions)
    asked += [whatif.Alternative(name, site, policy_named(name)) for name in policies or ()]
    for one in asked:
        try:
            prepare.make_ready(one.site.workload, [one.policy or one.site.policy], one.site.cluster)
        except SettingError as error:
            raise SettingError(f"{printable(one.name, 60)}: {error}") from error
    with prepare.counted("what if", len(asked) * phases, "replays", not as_json) as tell:
        found = whatif.waits(asked, engine(on, workers, Path()), phases, tell)
    today, *others = found
    trust = whatif.trust(site, today)
    answers = [whatif.answer(site, today, one) for one in others]
    if as_json:
        prepare.print_json({
            "history": workload.name, "jobs": len(workload), "phases": phases,
            "trust": None if trust is None else asdict(trust) | {"far": trust.far},
            "not_followed": notes, "remarks": site.short_sighted,
            "today": {"mean_wait_s": float(today.means().mean()), "busy": float(today.busy.mean())},
            "answers": [_told(one) for one in answers],
        })  # fmt: skip
        return
    _say_trust(trust, notes, site.short_sighted, wide)
    _table([whatif.Answer(today, whatif.change(today, today), today.left, {}), *answers], wide)
    for made in answers:
        _say(made)


def _told(one: Answer) -> dict[str, Any]:
    by_group = {name: asdict(made) for name, made in one.groups.items()}
    its, made = one.waits, one.all
    return {"asked": its.name, **asdict(made), "told": made.told, "left_today": one.left_today, "left": its.left,
            "busy": float(its.busy.mean()), "groups": by_group,
            "notes": its.notes}  # fmt: skip


def _say_trust(trust: Trust | None, notes: list[str], short: tuple[str, ...], wide: bool) -> None:
    from rich.markup import escape

    from dovetail.units import duration, printable

    if trust is None:
        screen.tell("Can it be trusted? The history does not say when its jobs started: nothing to compare with.")
    else:
        screen.tell(
            f"Can it be trusted? {trust.jobs:,} jobs waited {duration(round(trust.recorded_s))} on average. Today's"
            f" settings, replayed, say {duration(round(trust.replayed_s))} ({duration(round(trust.low_s))} to"
            f" {duration(round(trust.high_s))} by chance alone); {100 * trust.within_hour:.0f} % of jobs start within"
            f" an hour of when they did. In use: {100 * trust.recorded_busy:.1f} % of the cores, replayed"
            f" {100 * trust.replayed_busy:.1f} %."
        )
        if trust.far:
            screen.tell(
                "WARNING: that is far from what happened. Something decides on this site that the replay does not know;"
                " its answers are about another site than yours."
            )
        parts, many, was, now = zip(*trust.groups, strict=True) if trust.groups else ((),) * 4
        screen.print_table(
            [("mean wait of", [escape(printable(part, 40)) for part in parts])],
            [
                screen.Column("jobs", [f"{one:,}" for one in many]),
                screen.Column("recorded\n(s)", [f"{one:,.0f}" for one in was]),
                screen.Column("replayed\n(s)", [f"{one:,.0f}" for one in now]),
            ],
            wide=wide,
        )
    if notes:
        screen.facts(("not followed", printable(text, 200)) for text in notes)
    for text in short:
        screen.tell(text)
    screen.tell("Users who would have submitted otherwise are not modelled.")


def _table(rows: list[Answer], wide: bool) -> None:
    """Today's settings first."""
    from rich.markup import escape

    from dovetail.units import printable

    made = [one.all for one in rows]
    names = [escape(printable(one.waits.name, 60)) for one in rows]
    screen.print_table(
        [("what if", names)],
        [
            screen.Column("mean wait\n(s)", [f"{one.then_s:,.0f}" for one in made]),
            screen.Column("change\n(s)", ["", *(f"{one.then_s - one.today_s:+,.0f}" for one in made[1:])]),
            screen.Column("by chance\n(s)", [f"{one.low_s:+,.0f} to {one.high_s:+,.0f}" for one in made], 1),
            screen.Column("cores in\nuse (%)", [f"{100 * one.waits.busy.mean():.1f}" for one in rows], 2),
        ],
        "By chance: 95 % of all pairs of a replay of today and one of the change.",
        wide=wide,
    )


def _say(one: Answer) -> None:
    from dovetail.units import duration, printable

    made, name = one.all, printable(one.waits.name, 60)
    if not made.told:
        screen.tell(f"{name}: no difference beyond chance.")
    else:
        word = "shorter" if made.then_s < made.today_s else "longer"
        screen.tell(f"{name}: waits would be {word} by {duration(round(abs(made.then_s - made.today_s)))} on average.")
    if one.left_today or one.waits.left:
        left = f"{one.waits.left:,.1f}; today {one.left_today:,.1f}"
        screen.tell(f"Jobs that leave before they start: {left}.", "  ", "  ")
    for word, sign in (("gains", -1), ("loses", 1)):
        parts = [(part, some.then_s - some.today_s) for part, some in one.groups.items() if some.told]
        parts = sorted(((part, by) for part, by in parts if by * sign > 0), key=lambda pair: -abs(pair[1]))
        if parts:
            shown = "; ".join(f"{printable(part, 40)} {duration(round(abs(by)))}" for part, by in parts[:MOST_PARTS])
            more = f"; {len(parts) - MOST_PARTS} more (--json)" if len(parts) > MOST_PARTS else ""
            screen.tell(f"Who {word}, by how much on average: {shown}{more}.", "  ", "  ")
    for note in one.waits.notes:
        screen.tell(note, "  ", "  ")
