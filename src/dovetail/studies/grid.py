"""From a study to its cells: every combination, less what the rules leave out, each with its workload prepared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from os.path import expandvars
from pathlib import Path

from dovetail.errors import DovetailError, InputError, SettingError
from dovetail.io.clusters import cluster_named
from dovetail.io.read import read_workload
from dovetail.io.sites import read_site
from dovetail.model.cluster import Cluster
from dovetail.model.workload import Workload
from dovetail.policies.registry import policy as policy_named
from dovetail.studies.identity import hash_of_files, ortools_version, worker_code
from dovetail.studies.spec import MOST_ITEMS, Match, Study, Trace, line_of, placed
from dovetail.studies.store import nodes_text
from dovetail.studies.task import Cell, Task
from dovetail.units import parse_duration
from dovetail.workloads.filters import clean, fits_nodes
from dovetail.workloads.lublin import lublin
from dovetail.workloads.scenarios import RANDOM, apply, span, stretches

MOST_CELLS = 1_000_000
"""Cells of a study: more would not end in a year."""


class _ScenarioError(SettingError):
    """A scenario of the study, and what is wrong with it."""

    def __init__(self, step: str, rule: str) -> None:
        self.step = step
        super().__init__(rule)


def tasks_of(study: Study, path: Path, keep: Callable[[Workload], object]) -> list[Task]:
    """All tasks of a study that was read from `path`, in the order of its lists.

    Each workload is given to `keep` before the first task that names it is made.
    """
    folder, code = path.resolve().parent, worker_code()
    texts = {name: placed(name, folder) for name in (*study.policies, *study.estimates)}
    named = {name: (text, hash_of_files(text)) for name, text in texts.items()}
    solvers = {name: _solver(text, name in study.policies) for name, (text, _) in named.items()}
    common = (study.counting, study.feedback, study.every_s, study.keep)
    tasks: list[Task] = []
    used: set[int] = set()
    seen: set[str] = set()
    for position, trace in enumerate(study.traces):
        given = trace.cluster
        try:
            cluster = cluster_named(_place(trace.cluster), folder) if trace.cluster else None
            nodes, given = "" if cluster is None else nodes_text(cluster), trace.site
            where = str(folder / Path(_place(trace.site)).expanduser()) if trace.site else ""
            site, given = (where, read_site(Path(where)).digest() if where else ""), trace.path
            for scenario, seeds, label, workload in _workloads(study, trace, cluster, folder):
                if len(tasks) + len(study.estimates) * len(study.policies) * len(seeds) > MOST_CELLS:
                    raise SettingError(f"the study has more than {MOST_CELLS:,} cells")
                if workload.digest() not in seen:
                    seen.add(workload.digest())
                    keep(workload)
                for estimate in study.estimates:
                    for policy in study.policies:
                        for seed in seeds:
                            cell = Cell(trace.label, scenario, label, policy, estimate, seed)
                            if _wanted(cell, study, used):
                                facts = (code, workload.digest(), workload.processors, len(workload))
                                whose = (*named[policy], *named[estimate])
                                task = Task(cell, *facts, *whose, *common, study.pass_times, nodes, *site)
                                tasks.append(replace(task, ortools=solvers[policy] or solvers[estimate]))
        except DovetailError as error:
            text = path.read_text(encoding="utf-8")
            line = line_of(text, ("traces", position), given)
            if isinstance(error, _ScenarioError):
                line = line_of(text, ("scenarios",), error.step)
            raise InputError(path, line, f"trace {trace.label!r}: {error}") from error
    _check_rules(study, path, used, tasks)
    return tasks


def _solver(text: str, decides: bool) -> str:
    """The version of OR-Tools where it decides. A user's file may call whatever it likes, so it may decide there."""
    return ortools_version() if ".py:" in text or (decides and policy_named(text).by_solver) else ""


def _place(path: str) -> str:
    """A path with the variables of the environment in it replaced."""
    where = expandvars(path)
    if "$" in where:
        raise SettingError(f"{where}: the environment has no such variable; set it to the folder that is meant")
    return where


