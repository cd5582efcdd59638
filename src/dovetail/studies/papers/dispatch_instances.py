"""The page on Figs. 6 to 9 of the dispatcher paper: its models on the same instances, and PCP'19 on a large machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from dovetail.optimize.dispatch.instances import load_problem
from dovetail.optimize.dispatch.problem import WINDOW
from dovetail.studies.papers.dispatch_compared import (
    HCP19,
    LARGE,
    LONGEST_S,
    ONCE,
    PCP19,
    PCP21,
    PCP21S,
    SAME,
    SAMPLES,
    Found,
    Instance,
    Pair,
    Sample,
    by_clock,
    found_in,
    gained,
    neither_more,
    pairs_of,
    share,
    taken,
)
from dovetail.studies.papers.dispatch_figures import draw
from dovetail.studies.papers.dispatch_moments import SEED, Answer
from dovetail.studies.papers.page import (
    Page,
    Runs,
    Statement,
    bullets,
    facts_of,
    filled,
    grid,
    held,
    made_with,
    picture,
    stated,
)
from dovetail.studies.papers.registry import DISPATCHER

NAME: Final = "dispatch-instances"
ALMOST_ALL: Final = 0.95


def more_work(runs: Runs, say: Callable[[str], None]) -> None:
    """Solve what is not in the store. Break it off at any moment; it goes on from there."""
    taken(runs, SAMPLES, say)


def page(runs: Runs) -> Page:
    """The page and its picture, from what has been solved."""
    return page_of(runs, SAMPLES)


def page_of(runs: Runs, samples: Mapping[str, Sample]) -> Page:
    """The page on replays of which some instances have been solved."""
    found = found_in(runs, samples)
    pairs = {estimate: pairs_of(found.of(found.small, estimate)) for estimate in found.estimates}
    said = [*_statements(found, pairs), *_statements_large(found)]
    parts = [
        _summary(found, said),
        stated("the paper", said),
        f"![Ratios of variables, times and fails between PCP'21 and PCP'19, drawn by Dovetail]({NAME}.svg)",
        "Grey is where the paper says that all, or almost all, of its instances are.",
        f"## Made with\n\n{made_with(NAME)}",
        _how(found, samples),
        _variables(found),
        _times(found, pairs),
        _positions(found, pairs),
        *([_large(found, samples[LARGE])] if found.of(LARGE) else []),
    ]
    ratios = {estimate: [one.ratio for one in found.sizes[found.small, estimate]] for estimate in found.estimates}
    drawing = picture(lambda: draw(ratios, pairs), NAME, "Ratios of variables, times and fails, PCP'21 over PCP'19")
    facts = {"missing": found.missing, **facts_of(said)}
    return Page(filled(parts), f"{held(said)}; {found.missing} answers missing", facts, {f"{NAME}.svg": drawing})


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


def _almost(part: float) -> bool | str:
    return True if part >= ALMOST_ALL else "in part" if part >= 0.5 else False


def _statements(found: Found, pairs: Mapping[str, Sequence[Pair]]) -> list[Statement]:
    said = []
    for estimate in found.estimates:
        sizes, here = found.sizes[found.small, estimate], pairs[estimate]
        below, most = np.mean([one.ratio < 0.1 for one in sizes]), max(one.ratio for one in sizes)
        median = np.median([one.ratio for one in sizes])
        ours = f"{_percent(float(below))} of {len(sizes):,} instances; median {median:.2f}, most {most:.2f}"
        said.append(Statement(f"Fig. 6: variables, below 0.1 for all instances ({estimate})", ours, bool(below == 1)))
        if not here:
            continue
        times = share(here, lambda pair: 0.01 <= pair.time() <= 1)
        fails = share(here, lambda pair: pair.new().conflicts <= 0.1 * pair.old.conflicts)
        once = share(here, lambda pair: 0.01 <= pair.time(ONCE) <= 1)
        text = f"{_percent(times)}, median {_median(here, Pair.time):.2g}; {_percent(once)} with one search"
        said.append(Statement(f"Fig. 7: time, 0.01 to 1 for almost all ({estimate})", text, _almost(times)))
        text = f"{_percent(fails)}, those where neither fails among them"
        said.append(Statement(f"Fig. 8: fails, 0 to 0.1 for almost all ({estimate})", text, _almost(fails)))
        part, printed = share(here, neither_more), REGION[estimate]
        holds = True if part >= printed else "in part" if part >= 0.5 else False
        text = f"{_percent(part)}; {_percent(share(here, lambda p: neither_more(p, ONCE)))} with one search"
        said.append(
            Statement(f"Fig. 9: neither longer nor more fails in {_percent(printed)} ({estimate})", text, holds)
        )
        equal = share(here, lambda pair: abs(pair.quality - 1) <= SAME)
        text = f"{_percent(equal)}; from {_range([pair.quality for pair in here])}"
        said.append(Statement(f"quality: the ratio is 1 for the vast majority ({estimate})", text, _almost(equal)))
    return said


REGION: Final[Mapping[str, float]] = {"limit": 0.93, "runtime": 0.88}
"""What the paper says of Fig. 9: with predicted run times (ours: limits), and with real ones."""


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f}"


def _median(pairs: Sequence[Pair], number: Callable[[Pair], float]) -> float:
    """The median over all moments, by what each instance stands for."""
    ordered = sorted((number(pair), pair.weight) for pair in pairs)
    reached, half = 0.0, sum(weight for _, weight in ordered) / 2
    for value, weight in ordered:
        reached += weight
        if reached >= half:
            return value
    raise ValueError("no pairs")


def _statements_large(found: Found) -> list[Statement]:
    instances = found.of(LARGE)
    old = [one.answers[PCP19] for one in instances if PCP19 in one.answers]
    three = [one.answers for one in instances if all(name in one.answers for name in (PCP21, PCP21S, HCP19))]
    if not old or not three:
        return []
    none = [one for one in instances if PCP19 in one.answers and not one.answers[PCP19].planned]
    tried = [one.answers[name] for one in none for name in one.answers if name == by_clock(LONGEST_S)[0]]
    still = len(none) - sum(answer.planned for answer in tried)
    text = f"no plan for {len(none)} of {len(old)}; for {still} of these none by the clock either ({LONGEST_S} s)"
    blocked = Statement(
        "large machine: PCP'19 cannot handle certain instances within its limit", text,
        "in part" if still < len(none) else bool(none),
    )  # fmt: skip
    answered = sum(one[name].planned for one in three for name in (PCP21, PCP21S))
    both = Statement(
        "PCP'21 and PCP'21s complete", f"a plan for {answered} of {2 * len(three)}", answered == 2 * len(three)
    )
    ms = {name: float(np.mean([one[name].cpu_s for one in three])) for name in (PCP21, PCP21S, HCP19)}
    text = ", ".join(f"{name} {value:.2f} s" for name, value in ms.items())
    less = f"{_percent(1 - TABLE_2[PCP21S] / TABLE_2[PCP21])} less"
    faster = Statement(f"PCP'21s decides faster than PCP'21 ({less})", text, ms[PCP21S] < ms[PCP21])
    gap = TABLE_2[PCP21S] / TABLE_2[HCP19]
    near = Statement(
        f"PCP'21s takes at most {_percent(gap - 1)} longer than HCP'19", text, ms[PCP21S] <= gap * ms[HCP19]
    )
    return [blocked, both, faster, near]


TABLE_2: Final[Mapping[str, int]] = {HCP19: 269, PCP21: 476, PCP21S: 342}
"""The paper's mean times of a decision on the large machine with real run times, in ms. PCP'19 has none."""


# Its sections -----------------------------------------------------------------------------------------------


def _summary(found: Found, said: Sequence[Statement]) -> str:
    return f"""
