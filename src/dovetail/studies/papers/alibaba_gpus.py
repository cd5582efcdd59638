"""The page on GPUs that cannot be allocated: Alibaba's cluster of 2023, filled under each rule of placement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from dovetail.arrays import Floats
from dovetail.io.alibaba import read_nodes, read_pods
from dovetail.metrics.comparison import Comparison, compare, mean_interval
from dovetail.model.cluster import WHOLE, Cluster
from dovetail.model.requests import requests_of, typical
from dovetail.model.workload import Workload
from dovetail.policies.machine import PLACES
from dovetail.studies.papers.filling import (
    POINTS,
    UPTO,
    Filled,
    drawn,
    filled,
    shared_asked,
    shared_capacity,
)
from dovetail.studies.papers.page import (
    Page,
    Runs,
    Statement,
    bullets,
    facts_of,
    grid,
    held,
    made_with,
    picture,
    stated,
)
from dovetail.studies.papers.page import filled as text_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME: Final = "alibaba-gpus"
NODES: Final = "heterogeneous/alibaba2023_openb_node_list_all_node.csv.gz"
PODS: Final = "heterogeneous/alibaba2023_openb_pod_list_default.csv.gz"
SEEDS: Final = tuple(range(10, 20))
"""Not 0 to 9: what to try was looked for with those."""
FULL: Final = 100
"""Saturation: as much has been asked for as there is, in per cent."""
BASE: Final = "best"
GOAL: Final = 0.25
"""How much less than under best fit is to be left free."""
FGD_LESS: Final = 0.49
"""What FGD says of itself in its abstract: up to so many fewer GPUs left unallocated,"""
FGD_GPUS: Final = 290
"""and so many more allocated."""


@dataclass(frozen=True)
class Variant:
    """A rule of placement on a cluster with typical pods, for pods of some list."""

    place: str
    cluster: Cluster
    pods: Workload


@dataclass(frozen=True)
class Found:
    """One variant, a filled cluster per seed."""

    runs: Sequence[Filled]

    def each(self, number: Callable[[Filled], float]) -> Floats:
        return np.array([number(run) for run in self.runs])

    def free(self, percent: int) -> Floats:
        return self.each(lambda run: run.free(percent))

    def less(self, base: Found, percent: int) -> Comparison:
        """How much less is free than under another, seed by seed."""
        return compare(base.free(percent), self.free(percent))


def fill_all(variants: Mapping[str, Variant], seeds: Sequence[int]) -> dict[str, Found]:
    """Every variant with every seed; the same seed draws the same pods from a list."""
    return {
        name: Found([filled(drawn(one.pods, one.cluster, seed), one.cluster, one.place) for seed in seeds])
        for name, one in variants.items()
    }


def rules(cluster: Cluster, pods: Workload) -> dict[str, Variant]:
    """Each rule of placement; typical pods are the most frequent of the list."""
    known = replace(cluster, typical=typical(requests_of(pods, cluster)))
    return {place: Variant(place, known, pods) for place in PLACES}


WEIGHED: Final = "the 64 that ask for most GPUs, each weighed by that"
LATER: Final = "the later half alone: `best`"
LATER_KNOWN: Final = "the later half alone: the 64 most frequent of the earlier half"
LATER_WEIGHED: Final = "the later half alone: the 64 of the earlier half that ask for most GPUs"


def others(cluster: Cluster, pods: Workload) -> dict[str, Variant]:
    """The rule `gradient` with other ideas of what is typical; the list is in order of time."""
    half = len(pods) // 2
    earlier, later = _part(pods, slice(0, half)), _part(pods, slice(half, None))

    def known(source: Workload, most: int = 64, weigh: int = -1) -> Cluster:
        return replace(cluster, typical=typical(requests_of(source, cluster), most, weigh))

    every, gpus = known(pods, len(pods)), cluster.shared_at
    return {
        f"all {len(every.typical)} requests": Variant("gradient", every, pods),
        "the 64 most frequent of the earlier half": Variant("gradient", known(earlier), pods),
        WEIGHED: Variant("gradient", known(pods, weigh=gpus), pods),
        "all that ask for GPUs, each weighed by that": Variant("gradient", known(pods, len(pods), gpus), pods),
        LATER: Variant(BASE, known(earlier), later),
        LATER_KNOWN: Variant("gradient", known(earlier), later),
        LATER_WEIGHED: Variant("gradient", known(earlier, weigh=gpus), later),
    }


def _part(pods: Workload, rows: slice) -> Workload:
    return replace(pods, columns={name: values[rows] for name, values in pods.columns.items()})


def page(runs: Runs) -> Page:
    """The page and its picture. Nothing is replayed in time, so there is no study."""
    cluster, pods = read_nodes(runs.log(NODES)), read_pods(runs.log(PODS))
    return page_of(cluster, pods, SEEDS)


def page_of(cluster: Cluster, pods: Workload, seeds: Sequence[int]) -> Page:
    """The page on a cluster and a list of pods."""
    found = fill_all(rules(cluster, pods), seeds)
    more = fill_all(others(cluster, pods), seeds)
    said = _statements(found, more)
    parts = [
        _summary(cluster, pods, said, found, more[WEIGHED]),
        stated("claim", said),
        f"![GPUs free and fragmented while pods come, one line per rule, drawn by Dovetail]({NAME}.svg)",
        f"## Made with\n\n{made_with(NAME)}\n\nThanks for the trace go to {pods.provenance.acknowledge}.",
        _experiment(cluster, pods, len(seeds)),
        _rules(found),
        _why(cluster, pods, found),
        _typical(found, more),
        _published(found),
        _times(found),
    ]
    drawing = picture(
        lambda: _draw(found, more[WEIGHED]), "gpus", "GPUs free and fragmented against GPUs asked for, by rule"
    )
    return Page(text_of(parts), held(said), facts_of(said), {f"{NAME}.svg": drawing})


# What is said -----------------------------------------------------------------------------------------------


def _statements(found: Mapping[str, Found], more: Mapping[str, Found]) -> list[Statement]:
    texts = {FULL: f"at saturation ({FULL} % asked for)", UPTO: f"at the end ({UPTO} %)"}
    weighed = "`gradient`, typical pods weighed by the GPUs they ask for,"
    who = [
        ("`gradient`", found["gradient"], found[BASE]),
        ("`scarce`", found["scarce"], found[BASE]),
        (weighed, more[WEIGHED], found[BASE]),
        (f"{weighed} and none of the pods seen before,", more[LATER_WEIGHED], more[LATER]),
    ]
    made = []
    for name, one, base in who:
        for percent, text in texts.items():
            less = one.less(base, percent)
            goal = f"leaves at least {100 * GOAL:.0f} % less unallocatable GPU capacity than `{BASE}`"
            ours = f"{_percent(less)}: {less.other:.0f} against {less.base:.0f} GPUs"
            made.append(Statement(f"{name} {goal}, {text}", ours, _holds(less)))
    return made


def _holds(less: Comparison) -> str:
    """Yes if the whole interval is there, in part if it reaches there."""
    if less.high <= -GOAL:
        return "yes"
    return "in part" if less.low <= -GOAL else "no"


def _percent(one: Comparison) -> str:
    return f"{100 * one.change:+.1f} % ({100 * one.low:+.1f} to {100 * one.high:+.1f})"


def _mean(values: Floats, digits: int = 0) -> str:
    mean, low, high = mean_interval(values.tolist())
    return f"{mean:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _summary(
    cluster: Cluster, pods: Workload, said: Sequence[Statement], found: Mapping[str, Found], weighed: Found
) -> str:
    best, gradient, other = (one.free(FULL).mean() for one in (found[BASE], found["gradient"], weighed))
    return f"""
