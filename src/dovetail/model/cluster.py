"""Cluster: the capacity that jobs run on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cluster:
    """A counted cluster: so many processors, any of which will do."""

    processors: int

    def __post_init__(self) -> None:
        if self.processors < 1:
            raise ValueError(f"a cluster has at least 1 processor, got {self.processors}")
