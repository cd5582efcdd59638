"""What if: changes of a site in the words of its Slurm, made to what is known of it.

A question is a list of changes, each `KEY=VALUE`, `KEY+=VALUE`, `KEY-=VALUE` or `KEY*=VALUE`. What a replay cannot
answer is refused with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np

from dovetail.errors import SettingError
from dovetail.io.local_times import instant, zone_of
from dovetail.io.swf import header_count
from dovetail.model.cluster import PARTITION, Cluster, NodeKind, Outage
from dovetail.model.workload import Workload
from dovetail.names import settings_of, unknown
from dovetail.policies.slurm import FACTORS, OURS, Slurm
from dovetail.slurm import priority
from dovetail.slurm.scheduling import MOST_TIER
from dovetail.units import MOST_SECONDS, duration, parse_duration, printable
from dovetail.workloads.scenarios import scale_load

WEIGHTS: Final = {key.removeprefix("PriorityWeight").lower(): factor for factor, key in priority.WEIGHTS.items()}
"""PriorityWeight..., in small letters, and the factor that it is of."""
MOST_WEIGHT: Final = 10**9
MOST_FACTOR: Final = 100.0
_FORM: Final = re.compile(r"\s*([A-Za-z_]+(?:\.[^\s=+*]+?)?)\s*([-+*]?=)\s*(\S.*?)\s*")
_CANNOT: Final = {
    "preempttype": "a job runs to its end here: preemption is not followed",
    "preemptmode": "a job runs to its end here: preemption is not followed",
    "bf_licenses": "licences that jobs hold are not planned for here",
    "bf_continue": "a cycle takes no time here, so none is cut short",
    "bf_max_time": "a cycle takes no time here, so none is cut short",
    "bf_yield_interval": "a cycle takes no time here, so none is cut short",
    "bf_yield_sleep": "a cycle takes no time here, so none is cut short",
    "max_sched_time": "a cycle takes no time here, so none is cut short",
    "defer": "the main loop looks at once here, whatever else Slurm has to do",
    "batch_sched_delay": "the main loop looks at once here, whatever else Slurm has to do",
    "bf_max_job_assoc": "jobs are not counted by association here: bf_max_job_user counts them by user",
    "maxsubmitjobs": "a history does not hold the jobs that were refused when they were submitted",
    "grptresmins": "what was used before the history is not known: limits of jobs, cores, nodes, memory and GPUs are",
    "grptresrunmins": "limits of what runs are those of jobs, cores, nodes, memory and GPUs",
    "mintime": "users ask for what they asked for: nobody knows who would have said how little will do",
    "topology": "nodes have no topology here",
    "suspendtime": "nodes are always on here; --energy tells what idle ones draw",
}
"""Settings that people ask about and that a replay does not know, and why."""


@dataclass(frozen=True)
class Site:
    """What a question is about: jobs, nodes, and how its Slurm decides."""

    workload: Workload
    cluster: Cluster
    policy: Slurm
    notes: tuple[str, ...] = field(default=())
    """What an answer must say about the changes that were made."""

    def asked(self, changes: Iterable[str]) -> Site:
        """The site with some changes."""
        site = self
        for text in changes:
            site = _changed(site, text)
        notes = [] if site.policy.bf_window == self.policy.bf_window else list(site.short_sighted)
        notes += [] if site.policy.limits == self.policy.limits else list(site.let_through)
        return replace(site, notes=(*site.notes, *notes))

    @property
    def let_through(self) -> tuple[str, ...]:
        """What must be said where jobs are larger than what a limit leaves for all of its jobs."""
        many = self.policy.limits.of_workload(self.workload).exempt if self.policy.limits else 0
        what = "jobs ask by themselves for more than a limit allows: it is not held against them, as somebody let them"
        return (f"{many:,} {what} run.",) if many else ()

    @property
    def short_sighted(self) -> tuple[str, ...]:
        """What must be said where the backfill does not look as far as jobs run."""
        window_s = 60 * self.policy.bf_window
        longer = self.workload.limit > window_s
        if not longer.any():
            return ()
        return (
            f"bf_window is {duration(window_s)}, and {int(longer.sum()):,} jobs have longer limits, up to"
            f" {duration(int(self.workload.limit.max()))}: a job that could only start after that has no reservation,"
            " so smaller ones pass it again and again, and wide jobs starve.",
        )


_SWEEP: Final = re.compile(r"([^=]*=\s*)(\d{1,9})\.\.(\d{1,9})(?:/(\d{1,2}))?")
STEPS: Final = 5


def swept(text: str) -> list[str]:
    """Questions for a curve: KEY=LOW..HIGH, or with /STEPS behind it; each value is as many times the one before."""
    match = _SWEEP.fullmatch(text.strip())
    low, high, steps = (int(match[at] or STEPS) for at in (2, 3, 4)) if match else (0, 0, 0)
    if match is None or not 0 < low < high or steps < 2:
        raise SettingError(f"{printable(text)!r}: a sweep is written bf_window=720..10080, or with /7 for 7 values")
    values = {round(low * (high / low) ** (at / (steps - 1))) for at in range(steps)}
    return [f"{match[1].strip()}{value}" for value in sorted(values)]


def _changed(site: Site, text: str) -> Site:
    match = _FORM.fullmatch(text)
    if match is None:
        rule = "a change is written bf_window=2880, maxtime.long=24h, weight.fairshare=0, nodes+=10% or load*=1.2"
        raise SettingError(f"{printable(text)!r}: {rule}")
    key, how, value = match.groups()
    name, _, of = key.partition(".")
    name = name.lower()
    if reason := _CANNOT.get(name):
        raise SettingError(f"{printable(text)}: this cannot be answered: {reason}")
    if name in _KINDS:
        ways, change = _KINDS[name]
        if how not in ways:
            raise SettingError(f"{printable(text)}: {name} is changed by {' or '.join(ways)}, not by {how}")
        try:
            return change(site, of, how, value)
        except ValueError as error:
            raise SettingError(f"{printable(text)}: {error}") from error
    known = settings_of(site.policy)
    if name not in known or name in OURS:
        choices = [*(one for one in known if one not in OURS), *_KINDS, *_CANNOT]
        raise SettingError(f"{printable(text)}: {unknown('setting', printable(name, 40), choices)}")
    if how != "=" or of:
        raise SettingError(f"{printable(text)}: write {name}={known[name][1].kind.words.removeprefix('must be ')}")
    try:
        return replace(site, policy=replace(site.policy, **{name: known[name][1].kind.read(value)}))
    except ValueError as error:
        raise SettingError(f"{printable(text)}: {error}") from error


def _weight(site: Site, of: str, how: str, value: str) -> Site:
    """What a factor of the priority is worth."""
    ranks = site.policy.ranks
    if site.policy.order != FACTORS or ranks is None:
        raise ValueError("this site has no priority/multifactor: jobs are served in the order of their arrival")
    if of.lower() not in WEIGHTS:
        raise ValueError(unknown("weight", printable(of, 40), WEIGHTS))
    if not re.fullmatch(r"\d{1,10}", value, re.ASCII) or int(value) > MOST_WEIGHT:
        raise ValueError(f"a weight is a whole number from 0 to {MOST_WEIGHT:,}")
    changed: dict[str, Any] = {WEIGHTS[of.lower()]: int(value)}
    weights = replace(ranks.rules.weights, **changed)
    rules = replace(ranks.rules, weights=weights)
    return replace(site, policy=replace(site.policy, ranks=replace(ranks, rules=rules)))


def _tier(site: Site, of: str, how: str, value: str) -> Site:
    """PriorityTier of a partition."""
    _partition(site, of)
    if not re.fullmatch(r"\d{1,9}", value, re.ASCII) or int(value) > MOST_TIER:
        raise ValueError(f"a tier is a whole number from 0 to {MOST_TIER:,}")
    return replace(site, policy=replace(site.policy, tiers={**site.policy.tiers, of: int(value)}))


def _partition(site: Site, of: str) -> int:
    names = site.workload.names.get("partition", ())
    if of not in names:
        raise ValueError(unknown("partition", printable(of, 40), names))
    return names.index(of)


def _max_time(site: Site, of: str, how: str, value: str) -> Site:
    """MaxTime of a partition: limits are cut to it, and jobs that ran longer end there."""
    part, most = _partition(site, of), parse_duration(value)
    if not 60 <= most <= MOST_SECONDS:
        raise ValueError("MaxTime is a minute at least")
    workload = site.workload
    here = workload["partition"] == part
    longer = here & (workload.runtime > most)
    columns = dict(workload.columns)
    for name in ("limit", "runtime"):
        columns[name] = np.where(here, np.minimum(columns[name], most), columns[name])
    work = np.dot(workload.size.astype(np.float64), workload.runtime - columns["runtime"])
    part_of_all = work / max(float(np.dot(workload.size.astype(np.float64), workload.runtime)), 1)
    note = (
        f"maxtime.{of}: {int(longer.sum()):,} jobs ran longer than that. Here they end there, and"
        f" {100 * part_of_all:.1f} % of all work with them: what their users would have done instead is not known."
    )
    return replace(site, workload=replace(workload, columns=columns), notes=(*site.notes, note))


def _limited(site: Site, of: str, how: str, value: str, account: bool) -> Site:
    """A limit of a QOS or of an account."""
    whose, _, name = of.rpartition(".")
    limits = site.policy.limits.changed(whose, name, value, account)
    return replace(site, policy=replace(site.policy, limits=limits))


def _load(site: Site, of: str, how: str, value: str) -> Site:
    """Jobs come closer together or further apart."""
    return replace(site, workload=scale_load(site.workload, _factor(value)))


def _limits(site: Site, of: str, how: str, value: str) -> Site:
    """Users ask for more or less time; never for less than their jobs took."""
    workload = site.workload
    limit = np.maximum(np.rint(workload.limit * _factor(value) / 60).astype(np.int64) * 60, 60)
    limit = np.minimum(np.maximum(limit, -(-workload.runtime // 60) * 60), MOST_SECONDS)
    return replace(site, workload=replace(workload, columns={**workload.columns, "limit": limit}))


def _factor(value: str) -> float:
    try:
        factor = float(value)
    except ValueError:
        factor = 0.0
    if not 1 / MOST_FACTOR <= factor <= MOST_FACTOR:
        raise ValueError(f"a factor is a number from {1 / MOST_FACTOR:g} to {MOST_FACTOR:g}")
    return factor


def _nodes(site: Site, of: str, how: str, value: str) -> Site:
    """More or fewer nodes, of all kinds or of one. New ones stand last; those of each kind that go are its last."""
    kinds, chosen = site.cluster.kinds, _chosen(site.cluster, of)
    there = [kinds[at].count for at in chosen]
    counts = _shares(there, _how_many(value, sum(there)))
    made = _more if how == "+=" else _fewer
    return replace(site, cluster=made(site.cluster, dict(zip(chosen, counts, strict=True))))


def _chosen(cluster: Cluster, of: str) -> list[int]:
    """Kinds of nodes by the name of one, or of a partition; all, if nothing is named."""
    found = [at for at, kind in enumerate(cluster.kinds) if of in ("", kind.name, *_partitions(kind))]
    if not found:
        names = [kind.name for kind in cluster.kinds]
        raise ValueError(unknown("kind of node, or partition,", printable(of, 40), [*names, *cluster.partitions]))
    return found


def _outage(site: Site, of: str, how: str, value: str) -> Site:
    """Maintenance of all nodes, of a kind or of a partition, known from the first second on."""
    header = site.workload.header
    epoch, zone = header_count(header, "UnixStartTime"), zone_of(header)
    if not epoch:
        raise ValueError("the history does not say when its first second was: take the import of sacct")
    begin, _, end = value.partition("..")
    try:
        first, last = (instant(text, zone) - epoch for text in (begin, end))
    except (ValueError, OverflowError) as error:
        raise ValueError("write outage=2026-03-01..2026-03-03, or T08:00 behind a day") from error
    longest = int((site.workload.submit + site.workload.limit).max(initial=0))
    if not 0 <= first < last or first > longest:
        raise ValueError("it is to begin before it ends, and while the history lasts")
    nodes = np.flatnonzero(np.isin(site.cluster.kind_of, _chosen(site.cluster, of)))
    coming = Outage(tuple(nodes.tolist()), first, last)
    return replace(site, cluster=replace(site.cluster, outages=(*site.cluster.outages, coming)))


def _partitions(kind: NodeKind) -> list[str]:
    return [name.removeprefix(PARTITION) for name in kind.features if name.startswith(PARTITION)]


def _how_many(value: str, there: int) -> int:
    """Nodes, as a number or as a part of those that are there."""
    number = value.removesuffix("%")
    if not re.fullmatch(r"\d{1,6}(\.\d{1,3})?", number, re.ASCII) or ("." in number and number == value):
        raise ValueError("a number of nodes, or a part of them such as 10%")
    many = round(there * float(number) / 100) if number != value else int(number)
    if many < 1:
        raise ValueError(f"that is no node: {there:,} are there")
    return many


def _shares(there: Sequence[int], many: int) -> list[int]:
    """A number of nodes as parts of several kinds, by how many each has; the rest to those that lack most."""
    exact = [many * count / sum(there) for count in there]
    found = [int(one) for one in exact]
    rests = sorted(range(len(there)), key=lambda at: (found[at] - exact[at], at))
    for at in rests[: many - sum(found)]:
        found[at] += 1
    return found


def _more(cluster: Cluster, counts: Mapping[int, int]) -> Cluster:
    made, names = list(cluster.kinds), list(cluster.names)
    for at, count in counts.items():
        if count:
            kind = cluster.kinds[at]
            made.append(replace(kind, name=f"more of {kind.name}", count=count))
            names += [f"more-{at}-{number}" for number in range(1, count + 1)] if cluster.names else []
    cores = sum(kind.count * kind.capacity[0] for kind in made)
    return replace(cluster, processors=cores, kinds=tuple(made), names=tuple(names))


def _fewer(cluster: Cluster, counts: Mapping[int, int]) -> Cluster:
    stays = np.ones(cluster.nodes, bool)
    for at, count in counts.items():
        stays[np.flatnonzero(cluster.kind_of == at)[max(cluster.kinds[at].count - count, 0) :]] = False
    if not stays.any():
        raise ValueError("no node would be left")
    number = np.cumsum(stays) - 1
    left = [int(stays[cluster.kind_of == at].sum()) for at in range(len(cluster.kinds))]
    kinds = tuple(replace(kind, count=many) for kind, many in zip(cluster.kinds, left, strict=True) if many)
    outages = [
        replace(one, nodes=tuple(int(number[node]) for node in one.nodes if stays[node])) for one in cluster.outages
    ]
    return replace(
        cluster, processors=sum(kind.count * kind.capacity[0] for kind in kinds), kinds=kinds,
        outages=tuple(one for one in outages if one.nodes),
        names=tuple(name for name, stay in zip(cluster.names, stays.tolist(), strict=False) if stay),
    )  # fmt: skip


_KINDS: Final[Mapping[str, tuple[tuple[str, ...], Callable[[Site, str, str, str], Site]]]] = {
    "weight": (("=",), _weight), "tier": (("=",), _tier), "maxtime": (("=",), _max_time), "load": (("*=",), _load),
    "limits": (("*=",), _limits), "nodes": (("+=", "-="), _nodes), "outage": (("=",), _outage),
    "qos": (("=",), partial(_limited, account=False)), "account": (("=",), partial(_limited, account=True)),
}  # fmt: skip
"""What is changed how, beside SchedulerParameters."""
