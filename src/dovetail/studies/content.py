"""From runs to what a page shows: cases, means over runs, and comparisons with the baseline, pair by pair."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import fsum, isnan, nan
from typing import Any, Final

import numpy as np

from dovetail.errors import SettingError
from dovetail.metrics.comparison import Comparison, block_length, compare_all
from dovetail.metrics.exact import Floats
from dovetail.metrics.groups import by_group, users, weeks
from dovetail.metrics.jobs import outcomes
from dovetail.metrics.summary import summarize
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Workload
from dovetail.reports.content import Case, Content, Entry
from dovetail.studies.store import FACTS, Store

PAIRINGS: Final = ("runs", "weeks", "users")
"""What makes a pair: the same span and seed; a week of the same replay; a user of it."""

IN_GROUPS: Final = ("mean_wait_s", "bsld", "af_s", "awf_s", "p2sf_s")
"""Metrics that are compared by week and by user."""

IN_RUNS: Final = (*IN_GROUPS, "wait_p95_s", "max_wait_s", "utilization")
"""Metrics that are compared by run."""

HIGHER: Final = ("utilization",)
"""Metrics of which more is better."""

ENOUGH: Final = 6
"""From so many runs on, runs are the natural pairs."""

Row = Mapping[str, Any]
Key = tuple[str, int]
"""Span and seed of a run: under another policy, the same ones make its pair."""


def content(store: Store, pair: str = "", command: str = "") -> Content:
    """All cases of the study that a store holds, compared over `pair` (one of PAIRINGS; empty: what fits best)."""
    if pair and pair not in PAIRINGS:
        raise SettingError(f"no pairing {pair!r}: choose one of {', '.join(PAIRINGS)}")
    about = store.study()
    by_name: dict[str, Row] = {row["run"]: row for row in store.frame(set(about["runs"])).iter_rows(named=True)}
    rows = [by_name[name] for name in about["runs"] if name in by_name]
    if not rows:
        raise SettingError(f"{store.path} has no run of its study yet: `dovetail study run` makes them")
    grouped: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        grouped.setdefault((row["trace"], row["scenario"], row["estimate"]), []).append(row)
    notes, codes = [], sorted({row["code"] for row in rows})
    if gone := len(about["runs"]) - len(rows):
        notes.append(f"{gone:,} of {len(about['runs']):,} cells are missing: they failed or have not run yet.")
    if len(codes) > 1:
        notes.append(f"The runs were made by {len(codes)} versions of the code; `dovetail study run` makes them anew.")
    logs = (store.workload(members[0]["workload_sha256"]) for members in grouped.values())
    return Content(
        title=about["name"],
        cases=tuple(_case(store, members, about["baseline"], pair) for members in grouped.values()),
        command=command,
        notes=tuple(notes),
        thanks=tuple(dict.fromkeys(filter(None, (log.provenance.acknowledge for log in logs)))),
        provenance={"runs": f"{len(rows):,}", "code": ", ".join(codes), "versions": _listed(rows)},
    )


def _listed(rows: Sequence[Row]) -> str:
    """The versions that made the runs, each combination once."""
    found = dict.fromkeys(row["versions"] for row in rows)
    return "; ".join(", ".join(f"{name} {version}" for name, version in json.loads(one).items()) for one in found)


def _case(store: Store, rows: Sequence[Row], baseline: str, pair: str) -> Case:
    """Runs that differ only in policy, span and seed."""
    by_policy: dict[str, dict[Key, Row]] = {}
    jobs: dict[Key, int] = {}
    for row in rows:
        key = (row["span"], row["seed"])
        by_policy.setdefault(row["policy"], {})[key] = row
        jobs[key] = row["jobs"]
    spans = list(dict.fromkeys(span for span, _ in jobs))
    pairing = pair or ("runs" if len(jobs) >= ENOUGH else "weeks")
    policies = sorted(by_policy, key=lambda policy: policy != baseline)  # the baseline first, the others as they are
    shared = [key for key in jobs if pairing == "runs" or all(key in runs for runs in by_policy.values())]
    tables = {policy: _table(store, by_policy[policy], shared, pairing) for policy in policies}
    versus = against(tables, pairing)
    shown = max(jobs, key=lambda key: (sum(key in runs for runs in by_policy.values()), jobs[key]))
    first = [work for span in spans if (work := _workload(store, rows, span))]
    detail = (rows[0]["scenario"], f"{len(spans)} spans" if len(spans) > 1 else "" if spans == ["all"] else spans[0])
    return Case(
        trace=rows[0]["trace"],
        estimate=rows[0]["estimate"],
        jobs=sum(len(work) for work in first),
        processors=rows[0]["processors"],
        span_s=sum(int(work.submit[-1] - work.submit[0]) for work in first),
        entries=tuple(
            Entry(
                policy,
                means([*by_policy[policy].values()]),
                len(by_policy[policy]),
                versus.get(policy, {}),
                _reader(store, by_policy[policy].get(shown)),
            )
            for policy in policies
        ),
        pairing=paired_over(versus, pairing if pairing != "runs" else "spans" if len(spans) == len(jobs) else "seeds"),
        detail=", ".join(filter(None, detail)),
    )


def of_schedules(schedules: Sequence[Schedule], pair: str = "weeks", counting: str = "all") -> Case:
    """One case of schedules of the same workload under different policies; the first is the baseline."""
    if pair not in PAIRINGS[1:]:
        raise SettingError(f"no pairing {pair!r} of single replays: choose one of {', '.join(PAIRINGS[1:])}")
    first = schedules[0]
    tables = {one.policy: groups(one, pair, counting) for one in schedules}
    versus = against(tables, pair)
    return Case(
        trace=first.workload.name,
        estimate=first.estimate,
        jobs=len(first.workload),
        processors=first.cluster.processors,
        span_s=int(first.workload.submit[-1] - first.workload.submit[0]),
        entries=tuple(
            Entry(one.policy, summarize(one, counting=counting), 1, versus.get(one.policy, {}), partial(_itself, one))
            for one in schedules
        ),
        pairing=paired_over(versus, pair),
    )


def _itself(schedule: Schedule) -> Schedule:
    return schedule


def _workload(store: Store, rows: Sequence[Row], span: str) -> Workload:
    return store.workload(next(row["workload_sha256"] for row in rows if row["span"] == span))


def _reader(store: Store, row: Row | None) -> Callable[[], Schedule] | None:
    if row is None or row["keep"] != "starts":
        return None

    def read() -> Schedule:
        schedule = store.schedule(row["run"])
        assert schedule is not None  # noqa: S101 - its starts were kept
        return schedule

    return read


def _table(store: Store, runs: Mapping[Key, Row], keys: Sequence[Key], pairing: str) -> dict[str, Floats]:
    """Metrics of one policy, one value per pair, by metric. A run that is missing has nan."""
    if pairing == "runs":
        return {m: np.array([runs[key][m] if key in runs else nan for key in keys], np.float64) for m in IN_RUNS}
    if not keys or any(row["keep"] != "starts" for row in runs.values()):
        return {}
    parts = []
    for key in keys:
        schedule = store.schedule(runs[key]["run"])
        assert schedule is not None  # noqa: S101 - its starts were kept
        parts.append(groups(schedule, pairing, runs[key]["counting"]))
    return {metric: np.concatenate([part[metric] for part in parts]) for metric in IN_GROUPS}


def groups(schedule: Schedule, pairing: str, counting: str = "all") -> dict[str, Floats]:
    """Metrics of the weeks or users of a schedule, one value each."""
    group, names = (weeks if pairing == "weeks" else users)(schedule, counting)
    found = by_group(outcomes(schedule, counting), group, len(names))
    return {metric: found[metric] for metric in IN_GROUPS}


def against(tables: Mapping[str, Mapping[str, Floats]], pairing: str) -> dict[str, dict[str, Comparison]]:
    """Every policy but the first against the first, on every metric; one family for Holm's correction."""
    (_, base), *others = tables.items()
    pairs = {
        (policy, metric): (base[metric], table[metric])
        for policy, table in others
        for metric in table
        if metric in base
    }
    block = block_length(max((len(one) for one, _ in pairs.values()), default=1)) if pairing == "weeks" else 1
    higher = [key for key in pairs if key[1] in HIGHER]
    found: dict[str, dict[str, Comparison]] = {}
    for (policy, metric), comparison in compare_all(pairs, higher_is_better=higher, block=block).items():
        found.setdefault(policy, {})[metric] = comparison
    return found


def paired_over(versus: Mapping[str, Mapping[str, Comparison]], word: str) -> str:
    """What the comparisons are paired over, in words; empty where no comparison has an interval."""
    counts = [one.pairs for table in versus.values() for one in table.values() if not isnan(one.low)]
    return f"{max(counts):,} {word}" if counts else ""


def means(rows: Sequence[Row]) -> dict[str, float]:
    """The mean over runs of everything that is a metric; nan where no run has a number."""
    keys = [key for key, value in rows[0].items() if key not in FACTS and isinstance(value, int | float)]
    values = {key: [float(row[key]) for row in rows if not isnan(row[key])] for key in keys}
    return {key: fsum(some) / len(some) if some else nan for key, some in values.items()}
