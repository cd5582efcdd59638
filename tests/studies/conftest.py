"""What the tests of engines share."""

from __future__ import annotations

import pytest

from dovetail.studies.store import Store
from dovetail.studies.task import plain
from dovetail.studies.worker import run_batch
from tests.studies.small import prepared, written


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of the small study, run in this process and without any executor."""
    folder = tmp_path_factory.mktemp("undisturbed")
    store = Store(folder / "study.store")
    tasks = prepared(written(folder), store)
    run_batch(str(store.path), [plain(task) for task in tasks])
    return store.digest()
