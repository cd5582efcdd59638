"""Do two checkouts decide alike? Random replays in both, compared byte for byte: schedules, promises, metrics, energy.

    python benchmarks/same_schedules.py OTHER_CHECKOUT [--replays 200] [--seed 1]

Policies x machines x estimates x options are drawn at random. Both checkouts are asked through their command line,
so that rooms and names inside may differ as they like. Left out of the comparison: CPU times, peak memory, versions,
and the digest of the workload. Exit code 1 where anything differs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent.parent
PER_CASE: Final = 5
"""Policies of one case: they share a process and a workload."""
VOLATILE: Final = ("cpu_s", "peak_mb", "versions", "workload_sha256")

ORDERS: Final = ("fcfs", "sjf", "ljf", "saf", "laf", "spf", "small", "large", "wfp3", "unicef", "xfactor")
LISTS: Final = (
    *(f"{kind}-{order}" for kind in ("strict", "greedy", "list") for order in ORDERS),
    *(f"easy-{order}bf" for order in ORDERS), *(f"{order}-easy" for order in ORDERS),
    "easy", "easy-sjbf", "list-reg", "list:order=saf,reserve=3", "list:order=fcfs,reserve=first,backfill=saf",
    "list:order=sjf,starve=2h", "easy:relax=0.5", "list:reserve=2,slack=0.3", "list:order=wfp3,reserve=all,starve=1d",
)  # fmt: skip
PROMISING: Final = (
    "conservative", "conservative:sweep=by-start", "conservative:sweep=each-end", "dbf", "dbf:guard=no",
    "plan-deadline", "plan-deadline:patient=0",
)  # fmt: skip
PLANNERS: Final = (
    *(f"plan-{term}" for term in ("af", "awf", "bsld", "p2sf")), "plan:objective=awf,decodes=20,window=40",
    "plan:objective=bsld,foresight=0", "plan:objective=af,starve=none", "offline-awf:decodes=30",
)  # fmt: skip
SPENDING: Final = (
    "thrift", "thrift:saves=carbon,wait=2", "thrift:order=sjf,hold=12h", "plan:objective=cost,decodes=20",
    "plan:objective=carbon,wait=1,decodes=20", "plan:objective=profit,horizon=12h,decodes=20", "daily:search=multi",
    "daily:search=delay,decodes=20", "easy", "list-reg",
)  # fmt: skip
SOLVED: Final = ("cp-awf:deterministic=0.05", "cp-af:deterministic=0.05", "daily:search=cp,deterministic=0.05")
PLACED: Final = (
    *LISTS, "easy:place=scarce", "list:order=saf,place=worst", "sjf-easy:place=first",
    "plan-bsld:decodes=20,place=scarce",
    "plan-awf:decodes=20", "switch", "hcp19:window=10", "pcp19:window=8", "pcp21:window=8",
)  # fmt: skip
ESTIMATES: Final = (
    "limit", "limit", "runtime", "runtime*1.5", "runtime*0.8", "recent", "similar", "hierarchy", "survival",
    "neighbours", "online", "quantile", "quantile:level=0.5", "recent:jobs=3,correct=double",
)  # fmt: skip
NODES: Final = """
name = "mixed"
[[nodes]]
kind = "thin"
count = 6
cores = 8
memory_gb = 32
gpus = 0
[[nodes]]
kind = "fat"
count = 3
cores = 16
memory_gb = 128
gpus = 2
features = ["gpu"]
"""
SITE: Final = """
name = "a site"
currency = "EUR"
busy_w = 9.5
idle_w = 3.0
tariff = 0.02
[cooling]
plant = "air"
full_kw = 1
[temperature]
file = "hours.csv"
column = "temperature"
[price]
file = "hours.csv"
column = "price"
[carbon]
file = "hours.csv"
column = "carbon"
"""


@dataclass(frozen=True)
class Case:
    """One call of `dovetail replay`: the workload to generate, the policies, and all other arguments."""

    generate: tuple[str, ...]
    policies: tuple[str, ...]
    options: tuple[str, ...]

    @property
    def words(self) -> str:
        return " ".join((*self.generate, "|", *self.policies, "|", *self.options))


def cases(replays: int, seed: int, folder: Path) -> Iterator[Case]:
    """Random cases with this many replays in all."""
    rng = random.Random(seed)
    nodes, site = folder / "nodes.toml", folder / "site.toml"
    kinds = ("plain", "plain", "planned", "promises", "nodes", "site", "solved")
    done = 0
    while done < replays:
        kind = kinds[done // PER_CASE % len(kinds)]
        jobs = rng.choice((40, 150, 400)) if kind in ("plain", "promises", "planned") else rng.choice((30, 60))
        processors = 64 if kind in ("nodes", "site", "solved") else rng.choice((16, 64, 200))
        generate = (
            "--jobs", str(jobs), "--processors", str(processors),
            "--seed", str(rng.randrange(10**6)), "--kind", rng.choice(("both", "batch", "interactive")),
        )  # fmt: skip
        options = ["--seed", str(rng.randrange(100)), "--estimate", rng.choice(ESTIMATES)]
        options += ["--scenario", f"scale-load={rng.uniform(0.8, 2):.2f}"]
        choices: Sequence[str] = {
            "plain": LISTS, "planned": PLANNERS, "promises": PROMISING, "nodes": PLACED, "site": SPENDING,
            "solved": SOLVED,
        }[kind]  # fmt: skip
        if kind == "plain":
            options += rng.choice(((), (), ("--every", "10m"), ("--feedback",), ("--counting", "ended")))
        if kind == "promises":
            options[3] = "limit"
            options += ["--scenario", "deadlines=0.4"]
        if kind == "nodes":
            options += ["--cluster", str(nodes), "--scenario", f"per-node={rng.choice((4, 8))},memory=2"]
            options += rng.choice(((), ("--scenario", "demand=gpus:2")))
        if kind in ("site", "solved"):
            options[3] = rng.choice(("limit", "runtime"))
            options += ["--energy", str(site), *rng.choice(((), ("--scenario", "power=4..12")))]
        if kind == "site" and rng.random() < 0.3:
            choices, options = LISTS, [*options, "--power-cap", "0.5"]
        picked = rng.sample(sorted(choices), min(PER_CASE, len(choices), replays - done))
        yield Case(generate, tuple(picked), tuple(options))
        done += len(picked)


def hours(seed: int) -> str:
    """Four days of weather, prices and carbon, drawn at random; then they begin again."""
    rng = random.Random(seed)
    draw = ((-5, 35), (10, 200), (50, 600))
    lines = [
        f"2026-01-{1 + hour // 24:02}T{hour % 24:02}:00:00,"
        + ",".join(f"{rng.uniform(*between):.2f}" for between in draw)
        for hour in range(96)
    ]
    return "\n".join(("time,temperature,price,carbon", *lines)) + "\n"


def dovetail(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line of a checkout."""
    run = "from dovetail.cli.main import main; main()"
    place = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    return subprocess.run([sys.executable, "-c", run, *arguments], env=place, capture_output=True, text=True)


