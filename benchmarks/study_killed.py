"""A study that is killed again and again ends with the same store as one that was left alone.

    python benchmarks/study_killed.py examples/studies/backfilling.toml --kills 10

Runs the study twice: once undisturbed, once killed with SIGKILL at random moments (at which at least one more run is
still missing) and then finished by running it again. Compares the digests of the stores: every metric and every
start, to the last bit.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
os.environ.setdefault("DOVETAIL_TRACES", str(ROOT.parent / "shared" / "traces"))
DOVETAIL = Path(sys.executable).with_name("dovetail")


def start(study: Path, store: Path, on: str) -> subprocess.Popen[str]:
    command = [str(DOVETAIL), "study", "run", str(study), "--store", str(store), "--on", on, "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def finish(study: Path, store: Path, on: str) -> dict[str, object]:
    clock = time.monotonic()
    out, _ = start(study, store, on).communicate()
    result: dict[str, object] = json.loads(out)
    print(f"  {result['ran']} of {result['cells']} cells run in {time.monotonic() - clock:.1f} s", flush=True)
    return result


def kept(store: Path) -> int:
    return len(list((store / "runs").glob("[!.]*.parquet"))) if store.is_dir() else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--on", default="local")
    given = parser.parse_args()
    rng = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        alone, killed = Path(folder, "alone"), Path(folder, "killed")
        print("undisturbed:", flush=True)
        wanted = finish(given.study, alone, given.on)
        print(f"killed {given.kills} times:", flush=True)
        cells = int(str(wanted["cells"]))
        for number in range(given.kills):
            process = start(given.study, killed, given.on)
            # Die somewhere within an even share of the cells, however long they take: no kill comes after the end.
            first = kept(killed)
            goal = first + rng.uniform(0, 1) * (cells - first) / (given.kills - number + 1)
            while process.poll() is None and kept(killed) < goal:
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 0.2))
            process.kill()
            process.communicate()
            print(f"  kill {number + 1}: {kept(killed)} runs are kept", flush=True)
        got = finish(given.study, killed, given.on)
    print(f"undisturbed {wanted['sha256']}\nkilled      {got['sha256']}")
    if wanted["sha256"] != got["sha256"] or wanted["failed"] or got["failed"]:
        raise SystemExit("the stores differ")
    print("equal")


if __name__ == "__main__":
    main()
