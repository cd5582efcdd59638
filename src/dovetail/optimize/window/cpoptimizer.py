"""IBM's CP Optimizer on the problem of one pass: for those who have it. CP (Goponenko and others) was made with it.

Its program `cpoptimizer` must be in the PATH: that of a licence, or the community edition, which is in the wheel
`cplex` and takes windows of a limited size only.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.errors import SettingError
from dovetail.optimize.window.bounds import lower_bound
from dovetail.optimize.window.objective import Makespan, Objective, Pasf, PerJob, Sum
from dovetail.optimize.window.problem import Problem, Solution, alone, check, decode
from dovetail.process import cpu_s

PROGRAM: Final = "cpoptimizer"
BRANCHES_PER_S: Final = 100_000
"""So many branches are one second of work."""
TOO_LARGE: Final = "size limit exceeded"
PROVED: Final = "Optimal solution found"
"""What the program says."""
_START: Final = re.compile(r"^j(\d+) = intervalVar\(start=(\d+),", re.MULTILINE)


def found_program() -> str:
    """The path of the program."""
    path = shutil.which(PROGRAM)
    if path is None:
        raise SettingError(
            f"solver=cpoptimizer: there is no program {PROGRAM} in the PATH; the community edition of IBM's CP"
            " Optimizer comes with `pip install cplex`"
        )
    return path


def solve_cpoptimizer(
    problem: Problem, objective: Objective, *, deterministic_s: float, seed: int = 0, hint: Ints, idle: bool = True
) -> Solution:
    """The best schedule that CP Optimizer finds from the hint, never a worse one. `deterministic_s` counts branches:
    same call, same schedule. Without `idle` the answer is decoded, so that no job waits for nothing."""
    begun, best = cpu_s(), objective.value(problem, hint)
    if wrong := check(problem, hint):
        raise ValueError(f"the hint is no schedule of the problem: {wrong[0]}")
    text = [*model_of(problem), f"minimize({_cost(problem, objective, hint)});", "startingPoint {"]
    text += [f"j{i} = (present, start={at});" for i, at in enumerate((hint - problem.now).tolist())]
    limit = f"BranchLimit {max(round(deterministic_s * BRANCHES_PER_S), 1)}"
    said = ran("\n".join([*text, "}"]), [limit, f"RandomSeed {seed}", "RelativeOptimalityTolerance 1e-9"])
    if TOO_LARGE in said:
        raise SettingError(
            f"solver=cpoptimizer: a window of {len(problem)} jobs is too large for this edition; set window= to fewer"
        )
    starts, proved = hint, PROVED in said
    if (answer := starts_of(problem, said)) is not None:
        tight = decode(problem, np.argsort(answer, kind="stable").tolist())
        plans = [plan for plan in ((tight, answer) if idle else (tight,)) if not check(problem, plan)]
        starts = min([hint, *plans], key=lambda plan: objective.value(problem, plan))
        best = objective.value(problem, starts)
    proved = proved and (idle or objective.regular)
    bound = best if proved else lower_bound(problem, objective)
    return Solution(starts, best, bound, "optimal" if proved else "feasible", cpu_s() - begun)


def model_of(problem: Problem) -> list[str]:
    """The jobs, from now on, and what is free for them, in the language of the program."""
    last = horizon(problem)
    rows = zip((alone(problem) - problem.now).tolist(), problem.latest.tolist(), problem.estimate.tolist(), strict=True)
    text = [
        f"j{i} = intervalVar(start={low}..{min(last, late - problem.now)}, size={long});"
        for i, (low, late, long) in enumerate(rows)
    ]
    pulses = [f"pulse(j{i}, {size})" for i, size in enumerate(problem.size.tolist())]
    pulses += [f"pulse({begin}, {end}, {width})" for begin, end, width in taken(problem)]
    return [*text, f"{' + '.join(pulses)} <= {int(problem.free.max())};"]


def horizon(problem: Problem) -> int:
    """Seconds within which some best schedule starts all jobs, as long as none gains by waiting for nothing."""
    return int(max(problem.times[-1], problem.earliest.max()) - problem.now + problem.estimate.sum())


def taken(problem: Problem) -> list[tuple[int, int, int]]:
    """What is not free of the most that ever is: begin and end, from now, and processors."""
    ends = [*(problem.times[1:] - problem.now).tolist(), horizon(problem) + int(problem.estimate.max())]
    steps = zip((problem.times - problem.now).tolist(), ends, problem.free.tolist(), strict=True)
    most = int(problem.free.max())
    return [(begin, end, most - free) for begin, end, free in steps if free < most]


def _cost(problem: Problem, objective: Objective, known: Ints) -> str:
    """An objective in the language of the program. `known` is a schedule, whose longest response is the unit in which
    powers of responses are counted."""
    since = (problem.now - problem.arrive).tolist()
    if isinstance(objective, Sum):
        return " + ".join(f"{weight!r}*({_cost(problem, part, known)})" for weight, part in objective.parts)
    if isinstance(objective, PerJob):
        lines = zip(*(column.tolist() for column in objective.lines(problem)), since, strict=True)
        return " + ".join(
            f"max({floor!r}, {zero + slope * ago!r} + {slope!r}*startOf(j{i}))"
            for i, (slope, zero, floor, ago) in enumerate(lines)
        )
    if isinstance(objective, Makespan):
        return f"max([{', '.join(f'endOf(j{i})' for i in range(len(problem)))}]) + {max(since)}"
    if not isinstance(objective, Pasf):
        raise SettingError(f"solver=cpoptimizer does not know the objective {type(objective).__name__}")
    scale = float((known - problem.arrive + problem.estimate).max())
    over, under = (_powers(problem, scale, objective.level + more) for more in (2, 1))
    return f"{scale * (objective.level + 1) / (objective.level + 2)!r}*({over})/({under})"


def _powers(problem: Problem, scale: float, power: float) -> str:
    """The sum of size x (F^power - Q^power), all times in units of `scale`."""
    ago, ends = ((problem.now - problem.arrive + more).tolist() for more in (0, problem.estimate))
    return " + ".join(
        f"{size}*(((startOf(j{i}) + {end})/{scale!r})^{power!r} - ((startOf(j{i}) + {begin})/{scale!r})^{power!r})"
        for i, (size, begin, end) in enumerate(zip(problem.size.tolist(), ago, ends, strict=True))
    )


def ran(model: str, settings: list[str], timeout_s: float | None = None) -> str:
    """What the program says of a model: one worker, no log of its way."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "window.cpo").write_text(model, encoding="utf-8")
        orders = ["read window.cpo", *(f"set {one}" for one in ("Workers 1", "LogPeriod 10000000", *settings))]
        done = subprocess.run(  # noqa: S603 - the program that was found, no shell
            [found_program()], input="\n".join([*orders, "optimize", "display solution", "quit"]), cwd=folder,
            check=True, capture_output=True, text=True, timeout=timeout_s,
        )  # fmt: skip
    return done.stdout + done.stderr


def starts_of(problem: Problem, said: str) -> Ints | None:
    """The schedule in what the program says; None: there is none."""
    found = dict(_START.findall(said))
    if len(found) < len(problem):
        return None
    return np.array([int(found[str(job)]) for job in range(len(problem))], np.int64) + problem.now
