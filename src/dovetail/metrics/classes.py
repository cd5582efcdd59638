"""Jobs by class: short or long by run time, narrow or wide by size."""

from __future__ import annotations

from typing import Final

from dovetail.arrays import Mask
from dovetail.metrics.jobs import Outcomes

CLASSES: Final = ("short_narrow", "short_wide", "long_narrow", "long_wide")

SHORT_S: Final = 3600
"""A job of up to this many seconds of run time is short."""

NARROW: Final = 8
"""A job of up to this many processors is narrow."""


def classes(jobs: Outcomes, short_s: int = SHORT_S, narrow: int = NARROW) -> dict[str, Mask]:
    """The jobs of each class, as masks in the order of CLASSES. Every job is in exactly one."""
    short, thin = jobs.runtime <= short_s, jobs.size <= narrow
    masks = (short & thin, short & ~thin, ~short & thin, ~short & ~thin)
    return dict(zip(CLASSES, masks, strict=True))
