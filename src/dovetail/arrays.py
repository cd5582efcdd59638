"""The types of arrays, and the instant that never comes: one home for all rooms."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

NEVER: Final = 1 << 62
"""An instant, or a duration, beyond all others: in 64 bits there is room for it to be added to another."""
