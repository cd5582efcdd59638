"""What a policy is: how it decides, what it declares of itself, and how a compiled rule answers as one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from dovetail.arrays import NEVER, Ints
from dovetail.energy.site import Site
from dovetail.errors import SettingError
from dovetail.kernels import state as layout
from dovetail.kernels.machine.processors import Counted
from dovetail.kernels.one_pass import fit_now, step
from dovetail.kernels.passes.lists import ALL
from dovetail.kernels.passes.rule import Common, fitted
from dovetail.model.cluster import POWER, Cluster
from dovetail.model.machine import PLACES, Machine, new_machine, nodes_of
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.turns import TreeTurns, Turns
from dovetail.model.workload import Workload
from dovetail.names import Kind, check_settings, choice, setting
from dovetail.referee.state import check_state

CIRCUMSTANCES: Final = {
    "nodes": "on nodes",
    "every": "with passes at fixed intervals",
    "cap": "under a power cap",
    "charge": "with decisions that take time",
    "outages": "with outages",
    "licences": "with licences",
}
"""What a policy may declare that it cannot do (`Policy.cannot`)."""

COUNTS: Final = (
    "counts processors and cannot place jobs on nodes: choose a list policy (easy, list-saf, ...) or a planner"
    " (plan-af, ...)"
)
BLIND: Final = "does not look at outages: choose a list policy (easy, list-saf, ...) or a planner (plan-af, ...)"
NO_CAP: Final = "keeps no power cap: lists, conservative and deadline-based backfilling and planners do"
NO_LICENCES: Final = "counts no licences: lists, conservative and deadline-based backfilling and planners do"

PLACE: Final[Kind] = choice(*PLACES)


def place_setting(default: str = "best") -> Any:
    """The setting of policies that can say which nodes a job gets."""
    return setting(default, "which nodes a job gets, where nodes are known", PLACE)


_DEPTH: Final[Kind] = Kind(
    lambda text: int(text) if text.isdecimal() else text,
    "must be all, or a number of jobs of at least 1",
    lambda depth: depth == "all" or (isinstance(depth, int) and 1 <= depth < ALL),
)


def depth_setting() -> Any:
    """The setting of policies that plan for the whole queue, or for the first of it."""
    return setting("all", "how many jobs are planned, the first of the queue; others only start", _DEPTH)


def counted(depth: int | str) -> int:
    """A depth as the kernels count it."""
    return ALL if depth == "all" else int(depth)


if TYPE_CHECKING:
    declared = property
else:

    class declared:  # noqa: N801 - it stands where `property` would
        """A default that a policy declares otherwise: by a property, a class attribute, or on the object itself."""

        def __init__(self, of: Any) -> None:
            self.of, self.__doc__ = of, of.__doc__

        def __get__(self, one: Any, owner: Any = None) -> Any:
            return self if one is None else self.of(one)


class Asked(NamedTuple):
    """What a replay asks of a rule."""

    every_s: int = 0
    """Passes at multiples of this; 0: whenever something happens."""
    bounded: bool = False
    """Estimates are upper bounds."""
    stop_for_news: bool = False
    keep: bool = False
    """Write down planned starts."""
    seed: int = 0
    """For a policy that draws."""
    nodes: bool = False


AS_USUAL: Final = Asked()


class Choices(NamedTuple):
    """Policies of which one decides, chosen anew in a replay of what it has seen."""

    among: tuple[Policy, ...]
    goal: str
    """What is to be good: af, awf or bsld."""
    every_s: int
    look: int
    """How many of the last intervals count."""
    trial: int
    """Plans tried in one pass of a trial."""


class Policy(ABC):
    """Decides what starts now. A pure function of the state and its seed: it keeps nothing between calls.

    A policy that must remember something says it in its plan and finds it again in `state.standing`. What it declares
    here is all that the engine, checks, tables and messages ask of its kind; a property may depend on settings.
    """

    name: str = ""
    place: str = ""
    """Which nodes a job gets, for a policy that leaves it to the machine: one of PLACES."""
    needs_site: ClassVar[bool] = False
    """It cannot decide before it knows its site (`at`)."""
    makes_offers: ClassVar[bool] = False
    """It accepts or refuses deadlines when jobs arrive."""
    from_record: ClassVar[bool] = False
    """It is no rule but what the log says happened: its starts are the log's, and `decide` is never asked."""
    compiled: ClassVar[bool] = False
    """Whole replays of it are compiled: `rule` gives it as numbers."""

    needs_nodes: ClassVar[bool] = False
    """It places jobs on nodes and runs nowhere else."""

    @declared
    def keeps_deadlines(self) -> bool:
        """It answers the deadlines that jobs come with, and keeps those that it accepted."""
        return self.makes_offers

    @declared
    def by_solver(self) -> bool:
        """OR-Tools decides: another version of it may decide otherwise."""
        return False

    @declared
    def clairvoyant(self) -> bool:
        """It is shown the future: `state.future`, and run times for estimates. Tables mark what it did."""
        return False

    @declared
    def keeps_promises(self) -> bool:
        """What it promised in earlier passes binds it."""
        return False

    @declared
    def timed(self) -> bool:
        """It watches the clock: it is asked event by event, and may answer otherwise next time."""
        return False

    @declared
    def cannot(self) -> Mapping[str, str]:
        """Which of CIRCUMSTANCES it cannot run in, and why."""
        return {}

    @declared
    def shorter(self) -> str:
        """The setting that would keep passes short, where each plans all that waits: its time grows with the square of
        a queue of unlike jobs. Empty: it is set, or not needed."""
        return ""

    @declared
    def static_keys(self) -> bool:
        """`keys` are asked for once, for all jobs, before the replay begins."""
        return False

    @declared
    def user_keys(self) -> bool:
        """Keys come from a user's own function, at whatever moment."""
        return self.static_keys

    @declared
    def deciders(self) -> tuple[Policy, ...]:
        """Those that may have to decide: itself, unless it hands decisions on."""
        return (self,)

    @declared
    def turns(self) -> Turns | TreeTurns | None:
        """By what it, or one that it hands decisions on to, wants to be told whose turn it is (`State.turn`); None: it
        does not look at that."""
        found = dict.fromkeys(one.turns for one in self.deciders if one is not self and one.turns is not None)
        if len(found) > 1:
            raise SettingError(f"{self.name} hands decisions on to policies with different shares: give them one file")
        return next(iter(found), None)

    @declared
    def choices(self) -> Choices | None:
        """Those of which one decides, chosen anew on the way; None: it decides itself."""
        return None

    @declared
    def forks(self) -> bool:
        """Whether a replay of it can be stopped, copied and gone on with."""
        return self.compiled and not (self.user_keys or self.timed or self.clairvoyant)

    @declared
    def goes_on(self) -> bool:
        """Whether a replay of it can begin at a state."""
        return self.forks and not (self.keeps_promises or self.needs_site)

    def __post_init__(self) -> None:
        check_settings(self)

    @abstractmethod
    def decide(self, state: State) -> Plan:
        """The plan for this instant."""

    def at(self, site: Site | None, workload: Workload, cluster: Cluster) -> Policy:
        """The same policy with the site where it will run, if it needs one."""
        return self

    def rule(self, asked: Asked = AS_USUAL) -> Any:
        """This policy as numbers, for the compiled replay; None if it is not compiled."""
        return None

    def to_compile(self) -> Policy:
        """A policy that needs the same kernels and knows all that it must."""
        return self

    def keys(self, state: State) -> Any:
        """Keys of the waiting jobs, for an order of the user's; None for the built-in orders."""
        return None

    def keys_hold(self, now: int) -> int:
        """Until when keys that are asked for now hold, if no job comes."""
        return now

    def look_at(self, state: State) -> None:
        """Refuse a state with outages or licences, if it cannot keep to them."""
        if state.cluster is not None and state.cluster.outages:
            self.refuse("outages")
        if state.licences_total:
            self.refuse("licences")

    def refuse(self, circumstance: str) -> None:
        """Refuse a circumstance in which it, or one that it hands decisions on to, cannot run."""
        for one in (self, *self.deciders):
            if reason := one.cannot.get(circumstance):
                raise SettingError(f"{one.name} {reason}")


