"""The page on the profit paper: its tables and figures, ours beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Final

from dovetail.reports.style import GREY, STROKES, figure
from dovetail.studies.papers.page import (
    LOGS,
    Page,
    Runs,
    Statement,
    bullets,
    facts_of,
    filled,
    grid,
    held,
    log_at,
    made_with,
    picture,
    stated,
)
from dovetail.studies.papers.profit_cases import (
    CP,
    DELAY,
    MULTI,
    ONE,
    PLAN,
    RELAX,
    SCENARIOS,
    SEARCHES,
    SEEDS,
    SUBMITTED,
    TOMORROW,
    VARIED,
    cases,
    of,
)
from dovetail.studies.papers.profit_runs import DAYS, LOG, NODES, RULES, Case, Kept, Result
from dovetail.studies.papers.registry import PROFIT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME: Final = "profit"
CALLED: Final = {
    MULTI: "MultiSearch",
    DELAY: "DelaySearch",
    RELAX: "RelaxationSearch",
    CP: "CP's default",
    PLAN: "ours",
}
SAID: Final[Mapping[tuple[str, str], tuple[float, float, float, float]]] = {
    ("air", "winter"): (7.71, 1.11, 20144.28, 10.451758),
    ("air", "summer"): (7.66, 1.43, 20222.91, 10.51854),
    ("hybrid", "winter"): (7.86, 1.00, 20227.90, 10.753464),
    ("hybrid", "summer"): (7.95, 1.09, 20249.67, 10.36506),
}
"""Published: profit over the best rule (%), PUE (Table 1), daily increment (EUR, Table 2), over CP's default (%)."""
SAID_MAKESPAN: Final = 1.85
SAID_PER_S: Final = {
    ("air", "winter"): (0.0030658, 0.0000001, 0.0000003),
    ("air", "summer"): (0.0031243, 0.0000005, -0.0000003),
    ("hybrid", "winter"): (0.0031372, 0.0000001, -0.0000001),
    ("hybrid", "summer"): (0.0031320, -0.0000009, 0.0000002),
}
"""Table 3: per cent a second of MultiSearch, DelaySearch, RelaxationSearch."""
SAID_MULTI_S: Final = 3378
SAID_BEST_S: Final = {DELAY: 601, RELAX: 75}
SAID_DAYS: Final = {DELAY: 48.0, RELAX: 8.5}


def more_work(runs: Runs, say: Callable[[str], None]) -> None:
    """Make the schedules that are not in the store. Break it off at any moment; it goes on from there."""
    log_at(runs.traces, LOG)
    Kept(runs.store.path / NAME).make(runs.traces, cases(), say)


def page(runs: Runs) -> Page:
    """The page and its pictures, from the schedules that have been made."""
    kept = Kept(runs.store.path / NAME)
    return page_of({case: found for case in cases() if (found := kept.found(case)) is not None})


Results = Mapping[Case, Result]


def page_of(results: Results) -> Page:
    """The page from results of which some may be missing."""
    missing = len([case for case in cases() if case not in results])
    said = _statements(results)
    parts = [
        _summary(results, missing),
        stated("the paper", said),
        f"![Profit ahead of the best rule, drawn by Dovetail]({NAME}.svg)",
        "Figs. 1 to 4, as profit ahead of the best rule: the paper draws the sums themselves, which lie on each other."
        " Seed 0.",
        f"## Made with\n\n{made_with(NAME)}",
        _how(results),
        _tables(results),
        _rules(results),
        _searches(results),
        _variations(results),
    ]
    bars = f"{NAME}-searches"
    pictures = {
        f"{NAME}.svg": picture(
            lambda: _draw(results), NAME, "Cumulative profit ahead of the best rule-based scheduler"
        ),
        f"{bars}.svg": picture(lambda: _bars(results), bars, "Profit over that of CP's default search"),
    }
    facts = {"missing": missing, **facts_of(said)}
    return Page(filled(parts), f"{held(said)}; {missing} schedules missing", facts, pictures)


# Numbers -----------------------------------------------------------------------------------------------------


