"""Rules of nodes: where units may be, and that no node and no device ever gives more than it has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dovetail.arrays import Ints
from dovetail.model.cluster import WHOLE, Cluster
from dovetail.model.requests import Requests
from dovetail.referee.violation import Flags, Violation


@dataclass(frozen=True)
class Units:
    """Units of jobs on nodes, one row each, those of a job in a row; `devices` has bit d for device d of the node.

    Of those that begin together the later rows are blamed.
    """

    job: Ints
    node: Ints
    devices: Ints
    begin: Ints
    end: Ints

    def where(self, keep: Flags) -> Units:
        return Units(self.job[keep], self.node[keep], self.devices[keep], self.begin[keep], self.end[keep])


def has_of(cluster: Cluster) -> Ints:
    """What each node has of each resource."""
    has: Ints = cluster.capacity[cluster.kind_of]
    return has


def check_units(cluster: Cluster, asked: Requests, units: Units, verb: str) -> Iterator[Violation]:
    """All rules that these units break. Every node is one of the cluster's."""
    if not len(units.job):
        return
    pairs = _Pairs(cluster, asked, units)
    yield from _by_themselves(pairs, verb)
    yield from pairs.intruded(verb)
    yield from pairs.overfull(verb)


def check_places(cluster: Cluster, asked: Requests, units: Units, verb: str) -> Iterator[Violation]:
    """The rules that units break by themselves, whatever else is there."""
    yield from _by_themselves(_Pairs(cluster, asked, units), verb)


def _by_themselves(pairs: _Pairs, verb: str) -> Iterator[Violation]:
    yield from _kinds(pairs.cluster, pairs.asked, pairs.units, verb)
    yield from _devices(pairs.cluster, pairs.asked, pairs.units, verb)
    yield from pairs.crowded(verb)


def check_outages(cluster: Cluster, asked: Requests, units: Units, verb: str) -> Iterator[Violation]:
    """No unit begins on a node that is out, or that is known to be out before the unit would have ended: `end` is by
    estimates. Who has the reservation may."""
    in_turn = np.argsort(units.node, kind="stable")
    nodes = units.node[in_turn]
    for node, begin, end, leaves, known in cluster.out.T.tolist():
        first, last = np.searchsorted(nodes, [node, node + 1])
        rows = in_turn[first:last]
        there = (units.begin[rows] < end) & (units.end[rows] > begin) & (units.begin[rows] >= known)
        if leaves >= 0:
            there &= asked.reservation[units.job[rows]] != leaves
        for row in first_of_each(units, np.isin(np.arange(len(units.job)), rows[there])) if there.any() else ():
            job, at, until = int(units.job[row]), int(units.begin[row]), int(units.end[row])
            words = f"{verb} at {at} on node {node}, until {until} by its estimate; it is out from {begin} to {end}"
            yield Violation("outage", job, at, words)


def first_of_each(units: Units, flags: Flags) -> list[int]:
    """The first flagged row of each job."""
    rows = np.flatnonzero(flags)
    _, first = np.unique(units.job[rows], return_index=True)
    return [int(row) for row in rows[np.sort(first)]]


def _kinds(cluster: Cluster, asked: Requests, units: Units, verb: str) -> Iterator[Violation]:
    """Every unit is on a kind of node that will do."""
    wrong = ~asked.sets[asked.among[units.job], cluster.kind_of[units.node]]
    for row in first_of_each(units, wrong):
        job, node, at = int(units.job[row]), int(units.node[row]), int(units.begin[row])
        name = cluster.kinds[cluster.kind_of[node]].name
        yield Violation("node kind", job, at, f"{verb} at {at} on node {node}, and kind {name!r} will not do for it")


def _devices(cluster: Cluster, asked: Requests, units: Units, verb: str) -> Iterator[Violation]:
    """Every unit has as many devices as it needs, of those on its node, and none where it needs none."""
    want, have = np.zeros(len(units.job), np.int64), np.zeros(len(units.job), np.int64)
    if cluster.shared:
        r = cluster.shared_at
        want, have = asked.need[units.job, r], has_of(cluster)[units.node, r]
    got = np.bitwise_count(units.devices).astype(np.int64)
    wrong = (units.devices < 0) | (units.devices >> have != 0) | (got != want)
    for row in first_of_each(units, wrong):
        job, node, at = int(units.job[row]), int(units.node[row]), int(units.begin[row])
        mask = int(units.devices[row])
        which = f"devices {[d for d in range(63) if mask >> d & 1]}" if mask >= 0 else f"device mask {mask}"
        detail = f"{verb} at {at} on node {node} with {which}; it needs {want[row]}, and the node has {have[row]}"
        yield Violation("devices", job, at, detail)


