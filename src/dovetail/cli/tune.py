"""`dovetail tune`: which policy and settings suit a cluster, by its own past."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli import prepare, screen
from dovetail.cli.report import Out, told
from dovetail.cli.study import On, Workers, shown
from dovetail.errors import SettingError

if TYPE_CHECKING:
    from dovetail.model.cluster import Cluster
    from dovetail.model.workload import Workload
    from dovetail.studies.task import Task
    from dovetail.studies.tune import Tuned


def tune_command(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The cluster's own past: SWF, Parquet or CSV.")],
    goal: Annotated[str, typer.Option("--for", metavar="GOAL", help="What is to be good: af, awf, bsld, p2sf.")] = "af",
    longest: Annotated[
        str, typer.Option("--longest-wait", metavar="2x|5d|none", help="At most; 2x: twice that under list-reg.")
    ] = "2x",
    policies: prepare.Policies = None,
    estimate: prepare.Estimate = "limit",
    processors: prepare.Processors = None,
    cluster: prepare.ClusterName = None,
    filters: prepare.Filters = None,
    seed: prepare.Seed = 0,
    store: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where runs are kept, to go on from; default: LOG-GOAL.store here."),
    ] = None,
    on: On = "local",
    workers: Workers = None,
    out: Out = Path("tune.html"),
    wide: screen.Wide = False,
    as_json: prepare.Json = False,
) -> None:
    """Say which policy and settings suit a cluster: tried on the first half of its log, judged on the second."""
    from dataclasses import asdict, replace

    from dovetail.names import unknown
    from dovetail.policies.registry import policy as policy_named
    from dovetail.reports.page import write
    from dovetail.slurm.scheduling import kept_beside
    from dovetail.studies.executors import engine
    from dovetail.studies.spec import placed
    from dovetail.studies.store import Store
    from dovetail.studies.tune import (
        BASE,
        FILE,
        GOALS,
        USUAL,
        candidates,
        longest_wait,
        tune,
        write_study,
    )
    from dovetail.units import duration

    if goal not in GOALS:
        raise SettingError(f"--for: {unknown('goal', goal, GOALS)}")
    most = longest_wait(longest)
    nodes = prepare.nodes_named(cluster, processors)
    workload = prepare.load(str(log), filters, None, "cut", seed, processors, nodes)
    prepare.need_jobs(workload)
    kept = kept_beside(Path(cluster)).resolve() if cluster else None
    own = _own_slurm(kept, workload, nodes) if kept and nodes and kept.is_file() else ()
    base, *others = own or (BASE,)
    asked = [*others, *candidates(goal)] if policies is None else policies
    names = [placed(name, Path.cwd()) for name in dict.fromkeys((base, USUAL, *asked))]
    for one in map(policy_named, names):
        if one.clairvoyant or one.from_record or one.needs_site:
            raise SettingError(f"{one.name} cannot be recommended: it knows the future, or must know prices")
        if nodes is not None and nodes.kinds:
            one.refuse("nodes")
    if "$" in str(log.resolve()):
        raise SettingError(f"{log}: a path with $ cannot stand in a study; rename it")
    where = Store(store or Path(f"{log.name.partition('.')[0]}-{goal}.store"))
    trace: dict[str, Any] = {"path": str(log.resolve()), "name": workload.name}
    trace |= {"filters": filters} if filters else {}
    trace |= {"processors": processors} if processors else {}
    if cluster:
        trace["cluster"] = str(Path(cluster).resolve()) if Path(cluster).is_file() else cluster
    write_study(where.path / FILE, trace, workload, names, placed(estimate, Path.cwd()), seed)
    chosen_engine = engine(on, workers, where.path.resolve())

    def round_(tasks: Sequence[Task]) -> Any:
        return shown({task.name for task in tasks}, where, on)

    found = tune(where, goal, most, chosen_engine, prepare.say, round_)
    how = ["--estimate", estimate, *(["--processors", str(processors)] if processors else [])]
    how += [word for one in filters or () for word in ("--filter", one)] + (["--cluster", cluster] if cluster else [])
    how += ["--seed", str(seed)] if seed else []
    use = ["dovetail", "replay", str(log), "--policy", found.choice, *how]
    tried = [word for one in policies or () for word in ("--policy", one)]
    command = ["dovetail", "tune", log.name, "--for", goal, "--longest-wait", longest, *tried, *how]
    conf = _in_conf(found.choice, kept)
    said = (*found.page.sentences, *conf, f"To replay it: {shlex.join(use)}")
    page = replace(found.page, title=f"What suits {workload.name}", command=shlex.join(command), sentences=said)
    write(page, out)
    if as_json:
        for made in found.tried:
            prepare.print_json({"goal": goal, **asdict(made), "chosen": made is found.tried[0]})
        prepare.print_case(
            found.after, chosen=found.choice, best_in=found.best_in, wait_kept=found.kept, cpu_s=found.cpu_s,
            slurm_conf=[one.partition(": ")[2] for one in conf],
        )  # fmt: skip
    else:
        _show(found, wide)
        for sentence in (*said, f"It took {duration(round(found.cpu_s))} of CPU time."):
            if sentence in conf:
                typer.echo(sentence)  # to be pasted: not folded
            else:
                screen.tell(sentence)
    told(out, as_json)


def _in_conf(choice: str, kept: Path | None) -> list[str]:
    """What stands in slurm.conf then, if it is a Slurm's own rules that were chosen, with other parameters."""
    from dovetail.policies.slurm import OURS
    from dovetail.slurm.scheduling import parameters_line, read_kept
    from dovetail.units import printable

    own, _, rest = choice.partition(",")
    changes = dict(one.split("=", 1) for one in filter(None, rest.split(",")))
    if kept is None or own != f"slurm:conf={kept}" or not changes or changes.keys() & set(OURS):
        return []
    return [f"In slurm.conf: {printable(parameters_line(read_kept(kept), changes), 2_000)}"]


