"""Filters: from a log as published to the jobs of a study. Each records what it removed or changed.

A filter is a function of a workload (and perhaps one setting) that returns a workload. `clean` applies
filters by name: `positive_runtime`, `queues:include=1,3`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np

from dovetail.errors import InputError, SettingError
from dovetail.io.swf import header_count
from dovetail.model.cluster import POWER, Cluster
from dovetail.model.requests import fit_idle, requests_of
from dovetail.model.workload import Column, Step, Workload
from dovetail.names import unknown


def positive_runtime(workload: Workload) -> Workload:
    """Drop a job whose run time is 0 or less."""
    return workload.take(workload.runtime > 0, "run time 0 or less")


def zero_runtime_as_one(workload: Workload) -> Workload:
    """Make a run time of 0 (in SWF: less than half a second) one second instead of dropping the job."""
    zero = workload.runtime == 0
    step = Step("run time 0 made 1 s", changed=int(zero.sum()))
    return workload.with_columns(step, runtime=np.where(zero, 1, workload.runtime))


def known_size(workload: Workload) -> Workload:
    """Drop a job with neither requested nor allocated processors; fill a missing one from the other."""
    known = (workload.size > 0) | (workload.get("allocated") > 0)
    workload = workload.take(known, "requested and allocated processors both missing")
    if "allocated" not in workload:
        return workload
    size, allocated = workload.size, workload.get("allocated")
    no_size, no_allocated = size <= 0, allocated <= 0
    step = Step("missing processors filled", changed=int((no_size | no_allocated).sum()))
    return workload.with_columns(
        step, size=np.where(no_size, allocated, size), allocated=np.where(no_allocated, size, allocated)
    )


def known_allocated(workload: Workload) -> Workload:
    """Drop a job that was given no processors."""
    if "allocated" not in workload:
        raise SettingError(
            f"{workload.name} does not say how many processors jobs were given: leave out known_allocated"
        )
    return workload.take(workload.get("allocated") > 0, "no allocated processors")


def fits_machine(workload: Workload, *, larger: str = "drop") -> Workload:
    """Drop a job that asks for more processors than the machine has; or let it ask for all of them (`cut`)."""
    if not workload.processors:
        rule = (
            "the size of its machine is not given (in SWF: neither MaxProcs nor MaxNodes): give processors or a cluster"
        )
        raise InputError(workload.provenance.source, 0, rule)
    fits = workload.size <= workload.processors
    if larger == "cut":
        step = Step("more processors than the machine has made all of them", changed=int((~fits).sum()))
        return workload.with_columns(step, size=np.where(fits, workload.size, workload.processors))
    return workload.take(fits, "more processors than the machine has")


def fits_nodes(workload: Workload, cluster: Cluster) -> Workload:
    """Drop a job that could not run even if all nodes of the cluster were idle and all its licences free. Comes after
    scenarios, because they may change what jobs ask for; on a cluster that only counts processors it does nothing."""
    if not cluster.kinds or not len(workload):
        return workload
    workload = fits_counted(workload, cluster)
    asked = requests_of(workload, cluster)
    possible = (asked.units >= 1) & (asked.units <= cluster.processors)  # products of larger numbers would wrap
    return workload.take(possible & fit_idle(cluster, asked), "does not fit on the idle nodes")


def fits_counted(workload: Workload, cluster: Cluster) -> Workload:
    """Without jobs that alone would take more than there is of what is counted for all together: power, licences."""
    for k, (what, room) in enumerate(cluster.counted.items()):
        words = "draws more than the power cap leaves" if what == POWER else "holds more licences than there are"
        workload = workload.take(cluster.takes(workload)[:, k] <= room, words)
    return workload


NO_LIMIT: Final = "no requested time"


def known_limit(workload: Workload) -> Workload:
    """Drop a job without a requested time."""
    return workload.take(workload.limit > 0, NO_LIMIT)


def limit_from_runtime(workload: Workload, *, source: str = "runtime") -> Workload:
    """Fill a missing limit with the job's run time or the header's MaxRuntime instead of dropping the job."""
    missing = workload.limit <= 0
    fill: Column = workload.runtime
    if source == "maxruntime":
        longest = header_count(workload.header, "MaxRuntime")
        if not longest:
            rule = "the header has no MaxRuntime: use limit_from_runtime:source=runtime or known_limit"
            raise InputError(workload.provenance.source, 0, rule)
        fill = np.full(len(workload), longest, np.int64)
    missing &= fill > 0
    step = Step(f"missing limit filled from {source}", changed=int(missing.sum()))
    return workload.with_columns(step, limit=np.where(missing, fill, workload.limit))


def known_submit(workload: Workload) -> Workload:
    """Drop a job submitted before second 0."""
    return workload.take(workload.submit >= 0, "submit before second 0")


def known_start(workload: Workload) -> Workload:
    """Drop a job whose start the log does not know: `recorded` can say nothing of it."""
    return workload.take(workload.get("wait") >= 0, "no recorded start")


def cut_at_limit(workload: Workload, *, overrun: str = "cut") -> Workload:
    """Cut a run time at the limit where there is one (`cut`), or leave it as the log has it (`run`)."""
    if overrun == "run":
        return workload
    over = (workload.limit > 0) & (workload.runtime > workload.limit)
    step = Step("run time cut at the limit", changed=int(over.sum()))
    return workload.with_columns(step, runtime=np.where(over, workload.limit, workload.runtime))


def _chosen(workload: Workload, column: str, include: Sequence[int], exclude: Sequence[int]) -> Workload:
    """Keep the jobs whose value of a column is included, or not excluded."""
    if bool(include) == bool(exclude):
        raise SettingError(f"choosing by {column} takes either include or exclude, with at least one number")
    listed = np.isin(workload.get(column), list(include or exclude))
    numbers = ", ".join(str(n) for n in include or exclude)
    if include:
        return workload.take(listed, f"{column} is none of {numbers}")
    return workload.take(~listed, f"{column} is one of {numbers}")


def queues(workload: Workload, *, include: Sequence[int] = (), exclude: Sequence[int] = ()) -> Workload:
    """Keep only the jobs of some queues, or all but those."""
    return _chosen(workload, "queue", include, exclude)


def statuses(workload: Workload, *, include: Sequence[int] = (), exclude: Sequence[int] = ()) -> Workload:
    """Keep only the jobs with some statuses (1 completed, 0 failed, 5 cancelled), or all but those."""
    return _chosen(workload, "status", include, exclude)


def users(workload: Workload, *, include: Sequence[int] = (), exclude: Sequence[int] = ()) -> Workload:
    """Keep only the jobs of some users, or all but those."""
    return _chosen(workload, "user", include, exclude)


def standard(workload: Workload, *, overrun: str = "cut") -> Workload:
    """The chain that makes an archive log the input of the papers on list and planned scheduling."""
    for step in (positive_runtime, known_size, fits_machine, known_limit, known_submit):
        workload = step(workload)
    return cut_at_limit(workload, overrun=overrun)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


@dataclass(frozen=True)
class _Choice:
    """A setting that is one of a few words."""

    words: tuple[str, ...]

    def __call__(self, text: str) -> str:
        if text not in self.words:
            raise ValueError(f"one of {', '.join(self.words)}")
        return text

    def __str__(self) -> str:
        return "|".join(self.words)


@dataclass(frozen=True)
class Filter:
    """A filter by name: the function, and how the text of each of its settings is understood."""

    apply: Callable[..., Workload]
    settings: Mapping[str, Callable[[str], Any]] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        return (self.apply.__doc__ or "").strip()


_LISTS: Final = {"include": _numbers, "exclude": _numbers}
_OVERRUN: Final = {"overrun": _Choice(("cut", "run"))}

FILTERS: Final[Mapping[str, Filter]] = {
    "standard": Filter(standard, _OVERRUN),
    "positive_runtime": Filter(positive_runtime),
    "zero_runtime_as_one": Filter(zero_runtime_as_one),
    "known_size": Filter(known_size),
    "known_allocated": Filter(known_allocated),
    "fits_machine": Filter(fits_machine, {"larger": _Choice(("drop", "cut"))}),
    "known_limit": Filter(known_limit),
    "limit_from_runtime": Filter(limit_from_runtime, {"source": _Choice(("runtime", "maxruntime"))}),
    "known_submit": Filter(known_submit),
    "known_start": Filter(known_start),
    "cut_at_limit": Filter(cut_at_limit, _OVERRUN),
    "queues": Filter(queues, _LISTS),
    "statuses": Filter(statuses, _LISTS),
    "users": Filter(users, _LISTS),
}
"""All filters by name."""


def parse_filter(text: str) -> Callable[[Workload], Workload]:
    """The filter that `name` or `name:setting=value` asks for. SettingError lists the valid ones."""
    name, colon, rest = text.partition(":")
    if name not in FILTERS:
        raise SettingError(unknown("filter", name, FILTERS))
    chosen = FILTERS[name]
    if not colon:
        if chosen.settings is _LISTS:
            raise SettingError(f"filter {name!r} needs a setting: {name}:include=1,3 or {name}:exclude=2")
        return chosen.apply
    setting, _, value = rest.partition("=")
    if setting not in chosen.settings:
        raise SettingError(f"filter {name}: {unknown('setting', setting, chosen.settings)}")
    try:
        return partial(chosen.apply, **{setting: chosen.settings[setting](value)})
    except ValueError as error:
        wanted = chosen.settings[setting]
        form = str(wanted) if isinstance(wanted, _Choice) else "numbers such as 1,3"
        raise SettingError(f"{name}:{setting} takes {form}, not {value!r}") from error


def clean(workload: Workload, filters: Iterable[str]) -> Workload:
    """Apply filters by name, in order. All names are checked before the first is applied."""
    for apply in [parse_filter(text) for text in filters]:
        workload = apply(workload)
    return workload