class RulePolicy(Policy):
    """A policy that the compiled replay knows: it can be run whole, and also decides on a single state."""

    compiled = True
    place: str = "best"
    holds: ClassVar[str] = "there is room for it now, which is kept for jobs before it"
    """Why a job waits that would fit now."""
    stands: ClassVar[int] = -1
    """The row of a run that says where waiting jobs stand in a plan that is kept; -1: none is."""

    @declared
    def looks_back(self) -> int:
        """How many of the last jobs that came it looks at, beside those that it foresees."""
        return 0

    @abstractmethod
    def rule(self, asked: Asked = AS_USUAL) -> Any: ...

    def common(
        self, asked: Asked, order: int, backfill: int = -1, starve_s: int = NEVER, keep: bool = False,
        groups: bool = False, tree_above: int = NEVER,
    ) -> Common:  # fmt: skip
        """What all rules share, as a replay asks for it."""
        if asked.every_s:
            self.refuse("every")
        return Common(order, backfill, starve_s, asked.every_s, asked.stop_for_news, keep, 0, groups, tree_above)

    def remembered(self, standing: Plan) -> Mapping[int, int]:
        """Which starts of the standing plan are in the machine's plan when a pass begins. None for policies that make
        their plans anew: they would stand there beside the new places."""
        return {}

    def answer(self, state: State, run: layout.Run, starts: Ints) -> Plan:
        """What a pass has decided. `starts` are positions among the waiting jobs."""
        run.jobs[layout.PLACE, starts] = -1
        return Plan(state.waiting[starts].tolist(), promised=written(state, run, layout.PLACE))

    def decide(self, state: State) -> Plan:
        check_state(state)
        unfit = state.never()
        if not unfit:
            return self.made(state)
        waiting, arrived = (jobs[~np.isin(jobs, list(unfit))] for jobs in (state.waiting, state.arrived))
        plan = self.made(replace(state, waiting=waiting, arrived=arrived))
        wished = state.deadline_s if self.keeps_deadlines and len(state.deadline_s) else np.full_like(state.submit, -1)
        refused = {job: -1 for job in unfit if wished[job] >= 0}
        return replace(plan, reasons={**plan.reasons, **unfit}, deadlines={**plan.deadlines, **refused})

    def newcomers(self, state: State) -> Ints:
        """Who is to be taken for just arrived, behind all others; none: those who are said to be."""
        return state.arrived[:0]

    def made(self, state: State) -> Plan:
        """The plan for a state that can be, in which each waiting job fits on the idle machine."""
        if not len(state.waiting):
            return Plan()
        if len(state.arrived):  # no plan can know who has just come
            state = replace(state, standing=state.standing.without(state.arrived.tolist()))
            if not np.array_equal(state.waiting[-len(state.arrived) :], state.arrived):  # then they are not the last
                state = replace(state, arrived=state.arrived[:0])
        new = self.newcomers(state)
        known = state.waiting[~np.isin(state.waiting, new)]
        state = replace(state, waiting=np.concatenate([known, new]), arrived=new) if len(new) else state
        rule = self.rule(Asked(keep=True, seed=state.seed, nodes=state.cluster is not None))
        # No queue is at hand that was kept sorted from pass to pass: sort in this one (no job starves by it).
        starve_s = min(rule.common.starve_s, NEVER - 1)
        rule = rule._replace(common=rule.common._replace(starve_s=starve_s))
        here = np.concatenate([state.waiting, state.running, state.ended])
        last = np.empty(0, np.int64)
        if recent := max(rule.common.foresight, self.looks_back):  # who came last, the last first: some may be gone
            last = state.future if self.clairvoyant else np.flatnonzero(state.submit >= 0)[::-1]
            last = last[:recent]
            last = last[state.possible(last)]
            here = np.concatenate([here, np.setdiff1d(last, here)])
        run = _run_of(state, here, self.keys(state), self.remembered(state.standing))
        if len(last):
            where = {job: i for i, job in enumerate(here.tolist())}
            run.info[layout.RECENT] = len(last)
            run.lists[layout.BACK_QUEUE, : len(last)] = [where[job] for job in last.tolist()]
        cap = _machine(state, here, self.place, len(last))
        n_started = step(fitted(rule, cap, run.lists.shape[1]), cap, run, state.now)
        starts = run.lists[layout.STARTED, :n_started].copy()
        plan = replace(self.answer(state, run, starts), reasons=_why(state, cap, run, starts, self.holds))
        nodes = nodes_of(cap)
        if nodes is None:
            return plan
        at = dict.fromkeys(starts.tolist(), nodes.placed)
        if self.keeps_promises and self.stands >= 0:  # later passes are to find them where they stand
            planned = np.flatnonzero(run.jobs[self.stands, : len(state.waiting)] >= 0)
            at = dict.fromkeys(planned.tolist(), nodes.pick) | at
        node, devices = (
            {int(here[i]): rows[r, nodes.first[i] : nodes.first[i + 1]].tolist() for i, rows in at.items()}
            for r in range(2)
        )
        return replace(plan, nodes=node, devices=devices)