def _own_slurm(kept: Path, workload: Workload, nodes: Cluster) -> tuple[str, ...]:
    """How the site's own Slurm decides, today and with other settings; none, where it cannot be replayed."""
    from dovetail.policies.registry import policy as policy_named
    from dovetail.policies.slurm import as_told
    from dovetail.slurm.scheduling import read_kept
    from dovetail.studies.tune import slurm_candidates

    try:
        today, notes = as_told(read_kept(kept))
        today.at(None, workload, nodes)
        names = slurm_candidates(kept, today, workload)
        policy_named(names[0])
    except SettingError as error:
        prepare.say(f"not compared with the site's own Slurm: {error}")
        return ()
    for note in notes:
        prepare.say(f"not followed: {note}")
    return names


def _show(found: Tuned, wide: bool) -> None:
    from rich.markup import escape

    from dovetail.metrics.catalog import metric_of
    from dovetail.names import spoken
    from dovetail.reports.columns import percent
    from dovetail.studies.tune import GOALS, USUAL
    from dovetail.units import printable

    metric = metric_of(GOALS[found.goal])
    full = [one for one in found.tried if one.stretches == found.tried[0].stretches]
    rows = found.tried if wide else full
    words = [("policy", [escape(printable(spoken(one.policy), 60)) for one in rows])]
    columns = (
        screen.Column(metric.head, [percent(one.change) for one in rows]),
        screen.Column("longest wait", [f"{one.longest:.2f} x{'' if one.allowed else ' *'}" for one in rows]),
        screen.Column("P2SF", [percent(one.unfair) for one in rows], 1),
        screen.Column("CPU (s)", [f"{one.cpu_s:.1f}" for one in rows], 2),
        screen.Column("tried on", [f"{one.stretches} of {full[0].stretches}" for one in rows], 3),
    )
    base = escape(spoken(found.base))
    notes = [f"On the past. Metrics against {base}; the longest wait as a multiple of that of {USUAL}; *: too long."]
    if gone := len(found.tried) - len(rows):
        notes.append(f"Left out on the way, as they did worse: {gone}; --wide shows all.")
    screen.print_table(words, columns, *notes, wide=wide)
