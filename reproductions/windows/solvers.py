"""CP-SAT and CP Optimizer on one window, with the same model: how good is the best plan after how many CPU seconds?

Each gives the history of its best schedule, that schedule (None: it has none), and whether it is proved to be the best.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import threading
from math import gcd
from pathlib import Path
from time import process_time
from typing import Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.errors import DovetailError
from dovetail.optimize.window.objective import OBJECTIVES
from dovetail.optimize.window.problem import Problem, alone

History = list[tuple[float, float]]
"""CPU seconds, and the value of the best schedule from then on."""
Answer = tuple[History, Ints | None, bool]
SEED: Final = 1


def coefficients(problem: Problem, objective: str) -> Ints:
    """AF and AWF are the mean of end - arrival by these whole numbers."""
    by = problem.area if objective == "awf" else np.ones(len(problem), np.int64)
    return by // gcd(*by.tolist())


def horizon(problem: Problem) -> int:
    """Seconds within which some best schedule starts all jobs."""
    return int(problem.times[-1] - problem.now + problem.estimate.sum())


def taken(problem: Problem) -> list[tuple[int, int, int]]:
    """What is not free of the most that ever is: begin and end, from now, and processors."""
    ends = [*(problem.times[1:] - problem.now).tolist(), horizon(problem) + int(problem.estimate.max())]
    steps = zip((problem.times - problem.now).tolist(), ends, problem.free.tolist(), strict=True)
    most = int(problem.free.max())
    return [(begin, end, most - free) for begin, end, free in steps if free < most]


def by_cpsat(problem: Problem, objective: str, cpu_s: float, hint: Ints | None) -> Answer:
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
        return history, None, False
    best = np.array([solver.value(start) for start in starts], np.int64) + problem.now
    return history, best, status == cp_model.OPTIMAL


NEW: Final = re.compile(r"^ \*\s+([\d.e+]+)\s+\d+\s+([\d.]+)s\b", re.MULTILINE)
START: Final = re.compile(r"^j(\d+) = intervalVar\(start=(\d+),", re.MULTILINE)


def by_cpoptimizer(problem: Problem, objective: str, cpu_s: float, program: str) -> Answer:
    """The same model for CP Optimizer: one worker, CPU seconds by its own log, which has six digits of the value. The
    community edition refuses large windows: then there is no plan."""
    by, low = coefficients(problem, objective), alone(problem) - problem.now
    jobs = list(zip(low.tolist(), problem.estimate.tolist(), problem.size.tolist(), by.tolist(), strict=True))
    last = horizon(problem)
    text = [f"j{i} = intervalVar(start={at}..{last}, size={long});" for i, (at, long, _, _) in enumerate(jobs)]
    pulses = [f"pulse(j{i}, {size})" for i, (_, _, size, _) in enumerate(jobs)]
    pulses += [f"pulse({begin}, {end}, {width})" for begin, end, width in taken(problem)]
    text.append(f"{' + '.join(pulses)} <= {int(problem.free.max())};")
    text.append(f"minimize({' + '.join(f'{c}*(startOf(j{i}) - {at})' for i, (at, _, _, c) in enumerate(jobs))});")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "window.cpo").write_text("\n".join(text), encoding="utf-8")
        orders = (
            "read window.cpo", "set Workers 1", "set TimeMode CPUTime", f"set TimeLimit {cpu_s}",
            f"set RandomSeed {SEED}", "set LogPeriod 10000000", "optimize", "display solution", "quit",
        )  # fmt: skip
        done = subprocess.run(  # noqa: S603 - the program that was found, no shell
            [program], input="\n".join(orders), cwd=folder, check=True, capture_output=True, text=True,
            timeout=20 * cpu_s + 60,
        )  # fmt: skip
    if "size limit exceeded" in done.stdout + done.stderr:
        return [], None, False
    found = dict(START.findall(done.stdout))
    if len(found) < len(problem):
        raise DovetailError(f"CP Optimizer gave no schedule:\n{done.stdout[-2000:]}")
    best = np.array([int(found[str(job)]) for job in range(len(problem))], np.int64) + problem.now
    final = OBJECTIVES[objective].value(problem, best)
    base = float((by * (low + problem.now - problem.arrive + problem.estimate)).sum())
    history = [(float(at), (base + float(value)) / float(by.sum())) for value, at in NEW.findall(done.stdout)]
    history = [(at, max(value, final)) for at, value in history]  # rounded in the log
    return [*history[:-1], (history[-1][0], final)], best, "Optimal solution found" in done.stdout
