"""docs/results/windows.md and its figure, from the results of windows.py and small_windows.py.

python benchmarks/windows_page.py --results windows.jsonl [--small small_windows.jsonl]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from math import fsum, inf, isfinite
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.small_windows import DECODES, MORE_DECODES
from benchmarks.windows import ASKED, BOUND, ROOT, SOLVERS, read

from dovetail.optimize.window.terms import COLD, HOT
from dovetail.studies.papers.page import picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = dict[str, Any]
Rows = Sequence[dict[str, Row]]
"""One window under one objective: the row of each solver."""

WORDS: Final = {
    "anneal": "search (annealing)",
    "tabu": "tabu search",
    "genetic": "genetic search",
    "random": "random orders",
    "cpsat": "CP-SAT alone",
    "cpsat-hinted": "CP-SAT, hinted",
    "cpoptimizer": "CP Optimizer",
}
DRAWN: Final = ("anneal", "cpsat-hinted", "cpsat", "cpoptimizer")
SHOWN_S: Final = (0.05, 0.2, 1.0, 5.0)
TRIED: Final = ("anneal", "more", "tabu", "genetic", "random")
"""What small_windows.py tries."""
SAME: Final = 1e-5
"""Values that differ by less are the same: the log of CP Optimizer has six digits."""


def best_at(row: Row, seconds: float) -> float:
    """The value of the best schedule at that instant, relative to the FCFS list plan; infinity if there is none."""
    return min((float(value) for at, value in row["history"] if at <= seconds), default=inf) / float(row["fcfs"])


def complete(rows: list[Row], objective: str) -> list[dict[str, Row]]:
    """The windows that every solver has seen under all objectives; their rows under one, the bound's too."""
    found: dict[str, dict[tuple[str, str], Row]] = {}
    for row in rows:
        found.setdefault(row["window"], {})[row["objective"], row["solver"]] = row
    named = (*SOLVERS, BOUND)
    whole = [window for window in found.values() if len(window) == len(named) * len(ASKED)]
    return [{solver: window[objective, solver] for solver in named} for window in whole]


def taken(windows: Rows) -> list[dict[str, Row]]:
    """Those that CP Optimizer's community edition did not refuse."""
    return [window for window in windows if window["cpoptimizer"]["status"] != "refused"]


def mean_at(windows: Rows, solver: str, seconds: float) -> float:
    """The mean value at an instant; infinity while a window has none."""
    return fsum(best_at(window[solver], seconds) for window in windows) / len(windows)


def share_best(windows: Rows, solver: str, solvers: Sequence[str], seconds: float) -> float:
    """The share of the windows in which none of the solvers is better; those that are as good all count."""
    won = 0
    for window in windows:
        mine = best_at(window[solver], seconds)
        won += isfinite(mine) and mine <= min(best_at(window[other], seconds) for other in solvers) * (1 + SAME)
    return won / len(windows)


def table(windows: Rows, solvers: Sequence[str]) -> list[str]:
    """Share of the windows solved best, and mean value, at each of SHOWN_S."""
    best, mean = (" | ".join(f"{word} at {s:g} s" for s in SHOWN_S) for word in ("best", "mean"))
    lines = [f"| | {best} | {mean} |", "|" + "---|" * (1 + 2 * len(SHOWN_S))]
    for solver in solvers:
        shares = [f"{100 * share_best(windows, solver, solvers, s):.0f} %" for s in SHOWN_S]
        means = [mean_at(windows, solver, s) for s in SHOWN_S]
        shown = [f"{value:.4f}" if isfinite(value) else "none" for value in means]
        lines.append(f"| {WORDS[solver]} | {' | '.join(shares)} | {' | '.join(shown)} |")
    return lines


def gaps(windows: Rows) -> str:
    """How far the plans are from a value that no plan can beat."""
    best = [min(best_at(window[solver], SHOWN_S[-1]) for solver in SOLVERS) for window in windows]
    low = [float(window[BOUND]["value"]) / float(window["anneal"]["fcfs"]) for window in windows]
    above = [value / bound - 1 for value, bound in zip(best, low, strict=True)]
    assert all(value >= 0 for value in above)
    proved = sum(any(window[solver]["status"] == "optimal" for solver in SOLVERS) for window in windows)
    cpu_s = max(float(window[BOUND]["cpu_s"]) for window in windows)
    return (
        f"No plan is below the [bound](../solvers.md#bounds) of its window, which takes {1000 * cpu_s:.0f} ms at most."
        f" The best plans at {SHOWN_S[-1]:g} s are above it by {100 * fsum(above) / len(above):.1f} % on average,"
        f" {100 * median(above):.1f} % in the median and {100 * max(above):.1f} % at most; {proved} of them"
        " are proved to be the best."
    )


