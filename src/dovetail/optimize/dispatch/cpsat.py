"""The door to the dispatchers of the paper: one dispatching moment, solved by one of their models.

Where CP-SAT cannot do what the paper's own solver did, this stands in its place. The search is CP-SAT's, with one
thread; the paper's order (schedule or postpone, then the least positions of the scarcest resource) is given to it as
decision strategies and, as its first dive, as a hint (greedy.py). CP-SAT's automatic search decides by these
strategies only where it has no better idea; made to follow them strictly, it found worse plans on 12 nodes with 20 jobs
waiting. Limits: cpsat_limits.py. PCP'21s: cpsat_pcp21.py.
"""

from __future__ import annotations

from dataclasses import replace
from time import process_time
from typing import Final

from dovetail.errors import SettingError
from dovetail.optimize.dispatch.greedy import listed
from dovetail.optimize.dispatch.problem import Dispatched, DispatchProblem, Limits, total_slowdown
from dovetail.optimize.window.cpsat import need_ortools

MODELS: Final = ("pcp19", "hcp19", "pcp21", "pcp21s")


def solve_dispatch(problem: DispatchProblem, model: str, limits: Limits | None = None) -> Dispatched:
    """The best plan that the model finds within the limits. Without one nothing is started: so PCP'19 blocks."""
    if model not in MODELS:
        raise SettingError(f"no model {model!r}: choose from {', '.join(MODELS)}")
    if not problem.queue:
        return Dispatched("optimal", 0.0)
    need_ortools()
    limits = limits or Limits()
    if model == "hcp19":
        from dovetail.optimize.dispatch.cpsat_hcp19 import hcp19

        return hcp19(problem, limits)
    return _with_nodes(problem, model, limits)


def _with_nodes(problem: DispatchProblem, model: str, limits: Limits) -> Dispatched:
    """Schedule and allocation in one model."""
    from dovetail.optimize.dispatch import cpsat_limits as search
    from dovetail.optimize.dispatch import cpsat_pcp19 as pcp19
    from dovetail.optimize.dispatch import cpsat_pcp21 as pcp21

    begun = process_time()
    built: pcp19.Pcp19 | pcp21.Pcp21
    if model == "pcp19":
        built = pcp19.pcp19(problem)
        pcp19.hint(built, problem, listed(problem))
    else:
        built = pcp21.pcp21(problem, symmetry=model == "pcp21s")
        pcp21.hint(built, problem, listed(problem, contiguous=True))
    modelled = process_time() - begun
    cp_model = built.schedule.model
    searched = search.restarted if model == "pcp19" else search.continued
    ran = searched(cp_model, limits, search.WORK_PER_S[model])
    found = Dispatched(ran.status, float("nan"))
    if (values := ran.values) is not None:
        starts = tuple(problem.now + values[start.index] for start in built.schedule.starts)
        positions = built.positions(values, problem.capacity.shape[1]) if isinstance(built, pcp21.Pcp21) else ()
        found = Dispatched(ran.status, total_slowdown(problem, starts), starts, built.nodes(values), positions)
    return replace(
        found,
        variables=len(cp_model.proto.variables),
        constraints=len(cp_model.proto.constraints),
        conflicts=ran.conflicts,
        branches=ran.branches,
        modelling_s=modelled,
        solving_s=ran.solving_s,
        extensions=ran.extensions,
    )
