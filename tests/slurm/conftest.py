"""The real Slurms of these tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.slurm.real import RealSlurm, clusters


@pytest.fixture(scope="session")
def slurm() -> Iterator[Callable[[str], RealSlurm]]:
    """The real cluster of a version: one of each for all tests."""
    yield from clusters()