# The dispatchers' models on the same instances

{DISPATCHER}, Figs. 6 to 9 and PCP'19 on the large machine. PCP'19 has a variable for each unit of a job on each node
where it fits, PCP'21 one for each unit and resource. The paper saved the instances of a simulation and gave both models
the same ones; so does this page, with CP-SAT in the place of the paper's solver.

{held(said)}. "Almost all" and "the vast majority" are {_percent(ALMOST_ALL)} here; "in part" is half or more. Ratios
are PCP'21's number over PCP'19's.{_if_missing(found)}
"""


def _if_missing(found: Found) -> str:
    return f" {found.missing} of {found.asked} answers are not there yet." if found.missing else ""


def _how(found: Found, samples: Mapping[str, Sample]) -> str:
    points = []
    for trace in dict.fromkeys(trace for trace, _ in found.sizes):
        sample, here = samples[trace], found.of(trace)
        given = ", ".join(f"{name} {sum(name in one.answers for one in here)}" for name in sample.ways)
        points.append(
            f"{trace}: {len(here)} instances, up to {sample.each} of each class of queues, drawn with seed {SEED}, and"
            f" of each estimate ({', '.join(dict.fromkeys(one.estimate for one in here))}). Solved: {given}."
        )
    points += [
        "An instance is a pass of a replay under `sjf-easy:place=scarce` at which somebody waits: the"
        f" {WINDOW} waiting jobs with the highest slowdown, and where every running job is. The paper's are of a"
        " simulation under PCP'19, of 400,000 jobs that are not public; a replay under PCP'19 takes hours.",
        "Shares and medians over instances are over all passes: an instance counts for as many as its class has for"
        " each one drawn. They rest on few: even unweighted, a share of 28 instances has a standard error of up to 9"
        " points. Mean times are plain means over the instances that were solved.",
        "The paper's estimates are predictions of run times (here: the limits) and real run times.",
        "Time is that of the CPU for model and search, in one thread. Fails are CP-SAT's conflicts. Limits are the"
        " [dispatchers' own](../nodes.md#dispatchers-made-for-nodes): 1 s of work, extended up to 16 s.",
        "Times, and what the clock limits, differ from run to run; nothing else here does.",
    ]
    return f"## What is measured\n\n{bullets(points)}"


def _class_name(least: Sequence[int], at: int) -> str:
    if at + 1 == len(least):
        return f"{least[at]} or more"
    return str(least[at]) if least[at + 1] == least[at] + 1 else f"{least[at]} to {least[at + 1] - 1}"


def _classes(instances: Sequence[Instance]) -> list[tuple[str, list[Instance]]]:
    """Instances by class of queue."""
    least = sorted({one.moment.least for one in instances})
    names = [(_class_name(least, at), first) for at, first in enumerate(least)]
    return [(name, [one for one in instances if one.moment.least == first]) for name, first in names]


def _middle(values: Sequence[float], digits: int = 0) -> str:
    return f"{np.median(values):,.{digits}f}" if len(values) else ""


def _answers(instances: Sequence[Instance], name: str) -> list[Answer]:
    return [one.answers[name] for one in instances if name in one.answers]


def _size_row(name: str, inside: Sequence[Instance]) -> list[str]:
    """Formulas and CP-SAT's own counts, medians over a class of queues."""
    problems = [load_problem(one.path) for one in inside]
    row = [name, f"{len(inside)}"]
    row.append(f"{_middle([p.pcp19_variables for p in problems])} / {_middle([p.pcp21_variables for p in problems])}")
    row.append(_middle([p.pcp21_variables / p.pcp19_variables for p in problems], 2))
    pairs = [(one.answers[PCP19], one.answers[PCP21]) for one in inside if {PCP19, PCP21} <= one.answers.keys()]
    for count in ("variables", "constraints"):
        old, new = ([getattr(pair[side], count) for pair in pairs] for side in (0, 1))
        row.append(f"{_middle(old)} / {_middle(new)}")
        row.append(_middle([b / a for a, b in zip(old, new, strict=True)], 2))
    return row


