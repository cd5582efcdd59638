"""Studies as files: what they say, and mistakes named with their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.errors import InputError
from dovetail.studies.spec import placed, read_study

GOOD = """\
name = "good"
policies = ["easy", {name = "list", reserve = [2, 4], order = ["fcfs", "sjf"]}]
estimates = "limit"
seeds = 3

[[traces]]
path = "a/KTH.swf.gz"

[[traces]]
name = "made"
generate = {jobs = 10, processors = 4}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_a_study_says(tmp_path: Path) -> None:
    study = read_study(written(tmp_path, GOOD))
    assert study.policies == [
        "easy",
        "list:reserve=2,order=fcfs",
        "list:reserve=2,order=sjf",
        "list:reserve=4,order=fcfs",
        "list:reserve=4,order=sjf",
    ]
    assert (study.estimates, study.seeds, study.spans, study.scenarios) == (["limit"], [0, 1, 2], ["all"], [[]])
    assert [trace.label for trace in study.traces] == ["KTH", "made"]


@pytest.mark.parametrize(
    ("line", "old", "new", "says"),
    [
        (3, '"limit"', '"limits"', "no estimate 'limits'; did you mean limit?"),
        (4, "seeds = 3", "seeds = [1, 1]", "seeds are up to 10,000 different whole numbers"),
        (4, "seeds = 3", "seed = 3", "no key 'seed'; did you mean seeds?"),
        (2, '"easy"', '"eazy"', "no policy 'eazy'; did you mean easy?"),
        (2, '"easy"', '"easy", "easy"', "the policy 'easy' is given twice"),
        (2, '{name = "list", ', "{", "a policy with settings has a name"),
        (2, "reserve = [2, 4]", 'reserve = ["x"]', "must be strict, none, first, all"),
        (7, 'path = "a/KTH.swf.gz"', "path = 7", "traces.0.path: Input should be a valid string"),
        (9, 'name = "made"', 'path = "x"', "a trace has either a `path` or `generate"),
        (11, "jobs = 10", "jobs = 0", "greater than or equal to 1"),
        (1, 'name = "good"', 'nam = "good"', "no key 'nam'; did you mean name?"),
        (4, "seeds = 3", 'spans = ["all", "monthly"]', "no span 'monthly': write all, weekly, each 30d, or 0d..30d"),
        (4, "seeds = 3", 'spans = [\n  "all",\n  "each 0s",\n]', "no span 'each 0s'"),
        (4, "seeds = 3", 'every = "often"', "'often' is not a duration"),
        (5, "seeds = 3", 'every = "60"\npass_times = true', "periodic passes are not timed: leave out `every`"),
        (4, "seeds = 3", "seeds = = 3", "not TOML"),
        (4, "seeds = 3", "seeds = 1000000000", "seeds are up to 10,000 different whole numbers"),
        (2, "reserve = [2, 4]", f"reserve = {list(range(6000))}", "make 12,000 policies; at most 10,000"),
        (4, "seeds = 3", 'spans = ["all", "0d..x"]', "'x' is not a duration"),
        (4, "seeds = 3", 'spans = "3d..2d"', "no span '3d..2d'"),
        (4, "seeds = 3", 'scenarios = ["sample=0.5", ["sample=0.5"]]', "the scenario 'sample=0.5' is given twice"),
        (0, "seeds = 3", "seeds = " + "[" * 5000, "nested too deeply"),
        (0, "seeds = 3", "seeds = " + "9" * 5000, "not TOML"),
        (4, "seeds = 3", 'baseline = "list-reg"', "the baseline 'list-reg' is not among the policies"),
        (6, 'name = "made"', 'name = "KTH"', "the trace name 'KTH' is given twice"),
        (9, 'name = "made"', '"\\u001b[31m" = 1', "traces.1.\ufffd[31m: no key '\ufffd[31m'"),
        (4, "seeds = 3", "exclude = [{polic = 'easy'}]", "exclude.0.polic: no key 'polic'; did you mean policy?"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, line: int, old: str, new: str, says: str) -> None:
    assert GOOD.count(old) == 1
    path = written(tmp_path, GOOD.replace(old, new))
    with pytest.raises(InputError) as caught:
        read_study(path)
    assert says in str(caught.value)
    assert caught.value.line == line, str(caught.value)


def test_an_item_of_a_list_is_found_by_its_own_line(tmp_path: Path) -> None:
    text = 'name = "x"\npolicies = [\n  "easy",\n  "list-reg",\n  "bad",\n]\n[[traces]]\npath = "x"\n'
    with pytest.raises(InputError) as caught:
        read_study(written(tmp_path, text))
    assert caught.value.line == 5


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("seeds = 3", "seeds = [-1]\ncounting = 'some'")
    with pytest.raises(InputError, match=r"(?s):4: seeds: .*:5: counting: no counting rule 'some'"):
        read_study(written(tmp_path, text))


def test_what_is_quoted_is_cut(tmp_path: Path) -> None:
    """It may be of any length; a line stays one that a person can read."""
    text = GOOD.replace('"limit"', f'"{"x" * 5000}"')
    with pytest.raises(InputError, match="no estimate 'xxx") as caught:
        read_study(written(tmp_path, text))
    assert max(map(len, str(caught.value).split("\n"))) < 2_000


@pytest.mark.parametrize("text", [b"\xff\xfe", b"name = 'x'\x00", b"x" * 2_000_000])
def test_other_files_are_refused(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(text)
    with pytest.raises(InputError):
        read_study(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_study(tmp_path / "none.toml")


def test_files_of_policies_are_seen_from_the_folder_of_the_study() -> None:
    folder = Path("/studies")
    assert placed("mine.py:Best", folder) == "/studies/mine.py:Best"
    assert placed("plan-af:favour=my/s.toml,strength=2", folder) == "plan-af:favour=/studies/my/s.toml,strength=2"
    assert placed("easy:reserve=2,order=s.toml", folder) == "easy:reserve=2,order=/studies/s.toml"
    assert placed("/abs/mine.py:Best", folder) == "/abs/mine.py:Best"
    assert placed("list:reserve=2,order=my/keys.py:key", folder) == "list:reserve=2,order=/studies/my/keys.py:key"
    assert placed("list:order=sjf", folder) == "list:order=sjf"
