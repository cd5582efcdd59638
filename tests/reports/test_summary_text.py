"""The summary in plain words, on contents made by hand."""

from __future__ import annotations

import re
from math import nan

import pytest

from dovetail.reports import summary_text
from dovetail.reports.page_data import Case, Content, Entry
from dovetail.reports.summary_text import setting
from tests.reports.contents import case, compared, entry, page

BASE = {"mean_wait_s": 6840.0, "max_wait_s": 262194.0, "bsld": 92.7, "awf_s": 75574.0, "p2sf_s": 140658.6}


def scaled(**by: float) -> dict[str, float]:
    return {key: value * by.get(key, 1.0) for key, value in BASE.items()}


def summary(content: Content) -> tuple[str, ...]:
    return summary_text.summary(content).sentences


def told(*entries: Entry) -> list[str]:
    return list(summary(page(case([entry("easy", BASE), *entries]))))


JUDGES = re.compile(r"\b(better|worse|cut|raised|best|improve\w*)\b")


def test_setting() -> None:
    assert setting(case([])) == (
        "On KTH-SP2 (28,481 jobs over 335 d 15 h, 100 processors) with the users' limits as estimates"
    )
    known = Case("A", "runtime", 10, 4, 0, (), detail="load 0.9")
    assert setting(known) == "On A, load 0.9 (10 jobs, 4 processors) with all run times known beforehand"
    assert setting(Case("A", "runtime*2", 1, 1, 0, ())).endswith("with the estimate runtime*2")


def test_a_difference_with_its_interval_and_trade_off() -> None:
    """The change of the values shown is told first; that of the pairs is another number, and says so."""
    versus = {"mean_wait_s": compared(-0.14, "better", 0.04), "awf_s": compared(0.02, "worse", 0.015)}
    sentences = told(entry("easy-sjbf", scaled(mean_wait_s=0.8, max_wait_s=1.12), versus))
    assert sentences == [
        "easy-sjbf: mean wait 1.52 h instead of 1.90 h: 20 % less. Week by week: 14 % less, 10 to 18 %.",
        "Week by week, it raised the area-weighted response AWF by 2.0 % (0.5 to 3.5 %). Its longest wait was 12 %"
        " longer (3 d 9 h, not 3 d).",
        "On KTH-SP2 (28,481 jobs over 335 d 15 h, 100 processors) with the users' limits as estimates, 1 policy was"
        " compared with easy. Ranges are 95 % intervals over 48 weeks, which speak of this workload and not of others.",
    ]


def test_utilisation_goes_the_other_way() -> None:
    up = told(entry("a", BASE, {"utilization": compared(0.08, "better", 0.01), "bsld": compared(-0.3, "better")}))
    assert up[1] == (
        "Week by week, it cut the mean bounded slowdown by 30 % (25 to 35 %) and raised the utilisation by 8.0 % (7.0"
        " to 9.0 %)."
    )
    down = told(entry("a", BASE, {"utilization": compared(-0.08, "worse", 0.01), "bsld": compared(-0.3, "better")}))
    assert "it cut the mean bounded slowdown by 30 % (25 to 35 %), but cut the utilisation by 8.0 %" in down[1]


def test_unclear_is_not_called_better() -> None:
    sentences = told(
        entry("a", scaled(mean_wait_s=0.5), {"mean_wait_s": compared(-0.5, "unclear", 0.6)}),
        entry("b", scaled(mean_wait_s=2), {"mean_wait_s": compared(1.0, "unclear", 2.0)}),
    )
    assert sentences[:-1] == [
        "a: mean wait 0.95 h instead of 1.90 h: 50 % less. Week by week: no difference could be shown (110 % less to"
        " 10 % more).",
        "b: mean wait 3.80 h instead of 1.90 h: 100 % more. Week by week: no difference could be shown (100 % less to"
        " 300 % more).",
    ]
    assert not JUDGES.search(" ".join(sentences))


def test_jobs_that_never_started_are_said_first_and_nothing_is_won_by_them() -> None:
    idle = {**scaled(mean_wait_s=0.01, bsld=0.01, awf_s=0.01, p2sf_s=0.01), "jobs": 300.0, "jobs_unstarted": 41.0}
    rows = [Entry("easy", BASE), Entry("idle", idle), Entry("a", scaled(mean_wait_s=0.8))]
    sentences = summary(page(case(rows, pairing="")))
    assert sentences[0] == (
        "idle never started 41 of 300 jobs. Its numbers are of the others alone, so it is compared with nobody and is"
        " best in nothing."
    )
    assert "The mean wait was least under a: 1 h 31 m, 20 % less than under easy (1 h 54 m)." in sentences
    assert not any("idle" in text for text in sentences[1:])
    first = summary(page(case([rows[1], rows[0], rows[2]], pairing="")))
    assert first[0].endswith("and it is the baseline: so nobody is compared with it.")
    assert "The mean wait was least under a: 1 h 31 m." in first
    both = summary(page(case(rows, "A", pairing=""), case(rows, "B", pairing="")))
    assert both[0].startswith("idle never started 41 of 300 jobs on A, estimate: limit.")
    assert "idle could be compared with easy in no case." in both


def test_pairs_without_an_interval_say_nothing() -> None:
    few = {"bsld": compared(-0.3, "unclear", nan)}
    sentences = told(entry("a", scaled(bsld=0.7), few))
    assert any(text.endswith("2 policies were replayed; changes are against easy.") for text in sentences)
    assert "no statistical statement is made" in sentences[-1]
    assert not JUDGES.search(" ".join(sentences))