def answer(checkout: Path, case: Case, log: Path, folder: Path) -> list[dict[str, Any]]:
    """What a checkout makes of a case: a row for each policy, the schedule with it; or what it says of an error."""
    import polars as pl

    named = [word for name in case.policies for word in ("--policy", name)]
    done = dovetail(checkout, "replay", str(log), *named, *case.options, "--json", "--out", str(folder))
    if done.returncode:
        return [{"refused": done.stderr.strip().splitlines()[-1:]}]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    for row in rows:
        for key in VOLATILE:
            row.pop(key, None)
    kept = {file.name: pl.read_parquet(file).hash_rows(seed=1).to_list() for file in sorted(folder.glob("*.parquet"))}
    return [*rows, {"schedules": kept}]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("other", type=Path, help="another checkout of this repository")
    asked.add_argument("--replays", type=int, default=200)
    asked.add_argument("--seed", type=int, default=1)
    given = asked.parse_args()
    same = refused = compared = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "nodes.toml").write_text(NODES, encoding="utf-8")
        (folder / "site.toml").write_text(SITE, encoding="utf-8")
        (folder / "hours.csv").write_text(hours(given.seed), encoding="utf-8")
        for number, case in enumerate(cases(given.replays, given.seed, folder)):
            log = folder / f"{number}.swf"
            made = dovetail(given.other, "workload", "generate", str(log), *case.generate)
            if made.returncode:
                raise SystemExit(f"could not generate: {made.stderr}")
            roots = (given.other, HERE)
            found = [answer(root, case, log, folder / f"{number}-{side}") for side, root in enumerate(roots)]
            compared += len(case.policies)
            refused += len(case.policies) if "refused" in found[0][0] else 0
            if "refused" in found[0][0]:
                print(f"refused: {case.words}: {found[0][0]['refused']}", flush=True)
            if found[0] == found[1]:
                same += len(case.policies)
            else:
                print(f"DIFFERENT: {case.words}", flush=True)
            print(f"{compared} replays compared", file=sys.stderr, end="\r")
    print(f"{same} of {compared} replays are the same, of which {refused} were refused by both")
    raise SystemExit(same != compared)


if __name__ == "__main__":
    main()
