"""What a user pays before anything runs: compiling once, then starting from the cache. CPU seconds of whole commands.

python benchmarks/first_run.py              an empty cache, then a full one, on KTH-SP2
python benchmarks/first_run.py --warm-only  only fill the cache in use, for all kinds of policy
python benchmarks/first_run.py --wheel dovetail_hpc-0.2.0-cp311-cp311-linux_x86_64.whl
                                            the first runs after that wheel is installed in an empty environment
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

TRACES = Path(os.environ.get("DOVETAIL_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))
COMMAND = Path(sys.executable).with_name("dovetail")


def warm_all() -> None:
    """Compile every kind of policy, run whole and event by event: on processors by one process, on nodes by another,
    since what two kinds share is compiled once in a process."""
    both = [get_context("spawn").Process(target=warm_on, args=(nodes,)) for nodes in (False, True)]
    for one in both:
        one.start()
    for one in both:
        one.join()
        if one.exitcode:
            raise SystemExit(f"kernels could not be compiled: exit code {one.exitcode}")


def warm_on(nodes: bool) -> None:
    """Compile what there is for processors, and for reading logs; or for nodes. Lists with a cap on power beside."""
    from dovetail.engine.ahead import compile_here, parts
    from dovetail.engine.contract import check_policy
    from dovetail.engine.replay import one_job, replay
    from dovetail.model.cluster import PowerCap
    from dovetail.policies.registry import policy

    for part, (name, on_nodes) in parts().items():
        if on_nodes == nodes:
            compile_here(part, name, nodes)
    workload, cluster = one_job(nodes)
    capped = replace(cluster, cap=PowerCap(10**6))
    for by_event in (False, True):
        replay(workload, "list", cluster=capped, event_by_event=by_event)
    if not nodes:
        check_policy(policy("easy"), cases=1)


def cpu_of(command: list[str], cache: str) -> tuple[float, str]:
    """CPU seconds of a command and what it wrote to standard error."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = {**os.environ, "DOVETAIL_CACHE": cache}
    done = subprocess.run(command, env=env, capture_output=True, check=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stderr


def first_runs(wheel: Path) -> None:
    """The first replay, planner and nodes from a wheel in an environment of its own, each with an empty cache."""
    log = [str(TRACES / "papers" / "KTH-SP2.swf.gz")]
    days = ["--scenario", "span=0d..3d"]
    runs = {
        "easy": [*log, "--policy", "easy"],
        "plan-awf, 3 days": [*log, *days, "--policy", "plan-awf"],
        "easy on nodes, 3 days": [*log, *days, "--policy", "easy", "--cluster", "kit-fh2"],
    }
    for name in [name for name in os.environ if name.startswith(("NUMBA_", "PYTHON"))]:
        del os.environ[name]  # what would lead to other kernels than the wheel's
    with tempfile.TemporaryDirectory() as room:
        subprocess.run([sys.executable, "-m", "venv", f"{room}/venv"], check=True)
        pip = [f"{room}/venv/bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        pins = Path(room) / "pins"
        pins.write_text("\n".join(f"{one}=={version(one)}" for one in ("llvmlite", "numba", "numpy")))
        subprocess.run([*pip, "-c", pins, wheel], check=True)
        for i, (name, words) in enumerate(runs.items()):
            clock = time.monotonic()
            cpu_s, said = cpu_of([f"{room}/venv/bin/dovetail", "replay", *words], f"{room}/cache{i}")
            row = {"first": name, "wall_s": round(time.monotonic() - clock, 2), "cpu_s": round(cpu_s, 2)}
            again = min(cpu_of([f"{room}/venv/bin/dovetail", "replay", *words], f"{room}/cache{i}")[0] for _ in "123")
            print(json.dumps(row | {"again_cpu_s": round(again, 2), "says_it_compiles": said.count("Compiling")}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--warm-only", action="store_true")
    parser.add_argument("--wheel", type=Path)
    args = parser.parse_args()
    if args.warm_only:
        warm_all()
        return
    if args.wheel:
        first_runs(args.wheel)
        return
    trace = str(TRACES / "papers" / "KTH-SP2.swf.gz")
    replay = [str(COMMAND), "replay", trace, "--policy", "easy"]
    with tempfile.TemporaryDirectory() as cache:
        first, said = cpu_of(replay, cache)
        again = [cpu_of(replay, cache) for _ in range(3)]
        help_s = min(cpu_of([str(COMMAND), "--help"], cache)[0] for _ in range(3))
    row = {
        "first_run_cpu_s": round(first, 2),
        "says_it_compiles": said.count("Compiling"),
        "from_cache_cpu_s": round(min(cpu for cpu, _ in again), 2),
        "says_it_again": again[-1][1].count("Compiling"),
        "help_cpu_s": round(help_s, 2),
    }
    print(json.dumps(row))


if __name__ == "__main__":
    main()