# GPUs that cannot be allocated: Alibaba 2023

Many pods ask for a part of a GPU. Once a cluster is nearly full, what is left is in pieces: parts of GPUs that no pod
wants, and GPUs on nodes whose cores are gone. This page fills Alibaba's cluster of 2023 ({cluster.nodes:,} nodes,
{shared_capacity(cluster):,} GPUs) with pods of its trace ({len(pods):,} of them) under each rule of placement, and
measures what stays free, after FGD (Weng and others, Beware of Fragmentation, USENIX ATC 2023).

At saturation `{BASE}` leaves {best:.0f} GPUs free, `gradient` {gradient:.0f}, and {other:.0f} when it weighs typical
pods by the GPUs that they ask for. {held(said)}: "yes" where the whole interval is there, "in part" where it reaches
there.
"""


def _experiment(cluster: Cluster, pods: Workload, seeds: int) -> str:
    points = [
        "Pods are drawn from the list with replacement, by seed, and come one after the other to the empty cluster."
        " None ever ends. One that does not fit when it comes is lost: it does not wait. They come until they have"
        f" asked for {UPTO} % of the GPUs.",
        "Unallocatable is what of the GPUs is free at saturation, when the pods that have come, lost ones included,"
        f" have asked for {FULL} % of the GPUs; and at the end.",
        "Fragmented, F, is what of that is of no use to typical pods, the mean over them: all that is free on a node"
        " where such a pod does not fit, else what is free on devices with less than its share. Typical are the"
        f" {len(typical(requests_of(pods, cluster)))} most frequent requests of the whole list, each weighed by how"
        " frequent it is.",
        f"{seeds} seeds; brackets are 95 % intervals. Differences are paired by seed: the same pods in the same order.",
        "Every filled cluster was checked by the referee, node by node and device by device.",
    ]
    return f"## What is measured\n\n{bullets(points)}"


def _rules(found: Mapping[str, Found]) -> str:
    head = ["rule", f"free at {FULL} %", f"against `{BASE}`", f"free at {UPTO} %", f"against `{BASE}`"]
    head += ["F at 50 %", f"F at {FULL} %", "first pod lost at", f"lost by {FULL} %", "of these, pods of several GPUs"]
    rows = []
    for place, one in found.items():
        row = [f"`{place}`"]
        for percent in (FULL, UPTO):
            against = "" if place == BASE else _percent(one.less(found[BASE], percent))
            row += [_mean(one.free(percent)), against]
        row += [f"{_fragments(one, percent):.0f}" for percent in (50, FULL)]
        row.append(f"{one.each(lambda run: run.first_lost).mean():.1f} %")
        row += [f"{one.each(lambda run, a=above: run.lost(FULL, a)).mean():.0f}" for above in (0, 1)]  # type: ignore[misc]
        rows.append(row)
    return f"""