def _best(results: Results, like: Case, ways: Sequence[str]) -> tuple[str, Result] | None:
    """The most profitable of some ways in one scenario; None where any is missing."""
    found = {way: results.get(replace(like, way=way)) for way in ways}
    known = {way: result for way, result in found.items() if result is not None}
    if not known or len(known) < len(ways):
        return None
    way = max(known, key=lambda one: known[one].profit)
    return way, known[way]


def _gain(new: Result, old: Result) -> float:
    return 100 * (new.profit / old.profit - 1)


def _over_rules(results: Results, way: str, like: Case, rules: Sequence[str] = RULES) -> float | None:
    """Per cent of profit at the last submission over the best rule."""
    rule, here = _best(results, like, rules), results.get(replace(like, way=way))
    return None if rule is None or here is None else _gain(here, rule[1])


def _seeds(numbers: Sequence[float | None], digits: int = 2) -> str:
    """The mean over seeds, and the least and the most."""
    known = [number for number in numbers if number is not None]
    if not known:
        return "not run"
    text = f"{fmean(known):.{digits}f}"
    return text if len(known) == 1 else f"{text} ({min(known):.{digits}f} to {max(known):.{digits}f})"


def _with_seeds(results: Results, way: str, scenario: tuple[str, str], rules: Sequence[str] = RULES) -> str:
    return _seeds([_over_rules(results, way, of(way, scenario, seed), rules) for seed in SEEDS])


def _best_search(results: Results, like: Case) -> tuple[str, Result] | None:
    """The best of the paper's searches that have been run."""
    ways = [way for way in SEARCHES if replace(like, way=way) in results]
    return _best(results, like, ways) if ways else None


def _gains(results: Results, scenario: tuple[str, str]) -> list[float]:
    """Per cent of profit of the best search over the best rule, for each draw of power."""
    pairs = [
        (_best_search(results, like), _best(results, like, RULES)) for like in (of("", scenario, s) for s in SEEDS)
    ]
    return [_gain(search[1], rule[1]) for search, rule in pairs if search and rule]


def _reached(ours: float, published: float) -> bool | str:
    """As much as published, or at least more than nothing."""
    return True if ours >= published else "in part" if ours > 0 else False


def _days(results: Results, way: str) -> list[dict[str, float]]:
    found = [results.get(of(way, scenario, seed)) for scenario in SCENARIOS for seed in SEEDS]
    return [day for result in found if result is not None for day in result.days]


# Words -------------------------------------------------------------------------------------------------------


def _summary(results: Results, missing: int) -> str:
    text = (
        f"# Profit and cooling\n\nTables 1 to 3 and Figs. 1 to 8 of {PROFIT}: a day of jobs is planned for revenue less"
        " energy and cooling. Profits are those at the last submission, as in its Table 1, which is the end of day"
        f" {DAYS}."
    )
    if missing:
        text += f"\n\n{missing} of {len(cases())} schedules have not been made: their numbers say `not run`."
    like = of(MULTI, ONE)
    rule, strict = _best(results, like, RULES), _best(results, like, RULES[:3])
    if rule is not None and strict is not None:
        text += (
            f"\n\nThe gain over rules is not reproduced. Here the best rule, {rule[0]}, keeps"
            f" {100 * rule[1].used:.2f} % of the machine busy until then (summer, air), so no scheduler can earn more"
            f" than {100 / rule[1].used - 100:.2f} % by using more of it; what is left is to run jobs that draw less"
            f" first. The best strict rule uses {100 * strict[1].used:.2f} %, and the searches gain"
            f" {_with_seeds(results, MULTI, ONE, RULES[:3])} % over it. A gain of 7.7 % over all rules needs rules that"
            " leave 7 % idle while thousands of jobs wait. The paper does not say which of its rules was the best, nor"
            f" what it used.{_nodes(results)}"
        )
    return text


