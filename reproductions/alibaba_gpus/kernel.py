"""A cluster that only fills up: jobs come one after the other, none ends, and one that does not fit is lost.

Compiled code is kept on disk. Numba notices an edit in this file, `jit` one in the package's kernels; so nothing here
may call a kernel from a third place.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dovetail.arrays import NEVER
from dovetail.kernels.compile import jit
from dovetail.kernels.machine.capacity import fits_now, start
from dovetail.kernels.machine.node_classes import AFTER, COUNT, HEADS, ZERO
from dovetail.kernels.machine.node_fit import KINDS, VECTOR, least_free
from dovetail.kernels.machine.nodes import Nodes
from dovetail.kernels.machine.placement import fragmented

_NEVER: int = np.int64(NEVER)  # type: ignore[assignment]


@jit
def fill(cap: Nodes, first: int, last: int, stays: npt.NDArray[np.bool_]) -> None:
    """Jobs from `first` to before `last` come, in the order of their numbers; `stays` says which found a place."""
    for job in range(first, last):
        if fits_now(cap, job):
            start(cap, job, ZERO, _NEVER)
            stays[job] = True


@jit
def all_fragmented(cap: Nodes) -> float:
    """What is free of the shared resource now, on all nodes, and of no use to typical jobs, in devices."""
    fleet, vector = cap.free, cap.scratch[VECTOR]
    total = 0.0
    for kind in range(cap.info[KINDS]):
        home = fleet[HEADS + kind]
        while home >= 0:
            least_free(fleet, home, ZERO, _NEVER, vector)
            total += fleet[home + COUNT] * fragmented(cap, kind, vector)
            home = fleet[home + AFTER]
    return total