class _Pairs:
    """All units of one job on one node taken together, and the order in which such pairs begin and end on each node."""

    def __init__(self, cluster: Cluster, asked: Requests, units: Units) -> None:
        self.cluster, self.asked = cluster, asked
        other = (units.job[1:] != units.job[:-1]) | (units.begin[1:] != units.begin[:-1])  # a job may run twice
        turn = np.cumsum(np.concatenate([[0], other]))
        _, first, self.pair, self.count = np.unique(
            turn * cluster.nodes + units.node, return_index=True, return_inverse=True, return_counts=True
        )
        self.units, self.rows = units, first
        self.job, self.node = units.job[first], units.node[first]
        self.begin, self.end = units.begin[first], units.end[first]
        self.lasting = np.flatnonzero(self.end > self.begin)
        node, begin, end = self.node[self.lasting], self.begin[self.lasting], self.end[self.lasting]
        # A stable sort keeps the ends, which stand first, before the begins of the same second.
        self.order = np.lexsort((np.concatenate([end, begin]), np.concatenate([node, node])))
        self.begins = self.order >= len(node)
        self.at_event = self.lasting[self.order % max(len(node), 1)]

    def use(self, amount: Ints) -> Ints:
        """How much is in use after each event. Everything ends, so that each node begins with nothing."""
        lasting = amount[self.lasting]
        return np.cumsum(np.concatenate([-lasting, lasting])[self.order])

    def crowded(self, verb: str) -> Iterator[Violation]:
        """No more units of a job on a node than it says."""
        most = self.asked.per_node[self.job]
        for p in np.flatnonzero((most > 0) & (self.count > most)).tolist():
            detail = f"{verb} at {self.begin[p]} with {self.count[p]} units on node {self.node[p]}, at most {most[p]}"
            yield Violation("units per node", int(self.job[p]), int(self.begin[p]), detail)

    def intruded(self, verb: str) -> Iterator[Violation]:
        """A unit that wants a node for itself shares it with no other unit."""
        alone = self.use(self.count * (self.asked.exclusive[self.job] > 0))
        present = self.use(self.count)
        for i in np.flatnonzero(self.begins & (alone > 0) & (present > 1)).tolist():
            p = self.at_event[i]
            detail = f"{verb} at {self.begin[p]} on node {self.node[p]}: {present[i]} units are there, {alone[i]} of"
            detail += " which must be alone"
            yield Violation("exclusive", int(self.job[p]), int(self.begin[p]), detail)

    def overfull(self, verb: str) -> Iterator[Violation]:
        """No node and no device gives more than it has."""
        has = has_of(self.cluster)
        for r, name in enumerate(self.cluster.resources):
            if name != self.cluster.shared:
                amount = self.count * self.asked.need[self.job, r]
                yield from self._above("node capacity", amount, has[self.node, r], name, verb)
        masks = self.units.devices
        seen = int(np.bitwise_or.reduce(masks)) if self.cluster.shared else 0
        for d in range(63):
            if seen >> d & 1:
                having = np.bincount(self.pair[masks >> d & 1 > 0], minlength=len(self.job))
                limit = np.full(len(self.job), WHOLE, np.int64)
                name = f"parts of device {d}"
                yield from self._above("device capacity", having * self.asked.share[self.job], limit, name, verb)

    def _above(self, rule: str, amount: Ints, limit: Ints, name: str, verb: str) -> Iterator[Violation]:
        use = self.use(amount)
        for i in np.flatnonzero(self.begins & (use > limit[self.at_event])).tolist():
            p = self.at_event[i]
            if amount[p] > 0:
                detail = f"{verb} at {self.begin[p]} on node {self.node[p]}, which brings {use[i]} {name} into use"
                yield Violation(rule, int(self.job[p]), int(self.begin[p]), f"{detail} where there are {limit[p]}")