def _why(state: State, cap: Machine, run: layout.Run, starts: Ints, holds: str) -> dict[int, str]:
    """Why each job that has not started waits, after a pass: there is no room for it now, or there is and the policy
    holds it."""
    fits = np.zeros(len(state.waiting), np.int64)
    fit_now(cap, run, fits)
    fits[starts] = -1
    if any(one.begin > state.now for one in (state.cluster.outages if state.cluster else ())):
        holds += ", or an outage would come before its end"
    why = dict.fromkeys(state.waiting[fits == 1].tolist(), holds)
    jobs = state.waiting[fits == 0]
    if state.requests is not None:
        units = state.requests.units[jobs]
        why |= {job: f"needs {n:,} unit{'s' * (n > 1)}; nodes have no room for as many now"
                for job, n in zip(jobs.tolist(), units.tolist(), strict=True)}  # fmt: skip
        short = np.zeros(len(jobs), bool)
    else:
        free = state.free - int(state.size[state.waiting[starts]].sum())
        sizes = state.size[jobs]
        why |= {job: f"needs {n:,} processors; {free:,} are free"
                for job, n in zip(jobs.tolist(), sizes.tolist(), strict=True)}  # fmt: skip
        short = sizes > free
    return why | _counted_why(state, jobs[~short], np.concatenate([state.running, state.waiting[starts]]))