## By rule

All in GPUs. Whoever loses pods of several GPUs early has room for small ones later: the last columns say so.

{grid(head, rows)}
"""


def _fragments(one: Found, percent: int) -> float:
    at = POINTS.index(percent)
    return float(one.each(lambda run: float(run.fragments[at])).mean())


def _why(cluster: Cluster, pods: Workload, found: Mapping[str, Found]) -> str:
    requests = requests_of(pods, cluster)
    asked = shared_asked(requests, cluster)
    shares, counts = np.unique(asked[(asked > 0) & (asked < WHOLE)], return_counts=True)
    common = int(shares[np.argmax(counts)])
    left = WHOLE - common
    small = float(((asked > 0) & (asked <= left)).mean())
    beside = {
        place: found[place].each(lambda run: int(run.stays[run.asked == common].sum()) * left / WHOLE).mean()
        for place in (BASE, "gradient")
    }
    rows = []
    for place, one in found.items():
        pieces, free = one.each(lambda run: run.pieces), one.free(UPTO)
        rows.append([f"`{place}`", f"{(free - pieces).mean():.0f}", f"{pieces.mean():.0f}"])
    return f"""
## What is left, and why

At the end, in GPUs: those that nobody uses, on nodes that lack the cores (or memory) for a pod; and pieces of those
that somebody does.

{grid(["rule", "whole GPUs", "pieces of GPUs"], rows)}

Much of the pieces is in the pods and not in the rule. The most common part of a GPU is {common} thousandths
({100 * float(counts.max()) / len(pods):.0f} % of the pods), which leaves {left}; only {100 * small:.1f} % of the pods
ask for a part as small as that. What such pods leave on their GPUs is {beside["gradient"]:.0f} GPUs under `gradient`
and {beside[BASE]:.0f} under `{BASE}`, and hardly any pod could fill it. The rules differ in the rest.
"""


def _typical(found: Mapping[str, Found], more: Mapping[str, Found]) -> str:
    head = ["typical pods", f"free at {FULL} %", f"against `{BASE}`", f"free at {UPTO} %", f"against `{BASE}`"]
    shown = {"the 64 most frequent, as above": found["gradient"], **more}
    rows = []
    for name, one in shown.items():
        base = more[LATER] if name in (LATER, LATER_KNOWN, LATER_WEIGHED) else found[BASE]
        row = [name]
        for percent in (FULL, UPTO):
            row += [_mean(one.free(percent)), "" if one is base else _percent(one.less(base, percent))]
        rows.append(row)
    return f"""
## What hangs on typical pods

`gradient` must be told what is typical; this is what other ideas of that give. The earlier half of the list, by time of
creation, is what an operator could know. In the last rows pods are drawn from the later half alone, so that `gradient`
has seen none of them. To weigh requests by how frequent they are is FGD's way. What counts here is capacity, so a pod
that asks for eight GPUs may as well count for eight; FGD's simulator has had that as a setting too.