_SIZE_HEAD: Final = (
    "waiting", "instances", "variables by formula, PCP'19 / PCP'21", "ratio", "CP-SAT's variables", "ratio",
    "CP-SAT's constraints", "ratio",
)  # fmt: skip


def _variables(found: Found) -> str:
    rows = [_size_row(*one) for one in _classes(found.of(found.small))]
    path = found.of(found.small)[0].path
    cluster = load_problem(path).cluster
    width, nodes = len(cluster.resources), cluster.nodes
    every = [one for (trace, _), sizes in found.sizes.items() if trace == found.small for one in sizes]
    least_all = 100 * np.mean([one.pcp21 / one.nodes_times_units < 0.1 for one in every])
    above = 100 * np.mean([one.ratio > 1 for one in every])
    some = [(k.count, k.capacity[r]) for r in range(2, width) for k in cluster.kinds if k.capacity[r]]
    half = sum(count for count, _ in some) // max(width - 2, 1)
    return f"""
## Variables (Fig. 6)

By the paper's formulas PCP'19 has |Q| + the sum of p_in, PCP'21 |Q| + the sum of rn_i |R|. The figure has each tenth
pass of the replays, {len(every):,} in all; the table the instances that were solved, medians. CP-SAT counts an interval
as a constraint, so what runs is in the constraints of both.

{grid(_SIZE_HEAD, rows)}

Why the ratio is not below 0.1: it follows from the formulas and what jobs ask for. Alone in the queue, a job of one
unit that may run anywhere has {1 + width} variables against {1 + nodes}, a ratio of {(1 + width) / (1 + nodes):.3f}.
One that needs a GPU or a MIC fits on half of the nodes: {1 + width} against {1 + half},
{(1 + width) / (1 + half):.2f}; with two to a node {1 + 2 * width} against {1 + 2 * half},
{(1 + 2 * width) / (1 + 2 * half):.2f}. More than that it cannot gain, as a node has two. A job of n whole nodes has
{width} n + 1 against {1 + nodes}, so from n = {nodes // width + 1} on PCP'21 is the larger model; {above:.1f} % of
the passes have a ratio above 1. In the paper's workload 77 % of the jobs need a GPU or a MIC, so by its formulas 0.1
should be passed there too. What it counted we do not know. If PCP'19 had a variable for each unit on each node,
whether it fits or not, the ratio would lie between {width / nodes:.4f} and {(1 + width) / (1 + nodes):.3f} whatever
is asked for: below 0.1 in {least_all:.0f} % of our passes.
"""


