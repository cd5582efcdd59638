"""The front door in Python: read, replay, compare, plot, study. Names are accepted wherever a policy, a predictor, a
cluster or a site is. Each function here is a few lines over the rooms that do the work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from dovetail.errors import DovetailError, SettingError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from matplotlib.figure import Figure

    from dovetail.energy.site import Site
    from dovetail.engine.contract import Finding
    from dovetail.engine.estimates import Estimate
    from dovetail.model.cluster import Cluster
    from dovetail.model.schedule import Schedule
    from dovetail.model.workload import Workload
    from dovetail.policies.base import Policy
    from dovetail.predict.base import Predictor
    from dovetail.referee import Violation
    from dovetail.reports.page_data import Case
    from dovetail.studies.store import Store

    AnyPolicy: TypeAlias = str | Policy | Any
    """A name, a policy, or any object or class with decide(state)."""
    AnyCluster: TypeAlias = Cluster | str | Path | int | None
    """A cluster, its name, the path of a file, or a number of processors; None: as large as the log says."""
    AnySite: TypeAlias = Site | str | Path | None


def read(
    path: str | Path,
    filters: str | Iterable[str] = "standard",
    scenarios: str | Iterable[str] = (),
    *,
    processors: int | None = None,
    cluster: AnyCluster = None,
    seed: int = 0,
) -> Workload:
    """Read a log: SWF (plain, gz, xz, zst), Parquet, or the CSV of Eurora or Alibaba.

    `filters` clean it, in turn (docs/workloads.md); `()` leaves it raw. `scenarios` change it then (docs/synthetic.md),
    with `seed` for those that draw. `processors` or `cluster`: the machine that it is to run on, where that is not the
    log's own; jobs that do not fit there are set aside. `workload.set_aside.counts()` says what was, and why.

        log = dt.read("KTH-SP2.swf.gz", scenarios="span=0d..30d")
    """
    from dovetail.io.read import read_workload

    return prepare(read_workload(path), filters, scenarios, processors=processors, cluster=cluster, seed=seed)


def fetch(name: str) -> Path:
    """The path of a public log of the catalog: downloaded once from its host, checked, and kept:
    `dt.read(dt.fetch("KTH-SP2"))`.
    """
    from dovetail.io import archive

    return archive.fetch(name)


def generate(
    jobs: int, processors: int, *, load: float | None = None, seed: int = 0, kind: str = "both", limits: bool = True
) -> Workload:
    """A workload by the model of Lublin and Feitelson, with user limits by the model of Tsafrir et al.

    `load`: the offered load that it shall have; None: the model's own. `kind`: `both`, `batch`, `interactive` or
    `untyped` jobs. Without `limits`, each limit is the run time.

        log = dt.generate(10_000, 128, load=0.8, seed=1)
    """
    from dovetail.workloads.lublin import lublin

    return lublin(jobs, processors, seed=seed, load=load, kind=kind, estimates=limits)


def prepare(
    workload: Workload,
    filters: str | Iterable[str] = "standard",
    scenarios: str | Iterable[str] = (),
    *,
    processors: int | None = None,
    cluster: AnyCluster = None,
    seed: int = 0,
) -> Workload:
    """Clean a workload and put it through scenarios, as `read` does with a log. The workload itself stays as it is.
    `dt.prepare(log, scenarios=["span=0d..30d", "scale-load=1.2"])` gives the first month with a fifth more load.
    """
    from dataclasses import replace

    from dovetail.workloads.filters import clean, fits_nodes
    from dovetail.workloads.scenarios import apply

    if cluster is not None and processors is not None:
        raise SettingError(f"processors={processors} and a cluster: the cluster says how many processors there are")
    machine = _cluster(processors if cluster is None else cluster)
    if machine is not None:
        workload = replace(workload, processors=machine.processors)
    workload = clean(workload, _texts(filters))
    for scenario in _texts(scenarios):
        workload = apply(workload, scenario, seed=seed)
    return workload if machine is None else fits_nodes(workload, machine)


def write(what: Workload | Schedule, path: str | Path, note: str = "") -> None:
    """Write a workload or a schedule: Parquet or CSV if the file is called so, a schedule as a Perfetto trace if that
    is .perfetto.json or .perfetto.json.gz, else SWF, packed as its name says. The SWF of a schedule has the simulated
    waits in place of the recorded ones.

        dt.write(log, "log.parquet")
        dt.write(dt.replay(log, "easy"), "easy.swf.gz")
        dt.write(dt.replay(log, "easy"), "easy.perfetto.json.gz")
    """
    from dovetail.io import write as files

    files.write(what, path, note)


def policy(given: AnyPolicy) -> Policy:
    """The policy of that name, with settings behind a colon; a policy, or any object or class with decide(state), is
    taken as it is. `dovetail policies` lists the names, docs/policies.md says what they do.

        dt.policy("list:order=saf,reserve=2")
        dt.policy("examples/shortest_first.py:ShortestFirst")
    """
    from dovetail.policies import registry

    return registry.policy(given)


def predictor(given: str | Predictor) -> Predictor:
    """The predictor of run times of that name, with settings behind a colon; a predictor is taken as it is:
    `dt.predictor("recent:jobs=3")`.
    """
    from dovetail.predict import registry

    return registry.predictor(given)


def replay(
    workload: Workload,
    policy: AnyPolicy,
    *,
    cluster: AnyCluster = None,
    estimate: Estimate = "limit",
    site: AnySite = None,
    seed: int = 0,
    feedback: bool = False,
    every_s: int = 0,
    keep_promises: bool = False,
    event_by_event: bool = False,
    charge_decisions: float = 0,
    progress: Callable[[int], None] | None = None,
    keep: str | Path | None = None,
) -> Schedule:
    """Let a workload happen again under a policy. The same arguments give the same bytes.

    `cluster`: nodes by name or file, or a number of processors; None: as large as the log says. `estimate`: what the
    policy takes run times to be: `limit`, `runtime`, a predictor or its name, or one number per job. `site`: powers,
    weather and prices, for policies that plan with them. docs/replay.md has the other arguments.

    The first replay on a machine compiles the kernels, and says so on standard error.

        easy = dt.replay(log, "easy", estimate="recent")
    """
    from dovetail.engine import replay as engine
    from dovetail.policies import registry

    chosen, machine = registry.policy(policy), _machine(workload, cluster)
    return engine.replay(
        workload, chosen, cluster=machine, estimate=estimate, site=_site(site), seed=seed, feedback=feedback,
        every_s=every_s, keep_promises=keep_promises, event_by_event=event_by_event,
        charge_decisions=charge_decisions, progress=progress, keep=keep,
    )  # fmt: skip


def compare(
    workload: Workload | Sequence[Workload],
    policies: Sequence[AnyPolicy],
    *,
    pair: str = "",
    cluster: AnyCluster = None,
    estimate: Estimate = "limit",
    site: AnySite = None,
    seed: int = 0,
    **others: Any,
) -> Case:
    """Replay a workload under several policies; the first is the baseline. In a notebook the result shows as a table.

    `pair` says what makes a pair of the statistics: `weeks` (the default) or `users` of the workload. Of several
    workloads, each is a pair. `others` goes to `replay`. The result has `frame()`, `versus(policy)`, `plot(kind)`,
    `report(path)` and `schedules`.

        both = dt.compare(log, ["easy", "plan-awf"])
        both.versus("plan-awf")["awf_s"]
    """
    from dataclasses import replace

    from dovetail.model.workload import Workload
    from dovetail.studies.cases import of_runs, of_schedules

    several = [workload] if isinstance(workload, Workload) else list(workload)
    if isinstance(policies, str) or not policies or not several:
        raise SettingError("give a list of policies, the baseline first, and at least one workload")
    chosen = [(policy(one), one) for one in policies]
    names = [given if isinstance(given, str) else one.name for one, given in chosen]
    if twice := [name for name in names if names.count(name) > 1]:
        raise SettingError(f"a policy is given twice: {twice[0]}; two objects need two names")
    where = _site(site)
    runs = {
        name: [
            replace(replay(each, one, cluster=cluster, estimate=estimate, site=where, seed=seed, **others), policy=name)
            for each in several
        ]
        for name, (one, _) in zip(names, chosen, strict=True)
    }
    if len(several) == 1:
        return of_schedules([schedules[0] for schedules in runs.values()], pair or "weeks", where)
    if pair not in ("", "runs"):
        raise SettingError(f"pair={pair!r}: of several workloads, each is a pair; leave it out")
    return of_runs(runs, where)


def summarize(
    schedule: Schedule,
    site: AnySite = None,
    *,
    counting: str = "all",
    bound_s: float = 10,
    short_s: int = 3600,
    narrow: int = 8,
) -> dict[str, float]:
    """All metrics of a schedule by name (docs/metrics.md); with a `site`, energy, bill and carbon too (docs/energy.md).

    `counting`: over `all` jobs, or only those that `ended` by the last submission. `bound_s`: run times below it count
    as this in the bounded slowdown. `short_s` and `narrow`: the longest run time and the largest size of the classes
    of short and of narrow jobs.

        dt.summarize(dt.replay(log, "easy"))["mean_wait_s"]
    """
    from dovetail import metrics

    return metrics.summarize(schedule, _site(site), counting=counting, bound_s=bound_s, short_s=short_s, narrow=narrow)


def plot(what: Schedule | Sequence[Schedule] | Case, kind: str = "waits") -> Figure:
    """A picture of schedules, or of what `compare` gave, as a Matplotlib figure that a notebook shows.

    Kinds: `waits`, `queue`, `utilization`, `wait-area`, `wait-map`; and against the first schedule `changes`, `matrix`,
    `front`. docs/reports.md says how to read them.

        dt.plot([dt.replay(log, "easy"), dt.replay(log, "list-saf")], "queue").savefig("queue.png")
    """
    from dovetail.model.schedule import Schedule
    from dovetail.reports import plots
    from dovetail.reports.page_data import Case
    from dovetail.studies.cases import of_schedules

    if isinstance(what, Case):
        return what.plot(kind)
    schedules = [what] if isinstance(what, Schedule) else list(what)
    if plots.known(kind) in plots.CASES:
        return of_schedules(schedules).plot(kind)
    return plots.of_schedules(schedules, kind)


@overload
def check(what: Schedule, *, promises: bool = ...) -> list[Violation]: ...
@overload
def check(what: AnyPolicy | Predictor, *, cases: int = ..., seed: int = ...) -> list[Finding]: ...


def check(what: Any, *, cases: int = 100, seed: int = 1, promises: bool = False) -> Any:
    """What is wrong with it, in words; an empty list: nothing.

    A policy or a predictor is tried on `cases` small random workloads against every clause of its contract
    (docs/write-a-policy.md). A schedule is looked at by the referee, which shares no code with the replay; with
    `promises`, starts and deadlines that were promised must have been kept too.

        assert dt.check(ShortestFirst) == []
        assert dt.check(dt.replay(log, "conservative"), promises=True) == []
    """
    from dovetail.model.schedule import Schedule
    from dovetail.predict.base import Predictor

    if isinstance(what, Schedule):
        from dovetail.referee import check_schedule

        return check_schedule(what, promises=promises)
    from dovetail.engine.contract import check_policy, check_predictor

    if isinstance(what, type) and issubclass(what, Predictor):
        what = what()
    if isinstance(what, Predictor):
        found = check_predictor(what, cases=cases, seed=seed)
    else:
        found = check_policy(policy(what), cases=cases, seed=seed)
    return [finding for finding in found if finding.broken]


def study(
    path: str | Path, store: str | Path | None = None, *, on: str | Executor = "local", workers: int | None = None
) -> Store:
    """Run what is missing of a study, a grid of replays in a TOML file (docs/studies.md), and give its store.

    `store`: where runs are kept; None: beside the study. `on`: `local`, `dask://HOST:PORT`, `slurm`, or any executor of
    `concurrent.futures`; `workers` at once. In a script, `local` needs `if __name__ == "__main__":` around the call.

        runs = dt.study("examples/studies/small.toml")
        runs.cases()[0].versus("easy-sjbf")
    """
    from dovetail.studies.runner import run_study

    there, outcome = run_study(Path(path), None if store is None else Path(store), on, workers, _say)
    if outcome.failed:
        name, why = next(iter(outcome.failed.items()))
        raise DovetailError(f"{len(outcome.failed):,} cells of {path} failed; the first, {name}: {why}")
    return there


def report(store: Store | str | Path, path: str | Path, pair: str = "") -> None:
    """Write one self-contained page about all runs of a study. `pair`: what makes a pair of the statistics."""
    from dovetail.studies.cases import write_page
    from dovetail.studies.store import Store

    for note in write_page(store if isinstance(store, Store) else Store(Path(store)), path, pair).notes:
        _say(note)


def _texts(given: str | Iterable[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _cluster(given: AnyCluster) -> Cluster | None:
    from dovetail.io.clusters import cluster_named
    from dovetail.model.cluster import Cluster

    if isinstance(given, str | Path):
        return cluster_named(str(given))
    return Cluster(int(given)) if isinstance(given, int | Integral) else given


def _machine(workload: Workload, cluster: AnyCluster) -> Cluster:
    if cluster is None and workload.processors < 1:
        raise SettingError(f"{workload.name} does not say how large its machine is: give cluster=, a number or nodes")
    made = _cluster(workload.processors if cluster is None else cluster)
    assert made is not None  # noqa: S101 - one was given
    return made


def _site(given: AnySite) -> Site | None:
    from dovetail.io.sites import read_site

    return read_site(given) if isinstance(given, str | Path) else given


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
