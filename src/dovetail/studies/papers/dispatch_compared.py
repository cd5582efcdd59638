"""Models of the dispatcher paper on the same instances: which are taken, and what is compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dovetail.optimize.dispatch.greedy import listed
from dovetail.optimize.dispatch.instances import load_problem
from dovetail.optimize.dispatch.problem import DispatchProblem, Limits, total_slowdown
from dovetail.studies.papers.dispatch_moments import Answer, Chosen, Instants, Kept, Way, chosen, moments
from dovetail.studies.papers.page import Runs
from dovetail.studies.papers.recompute import schedule

LARGE: Final = "KIT"
PCP19, PCP21, ONCE, PCP21S, HCP19 = "PCP'19", "PCP'21", "PCP'21, one search", "PCP'21s", "HCP'19"
LONGEST_S: Final = 16
"""The longest limit of a search, the paper's delta_max."""


@dataclass(frozen=True)
class Sample:
    """Which instances of a replay are taken: the classes of queues, and how many of each class a model is given."""

    least: Sequence[int]
    ways: Mapping[str, tuple[Way, int]]
    again: Sequence[int] = ()
    """Where PCP'19 finds nothing, it is tried again with so many seconds of the clock."""

    @property
    def each(self) -> int:
        return max(many for _, many in self.ways.values())


SMALL_SAMPLE: Final = Sample(
    (1, 2, 6, 11, 21, 41, 101),
    {
        PCP19: (Way("pcp19"), 4), PCP21: (Way("pcp21"), 4), ONCE: (Way("pcp21", Limits(1, 1)), 4),
        HCP19: (Way("hcp19"), 1),
    },
)  # fmt: skip
LARGE_SAMPLE: Final = Sample(
    (1, 2, 6, 11, 21),
    {
        PCP19: (Way("pcp19", Limits(LONGEST_S, LONGEST_S)), 10), PCP21: (Way("pcp21"), 2), PCP21S: (Way("pcp21s"), 2),
        HCP19: (Way("hcp19"), 2),
    },
    again=(LONGEST_S, 2 * LONGEST_S),
)  # fmt: skip
SAMPLES: Final[Mapping[str, Sample]] = {"Eurora": SMALL_SAMPLE, LARGE: LARGE_SAMPLE}


@dataclass(frozen=True)
class Instance:
    """A moment of a replay, its kept problem, and what the models have made of it so far."""

    trace: str
    estimate: str
    moment: Chosen
    path: Path
    answers: Mapping[str, Answer]
    asked: int
    """How many answers there are to be."""


def by_clock(seconds: int) -> tuple[str, Way]:
    """PCP'19 with a limit of the clock, by name."""
    return f"{PCP19}, {seconds} s of the clock", Way("pcp19", Limits(seconds, seconds, clock="wall"))


def taken(runs: Runs, samples: Mapping[str, Sample], say: Callable[[str], None] | None) -> list[Instance]:
    """The instances of all replays. With `say`, what is not solved yet is solved now."""
    kept, found = Kept(runs.store.path / "dispatch"), list[Instance]()
    for task in runs.tasks:
        sample, instants = samples[task.cell.trace], Instants(schedule(runs.store, task))
        for moment in chosen(moments(instants.schedule), sample.least, sample.each):
            path = kept.save(instants.problem(moment.at), f"{task.cell.trace}-{task.cell.estimate}-{moment.at}")
            ways = {name: way for name, (way, many) in sample.ways.items() if moment.place < many}
            answers = dict[str, Answer]()
            for name, way in [*ways.items(), *map(by_clock, sample.again)]:
                if name not in ways and (PCP19 not in answers or answers[PCP19].planned):
                    continue
                answer = kept.answer(path, way)
                if answer is None and say is not None:
                    answer = kept.solve(path, way)
                    say(f"{path.stem}, {moment.waiting} waiting: {name} {answer.status}, {answer.cpu_s:.1f} s")
                if answer is not None:
                    answers[name] = answer
            again = PCP19 in answers and not answers[PCP19].planned
            asked = len(ways) + (len(sample.again) if again else 0)
            found.append(Instance(task.cell.trace, task.cell.estimate, moment, path, answers, asked))
    return found


# Numbers ----------------------------------------------------------------------------------------------------

EVERY: Final = 10
"""Of the moments of a replay, those that the sizes and the list plans are counted at: each tenth."""
SAME: Final = 1e-6
"""Total slowdowns are equal if they differ by no more than this part."""


@dataclass(frozen=True)
class Size:
    """A moment by the paper's formulas."""

    pcp19: int
    pcp21: int
    nodes_times_units: int
    """Variables of a PCP'19 that had one for each unit on each node, whether it fits there or not."""

    @property
    def ratio(self) -> float:
        return self.pcp21 / self.pcp19