{grid(head, rows)}

Weighing was not the first thing tried: it was looked for when `gradient` as it is fell short of the goal. Ideas were
tried with seeds 0 to 9, this page has others. Two more were tried there and are not kept: fewer typical pods (20),
which leaves more free, and counting a GPU as of no use when the cores of its node would not do for all of its free
GPUs, which left less free in the end and lost more pods of several GPUs long before.
"""


_DIFFERS: Final = (
    "The abstract does not say which rival the 49 % is against. Our `best` takes the node with the least left, the sum"
    " of cores, memory and GPUs, each as a part of what the cluster has; and of that node's GPUs the fullest that will"
    " do. Best fit in FGD's simulator knows cores and GPUs, each as a part of what the largest node has.",
    "FGD's simulator knows no memory, rounds gradients to a hundred steps, and tries each GPU of a node. `gradient`"
    " rounds nothing, gives equal gradients to `best`, and takes the fullest GPU that will do.",
    "FGD ran in Kubernetes on an emulated cluster; here a pod is one pass of our kernels. The list is the default one"
    " of the trace, in which no pod asks for a model of GPU.",
)


def _published(found: Mapping[str, Found]) -> str:
    theirs, gradient = FGD_GPUS / FGD_LESS, found["gradient"].free(FULL).mean()
    free = {place: float(one.free(FULL).mean()) for place, one in found.items()}
    most = max(free, key=lambda place: free[place])
    ours = found["gradient"].less(found[most], FULL)
    capacity = found[BASE].runs[0].capacity
    points = [
        f"FGD, in its abstract: up to {100 * FGD_LESS:.0f} % fewer unallocated GPUs than existing packing-based"
        f" schedulers, {FGD_GPUS} more GPUs in use, on more than 6,200. If both are of one comparison,"
        f" about {theirs:.0f} were unallocated, and {theirs - FGD_GPUS:.0f} under FGD.",
        f"Ours, on {capacity:,}: `gradient` leaves {gradient:.0f}. Against the rule that leaves most (`{most}`,"
        f" {free[most]:.0f}) that is {_percent(ours)}; against `{BASE}` it is what the first table says.",
        *_DIFFERS,
    ]
    return f"## Beside the published numbers\n\n{bullets(points)}"


def _times(found: Mapping[str, Found]) -> str:
    rows = []
    for place, one in found.items():
        cpu_s = sum(run.cpu_s for run in one.runs)
        rows.append([f"`{place}`", f"{1e6 * cpu_s / sum(int(run.stays.sum()) for run in one.runs):.0f} µs"])
    return f"""
## How long it takes

CPU time per pod placed, the failures of the others included, compiled, on one core. These numbers, and no others here,
differ from run to run.

{grid(["rule", "per pod"], rows)}
"""


# Drawn ------------------------------------------------------------------------------------------------------

_FROM: Final = 80
"""Before so much has been asked for, hardly anything is lost, and all lines are one."""


def _draw(found: Mapping[str, Found], weighed: Found) -> Figure:
    """What is free, at the left, and what of it is fragmented."""
    from dovetail.reports.style import GREY, STROKES, figure

    made = figure(640, 290)
    left, right = made.subplots(1, 2)
    capacity = found[BASE].runs[0].capacity
    percents = range(_FROM, UPTO + 1)
    shown = {**found, "gradient, weighed": weighed}
    for (name, one), stroke in zip(shown.items(), STROKES, strict=False):
        free = [100 * one.free(percent).mean() / capacity for percent in percents]
        left.plot(percents, free, **stroke.line, label=name, markevery=5)
        if name in found:  # F is for the same typical pods
            fragments = [100 * _fragments(one, percent) / capacity for percent in POINTS]
            right.plot(POINTS, fragments, **stroke.line, markevery=2)
    left.set_title("GPUs free, per cent of all")
    right.set_title("GPUs free and of no use to typical pods, per cent of all")
    left.set_xlim(_FROM, UPTO)
    right.set_xlim(0, UPTO)
    for ax in (left, right):
        ax.axvline(FULL, color=GREY, linewidth=0.8)
        ax.set_ylim(0)
        ax.set_xlabel("GPUs asked for by the pods that came, per cent of all")
    left.legend(loc="upper right", frameon=False, fontsize=7.5)
    return made
