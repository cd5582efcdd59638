"""What a Slurm would do: its main loop and its backfill, with the names of its own settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from dovetail.arrays import Floats, Ints, Mask
from dovetail.energy.site import Site
from dovetail.errors import SettingError
from dovetail.kernels import state as layout
from dovetail.kernels.passes.order import GIVEN, GIVEN_PER_PASS
from dovetail.kernels.passes.slurm import (
    ARRAY,
    CLAIM_ASKS,
    CLAIM_LIMIT,
    CLAIM_ROWS,
    CLAIM_TAKES,
    COLUMNS,
    LIMIT_BEFORE,
    LIMIT_MOST,
    LIMIT_ROWS,
    NO_SPACE,
    PARTITION,
    USER,
    SlurmRule,
    bits_of,
)
from dovetail.model.cluster import WHOLE, Cluster
from dovetail.model.plan import Plan
from dovetail.model.requests import Requests, most_on_idle, requests_of
from dovetail.model.state import State
from dovetail.model.turns import TreeTurns, Turns
from dovetail.model.workload import Workload
from dovetail.names import Kind, choice, setting, settings_of, whole
from dovetail.policies.base import AS_USUAL, Asked, Policy, RulePolicy, wake_of, written
from dovetail.slurm.limits import Claims, Limited
from dovetail.slurm.machine import Machine
from dovetail.slurm.multifactor import Asking
from dovetail.slurm.priority import Priorities
from dovetail.slurm.scheduling import read_kept, scheduling
from dovetail.units import printable

_ANY: Final = "0: any number"
_MOST: Final = 10**6
_RANKS: Final = 1 << 32
"""More than any priority is."""
VERSIONS: Final = ("22.05", "24.11")
FIFO, COLUMN, FACTORS = "fifo", "priority", "multifactor"
OURS: Final = ("conf", "phase", "order", "version")
"""Settings that are no parameters of a Slurm's scheduler."""
_TIMELESS: Final = frozenset((
    "bf_max_time", "bf_yield_interval", "bf_yield_sleep", "bf_continue", "max_sched_time", "batch_sched_delay",
    "sched_min_interval", "defer", "defer_batch",
))  # fmt: skip
"""What only matters because decisions take time: here they take none."""


def as_told(machine: Machine) -> tuple[Slurm, list[str]]:
    """The policy with the settings of a machine's Slurm; and what of them it does not follow."""
    told = scheduling(machine)
    notes, found = list(told.notes), dict[str, Any]()
    known = {name: one for name, one in settings_of(Slurm()).items() if name not in OURS}
    for key, text in told.parameters.items():
        if key in known:
            kind = known[key][1].kind
            if re.fullmatch(r"\d{1,9}", text, re.ASCII) and kind.allows(int(text)):
                found[key] = int(text)
            else:
                notes.append(f"{key}={printable(text, 20)} {kind.words}: left as it is without")
        elif key not in _TIMELESS:
            notes.append(f"SchedulerParameters: {printable(key, 40)} is not followed")
    if told.version is None:
        notes.append(f"its version is not told: the rules of {VERSIONS[-1]} are taken")
    new = told.version is None or told.version >= (24, 11)
    ranks = told.priorities
    order = FIFO if ranks is None else FACTORS
    policy = Slurm(version=VERSIONS[new], order=order, tiers=told.tiers, ranks=ranks, limits=told.limits)
    return replace(policy, **found), notes


def _json(path: str) -> str:
    if not path.endswith(".json"):
        raise ValueError("must be a file that `dovetail cluster import-slurm` keeps: CLUSTER.slurm.json")
    return path


_CONF: Final = Kind(_json, "what `dovetail cluster import-slurm` keeps: CLUSTER.slurm.json",
                    onto=lambda _, path: as_told(read_kept(Path(path)))[0])  # fmt: skip


@dataclass(frozen=True)
class Jobs:
    """What a rule wants to know of jobs and nodes beside what every rule does."""

    columns: Ints
    """Rows of numbers, by job."""
    parts: Ints
    """The nodes of each partition, as bits."""
    memory: int
    """Which resource is memory; -1: none."""
    devices: int
    """Which is GPUs."""


