"""The real Slurms of these tests, and what was submitted to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pytest

from tests.slurm.real import RealSlurm, clusters
from tests.slurm.traps import Submitted, submit_all


@pytest.fixture(scope="package")
def slurm() -> Iterator[Callable[[str], RealSlurm]]:
    """The real cluster of a version: one of each for all tests here. With their fast clocks they are busy even when
    nothing is asked of them: they end with these tests."""
    yield from clusters()


@pytest.fixture(scope="package")
def trapped(slurm: Callable[[str], RealSlurm]) -> Callable[[str], tuple[RealSlurm, Submitted]]:
    """The same, with some 200 jobs that have ended."""

    @cache
    def of(version: str) -> tuple[RealSlurm, Submitted]:
        real = slurm(version)
        return real, submit_all(real)

    return of
