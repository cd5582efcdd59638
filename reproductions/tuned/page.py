"""Six logs: what suits the first half of each, and what came of it in the second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from math import exp, log
from statistics import fmean
from typing import Any, Final

from dovetail.engine.replay import replay
from dovetail.metrics import summarize
from dovetail.model.workload import Workload
from dovetail.studies.executors import engine
from dovetail.studies.store import Store
from dovetail.studies.task import Cell
from dovetail.studies.tune import BASE, FILE, USUAL, candidates, longest_wait, tune, write_study
from reproductions.claims import NO, PART, YES, Judged
from reproductions.running import Work
from reproductions.runs import Runs
from reproductions.values import Content, Key, NotRunError, Values

LOGS: Final = {
    "CTC-SP2": "papers/CTC-SP2", "SDSC-SP2": "papers/SDSC-SP2", "SDSC-DS": "archive/SDSC-DS-2004-2.1-cln",
    "ALCF-Theta-2023": "archive/ALCF-Theta-2023", "ALCF-Mira-2018": "archive/ALCF-Mira-2018",
    "KTH-SP2": "papers/KTH-SP2",
}  # fmt: skip
GOAL, LONGEST, ESTIMATE = "awf", "2x", "limit"
FIXED: Final = (BASE, USUAL, "easy-sjbf", "list-laf", "plan-awf", "plan-awf:wide=0", "plan-awf:long=2d",
                "plan-awf:long=none")  # fmt: skip
"""One of these for all logs: the best of them, known only afterwards, is what a choice is held against."""
OWN: Final = "what is recommended for each"
MOST_CPU_S: Final = 1800
HALVES: Final = ("first half", "second half")


def cells(_: Work) -> list[Cell]:
    """Candidates on the past and on what came after: one of each log first, so that each log is tuned once."""
    names = candidates(GOAL)
    found = [Cell(log_, "", span, one, ESTIMATE, 0) for log_ in LOGS for span in HALVES for one in names]
    return sorted(found, key=lambda cell: (cell.span, cell.policy) != (HALVES[0], names[0]))


def solve(cell: Cell, work: Work) -> dict[str, float]:
    """How a candidate did when its log was tuned; or the second half replayed, for what is compared there."""
    log_ = LOGS[cell.trace]
    found = work.memo("tuned", [cell.trace, GOAL, LONGEST, ESTIMATE], lambda: _tuned(log_, work))
    if cell.span == "first half":
        return dict(found.get(cell.policy, {}))
    chosen = next(policy for policy, numbers in found.items() if numbers["chosen"])
    if cell.policy not in (*FIXED, chosen):
        return {}
    made = summarize(replay(_second_half(log_, work), cell.policy, estimate=ESTIMATE))
    return {key: made[key] for key in ("awf_s", "max_wait_s")}


def _second_half(log_: str, work: Work) -> Workload:
    submit = work.jobs(log_).submit
    first, end = int(submit[0]), int(submit[-1]) + 1
    return work.jobs(log_, f"span={first + (end - first) // 2}s..{end}s")


def _tuned(log_: str, work: Work) -> dict[str, dict[str, float]]:
    """What tuning says of each candidate of a log."""
    path, name = work.log(f"{log_}.swf.gz").resolve(), log_.rpartition("/")[2]
    store = Store(work.store.path / "tuned" / name)
    write_study(store.path / FILE, {"path": str(path), "name": name}, work.jobs(log_), candidates(GOAL), ESTIMATE, 0)
    run_on = engine("local", 1, store.path.resolve())
    made = tune(store, GOAL, longest_wait(LONGEST), run_on, lambda _: None, lambda _: nullcontext(lambda _: None))
    return {
        one.policy: {
            "change": one.change, "longest": one.longest, "stretches": one.stretches, "best_in": made.best_in,
            "chosen": float(one.policy == made.choice), "tune_cpu_s": made.cpu_s,
        }
        for one in made.tried
    }  # fmt: skip


def values(runs: Runs, _: Mapping[Key, Content]) -> dict[Key, Content]:
    """By log: the choice, and what it gives on the second half against easy and the best that is fixed for all."""
    found: dict[Key, Content] = {}
    after: dict[str, dict[str, float]] = {}
    waits: dict[str, dict[str, float]] = {}
    for name in LOGS:
        past = {policy: run for policy in candidates(GOAL) if (run := runs.get(name, policy, span="first half"))}
        chosen = [policy for policy, run in past.items() if run.numbers["chosen"] == 1]
        second = {policy: run for policy in candidates(GOAL) if (run := runs.get(name, policy, span="second half"))}
        second = {policy: run for policy, run in second.items() if run.numbers["awf_s"] == run.numbers["awf_s"]}
        if not chosen or not {*FIXED, chosen[0]} <= set(second):
            continue
        own, numbers = chosen[0], past[chosen[0]].numbers
        after[name] = {policy: run.numbers["awf_s"] for policy, run in second.items()}
        usual_s = second[USUAL].numbers["max_wait_s"]
        waits[name] = {policy: run.numbers["max_wait_s"] / usual_s for policy, run in second.items()}
        found |= {
            (name, "", "chosen"): own, (name, "", "best in"): numbers["best_in"],
            (name, "", "past, %"): 100 * numbers["change"],
            (name, "", "longest wait, x"): waits[name][own], (name, "", "CPU, min"): numbers["tune_cpu_s"] / 60,
            (name, "", "after, %"): 100 * (after[name][own] / after[name][BASE] - 1),
        }  # fmt: skip
    if len(after) == len(LOGS):
        found |= _against_fixed(after, waits, {name: str(found[name, "", "chosen"]) for name in LOGS})
    return found


def _against_fixed(
    after: Mapping[str, Mapping[str, float]], waits: Mapping[str, Mapping[str, float]], chosen: Mapping[str, str]
) -> dict[Key, Content]:
    """Policies that are the same for all logs, and the choices: the geometric mean on the second halves, and the waits
    there. Then the choice of each log against the best that is the same for all."""
    found: dict[Key, Content] = {}
    mean = dict[str, float]()
    for policy in (*FIXED, OWN):
        of = chosen if policy == OWN else dict.fromkeys(LOGS, policy)
        times = [waits[name][of[name]] for name in LOGS]
        mean[policy] = 100 * (_mean([after[name][of[name]] / after[name][BASE] for name in LOGS]) - 1)
        found |= {
            ("all", policy, "mean, %"): mean[policy], ("all", policy, "longest wait, x"): max(times),
            ("all", policy, "kept"): sum(one <= longest_wait(LONGEST)[0] for one in times),
        }  # fmt: skip
    found["all", "", "fixed"] = best = min(FIXED, key=lambda policy: mean[policy])
    for name, one in after.items():
        found[name, "", "fixed, %"] = 100 * (one[best] / one[BASE] - 1)
        found[name, "", "against fixed, %"] = 100 * (one[chosen[name]] / one[best] - 1)
        least = min(one[policy] for policy in FIXED)
        found[name, "", "best known after, %"] = 100 * (least / one[BASE] - 1)
    return found


def _mean(ratios: Sequence[float]) -> float:
    return exp(fmean(map(log, ratios)))


COLUMNS: Final = {
    "best in": ".0f", "past, %": "+.1f", "after, %": "+.1f", "fixed, %": "+.1f", "against fixed, %": "+.1f",
    "best known after, %": "+.1f", "longest wait, x": ".2f", "CPU, min": ".1f",
}  # fmt: skip


def rows(values: Values) -> list[list[str]]:
    """A line for each log."""
    made = []
    for name in LOGS:
        numbers = [values.text(name, "", column, form, "not run") for column, form in COLUMNS.items()]
        made.append([name, f"`{values.text(name, '', 'chosen', missing='not run')}`", *numbers])
    return made


def fixed_rows(values: Values) -> list[list[str]]:
    """A line for each policy that is the same for all logs, and one for the choices; the best first."""
    found = [(values.number("all", policy, "mean, %"), policy) for policy in (*FIXED, OWN)]
    known = sorted((number, policy) for number, policy in found if number is not None)
    columns = {"mean, %": "+.1f", "kept": ".0f", "longest wait, x": ".2f"}
    return [
        [policy if policy == OWN else f"`{policy}`", *(values.text("all", policy, *one) for one in columns.items())]
        for _, policy in known
    ]


def _all(values: Values, column: str) -> dict[str, Any]:
    found = {name: values.number(name, "", column) for name in LOGS}
    if any(one is None for one in found.values()):
        raise NotRunError(column)
    return found


def beats_easy(values: Values) -> Judged:
    """On every log, on the half that chose nothing."""
    after = _all(values, "after, %")
    good = sum(one < 0 for one in after.values())
    return Judged(f"on {good} of {len(LOGS)}", YES if good == len(LOGS) else PART if good else NO)


def beats_fixed(values: Values) -> Judged:
    """At least as good, on average, as the best that is the same for all."""
    kept, mean = ({one: values.need("all", one, key) for one in (*FIXED, OWN)} for key in ("kept", "mean, %"))
    fair = min((one for one in FIXED if kept[one] >= kept[OWN]), key=lambda one: mean[one])
    own, first = mean[OWN], values.text("all", "", "fixed")
    words = (
        f"chosen {own:+.1f} % against {BASE}; {first} for all {mean[first]:+.1f} %, which keeps waits on"
        f" {kept[first]:.0f}; of those that keep them as often as the choices, {fair} {mean[fair]:+.1f} %"
    )
    return Judged(words, YES if own <= mean[first] else PART if own <= mean[fair] else NO)


def keeps_wait(values: Values) -> Judged:
    """No wait of the second half is longer than was asked, on every log."""
    wait = _all(values, "longest wait, x")
    most = longest_wait(LONGEST)[0]
    broken = [f"{name} {one:.1f} x" for name, one in wait.items() if one > most]
    words = f"on {len(LOGS) - len(broken)} of {len(LOGS)}" + (f"; not on {', '.join(broken)}" if broken else "")
    return Judged(words, NO if len(broken) == len(LOGS) else PART if broken else YES)


def in_time(values: Values) -> Judged:
    """At most 30 minutes of CPU a log."""
    most = max(_all(values, "CPU, min").values())
    return Judged(f"at most {most:.0f} min", YES if 60 * most <= MOST_CPU_S else NO)