def _nodes(results: Results) -> str:
    """What nodes cost the rules."""
    known = {rule: found for rule in RULES if (found := results.get(of(NODES + rule, ONE))) is not None}
    if len(known) < len(RULES):
        return ""
    best = max(known, key=lambda rule: known[rule].profit)
    pool, search = results.get(of(best, ONE)), results.get(of(MULTI, ONE))
    if pool is None or search is None:
        return ""
    return (
        f" Nodes cost part of it: on 300 nodes, each unit on the first that has room, the best rule is {best} and uses"
        f" {100 * known[best].used:.2f} %. MultiSearch, in the pool, earns {_gain(search, known[best]):.2f} % more than"
        f" that; but the same rule in the pool earns {_gain(pool, known[best]):.2f} % more, too."
    )


def _how(results: Results) -> str:
    one = next(iter(results.values()), None)
    return "## How\n\n" + bullets(
        [
            "The paper does not say which 23 days it took. Ours: jobs of at most 1,200 cores from day 558.57 of the"
            f" log, {one.jobs if one else 0:,} jobs after the standard filter (the paper has 33,583). A second stretch"
            " is at the end.",
            "9,600 cores as one pool stand for 300 nodes of 32, in all schedulers alike. A job unit is 32 cores.",
            "7.8 to 11.11 W a core are drawn with three seeds, where a number has a range. Idle cores draw nothing.",
            "Cooling: the plants `air` and `hybrid` of docs/energy.md, Granada's typical weather from 1 January and"
            " 1 July on. They were made to have the PUEs of Table 1 at full load: those are no result.",
            "K1 is 0.02 EUR a core-hour, K2 120 EUR a MWh: assumptions, as the paper gives neither. The end of the page"
            " varies both, and the cooling.",
            "Jobs run for their run times, which all schedulers know, and the searches know at the begin of a day who"
            " will come on it. With limits for run times (equation 2), see the end.",
            "DelaySearch: a job is held back by an hour at a time, in the order that was best; 1,000 plans a day."
            " RelaxationSearch and CP's default: CP-SAT over the first 1,500 jobs, for 0.1 and 1 of its own seconds a"
            " day. The table of times has the CPU seconds; the paper allowed 4,000 s a day.",
            LOGS,
        ]
    )


def _statements(results: Results) -> list[Statement]:
    said: list[Statement] = []
    for scenario in SCENARIOS:
        published, pue, _, over_cp = SAID[scenario]
        name, like = ", ".join(scenario), of(MULTI, scenario)
        rule, search = _best(results, like, RULES), _best_search(results, like)
        if rule is None or search is None:
            continue
        gains = _gains(results, scenario)
        text = f"{_seeds(gains)} %"
        said.append(
            Statement(f"profit {published} % above the best rule ({name})", text, _reached(fmean(gains), published))
        )
        same = round(search[1].pue, 2) == round(rule[1].pue, 2)
        text = f"{search[1].pue:.2f} and {rule[1].pue:.2f}"
        said.append(Statement(f"PUE {pue:.2f} with the search and the rule ({name})", text, same))
        shorter = 100 * (1 - search[1].makespan_d / rule[1].makespan_d)
        said.append(
            Statement(
                f"makespan {SAID_MAKESPAN} % shorter ({name})", f"{shorter:.2f} %", _reached(shorter, SAID_MAKESPAN)
            )
        )
        if (plain := results.get(of(CP, scenario))) is not None:
            over = _gain(search[1], plain)
            own = sum(day["best_cpu_s"] > 0 for day in plain.days)
            text = f"{over:.2f} % ({CALLED[search[0]]}; CP-SAT has a plan on {own} of {len(plain.days)} days)"
            said.append(Statement(f"{over_cp:.1f} % above CP's default ({name})", text, _reached(over, over_cp)))
        if (ours := results.get(of(PLAN, scenario))) is not None:
            text = f"{_gain(ours, search[1]):+.2f} % above the best of its searches"
            said.append(Statement(f"(ours) the planner earns more ({name})", text, ours.profit > search[1].profit))
    for way in (DELAY, RELAX):
        if days := _days(results, way):
            share = 100 * fmean(day["improved"] for day in days)
            text = f"{share:.1f} % of {len(days)} days"
            holds = _reached(share, SAID_DAYS[way])
            said.append(Statement(f"{CALLED[way]} improves {SAID_DAYS[way]} % of the days", text, holds))
    if days := _days(results, MULTI):
        spent = [day["cpu_s"] for day in days]
        text = f"{fmean(spent):.2f} s of CPU on average, {max(spent):.2f} s at most"
        said.append(Statement(f"MultiSearch takes {SAID_MULTI_S:,} s a day", text, max(spent) <= SAID_MULTI_S))
    return said


