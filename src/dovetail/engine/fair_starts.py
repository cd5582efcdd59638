"""Fair start times: when would a job have started if no job had been submitted after it?

The same policy goes on from the state in which the job arrived, with no further arrivals. One replay is kept going
and forked at each job that is asked about: its state is only arrays, so a fork is a copy of the short ones.
"""

from __future__ import annotations

import numpy as np

from dovetail.arrays import Ints
from dovetail.energy.site import Site
from dovetail.engine.compiled import Replay, new_replay
from dovetail.errors import SettingError
from dovetail.kernels import state as layout
from dovetail.model.cluster import Cluster
from dovetail.model.workload import Workload
from dovetail.policies.base import Asked, Policy
from dovetail.policies.registry import policy as policy_named

_CHANGING = np.array(
    [
        layout.START,
        layout.ARRIVE,
        layout.PROMISED_FIRST,
        layout.PROMISED_LAST,
        layout.PLACE,
        layout.AGREED,
        layout.UNTIL,
    ]
)


def fair_starts(
    workload: Workload,
    policy: Policy | str,
    cluster: Cluster,
    estimate: Ints,
    *,
    every_s: int = 0,
    sample: int | None = None,
    seed: int = 0,
    site: Site | None = None,
) -> Ints:
    """The fair start of each job, or of `sample` jobs drawn at random; -1 for the others.

    Jobs submitted in the same second count as earlier if they stand earlier in the workload.
    """
    policy = policy_named(policy).at(site, workload, cluster)
    if any(one.fails for one in cluster.outages):
        raise SettingError(
            "fair starts are not known where nodes fail: what runs is lost in one future, not in another"
        )
    if not workload.comes_and_stays:
        raise SettingError("fair starts are of jobs that come at their submits and stay until they start")
    if not policy.forks:
        raise SettingError(
            "fair starts need a replay that can be forked: a list or a planner without keys, clock or foresight"
        )
    n = len(workload)
    bounded = bool(np.all(estimate >= workload.runtime))
    rule = policy.rule(Asked(every_s, bounded, seed=seed, nodes=bool(cluster.kinds)))
    trunk = new_replay(workload, cluster, rule, estimate, room=64, place=policy.place)
    rng = np.random.Generator(np.random.PCG64(seed))
    wanted = np.arange(n) if sample is None or sample >= n else np.sort(rng.choice(n, sample, replace=False))
    fair = np.full(n, -1, np.int64)
    for job in wanted.tolist():
        trunk.advance(int(workload.submit[job]) - 1)
        fair[job] = _start_alone(trunk, job)
    return fair


def _start_alone(trunk: Replay, job: int) -> int:
    """Start of a job that has not arrived yet, with all later arrivals kept away. The trunk is left as it was."""
    run = trunk.run
    touched = np.concatenate([trunk.waiting, np.arange(run.info[layout.NEXT], job + 1)])
    before = run.jobs[np.ix_(_CHANGING, touched)]
    info = run.info.copy()
    info[layout.LAST] = job + 1
    tree = run.tree[: len(run.tree) if info[layout.IN_TREE] else 0].copy()
    own = run._replace(info=info, lists=run.lists.copy(), tree=tree)
    Replay(own, trunk.cap.copied(), trunk.rule, trunk.learner).advance()
    start = int(run.jobs[layout.START, job])
    run.jobs[np.ix_(_CHANGING, touched)] = before
    return start
