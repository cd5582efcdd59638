"""The page beside Table 1 of the dispatcher paper: as many jobs as it has, generated, with its two predictors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from dovetail.studies.papers.dispatch_tables import (
    BLOCK,
    EURORA,
    PAPERS,
    PUBLISHED,
    Key,
    Ran,
    against,
    difference,
    found,
    published,
    table,
)
from dovetail.studies.papers.page import Page, Runs, Statement, facts_of, filled, grid, held, made_with, stated
from dovetail.studies.papers.registry import DISPATCHER

NAME: Final = "dispatch-generated"
WEEK: Final = 8000
"""Jobs in a row that are one pair of a comparison on the whole set: about a week."""
SAID_UNDER: Final = "sjf-easy:place=scarce"
"""The policy under which the estimates are looked at: under another, jobs end in another order."""


def page(runs: Runs) -> Page:
    """The page, from what has been run."""
    made, missing = found(runs)
    traces = list(dict.fromkeys(task.cell.trace for task in runs.tasks))
    estimates = list(dict.fromkeys(task.cell.estimate for task in runs.tasks))
    policies = list(dict.fromkeys(task.cell.policy for task in runs.tasks))
    papers = {task.cell.trace for task in runs.tasks if task.cell.policy in PAPERS}
    said = [one for trace in traces if trace not in papers for one in statements(made, trace, policies)]
    spans = [trace for trace in traces if trace in papers]
    sections = [
        "# Last2 and similar jobs on 400,000 generated jobs",
        f"{DISPATCHER} replays 400,000 jobs that are not public, with two estimates: run times as they were (R), and"
        " those of similar jobs (D). Here are as many jobs, drawn from the public Eurora days. Made by",
        made_with(NAME),
        _READING,
        f"{missing} of {len(runs.tasks)} runs are not in the store yet." if missing else "All runs are there.",
        "## What is asked, and what is found",
        stated("statement", said),
        _spans(made, spans, estimates, policies),
        *(part for trace in traces for part in table(made, trace, estimates, policies)),
        "## What the predictors said",
        _predictors(runs, traces, estimates),
        "## Published, of the paper's own 400,000 jobs",
        published(PUBLISHED[EURORA]),
    ]
    facts = {"missing": missing, **facts_of(said)}
    return Page(filled(sections), f"{held(said)}; {missing} runs missing", facts)


def statements(made: Mapping[Key, Ran], trace: str, policies: Sequence[str]) -> list[Statement]:
    """Of the whole set: whether similar jobs are the better predictor, and how long decisions take."""
    told = []
    for policy in policies:
        here = {key[1]: ran for key, ran in made.items() if (key[0], key[2]) == (trace, policy)}
        if not {"similar", "recent", "limit"} <= set(here):
            continue
        ours, parts, below = here["similar"].slowdown, [], True
        for other in ("recent", "limit"):
            mean, low, high = difference(ours, here[other].slowdown, WEEK)
            parts.append(f"{mean:+.2f} [{low:+.2f}, {high:+.2f}] of {here[other].slowdown.mean():,.2f} with `{other}`")
            below = below and high < 0
        claim = f"{trace}, `{policy}`: the slowdown with similar jobs is below that with Last2 and with limits"
        told.append(Statement(claim, f"{ours.mean():,.2f}; {', '.join(parts)}", below))
    if ms := {(key[2], key[1]): ran.decision_ms for key, ran in made.items() if key[0] == trace}:
        least = min(one[0] for one in PUBLISHED[EURORA].values())
        (policy, estimate), slowest = max(ms.items(), key=lambda one: one[1])
        text = f"at most {slowest:.3f} ms (`{policy}`, {estimate}): {least / slowest:,.0f} times faster"
        claim = f"{trace}: each of ours decides 100 times faster than the fastest published ({least} ms)"
        told.append(Statement(claim, text, least / slowest >= 100))
    return told


def _spans(made: Mapping[Key, Ran], spans: Sequence[str], estimates: Sequence[str], policies: Sequence[str]) -> str:
    """Ours less PCP'21 on the spans, without a verdict: they are too short for one."""
    rows = []
    for trace in spans:
        for estimate in estimates:
            theirs = made.get((trace, estimate, "pcp21"))
            for policy in policies:
                ran = made.get((trace, estimate, policy))
                if theirs and ran and policy not in PAPERS:
                    rows.append([trace, estimate, f"`{policy}`", against(ran, theirs)[0]])
    if not rows:
        return ""
    return f"""## Less PCP'21, on a span

A few dozen jobs: an interval that holds 0 says that nothing was shown, not that two are alike. And the predictors have
learned next to nothing (last table but one), so with `similar` and `recent` this compares dispatchers that are told
limits of nearly all jobs.

{grid(["jobs", "estimate", "ours", "less PCP'21"], rows)}"""


def _predictors(runs: Runs, traces: Sequence[str], estimates: Sequence[str]) -> str:
    """How good the estimates were, under one policy."""
    there = runs.store.names()
    names = {(t.cell.trace, t.cell.estimate): t.name for t in runs.tasks if t.cell.policy == SAID_UNDER}
    rows = []
    for trace in traces:
        for estimate in estimates:
            name = names.get((trace, estimate))
            schedule = runs.store.schedule(name) if name in there and name and estimate != "runtime" else None
            if schedule is None:
                continue
            work, said = schedule.workload, schedule.said
            short = float(np.mean(said < work.runtime))
            error = float(np.mean(np.abs(said - work.runtime)))
            limits = float(np.mean(said == work.limit))
            rows.append([trace, estimate, f"{100 * limits:.0f}", f"{error:,.0f}", f"{100 * short:.0f}"])
    head = ["jobs", "estimate", "the limit was said of (%)", "mean error (s)", "jobs that outlived it (%)"]
    return f"Under `{SAID_UNDER}`.\n\n{grid(head, rows)}"


_READING: Final = f"""
**What is generated.** Each job is a recorded one of 31 March to 4 April 2014, with its resources, limit and run time.
Drawn are: which jobs come again and when, who submits them, and what they are called. Users and names are made up: the
public record has none, and the paper's predictor lives on them. So what follows says how a predictor does where users
repeat themselves as often as we made them (half of the sessions come once, the others on 20 days in the mean), not how
it did on Eurora. `recorded` keeps the mix of the days, `reported` has the shares that the paper reports
(docs/nodes.md). The load is that of the recorded days, 0.48 of the GPUs; a quarter to a third of the jobs wait.

`runtime` is R of the paper, `similar` D, `recent` Last2 (which the paper has for another machine), `limit` what users
asked for. The mean decision is the CPU time of the whole replay over its passes. The paper's times are of another
computer and of other jobs. Its dispatchers cannot be given 400,000 jobs here (two days of CPU as published), but a
span: the first hour of each mix with 30 to 80 jobs of which 10 to 30 % wait under `{SAID_UNDER}` with run times known,
on a machine that begins empty and with predictors that know nothing yet. (Where more jobs wait, a run takes many
minutes.) The planner has the spans too, not the whole. Intervals are of 95 %, over blocks of {WEEK:,} neighbouring
jobs, about a week, and in the spans of {BLOCK}.
"""