def _tables(results: Results) -> str:
    first, second, third = [], [], []
    for scenario in SCENARIOS:
        published, pue, daily, _ = SAID[scenario]
        like = of(MULTI, scenario)
        rule, search = _best(results, like, RULES), _best_search(results, like)
        if rule is None or search is None:
            continue
        gains = _gains(results, scenario)
        shorter = 100 * (1 - search[1].makespan_d / rule[1].makespan_d)
        ours = _with_seeds(results, PLAN, scenario)
        first.append([
            *scenario, f"{published}", _seeds(gains), ours, f"{SAID_MAKESPAN}", f"{shorter:.2f}", f"{pue:.2f}",
            f"{search[1].pue:.3f}", f"{rule[1].pue:.3f}",
        ])  # fmt: skip
        a_day = [found.all_profit / found.makespan_d for found in (search[1], rule[1])]
        second.append([*scenario, f"{daily:,.2f}", f"{a_day[0] - a_day[1]:,.2f}"])
        third.append([*scenario, *_per_second(results, scenario, rule[1])])
    return (
        "## Table 1: over the best rule, at the last submission\n\n"
        + grid(
            ["cooling", "season", "profit % (paper)", "best of its searches", "our planner", "makespan % (paper)",
             "ours", "PUE (paper)", "best search", "best rule"], first)
        + "\n\nMeans over seeds with the least and the most; makespans and PUEs of seed 0. With a seed for which only"
        " MultiSearch has been run, it is the best of the searches."
        "\n\n## Table 2: what a day earns more with a shorter makespan, EUR\n\n"
        + grid(["cooling", "season", "paper", "ours"], second)
        + "\n\nProfit of the whole schedule over its makespan, best search less best rule. The paper's amounts depend"
        " on its K1, which it does not give.\n\n## Table 3: per cent of profit a second of search\n\n"
        + grid(["cooling", "season", "MultiSearch (paper)", "ours", "DelaySearch (paper)", "ours",
                "RelaxationSearch (paper)", "ours"], third)
        + "\n\nMultiSearch: over the best rule, by the CPU seconds of a day. The others: over MultiSearch, by the"
        " seconds until their best plan of a day. The paper's are seconds of its machine."
    )  # fmt: skip


def _per_second(results: Results, scenario: tuple[str, str], rule: Result) -> list[str]:
    cells = []
    multi = results.get(of(MULTI, scenario))
    for way, published in zip(SEARCHES, SAID_PER_S[scenario], strict=True):
        found = results.get(of(way, scenario))
        cells.append(f"{published:.7f}")
        if found is None or multi is None:
            cells.append("not run")
            continue
        seconds = fmean(day["cpu_s" if way == MULTI else "best_cpu_s"] for day in found.days)
        gain = _gain(found, rule if way == MULTI else multi)
        cells.append(f"{gain / seconds:.4f}" if seconds else "no better plan")
    return cells


