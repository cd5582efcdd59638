"""Orders with the ties of the authors of Packing and CP, for studies: `list:order=ties.py:sjf`.

Dovetail's own orders give equal keys to the earlier submit. The authors' simulator compares a second key first:
the size under SJF, the area under SPF (github.com/algo74/predictsim, pyss/schedulers/sorters.py).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dovetail.arrays import Ints
from dovetail.model.state import State


def sjf(state: State) -> Ints:
    """Shortest estimate first; of equal ones the smaller size."""
    return _rank(state.estimate[state.waiting], state.size[state.waiting])


def spf(state: State) -> Ints:
    """Smallest size x estimate^2 first; of equal ones the smaller area (size x estimate)."""
    estimate = state.estimate[state.waiting].astype(np.float64)
    area = state.size[state.waiting] * estimate
    return _rank(area * estimate, area)


# A rank orders any of the jobs that it was given as the two keys do: one question for all jobs is enough.
sjf.static = True  # type: ignore[attr-defined]
spf.static = True  # type: ignore[attr-defined]


def _rank(first: npt.NDArray[np.generic], second: npt.NDArray[np.generic]) -> Ints:
    """The place of each job by two keys; equal only where both are."""
    order = np.lexsort((second, first))
    new = (first[order][1:] != first[order][:-1]) | (second[order][1:] != second[order][:-1])
    rank = np.zeros(len(first), np.int64)
    rank[order[1:]] = np.cumsum(new)
    return rank