def _times(found: Found, pairs: Mapping[str, Sequence[Pair]]) -> str:
    names = [PCP19, PCP21, ONCE, HCP19]
    rows = []
    for name, inside in _classes(found.of(found.small)):
        row = [name]
        for which in names:
            answers = _answers(inside, which)
            row.append(
                f"{_middle([one.cpu_s for one in answers], 2)} ({max([one.cpu_s for one in answers], default=0):.1f})"
            )
        row += [_middle([one.conflicts for one in _answers(inside, which)]) for which in names]
        row += [
            f"{sum(a.status == 'optimal' for a in _answers(inside, w))} of {len(_answers(inside, w))}"
            for w in names[:2]
        ]
        rows.append(row)
    head = ["waiting", *(f"{name}: s, median (most)" for name in names), *(f"{name}: fails" for name in names)]
    head += [f"{name} proved" for name in names[:2]]
    every = [pair for here in pairs.values() for pair in here]
    return f"""
## Time and fails (Figs. 7 to 9)

{grid(head, rows)}

{_why_times(every) if every else ""}
"""


def _why_times(every: Sequence[Pair]) -> str:
    proved = [pair for pair in every if pair.proved]
    cut = [pair for pair in every if not pair.proved]
    both = [pair for pair in proved if pair.old.conflicts and pair.new().conflicts]
    quiet = sum(not pair.old.conflicts and not pair.new().conflicts for pair in proved)
    better = np.sum([gained(pair) for pair in every], axis=0)
    lines = [
        f"Both proved their plan the best of their model in {len(proved)} of {len(every)} instances. There no limit"
        f" plays a part: PCP'21 takes {_middle([p.time() for p in proved], 2)} times as long in the median"
        f" ({_spread([p.time() for p in proved])}); in {quiet} of them neither has a fail;"
        f" where both have some, PCP'21 has {_middle([p.fails() for p in both], 2)} times as many"
        f" ({_spread([p.fails() for p in both])})."
        if proved else "No instance was proved by both.",
        f"In the other {len(cut)} the limit decides. PCP'19 has a plan by its first limit in"
        f" {sum(p.old.extensions == 0 for p in cut)} of them, and is done. PCP'21 goes on until two extensions have"
        " changed nothing, so it gets 4 s of work where PCP'19 gets 1"
        f" ({_spread([p.time() for p in cut])} times the CPU time). Stopped after one search as PCP'19 is, it takes"
        f" {_middle([p.time(ONCE) for p in cut], 2)} times as long in the median"
        f" ({_spread([p.time(ONCE) for p in cut])}), a number that says how well work is counted more than how good a"
        " model is."
        if cut else "",
        "A limit also turns the meaning of fails around. Where a search is cut off, more fails mean that it got"
        f" further: in one search PCP'21 has {_middle([p.fails(ONCE) for p in cut if p.old.conflicts], 1)} times as"
        " many in the median."
        if cut else "",
        f"Both begin from a [list plan](../nodes.md#dispatchers-made-for-nodes). PCP'19 has found a better one in"
        f" {better[0]} of {len(every)} instances, PCP'21 in {better[1]}. So their quality is mostly that of the two"
        " lists, which differ by their positions; [see below](#do-contiguous-positions-matter).",
        "So the smaller model is there, but not what the paper gains by it. Our reading, not measured: CP-SAT learns"
        " from conflicts, and a unit's presence on a node is one boolean to it, which it handles well; positions are"
        " wide integers under a no-overlap in two dimensions, which it propagates weakly. The paper's solver learns"
        " nothing, and its search interleaves starts and positions, which CP-SAT cannot be told.",
    ]  # fmt: skip
    return bullets([line for line in lines if line])


