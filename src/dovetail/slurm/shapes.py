"""What jobs ask of nodes, by what sacct says of them: how much they asked for, how much they were given, and on which
nodes; not how much they had on each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dovetail.arrays import Ints, Mask
from dovetail.kernels.swf import MOST_PROCESSORS
from dovetail.model.workload import Column

TOLD, INFERRED, UNKNOWN = 0, 1, 2
"""How well the shape of a job is known (column `shape`)."""
SHAPES: Final = ("told", "inferred", "unknown")


@dataclass(frozen=True)
class Amounts:
    """Of each job, in all: 0 where it is not told."""

    cores: Ints
    nodes: Ints
    memory_kib: Ints
    devices: Ints


@dataclass(frozen=True)
class Hints:
    """What else is known of each job: whether it says that it asked for whole nodes, or for just so many nodes (0: it
    does not say); and how many cores the nodes have that it was given (-1: their cluster is not known)."""

    whole: Mask
    nodes: Ints
    there: Ints


def shapes(asked: Amounts, given: Amounts, has: Mask, cores: Ints, hints: Hints) -> dict[str, Column]:
    """The columns that say so. `has`: who was given anything; `cores`: of each job, as well as it is known.

    On one node that is all. On several it is an even part where that divides, on a node of its own where so many nodes
    were asked for, else single cores that may run anywhere;
    with GPUs, which go by the node, parts with the rest of the cores left out. Who was given all cores of its nodes,
    and asked for fewer, asked for whole nodes.
    """
    found_whole = has & (given.cores == hints.there) & (asked.cores > 0) & (asked.cores < given.cores)
    whole = hints.whole | found_whole
    nodes = np.where(has & (given.nodes > 0), given.nodes, asked.nodes)
    untold = nodes <= 0
    nodes = np.maximum(np.where(untold, cores, nodes), 1)
    wanted = np.where(asked.nodes > 0, asked.nodes, nodes)
    had = cores
    cores = np.where(whole & (asked.cores > 0), asked.cores, cores)
    memory, devices = (
        np.where(has & ~whole, getattr(given, name), getattr(asked, name)) for name in ("memory_kib", "devices")
    )
    even = whole | ((nodes == wanted) & (cores % nodes == 0))
    by_node = even | ((devices > 0) & (devices % nodes == 0) & (cores >= nodes))
    units = np.maximum(np.where(by_node, nodes, cores), 1)
    each = np.where(by_node, np.maximum(cores // nodes, 1), 1)
    found: dict[str, Column] = {
        "size": np.where(whole, had, np.minimum(cores, units * each)),
        "units": units,
        "unit_cores": each,
    }
    if (memory > 0).any():
        found["unit_memory_mb"] = np.minimum(-(-memory // units // 1024), MOST_PROCESSORS)
    if (devices > 0).any():
        found["unit_gpus"] = np.minimum(-(-devices // units), MOST_PROCESSORS)
    apart = by_node & ~whole & (asked.nodes > 1) & (asked.nodes == nodes)
    if apart.any():
        found["per_node"] = np.where(apart, 1, -1)
    if whole.any():
        found["exclusive"] = np.where(whole, 1, -1)
    one = (nodes == 1) & ~(found_whole & ~hints.whole)
    known = ~untold & (even | (wanted < nodes))
    by_count = even & (hints.nodes == nodes)
    found["shape"] = np.where(one | by_count, TOLD, np.where(known, INFERRED, UNKNOWN))
    return found