def _counted_why(state: State, jobs: Ints, run: Ints) -> dict[int, str]:
    """Which of these jobs take more than is left now of what is counted for all together."""
    takes, used = state.takes(jobs), state.takes(run)
    why = dict[int, str]()
    left = np.array(list(state.counted.values()), np.int64) - used.sum(axis=0)
    for k, what in reversed(list(enumerate(state.counted))):
        for i in np.flatnonzero(takes[:, k] > left[k]).tolist():
            more = "draws more than the power cap leaves now"
            why[int(jobs[i])] = more if what == POWER else f"holds {takes[i, k]:,} {what}; {left[k]:,} are free"
    return why


def unplanned(state: State, remembered: Mapping[int, int]) -> Ints:
    """The waiting jobs that the last plan does not know."""
    return state.waiting[~np.isin(state.waiting, list(remembered))]


def written(state: State, run: layout.Run, row: int) -> dict[int, int]:
    """What a pass has written of each waiting job to a row of the run, where it has."""
    pairs = zip(state.waiting.tolist(), run.jobs[row].tolist(), strict=False)
    return {job: at for job, at in pairs if at >= 0}


def wake_of(run: layout.Run) -> int | None:
    """When a pass has asked to be woken."""
    at = int(run.info[layout.WAKE])
    return at if 0 < at < NEVER else None


