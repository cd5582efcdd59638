"""What a policy is, and how a rule of the compiled family answers as one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from dovetail.energy.site import Site
from dovetail.errors import SettingError
from dovetail.kernels import state as layout
from dovetail.kernels.machine.node_fit import PICKED
from dovetail.kernels.machine.nodes import Nodes
from dovetail.kernels.one_pass import step
from dovetail.kernels.passes import deadline as _  # noqa: F401 - how a DeadlineRule decides
from dovetail.kernels.passes.rules import (
    ConservativeRule,
    DeadlineRule,
    ListRule,
    MoneyRule,
    PlanRule,
    Rule,
    SlackRule,
    ThriftRule,
)
from dovetail.kernels.planner.plan import fitted
from dovetail.model.cluster import Cluster, PowerCap
from dovetail.model.plan import Plan
from dovetail.model.requests import Requests
from dovetail.model.state import State
from dovetail.model.workload import Workload
from dovetail.policies.machine import PLACES, Machine, new_machine


class Policy(ABC):
    """Decides what starts now. A pure function of the state and its seed: it keeps nothing between calls.

    A policy that must remember something says it in its plan and finds it again in `state.standing`.
    """

    name: str = ""
    clairvoyant: ClassVar[bool] = False
    """Whether it is shown the future: `state.future`, and run times for estimates. Tables mark what it did."""
    needs_site: ClassVar[bool] = False
    """Whether it cannot decide before it has been told of a site (`at`)."""

    @abstractmethod
    def decide(self, state: State) -> Plan:
        """The plan for this instant."""

    def at(self, site: Site | None, workload: Workload, processors: int) -> Policy:
        """The same policy, told of the site where it will run, if it asks for one."""
        return self


def is_clairvoyant(policy: Policy) -> bool:
    """Whether a policy says so; one of a user's own may be any class with `decide`, and then says nothing."""
    return bool(getattr(policy, "clairvoyant", False))


def at_site(policy: Policy, site: Site | None, workload: Workload, processors: int) -> Policy:
    """A policy as it is at a site; one of a user's own that is no Policy stays as it is."""
    return policy.at(site, workload, processors) if isinstance(policy, Policy) else policy


class RulePolicy(Policy):
    """A policy that the compiled replay knows: it can be run whole, and also decides on a single state."""

    @abstractmethod
    def rule(
        self, *, every_s: int = 0, bounded: bool = False, stop_for_news: bool = False, keep: bool = False, seed: int = 0
    ) -> Rule:
        """This policy as numbers. `bounded`: estimates are upper bounds. `keep`: write down planned starts. `seed`: for
        a policy that draws."""

    def to_compile(self) -> RulePolicy:
        """A policy that needs the same kernels and knows all that it must."""
        return self

    place: str = "best"
    """Which nodes a job gets, where nodes are known: one of PLACES."""

    @property
    def static_keys(self) -> bool:
        """Whether `keys` are asked for once, for all jobs, before the replay begins."""
        return False

    @property
    def user_keys(self) -> bool:
        """Whether keys come from a user's own function, at whatever moment."""
        return self.static_keys

    @property
    def timed(self) -> bool:
        """Whether it watches the clock: such a policy is asked event by event, and may answer otherwise next time."""
        return False

    def keys(self, state: State) -> Any:
        """Keys of the waiting jobs, for an order of the user's; None for the built-in orders."""
        return None

    def decide(self, state: State) -> Plan:
        if not len(state.waiting):
            return Plan()
        rule = self.rule(keep=True, seed=state.seed)
        if not isinstance(rule, ConservativeRule | DeadlineRule):
            # No queue is at hand that was kept sorted from pass to pass: sort in this one (nobody starves by it).
            rule = rule._replace(starve_s=min(rule.starve_s, layout.NEVER - 1))
        here = np.concatenate([state.waiting, state.running, state.ended])
        last = np.empty(0, np.int64)
        if isinstance(rule, PlanRule) and rule.foresight:  # who came last, the last first: they may be gone already
            last = state.future if self.clairvoyant else np.flatnonzero(state.submit >= 0)[::-1]
            last = last[: rule.foresight]
            here = np.concatenate([here, np.setdiff1d(last, here)])
        # Lists and planners make their plans anew: what they remembered would stand in them beside the new places.
        remembered = {} if isinstance(rule, ListRule | PlanRule | ThriftRule | MoneyRule) else state.standing.promised
        if isinstance(rule, DeadlineRule):
            remembered = {**state.standing.expected, **remembered}
        run = _run_of(state, here, self.keys(state), remembered)
        if len(last):
            where = {job: i for i, job in enumerate(here.tolist())}
            run.info[layout.RECENT] = len(last)
            run.lists[layout.BACK_QUEUE, : len(last)] = [where[job] for job in last.tolist()]
        cap = _machine(state, here, self.place, len(last))
        n_started = step(fitted(rule, cap, run.lists.shape[1]), cap, run, state.now)
        starts = run.lists[layout.STARTED, :n_started]
        if isinstance(rule, DeadlineRule):
            return _promised(state, run, here[starts])
        # A relaxed reservation is measured from the first one that the job had: that is what must be remembered.
        rows = {
            ListRule: layout.PLACE,
            SlackRule: layout.PROMISED_FIRST,
            ConservativeRule: layout.PROMISED_LAST,
            PlanRule: layout.PLACE,
            ThriftRule: layout.PLACE,
            MoneyRule: layout.PLACE,
        }
        told = run.jobs[rows[type(rule)]]
        told[starts] = state.now if isinstance(rule, ConservativeRule) else -1
        pairs = zip(state.waiting.tolist(), told.tolist(), strict=False)
        known = {job: at for job, at in pairs if at >= 0}
        if isinstance(rule, PlanRule):  # a planner changes its mind; a patient one within what it promised
            latest = run.jobs[layout.PROMISED_FIRST]
            promised = {job: at for job, at in zip(state.waiting.tolist(), latest.tolist(), strict=False) if at >= 0}
            plan = Plan(here[starts].tolist(), promised, known, _agreed(state, run), wake=_wake(run))
        elif isinstance(rule, ThriftRule | MoneyRule):  # it promises nothing: tomorrow may be cheaper
            plan = Plan(here[starts].tolist(), expected=known, wake=_wake(run))
        else:
            plan = Plan(starts=here[starts].tolist(), promised=known)
        if not isinstance(cap, Nodes):
            return plan
        node, devices = (
            {int(here[i]): row[cap.first[i] : cap.first[i + 1]].tolist() for i in starts.tolist()} for row in cap.placed
        )
        return replace(plan, nodes=node, devices=devices)