@dataclass(frozen=True)
class Lists:
    """What positions make of the list plan of a moment: its total slowdown with neighbouring positions over that
    without, and whether the same jobs start now."""

    quality: float
    same_now: bool


def size_of(problem: DispatchProblem) -> Size:
    units = sum(job.units for job in problem.queue)
    every = len(problem.queue) + problem.cluster.nodes * units
    return Size(problem.pcp19_variables, problem.pcp21_variables, every)


def lists_of(problem: DispatchProblem) -> Lists:
    free, strict = listed(problem).starts, listed(problem, contiguous=True).starts
    quality = total_slowdown(problem, strict) / total_slowdown(problem, free)
    return Lists(quality, [at == problem.now for at in free] == [at == problem.now for at in strict])


@dataclass(frozen=True)
class Pair:
    """An instance that both PCP'19 and PCP'21 were given, and for how many moments it stands."""

    instance: Instance
    weight: float

    @property
    def old(self) -> Answer:
        return self.instance.answers[PCP19]

    def new(self, name: str = PCP21) -> Answer:
        return self.instance.answers[name]

    def time(self, name: str = PCP21) -> float:
        """PCP'21's CPU time over PCP'19's."""
        return self.new(name).cpu_s / self.old.cpu_s

    def fails(self, name: str = PCP21) -> float:
        """PCP'21's conflicts over PCP'19's; nan where neither has any."""
        old, new = self.old.conflicts, self.new(name).conflicts
        return new / old if old else float("inf") if new else float("nan")

    @property
    def quality(self) -> float:
        """PCP'21's total slowdown over PCP'19's."""
        return self.new().objective / self.old.objective

    @property
    def proved(self) -> bool:
        return self.old.status == self.new().status == "optimal"


def pairs_of(instances: Sequence[Instance]) -> list[Pair]:
    """The instances with all answers that a comparison needs. Those of a class stand for all moments of their class."""
    both = [one for one in instances if all(name in one.answers for name in (PCP19, PCP21, ONCE))]
    made = []
    for one in both:
        alike = sum((o.trace, o.estimate, o.moment.least) == (one.trace, one.estimate, one.moment.least) for o in both)
        made.append(Pair(one, one.moment.of / alike))
    return made


def share(pairs: Sequence[Pair], holds: Callable[[Pair], bool]) -> float:
    """The part of all moments, by what each instance stands for."""
    return sum(pair.weight for pair in pairs if holds(pair)) / sum(pair.weight for pair in pairs)


def gained(pair: Pair) -> tuple[bool, bool]:
    """Whether PCP'19 and PCP'21 found better plans than the lists that they begin from."""
    problem = load_problem(pair.instance.path)
    begun = [total_slowdown(problem, listed(problem, contiguous=strict).starts) for strict in (False, True)]
    return pair.old.objective < begun[0] * (1 - SAME), pair.new().objective < begun[1] * (1 - SAME)


def neither_more(pair: Pair, name: str = PCP21) -> bool:
    """In the region of Fig. 9: no longer, and no more fails."""
    return pair.time(name) <= 1 and pair.new(name).conflicts <= pair.old.conflicts


@dataclass(frozen=True)
class Found:
    """All that the page shows."""

    instances: Sequence[Instance]
    sizes: Mapping[tuple[str, str], Sequence[Size]]
    """By trace and estimate, each tenth moment."""
    lists: Sequence[Lists]
    """The same moments of the small machine."""

    def of(self, trace: str, estimate: str = "") -> list[Instance]:
        return [one for one in self.instances if one.trace == trace and estimate in ("", one.estimate)]

    @property
    def asked(self) -> int:
        return sum(one.asked for one in self.instances)

    @property
    def missing(self) -> int:
        return self.asked - sum(len(one.answers) for one in self.instances)

    @property
    def small(self) -> str:
        return next(trace for trace, _ in self.sizes if trace != LARGE)

    @property
    def estimates(self) -> list[str]:
        return [estimate for trace, estimate in self.sizes if trace != LARGE]


def found_in(runs: Runs, samples: Mapping[str, Sample]) -> Found:
    """What the store has."""
    instances = taken(runs, samples, None)
    sizes, lists = dict[tuple[str, str], Sequence[Size]](), list[Lists]()
    for task in runs.tasks:
        instants = Instants(schedule(runs.store, task))
        problems = [instants.problem(at) for at in moments(instants.schedule).at[::EVERY].tolist()]
        sizes[task.cell.trace, task.cell.estimate] = [size_of(problem) for problem in problems]
        if task.cell.trace != LARGE:
            lists += [lists_of(problem) for problem in problems]
    return Found(instances, sizes, lists)
