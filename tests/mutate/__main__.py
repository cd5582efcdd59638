"""Mutants of the package against its tests:  python -m tests.mutate --seed 1 --mutants 450

Mutants are drawn by the seed, so many of each room. Each is tried against the tests that call the mutated function, the
cheapest first, until one fails: in a fork, kernels uncompiled. One outside of functions needs a copy of the package and
a process of its own. What survives is tried compiled, against what takes too long uncompiled.

What each test calls is measured once and kept in --folder. tests/mutate/results.csv has the results.
"""

from __future__ import annotations

import argparse
import ast
import csv
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.mutate.points import Point, mutated, points

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RESULTS = HERE / "results.csv"
ROOMS = {"kernels": 200, "referee": 50, "metrics": 70, "engine": 60, "predict": 30, "workloads": 40}
"""How many of 450 mutants are of which room."""
TESTS = [
    "tests/mutate/small_cases.py", "tests/kernels", "tests/contract", "tests/engine", "tests/metrics", "tests/predict",
    "tests/workloads", "tests/policies", "tests/slow", "tests/io/test_swf.py", "tests/test_referee.py",
    "tests/test_referee_nodes.py", "tests/test_referee_rules.py", "--ignore=tests/policies/published",
    "--ignore=tests/policies/test_registry.py", "-k", "not say_and_do_the_same",
]  # fmt: skip
"""All that may kill a mutant, but for what takes too long uncompiled."""
COMPILED = {
    "kernels/compile.py": "tests/kernels/test_cache.py tests/kernels/test_shipped.py",
    "kernels/kept.py": "tests/kernels/test_cache.py tests/kernels/test_shipped.py",
    "kernels/shipped.py": "tests/kernels/test_shipped.py tests/cli/test_warm.py",
    "kernels/watch.py": "tests/kernels/test_shipped.py tests/cli/test_warm.py",
    "kernels/announce.py": "tests/kernels/test_shipped.py tests/cli/test_warm.py",
    "kernels/seam.py": "tests/kernels/test_seam.py",
    "engine/ahead.py": "tests/kernels/test_shipped.py tests/cli/test_warm.py",
}
"""Files about compiling: what they do can only be seen compiled."""
MOST_TEST_S = 1.5
"""CPU seconds of a test, uncompiled and watched, that is of use."""
MOST_S = 15.0
"""CPU seconds that the tests of one mutant may take in all."""
COMPILED_S = 400.0
FIELDS = ("seed", "file", "line", "operator", "before", "after", "result", "killed by", "seconds")

Answer = dict[str, Any]


def drawn(seed: int, mutants: int) -> list[Point]:
    """The mutants of a seed."""
    source, found = ROOT / "src" / "dovetail", list[Point]()
    for room, share in ROOMS.items():
        known = [one for path in sorted((source / room).rglob("*.py")) for one in points(path, source)]
        found += random.Random(f"{seed}/{room}").sample(known, round(share * mutants / sum(ROOMS.values())))
    return found