def check_place(place: str) -> None:
    """Refuse a rule of placement that does not exist."""
    if place not in PLACES:
        raise SettingError(f"place={place}: choose from {', '.join(PLACES)}")


def _machine(state: State, here: Any, place: str, foresight: int) -> Machine:
    """The machine of one instant, idle; job i on it is here[i]. Those that run or have just ended know their nodes."""
    cluster, asked = state.cluster, state.requests
    if cluster is None or asked is None:
        capped = len(state.draws_mw) > 0
        machine = Cluster(state.processors, cap=PowerCap(state.room_mw) if capped else None)
        draws = state.draws_mw[here] if capped else None
        return new_machine(machine, state.size[here], None, place, 2 * len(here), foresight, draws)
    columns = (asked.units, asked.need, asked.share, asked.per_node, asked.exclusive, asked.kinds)
    cap = new_machine(
        cluster, state.size[here], Requests(*(column[here] for column in columns)), place, len(here), foresight
    )
    if isinstance(cap, Nodes):
        for i in range(len(state.waiting), len(state.waiting) + len(state.running) + len(state.ended)):
            job, units = int(here[i]), slice(cap.first[i], cap.first[i + 1])
            cap.pick[0, units], cap.pick[1, units] = state.nodes[job], state.devices[job]
            cap.rows[PICKED, i] = state.now
    return cap


def _promised(state: State, run: layout.Run, starts: Any) -> Plan:
    """What a DeadlineRule has decided: firm starts are promised, tentative ones expected."""
    promised: dict[int, int] = {}
    expected: dict[int, int] = {}
    rows = run.jobs[[layout.PROMISED_LAST, layout.AGREED]].T.tolist()
    for job, (at, agreed) in zip(state.waiting.tolist(), rows, strict=False):
        (expected if agreed == layout.TENTATIVE else promised)[job] = at
    return Plan(starts.tolist(), promised, expected, _agreed(state, run), wake=_wake(run))


def _wake(run: layout.Run) -> int | None:
    at = int(run.info[layout.WAKE])
    return at if 0 < at < layout.NEVER else None


def _agreed(state: State, run: layout.Run) -> dict[int, int]:
    """By when each waiting job whose deadline was accepted will have ended; -1 where it was refused."""
    rows = run.jobs[[layout.AGREED, layout.ARRIVE, layout.DEADLINE]].T.tolist()
    return {
        job: arrive + deadline_s if agreed > layout.REFUSED else -1
        for job, (agreed, arrive, deadline_s) in zip(state.waiting.tolist(), rows, strict=False)
        if agreed >= 0
    }


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
    info[layout.CORRECTED] = len(state.corrected) > 0
    info[layout.ENDED], info[layout.ARRIVED] = len(state.ended), len(state.arrived)
    lists = np.zeros((layout.LIST_ROWS, max(n, 1)), np.int64)
    lists[layout.QUEUE, :waiting] = np.arange(waiting)
    lists[layout.END_JOB, :running] = np.arange(waiting, waiting + running)
    lists[layout.NEWS_LIST, : len(state.ended)] = waiting + running + np.arange(len(state.ended))
    both = np.zeros((2, n))
    if keys is not None:
        both[layout.KEY, :waiting] = keys
    none = np.empty((4, 0), np.int64)
    return layout.Run(info, jobs, both, none, np.empty((2, 0), np.int64), lists)
