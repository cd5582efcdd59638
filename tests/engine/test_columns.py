"""What a workload says of its jobs reaches policies, whole and event by event."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dovetail.api import generate
from dovetail.arrays import Floats
from dovetail.engine.replay import replay
from dovetail.model.state import State
from dovetail.policies.lists import ListPolicy


def highest_first(state: State) -> Floats:
    assert set(state.columns) >= {"priority", "qos"}
    with pytest.raises(ValueError, match="read-only"):
        state.columns["priority"][0] = 1
    return -state.columns["priority"][state.waiting].astype(np.float64)


def test_an_order_by_priority() -> None:
    """Four jobs fill the machine one after the other: the first to come, then by priority."""
    rows = {"id": [1, 2, 3, 4], "submit": [0, 1, 2, 3], "size": [4] * 4, "runtime": [9] * 4, "limit": [9] * 4}
    rows |= {"priority": [0, 5, 7, 6], "qos": [0, 1, 0, 1]}
    workload = replace(generate(4, 4), columns={name: np.array(values) for name, values in rows.items()})
    for by_event in (False, True):
        made = replay(workload, ListPolicy(highest_first), event_by_event=by_event)
        assert made.start.tolist() == [0, 27, 9, 18]
