"""A case: one replay, all of it drawn from one integer, and all of it plain values that can be written down."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from dovetail.arrays import NEVER, Ints
from dovetail.energy.series import Hours
from dovetail.energy.site import Site
from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.kernels.passes.order import MOVING
from dovetail.model.cluster import Cluster, PowerCap
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Provenance, Workload
from dovetail.names import Setting, settings_of
from dovetail.policies.base import Policy
from dovetail.policies.lists import ORDERS
from dovetail.policies.registry import named, policy
from dovetail.predict.known import estimates, is_known
from dovetail.predict.registry import LEARNED, predictor
from tests.slow.node_cases import random_nodes_case, with_outages
from tests.slow.node_cases import with_deadlines as on_nodes_by_deadlines
from tests.slow.workloads import drawn_comings, drawn_licences, random_jobs, with_deadlines

OWN: Final = str(Path(__file__).with_name("own.py"))
COMPILED: Final = os.environ.get("NUMBA_DISABLE_JIT") != "1"
"""Uncompiled kernels are a hundred times slower: then there are no large cases, and searches are rare and short."""
LARGE: Final = 0.05
"""Part of the cases that are large."""

KINDS: Final = {
    "ListPolicy": 40, "Conservative": 12, "DeadlineBackfilling": 9, "Planner": 12, "Offline": 2, "Thrift": 3,
    "MoneyPlanner": 3, "ByProfit": 2, "Daily": 0.6, "Solver": 0.3, "Dispatch": 0.3, "Switch": 0.3,
    "own": 4, "own order": 3,
}  # fmt: skip
"""How often each kind of policy is drawn. Those that ask a solver are slow: rarely, and with few jobs."""
PLAIN: Final = ("ListPolicy", "Conservative", "DeadlineBackfilling", "own", "own order")
"""Kinds that search for nothing."""
PRICED: Final = ("MoneyPlanner", "ByProfit")
"""Kinds that try many starts of each job: not drawn where kernels are not compiled."""
CAPPED: Final = ("ListPolicy", "Conservative", "DeadlineBackfilling", "Planner")
"""Kinds that are drawn under power caps too: each is compiled once more for that."""
TINY: Final = ("Solver", "Dispatch", "Switch", "Daily")

ON_NODES: Final = ("Dispatch", "Switch")
"""Kinds that dispatch onto nodes only."""
SHORT: Final = {"Solver": "deterministic=0.01", "Dispatch": "delta=0.05,most=0.2"}
"""Settings that make a search short."""

VALUES: Final = (
    "0", "1", "2", "3", "5", "8", "17", "100", "0.1", "0.25", "0.5", "1.5", "none", "all", "strict", "yes", "no", "1s",
    "7s", "40s", "10m", "1d", *ORDERS, "af", "awf", "bsld", "p2sf", "wait", "makespan", "af+0.1*p2sf", "2*wait+bsld",
)  # fmt: skip
"""What is tried for a setting that is not a choice of words: one is taken that the policy accepts."""


@dataclass(frozen=True, eq=False)
class Case:
    """One replay. `jobs` are the columns of a workload, `estimate` a name or one number per job."""

    policy: str
    jobs: Mapping[str, Ints]
    cluster: Cluster
    estimate: str | Ints = "limit"
    feedback: bool = False
    every_s: int = 0
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    site: Site | None = None
    seed: int = 0

    def __len__(self) -> int:
        return len(self.jobs["id"])

    @cached_property
    def workload(self) -> Workload:
        return Workload("simulated", self.jobs, self.cluster.processors, Provenance("simulated"), names=self.names)

    @cached_property
    def rule(self) -> Policy:
        """The policy itself."""
        return policy(self.policy)

    @cached_property
    def known(self) -> Ints | None:
        """The estimates, where they are known before the replay."""
        if self.rule.clairvoyant:
            return estimates(self.workload, "runtime")
        if not isinstance(self.estimate, str):
            return self.estimate
        return estimates(self.workload, self.estimate) if is_known(self.estimate) else None

    @property
    def bounded(self) -> bool:
        """Estimates are upper bounds of the run times."""
        return self.known is not None and bool(np.all(self.known >= self.jobs["runtime"]))

    @property
    def large(self) -> bool:
        return len(self) > 1000

    def replay(self, *, keep: bool = False, event_by_event: bool = False, **more: Any) -> Schedule:
        """What the engine makes of it. `more`: other arguments of `replay`, or other values for those of the case."""
        options: dict[str, Any] = {
            "cluster": self.cluster, "estimate": self.estimate, "feedback": self.feedback, "every_s": self.every_s,
            "seed": self.seed, "site": self.site, "keep_promises": keep, "event_by_event": event_by_event,
        }  # fmt: skip
        return replay(self.workload, more.pop("policy", self.policy), **options | more)

    def text(self) -> str:
        """Lines of Python that make this case."""
        width = max(map(len, self.jobs))
        columns = "".join(f"    {name!r:{width + 2}}: {values.tolist()},\n" for name, values in self.jobs.items())
        lines = f"jobs = {{name: np.array(values) for name, values in {{\n{columns}}}.items()}}\n"
        estimate = self.estimate if isinstance(self.estimate, str) else f"np.array({self.estimate.tolist()})"
        given: dict[str, Any] = {"estimate": repr(estimate) if isinstance(self.estimate, str) else estimate}
        given |= {"feedback": self.feedback, "every_s": self.every_s, "seed": self.seed}
        if self.names:
            given["names"] = dict(self.names)
        if self.site is not None:
            given["site"] = f"site_of({self.site.name!r})"
        plain = {"estimate": "'limit'", "feedback": False, "every_s": 0, "seed": 0}
        more = "".join(f", {key}={value}" for key, value in given.items() if value != plain.get(key, ""))
        return f"{lines}case = Case({self.policy!r}, jobs, {_cluster_text(self.cluster)}{more})\n"


def _cluster_text(cluster: Cluster) -> str:
    parts = {
        "resources": cluster.resources, "kinds": cluster.kinds, "shared": cluster.shared, "typical": cluster.typical,
        "cap": cluster.cap, "outages": cluster.outages, "reservations": cluster.reservations,
        "licences": cluster.licences,
    }  # fmt: skip
    return (
        f"Cluster({cluster.processors}" + "".join(f", {key}={value!r}" for key, value in parts.items() if value) + ")"
    )


# Drawing ----------------------------------------------------------------------------------------------------


def draw(seed: int) -> Case:
    """The case of that number."""
    rng = random.Random(f"case {seed}")
    slower = {kind: 1 if COMPILED or kind in PLAIN else 0 if kind in PRICED else 0.2 for kind in KINDS}
    weights = [often * slower[kind] for kind, often in KINDS.items()]
    kind = rng.choices(tuple(KINDS), weights)[0]
    if COMPILED and kind not in TINY and rng.random() < LARGE:
        return _large(rng, kind, seed)
    name = _policy(rng, kind)
    chosen = policy(name)
    nodes = "nodes" not in chosen.cannot and (kind in ON_NODES or rng.random() < 0.3)
    case = _on_nodes(rng, name, seed) if nodes else _on_processors(rng, name, seed)
    if kind in TINY:
        case = first(case, 6)
    if chosen.needs_site:
        case = replace(case, site=site_of(f"site {rng.randrange(1000)}"))
    if kind in CAPPED and "cap" not in chosen.cannot and rng.random() < 0.12:
        case = _capped(rng, case)
    if kind in CAPPED and "licences" not in chosen.cannot and rng.random() < 0.12:
        case = _licensed(rng, case)
    if not chosen.clairvoyant and rng.random() < 0.15:
        case = _coming(rng, case)
    if "every" not in chosen.cannot and rng.random() < 0.15:
        case = replace(case, every_s=rng.choice((1, 3, 10, 60)))
    return replace(case, estimate=_estimate(rng, case), seed=rng.randrange(100))


def first(case: Case, many: int) -> Case:
    """The same with its first jobs only."""
    return kept(case, np.arange(len(case)) < many)


def kept(case: Case, keep: Any) -> Case:
    """The same with some of its jobs only."""
    estimate = case.estimate if isinstance(case.estimate, str) else case.estimate[keep]
    return replace(case, jobs={name: values[keep] for name, values in case.jobs.items()}, estimate=estimate)


def _on_processors(rng: random.Random, name: str, seed: int) -> Case:
    """Few jobs, dense, with ties in everything."""
    chosen = policy(name)
    feedback = not chosen.clairvoyant and rng.random() < 0.25
    drawn, capacity = random_jobs(rng, too_small=rng.random() < 0.3, feedback=feedback)
    if chosen.makes_offers or rng.random() < 0.3:
        drawn = with_deadlines(rng, drawn)
    jobs = {
        "id": [j + 1 for j in range(len(drawn))],
        "submit": [job.submit for job in drawn],
        "size": [job.size[0] for job in drawn],
        "runtime": [job.runtime for job in drawn],
        "limit": [job.estimate for job in drawn],
    }
    if feedback:
        jobs["after"] = [job.after + 1 if job.after >= 0 else -1 for job in drawn]
        jobs["think_s"] = [job.think for job in drawn]
    if any(job.deadline >= 0 for job in drawn):
        jobs["deadline_s"] = [job.deadline for job in drawn]
    case = Case(name, _arrays(jobs), Cluster(capacity[0]), feedback=feedback)
    return _described(rng, _bursts(rng, case))


def _on_nodes(rng: random.Random, name: str, seed: int) -> Case:
    made, chosen = random_nodes_case(rng), policy(name)
    if chosen.makes_offers or rng.random() < 0.2:
        made = on_nodes_by_deadlines(made, rng)
    if chosen.compiled and "outages" not in chosen.cannot and rng.random() < 0.5:
        made = with_outages(made, rng)
    return _described(rng, Case(name, dict(made.workload.columns), made.cluster, names=dict(made.workload.names)))


def _arrays(jobs: Mapping[str, Sequence[int]]) -> dict[str, Ints]:
    return {name: np.array(values, np.int64) for name, values in jobs.items()}


def _bursts(rng: random.Random, case: Case) -> Case:
    """Sometimes arrays of jobs that are alike but for their run times, and short jobs, and all in one second."""
    jobs, n = {name: values.copy() for name, values in case.jobs.items()}, len(case)
    if rng.random() < 0.3:
        for _ in range(rng.randint(1, 3)):
            begin = rng.randrange(n)
            part = slice(begin, min(n, begin + rng.randint(2, 15)))
            for name in {"submit", "size", "limit", "deadline_s"} & set(jobs):
                jobs[name][part] = jobs[name][begin]
        order = np.argsort(jobs["submit"], kind="stable")
        if not case.feedback:
            jobs = {name: values if name == "id" else values[order] for name, values in jobs.items()}
        jobs["submit"] = np.sort(jobs["submit"])
    if rng.random() < 0.15:
        short = np.array([rng.random() < 0.5 for _ in range(n)])
        jobs["runtime"][short] = 1
        jobs["limit"][short & np.array([rng.random() < 0.5 for _ in range(n)])] = 1
    if rng.random() < 0.1:
        jobs["submit"][:] = jobs["submit"][0]
    return replace(case, jobs=jobs)


def _described(rng: random.Random, case: Case) -> Case:
    """With users, groups, names and queues, as predictors and some orders read them."""
    if rng.random() < 0.3:
        return case
    n, most = len(case), rng.choice((1, 2, 5))
    more = {column: [rng.randint(0, most) for _ in range(n)] for column in ("user", "group", "name", "queue")}
    return replace(case, jobs={**case.jobs, **_arrays(more)})


def _capped(rng: random.Random, case: Case) -> Case:
    """Under a power cap that leaves room for each job alone."""
    idle, busy = rng.choice((0, 0, 3)), rng.randint(4, 9)
    jobs = dict(case.jobs)
    if rng.random() < 0.7:
        jobs["power_mw"] = np.array([rng.choice((-1, 0, 5, 9, 20)) for _ in range(len(case))], np.int64)
    cap = PowerCap(0, idle, busy)
    case = replace(case, jobs=jobs)
    need = int(cap.draws(case.workload).max(initial=0))
    room = need + rng.choice((0, 1, need // 2, 3 * need))
    cap = replace(cap, mw=case.cluster.processors * idle + room)
    return replace(case, cluster=replace(case.cluster, cap=cap))


def _coming(rng: random.Random, case: Case) -> Case:
    """With jobs that may not start at once, or leave the queue."""
    longest = int(case.jobs["limit"].max(initial=1))
    held, leaves = drawn_comings(rng, len(case), longest, leave=not case.feedback)
    more = {"not_before_s": held} if case.feedback else {"not_before_s": held, "leaves_s": leaves}
    return replace(case, jobs={**case.jobs, **_arrays(more)})


def _licensed(rng: random.Random, case: Case) -> Case:
    """With licences, enough for each job alone."""
    columns, licences = drawn_licences(rng, len(case))
    return replace(case, jobs={**case.jobs, **columns}, cluster=replace(case.cluster, licences=licences))


def _estimate(rng: random.Random, case: Case) -> str | Ints:
    draw = rng.random()
    if draw < 0.35:
        return "limit"
    if draw < 0.5:
        runtime, limit = case.jobs["runtime"], case.jobs["limit"]
        rows = zip(runtime.tolist(), limit.tolist(), strict=True)
        return np.array(
            [max(1, rng.choice((ran, ran, most, ran + 1, ran - 1, 2 * ran, ran // 3))) for ran, most in rows]
        )
    if draw < 0.6:
        return "runtime"
    if draw < 0.67:
        return f"runtime*{rng.choice(('0.5', '1.5', '3'))}"
    if draw < 0.72:
        return f"{OWN}:Half"
    name = rng.choice(tuple(LEARNED))
    return _with_settings(rng, name, settings_of(LEARNED[name]), predictor)


def _policy(rng: random.Random, kind: str) -> str:
    """A policy of a kind, by its name, often with settings."""
    if kind == "own":
        return f"{OWN}:{rng.choice(('SmallestFirst', 'OneByOne'))}"
    if kind == "own order":
        order = rng.choice(("by_area", "by_user", "oldest_first"))
        return f"list:order={OWN}:{order},reserve={rng.choice(('0', '1', '2', 'all'))}"
    name = rng.choice(_of_kind()[kind])
    if kind in SHORT:
        name = f"{name}:{SHORT[kind]}"
    return _with_settings(rng, name, settings_of(policy(name)), _acceptable)


@cache
def _of_kind() -> Mapping[str, Sequence[str]]:
    """The names of each kind of policy; one that chooses on the way decides otherwise event by event."""
    found: dict[str, list[str]] = {}
    for name, one in named().items():
        if one.choices:
            continue
        found.setdefault(type(one).__name__, []).append(name)
    return found


def _acceptable(text: str) -> Policy:
    """The policy of that text, if no two replays of it differ and none takes long."""
    made = policy(text)
    if made.timed or (not COMPILED and getattr(made, "decodes", 0) > 8) or "cpoptimizer" in text:
        raise SettingError("not here")
    return made


def _with_settings(rng: random.Random, name: str, known: Mapping[str, tuple[str, Setting]], accept: Any) -> str:
    """A name with up to three of its settings drawn: values that are accepted, whatever they are."""
    text = name
    free = sorted(key for key in known if f"{key}=" not in name)
    wanted = rng.sample(free, min(len(free), rng.choice((0, 1, 1, 2, 3))))
    if not COMPILED and "decodes" in known:
        wanted = [*dict.fromkeys([*wanted, "decodes"])]
    for key in wanted:
        words = re.fullmatch(r"choose from (.*)", known[key][1].kind.words)
        values = words[1].split(", ") if words and "path/to" not in words[1] else list(VALUES)
        for value in rng.sample(values, len(values)):
            longer = f"{text}{',' if ':' in text else ':'}{key}={value}"
            try:
                accept(longer)
            except SettingError:
                continue
            text = longer
            break
    return text


def site_of(name: str) -> Site:
    """The site of that name: powers, and prices that change with each few minutes or hours."""
    rng = random.Random(name)
    step_s = rng.choice((5, 60, 3600))

    def hours(least: int, most: int) -> Hours:
        values = np.array([rng.randint(least, most) for _ in range(rng.randint(2, 30))], np.int64)
        values[0] = most + 1  # never the same at all times
        return Hours(values, rng.randrange(100), step_s)

    return Site(
        name, rng.randint(5, 30), rng.randint(0, 4), price=hours(-20_000_000, 200_000_000), carbon=hours(0, 900_000),
        tariff=rng.randint(1, 100_000),
    )  # fmt: skip


# Large cases ------------------------------------------------------------------------------------------------


def _large(rng: random.Random, kind: str, seed: int) -> Case:
    """10,000 to 100,000 jobs that arrive in bursts; fewer for policies that plan each of them."""
    name = _policy(rng, kind)
    if getattr(policy(name), "decodes", 0) > 20:
        name += f"{',' if ':' in name else ':'}decodes=5"
    chosen = policy(name)
    plans = kind not in ("ListPolicy", "own order") or getattr(chosen, "reserve", 1) not in ("strict", 0, 1, 2)
    if kind == "ListPolicy":  # an order that moves is sorted at each pass
        common = chosen.rule().common
        plans = plans or common.starve_s < NEVER or common.order in MOVING or common.backfill in MOVING
    n = rng.randrange(2_000, 10_000) if plans else rng.randrange(10_000, 100_000)
    if kind in ("own", "own order", "Planner", "Offline"):
        n = rng.randrange(1_000, 2_000)
    if chosen.needs_site:  # each start within hours of prices that change every few seconds is tried
        n = rng.randrange(200, 400)
    numbers = np.random.Generator(np.random.PCG64(seed))
    processors = int(rng.choice((64, 100, 1024, 5000)))
    longest = rng.choice((600, 3600, 86400))
    size = np.minimum(2 ** numbers.integers(0, 10, n), processors)
    size[numbers.random(n) < 0.2] = numbers.integers(1, processors // 2 + 1)
    limit = numbers.integers(1, longest + 1, n) if rng.random() < 0.5 else numbers.choice([60, 300, longest], n)
    runtime = np.maximum(1, (limit * numbers.random(n) ** 2).astype(np.int64))
    exact = numbers.random(n) < 0.2
    runtime[exact] = limit[exact]
    over = numbers.random(n) < rng.choice((0, 0, 0.1))
    runtime[over] = limit[over] + numbers.integers(1, 100, int(over.sum()))
    load = rng.choice((0.5, 0.8, 0.95))
    span = float(size @ runtime) / processors / load
    bursts = numbers.exponential(1, n) * (numbers.random(n) < rng.choice((0.02, 0.2, 1.0)))
    submit = np.cumsum(bursts * (span / max(bursts.sum(), 1e-9))).astype(np.int64)
    jobs = {"id": np.arange(1, n + 1), "submit": submit, "size": size, "runtime": runtime, "limit": limit}
    jobs |= {"user": numbers.integers(0, 50, n), "name": numbers.integers(0, 20, n)}
    if chosen.makes_offers:
        jobs["deadline_s"] = np.where(numbers.random(n) < 0.3, 10 * limit, -1)
    site = site_of(f"site {rng.randrange(1000)}") if chosen.needs_site else None
    estimate = rng.choice(("limit", "limit", "limit", "runtime", "recent", "hierarchy", "survival"))
    return Case(name, jobs, Cluster(processors), estimate, site=site, seed=rng.randrange(100))
