"""What a Slurm lets a QOS, a partition's QOS or an association have at a time: Grp*, MaxJobs and Max*PerUser or
PerAccount; and of jobs, which of these limits each takes from, and how much."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.errors import InputError
from dovetail.model.workload import Workload
from dovetail.names import unknown
from dovetail.slurm import words
from dovetail.slurm.machine import NOTHING, ROOT, Machine, Texts, account_above
from dovetail.units import printable

TOGETHER, BY_USER, BY_ACCOUNT, OF_ASSOCIATION = "together", "by user", "by account", "of an association"
OF_QOS: Final = {
    "GrpJobs": TOGETHER, "GrpTRES": TOGETHER, "MaxJobsPerUser": BY_USER, "MaxTRESPerUser": BY_USER,
    "MaxJobsPerAccount": BY_ACCOUNT, "MaxTRESPerAccount": BY_ACCOUNT,
}  # fmt: skip
OF_MEMBER: Final = {"GrpJobs": TOGETHER, "GrpTRES": TOGETHER, "MaxJobs": OF_ASSOCIATION}
"""Limits that are followed, by their names, and whose jobs are counted together."""
NOT_FOLLOWED: Final = ("GrpTRESMins", "GrpTRESRunMins", "GrpWall")
JOBS: Final = "jobs"
COUNTED: Final = (JOBS, "cpu", "node", "mem", "gres/gpu")
"""Resources whose use is followed; memory in MiB."""
MOST: Final = 1 << 50

Limits = Mapping[tuple[str, str], int]
"""At most how much, by the name of the limit and the resource."""
Combination = tuple[str, str, str, str]
"""Partition, QOS, account and user of a job, by name."""


@dataclass(frozen=True)
class Claims:
    """What jobs take from limits while they run. Of limit k at most most[k] can be in use; `before`: it is asked before
    nodes are looked for. Those of job j are from first[j] to before first[j + 1]: which limit, how much, and whether
    that limit is asked. What a QOS says stands before what others say of the same; but all of them count."""

    most: Ints
    before: Ints
    first: Ints
    which: Ints
    takes: Ints
    asks: Ints
    exempt: int
    """Jobs that ask for more than a limit allows by themselves: it is not held against them, as somebody let them."""


@dataclass(frozen=True)
class Limited:
    """The limits of a Slurm. `qos`, `members`: by name, and by account and user ('' for the account itself)."""

    qos: Mapping[str, Limits] = field(default_factory=dict)
    members: Mapping[tuple[str, str], Limits] = field(default_factory=dict)
    above: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """The account that a member belongs to."""
    of_partition: Mapping[str, str] = field(default_factory=dict)
    """The QOS of partitions that have one."""
    first: frozenset[str] = frozenset()
    """QOS that come before that of the partition: OverPartQOS."""
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(self.qos.values()) or any(self.members.values())

    def changed(self, of: str, name: str, text: str, account: bool = False) -> Limited:
        """The same with one limit of a QOS or an account as somebody writes it: MaxJobsPerUser=4, GrpTRES=cpu=64."""
        known = {one for one, user in self.members if not user} if account else set(self.qos)
        if of not in known:
            raise ValueError(unknown("account" if account else "QOS", printable(of, 40), known))
        limits = OF_MEMBER if account else OF_QOS
        chosen = next((one for one in limits if one.lower() == name.lower()), "")
        if not chosen:
            raise ValueError(unknown("limit", printable(name, 40), limits))
        pieces = [text] if "Jobs" in chosen else text.split(",")
        lifted = [(chosen, piece.rpartition("=")[0] or JOBS) for piece in pieces if piece.rpartition("=")[2] == "-1"]
        odd = set[str]()
        left = ",".join(piece for piece in pieces if piece.rpartition("=")[2] != "-1")
        given = dict(_read({chosen: left}, [chosen], odd))
        if odd or not (given or lifted) or 0 in given.values():
            raise ValueError(f"{chosen} is at least 1, of {', '.join(COUNTED)}, as in cpu=64,node=4; -1 lifts it")

        def after(before: Limits) -> Limits:
            return {key: most for key, most in {**before, **given}.items() if key not in lifted}

        if not account:
            return replace(self, qos={**self.qos, of: after(self.qos[of])})
        members = {**self.members, (of, ""): after(self.members[of, ""])}
        if OF_MEMBER[chosen] == OF_ASSOCIATION:  # whoever is below has what it has, if nobody said otherwise
            key = (chosen, JOBS)
            was = self.members[of, ""].get(key)
            below = {one: its for one, its in self.members.items() if its.get(key) == was and self._is_below(one, of)}
            members |= {one: after(its) for one, its in below.items()}
        return replace(self, members=members)

    def _is_below(self, one: tuple[str, str], account: str) -> bool:
        for _ in range(len(self.above)):
            one = self.above.get(one, ROOT)
            if one in ((account, ""), ROOT):
                break
        return one == (account, "")

    def of(self, job: Combination) -> Iterator[tuple[tuple[str, ...], str, int, bool]]:
        """The limits that a job takes from: whose each is, of which resource, how much of it there can be, and whether
        it is asked for this job."""
        partition, qos, account, user = job
        both = [one for one in (self.of_partition.get(partition, ""), qos) if one]
        said = set[tuple[str, str]]()
        for one in dict.fromkeys(both[::-1] if qos in self.first else both):
            for (name, what), most in self.qos.get(one, {}).items():
                kind = OF_QOS[name]
                whose = {BY_USER: user, BY_ACCOUNT: account}.get(kind, "")
                yield (one, kind, whose), what, most, (kind, what) not in said
            said |= {(OF_QOS[name], what) for name, what in self.qos.get(one, {})}
        if said & {(BY_USER, JOBS), (BY_ACCOUNT, JOBS)}:
            said.add((OF_ASSOCIATION, JOBS))
        at, own = (account, user), True
        at = at if at in self.members else (account, "")
        seen = set[tuple[str, str]]()
        while at in self.members and at not in seen:
            seen.add(at)
            for (name, what), most in self.members[at].items():
                kind = OF_MEMBER[name]
                if own or kind == TOGETHER:
                    yield (*at, kind), what, most, (kind, what) not in said
            at, own = self.above.get(at, ROOT), False

    def of_workload(self, workload: Workload) -> Claims:
        """The claims of the jobs of a workload."""
        columns = ("partition", "qos", "account", "user")
        rows, which = np.unique(np.stack([workload.get(one) for one in columns]), axis=1, return_inverse=True)
        which, amounts = which.reshape(-1), used(workload)
        places: dict[tuple[tuple[str, ...], str], int] = {}
        most, jobs, limits, takes, asked = list[int](), list[Ints](), list[Ints](), list[Ints](), list[Ints]()
        for row, numbers in enumerate(rows.T.tolist()):
            partition, qos, account, user = map(workload.called, columns, numbers)
            here = np.flatnonzero(which == row)
            for whose, what, least, asks in self.of((partition, qos, account, user or str(numbers[3]))):
                place = places.setdefault((whose, what), len(places))
                most += [least] * (place == len(most))
                wants = amounts[what][here]
                jobs.append(here[wants > 0])
                takes.append(wants[wants > 0])
                limits.append(np.full(len(takes[-1]), place))
                asked.append(np.full(len(takes[-1]), int(asks)))
        none = np.zeros(0, np.int64)
        job, limit, take, ask = (np.concatenate([none, *some]) for some in (jobs, limits, takes, asked))
        bounds = np.array(most, np.int64)
        fits = take <= bounds[limit] if len(bounds) else np.ones(0, bool)
        exempt = len(np.unique(job[~fits & (ask > 0)]))
        order = np.argsort(job, kind="stable")
        first = np.searchsorted(job[order], np.arange(len(workload) + 1))
        before = np.array([what == JOBS for _, what in places], np.int64)
        return Claims(bounds, before, first.astype(np.int64), limit[order], take[order], (ask * fits)[order], exempt)


def used(workload: Workload) -> dict[str, Ints]:
    """What each job has of the resources that are counted. Units that each need a node of their own count as nodes."""
    units, each = np.maximum(workload.get("units"), 1), workload.get("per_node")
    nodes = np.where(workload.get("exclusive") > 0, units, np.where(each > 0, -(-units // np.maximum(each, 1)), 1))
    return {
        JOBS: np.ones(len(workload), np.int64), "cpu": workload.size, "node": nodes,
        "mem": units * np.maximum(workload.get("unit_memory_mb"), 0),
        "gres/gpu": units * np.maximum(workload.get("unit_gpus"), 0),
    }  # fmt: skip


def enforced(machine: Machine) -> bool:
    """Whether a Slurm holds anybody to limits."""
    told = machine.config.get("AccountingStorageEnforce", "").lower()
    return any(word in told for word in ("limits", "safe", "all"))


def limited(machine: Machine) -> Limited:
    """The limits that a Slurm enforces, by what it says of itself; where it enforces none, who could have some."""
    odd, unfollowed = set[str](), set[str]()
    told = [one for one in machine.members if not one.get("Partition")]
    on = enforced(machine)
    for record in (*machine.qos, *told):
        unfollowed |= {name for name in NOT_FOLLOWED if on and record.get(name, "") not in NOTHING}
    try:
        qos = {one["Name"]: dict(_read(one if on else {}, OF_QOS, odd)) for one in machine.qos}
        members = {(one["Account"], one["User"]): dict(_read(one if on else {}, OF_MEMBER, odd)) for one in told}
    except ValueError as error:
        raise InputError(machine.path, 0, f"limits: {error}") from error
    above = {(one["Account"], one["User"]): account_above(one) for one in told}
    of_partition = {
        name: text for name, one in machine.partitions.items() if (text := one.get("QoS", "")) not in NOTHING
    }
    flags = {one["Name"]: one.get("Flags", "").lower().split(",") for one in machine.qos}
    notes = [f"{name} of QOS or accounts is not followed" for name in sorted(unfollowed)]
    notes += [f"limits of {printable(name, 40)} are not followed" for name in sorted(odd)]
    parts = [one for one in machine.members if on and one.get("Partition") and any(one.get(name) for name in OF_MEMBER)]
    notes += [f"limits of {len(parts):,} associations of one partition are not followed"] * bool(parts)
    return Limited(
        qos, members, above, of_partition, frozenset(name for name, its in flags.items() if "overpartqos" in its),
        tuple(notes),
    )  # fmt: skip


def _read(record: Texts, names: Iterable[str], odd: set[str]) -> Iterator[tuple[tuple[str, str], int]]:
    """The limits of a record. `odd`: takes the names of resources that are not counted."""
    for name in names:
        text = record.get(name, "")
        if text in NOTHING:
            continue
        if name.startswith(("GrpJobs", "MaxJobs")):
            if not (text.isascii() and text.isdigit() and len(text) < 10):
                raise ValueError(f"{name}={printable(text, 40)} is no number of jobs")
            yield (name, JOBS), int(text)
            continue
        for what, most in words.tres(text).items():
            if what not in COUNTED:
                odd.add(what)
            elif most < MOST:
                yield (name, what), most // 1024 if what == "mem" else most
