"""A page from the committed files of its folder alone, and the index of all pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dovetail.errors import InputError
from dovetail.units import duration
from reproductions.claims import YES, Statement, Tally, statements, tally
from reproductions.figures import drawn
from reproductions.folders import HOME, Folder, texts
from reproductions.runs import Runs, read_runs
from reproductions.values import Key, NotRunError, Value, Values, read_carried, read_printed

if TYPE_CHECKING:
    from jinja2 import Environment

PAGE: Final = "README.md"
LOGS: Final = (
    "The logs are from the Parallel Workloads Archive (Feitelson, Tsafrir and Krakov, Experience with using the"
    " Parallel Workloads Archive, JPDC 74(10), 2014)."
)


@dataclass(frozen=True)
class Page:
    """What a page is made of. Its template may call whatever is public here."""

    folder: Folder
    runs: Runs
    values: Values
    said: Sequence[Statement]

    @property
    def about(self) -> Any:
        return self.folder.about

    @property
    def citation(self) -> str:
        """The paper."""
        return texts("papers", self.folder.path.parent)[self.folder.about.paper]

    def tally(self, whose: str = "") -> Tally:
        """How many claims hold: the paper's, ours, or all."""
        return tally(self.said, whose)

    def claims(self, heading: str, whose: str = "") -> str:
        """The claims of the paper, ours, or all, as a table, with how many hold."""
        some = [one for one in self.said if whose in ("", one.whose)]
        rows = [[one.says, one.ours, one.holds if one.holds == YES else f"**{one.holds}**"] for one in some]
        return grid([heading, "ours", "holds"], rows) + _note(sorted({one.carried for one in some if one.carried}))

    def value(self, table: str, row: str, column: str, form: str = "", missing: str = "-") -> str:
        """A value as text."""
        return self.values.text(table, row, column, form, missing)

    def table(
        self, name: str, title: str = "", form: str = "", *, rows: Sequence[str] = (), columns: Sequence[str] = (),
        cell: str = "", missing: str = "-",
    ) -> str:  # fmt: skip
        """A table of values in Markdown: ours, and in brackets the printed number where there is one. `cell` names a
        function of page.py that gives the text of a cell from the values, the table, the row and the column."""
        keys = list(self.values.keys(name))
        rows = rows or list(dict.fromkeys(key[1] for key in keys))
        columns = columns or list(dict.fromkeys(key[2] for key in keys))
        shown = self.folder.function(cell) if cell else None
        lines = [[row, *(self._cell((name, row, column), form, missing, shown) for column in columns)] for row in rows]
        note = _note(self.values.carried([(name, row, column) for row in rows for column in columns]))
        return grid([title, *columns], lines) + note

    def _cell(self, key: Key, form: str, missing: str, shown: Callable[..., str] | None) -> str:
        if shown is not None:
            try:
                return shown(self.values, *key)
            except NotRunError:
                return missing
        ours, printed = self.value(*key, form, missing), self.values.printed.get(key)
        if printed is None:
            return ours
        return f"{ours} ({printed if isinstance(printed, str) else format(printed, form)})"

    def picture(self, file: str) -> str:
        """A picture of about.toml."""
        found = next(one for one in self.folder.about.pictures if one.file == file)
        return f"![{found.label}]({found.file})" + _note([found.carried] if found.carried else [])

    def made_with(self) -> str:
        """The command, which runs there are and of which version, and whom to cite."""
        spent = duration(round(sum(run.cpu_s for run in self.runs)))
        runs = f"{len(self.runs):,} run{'s' * (len(self.runs) != 1)} of Dovetail {', '.join(self.runs.versions)}"
        made = f" It shows {runs} ({spent} of CPU time)." if len(self.runs) else ""
        carried = self.values.carried(list(self.values.ours))
        rest = f" What has no run is carried from Dovetail {', '.join(carried)}." if carried else ""
        text = f"```\npython -m reproductions run {self.folder.name}\n```\n\nadds the runs that `runs.csv` lacks and"
        logs = f" {LOGS}" if self.folder.about.logs else ""
        people = texts("thanks", self.folder.path.parent) if self.folder.about.thanks else {}
        thanks = "".join(f"\n- {log}: {people[log]}" for log in self.folder.about.thanks)
        return f"{text} writes this page.{made}{rest}{logs}" + (f" Thanks for them go to\n{thanks}" if thanks else "")


def _note(versions: Sequence[str]) -> str:
    return f"\n\n(Carried from Dovetail {', '.join(versions)}: the runs were not kept.)" if versions else ""


def content(folder: Folder) -> Page:
    """All that a page shows."""
    runs, printed, ours = read_runs(folder), read_printed(folder.path), read_carried(folder.path)
    derive = folder.hook("values")
    if derive is not None:
        version = ", ".join(runs.versions)
        found: Mapping[Key, float | str] = derive(runs, printed)
        ours |= {key: Value(one, version, "run") for key, one in found.items() if one == one}
    values = Values(ours, printed)
    return Page(folder, runs, values, statements(folder, values))


def rendered(made: Page) -> dict[Path, str]:
    """A page and its pictures, by file."""
    folder = made.folder
    path = folder.path / "page.md.j2"
    text = _environment(folder).get_template(path.name).render(_names(made))
    pictures = {
        folder.path / one.file: drawn(folder, one, made.values, made.runs)
        for one in folder.about.pictures
        if not one.carried
    }
    for one in folder.about.pictures:
        if one.file not in text:
            raise InputError(path, 0, f"it does not show {one.file}")
    return {folder.path / PAGE: text.strip() + "\n", **pictures}


def summary(made: Page) -> str:
    """The result of a page in one line: how claims fare, the paper's apart from ours, and what its about.toml adds."""
    found = [(made.tally(whose), words) for whose, words in (("paper", "the paper's claims"), ("ours", "ours"))]
    return "; ".join([*(f"{words}: {one}" for one, words in found if one.claims), *filter(None, [result(made)])])


def result(made: Page) -> str:
    """What the about.toml of a page says of its result."""
    return _environment(made.folder).from_string(made.about.result).render(_names(made))


def index(pages: Sequence[Page], home: Path = HOME) -> dict[Path, str]:
    """reproductions/README.md with the table of all pages and the papers in it."""
    rows = []
    for made in pages:
        folder = made.folder
        counts = [str(one) if (one := made.tally(whose)).claims else "" for whose in ("paper", "ours")]
        page = f"[{folder.name}]({folder.path.name}/{PAGE})"
        about = folder.about
        rows.append([page, about.paper, about.shows, about.extent, *counts, result(made), about.takes])
    head = ["page", "paper", "what", "how much of it", "the paper's claims", "ours", "result", "CPU time"]
    path = home / "README.md"
    before, _, rest = path.read_text(encoding="utf-8").partition("<!-- index -->\n")
    _, _, after = rest.partition("<!-- end of index -->\n")
    papers = "\n".join(f"- **{name}**: {text}." for name, text in texts("papers", home).items())
    whole = f"{grid(head, rows)}\n\nThe papers are\n\n{papers}"
    return {path: f"{before}<!-- index -->\n{whole}\n<!-- end of index -->\n{after}"}


def _names(made: Page) -> dict[str, Any]:
    public = {name: getattr(made, name) for name in dir(made) if not name.startswith("_") and name != "citation"}
    return {**public, "grid": grid, **({"citation": made.citation} if made.about.paper else {})}


def _environment(folder: Folder) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(  # noqa: S701 - Markdown
        loader=FileSystemLoader([folder.path, folder.path.parent]), undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))
