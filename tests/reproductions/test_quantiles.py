"""What the page on our quantiles computes, by hand and from the metrics themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dovetail.arrays import Floats
from dovetail.engine.replay import replay
from dovetail.metrics import Outcomes, af_s, awf_s, bsld, pasf_s
from dovetail.policies.registry import policy
from dovetail.workloads.lublin import lublin
from reproductions.quantiles import page
from reproductions.values import Value, Values


@pytest.mark.parametrize(
    ("name", "formula"),
    [
        ("easy-sjbf", bsld), ("plan-af", af_s), ("list-laf", awf_s),
        ("list-reg", lambda jobs: 4 / 3 * pasf_s(jobs, 2)),
    ],
)  # fmt: skip
def test_halves_add_up_to_the_metrics(name: str, formula: Callable[[Outcomes], float]) -> None:
    workload = lublin(3000, 64, seed=2, load=0.9)
    made = replace(replay(workload, policy("easy")), policy=name)
    middle = (int(workload.submit[0]) + int(workload.submit[-1])) // 2
    found = page.measure(made, lambda _: made)
    for half, part in (("first half", workload.submit < middle), ("last half", workload.submit >= middle)):
        weeks = np.array(found[half])
        jobs = Outcomes(workload.size[part], workload.runtime[part], made.wait[part])
        assert weeks[:, 0].sum() / weeks[:, 1].sum() == pytest.approx(formula(jobs))
        assert len(weeks) == pytest.approx((middle - int(workload.submit[0])) / (7 * 86400), abs=1)


def test_the_interval_holds_the_change_and_narrows_with_agreement() -> None:
    rng = np.random.default_rng(1)
    base = np.array([rng.uniform(1, 3, 40), np.ones(40)])
    steady = page.change(base, base * [[0.9], [1]])
    assert (steady.value, steady.low, steady.high) == pytest.approx((-10, -10, -10))
    noisy = page.change(base, np.array([base[0] * rng.uniform(0.5, 1.4, 40), base[1]]))
    assert noisy.low < noisy.value < noisy.high
    assert noisy.high - noisy.low > 5


def chosen(first: float, last: float, known: float = 0.5, weeks: int = 20) -> tuple[str, str, bool]:
    """Of one setting that changes all weeks alike: what was chosen, what is said of it, and whether it is good."""
    base = np.ones((2, weeks))

    def times(one: float, other: float) -> tuple[Floats, Floats]:
        return base * [[one], [1]], base * [[other], [1]]

    made = page.chosen(
        "t", "plan-bsld", {"limit": (base, base), "runtime": times(0.5, known), "0.3": times(first, last)}
    )
    values = Values({key: Value(one, "", "run") for key, one in made.items()}, {})
    table = "BSLD, plan-bsld"
    value = values.number(table, "t", "last, value") or 0.0
    name = page.interval(values, table, "t", "chosen")
    return name, page.interval(values, table, "t", ""), page._good(values, table, "t", value)


def test_the_first_half_chooses_and_the_last_is_shown() -> None:
    assert chosen(0.9, 1.2) == ("quantile:level=0.3", "worse", False)
    assert chosen(0.9, 0.8) == ("quantile:level=0.3", "better", True)
    assert chosen(1.1, 0.5) == ("limit", "limits stay", False)
    assert chosen(1.1, 0.5, known=0.99) == ("limit", "limits stay", True)


def test_few_weeks_make_no_interval_and_choose_nothing() -> None:
    short = np.ones((2, 5))
    assert page.change(short, 0.5 * short).low == -np.inf
    assert chosen(0.5, 0.5, weeks=5)[0] == "limit"
