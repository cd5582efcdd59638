"""A study as its user writes it: one TOML file. Every mistake is named with its line."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from dovetail.errors import DovetailError, InputError, SettingError
from dovetail.metrics.jobs import COUNTING
from dovetail.names import in_file, unknown
from dovetail.policies.registry import policy as policy_named
from dovetail.predict.registry import predictor as predictor_named
from dovetail.units import parse_duration, printable

MOST_ITEMS = 10_000
"""Policies, seeds, estimates, ... that a study may list: it would not end in a lifetime."""
MOST_BYTES = 1_000_000
"""A study is written by hand; a larger file is something else."""


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Texts = Annotated[list[str], BeforeValidator(_listed)]
"""One text, or a list of them."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Generated(_Part):
    """A workload by the model of Lublin and Feitelson; each seed of the study makes another one."""

    jobs: int = Field(ge=1, le=10**8)
    processors: int = Field(ge=1, le=10**9)
    load: float | None = Field(default=None, gt=0)
    kind: str = "both"


class Trace(_Part):
    """Where jobs come from: a file, or a model."""

    path: str = ""
    """SWF or Parquet, relative to the study's file; $NAME stands for a variable of the environment."""
    generate: Generated | None = None
    name: str = ""
    filters: Texts = ["standard"]
    scenarios: Texts = []
    """Done to this trace in every cell, before the scenario of the cell."""
    processors: int | None = Field(default=None, ge=1, le=10**9)
    cluster: str = ""
    """Nodes: a name that io/clusters.py knows, or a file, found as `path` is."""
    site: str = ""
    """What energy costs (io/sites.py): a file, found as `path` is."""

    @model_validator(mode="after")
    def _one_machine(self) -> Trace:
        if self.cluster and self.processors is not None:
            raise ValueError("a trace has either `processors` or a `cluster`, whose nodes say how many there are")
        return self

    @model_validator(mode="after")
    def _one_source(self) -> Trace:
        if bool(self.path) == (self.generate is not None):
            raise ValueError("a trace has either a `path` or `generate = {jobs = ..., processors = ...}`")
        return self

    @property
    def label(self) -> str:
        """What the trace is called in tables: its name, else the file's without endings."""
        return self.name or (Path(self.path).name.split(".")[0] if self.path else "generated")


class Match(_Part):
    """Which cells a rule is about: patterns with * and ?; what is not given matches everything."""

    trace: Texts = ["*"]
    scenario: Texts = ["*"]
    span: Texts = ["*"]
    policy: Texts = ["*"]
    estimate: Texts = ["*"]
    seed: int | list[int] | None = None


