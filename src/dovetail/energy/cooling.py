"""What cooling takes, by the load and by how warm it is outside.

The table has a PUE, (IT power + cooling power) / IT power, in thousandths, for loads in steps of 500 W and for
temperatures outside in steps of a degree. Two come with Dovetail, `air` and `hybrid`. The table behind the profit paper
is not public. Ours are built from these assumptions, and at full load give the PUEs of its Table 1: `air` 1.11 in
January and 1.43 in July, `hybrid` 1.00 and 1.09, in 23 days of Granada's typical year.

- Outside air cools for nothing but fans below `free_c`. Above, a chiller moves the heat, and the work that it needs
  for each joule of heat grows with the degrees above `free_c`.
- Fans and pumps take `fixed` of the full load's power whatever the load, so a machine that idles is cooled badly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dovetail.arrays import Ints

STEP_W: Final = 500
"""Loads are rounded to multiples of this many watts."""
ONE: Final = 1000
"""A PUE of 1."""
MOST_PUE: Final = 3 * ONE
COLDEST_C, WARMEST_C = -40, 60


@dataclass(frozen=True)
class Cooling:
    """A PUE in thousandths for each load (row: a multiple of STEP_W, from 0) and temperature (column: a degree, from
    `coldest_c`). What is beyond takes the last row or column."""

    name: str
    pue: Ints
    coldest_c: int = 0

    def at(self, it_mw: Ints, temperature_mc: Ints) -> Ints:
        """The PUE at each load in milliwatts and temperature in thousandths of a degree. Halves are rounded up."""
        step_mw = STEP_W * 1000
        row = np.clip((it_mw + step_mw // 2) // step_mw, 0, self.pue.shape[0] - 1)
        column = np.clip((temperature_mc + 500) // 1000 - self.coldest_c, 0, self.pue.shape[1] - 1)
        found: Ints = self.pue[row, column]
        return found


@dataclass(frozen=True)
class Plant:
    """The assumptions behind a table."""

    fixed: float
    """Power of fans and pumps at any load, as a part of the full load."""
    running: float
    """Their power as a part of the load."""
    free_c: float
    """Up to this temperature outside air is enough."""
    chiller: float
    """Work of the chiller for a joule of heat, once it is needed at all."""
    per_degree: float
    """How much more for each degree above `free_c`."""


PLANTS: Final = {
    "air": Plant(fixed=0.03, running=0.07, free_c=14.0, chiller=0.262, per_degree=0.0077),
    "hybrid": Plant(fixed=0.001, running=0.002, free_c=18.0, chiller=0.05, per_degree=0.0073),
}
"""`air`: chillers that need 0.26 J for a joule of heat at the least. `hybrid`: warm water takes most of the heat. When
air is enough is assumed; the rest is fitted to the PUEs of the paper, at full load, in the weather of Granada."""


def plant_table(name: str, plant: Plant, full_w: int) -> Cooling:
    """The table of a plant that can cool `full_w` watts."""
    loads = np.arange(0, full_w + STEP_W, STEP_W, dtype=np.float64)
    degrees = np.arange(COLDEST_C, WARMEST_C + 1, dtype=np.float64)
    above = np.maximum(degrees - plant.free_c, 0.0)
    chiller = np.where(above > 0, plant.chiller + plant.per_degree * above, 0.0)
    fans = plant.running + plant.fixed * full_w / np.maximum(loads, STEP_W)
    pue = np.rint(ONE * (1 + fans[:, None] + chiller[None, :])).astype(np.int64)
    return Cooling(name, np.minimum(pue, MOST_PUE), COLDEST_C)


def constant(pue: int) -> Cooling:
    """The same PUE, in thousandths, at all times."""
    return Cooling(f"{pue / ONE:g}", np.full((1, 1), pue, np.int64))
