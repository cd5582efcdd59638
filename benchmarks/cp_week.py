"""CP-SAT as a policy over one week of KTH-SP2 and of CTC-SP2: examples/studies/cp-week.toml, and a page of it.

python benchmarks/cp_week.py STORE [--page docs/results/cp-week.md] [--only-page]

Stop it and run it again: only what is missing from the store is run, by one worker, and without the probes of
`dovetail study run`, which would take as long as the runs themselves.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np

from dovetail.engine.replay import replay
from dovetail.io.read import read_workload
from dovetail.policies.registry import policy
from dovetail.studies.executors import engine
from dovetail.studies.grid import tasks_of
from dovetail.studies.runner import run_missing, warm_up
from dovetail.studies.spec import read_study
from dovetail.studies.store import Store
from dovetail.workloads.filters import clean

ROOT = Path(__file__).resolve().parents[1]
TRACES = Path(os.environ.get("DOVETAIL_TRACES", ROOT.parent / "shared" / "traces"))
STUDY = ROOT / "examples" / "studies" / "cp-week.toml"
WEEK_S = 7 * 86_400
LEAST = 300
RULE = f"the week in the first half of the log with the fewest jobs, of those with at least {LEAST}"
COLUMNS = {"af_s": "AF", "awf_s": "AWF", "bsld": "BSLD", "p2sf_s": "P2SF", "max_wait_s": "longest wait"}


def week(name: str) -> dict[str, Any]:
    """The week that the rule chooses: its span, its jobs, and its mean queue under list-reg, told the run times."""
    log = clean(read_workload(TRACES / "papers" / f"{name}.swf.gz"), ["standard"])
    first = int(log.submit[0])
    number = (log.submit - first) // WEEK_S
    jobs = np.bincount(number)[: int(number[-1]) // 2]
    chosen = min((count, at) for at, count in enumerate(jobs.tolist()) if count >= LEAST)[1]
    begin, end = first + chosen * WEEK_S, first + (chosen + 1) * WEEK_S
    start = replay(log, policy("list-reg"), estimate="runtime").start
    waited = np.clip(np.minimum(start, end) - np.maximum(log.submit, begin), 0, None)
    span = f"{begin // 86_400}d..{end // 86_400}d"
    return {"trace": name, "span": span, "jobs": int(jobs[chosen]), "queue": float(waited.sum() / WEEK_S)}


def run(store: Store) -> None:
    """Run the cells that are missing."""
    study = read_study(STUDY)
    store.create()
    tasks = tasks_of(study, STUDY, store.keep)
    warm_up(tasks, print)
    store.write_study(study, STUDY.read_text(encoding="utf-8"), [task.name for task in tasks])
    alike = {task.name: 60.0 for task in tasks}  # cells of about a minute: one batch each
    outcome = run_missing(tasks, store, engine("local", 1, store.path.resolve()), alike)
    if outcome.failed:
        raise SystemExit(f"failed: {outcome.failed}")


def table(rows: list[dict[str, Any]]) -> list[str]:
    """One line per policy, in percent of list-reg."""
    base = next(row for row in rows if row["policy"] == "list-reg")
    lines = [f"| policy | {' | '.join(COLUMNS.values())} | CPU (s) |", "|---" * (len(COLUMNS) + 2) + "|"]
    for row in rows:
        shares = [f"{100 * row[key] / base[key]:.1f}" for key in COLUMNS]
        lines.append(f"| `{row['policy']}` | {' | '.join(shares)} | {row['cpu_s']:.1f} |")
    return lines


def idling(runs: list[dict[str, Any]]) -> list[str]:
    """`cp-p2sf` that may idle on purpose, in percent of the one that may not."""
    lines = ["| log | estimate | P2SF | AF | BSLD | longest wait |", "|---|---|---|---|---|---|"]
    cells = {(row["trace"], row["estimate"], row["policy"]): row for row in runs}
    for (trace, estimate, name), may in cells.items():
        if name.endswith("idle=yes"):
            not_so = cells[trace, estimate, name.replace("idle=yes", "idle=no")]
            shares = [f"{100 * may[key] / not_so[key]:.1f}" for key in ("p2sf_s", "af_s", "bsld", "max_wait_s")]
            lines.append(f"| {trace} | {estimate} | {' | '.join(shares)} |")
    return ["`cp-p2sf` with `idle=yes`, in percent of `idle=no`:", "", *lines]


def page(store: Store, weeks: list[dict[str, Any]]) -> str:
    """The page, from what is in the store."""
    names = store.study()["runs"]
    found = {row["run"]: row for row in store.frame(set(names)).to_dicts()}
    runs = [found[name] for name in names if name in found]
    cpu_s = sum(row["cpu_s"] for row in runs)
    lines = [
        "# CP-SAT as a policy: one week of two machines",
        "",
        "[The solver as a policy](../solvers.md#cp-sat-as-a-policy), beside [the planner](../planner.md) with its",
        "defaults and `list-reg`. All numbers are in percent of `list-reg` on the same week with the same estimates;",
        "lower is better. One week is one sample: nothing here is a claim about other weeks.",
        "",
        f"The weeks: {RULE}.",
        "They are light, so that the study stays short: busier weeks may come out differently. Each is replayed",
        "alone, on a machine that begins empty. On CTC-SP2 the limit of a pass is a tenth of that on KTH-SP2, and the",
        "longest cells (`cp-bsld+`, `cp-p2sf+`, `cp-p2sf` with limits) are left out, for the same reason: the machines",
        "do not compare. CPU seconds are rough: the machine was shared, and the first cell of a worker loads kernels.",
        "",
        "| log | span | jobs | mean queue in the whole log under `list-reg` |",
        "|---|---|---|---|",
        *(f"| {one['trace']} | {one['span']} | {one['jobs']} | {one['queue']:.1f} |" for one in weeks),
        "",
    ]
    for trace, estimate in dict.fromkeys((row["trace"], row["estimate"]) for row in runs):
        told = {"runtime": "run times known", "limit": "estimates are the limits"}[estimate]
        rows = [row for row in runs if (row["trace"], row["estimate"]) == (trace, estimate)]
        lines += [f"## {trace}, {told}", "", *table(rows), ""]
    lines += ["## Does idling on purpose help?", "", *idling(runs), ""]
    lines += [
        "## Made with",
        "",
        "```",
        "python benchmarks/cp_week.py cp-week.store --page docs/results/cp-week.md",
        "```",
        "",
        f"{len(runs)} of {len(names)} cells have been run, in {cpu_s / 60:.0f} minutes of CPU with one worker. The",
        "study is `examples/studies/cp-week.toml`. The logs are from the Parallel Workloads Archive; thanks go to",
        "Lars Malinowsky (KTH-SP2), and to Dan Dwyer and Steve Hotovy (CTC-SP2).",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--only-page", action="store_true", help="write it from what is in the store; run nothing")
    args = parser.parse_args()
    weeks = [week(name) for name in ("KTH-SP2", "CTC-SP2")]
    for one in weeks:
        print(f"{one['trace']}: {RULE}: {one['span']}, {one['jobs']} jobs, mean queue {one['queue']:.1f}", flush=True)
    if sorted(one["span"] for one in weeks) != sorted(read_study(STUDY).spans):
        raise SystemExit(f"{STUDY} has other spans")
    store = Store(args.store)
    if not args.only_page:
        run(store)
    if args.page:
        args.page.write_text(page(store, weeks), encoding="utf-8")


if __name__ == "__main__":
    main()