def test_nothing_to_pair_is_said() -> None:
    sentences = told(entry("a", BASE, {"bsld": compared(0.5, "worse")}), entry("b", BASE))
    assert "Too little could be compared in pairs for b, so no statement is made there." in sentences


def test_one_replay_makes_no_statistical_statement() -> None:
    plain = [Entry("easy", BASE), Entry("a", scaled(mean_wait_s=0.8, max_wait_s=7.5)), Entry("b", scaled(bsld=0.5))]
    sentences = summary(page(case(plain, pairing="")))
    assert sentences[0] == "The mean wait was least under a: 1 h 31 m, 20 % less than under easy (1 h 54 m)."
    assert sentences[2] == "As to other metrics, least was the mean bounded slowdown under b."
    assert sentences[3] == (
        "a had a lower mean wait than easy, but its longest wait was 7.5 times as long (22 d 18 h, not 3 d)."
    )
    assert sentences[4].startswith(
        "Each policy was replayed once, with too little to compare in pairs: no statistical statement is made"
    )
    assert not JUDGES.search(" ".join(sentences))


def test_nobody_beats_the_baseline() -> None:
    sentences = summary(page(case([Entry("easy", BASE), Entry("a", scaled(mean_wait_s=2))], pairing="")))
    assert "The mean wait was least under easy: 1 h 54 m." in sentences


def test_means_over_runs_without_pairs() -> None:
    sentences = summary(page(case([entry("easy", BASE), entry("a", scaled(mean_wait_s=0.8))], pairing="")))
    assert sentences[-1].startswith(
        "These are means over up to 48 runs, with too little to compare in pairs: no statistical statement"
    )


def test_one_policy_alone() -> None:
    sentences = summary(page(case([Entry("easy", {**BASE, "utilization": 0.6856, "awf_s": nan})])))
    assert sentences[0] == "The mean wait was 1 h 54 m, the longest wait was 3 d and the utilisation was 68.6 %."
    assert sentences[2] == "There is no other policy to compare it with."


def test_several_cases_count_verdicts() -> None:
    def one(trace: str, wait: str, p2sf: str) -> Case:
        versus = {"mean_wait_s": compared(-0.1, wait), "p2sf_s": compared(0.1, p2sf)}
        return case(
            [entry("easy", BASE), entry("a", BASE, versus), entry("b", BASE, {"bsld": compared(0, "unclear")})], trace
        )

    plain = case([entry("easy", BASE), entry("a", scaled(mean_wait_s=0.1))], "D", pairing="")
    cases = (one("A", "better", "worse"), one("B", "better", "unclear"), one("C", "unclear", "worse"), plain)
    assert summary(page(*cases)) == (
        "The mean wait under a was lower than under easy in 1 of 4 cases.",
        "2 policies were compared with easy in 4 cases, on A, B, C and D; brackets count the cases in which paired"
        " comparisons say so.",
        "Against easy, a was better in the mean wait (2 of 3), but worse in the unfairness measure P2SF (2 of 3).",
        "No difference from easy could be shown for b in the main metrics in any case.",
        "In 1 of the 4 cases too little could be compared in pairs: they do not count here.",
    )


def test_the_headline_of_several_cases_says_in_how_many_it_is_clear() -> None:
    verdicts = (("A", 0.9, "better"), ("B", 0.8, "unclear"), ("C", 1.1, "better"))
    cases = [
        case([entry("easy", BASE), entry("a", scaled(mean_wait_s=by), {"mean_wait_s": compared(-0.1, verdict)})], trace)
        for trace, by, verdict in verdicts
    ]
    found = summary_text.summary(page(*cases))
    assert found.headline == "The mean wait under a was lower than under easy in 2 of 3 cases, clearly so in 1."
    assert not found.warnings


def test_several_cases_without_comparisons() -> None:
    low, high = scaled(mean_wait_s=0.5), scaled(mean_wait_s=2)
    cases = [
        case([Entry("easy", BASE), Entry("a", found)], trace, pairing="") for trace, found in (("A", low), ("B", high))
    ]
    sentences = summary(page(*cases))
    assert sentences[0] == "The mean wait under a was lower than under easy in 1 of 2 cases."
    assert sentences[2].startswith(
        "Each policy was replayed once, with too little to compare in pairs: no statistical statement"
    )
    assert not JUDGES.search(" ".join(sentences))


@pytest.mark.parametrize("policies", [2, 5, 12])
@pytest.mark.parametrize("cases", [1, 2, 9])
def test_never_more_than_eight_sentences(policies: int, cases: int) -> None:
    verdicts = (compared(-0.1, "better"), compared(0.1, "worse"), compared(0, "unclear"))
    entries = [entry("easy", BASE), entry("alone", BASE)]
    entries += [entry(f"p{i}", BASE, {"mean_wait_s": verdicts[i % 3]}) for i in range(policies)]
    sentences = summary(page(*(case(entries, f"T{i}") for i in range(cases))))
    assert (2 if policies == 2 else 3) <= len(sentences) <= 8
    assert all(len(sentence) < 500 for sentence in sentences)


def test_nothing_at_all() -> None:
    assert summary(Content("t", ())) == ("There is nothing to show: no case has a policy that was replayed.",)
    unknown = summary(page(case([Entry("easy", {}), Entry("a", {"mean_wait_s": nan})], pairing="")))
    assert len(unknown) == 2
