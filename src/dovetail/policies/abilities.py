"""What each family of policies can do, from what policies declare of themselves."""

from __future__ import annotations

from typing import Final, NamedTuple

from dovetail.policies.base import Policy
from dovetail.policies.registry import policy

EXAMPLES: Final = {
    "easy": "lists: `easy`, `ORDER-easy`, `list-ORDER`, `strict-`, `greedy-ORDER`",
    "easy:relax=0.5": "lists with `relax` or `slack`",
    "conservative": "`conservative`",
    "dbf": "`dbf`",
    "slurm": "`slurm`",
    "plan-af": "planners: `plan-af`, `-awf`, `-bsld`, `-p2sf`",
    "plan-deadline": "`plan-deadline`",
    "plan-auto": "`plan-auto`",
    "offline-af": "`offline-af`, ...",
    "thrift": "`thrift`",
    "plan:objective=cost": "`plan:objective=cost`, `carbon`, `profit`",
    "daily": "`daily` and its searches",
    "strict-profit": "`strict-profit`, `nonstrict-profit`",
    "cp-af": "`cp-af`, ...",
    "pcp21": "`pcp19`, `hcp19`, `pcp21`, `pcp21s`",
    "switch": "`switch`",
    "recorded": "`recorded`",
}
"""A policy of each family that differs from the others in what it can do, and how the family is called."""
COLUMNS: Final = {
    "processors": "on a counted number of processors",
    "nodes": "on nodes",
    "outages": "on nodes that are out at times, or fail",
    "cap": "under a power cap, on processors or on nodes",
    "licences": "with licences, counted for all jobs together",
    "deadlines": "answers deadlines and keeps those that it accepted",
    "predictors": "with run times that a predictor says",
    "feedback": "with users who wait for their jobs (`--feedback`)",
    "every": "with passes at fixed intervals (`--every`)",
    "charge": "with decisions that take time (`--charge-decisions`)",
    "state": "decides on a state that no replay made",
    "fork": "replays can begin at a state",
}
_PLAIN: Final = ("nodes", "cap", "licences", "every", "charge")
"""Those of them that a policy declares by that name."""
_ON_NODES: Final = "places jobs on nodes: it needs a cluster of them"
_TOLD: Final = "knows run times, and what comes"
_PAST: Final = "is what the log says happened, which does not change"
_NONE: Final = "looks at no deadline"
_PROMISES: Final = "has promised what a state does not say in full: it goes on from its own plans only"
_SITE: Final = "knows what the jobs of its workload draw, and not those of a state"
_TRIES: Final = "tries its choices on copies of a replay, from what is known by then"
_NO_FORK: Final = "is asked event by event: no copy of its replay can be gone on with"


class Ability(NamedTuple):
    """Whether a policy can, and why not."""

    can: bool
    why: str = ""


def abilities(of: Policy) -> dict[str, Ability]:
    """What a policy can do, by the keys of COLUMNS."""
    found = {one: Ability(one not in of.cannot, of.cannot.get(one, "")) for one in _PLAIN}
    blocked = [one.cannot["outages"] for one in (of, *of.deciders) if "outages" in one.cannot]
    out = of.cannot.get("nodes", "") or (blocked[0] if blocked else "")
    found["outages"] = Ability(not out, out)
    only = _ON_NODES if any(one.needs_nodes for one in (of, *of.deciders)) else ""
    found["processors"] = Ability(not only, only)
    found["deadlines"] = Ability(of.keeps_deadlines, "" if of.keeps_deadlines else _NONE)
    told = _PAST if of.from_record else _TOLD if of.clairvoyant else ""
    found["predictors"] = Ability(not told, told)
    told = told or (_TRIES if of.choices else "")
    found["feedback"] = Ability(not told, told)
    found["state"] = Ability(not of.from_record, _PAST if of.from_record else "")
    fork = "" if of.goes_on else _PROMISES if of.keeps_promises else told or (_SITE if of.needs_site else _NO_FORK)
    found["fork"] = Ability(not fork, fork)
    return {key: found[key] for key in COLUMNS}


def table() -> dict[str, dict[str, Ability]]:
    """What each family can do, by its name in EXAMPLES."""
    return {name: abilities(policy(name)) for name in EXAMPLES}
