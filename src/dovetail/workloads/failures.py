"""Failures of nodes, drawn: each node works for a time, fails, is repaired, and so on."""

from __future__ import annotations

import numpy as np

from dovetail.errors import SettingError
from dovetail.model.cluster import Outage

MOST = 1_000_000
"""Failures that are drawn at most."""


def failures(nodes: int, span_s: int, between_s: int, repair_s: int, seed: int = 0) -> tuple[Outage, ...]:
    """What fails in so many seconds. Times to failure and to repair are exponential, with these means, and at least a
    second; nodes fail on their own. The same seed draws the same."""
    if min(nodes, span_s, between_s, repair_s) < 1:
        raise SettingError("failures: nodes, span, time between failures and time to repair are at least 1")
    if nodes * (span_s / between_s) > MOST or nodes > MOST:
        raise SettingError(f"failures: more than {MOST:,} nodes or failures")
    rng = np.random.Generator(np.random.PCG64([seed, nodes]))
    found = []
    for node in range(nodes):
        at = 1 + int(rng.exponential(between_s))
        while at < span_s:
            end = at + 1 + int(rng.exponential(repair_s))
            found.append(Outage((node,), at, end, fails=True))
            at = end + 1 + int(rng.exponential(between_s))
    return tuple(sorted(found, key=lambda one: (one.begin, one.nodes)))