def _spread(values: Sequence[float]) -> str:
    return f"{min(values):.2g} to {max(values):.2g}" if len(values) else "none"


def _positions(found: Found, pairs: Mapping[str, Sequence[Pair]]) -> str:
    every = [pair for here in pairs.values() for pair in here]
    proved = [pair for pair in every if pair.proved]
    known = [pair for pair in every if pair.old.status == "optimal"]
    equal, worse = (sum(holds(pair.quality) for pair in known) for holds in (_equal, _above))
    cut = [pair for pair in every if pair.old.status != "optimal"]
    sides = [sum(holds(p.quality) for p in cut) for holds in (_equal, _above, _below)]
    still = sum(not any(gained(p)) for p in cut if not _equal(p.quality))
    lost = [pair.new().lost for pair in every]
    changed = [one.quality for one in found.lists]
    more, less = sum(map(_above, changed)), sum(map(_below, changed))
    other = sum(not one.same_now for one in found.lists)
    points = [
        f"PCP'19 proved its plan in {len(known)} instances, PCP'21 in {len(proved)} of these too. PCP'21's total"
        f" slowdown is the same in {equal} of them, so positions cost nothing there, and higher in {worse}.",
        f"In the other {len(cut)} PCP'19 stopped at a limit: equal in {sides[0]}, PCP'21 higher in {sides[1]}, lower in"
        f" {sides[2]}. In {still} of the {sides[1] + sides[2]} that differ both gave back the list plan that they began"
        " from, so there it is the positions of the list; in the others it may be the search.",
        f"In PCP'21's plans {sum(lost)} jobs, in {sum(map(bool, lost))} of {len(every)} instances, wait because of"
        " positions only: they would fit now beside all others, but not in neighbouring positions.",
        "List plans show more, as they need no search; both models begin from one. With neighbouring positions the"
        f" total slowdown of the list plan is another in {more + less} of {len(changed):,} passes"
        f" ({100 * (more + less) / len(changed):.0f} %): higher in {more}, lower in {less} (a list is no optimum); from"
        f" {100 * (min(changed) - 1):+.1f} % to {100 * (max(changed) - 1):+.1f} %, in the mean over all passes"
        f" {100 * (float(np.mean(changed)) - 1):+.2f} %. Other jobs start now in {other}: what runs leaves each node"
        " free in one piece, so positions change what is planned for later, and a later pass plans that anew.",
    ]
    return f"""
## Do contiguous positions matter?

In PCP'21 a unit takes neighbouring cores, the same from its start to its end; on a node any free ones will do. So its
plans are a part of PCP'19's, and its best may be worse.

{bullets(points)}
"""


def _equal(quality: float) -> bool:
    return abs(quality - 1) <= SAME


def _above(quality: float) -> bool:
    return quality > 1 + SAME


def _below(quality: float) -> bool:
    return quality < 1 - SAME


