"""The engine on a small folder: runs are kept, claims judged, pages rendered, differences found."""

from __future__ import annotations

import csv
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dovetail.errors import InputError, SettingError
from dovetail.studies.executors import Engine
from dovetail.studies.store import Store
from dovetail.studies.task import Cell
from reproductions import claims
from reproductions.__main__ import app
from reproductions.folders import Claim, Folder, every, find
from reproductions.pages import content, index, rendered, summary
from reproductions.running import Work, older, prepare, repeated, run
from reproductions.runs import Runs, read_runs, shortest, write_runs
from reproductions.values import Value, Values
from tests.conftest import ROOT

PAGES = list(every())
FILES = {
    "papers.toml": 'Small = "Nobody, A Small Paper"\n',
    "README.md": "# All\n<!-- index -->\nold\n<!-- end of index -->\nend\n",
    "small/about.toml": """
title = "Small"
paper = "Small"
shows = "a table"
extent = "all"
takes = "1 s"
metrics = ["bsld", "longest_s", "double"]
curves = ["waits"]
result = "{{ value('t', 'easy', 'a', '.0f') }} cells"
[[pictures]]
file = "f.svg"
label = "A figure"
draw = "lines"
settings = {tables = {f = "F"}}
[[pictures]]
file = "old.svg"
label = "An old figure"
carried = "0.0.9"
""",
    "small/study.toml": """
name = "small"
policies = ["easy", "easy-sjbf"]
[[traces]]
name = "made"
generate = {jobs = 60, processors = 8, load = 0.9}
""",
    "small/printed.csv": "table,row,column,printed\nt,easy,a,7\nt,fcfs,a,2?\n",
    "small/carried.csv": """\
table,row,column,value,version
t,list,a,+1.5,0.0.9
t,easy,a,9,0.0.9
claims,kept,ours,x,0.0.9
claims,kept,holds,in part,0.0.9
""",
    "small/claims.toml": """
[[claims]]
whose = "paper"
says = "{row} is 7"
table = "t"
row = "{row}"
holds = "near"
each = {row = ["easy", "none"]}
[[claims]]
whose = "ours"
says = "kept"
holds = "near"
[[claims]]
whose = "ours"
says = "function"
holds = "function"
function = "judged"
given = {most = 8}
""",
    "small/page.py": """
from dovetail.studies.task import Cell
from reproductions.claims import Judged

def measure(schedule, beside):
    assert beside("easy-sjbf").policy == "easy-sjbf"
    return {"longest_s": int(schedule.wait.max()), "waits": [(0.5, 1.25), (1, 2)]}

def cells(work):
    return [Cell("own", "", "all", "solver", "limit", seed) for seed in (3, 4)]

def solve(cell, work):
    return {"double": work.memo("double", [cell.seed], lambda: 2 * cell.seed)}

def values(runs, printed):
    found = {("f", "line", f"{x:g}"): y for run in runs for x, y in run.curves.get("waits", ())}
    one = runs.get("own", "solver", seed=3)
    return {**found, **({("t", "easy", "a"): one.numbers["double"] + 1} if one else {})}

def judged(values, most):
    return Judged("seven", claims_of(values.need("t", "easy", "a") < most))

def claims_of(good):
    return "yes" if good else "no"
""",
    "small/page.md.j2": """\
# {{ about.title }}
{{ citation }}
{{ tally('paper') }}; {{ tally('ours') }}

{{ claims('all') }}

{{ table('t', 'T', '.1f') }}
{{ picture('f.svg') }} {{ picture('old.svg') }}
{{ made_with() }}
""",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    home = tmp_path / f"pages_{abs(hash(str(tmp_path)))}"
    for name, text in FILES.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return find("small", home)


def ran(folder: Folder, only: str = "*", again: bool = False) -> int:
    with pytest.MonkeyPatch.context() as patch:  # in this process: no pool to wait for
        patch.setattr("reproductions.running.engine", lambda *_: Engine(lambda: ThreadPoolExecutor(1), 1, 0.5, 2))
        patch.setenv("DOVETAIL_TRACES", ".")
        return run(prepare(folder, Path(), Store(folder.path.parent / "store")), "local", 1, only, again, print)


def test_runs_are_added_to_what_is_there(folder: Folder) -> None:
    assert ran(folder, "made|*|easy|*") == 1
    assert ran(folder, "own|*") == 2
    first = (folder.path / "runs.csv").read_bytes()
    assert ran(folder) == 1
    assert ran(folder) == 0
    runs = read_runs(folder)
    assert [run.cell.policy for run in runs] == ["easy", "easy-sjbf", "solver", "solver"]
    assert runs.number("double", "own", "solver", seed=4) == 8
    assert set(first.splitlines()) < set((folder.path / "runs.csv").read_bytes().splitlines())
    again = (folder.path / "runs.csv").read_bytes(), (folder.path / "figure.csv").read_bytes()
    write_runs(folder, reversed(list(runs)))
    assert again == ((folder.path / "runs.csv").read_bytes(), (folder.path / "figure.csv").read_bytes())


def test_older_runs_are_told_and_repeated_on_demand(folder: Folder) -> None:
    ran(folder)
    assert older(read_runs(folder)) == []
    write_runs(folder, [replace(run, code="old") for run in read_runs(folder)])
    assert len(older(read_runs(folder))) == 4
    assert ran(folder) == 0
    assert ran(folder, again=True) == 4
    assert older(read_runs(folder)) == []


def test_a_run_that_differs_is_found(folder: Folder) -> None:
    ran(folder)
    runs = list(read_runs(folder))
    assert repeated(folder, Path(), Runs(runs)) == (2, [])
    cheapest = min(runs, key=lambda run: run.cpu_s)
    wrong = [replace(run, numbers={**run.numbers, "double": 1.0}) if run is cheapest else run for run in runs]
    count, differ = repeated(folder, Path(), Runs(wrong))
    assert (count, len(differ)) == (2, 1)
    assert "double is" in differ[0]


def test_a_page_shows_values_from_runs_and_carried_ones(folder: Folder) -> None:
    ran(folder)
    files = rendered(content(folder))
    text = files[folder.path / "README.md"]
    assert set(files) == {folder.path / "README.md", folder.path / "f.svg"}
    assert "Nobody, A Small Paper\n1 of 2 holds, 1 not run; 1 of 2 holds, 1 in part\n" in text
    assert "| easy | 7.0 (7.0) |\n| fcfs | - (2?) |\n| list | 1.5 |\n\n(Carried from Dovetail 0.0.9" in text
    assert "| easy is 7 | 1 of 1 cells | yes |\n| none is 7 | - | **not run** |\n| kept | x | **in part** |" in text
    assert "4 runs of Dovetail" in text
    assert rendered(content(folder)) == files
    assert (
        summary(content(folder))
        == "the paper's claims: 1 of 2 holds, 1 not run; ours: 1 of 2 holds, 1 in part; 7 cells"
    )
    (made,) = index([content(folder)], folder.path.parent).values()
    assert "| [small](small/README.md) | Small | a table | all | 1 of 2 holds, 1 not run |" in made
    assert made.startswith("# All\n<!-- index -->\n| page")
    assert made.endswith("- **Small**: Nobody, A Small Paper.\n<!-- end of index -->\nend\n")


def test_an_unknown_name_in_a_template_is_an_error(folder: Folder) -> None:
    from jinja2 import UndefinedError

    (folder.path / "page.md.j2").write_text("{{ nothing }}", encoding="utf-8")
    with pytest.raises(UndefinedError):
        rendered(content(folder))


def test_mistakes_are_named(folder: Folder) -> None:
    with pytest.raises(SettingError, match="choose from small"):
        find("large", folder.path.parent)
    (folder.path / "printed.csv").write_text("table,row,printed\n", encoding="utf-8")
    with pytest.raises(InputError, match="the columns are to be table, row, column, printed"):
        content(folder)
    (folder.path / "claims.toml").write_text('[[claims]]\nwhose = "me"\n', encoding="utf-8")
    with pytest.raises(InputError, match="'paper' or 'ours'"):
        _ = find("small", folder.path.parent).claims


def judged(**claim: object) -> str:
    """A claim about three cells: 1 (printed 1.4), -2 (printed 2), 3 (printed 3)."""
    ours = {("t", row, "a"): Value(number, "", "run") for row, number in (("x", 1.0), ("y", -2.0), ("z", 3.0))}
    values = Values(ours, {("t", "x", "a"): 1.4, ("t", "y", "a"): 2.0, ("t", "z", "a"): 3.0})
    made = Claim.model_validate({"whose": "paper", "says": "", "ours": "{good}/{cells} {max:g} {at}", **claim})
    found = claims.judge(made, find("packing-table-3"), values)
    return f"{found.ours} {found.holds}"


@pytest.mark.parametrize(
    ("claim", "found"),
    [
        ({"holds": "near", "by": 0.5}, "2/3 3 a in part"),
        ({"holds": "near", "by": 0.5, "strict": True}, "2/3 3 a no"),
        ({"holds": "near", "by": 0.1, "half": True}, "1/3 3 a no"),
        ({"holds": "near", "by": 4}, "3/3 3 a yes"),
        ({"holds": "rounds"}, "1/3 3 a in part"),
        ({"holds": "sign", "by": 1.5}, "1/2 3 a in part"),
        ({"holds": "above", "than": 0}, "2/3 3 a in part"),
        ({"holds": "above", "than": 0, "reduce": "mean"}, "1/1 3 a yes"),
        ({"holds": "below", "than": 4, "size": True, "reduce": "max"}, "1/1 3 a yes"),
        ({"holds": "below", "than": "z", "row": ["x", "y"]}, "2/2 1 a yes"),
        ({"holds": "below", "than": "z", "row": ["x", "y"], "by": 3}, "1/2 1 a in part"),
        ({"holds": "least", "than": "y"}, "1/1 3 a yes"),
        ({"holds": "most", "than": "y"}, "0/1 3 a no"),
        ({"holds": "near", "row": "none"}, "- not run"),
    ],
)
def test_words_for_claims(claim: dict[str, object], found: str) -> None:
    assert judged(**claim) == found


def test_a_word_that_is_none_is_an_error() -> None:
    with pytest.raises(SettingError, match="no word 'nearly'"):
        judged(holds="nearly")


@pytest.mark.parametrize("number", [0.1, 1 / 3, 12345678.0, -2.0, 1e300, 5e-324])
def test_numbers_are_read_back_to_the_last_bit(number: float) -> None:
    assert float(shortest(number)) == number
    assert shortest(float("nan")) == ""


def test_own_cells_and_cells_of_a_study_are_told_apart(folder: Folder) -> None:
    store = Store(folder.path.parent / "store")
    easy = Cell("made", "", "all", "easy", "limit", 0)
    other = Cell("made", "", "all", "solver", "limit", 0)
    work = prepare(folder, Path(), store, [easy, other])
    assert list(work.tasks) == [easy]
    assert Work(folder, Path(), store).schedule(easy).policy == "easy"


def test_a_pattern_that_names_a_trace_prepares_that_one_alone(folder: Folder) -> None:
    study = folder.path / "study.toml"
    other = '[[traces]]\nname = "other"\ngenerate = {jobs = 60, processors = 8, load = 0.8}\n'
    rules = '[[exclude]]\ntrace = "other"\npolicy = "easy"\n[[exclude]]\ntrace = "made"\npolicy = "easy-sjbf"\n'
    study.write_text(study.read_text(encoding="utf-8") + other + rules, encoding="utf-8")
    store = Store(folder.path.parent / "store")
    cells = {only: list(prepare(folder, Path(), store, only=only).tasks) for only in ("made|*", "*", "own|*")}
    assert [(cell.trace, cell.policy) for cell in cells["made|*"]] == [("made", "easy")]
    assert len(cells["*"]) == len(cells["own|*"]) == 2


@pytest.mark.parametrize("page", PAGES, ids=lambda folder: folder.name)
def test_pages_are_what_their_folders_give(page: Folder) -> None:
    for path, text in rendered(content(page)).items():
        assert path.read_text(encoding="utf-8") == text, path.relative_to(ROOT)


def test_the_index_is_what_the_pages_give() -> None:
    for path, text in index([content(page) for page in PAGES]).items():
        assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("page", PAGES, ids=lambda folder: folder.name)
def test_files_of_printed_numbers_are_rectangular(page: Folder) -> None:
    for path in page.path.glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            assert len({len(line) for line in csv.reader(file)}) == 1, path.name


def test_the_commands(folder: Folder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran(folder)
    for name in ("folders", "pages"):
        monkeypatch.setattr(f"reproductions.{name}.HOME", folder.path.parent)
    for function in (every, find, index):
        monkeypatch.setattr(function, "__defaults__", (folder.path.parent,))

    def call(*words: str) -> tuple[int, list[dict[str, object]]]:
        done = CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False)
        return done.exit_code, [json.loads(line) for line in done.stdout.splitlines()]

    (listed,) = call("list")[1]
    assert (listed["name"], listed["runs"]) == ("small", 4)
    assert call("check", "--traces", str(tmp_path))[0] == 1  # nothing is rendered yet
    (made,) = call("render")[1]
    assert len(made["changed"]) == 3  # type: ignore[arg-type]
    assert call("render", "small")[1][0]["changed"] == []
    code, (checked,) = call("check", "--traces", str(tmp_path))
    assert (code, checked["older"], checked["repeated"], checked["differ"]) == (0, 0, 2, [])
    (again,) = call("run", "small", "--store", str(folder.path.parent / "store"))[1]
    assert (again["ran"], again["files"]) == (0, [])
    text = (folder.path / "runs.csv").read_text(encoding="utf-8")
    (folder.path / "runs.csv").write_text(text.replace(",8,", ",9,").replace(",6,", ",9,"), encoding="utf-8")
    assert call("check", "--traces", str(tmp_path))[0] == 1
