"""What the pages on predictors compute, by hand and from the metrics themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dovetail.engine.replay import replay
from dovetail.metrics import Outcomes, af_s, awf_s, bsld, pasf_s
from dovetail.policies.registry import policy
from dovetail.studies.papers.quantiles import Choice, Half, change, choose, halves
from dovetail.workloads.lublin import lublin


@pytest.mark.parametrize(
    ("metric", "formula"),
    [("bsld", bsld), ("af_s", af_s), ("awf_s", awf_s), ("p2sf_s", lambda jobs: 4 / 3 * pasf_s(jobs, 2))],
)
def test_halves_add_up_to_the_metrics(metric: str, formula) -> None:  # type: ignore[no-untyped-def]
    workload = lublin(3000, 64, seed=2, load=0.9)
    made = replay(workload, policy("easy"))
    middle = (int(workload.submit[0]) + int(workload.submit[-1])) // 2
    for half, part in zip(halves([made], metric), (workload.submit < middle, workload.submit >= middle), strict=True):
        jobs = Outcomes(workload.size[part], workload.runtime[part], made.wait[part])
        assert half.top.sum() / half.bottom.sum() == pytest.approx(formula(jobs))
        later = replace(made, start=made.start + 60)
        together, alone = (halves(both, metric)[0 if part[0] else 1] for both in ([made, later], [later]))
        assert together.top == pytest.approx(half.top + alone.top)
        assert together.bottom == pytest.approx(half.bottom + alone.bottom)
        assert len(half.top) == pytest.approx((middle - int(workload.submit[0])) / (7 * 86400), abs=1)


def test_the_interval_holds_the_change_and_narrows_with_agreement() -> None:
    rng = np.random.default_rng(1)
    base = Half(rng.uniform(1, 3, 40), np.ones(40))
    steady = change(base, Half(0.9 * base.top, base.bottom))
    assert (steady.value, steady.low, steady.high) == pytest.approx((-0.1, -0.1, -0.1))
    noisy = change(base, Half(base.top * rng.uniform(0.5, 1.4, 40), base.bottom))
    assert noisy.low < noisy.value < noisy.high
    assert noisy.high - noisy.low > 0.05


def chosen(first: float, last: float, known: float = 0.5) -> Choice:
    """Of one setting that changes all weeks alike."""
    base = Half(np.ones(20), np.ones(20))

    def times(one: float, other: float) -> tuple[Half, Half]:
        return Half(one * base.top, base.bottom), Half(other * base.top, base.bottom)

    return choose("t", "easy", {"limit": (base, base), "runtime": times(0.5, known), "q": times(first, last)})


def test_the_first_half_chooses_and_the_last_is_shown() -> None:
    assert (chosen(0.9, 1.2).name, chosen(1.1, 0.5).name) == ("q", "limit")
    assert (chosen(0.9, 1.2).verdict, chosen(0.9, 0.8).verdict) == ("worse", "better")
    assert (chosen(1.1, 0.5).verdict, chosen(1.1, 0.5).good) == ("limits stay", False)
    assert chosen(1.1, 0.5, known=0.99).good
    assert chosen(0.9, 0.8).last.value == pytest.approx(-0.2)


def test_few_weeks_make_no_interval_and_choose_nothing() -> None:
    short = Half(np.ones(5), np.ones(5))
    less = Half(0.5 * short.top, short.bottom)
    assert (change(short, less).low, change(short, less).high) == (-np.inf, np.inf)
    made = {"limit": (short, short), "runtime": (less, less), "q": (less, less)}
    assert choose("t", "easy", made).name == "limit"