def figure(rows: list[Row]) -> Figure:
    """Mean value against CPU seconds, for the windows that CP Optimizer takes, and for all."""
    from dovetail.reports.style import figure as empty

    drawn = empty(560, 400)
    axes = drawn.subplots(2, len(ASKED), sharex=True, sharey="col", squeeze=False)
    for column, objective in enumerate(ASKED):
        every = complete(rows, objective)
        some = taken(every)
        _panel(axes[0, column], some, DRAWN, f"{objective.upper()}: {len(some)} windows that CP Optimizer takes")
        _panel(axes[1, column], every, DRAWN[:-1], f"{objective.upper()}: all {len(every)} windows")
        axes[1, column].set_xlabel("CPU seconds")
    for line in range(2):
        axes[line, 0].set_ylabel("mean, relative to FCFS")
    drawn.legend(*axes[0, 0].get_legend_handles_labels(), frameon=False, loc="outside upper center", ncols=len(DRAWN))
    return drawn


def _panel(ax: Axes, windows: Rows, solvers: Sequence[str], title: str) -> None:
    """One line per solver, from the instant on at which it has a plan for every window."""
    from dovetail.reports.style import STROKES

    seconds = [10 ** (k / 40 - 2) for k in range(109)]
    for solver, stroke in zip(solvers, STROKES, strict=False):
        means = [mean_at(windows, solver, s) for s in seconds]
        known = [(s, mean) for s, mean in zip(seconds, means, strict=True) if isfinite(mean)]
        if known:
            ax.plot(
                *zip(*known, strict=True),
                label=WORDS[solver],
                markevery=(0.1, 0.2),
                drawstyle="steps-post",
                **stroke.line,
            )
    ax.set_title(title)
    ax.set_xscale("log")
    ax.set_xlim(0.01, 5)
    ax.set_xticks([0.01, 0.1, 1, 5], ["0.01", "0.1", "1", "5"])


def page(rows: list[Row], small: list[Row]) -> str:
    """The whole page."""
    every = {objective: complete(rows, objective) for objective in ASKED}
    count = len(every[ASKED[0]])
    if not count:
        raise SystemExit("no window has been seen by all solvers, and has its bound: run windows.py first")
    jobs = sorted(window["anneal"]["jobs"] for window in every[ASKED[0]])
    refused = count - len(taken(every[ASKED[0]]))
    limits = sum(" limit " in window["anneal"]["window"] for window in every[ASKED[0]])
    lines = [
        "# One planning window, several solvers",
        "",
        f"How good is the best plan of one pass after so many CPU seconds? {count} planning windows of {jobs[0]} to"
        f" {jobs[-1]} waiting jobs, cut from replays of KTH-SP2, CTC-SP2, SDSC-SP2 and SDSC-BLUE under `list-reg`, AF"
        " and AWF. Values are relative to the FCFS list plan; lower is better.",
        "",
        "![Mean value of the best plan against CPU seconds](windows.svg)",
        "",
        *_how(refused, limits),
    ]
    for objective in ASKED:
        lines += ["", f"## {objective.upper()}", "", f"All {count} windows, without CP Optimizer:", ""]
        others = [solver for solver in SOLVERS if solver != "cpoptimizer"]
        lines += table([{s: w[s] for s in others} for w in every[objective]], others)
        some = taken(every[objective])
        lines += ["", f"The {len(some)} that CP Optimizer takes:", "", *table(some, SOLVERS)]
        lines += ["", gaps(every[objective])]
    return "\n".join([*lines, *_small(small), *_made_with(count, bool(small))]) + "\n"


