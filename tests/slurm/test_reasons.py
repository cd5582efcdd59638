"""Reasons in plain words."""

from __future__ import annotations

import pytest

from dovetail.slurm.reasons import WORDS, meaning


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("Dependency", "waited for another job"),
        ("AssocGrpCpuLimit", "the account had all that it may have: cores"),
        ("AssocGrpCPURunMinutesLimit",
         "the account had all that it may have: cores, times the minutes that running jobs have left"),
        ("AssocGrpGRESMinutes", "the account had all that it may have: GPUs and the like, times minutes"),
        ("AssocGrpSubmitJobsLimit", "the account had all that it may have: submitted jobs"),
        ("AssocMaxJobsLimit", "the user had as many jobs as allowed in the account"),
        ("QOSGrpNodeLimit", "the QOS had all that it may have: nodes"),
        ("QOSMaxJobsPerUserLimit", "the user had all that the QOS allows a user: jobs"),
        ("QOSMaxCpuPerUserLimit", "the user had all that the QOS allows a user: cores"),
        ("QOSMaxWallDurationPerJobLimit", "asks for more than the QOS allows a job: time"),
        ("QOSMinGRES", "asks for less than the QOS wants: GPUs and the like"),
        ("MaxMemoryPerAccount", "the account had all that the QOS allows an account: memory"),
        ("AssocMaxCpuMinutesPerJobLimit", "asks for more than the account allows a job: cores, times minutes"),
        ("QOSMinMemory", "asks for less than the QOS wants: memory"),
        ("A word of next year", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_a_reason_means(word: str, said: str) -> None:
    assert meaning(word) == said


def test_reasons_are_told_on_a_line() -> None:
    assert all(len(text) < 90 and "\n" not in text for text in WORDS.values())
