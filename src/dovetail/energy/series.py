"""A number that changes with time: a price, a temperature, the carbon of a kilowatt-hour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.errors import SettingError

HOUR_S: Final = 3600
MOST_STEPS: Final = 10**7
"""Steps of a series in one schedule: a thousand years of hours."""


@dataclass(frozen=True)
class Hours:
    """One whole number for each step of time, the first from `begin` on. Before and after, they repeat themselves."""

    values: Ints
    begin: int = 0
    step_s: int = HOUR_S

    def __post_init__(self) -> None:
        if not len(self.values) or self.step_s < 1:
            raise ValueError("a series has at least one value, and steps of at least 1 s")

    @property
    def constant(self) -> bool:
        """Whether it is the same at all times."""
        return not bool((self.values != self.values[0]).any())

    def at(self, times: Ints) -> Ints:
        """What holds at each instant."""
        found: Ints = self.values[(times - self.begin) // self.step_s % len(self.values)]
        return found

    def changes(self, first: int, last: int) -> Ints:
        """The instants after `first` and before `last` at which a step begins; none where all values are equal."""
        if self.constant:
            return np.empty(0, np.int64)
        if last - first > MOST_STEPS * self.step_s:
            raise SettingError(f"from {first:,} s to {last:,} s are more than {MOST_STEPS:,} steps of {self.step_s} s")
        begin = first + self.step_s - (first - self.begin) % self.step_s
        return begin + self.step_s * np.arange(max(0, -(-(last - begin) // self.step_s)))


def always(value: int) -> Hours:
    """The same at all times."""
    return Hours(np.array([value], np.int64))