@dataclass(frozen=True)
class Slurm(RulePolicy):
    """Slurm's main loop at each moment, and its backfill every `bf_interval` seconds, with its own choice of nodes.

    Settings have the names, units and defaults of SchedulerParameters. `phase` is when the first cycle of the backfill
    begins, in seconds after a multiple of `bf_interval`. `version` chooses where Slurm's rules have changed. `tiers`:
    the PriorityTier of partitions by name; 1 where none is given. `order`: first come, first served; by the `priority`
    column of the workload, the highest first; or by the sum of factors that `ranks` has the weights of. `limits`: what
    QOS and accounts may have at a time. `conf` takes all of it from what a Slurm said of itself.
    """

    conf: str = setting("", "settings as a Slurm said them: CLUSTER.slurm.json; others change them", _CONF)
    bf_interval: int = setting(30, "seconds from one cycle of the backfill to the next", whole(1, 10_800, "s"))
    bf_window: int = setting(1440, "minutes ahead that the backfill plans", whole(1, 43_200, "min"))
    bf_resolution: int = setting(60, "steps of the backfill's plan, in seconds", whole(1, 3600, "s"))
    bf_max_job_test: int = setting(500, "jobs that one cycle tries", whole(1, _MOST, "jobs"))
    bf_max_job_user: int = setting(0, f"jobs of a user that one cycle looks at; {_ANY}", whole(0, _MOST, "jobs"))
    bf_max_job_part: int = setting(0, f"jobs of a partition that one cycle looks at; {_ANY}", whole(0, _MOST, "jobs"))
    bf_max_job_start: int = setting(0, f"jobs that one cycle starts; {_ANY}", whole(0, 10_000, "jobs"))
    bf_max_job_array_resv: int = setting(20, "planned tasks of one array", whole(0, 1000, "tasks"))
    bf_job_part_count_reserve: int = setting(0, f"planned jobs of a partition; {_ANY}", whole(0, 100_000, "jobs"))
    bf_min_age_reserve: int = setting(0, "seconds that a job waits before it is planned", whole(0, 2_592_000, "s"))
    bf_node_space_size: int = setting(0, "records of the backfill's plan; 0: bf_max_job_test", whole(0, 2 * _MOST))
    bf_window_linear: int = setting(
        0, "seconds by which batches of ends get wider; 0: they double", whole(0, 3600, "s")
    )
    default_queue_depth: int = setting(100, "jobs that the main loop looks at", whole(0, _MOST, "jobs"))
    sched_interval: int = setting(60, "seconds between passes of the main loop over all jobs", whole(1, 10_800, "s"))
    phase: int = setting(0, "seconds after a multiple of bf_interval at which cycles begin", whole(0, 10_799, "s"))
    version: str = setting(VERSIONS[0], "whose rules, where they have changed", choice(*VERSIONS))
    order: str = setting(FIFO, "order of the queue; multifactor wants conf", choice(FIFO, COLUMN, FACTORS))
    tiers: Mapping[str, int] = field(default_factory=dict, hash=False)
    ranks: Priorities | None = field(default=None, hash=False)
    limits: Limited = field(default_factory=Limited, hash=False)
    name: str = "slurm"
    tier_of: Mapping[int, int] | None = field(default=None, repr=False, compare=False)
    """By the number of a partition; None: nobody has said which names these have."""
    jobs: Jobs | None = field(default=None, repr=False, compare=False)
    asking: Asking | None = field(default=None, repr=False, compare=False)
    """What jobs say for their priorities, by job."""
    claims: Claims | None = field(default=None, repr=False, compare=False)
    """What jobs take from limits; None: nothing is limited."""
    first: int = field(default=0, repr=False, compare=False)
    """When priorities were first worked out."""
    needs_nodes: ClassVar[bool] = True
    user_keys: ClassVar[bool] = True
    cannot: ClassVar[Mapping[str, str]] = {
        "every": "has a clock of its own: set bf_interval and sched_interval",
        "charge": "has a clock of its own: a decision that takes time would miss it",
        "cap": "keeps no power cap: Slurm has none of its own",
        "licences": "counts no licences yet",
    }
    holds: ClassVar[str] = "there is room for it now; Slurm looks at jobs before it first"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order == FACTORS and self.ranks is None:
            raise SettingError(f"order={FACTORS} needs weights: conf=CLUSTER.slurm.json has those of a Slurm")

    @property
    def static_keys(self) -> bool:
        return self.order != FACTORS

    @property
    def turns(self) -> TreeTurns | None:
        counts = self.order == FACTORS and self.ranks is not None and self.ranks.rules.weights.turn > 0
        return self.ranks.turns if counts and self.ranks else None

    def at(self, site: Site | None, workload: Workload, cluster: Cluster) -> Slurm:
        """The same, knowing the partitions, users and arrays of jobs."""
        if not cluster.kinds:
            raise SettingError(f"{self.name} places jobs on nodes: it needs a cluster of them")
        partition = workload.get("partition")
        if len(set(self.tiers.values())) > 1 and "partition" not in workload.names:
            raise SettingError(f"{self.name}: partitions have tiers, and {workload.name} does not name those of jobs")
        tier_of = {
            code: self.tiers.get(workload.called("partition", code), 1)
            for code in np.unique(partition).tolist() if code >= 0
        }  # fmt: skip
        columns = {name: workload.get(name) for name in ("partition", "user", "array")}
        asked = requests_of(workload, cluster)
        if bool((odd := ~_possible(asked, cluster)).any()):
            raise SettingError(
                f"{workload.name}: {int(odd.sum())} jobs can never start by the rules of {self.name} (first: job"
                f" {workload['id'][int(odd.argmax())]}): it places whole GPUs, and just `per_node` units on each node"
            )
        known = replace(self, tier_of=tier_of, jobs=_known(columns, asked, cluster, np.arange(len(workload))))
        if self.limits:
            known = replace(known, claims=self.limits.of_workload(workload))
        if self.order != FACTORS or self.ranks is None:
            return known
        first = int(workload.submit[0]) if len(workload) else 0
        return replace(known, asking=self.ranks.of_workload(workload), first=first)

    def rule(self, asked: Asked = AS_USUAL) -> SlurmRule:
        common = self.common(asked, GIVEN if self.static_keys else GIVEN_PER_PASS, keep=asked.keep)
        table = self.bf_node_space_size or self.bf_max_job_test
        jobs = self.jobs
        if jobs is None:
            raise SettingError(f"{self.name} does not know its jobs yet: `at` tells it")
        most = int(jobs.columns[[PARTITION, USER]].max(initial=0)) + 1
        space = NO_SPACE._replace(columns=jobs.columns, parts=jobs.parts, counts=np.zeros((3, most), np.int64))
        if (claims := self.claims) is not None:
            limits = np.zeros((LIMIT_ROWS, len(claims.most)), np.int64)
            limits[LIMIT_MOST], limits[LIMIT_BEFORE] = claims.most, claims.before
            taken = np.zeros((CLAIM_ROWS, len(claims.which)), np.int64)
            taken[CLAIM_LIMIT], taken[CLAIM_TAKES], taken[CLAIM_ASKS] = claims.which, claims.takes, claims.asks
            space = space._replace(limits=limits, claims=taken, first_claim=claims.first)
        return SlurmRule(
            common, 60 * self.bf_window, self.bf_resolution, self.bf_interval, self.phase, self.sched_interval,
            self.default_queue_depth, self.bf_max_job_test, table, self.bf_max_job_user, self.bf_max_job_part,
            self.bf_max_job_start, self.bf_job_part_count_reserve, self.bf_max_job_array_resv,
            self.bf_min_age_reserve, self.bf_window_linear, self.version != VERSIONS[0],
            jobs.memory, jobs.devices, space,
        )  # fmt: skip

    def keys(self, state: State) -> Floats:
        """The highest tier first, in it the highest priority; those with the same as they came."""
        partition = state.columns.get("partition", np.full(len(state.submit), -1))[state.waiting]
        tiers = np.array([(self.tier_of or {}).get(code, 1) for code in partition.tolist()], np.float64)
        found: Floats = -tiers * _RANKS
        if self.order == COLUMN:
            found -= np.clip(state.columns.get("priority", np.zeros(len(state.submit)))[state.waiting], 0, _RANKS - 1)
        elif self.order == FACTORS:
            found -= self._priorities(state)
        return found

    def _priorities(self, state: State) -> Ints:
        """Of the waiting jobs, as they were worked out last."""
        if self.ranks is None or self.asking is None:
            raise SettingError(f"{self.name} does not know its jobs yet: `at` tells it")
        waiting = state.waiting
        asking = replace(self.asking.of(waiting), since=state.submit[waiting])
        if self.turns is not None:
            asking = replace(asking, turn=Turns.of(state))
        return self.ranks.rules(asking, self.keys_hold(state.now) - self.ranks.period_s)

    def keys_hold(self, now: int) -> int:
        """Priorities are worked out every so often, and when a job comes."""
        if self.ranks is None:
            return now
        return now - (now - self.first) % self.ranks.period_s + self.ranks.period_s

    def made(self, state: State) -> Plan:
        if state.cluster is None or state.requests is None:
            raise SettingError(f"{self.name} places jobs on nodes: the state has none")
        if len(state.draws_mw):
            self.refuse("cap")
        self.look_at(state)
        if len(set(self.tiers.values())) > 1 and self.tier_of is None:
            raise SettingError(f"{self.name}: a state has no names of partitions, so `tiers` says nothing")
        if self.limits and self.claims is None:
            raise SettingError(f"{self.name} does not know its jobs yet: `at` tells what they take from limits")
        here = np.concatenate([state.waiting, state.running, state.ended])
        asked, cluster = state.requests, state.cluster
        if not _possible(asked.of(state.waiting), cluster).all():
            raise SettingError(f"{self.name}: a job can never start by its rules: it places whole GPUs")
        none = np.full(len(state.submit), -1, np.int64)
        columns = {name: state.columns.get(name, none) for name in ("partition", "array")} | {"user": state.user}
        return RulePolicy.made(replace(self, jobs=_known(columns, asked, cluster, here)), state)

    def answer(self, state: State, run: layout.Run, starts: Ints) -> Plan:
        run.jobs[layout.PLACE, starts] = -1
        planned = written(state, run, layout.PLACE)
        return Plan(state.waiting[starts].tolist(), promised=planned, wake=wake_of(run))

    def to_compile(self) -> Slurm:
        one = np.zeros((COLUMNS, 1), np.int64)
        return replace(self, jobs=Jobs(one, one[:1], -1, -1), order=FIFO, ranks=None, tiers={}, limits=Limited())