def _rules(results: Results) -> str:
    rows = []
    for way in (*RULES, CP, *SEARCHES, PLAN):
        found = [results.get(of(way, scenario)) for scenario in SCENARIOS]
        if not any(found):
            continue
        one = next(result for result in found if result is not None)
        rows.append([
            CALLED.get(way, way), *(f"{result.profit:,.0f}" if result else "not run" for result in found),
            f"{100 * one.used:.2f}", f"{one.watts:.3f}", f"{one.makespan_d:.2f}",
        ])  # fmt: skip
    names = [f"{plant}, {season}" for plant, season in SCENARIOS]
    return (
        "## All schedulers\n\nProfit at the last submission in EUR (seed 0); the part of the machine in use until then,"
        " and what a core in use drew (air, winter).\n\n"
        + grid(["scheduler", *names, "in use %", "W a core", "makespan, days"], rows)
        + "\n\nThe paper says four rules and names three: EST (first submitted), WT (shortest limit; here: run time),"
        " Profit (most revenue for the cost). With one tariff for all, the last is the order of the watts a core."
        f" `ours` is `{PLAN}`, which plans anew at each arrival and end and knows nobody who has not come."
    )


def _searches(results: Results) -> str:
    rows = []
    for scenario in SCENARIOS:
        plain = results.get(of(CP, scenario))
        cells = [
            f"{_gain(found, plain):+.2f}" if plain and (found := results.get(of(way, scenario))) else "not run"
            for way in (*SEARCHES, PLAN)
        ]
        own = [day for day in plain.days if day["best_cpu_s"]] if plain else []
        cells.append(f"{len(own)} of {len(plain.days)}" if plain else "not run")
        rows.append([*scenario, f"{SAID[scenario][3]:.2f}", *cells])
    spent = []
    for way in (MULTI, DELAY, RELAX, CP):
        if not (days := [day for day in _days(results, way) if way != CP or day["best_cpu_s"]]):
            continue
        improved = [day for day in days if day["improved"]]
        best = f"{fmean(day['best_cpu_s'] for day in improved):.2f}" if improved and way in SAID_DAYS else "-"
        said = [f"{SAID_DAYS[way]}", f"{SAID_BEST_S[way]}"] if way in SAID_DAYS else ["-", "-"]
        if way == MULTI:
            said = ["-", f"{SAID_MULTI_S:,} in all"]
        share = f"{100 * fmean(day['improved'] for day in days):.1f}" if way in SAID_DAYS else "-"
        gained = (
            f"{100 * sum(d['gained'] for d in days) / sum(d['profit'] for d in days):.3f}" if way in SAID_DAYS else "-"
        )
        mean, most = fmean(day["cpu_s"] for day in days), max(day["cpu_s"] for day in days)
        spent.append([CALLED[way], f"{len(days)}", *said, share, gained, best, f"{mean:.2f}", f"{most:.2f}"])
    return (
        "## Figs. 5 to 8: profit over CP's default search, % (seed 0)\n\n"
        + grid(["cooling", "season", "best (paper)", "MultiSearch", "DelaySearch", "RelaxationSearch", "ours",
                "days with a plan of CP-SAT"], rows)
        + f"\n\n![Profit over that of CP's default search, drawn by Dovetail]({NAME}-searches.svg)"
        "\n\nCP's default search is CP-SAT without a plan to begin with. On days on which it finds none in time, jobs"
        " are placed in order of submission; where there are many, it is that order that is compared with. The figures"
        " of the paper are bars; its text has the numbers of the best ones only.\n\n## Time\n\n"
        + grid(["search", "days", "days improved % (paper)", "s to best (paper)", "days improved %",
                "gained on a day %", "CPU s to best", "CPU s a day", "at most"], spent)
    )  # fmt: skip


