"""How near our rules are to a real Slurm's, decision by decision.

    python -m benchmarks.fidelity collect mixed --out mixed-22.05.json.xz [--version 22.05] [--speed 20] [--jobs 250]
        [--quiet] [--history mixed-22.05.history.json.xz]
    python -m benchmarks.fidelity agree FILE ... [--differ 20]
    python -m benchmarks.fidelity priorities FILE ... [--differ 20]
    python -m benchmarks.fidelity free FILE ...
    python -m benchmarks.fidelity changes [FOLDER]

The first submits a workload to a real cluster of 64 nodes and keeps what was decided. The second puts the state just
before each decision together and lets our rules decide. The third does so for the priorities of jobs. The fourth
replays all jobs, from 20 phases of the backfill's clock, and compares waits with those of the real runs: all files are
runs of one workload. The last says what `dovetail whatif` predicted of changes, beside what real runs then did.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

from benchmarks.fidelity.agree import Counts, agreement, settings_of
from benchmarks.fidelity.changes import RUNS, Told, told
from benchmarks.fidelity.collect import NODES, collect, history, started
from benchmarks.fidelity.digest import pack, read
from benchmarks.fidelity.free import free
from benchmarks.fidelity.priorities import ranked
from benchmarks.fidelity.workloads import KINDS
from scipy.stats import binomtest
from tests.slurm.real import ROOTS, SUITES

RECORDED = Path(__file__).parent / "recorded"
CHANGED = ("mixed", "wide")


def _row(name: str, one: Counts) -> str:
    low, high = binomtest(one.ours_too, max(one.theirs, 1)).proportion_ci(method="wilson")
    counts = f"{one.theirs:>8,}{one.ours_too:>8,}{one.same_nodes:>12,}{one.only_ours:>11,}"
    return f"  {name:<10}{counts}   {100 * low:.1f} to {100 * high:.1f} %"


def agree(files: list[Path], differ: int) -> None:
    for file in files:
        digest = read(file)
        found = agreement(digest, settings_of(digest))
        slowest = max((one.took_s for one in digest.cycles), default=0)
        yields = sum(one.yields for one in digest.cycles)
        print(f"{digest.workload} on {digest.version}, {digest.speed} times as fast: {found.cycles:,} cycles,")
        print(f"the slowest {slowest:.1f} s, {yields} yields; {found.passes:,} passes; {found.unknown:,} not known")
        print(f"  {'':<10}{'theirs':>8}{'ours':>8}{'same nodes':>12}{'ours alone':>11}   95 % interval of ours")
        for name, one in (("main loop", found.main), ("backfill", found.backfill), ("planned", found.planned)):
            print(_row(name, one))
        print(f"  {found.apart} cycles and passes differ, {found.at_an_end} of them just after the end of a job")
        for line in found.differ[:differ]:
            print(f"    {line[:200]}")


def ranks(files: list[Path], differ: int) -> None:
    for file in files:
        digest = read(file)
        found = ranked(digest)
        print(
            f"{digest.workload} on {digest.version}: {found.same:,} of {found.seen:,} different priorities of jobs are"
            f" ours, too, worked out at {found.moments:,} moments"
        )
        for line in found.differ[:differ]:
            print(f"    {line}")


def compare(files: list[Path]) -> None:
    digests = [read(file) for file in sorted(files)]
    found = free(digests)
    real, ours = found.means()
    ratio, low, high = found.ratio()
    print(f"{digests[0].workload}: {found.jobs:,} jobs, {len(real)} real runs, {len(ours)} of ours")
    for name, means in (("real", real), ("ours", ours)):
        spread = f", from {means.min():,.0f} to {means.max():,.0f} s, deviation {means.std(ddof=len(means) > 1):,.0f} s"
        print(f"  {name}: mean wait {means.mean():,.0f} s{spread}")
    print(
        f"  ratio {ratio:.3f}" + (f", 95 % interval {low:.3f} to {high:.3f}" if len(real) > 1 else ", of one real run")
    )
    for name, many, theirs, mine in found.classes():
        print(f"    {name:<10}{many:>6,} jobs{theirs:>10,.0f} s{mine:>10,.0f} s")


def foretold(folder: Path) -> None:
    every = list[Told]()
    for kind in CHANGED:
        for (question, name), one in told(folder, kind).items():
            print(f"{kind}, {question}, {name}: {one.jobs} jobs, mean wait {one.before_s:,.0f} s before")
            print(f"  real change {one.real_s:+,.0f} s, 95 % interval {one.real_s - one.margin_s:+,.0f} to"
                  f" {one.real_s + one.margin_s:+,.0f} s")  # fmt: skip
            for mean, low, high in one.predicted:
                print(f"  predicted {mean:+,.0f} s, {low:+,.0f} to {high:+,.0f} s")
            print(f"  sign right in {one.signs} of {len(one.predicted)}, real change inside in {one.inside}")
            every.append(one)
    clear = [one for one in every if one.tells]
    signs, inside = sum(one.signs for one in clear), sum(one.inside for one in every)
    print(
        f"{len(every)} changes. The real runs can tell {len(clear)}: there the sign is right in {signs} of"
        f" {len(RUNS) * len(clear)} predictions. The real change is inside in {inside} of {len(RUNS) * len(every)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fidelity")
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("collect")
    one.add_argument("workload", choices=sorted(KINDS))
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--version", choices=sorted(SUITES), default="22.05")
    one.add_argument("--speed", type=int, default=20)
    one.add_argument("--jobs", type=int, default=0, help="calls of sbatch; 0: those of the workload")
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--quiet", action="store_true", help="the log tells of no cycles")
    one.add_argument("--nodes", type=int, default=NODES)
    one.add_argument("--parameters", default="", help="SchedulerParameters beside those of all runs")
    one.add_argument(
        "--history", type=Path, help="a file for what import-slurm reads of the run; --out then has no decisions"
    )
    other = verbs.add_parser("agree")
    other.add_argument("files", type=Path, nargs="+")
    other.add_argument("--differ", type=int, default=0)
    third = verbs.add_parser("priorities")
    third.add_argument("files", type=Path, nargs="+")
    third.add_argument("--differ", type=int, default=0)
    beside = verbs.add_parser("free")
    beside.add_argument("files", type=Path, nargs="+")
    last = verbs.add_parser("changes")
    last.add_argument("folder", type=Path, nargs="?", default=RECORDED)
    given = parser.parse_args()
    if given.verb == "changes":
        foretold(given.folder)
        return
    if given.verb == "free":
        compare(given.files)
        return
    if given.verb == "priorities":
        ranks(given.files, given.differ)
        return
    if given.verb == "agree":
        agree(given.files, given.differ)
        return
    root = ROOTS / SUITES[given.version] if SUITES[given.version] else None
    folder = Path(f"/tmp/fidelity-{os.getpid()}")  # noqa: S108
    slurm = started(
        folder, given.version, given.speed, root, given.workload, given.quiet, given.nodes, given.parameters
    )  # fmt: skip
    try:
        digest = collect(slurm, given.workload, given.jobs, given.seed)
        if given.history:
            pack(given.history, history(slurm, int(min(at for at, *_ in digest.events)) - 60))
            digest = replace(digest, cycles=[], priorities=[], had={})
        digest.write(given.out)
    finally:
        slurm.wipe()


if __name__ == "__main__":
    main()