def _possible(asked: Requests, cluster: Cluster) -> Mask:
    """Which jobs fit on the idle nodes as these rules place them: whole devices, and where a number of units on a node
    divides those of the job, just as many on each node."""
    each = np.where((asked.per_node > 0) & (asked.units % np.maximum(asked.per_node, 1) == 0), asked.per_node, 1)
    spread = (asked.exclusive > 0) | (asked.units == 1) | (each > 1) | (asked.per_node == 1)
    each = np.where(asked.exclusive > 0, 1, each)
    nodes = np.zeros(len(asked.units), np.int64)
    for kind, one in enumerate(cluster.kinds):
        nodes += one.count * (one.capacity[0] > 0) * (most_on_idle(cluster, asked, kind) >= each)
    found: Mask = ~spread | (nodes >= asked.units // each)
    if cluster.shared:
        found &= (asked.need[:, cluster.shared_at] == 0) | (asked.share == WHOLE)
    return found


def _known(columns: Mapping[str, Ints], requests: Requests, cluster: Cluster, here: Ints) -> Jobs:
    """Partitions, users and arrays of some jobs, counted from 0; a partition has all nodes that they could be given."""
    rows = np.zeros((COLUMNS, len(requests.units)), np.int64)
    for row, name in ((PARTITION, "partition"), (USER, "user")):
        rows[row, here] = np.unique(columns[name][here], return_inverse=True)[1].reshape(-1)
    rows[ARRAY, here] = columns["array"][here]
    has = np.zeros((int(rows[PARTITION].max(initial=-1)) + 1, len(cluster.kinds)), bool)
    for part, among in np.unique(np.stack([rows[PARTITION, here], requests.among[here]]), axis=1).T.tolist():
        has[part] |= requests.sets[among]
    memory, devices = (
        next((at for at, name in enumerate(cluster.resources) if name.startswith(word)), -1) for word in ("mem", "gpu")
    )
    return Jobs(rows, bits_of(np.take(has, cluster.kind_of, axis=1)), memory, devices)


NAMES: Final[Mapping[str, Policy]] = {"slurm": Slurm()}

FAMILY: Final = (2, "Slurm: what a site's own would do")
USES: Final = {
    "slurm": "as a Slurm would decide, by its own settings; needs a cluster of nodes",
}
"""When to use each, in a line."""