def agreed(state: State, run: layout.Run) -> dict[int, int]:
    """By when each waiting job whose deadline was accepted will have ended; -1 where it was refused."""
    rows = run.jobs[[layout.AGREED, layout.ARRIVE, layout.DEADLINE]].T.tolist()
    return {
        job: arrive + deadline_s if answer > layout.REFUSED else -1
        for job, (answer, arrive, deadline_s) in zip(state.waiting.tolist(), rows, strict=False)
        if answer >= 0
    }


def _machine(state: State, here: Any, place: str, foresight: int) -> Machine:
    """The machine of one instant, idle; job i on it is here[i]. Those that run or have just ended know their nodes."""
    asked, takes = state.requests, state.takes(here)
    if asked is None:
        return new_machine(state.machine, state.size[here], None, takes, place, 2 * len(here), foresight)
    cap = new_machine(state.machine, state.size[here], asked.of(here), takes, place, len(here), foresight)
    if not isinstance(cap, Counted):
        for i in range(len(state.waiting), len(state.waiting) + len(state.running) + len(state.ended)):
            job = int(here[i])
            cap.hold(i, state.now, state.nodes[job], state.devices[job])
        stood = state.standing
        for i, job in enumerate(state.waiting.tolist() if stood.nodes else ()):
            if job in stood.nodes:
                cap.stand(i, stood.nodes[job], stood.devices.get(job, [0] * len(stood.nodes[job])))
    return cap


def _run_of(state: State, here: Any, keys: Any, promised: Mapping[int, int]) -> layout.Run:
    """The jobs of one instant as a Run; job i of it is here[i]."""
    waiting, running, n = len(state.waiting), len(state.running), len(here)
    jobs = np.full((layout.JOB_ROWS, n), -1, np.int64)
    jobs[layout.SUBMIT] = state.submit[here]
    jobs[layout.ARRIVE] = state.submit[here]
    jobs[layout.SIZE] = state.size[here]
    jobs[layout.ESTIMATE] = state.estimate[here]
    jobs[layout.START] = state.start[here]
    jobs[layout.SEEN] = 0
    jobs[layout.UNTIL], jobs[layout.NUMBER] = np.arange(1, n + 1), here
    if len(state.deadline_s):
        jobs[layout.DEADLINE] = state.deadline_s[here]
    agreed = state.standing.deadlines
    for i, job in enumerate(state.waiting.tolist()):
        if job in agreed:
            kept = layout.FIRM if job in state.standing.promised else layout.TENTATIVE
            jobs[layout.AGREED, i] = kept if agreed[job] >= 0 else layout.REFUSED
        jobs[layout.PROMISED_LAST, i] = promised.get(job, -1)
        jobs[layout.PROMISED_FIRST, i] = state.standing.promised.get(job, -1)
        jobs[layout.PLACE, i] = state.standing.expected.get(job, -1)
    info = np.zeros(layout.INFO, np.int64)
    info[layout.NOW] = state.now
    info[layout.WAITING], info[layout.RUNNING] = waiting, running
    corrected = len(state.corrected) > 0 or len(state.lost) > 0
    info[layout.CORRECTED] = 1 if corrected else 2 if len(state.left) else 0
    info[layout.ENDED], info[layout.ARRIVED] = len(state.ended), len(state.arrived)
    info[layout.JOINED] = len(state.arrived)
    lists = np.zeros((layout.LIST_ROWS, max(n, 1)), np.int64)
    lists[layout.QUEUE, :waiting] = np.arange(waiting)
    lists[layout.END_JOB, :running] = np.arange(waiting, waiting + running)
    lists[layout.NEWS_LIST, : len(state.ended)] = waiting + running + np.arange(len(state.ended))
    both = np.zeros((2, n))
    if keys is not None:
        both[layout.KEY, :waiting] = keys
    none = np.empty((4, 0), np.int64)
    return layout.Run(info, jobs, both, none, np.empty((2, 0), np.int64), lists)