def _variations(results: Results) -> str:
    rows = []

    def row(text: str, like: Case, way: str = MULTI) -> None:
        rule, found = _best(results, like, RULES), results.get(replace(like, way=way))
        strict = _best(results, like, RULES[:3])
        if rule is None or found is None or strict is None:
            rows.append([text, "not run", "", "", ""])
            return
        cells = [f"{_gain(found, rule[1]):+.2f}", f"{_gain(found, strict[1]):+.2f}"]
        rows.append([text, rule[0], *cells, f"{100 * rule[1].used:.2f}"])

    like = of(MULTI, ONE)
    row("as above", like)
    for varied in VARIED:
        changed = [
            f"{name} {value:g} {unit}"
            for name, value, standard, unit in (
                ("K1:", varied.tariff, like.tariff, "EUR a core-hour"),
                ("K2:", varied.price, like.price, "EUR a MWh"),
                ("cooling:", varied.cooling, like.cooling, "times the energy"),
            )
            if value != standard
        ]
        row(", ".join(changed), varied)
    row("a segment for tomorrow", like, TOMORROW)
    row("only who has come is known (and the plan carried out as EASY)", like, SUBMITTED)
    row("jobs run for their limits (equation 2)", of(MULTI, ONE, length="limit"))
    row("the other stretch: up to 2,400 cores, from day 532.40", of(MULTI, ONE, stretch="2,400"))
    row("the other stretch, DelaySearch", of(DELAY, ONE, stretch="2,400"), DELAY)
    row("the other stretch, ours", of(PLAN, ONE, stretch="2,400"), PLAN)
    row("limits, ours", of(PLAN, ONE, length="limit"), PLAN)
    return "## What it depends on\n\nMultiSearch, summer, air, seed 0, but for what a row says.\n\n" + grid(
        ["", "best rule", "% over it", "% over the best strict rule", "best rule: in use %"], rows
    )


# Figures 1 to 4 -----------------------------------------------------------------------------------------------


def _draw(results: Results) -> Figure:
    """Profit ahead of the best rule, at the end of each day."""
    made = figure(640, 420)
    panels = made.subplots(2, 2, sharex=True)
    strokes = dict(zip((CP, MULTI, DELAY, PLAN), (STROKES[1], STROKES[3], STROKES[0], STROKES[2]), strict=True))
    for ax, scenario in zip(panels.flat, SCENARIOS, strict=True):
        rule = _best(results, of(MULTI, scenario), RULES)
        ax.set_title(f"{scenario[1]}, {scenario[0]} cooling")
        if rule is None:
            continue
        for way, stroke in strokes.items():
            if (found := results.get(of(way, scenario))) is None:
                continue
            most = max(len(found.profits), len(rule[1].profits))
            ahead = [_at(found, day) - _at(rule[1], day) for day in range(most)]
            ax.plot(range(1, most + 1), ahead, **{**stroke.line, "marker": ""}, label=CALLED[way])
        ax.axhline(0, color=GREY, linewidth=0.6)
        ax.axvline(DAYS, color=GREY, linewidth=0.6, linestyle=":")
        ax.set_xlim(0)
    for ax in panels[1]:
        ax.set_xlabel("days since the first submission")
    for ax in panels[:, 0]:
        ax.set_ylabel("EUR ahead of the best rule")
    handles, labels = panels.flat[0].get_legend_handles_labels()
    made.legend(handles, labels, loc="outside upper left", ncols=4, frameon=False)
    return made


def _bars(results: Results) -> Figure:
    """Figs. 5 to 8: profit over that of CP's default search."""
    made = figure(640, 240)
    ax = made.subplots()
    ways = dict(zip((*SEARCHES, PLAN), (STROKES[3], STROKES[1], STROKES[5], STROKES[2]), strict=True))
    for at, scenario in enumerate(SCENARIOS):
        plain = results.get(of(CP, scenario))
        for number, (way, stroke) in enumerate(ways.items()):
            found = results.get(of(way, scenario))
            if plain is not None and found is not None:
                ax.bar(at + 0.2 * (number - 1.5), _gain(found, plain), 0.18, color=stroke.colour)
        ax.plot([at - 0.4, at + 0.4], [SAID[scenario][3]] * 2, color=GREY, linestyle=":")
    for way, stroke in ways.items():
        ax.bar([0], [0], color=stroke.colour, label=CALLED[way])
    ax.plot([], [], color=GREY, linestyle=":", label="best of the paper")
    ax.set_xticks(range(len(SCENARIOS)), [f"{season}, {plant}" for plant, season in SCENARIOS])
    ax.set_ylabel("% over CP's default search")
    ax.axhline(0, color=GREY, linewidth=0.6)
    made.legend(loc="outside upper left", ncols=5, frameon=False)
    return made


def _at(found: Result, day: int) -> float:
    return found.profits[min(day, len(found.profits) - 1)]