class Study(_Part):
    """Every combination of traces, scenarios, spans, policies, estimates and seeds is a cell."""

    name: str = Field(min_length=1, max_length=200)
    traces: list[Trace] = Field(min_length=1)
    policies: Texts = Field(min_length=1)
    estimates: Texts = Field(default=["limit"], min_length=1)
    scenarios: list[Texts] = Field(default=[[]], min_length=1)
    spans: Texts = Field(default=["all"], min_length=1)
    seeds: list[int] = Field(default=[0], min_length=1)
    baseline: str = ""
    """The policy that others are compared with; default: the first."""
    keep: Literal["starts", "metrics"] = "starts"
    """Whether the start of every job is kept, for pictures and pairings, or the metrics only."""
    counting: str = "all"
    feedback: bool = False
    every: str = "0"
    pass_times: bool = False
    """Whether the CPU time of each pass is measured; the replay then stops at each moment."""
    include: list[Match] = []
    exclude: list[Match] = []

    @field_validator("policies", mode="before")
    @classmethod
    def _with_settings(cls, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return [text for one in value for text in (_spelled(one) if isinstance(one, dict) else [one])]

    @field_validator("estimates")
    @classmethod
    def _known_estimates(cls, value: list[str]) -> list[str]:
        for name in value:
            if not in_file(name):  # else it is looked for in the study's folder
                predictor_named(name)
        return _distinct(value, "estimate")

    @field_validator("policies")
    @classmethod
    def _distinct_policies(cls, value: list[str]) -> list[str]:
        return _distinct(value, "policy")

    @field_validator("scenarios")
    @classmethod
    def _distinct_scenarios(cls, value: list[list[str]]) -> list[list[str]]:
        _distinct([" ".join(steps) for steps in value], "scenario")
        return value

    @field_validator("spans")
    @classmethod
    def _readable_spans(cls, value: list[str]) -> list[str]:
        for text in value:
            each, ends = re.fullmatch(r"each (.+)", text), re.fullmatch(r"(.+)\.\.(.+)", text)
            if each:
                good = parse_duration(each[1]) > 0
            elif ends:
                good = parse_duration(ends[1]) < parse_duration(ends[2])
            else:
                good = text in ("all", "weekly")
            if not good:
                raise ValueError(f"no span {text!r}: write all, weekly, each 30d, or 0d..30d")
        return _distinct(value, "span")

    @field_validator("seeds", mode="before")
    @classmethod
    def _counted_seeds(cls, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            return list(range(min(value, MOST_ITEMS + 1)))
        return value

    @field_validator("seeds")
    @classmethod
    def _good_seeds(cls, value: list[int]) -> list[int]:
        if any(not 0 <= seed < 2**31 for seed in value) or len(set(value)) != len(value) or len(value) > MOST_ITEMS:
            raise ValueError(f"seeds are up to {MOST_ITEMS:,} different whole numbers from 0 to 2^31 - 1, or how many")
        return value

    @field_validator("every")
    @classmethod
    def _duration(cls, value: str) -> str:
        parse_duration(value)
        return value

    @field_validator("counting")
    @classmethod
    def _counting_rule(cls, value: str) -> str:
        if value not in COUNTING:
            raise ValueError(f"no counting rule {value!r}: choose one of {', '.join(COUNTING)}")
        return value

    @field_validator("traces")
    @classmethod
    def _distinct_names(cls, value: list[Trace]) -> list[Trace]:
        _distinct([trace.label for trace in value], "trace name")
        return value

    @field_validator("baseline")
    @classmethod
    def _one_of_them(cls, value: str, info: ValidationInfo) -> str:
        if value and value not in info.data.get("policies", [value]):
            raise ValueError(f"the baseline {value!r} is not among the policies")
        return value

    @field_validator("pass_times")
    @classmethod
    def _passes_at_every_moment(cls, value: bool, info: ValidationInfo) -> bool:
        if value and parse_duration(info.data.get("every", "0")):
            raise ValueError("periodic passes are not timed: leave out `every`")
        return value

    @property
    def base(self) -> str:
        """The policy that others are compared with."""
        record = (name for name in self.policies if not in_file(name) and policy_named(name).from_record)
        return self.baseline or next(record, self.policies[0])

    @property
    def every_s(self) -> int:
        return parse_duration(self.every)


def _distinct(values: list[str], what: str) -> list[str]:
    if len(values) > MOST_ITEMS:
        raise ValueError(f"{len(values):,} times a {what}; at most {MOST_ITEMS:,}")
    if len(set(values)) < len(values):
        raise ValueError(f"the {what} {next(v for v in values if values.count(v) > 1)!r} is given twice")
    return values


def _spelled(table: dict[str, Any]) -> list[str]:
    """{name = "list", reserve = [1, 4]} is `list:reserve=1` and `list:reserve=4`: every combination of settings."""
    settings = dict(table)
    name = settings.pop("name", None)
    if not isinstance(name, str):
        raise ValueError('a policy with settings has a name: {name = "list", reserve = [1, 4]}')
    if not settings:
        return [name]
    choices = [[(key, one) for one in (v if isinstance(v, list) else [v])] for key, v in settings.items()]
    if (many := prod(len(values) for values in choices)) > MOST_ITEMS:
        raise ValueError(f"the settings of {name!r} make {many:,} policies; at most {MOST_ITEMS:,}")
    return [f"{name}:" + ",".join(f"{key}={value}" for key, value in chosen) for chosen in product(*choices)]


class Questions(_Part):
    """What is asked of a site again and again."""

    questions: dict[str, Annotated[str, Field(min_length=1)]] = Field(default_factory=dict)
    """Changes with commas between them, by a name for people."""
    sweeps: Texts = Field(default_factory=list)
    policies: Texts = Field(default_factory=list)


def read_questions(path: Path) -> Questions:
    """Read questions. InputError names all mistakes, with their lines."""
    text, table = _read(path)
    try:
        made = Questions.model_validate(table)
    except ValidationError as error:
        raise _named(path, text, error, lambda _: list(Questions.model_fields)) from None
    folder = path.resolve().parent
    return made.model_copy(update={"policies": [placed(name, folder) for name in made.policies]})


def read_study(path: str | Path) -> Study:
    """Read a study. InputError names the line of the first mistake, and all mistakes."""
    path = Path(path)
    text, table = _read(path)
    try:
        study = Study.model_validate(table)
    except ValidationError as error:
        raise _named(path, text, error, _keys) from None
    folder = path.resolve().parent
    found: dict[str, Callable[[str], object]] = {"policies": policy_named, "estimates": predictor_named}
    for key, known in found.items():
        for position, name in enumerate(getattr(study, key)):
            try:
                known(placed(name, folder))
            except DovetailError as error:
                raise InputError(path, line_of(text, (key, position), name), str(error)) from error
    return study


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    """A file that somebody wrote by hand: its text, and its table."""
    if path.is_file() and path.stat().st_size > MOST_BYTES:
        raise InputError(path, 0, f"larger than {MOST_BYTES:,} bytes: nobody wrote it by hand")
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except OSError as error:
        raise InputError(path, 0, f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(path, 0, "not a text in UTF-8") from error
    except RecursionError:
        raise InputError(path, 0, "its lists are nested too deeply") from None
    except ValueError as error:  # TOMLDecodeError is one; so is a number of more digits than Python reads
        at = re.search(r"at line (\d+)", str(error))
        raise InputError(path, int(at[1]) if at else 0, f"not TOML: {error}") from error


def placed(name: str, folder: Path) -> str:
    """A name of a policy or an estimate, with the files in it (path.py:Name, path.toml, path.json) made absolute, as
    seen from a folder."""

    def absolute(found: re.Match[str]) -> str:
        path = str(folder / os.path.expanduser(found[2]))
        if any(sign in path for sign in "=,:"):
            raise SettingError(f"{path}: a file of yours that a study names cannot have = , or : in its path")
        return found[1] + path

    return re.sub(r"(^|=)([^=:,;]+\.(?:py(?=:)|(?:toml|json)(?=[,;]|$)))", absolute, name)


def _keys(where: tuple[str | int, ...]) -> list[str]:
    """The keys that a study may have at a place: in the file itself, in a trace, what it generates, or a rule."""
    if where[:1] in (("include",), ("exclude",)):
        return list(Match.model_fields)
    part = Generated if where[-1:] == ("generate",) else Trace if where else Study
    return list(part.model_fields)


def _named(
    path: Path, text: str, error: ValidationError, keys: Callable[[tuple[str | int, ...]], list[str]]
) -> InputError:
    """What pydantic found, each with its place in the file."""
    found = []
    for one in error.errors(include_url=False):
        where = tuple(part for part in one["loc"] if not (isinstance(part, str) and part.startswith("function-")))
        given = one["input"] if isinstance(one["input"], str) else None
        rule = one["msg"].removeprefix("Value error, ")
        if one["type"] == "extra_forbidden":
            rule = unknown("key", printable(str(where[-1])), keys(where[:-1]))
        elif one["type"] == "missing":
            rule = f"{where[-1]!r} is missing"
        name = printable(".".join(str(part) for part in where))
        found.append((line_of(text, where, given), f"{name}: {rule}" if name else rule))
    found.sort(key=lambda one: one[0] or MOST_BYTES)  # what is missing has no line: it comes last
    rest = "".join(f"\n{path}:{line}: {rule}" for line, rule in found[1:])
    return InputError(path, found[0][0], found[0][1] + rest)


_HEADER = re.compile(r"^\s*(\[\[?)\s*([A-Za-z0-9_.-]+)\s*\]")
_KEY = re.compile(r"^\s*([A-Za-z0-9_-]+)\s*[.=]")


def line_of(text: str, where: Sequence[str | int], given: str | None = None) -> int:
    """The line of a key in a TOML text; of an item in a list, the line with that text, if it is one. 0: not found."""
    places: dict[tuple[str | int, ...], int] = {}
    table: tuple[str | int, ...] = ()
    lines = text.splitlines()
    for line, content in enumerate(lines, 1):
        if header := _HEADER.match(content):
            table = tuple(header[2].split("."))
            if header[1] == "[[":
                table = (*table, sum(known[:-1] == table for known in places if isinstance(known[-1], int)))
            places[table] = line
            places.setdefault(table[:1], line)
        elif key := _KEY.match(content):
            places.setdefault((*table, key[1]), line)
    known = [places[part] for n in range(len(where), 0, -1) if (part := tuple(where[:n])) in places]
    best = known[0] if known else 0
    if given and best:
        for line, content in enumerate(lines[best - 1 :], best):
            if f'"{given}"' in content or f"'{given}'" in content:
                return line
    return best