def _large(found: Found, sample: Sample) -> str:
    rows = []
    for name, inside in _classes(found.of(LARGE)):
        problems = [load_problem(one.path) for one in inside]
        row = [
            name,
            f"{_middle([p.pcp19_variables for p in problems])} / {_middle([p.pcp21_variables for p in problems])}",
        ]
        for which in sample.ways:
            answers = _answers(inside, which)
            plans = sum(answer.planned for answer in answers)
            row.append(f"{plans} of {len(answers)}; {_middle([answer.cpu_s for answer in answers], 1)} s")
        rows.append(row)
    sizes = next(sizes for (trace, _), sizes in found.sizes.items() if trace == LARGE)
    below = np.mean([one.ratio < 0.1 for one in sizes])
    points = [
        *_blocked(found, sample),
        f"The variables' ratio is below 0.1 in {_percent(float(below))} of {len(sizes):,} passes (each tenth): more"
        " often than on the small machine, as PCP'19 grows with the nodes. The rest are jobs of very many units.",
        "The paper's PCP'21s never tries other positions of a job before another start; CP-SAT has"
        " no such rule, and ours only orders jobs that are alike and leaves positions to the solver. Both are cut off"
        " by the same limits, so their times are mostly those of the limits.",
        "HCP'19 schedules pools of resources, which do not grow with the nodes.",
        f"PCP'21 and PCP'21s take long, so they and HCP'19 were given fewer instances: {sample.ways[PCP21][1]} and"
        f" {sample.ways[HCP19][1]} of each class.",
    ]
    return f"""
## The large machine

KIT ForHLR II: 1,173 nodes, the first 25,326 jobs, real run times. Plans found, and the median CPU time:

{grid(["waiting", "variables by formula, PCP'19 / PCP'21", *sample.ways], rows)}

{bullets(points)}
"""


def _blocked(found: Found, sample: Sample) -> list[str]:
    """Where PCP'19 finds nothing."""
    old = [(one, one.answers[PCP19]) for one in found.of(LARGE) if PCP19 in one.answers]
    if not old:
        return []
    none = [(one, answer) for one, answer in old if not answer.planned]
    idle = sum(answer.branches == 0 for _, answer in none)
    alike = Counter(one.moment.least for one, _ in old)
    total = sum(one.moment.of / alike[one.moment.least] for one, _ in old)
    part = sum(one.moment.of / alike[one.moment.least] for one, _ in none) / total
    return [
        f"PCP'19 gets one search of {sample.ways[PCP19][0].limits.most:.0f} s of work, the longest that its limits"
        " allow. The shorter ones before it begin from scratch and are the same search cut off sooner: they find no"
        " plan that this one does not. We save their time.",
        f"It has no plan for {len(none)} of {len(old)} instances, which stand for {_percent(part)} of the passes with"
        f" somebody waiting; {idle} of these searches end without a single branch, the work spent on making the model"
        " smaller and on the first propagation. A dispatcher that finds nothing starts nobody, so the queue grows, and"
        f" the next instance is larger: it blocks. {_from_where(old)}",
        *_by_clock(none, sample),
    ]


def _from_where(old: Sequence[tuple[Instance, Answer]]) -> str:
    """Between which queues the plans end."""
    without = [one.moment.waiting for one, answer in old if not answer.planned]
    planned = [one.moment.waiting for one, answer in old if answer.planned]
    if not without:
        return ""
    return f"The shortest queue without a plan has {min(without)} jobs, the longest with one {max(planned, default=0)}."


def _by_clock(none: Sequence[tuple[Instance, Answer]], sample: Sample) -> list[str]:
    """The same with limits that do not hang on how work is counted."""
    parts = []
    for seconds in sample.again:
        answers = [one.answers[name] for one, _ in none if (name := by_clock(seconds)[0]) in one.answers]
        if answers:
            cpu = _spread([answer.cpu_s for answer in answers])
            plans = sum(answer.planned for answer in answers)
            parts.append(f"with {seconds} s a plan for {plans} of {len(answers)} ({cpu} s of CPU)")
    if not parts:
        return []
    return [
        f"Work is counted for models of 64 nodes: here these searches end after {_spread([a.cpu_s for _, a in none])} s"
        f" of CPU. So they were tried again by the clock, on a machine that others used too: {'; '.join(parts)}."
    ]