def serve(
    work: Answer, tests: list[str], *, compiled: bool = False, own_cache: bool = False, root: Path = ROOT
) -> list[Answer]:
    """Have a server do the work; its answers."""
    with tempfile.TemporaryDirectory() as folder:
        out, given = Path(folder, "out.jsonl"), Path(folder, "work.json")
        out.touch()
        given.write_text(json.dumps({**work, "source": str(root / "src" / "dovetail"), "out": str(out)}))
        env = {
            **os.environ, "MUTATE_WORK": str(given), "PYTHONPATH": f"{root}:{root / 'src'}", "DOVETAIL_CASES": "20",
            "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_DISABLE_JIT": "0" if compiled else "1",
        }  # fmt: skip
        if own_cache:
            env["DOVETAIL_CACHE"] = folder
        command = [sys.executable, "-m", "pytest", "-p", "tests.mutate.server", "-p", "no:cacheprovider", "-q"]
        # Uncompiled, the products of hashes and random numbers warn where they wrap around.
        command += ["--hypothesis-seed=0", "-W", "ignore:overflow encountered:RuntimeWarning", *tests]
        done = subprocess.run(command, env=env, cwd=root, capture_output=True, text=True, check=False)
        answers = [json.loads(line) for line in out.read_text().splitlines()]
        if done.returncode not in (0, 1, 5) and not work["tasks"]:
            raise SystemExit(f"tests were not measured to the end:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        if len(answers) < len(work["tasks"]):
            last = (done.stdout + done.stderr).strip().splitlines()[-1:]
            rest = work["tasks"][len(answers) :]
            answers += [{**task, "result": "killed", "by": "import", "why": str(last), "cpu_s": 0.0} for task in rest]
        return answers


def measured(folder: Path) -> list[Answer]:
    """What each test calls, how long it takes, and whether it passes. Tests that are known are not measured again."""
    kept = folder / "measured.json"
    known: list[Answer] = json.loads(kept.read_text()) if kept.exists() else []
    new = serve({"tasks": [], "known": [test["test"] for test in known], "most_s": MOST_TEST_S}, TESTS)
    kept.write_text(json.dumps(known + new))
    return known + new


def calls(test: Answer, one: Point) -> bool:
    """Whether a test calls the function that holds a mutant; of one outside of functions, any function of its file."""
    lines = test.get("calls", {}).get(one.file, [])
    return any(one.first <= line <= one.last for line in lines) if one.first else bool(lines)


def task(one: Point, tests: list[Answer]) -> Answer:
    """A mutant with the tests to try, the cheapest first, as many as there is time for."""
    fit = sorted((test["cpu_s"], test["test"]) for test in tests if test["result"] == "passes" and calls(test, one))
    total, names = 0.0, list[str]()
    for seconds, name in fit:
        if total + seconds > MOST_S:
            break
        total += seconds
        names.append(name)
    return {**asdict(one), "tests": names, "most_s": 10 + 3 * total}


def files(names: list[str]) -> list[str]:
    return sorted({name.partition("::")[0] for name in names})


@contextmanager
def copied(one: Point) -> Iterator[Path]:
    """A copy of package and tests in which a mutant is in the file itself."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for part in ("src", "tests"):
            shutil.copytree(ROOT / part, root / part, copy_function=os.link)
        for part in (
            "pyproject.toml",
            "docs",
            "examples",
            "benchmarks",
            "reproductions",
            "hatch_build.py",
            "README.md",
        ):
            (root / part).symlink_to(ROOT / part)
        path = root / "src" / "dovetail" / one.file
        text = ast.unparse(mutated(path.read_text(encoding="utf-8"), one.number))
        for old in (path, *path.parent.glob(f"__pycache__/{path.stem}.*.pyc")):
            old.unlink()
        path.write_text(text, encoding="utf-8")
        yield root


def tried(mutants: list[Point], tests: list[Answer]) -> list[Answer]:
    """Each mutant against tests, uncompiled, in forks of one server; in copies where a function cannot be changed."""
    tasks = {one: task(one, tests) for one in mutants}
    inner = [tasks[one] for one in mutants if one.first and tasks[one]["tests"]]
    done = serve({"tasks": inner}, files([name for one in inner for name in one["tests"]])) if inner else []
    answers = {(one["file"], one["number"]): one for one in done if one["result"] != "error"}
    for one in mutants:
        if not tasks[one]["tests"]:
            answers[one.file, one.number] = {"result": "survived", "by": "no test calls it", "cpu_s": 0.0}
        elif (one.file, one.number) not in answers:
            with copied(one) as root:
                work = {**tasks[one], "number": -1}
                answers[one.file, one.number] = serve({"tasks": [work]}, files(work["tests"]), root=root)[0]
    return [{**answers[one.file, one.number], **asdict(one)} for one in mutants]


def compiled(one: Point, tests: list[Answer]) -> Answer | None:
    """One that survived, against tests that are too slow uncompiled, and those about compiling. None: no test."""
    names = [test["test"] for test in tests if test["result"] != "passes" and calls(test, one)]
    asked = COMPILED.get(one.file, "").split() or files(names)
    if not asked:
        return None
    with copied(one) as root:
        work = {**asdict(one), "number": -1, "tests": [] if one.file in COMPILED else names, "most_s": COMPILED_S}
        own_cache = one.file.startswith("kernels") or one.file in COMPILED
        return {**serve({"tasks": [work]}, asked, compiled=True, own_cache=own_cache, root=root)[0], **asdict(one)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutants", type=int, default=450)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "dovetail-mutate"))
    parser.add_argument("--only", default="", help="mutants of files whose path has this (a regular expression)")
    parser.add_argument("--survivors", action="store_true", help="only those that survived in results.csv")
    parser.add_argument("--uncompiled", action="store_true", help="kernels that survive are not compiled: minutes each")
    asked = parser.parse_args()
    asked.folder.mkdir(exist_ok=True)
    tests = measured(asked.folder)
    known = {_key(row): row for row in _read()}
    mutants = [one for one in drawn(asked.seed, asked.mutants) if re.search(asked.only, one.file)]
    if asked.survivors:
        mutants = [
            one for one in mutants if known.get(_key(_row(asked.seed, asdict(one))), {}).get("result") == "survived"
        ]
    survived = []
    for one, answer in zip(mutants, tried(mutants, tests), strict=True):
        _keep(known, asked.seed, answer)
        if answer["result"] == "survived":
            survived.append((one, answer))
    for one, answer in survived if not asked.uncompiled else ():
        if more := compiled(one, tests):
            _keep(known, asked.seed, {**more, "cpu_s": answer["cpu_s"] + more["cpu_s"]})
    print(Counter((row["file"].partition("/")[0], row["result"]) for row in known.values()))


def _keep(known: dict[tuple[str, ...], Answer], seed: int, answer: Answer) -> None:
    row = _row(seed, answer)
    known[_key(row)] = row
    print(" | ".join(map(str, row.values())), flush=True)
    with RESULTS.open("w", newline="", encoding="utf-8") as stream:
        table = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        table.writeheader()
        table.writerows(known.values())


def _row(seed: int, answer: Answer) -> Answer:
    by = answer.get("by", "")
    found = {"seed": seed, **{name: answer[name] for name in FIELDS[1:6]}, "result": answer.get("result", "")}
    return {**found, "killed by": by, "seconds": round(answer.get("cpu_s", 0.0), 1)}


def _key(row: Answer) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in FIELDS[:6])


def _read() -> list[Answer]:
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


if __name__ == "__main__":
    main()
