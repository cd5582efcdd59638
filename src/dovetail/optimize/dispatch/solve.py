"""The door to the dispatchers of the paper: one dispatching moment, solved by one of their models with one of two
solvers. `cp` is the original CP solver of OR-Tools, which the authors took; `sat` is CP-SAT (cpsat.py says what stands
in for their search there)."""

from __future__ import annotations

from dataclasses import replace
from time import process_time
from typing import Final

from dovetail.errors import SettingError
from dovetail.names import unknown
from dovetail.optimize.dispatch.alike import fewer_nodes, on_all_nodes
from dovetail.optimize.dispatch.best_fit import allocated
from dovetail.optimize.dispatch.problem import SOLVERS, Dispatched, DispatchProblem, Limits, pooled
from dovetail.optimize.window.cpsat import need_ortools

MODELS: Final = ("pcp19", "hcp19", "pcp21", "pcp21s")


def solve_dispatch(
    problem: DispatchProblem,
    model: str,
    limits: Limits | None = None,
    *,
    solver: str = "sat",
    pairs: bool = False,
    alike: bool = False,
    look: bool = True,
) -> Dispatched:
    """The best plan that the model finds within the limits. Without one nothing is started: so PCP'19 blocks.

    `pairs`: PCP'21 with the rules for pairs of jobs that are in the authors' program and not in the paper. Two jobs
    that take too much together do not overlap; of any two others, a job starts no later than one of lower priority that
    takes as much or more, for its duration, of each resource that both need. The second may exclude the best plan.

    `alike`: PCP'19 and PCP'21 without nodes that the queue cannot use (alike.py); to HCP'19 all nodes are one.

    `look`: PCP'21 and PCP'21s by the original CP solver try to start a job only where there is room for its units.
    """
    if model not in MODELS:
        raise SettingError(unknown("model", model, MODELS))
    if solver not in SOLVERS:
        raise SettingError(unknown("solver", solver, SOLVERS))
    if not problem.queue:
        return Dispatched("optimal", 0.0)
    need_ortools()
    begun = process_time()
    limits = limits or Limits()

    def solved(one: DispatchProblem) -> Dispatched:
        if solver == "cp":
            from dovetail.optimize.dispatch import cp

            return cp.solved(one, model, limits, pairs=pairs, look=look)
        from dovetail.optimize.dispatch import cpsat

        return cpsat.solved(one, model, limits, pairs=pairs)

    if model == "hcp19":
        answer = allocated(problem, solved(pooled(problem)))
    elif alike:
        few, kept = fewer_nodes(problem)
        answer = on_all_nodes(problem, few, kept, solved(few))
    else:
        answer = solved(problem)
    return replace(answer, modelling_s=process_time() - begun - answer.solving_s)