def _how(refused: int, limits: int) -> list[str]:
    return [
        "- **Windows.** Passes at which 10 to 200 jobs wait and one of them fits now, in five classes of sizes (10 to"
        " 19, 20 to 39, 40 to 79, 80 to 139, 140 to 200), drawn by seed, one a day. Any four in a row are of four"
        f" traces, any five of five classes. Estimates are limits in {limits} of them, and run times in the others.",
        "- **Solvers.** One thread and one run each. The searches decode orders and begin with the best of five list"
        " plans; they go on in rounds, each of twice as many decodes, from the best so far, and count when a round"
        f" ends. The annealing goes from {HOT:g} to {COLD:g} mean costs of a job. CP-SAT and CP Optimizer have the"
        " same model: one interval per job on one cumulative, starts in seconds."
        ' "Hinted" is told the best list plan. Compilation, loading and the building of models are not counted.',
        f"- **CP Optimizer** is the community edition, which refuses {refused} of these windows as too large. It is not"
        " hinted.",
        "- **Tuning.** The temperatures of the annealing and the growth of its rounds were chosen among a few on"
        " windows of the same traces, some of these among them. All others have the first settings that we gave"
        " them, or their defaults. Between the searches the differences are small for one run on so few windows.",
        "- **Best** is the share of the windows in which nobody has a better plan at that instant; who has the same"
        " value, to five digits, counts too. A mean is given where every window has a plan.",
        "- All schedules were checked for capacity and earliest starts. CPU seconds on one core of a shared machine.",
    ]


def _small(rows: list[Row]) -> list[str]:
    """Against the proved optimum, on small windows."""
    if not rows:
        return []
    lines = [
        "",
        "## Small windows, against proofs",
        "",
        "Windows of 2 to 8 jobs of the same traces, in which not all jobs can start as if they were alone, on a clock"
        " on which the longest estimate has about 24 units. CP-SAT proves the least value over all starts. How often"
        f" is it reached, with {DECODES:,} decodes in one round, and by the search with {MORE_DECODES:,} too?",
        "",
        f"| objective | windows | proved | search | search, {MORE_DECODES:,} | tabu | genetic | random |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in ("af", "awf", "bsld"):
        here = [row for row in rows if row["objective"] == name]
        proved = [row for row in here if row["status"] == "optimal"]
        hits = [sum(row[m] <= row["free"] * (1 + 1e-9) for row in proved) for m in TRIED]
        lines.append(f"| `{name}` | {len(here):,} | {len(proved):,} | {' | '.join(f'{hit:,}' for hit in hits)} |")
    here = [row for row in rows if row["objective"] == "p2sf"]
    proved = [row for row in here if row["status"] == "optimal"]
    if proved:
        best = [min(row[m] for m in TRIED) for row in proved]
        gaps = sorted(1 - row["free"] / low for row, low in zip(proved, best, strict=True))
        reached = sum(row["anneal"] <= low * (1 + 1e-9) for row, low in zip(proved, best, strict=True))
        idle = sum(gap > 1e-9 for gap in gaps)
        lines += [
            "",
            f"**P2SF and idling.** Of {len(here):,} windows CP-SAT proved the least P2SF of {len(proved):,}. In"
            f" {idle:,} of them it is lower than that of every plan without idling that any search found: by"
            f" {100 * fsum(gaps) / len(gaps):.2f} % on average over all, {100 * gaps[len(gaps) // 2]:.2f} % in the"
            f" median, {100 * gaps[-1]:.1f} % at most. That much is given up by not letting jobs wait for nothing. The"
            f" search reaches the best plan without idling that any of them found in {reached:,}; it linearises the"
            " ratio once per round.",
        ]
    return lines


def _made_with(count: int, small: bool) -> list[str]:
    return [
        "",
        "## Made with",
        "",
        "```",
        f"python benchmarks/windows.py --windows {count} --cpoptimizer PATH",
        *(["python benchmarks/small_windows.py"] if small else []),
        "python benchmarks/windows_page.py",
        "```",
        "",
        "`PATH` is the program `cpoptimizer`; the community edition is in the wheel `cplex`. The logs are from the"
        " Parallel Workloads Archive (Feitelson, Tsafrir and Krakov, Experience with using the Parallel Workloads"
        " Archive, JPDC 74(10), 2014).",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("windows.jsonl"))
    parser.add_argument("--small", type=Path, default=Path("small_windows.jsonl"))
    args = parser.parse_args()
    rows = read(args.results)
    place = ROOT / "docs" / "results"
    label = "Mean value of the best plan against CPU seconds, by solver"
    (place / "windows.svg").write_text(picture(lambda: figure(rows), "windows", label))
    (place / "windows.md").write_text(page(rows, read(args.small)))


if __name__ == "__main__":
    main()
