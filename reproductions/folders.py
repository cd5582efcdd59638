"""A reproduction is a folder: what it is about, its claims, and the functions of its page.py and figure.py."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dovetail.errors import InputError, SettingError

HOME = Path(__file__).resolve().parent

_T = TypeVar("_T", bound=BaseModel)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Picture(_Part):
    """A picture of a page."""

    file: str
    label: str
    """What it shows, for those who do not see it."""
    draw: str = ""
    """A shared kind of figure (figures.KINDS), or a function of figure.py."""
    settings: dict[str, Any] = {}
    """What a shared kind is told."""
    carried: str = ""
    """The version that drew the committed file, which is kept as it is."""


class About(_Part):
    """about.toml."""

    title: str
    paper: str = ""
    """A name in papers.toml; empty: a page of our own."""
    shows: str
    extent: str
    takes: str
    """CPU time from an empty store, in words."""
    result: str = ""
    """What the index says besides the counts of claims: a template with what pages know."""
    logs: bool = True
    """Whether the logs are from the Parallel Workloads Archive, which is to be cited."""
    thanks: list[str] = []
    """The logs whose givers the page thanks: names in thanks.toml."""
    metrics: list[str] = []
    """Columns of runs.csv: of the package's metrics, and of what `measure` or `solve` in page.py return."""
    curves: list[str] = []
    """Lists of points that they return: these go to figure.csv."""
    volatile: list[str] = []
    """Metrics that differ from one execution to the next."""
    cheap: int = 2
    """How many runs `check` repeats."""
    alone: bool = False
    """Whether `solve` runs one cell at a time, in this process: where times are measured."""
    pictures: list[Picture] = []


class Claim(_Part):
    """A statement that holds or does not."""

    whose: Literal["paper", "ours"]
    says: str
    holds: str
    """A word of claims.WORDS, or `function`."""
    table: str | list[str] = "*"
    row: str | list[str] = "*"
    column: str | list[str] = "*"
    by: float = 0.0
    than: float | str | None = None
    """A number, or the row (`above`, `below`), or the row or column (`least`, `most`) that is meant."""
    reduce: Literal["", "mean", "median", "min", "max"] = ""
    """Many numbers made one before they are compared."""
    size: bool = False
    """Whether the sign of numbers is left out."""
    half: bool = False
    """Whether it holds in part only where it does in half of the cells."""
    strict: bool = False
    """Whether there is no holding in part."""
    ours: str = "{good} of {cells} cells"
    """Our numbers, in words; `claims.judge` says what can stand in {}."""
    function: str = ""
    """In page.py, for `holds = "function"`."""
    given: dict[str, Any] = {}
    """What that function is given besides the values."""
    each: dict[str, list[str]] = {}
    """The claim stands for one of each combination: {name} in its texts is one of the list."""


class _Claims(_Part):
    claims: list[Claim] = Field(min_length=1)


@dataclass(frozen=True)
class Folder:
    """One reproduction."""

    path: Path
    about: About

    @property
    def name(self) -> str:
        """What it is called: the folder's name, which Python wants with _."""
        return self.path.name.replace("_", "-")

    @cached_property
    def claims(self) -> list[Claim]:
        path = self.path / "claims.toml"
        return _parsed(path, _Claims).claims if path.is_file() else []

    @property
    def studies(self) -> list[Path]:
        """Ordinary studies, to copy and change."""
        return sorted(self.path.glob("study*.toml"))

    def hook(self, name: str, file: str = "page") -> Callable[..., Any] | None:
        """A function of page.py or figure.py, if it has one of that name."""
        if not (self.path / f"{file}.py").is_file():
            return None
        module = import_module(f"{self.path.parent.name}.{self.path.name}.{file}")
        found: Callable[..., Any] | None = getattr(module, name, None)
        return found

    def function(self, name: str, file: str = "page") -> Callable[..., Any]:
        """A function of page.py or figure.py that must be there."""
        found = self.hook(name, file)
        if found is None:
            raise InputError(self.path / f"{file}.py", 0, f"it has no function {name!r}")
        return found


def every(home: Path = HOME) -> Iterator[Folder]:
    """All reproductions, by name."""
    for path in sorted(home.glob("*/about.toml")):
        yield Folder(path.parent, _parsed(path, About))


def find(name: str, home: Path = HOME) -> Folder:
    """The reproduction of that name."""
    known = {folder.name: folder for folder in every(home)}
    if (asked := name.replace("_", "-")) not in known:
        raise SettingError(f"no reproduction {name!r}: choose from {', '.join(known)}")
    return known[asked]


def texts(name: str, home: Path = HOME) -> dict[str, str]:
    """What all pages share: `papers` by the short names that pages use, `thanks` by log."""
    found: dict[str, str] = tomllib.loads((home / f"{name}.toml").read_text(encoding="utf-8"))
    return found


def _parsed(path: Path, kind: type[_T]) -> _T:
    try:
        return kind.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (ValidationError, ValueError) as error:
        raise InputError(path, 0, str(error)) from None
