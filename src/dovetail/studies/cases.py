"""From runs to what a page shows: cases, means over runs, and comparisons with the baseline, pair by pair."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import fsum, isnan, nan
from pathlib import Path
from typing import Any, Final

import numpy as np

from dovetail.arrays import Floats
from dovetail.energy.site import Site
from dovetail.errors import SettingError
from dovetail.metrics.catalog import metric_of
from dovetail.metrics.comparison import Comparison, block_length, compare_all
from dovetail.metrics.groups import by_group, users, weeks
from dovetail.metrics.jobs import outcomes
from dovetail.metrics.summary import summarize
from dovetail.model.schedule import Schedule
from dovetail.reports.page_data import Case, Content, Entry
from dovetail.studies.store import FACTS, Store, cluster_of
from dovetail.units import duration

PAIRINGS: Final = ("runs", "weeks", "users")
"""What makes a pair: the same span and seed; a week of the same replay; a user of it."""

IN_GROUPS: Final = ("mean_wait_s", "bsld", "af_s", "awf_s", "p2sf_s")
"""Metrics that are compared by week and by user."""

IN_RUNS: Final = (*IN_GROUPS, "wait_p95_s", "max_wait_s", "utilization")
"""Metrics that are compared by run."""

ENOUGH: Final = 6
"""From this many runs on, runs are the natural pairs."""

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
    grouped: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        grouped.setdefault((row["trace"], row["scenario"], series(row["span"]), row["estimate"]), []).append(row)
    notes = []
    if gone := len(about["runs"]) - len(rows):
        notes.append(f"{gone:,} of {len(about['runs']):,} cells are missing: they failed or have not run yet.")
    if old := len(store.earlier() & by_name.keys()):
        made = f"{old:,} of {len(rows):,} runs were made by an earlier version of Dovetail"
        notes.append(f"{made}. `dovetail study run` makes them anew.")
    if (counting := rows[0]["counting"]) != "all":
        notes.append(f"Metrics over jobs count by the rule `{counting}`; pictures show all jobs.")
    if rows[0]["feedback"]:
        notes.append("User feedback is on: a job that the log links to an earlier one waits for it.")
    if rows[0]["every_s"]:
        notes.append(f"Passes happen only every {duration(rows[0]['every_s'])}.")
    logs = (store.workload(members[0]["workload_sha256"]) for members in grouped.values())
    return Content(
        title=about["name"],
        cases=tuple(
            _case(
                store,
                members,
                about["baseline"],
                pair,
                grouped.get((*key[:3], "limit"), ()) if key[3] != "limit" else (),
            )
            for key, members in grouped.items()
        ),
        command=command,
        notes=tuple(notes),
        thanks=tuple(dict.fromkeys(filter(None, (log.provenance.acknowledge for log in logs)))),
        provenance={"runs": f"{len(rows):,}", "code": rows[0]["code"], "versions": _listed(rows)},
    )


def write_page(store: Store, path: str | Path, pair: str = "") -> Content:
    """Write one self-contained page about all runs of a study. Returns what it shows."""
    from dovetail.reports.page import write

    shown = content(store, pair, command=f"dovetail report {store.path.name}" + (f" --pair {pair}" if pair else ""))
    write(shown, path)
    return shown


def _listed(rows: Sequence[Row]) -> str:
    """The versions that made the runs, each combination once."""
    found = dict.fromkeys(row["versions"] for row in rows)
    return "; ".join(", ".join(f"{name} {version}" for name, version in json.loads(one).items()) for one in found)


def series(span: str) -> str:
    """Spans that may stand together: the stretches of one length. `all` and a span by its ends stand alone."""
    return span if span == "all" or ".." in span else span.rpartition(" ")[0]


def _case(store: Store, rows: Sequence[Row], baseline: str, pair: str, limits: Sequence[Row]) -> Case:
    """Runs that differ only in policy, span and seed. `limits`: the same with limits as estimates."""
    by_policy: dict[str, dict[Key, Row]] = {}
    for row in rows:
        by_policy.setdefault(row["policy"], {})[row["span"], row["seed"]] = row
    policies, keys, remarks = _common(by_policy, baseline)
    different = _different([by_policy[policy] for policy in policies], keys)
    pairing = pair or ("runs" if len(different) >= ENOUGH else "weeks")
    if pairing != "runs" and (why := _unpairable(rows)):
        remarks.append(f"Nothing was compared by {pairing}: {why}.")
        different = []
    remarks += _foreseeing(p for p in policies if any(row.get("clairvoyant") for row in by_policy[p].values()))
    entire = {policy: not any(by_policy[policy][key]["jobs_unstarted"] for key in keys) for policy in policies}
    tables = {
        policy: _table(store, by_policy[policy], different, pairing) if entire[policy] else {} for policy in policies
    }
    versus = against(tables, pairing)
    base = by_policy[policies[0]]
    spans = {span: base[span, seed]["workload_sha256"] for span, seed in reversed(keys)}  # the first seed of each
    shown = max(keys, key=lambda key: base[key]["jobs"])
    works = [store.workload(sha256) for sha256 in spans.values()]
    detail = (rows[0]["scenario"], f"{len(spans)} spans" if len(spans) > 1 else next(iter(spans)).removeprefix("all"))
    unit = "spans" if len(spans) == len(keys) else "seeds" if len(spans) == 1 else "runs"
    return Case(
        trace=rows[0]["trace"],
        estimate=rows[0]["estimate"],
        jobs=sum(len(work) for work in works),
        processors=rows[0]["processors"],
        nodes=cluster_of(rows[0]["processors"], rows[0].get("cluster") or "").nodes,
        span_s=sum(int(work.submit[-1] - work.submit[0]) for work in works),
        entries=tuple(
            Entry(
                policy,
                means([by_policy[policy][key] for key in keys]),
                len(keys),
                versus.get(policy, {}),
                _reader(store, by_policy[policy][shown]),
            )
            for policy in policies
        ),
        pairing=paired_over(versus, unit if pairing == "runs" else pairing),
        detail=", ".join(filter(None, detail)),
        remarks=tuple(remarks),
        with_limits=next(
            (
                _reader(store, row)
                for row in limits
                if (row["policy"], row["span"], row["seed"]) == (policies[0], *shown)
            ),
            None,
        ),
    )


def _common(by_policy: Mapping[str, Mapping[Key, Row]], baseline: str) -> tuple[list[str], list[Key], list[str]]:
    """The policies, the baseline first; the spans and seeds that all of them have; and what had to be left out.

    Means over different runs cannot be compared. A policy that shares no run with those before it is left out.
    """
    remarks = []
    first = baseline if baseline in by_policy else next(iter(by_policy))
    if first != baseline:
        remarks.append(f"The baseline {baseline} has no run here: changes are against {first}.")
    policies, keys = [first], list(by_policy[first])
    for policy, runs in by_policy.items():
        both = [key for key in keys if key in runs]
        if policy != first and both:
            policies.append(policy)
            keys = both
        elif policy != first:
            remarks.append(f"{policy} is left out: it has no run with the same span and seed as the others.")
    every = {key for policy in policies for key in by_policy[policy]}
    if len(every) > len(keys):
        remarks.append(f"Only the {len(keys):,} of {len(every):,} spans and seeds that all policies have are counted.")
    return policies, keys, remarks


def _different(tables: Sequence[Mapping[Key, Row]], keys: Sequence[Key]) -> list[Key]:
    """The keys without repeats: a seed that changes nothing, neither jobs nor metrics, is no further observation."""
    seen: dict[object, Key] = {}
    for key in keys:
        told = tuple(repr([runs[key][fact] for fact in ("workload_sha256", *IN_RUNS)]) for runs in tables)
        seen.setdefault(told, key)
    return list(seen.values())


def _unpairable(rows: Sequence[Row]) -> str:
    """Why groups of jobs of these runs are no pairs; empty if they are."""
    if any(row["keep"] != "starts" for row in rows):
        return "the study kept metrics only, not the starts of jobs"
    if rows[0]["counting"] != "all":
        return f"under the rule `{rows[0]['counting']}`, policies count different jobs"
    if any(row.get("jobs_left") for row in rows):
        return "jobs left the queue, under each policy others"
    return ""


def of_schedules(schedules: Sequence[Schedule], pair: str = "weeks", site: Site | None = None) -> Case:
    """One case of schedules of the same workload under policies of different names; the first is the baseline, or
    what was recorded. With a `site`, its energy is measured too."""
    if not schedules:
        raise SettingError("no schedules: a case has at least one policy")
    if pair not in PAIRINGS[1:]:
        raise SettingError(f"no pairing {pair!r} of single replays: choose one of {', '.join(PAIRINGS[1:])}")
    schedules = sorted(schedules, key=lambda one: not one.recorded)  # what happened comes first
    first = schedules[0]
    tables = {one.policy: groups(one, pair) if (one.start >= 0).all() else {} for one in schedules}
    if len(tables) < len(schedules):
        raise SettingError("two of these policies have the same name")
    versus = against(tables, pair)
    return Case(
        trace=first.workload.name,
        estimate=first.estimate,
        jobs=len(first.workload),
        processors=first.cluster.processors,
        nodes=first.cluster.nodes,
        span_s=first.workload.span_s,
        entries=tuple(
            Entry(one.policy, summarize(one, site), 1, versus.get(one.policy, {}), partial(_itself, one))
            for one in schedules
        ),
        pairing=paired_over(versus, pair),
        remarks=tuple(_foreseeing(one.policy for one in schedules if one.clairvoyant)),
    )


def of_runs(runs: Mapping[str, Sequence[Schedule]], site: Site | None = None) -> Case:
    """One case of several workloads, each replayed under every policy, in the same order: each workload is a pair."""
    runs = dict(sorted(runs.items(), key=lambda of: not of[1][0].recorded))
    measured = {policy: [summarize(one, site) for one in schedules] for policy, schedules in runs.items()}
    tables = {
        policy: {}
        if any(row["jobs_unstarted"] for row in rows)
        else {metric: np.array([row[metric] for row in rows], np.float64) for metric in IN_RUNS}
        for policy, rows in measured.items()
    }
    versus = against(tables, "runs")
    first = next(iter(runs.values()))
    return Case(
        trace=", ".join(dict.fromkeys(one.workload.name for one in first)),
        estimate=first[0].estimate,
        jobs=sum(len(one.workload) for one in first),
        processors=first[0].cluster.processors,
        nodes=first[0].cluster.nodes,
        span_s=sum(one.workload.span_s for one in first),
        entries=tuple(
            Entry(policy, means(rows), len(rows), versus.get(policy, {}), partial(_itself, runs[policy][0]))
            for policy, rows in measured.items()
        ),
        pairing=paired_over(versus, "workloads"),
        detail=f"{len(first)} workloads",
        remarks=tuple(_foreseeing(policy for policy, schedules in runs.items() if schedules[0].clairvoyant)),
    )


def _foreseeing(policies: Iterable[str]) -> list[str]:
    """Which policies are no fair match for the others, as far as runs say it: older ones do not."""
    names = ", ".join(policies)
    return [f"Clairvoyant: {names}. The run times and the submissions to come are known there."] if names else []


def _itself(schedule: Schedule) -> Schedule:
    return schedule


def _reader(store: Store, row: Row) -> Callable[[], Schedule] | None:
    return partial(_schedule, store, row) if row["keep"] == "starts" else None


def _schedule(store: Store, row: Row) -> Schedule:
    schedule = store.schedule(row["run"])
    assert schedule is not None  # noqa: S101 - its starts were kept
    return schedule


def _table(store: Store, runs: Mapping[Key, Row], keys: Sequence[Key], pairing: str) -> dict[str, Floats]:
    """Metrics of one policy by name, one value per pair."""
    if not keys:
        return {}
    if pairing == "runs":
        return {metric: np.array([runs[key][metric] for key in keys], np.float64) for metric in IN_RUNS}
    parts = [groups(_schedule(store, runs[key]), pairing) for key in keys]
    return {metric: np.concatenate([part[metric] for part in parts]) for metric in IN_GROUPS}


def groups(schedule: Schedule, pairing: str) -> dict[str, Floats]:
    """Metrics of the weeks or users of a schedule, one value each, over all jobs."""
    group, names = (weeks if pairing == "weeks" else users)(schedule)
    found = by_group(outcomes(schedule), group, len(names))
    return {metric: found[metric] for metric in IN_GROUPS}


def against(tables: Mapping[str, Mapping[str, Floats]], pairing: str) -> dict[str, dict[str, Comparison]]:
    """Every policy but the first against the first, on every metric; one family for Holm's correction. A policy that
    did not start all jobs has no values to compare."""
    (_, base), *others = tables.items()
    pairs = {
        (policy, metric): (base[metric], table[metric])
        for policy, table in others
        for metric in table
        if metric in base
    }
    block = block_length(max((len(one) for one, _ in pairs.values()), default=1)) if pairing == "weeks" else 1
    higher = [key for key in pairs if metric_of(key[1]).more_is_better]
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
