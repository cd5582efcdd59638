"""A failing case made small: fewer jobs, smaller numbers, plain settings, as long as the same check says the same."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.errors import SettingError
from dovetail.model.workload import REQUIRED
from dovetail.policies.registry import policy
from tests.simulate.cases import Case, kept
from tests.simulate.checks import Trial, judged

SECONDS: Final = 20
"""How long a case is made smaller."""


def kind_of(said: str) -> str:
    """What is wrong, without the numbers."""
    return re.split(r"\d", said)[0]


def fails(case: Case, check: str, kind: str) -> bool:
    """Whether the check still says that of the case."""
    return any(kind_of(said) == kind for said in judged(Trial(case), check))


def shrunk(case: Case, check: str, said: str, seconds: float = SECONDS) -> Case:
    """The smallest case that is found in so many seconds."""
    kind, until, smaller = kind_of(said), time.monotonic() + seconds, True
    while smaller:
        smaller = False
        for make in (_fewer, _plainer, _less):
            found = True
            while found and time.monotonic() < until:
                found = False
                for one in make(case):
                    if time.monotonic() > until:
                        break
                    if fails(one, check, kind):
                        case, found, smaller = one, True, True
                        break
    return case


def _fewer(case: Case) -> Iterator[Case]:
    """Without a part of the jobs: halves first, single jobs last."""
    n, size = len(case), len(case) // 2
    while size:
        for begin in range(0, n, size):
            rows = np.arange(n)
            yield kept(case, (rows < begin) | (rows >= begin + size))
        size //= 2


def _plainer(case: Case) -> Iterator[Case]:
    """With one thing less to say."""
    for column in sorted(set(case.jobs) - set(REQUIRED)):
        if column != "units" and not column.startswith("unit_"):
            yield replace(case, jobs={name: values for name, values in case.jobs.items() if name != column})
    for name, plain in (("feedback", False), ("every_s", 0), ("estimate", "limit"), ("seed", 0)):
        if repr(getattr(case, name)) != repr(plain):
            yield replace(case, **{name: plain})  # type: ignore[arg-type]
    if case.cluster.cap is not None:
        yield replace(case, cluster=replace(case.cluster, cap=None))
    if case.cluster.licences:
        yield replace(case, cluster=replace(case.cluster, licences=()))
    base, _, rest = case.policy.partition(":")
    parts = rest.split(",") if ".py:" not in case.policy else []
    for part in parts:
        fewer = ",".join(one for one in parts if one != part)
        text = f"{base}:{fewer}" if fewer else base
        if text == case.policy:
            continue
        try:
            policy(text)
        except SettingError:
            continue
        yield replace(case, policy=text)


LEAST = {
    "submit": 0, "runtime": 1, "limit": 1, "size": 1, "think_s": 0, "deadline_s": -1, "not_before_s": -1,
    "leaves_s": -1,
}  # fmt: skip


def _less(case: Case) -> Iterator[Case]:
    """With smaller numbers: all of a column, then one."""
    jobs = case.jobs
    if len(case) and jobs["submit"][0] > 0:
        yield replace(case, jobs={**jobs, "submit": jobs["submit"] - jobs["submit"][0]})
    if not case.cluster.kinds and not case.cluster.counted:
        for processors in (int(jobs["size"].max(initial=1)), case.cluster.processors // 2, case.cluster.processors - 1):
            if max(1, int(jobs["size"].max(initial=1))) <= processors < case.cluster.processors:
                yield replace(case, cluster=replace(case.cluster, processors=processors))
    for column, least in LEAST.items():
        if column not in jobs or (column == "size" and "units" in jobs):
            continue
        values = jobs[column]
        for less in (np.full_like(values, least), values // 2, values - 1):
            yield from _with(case, column, np.maximum(less, least))
        for job in range(len(case)):
            for one in sorted({least, int(values[job]) // 2, int(values[job]) - 1}):
                if least <= one < values[job]:
                    less = values.copy()
                    less[job] = one
                    yield from _with(case, column, less)
    if not isinstance(case.estimate, str):
        for less in (case.estimate // 2, case.estimate - 1):
            if not np.array_equal(np.maximum(less, 1), case.estimate):
                yield replace(case, estimate=np.maximum(less, 1))


def _with(case: Case, column: str, values: Ints) -> Iterator[Case]:
    """With another column, if that is smaller and jobs are still in order."""
    if np.array_equal(values, case.jobs[column]) or (column == "submit" and bool(np.any(np.diff(values) < 0))):
        return
    yield replace(case, jobs={**case.jobs, column: values})
