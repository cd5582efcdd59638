"""CP-SAT and CP Optimizer on one window, with the same model: how good is the best plan after how many CPU seconds?

Each gives the history of its best schedule, that schedule (None: it has none), and whether it is proved to be the best.
"""

from __future__ import annotations

import re
import threading
from math import gcd
from time import process_time
from typing import Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.errors import DovetailError
from dovetail.optimize.window.cpoptimizer import PROVED, TOO_LARGE, horizon, model_of, ran, starts_of, taken
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


def by_cpoptimizer(problem: Problem, objective: str, cpu_s: float) -> Answer:
    """The same model for CP Optimizer: one worker, CPU seconds by its own log, which has six digits of the value. The
    community edition refuses large windows: then there is no plan."""
    by, low = coefficients(problem, objective), alone(problem) - problem.now
    late = zip(by.tolist(), low.tolist(), strict=True)
    cost = " + ".join(f"{weight}*(startOf(j{i}) - {at})" for i, (weight, at) in enumerate(late))
    settings = ["TimeMode CPUTime", f"TimeLimit {cpu_s}", f"RandomSeed {SEED}"]
    said = ran("\n".join([*model_of(problem), f"minimize({cost});"]), settings, 20 * cpu_s + 60)
    if TOO_LARGE in said:
        return [], None, False
    best = starts_of(problem, said)
    if best is None:
        raise DovetailError(f"CP Optimizer gave no schedule:\n{said[-2000:]}")
    final = OBJECTIVES[objective].value(problem, best)
    base = float((by * (low + problem.now - problem.arrive + problem.estimate)).sum())
    history = [(float(at), (base + float(value)) / float(by.sum())) for value, at in NEW.findall(said)]
    history = [(at, max(value, final)) for at, value in history]  # rounded in the log
    return [*history[:-1], (history[-1][0], final)], best, PROVED in said