def _workloads(
    study: Study, trace: Trace, cluster: Cluster | None, folder: Path
) -> Iterator[tuple[str, list[int], str, Workload]]:
    """Scenario, the seeds that share it, span and workload of every cell of a trace."""
    source = None if trace.generate else read_workload(folder / Path(_place(trace.path)).expanduser())
    for steps in study.scenarios:
        every = [*trace.scenarios, *steps]
        draws = source is None or any(step.partition("=")[0].strip() in RANDOM for step in every)
        for seeds in [[seed] for seed in study.seeds] if draws else [study.seeds]:
            workload = _prepared(source, trace, seeds[0], cluster)
            for step in steps:
                try:
                    workload = apply(workload, step, seed=seeds[0])
                except SettingError as error:
                    raise _ScenarioError(step, str(error)) from error
            if cluster is not None:
                workload = fits_nodes(workload, cluster)
            if not len(workload):
                raise SettingError("no jobs are left to replay")
            for label, part in _spans(study, workload):
                yield " ".join(steps), seeds, label, part


def _prepared(source: Workload | None, trace: Trace, seed: int, cluster: Cluster | None = None) -> Workload:
    """A trace as it is in every cell: cleaned, and with its own scenarios done."""
    if source is None:
        made = trace.generate
        assert made is not None  # noqa: S101 - a trace has one or the other (spec)
        source = lublin(made.jobs, made.processors, seed=seed, load=made.load, kind=made.kind)
    processors = trace.processors if cluster is None else cluster.processors
    if processors is not None:
        source = replace(source, processors=processors)
    workload = clean(replace(source, name=trace.label), trace.filters)
    for scenario in trace.scenarios:
        workload = apply(workload, scenario, seed=seed)
    if workload.processors < 1:
        raise SettingError("it does not say how large its machine is: give `processors` or a `cluster`")
    return workload


def _spans(study: Study, workload: Workload) -> Iterator[tuple[str, Workload]]:
    """The spans of a workload. Of `weekly` and `each ...`, only whole ones that have jobs."""
    last = int(workload.submit[-1])
    for text in study.spans:
        if text == "all":
            yield text, workload
            continue
        if ".." in text:
            part = apply(workload, f"span={text}")
            if not len(part):
                raise SettingError(f"no job is submitted in the span {text}")
            yield text, part
            continue
        length_s = parse_duration("1w" if text == "weekly" else text.removeprefix("each "))
        if (last - int(workload.submit[0])) // length_s > MOST_ITEMS:
            raise SettingError(f"{text!r} makes more than {MOST_ITEMS:,} spans of it")
        whole = [stretch for stretch in stretches(workload, length_s) if stretch[1] <= last + 1]
        if not whole:
            raise SettingError(f"it is shorter than one span ({text})")
        word = "week" if text == "weekly" else text.removeprefix("each ")
        for number, (begin, end) in enumerate(whole, 1):
            part = span(workload, begin, end)
            if len(part):
                yield f"{word} {number:0{len(str(len(whole)))}d}", part


def _wanted(cell: Cell, study: Study, used: set[int]) -> bool:
    """Whether the rules leave a cell in; notes which rules were about any cell."""
    rules = [*study.include, *study.exclude]
    about = [_matches(rule, cell) for rule in rules]
    used.update(position for position, hit in enumerate(about) if hit)
    many = len(study.include)
    return (not many or any(about[:many])) and not any(about[many:])


def _matches(rule: Match, cell: Cell) -> bool:
    seeds = [rule.seed] if isinstance(rule.seed, int) else rule.seed
    return (seeds is None or cell.seed in seeds) and all(
        any(fnmatchcase(getattr(cell, key), pattern) for pattern in getattr(rule, key))
        for key in ("trace", "scenario", "span", "policy", "estimate")
    )


def _check_rules(study: Study, path: Path, used: set[int], tasks: list[Task]) -> None:
    text = path.read_text(encoding="utf-8")
    for position in range(len(study.include) + len(study.exclude)):
        if position not in used:
            kind, number = ("include", position)
            if position >= len(study.include):
                kind, number = ("exclude", position - len(study.include))
            line = line_of(text, (kind, number))
            raise InputError(path, line, f"this {kind} rule is about no cell: check its patterns (* and ?)")
    if not tasks:
        raise InputError(path, 0, "the rules leave no cell")
