"""What a user pays before anything runs: compiling once, then starting from the cache. CPU seconds of whole commands.

python benchmarks/first_run.py              an empty cache, then a full one, on KTH-SP2
python benchmarks/first_run.py --warm-only  only fill the cache in use, for all kinds of policy
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

TRACES = Path(os.environ.get("DOVETAIL_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))
COMMAND = Path(sys.executable).with_name("dovetail")


def warm_all() -> None:
    """Compile every kind of policy, run whole and event by event, and the SWF reader."""
    import io

    from dovetail.engine.contract import check_policy
    from dovetail.engine.replay import replay, warm
    from dovetail.io.clusters import cluster_named
    from dovetail.io.swf import read_swf_stream
    from dovetail.policies.registry import policy
    from dovetail.workloads.lublin import lublin

    read_swf_stream(io.BytesIO(b"1 0 0 1 1 -1 -1 1 1 -1 1 1 1 -1 -1 -1 -1 -1\n"), "warm-up", "warm-up")
    for name in ("easy", "easy:relax=0.5", "conservative"):
        chosen = policy(name)
        warm(chosen)
        check_policy(chosen, cases=1)
    on_nodes, cluster = policy("easy"), cluster_named("eurora")
    warm(on_nodes, nodes=True)
    replay(lublin(2, cluster.processors, seed=0), on_nodes, cluster=cluster, event_by_event=True)


def cpu_of(command: list[str], cache: str) -> tuple[float, str]:
    """CPU seconds of a command and what it wrote to standard error."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, env={**os.environ, "DOVETAIL_CACHE": cache}, capture_output=True, check=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stderr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warm-only", action="store_true")
    args = parser.parse_args()
    if args.warm_only:
        warm_all()
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
