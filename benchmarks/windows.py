"""One planning window, several solvers: how good is the best plan after so many seconds?

    python benchmarks/windows.py [--results windows.jsonl] [--windows 100] [--cpu 5] [--cpoptimizer PATH]

Adds what is missing to the results file: stop it at any moment, and call it again. `windows_page.py` makes the page of
it. PATH is the program `cpoptimizer` of IBM's CP Optimizer; the wheel `cplex` brings its community edition, which
refuses large problems. It is a comparator only. With --skip several processes can share the windows.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd
from pathlib import Path
from time import process_time
from typing import Any, Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.engine.replay import replay
from dovetail.io.read import read_workload
from dovetail.model.schedule import Schedule
from dovetail.optimize.window.bounds import lower_bound
from dovetail.optimize.window.objective import OBJECTIVES
from dovetail.optimize.window.problem import Problem, alone, check, decode, free_beside
from dovetail.optimize.window.search import METHODS, search
from dovetail.policies.registry import policy
from dovetail.predict.known import estimates

ROOT: Final = Path(__file__).resolve().parent.parent
TRACES: Final = Path(os.environ.get("DOVETAIL_TRACES", ROOT.parent / "shared" / "traces"))
NAMES: Final = ("KTH-SP2", "CTC-SP2", "SDSC-SP2", "SDSC-BLUE")
CLASSES: Final = ((10, 19), (20, 39), (40, 79), (80, 139), (140, 200))
PER_CLASS: Final = 5
"""Windows of each trace and class of sizes; every other one with limits for estimates."""
SEED: Final = 1
DAY_S: Final = 86400
SOLVERS: Final = (*METHODS, "cpsat", "cpsat-hinted", "cpoptimizer")
ASKED: Final = ("af", "awf")
BOUND: Final = "bound"
"""Named like a solver in the results: the value that no plan of the window can beat."""

History = list[tuple[float, float]]
"""CPU seconds, and the value of the best schedule from then on."""


@dataclass(frozen=True)
class Passes:
    """A replay of a trace under list-reg, and how many jobs waited at each of its passes."""

    name: str
    schedule: Schedule
    estimate: Ints
    at: Ints
    waiting: Ints

    def between(self, least: int, most: int) -> Ints:
        """The passes at which so many jobs waited."""
        return np.flatnonzero((self.waiting >= least) & (self.waiting <= most))

    def problem(self, which: int) -> Problem:
        """The planning window of a pass: all that waits, beside what runs to its expected end."""
        now, start, size = int(self.at[which]), self.schedule.start, self.schedule.workload.size
        running = np.flatnonzero((start < now) & (self.schedule.end > now))
        ends = np.maximum(start + self.estimate, now + 1)[running]
        times, free = free_beside(now, self.schedule.cluster.processors, size[running].tolist(), ends.tolist())
        jobs = np.flatnonzero((self.schedule.arrive <= now) & (start >= now))
        return Problem(
            now=now, processors=self.schedule.cluster.processors, times=times, free=free,
            arrive=self.schedule.arrive[jobs], size=size[jobs], estimate=self.estimate[jobs],
        )  # fmt: skip


def passes(trace: str, estimate: str) -> Passes:
    """All passes of a trace. In each, ends and arrivals of that second have happened, and nothing has started yet."""
    workload = read_workload(TRACES / "papers" / f"{trace}.swf.gz")
    schedule = replay(workload, policy("list-reg"), estimate=estimate)
    at = np.unique(np.concatenate([schedule.arrive, schedule.end]))
    arrived = np.searchsorted(np.sort(schedule.arrive), at, side="right")
    started = np.searchsorted(np.sort(schedule.start), at, side="left")
    return Passes(f"{trace} {estimate}", schedule, estimates(workload, estimate), at, arrived - started)


def fits_now(problem: Problem) -> bool:
    """Whether some job could start now; if none can, a planner does not search."""
    return bool(problem.size.min() <= problem.free[0])


def windows() -> Iterator[tuple[str, Problem]]:
    """Up to 100 windows. Any four in a row are from four traces, any five of five classes of sizes, and in every 20
    each combination comes once; as far as there are enough.

    For each trace, estimate and class: the days are shuffled, and one pass is drawn from each, until there are
    enough in which some job fits now. Where there are too few days they are gone through once more.
    """
    drawn: dict[tuple[int, int, int], tuple[str, Problem]] = {}
    for t, trace in enumerate(NAMES):
        for e, estimate in enumerate(("runtime", "limit")):
            known = passes(trace, estimate)
            for c, (least, most) in enumerate(CLASSES):
                rng = np.random.default_rng((SEED, t, e, c))
                wanted = list(range(e, PER_CLASS, 2))
                fitting = known.between(least, most)
                days = known.at[fitting] // DAY_S
                seen = set()
                for day in np.concatenate([rng.permutation(np.unique(days)) for _ in range(PER_CLASS)]):
                    problem = known.problem(int(rng.choice(fitting[days == day])))
                    if wanted and fits_now(problem) and problem.now not in seen:
                        drawn[wanted.pop(0), c, t] = (f"{known.name} {problem.now}", problem)
                        seen.add(problem.now)
                    if not wanted:
                        break
    # 4 and 5 have no common divisor: so each combination of trace and class comes once in 20.
    turns = ((k // 20, k % len(CLASSES), k % len(NAMES)) for k in range(PER_CLASS * len(NAMES) * len(CLASSES)))
    return iter(drawn[turn] for turn in turns if turn in drawn)


# The solvers. Each gives the history of its best schedule, that schedule (None: it has none), and a remark.


def coefficients(problem: Problem, objective: str) -> Ints:
    """AF and AWF are the mean of end - arrival by these whole numbers."""
    by = problem.area if objective == "awf" else np.ones(len(problem), np.int64)
    return by // gcd(*by.tolist())


def by_search(problem: Problem, objective: str, cpu_s: float, method: Any) -> tuple[History, Ints | None, str]:
    found = search(problem, OBJECTIVES[objective], decodes=50, cpu_s=cpu_s, seed=SEED, method=method)
    return [(one.cpu_s, one.value) for one in found.history], found.solution.starts, found.solution.status


def by_cpsat(problem: Problem, objective: str, cpu_s: float, hint: Ints | None) -> tuple[History, Ints | None, str]:
    """One model in seconds, one worker. Stopped after `cpu_s` of CPU; building the model is not counted."""
    from ortools.sat.python import cp_model

    by, low, last = coefficients(problem, objective), alone(problem) - problem.now, horizon(problem)
    model = cp_model.CpModel()
    starts = [model.new_int_var(int(least), last, f"start_{job}") for job, least in enumerate(low)]
    lengths, sizes = problem.estimate.tolist(), problem.size.tolist()
    blocks = [model.new_fixed_size_interval_var(at, long, "") for at, long in zip(starts, lengths, strict=True)]
    for begin, end, width in taken(problem):
        blocks.append(model.new_fixed_size_interval_var(begin, end - begin, ""))
        sizes.append(width)
    model.add_cumulative(blocks, sizes, int(problem.free.max()))
    for start, at in zip(starts, [] if hint is None else (hint - problem.now).tolist(), strict=False):
        model.add_hint(start, at)
    model.minimize(sum(weight * start for weight, start in zip(by.tolist(), starts, strict=True)))
    history: History = []

    class Watch(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            found = np.array([self.value(start) for start in starts]) + problem.now
            history.append((process_time() - begun, OBJECTIVES[objective].value(problem, found)))

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = SEED
    solver.parameters.max_time_in_seconds = 20 * cpu_s
    done = threading.Event()

    def stop() -> None:
        while not done.wait(0.02):
            if process_time() - begun >= cpu_s:
                solver.stop_search()

    watcher = threading.Thread(target=stop)
    begun = process_time()
    watcher.start()
    status = solver.solve(model, Watch())
    done.set()
    watcher.join()
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return history, None, "unknown"
    best = np.array([solver.value(start) for start in starts], np.int64) + problem.now
    return history, best, "optimal" if status == cp_model.OPTIMAL else "feasible"


def horizon(problem: Problem) -> int:
    """Some best schedule starts all jobs within so many seconds."""
    return int(problem.times[-1] - problem.now + problem.estimate.sum())


def taken(problem: Problem) -> list[tuple[int, int, int]]:
    """What is not free of the most that ever is: begin and end, from now, and processors."""
    ends = [*(problem.times[1:] - problem.now).tolist(), horizon(problem) + int(problem.estimate.max())]
    steps = zip((problem.times - problem.now).tolist(), ends, problem.free.tolist(), strict=True)
    most = int(problem.free.max())
    return [(begin, end, most - free) for begin, end, free in steps if free < most]


NEW: Final = re.compile(r"^ \*\s+([\d.e+]+)\s+\d+\s+([\d.]+)s\b", re.MULTILINE)
START: Final = re.compile(r"^j(\d+) = intervalVar\(start=(\d+),", re.MULTILINE)


def by_cpoptimizer(problem: Problem, objective: str, cpu_s: float, program: str) -> tuple[History, Ints | None, str]:
    """The same model for CP Optimizer: one worker, CPU seconds by its own log, which has six digits of the value."""
    by, low = coefficients(problem, objective), alone(problem) - problem.now
    jobs = list(zip(low.tolist(), problem.estimate.tolist(), problem.size.tolist(), by.tolist(), strict=True))
    last = horizon(problem)
    text = [f"j{i} = intervalVar(start={at}..{last}, size={long});" for i, (at, long, _, _) in enumerate(jobs)]
    pulses = [f"pulse(j{i}, {size})" for i, (_, _, size, _) in enumerate(jobs)]
    pulses += [f"pulse({begin}, {end}, {width})" for begin, end, width in taken(problem)]
    text.append(f"{' + '.join(pulses)} <= {int(problem.free.max())};")
    text.append(f"minimize({' + '.join(f'{c}*(startOf(j{i}) - {at})' for i, (at, _, _, c) in enumerate(jobs))});")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "window.cpo").write_text("\n".join(text))
        orders = (
            "read window.cpo", "set Workers 1", "set TimeMode CPUTime", f"set TimeLimit {cpu_s}",
            f"set RandomSeed {SEED}", "set LogPeriod 10000000", "optimize", "display solution", "quit",
        )  # fmt: skip
        done = subprocess.run(
            [program], input="\n".join(orders), cwd=folder, check=True, capture_output=True, text=True,
            timeout=20 * cpu_s + 60,
        )  # fmt: skip
    if "size limit exceeded" in done.stdout + done.stderr:
        return [], None, "refused"
    found = dict(START.findall(done.stdout))
    if len(found) < len(problem):
        raise RuntimeError(f"CP Optimizer gave no schedule:\n{done.stdout[-2000:]}")
    best = np.array([int(found[str(job)]) for job in range(len(problem))], np.int64) + problem.now
    final = OBJECTIVES[objective].value(problem, best)
    base = float((by * (low + problem.now - problem.arrive + problem.estimate)).sum())
    history = [(float(at), (base + float(value)) / float(by.sum())) for value, at in NEW.findall(done.stdout)]
    history = [(at, max(value, final)) for at, value in history]  # rounded in the log
    proved = "Optimal solution found" in done.stdout
    return [*history[:-1], (history[-1][0], final)], best, "optimal" if proved else "feasible"


def one_run(problem: Problem, objective: str, solver: str, cpu_s: float, program: str | None) -> dict[str, Any]:
    """One row of the results. Every schedule is checked."""
    if solver == BOUND:
        begun = process_time()
        return {"value": lower_bound(problem, OBJECTIVES[objective]), "cpu_s": process_time() - begun}
    lists = search(problem, OBJECTIVES[objective], decodes=0).solution
    fcfs = OBJECTIVES[objective].value(problem, decode(problem, np.argsort(problem.arrive, kind="stable").tolist()))
    if solver == "cpoptimizer":
        history, starts, status = by_cpoptimizer(problem, objective, cpu_s, str(program))
    elif solver in METHODS:
        history, starts, status = by_search(problem, objective, cpu_s, solver)
    else:
        history, starts, status = by_cpsat(problem, objective, cpu_s, lists.starts if solver != "cpsat" else None)
    if starts is not None:
        assert check(problem, starts) == []
        assert abs(history[-1][1] / OBJECTIVES[objective].value(problem, starts) - 1) < 1e-12
    kept = [one for i, one in enumerate(history) if i == 0 or one[1] < history[i - 1][1]]
    return {"status": status, "fcfs": fcfs, "lists": lists.value, "history": [(round(at, 4), v) for at, v in kept]}


def run(results: Path, some: list[tuple[str, Problem]], cpu_s: float, asked: list[str], program: str | None) -> None:
    """Add what is missing to the results."""
    have = {(row["window"], row["objective"], row["solver"]) for row in read(results)}
    for solver in asked:  # compile, and load the libraries
        one_run(some[0][1], "af", solver, 0.1, program)
    for place, (name, problem) in enumerate(some):
        for objective in ASKED:
            for solver in (*asked, BOUND):
                if (name, objective, solver) not in have:
                    row = {"window": name, "jobs": len(problem), "objective": objective, "solver": solver}
                    row |= one_run(problem, objective, solver, cpu_s, program)
                    with results.open("a") as out:
                        out.write(json.dumps(row) + "\n")
        print(f"{place + 1} of {len(some)} windows: {name}, {len(problem)} jobs", flush=True)


def read(results: Path) -> list[dict[str, Any]]:
    """The rows of a results file. A last line without its end was cut off: it is left out."""
    text = results.read_text() if results.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("windows.jsonl"))
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first N windows")
    parser.add_argument("--windows", type=int, default=100, metavar="N", help="then run so many (default 100)")
    parser.add_argument("--cpu", type=float, default=5.0, metavar="S", help="CPU seconds of each run (default 5)")
    parser.add_argument("--solvers", nargs="+", choices=SOLVERS, default=list(SOLVERS))
    parser.add_argument("--cpoptimizer", metavar="PATH")
    args = parser.parse_args()
    asked = [solver for solver in args.solvers if args.cpoptimizer or solver != "cpoptimizer"]
    run(args.results, list(windows())[args.skip : args.skip + args.windows], args.cpu, asked, args.cpoptimizer)


if __name__ == "__main__":
    main()
