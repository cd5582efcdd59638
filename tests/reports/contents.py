"""Contents of pages for the tests: small, made by hand, with numbers that are easy to find again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan

import numpy as np

from dovetail.metrics import summarize
from dovetail.metrics.comparison import Comparison
from dovetail.model.cluster import Cluster
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Provenance, Workload
from dovetail.reports.page_data import Case, Content, Entry

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "_hidden $x_1$ {{ 7*7 }} 日本",
    "]]></svg><!-- \x00 \u202e & &lt; -->",
)


def compared(change: float, verdict: str, half: float = 0.05) -> Comparison:
    """A comparison of 48 pairs with that change, give or take `half`."""
    low, high = change - half, change + half
    return Comparison(48, 100.0, 100.0 * (1 + change), change, low, high, 0.95, 0.001, 0.01, 0.0, verdict)


def schedule(policy: str, seed: int, jobs: int = 300, days: int = 40, mean_wait_s: float = 4000) -> Schedule:
    """Small jobs on a cluster that has room for nearly all of them; some of them wait, as long as chance has it."""
    chance = np.random.default_rng(1)  # the jobs are the same under all policies
    submit = np.sort(chance.integers(0, days * 86400, jobs))
    runtime = np.rint(chance.lognormal(7, 1.5, jobs)).astype(np.int64).clip(1, 3 * 86400)
    size = np.int64(2) ** chance.integers(0, 6, jobs)
    columns = {"id": np.arange(1, jobs + 1), "submit": submit, "size": size, "runtime": runtime, "limit": 2 * runtime}
    columns["user"] = chance.integers(0, 5, jobs)
    workload = Workload("made", columns, 512, Provenance("made"))
    own = np.random.default_rng(seed + 100)
    wait = np.rint(own.exponential(mean_wait_s, jobs)).astype(np.int64) * (own.random(jobs) < 0.6)
    none = np.full(jobs, -1, np.int64)
    return Schedule(workload, Cluster(512), policy, "limit", submit + wait, submit, none, none, jobs)


def entry(policy: str, metrics: Mapping[str, float], versus: Mapping[str, Comparison] | None = None) -> Entry:
    return Entry(policy, metrics, 48, versus or {})


def drawn(policy: str, seed: int, versus: Mapping[str, Comparison] | None = None, jobs: int = 300) -> Entry:
    """A policy whose schedule was kept, with its true metrics."""
    made = schedule(policy, seed, jobs, mean_wait_s=4000 + 900 * seed)
    return Entry(policy, summarize(made), 1, versus or {}, lambda: made)


def case(entries: Sequence[Entry], trace: str = "KTH-SP2", *, pairing: str = "48 weeks", detail: str = "") -> Case:
    return Case(trace, "limit", 28481, 100, 29_000_000, tuple(entries), pairing, detail)


def typical(policies: Sequence[str] = ("easy", "easy-sjbf", "conservative", "list-saf"), jobs: int = 300) -> Case:
    """A case with schedules and all verdicts."""
    found = [drawn(policies[0], 0, jobs=jobs)]
    for at, policy in enumerate(policies[1:], 1):
        verdict = ("better", "worse", "unclear")[at % 3]
        versus = {
            "mean_wait_s": compared(-0.14, "better"),
            "bsld": compared((-1) ** at * 0.2, verdict),
            "p2sf_s": compared(2.5 * at, "worse", 0.7),
        }
        found.append(drawn(policy, at, versus, jobs))
    return case(found)


def page(*cases: Case) -> Content:
    return Content(
        "Four policies",
        cases,
        command="dovetail report study.toml",
        notes=("One run failed.",),
        thanks=("Lars Malinowsky",),
        provenance={"dovetail": "0.1.0"},
    )


def hostile() -> Content:
    """A page on which all that others may name is named with ill intent."""
    first, *others = typical(HOSTILE).entries
    lost = entry("<b>lost</b>", {"mean_wait_s": nan})
    bad = case([first, *others, lost], HOSTILE[0], pairing=HOSTILE[1], detail=HOSTILE[2])
    return Content(HOSTILE[0], (bad, bad), HOSTILE[0], HOSTILE, HOSTILE, {HOSTILE[0]: HOSTILE[1]})


if __name__ == "__main__":  # the same bytes in another process: see test_page.py
    import sys

    from dovetail.reports.page import render

    sys.stdout.buffer.write(render(page(typical())).encode())
