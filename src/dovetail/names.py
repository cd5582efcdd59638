"""Things that are given by name: `NAME:setting=value,setting=value`, or `path/to/file.py:Name` for a user's own."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any, Final, TypeVar

from dovetail.errors import DovetailError, PolicyError, SettingError
from dovetail.units import duration as in_words
from dovetail.units import parse_duration

_T = TypeVar("_T")

FILE: Final = re.compile(r"^(?P<path>.+\.py):(?P<name>[A-Za-z_]\w*)(?:,(?P<settings>.*))?$")


def in_file(text: str) -> tuple[str, str] | None:
    """The path and the name, if the text names something in a user's file."""
    match = FILE.match(text)
    if match is None or ("=" in match["path"] and not Path(match["path"]).is_file()):
        return None
    if match["settings"]:
        raise SettingError(f"{text!r}: what comes from a file takes no settings; write them into the file")
    return match["path"], match["name"]


@dataclass(frozen=True)
class Kind:
    """How a setting is written, which values it may have, and the words for that."""

    read: Callable[[str], Any]
    words: str
    allows: Callable[[Any], bool] = lambda value: True
    nested: bool = False
    """The value is a thing that is given by name too; its own settings are written NAME;setting=value;..."""
    show: Callable[[Any], str] = str
    """How a message writes a value."""
    onto: Callable[[Any, Any], Any] | None = None
    """Makes of the thing and the value the thing to which all other settings are added; no field keeps the value."""


def whole(least: int, most: int, unit: str = "") -> Kind:
    """A whole number."""
    words = f"must be from {least:,} to {most:,} {unit}".rstrip()
    return Kind(_read(int, "a whole number", words), words, lambda value: least <= value <= most)


def number(least: float, most: float, unit: str = "", *, above: bool = False) -> Kind:
    """A number; `above`: more than the least."""
    low, high = (f"{bound:,.0f}" if bound == int(bound) else f"{bound:g}" for bound in (least, most))
    words = f"must be {f'above {low}, and at most' if above else f'from {low} to'} {high} {unit}".rstrip()
    read = _read(float, "a number", words)
    return Kind(
        read, words, lambda value: (least < value if above else least <= value) and value <= most, show="{:g}".format
    )


def duration(least_s: int, most_s: int) -> Kind:
    """A duration, in seconds inside; written as in 30s, 12h, 7d. A field of this kind is called NAME_s."""
    words = f"must be a duration from {in_words(least_s)} to {in_words(most_s)}"
    return Kind(parse_duration, words, lambda value: least_s <= value <= most_s, show=in_words)


def choice(*values: str) -> Kind:
    """One of several words."""
    return Kind(str, f"choose from {', '.join(values)}", lambda value: value in values)


def yes_or_no() -> Kind:
    return Kind(_yes_no, "must be yes or no", lambda value: value in (True, False))


@dataclass(frozen=True)
class Setting:
    """A field of a dataclass that can be set by name: what it is for, and what it may be."""

    help: str
    kind: Kind
    optional: bool
    """It may be left unset, which is written none."""

    def read(self, nested: Callable[[str], Any] | None, text: str) -> Any:
        if self.optional and text == "none":
            return None
        if self.kind.nested and nested is not None:
            name, _, rest = text.partition(";")
            return nested(f"{name}:{rest.replace(';', ',')}" if rest else name)
        return self.kind.read(text)


def setting(default: Any, help: str, kind: Kind, *, optional: bool = False) -> Any:
    """A field that can be set by name. `optional`, or a default of None: it may be left unset."""
    metadata = {"setting": Setting(help, kind, optional or default is None)}
    return field(default=default, init=kind.onto is None, metadata=metadata)


def settings_of(thing: Any) -> dict[str, tuple[str, Setting]]:
    """The settings of a dataclass: by the name that is written, the field and what is known of it."""
    found = ((one.name, one.metadata["setting"]) for one in fields(thing) if "setting" in one.metadata)
    return {name.removesuffix("_s"): (name, known) for name, known in found}


def check_settings(thing: Any) -> None:
    """Refuse values that a setting may not have."""
    for written, (name, known) in settings_of(thing).items():
        value = getattr(thing, name)
        if not (known.optional and value is None) and not known.kind.allows(value):
            raise SettingError(f"{written}={known.kind.show(value)}: {known.kind.words}")


def with_settings(thing: _T, rest: str, text: str, nested: Callable[[str], Any] | None = None) -> _T:
    """The same with the settings in `rest`, the part of `text` behind the colon, and with `text` as its name."""
    known = settings_of(thing)
    values = settings(rest, text, {written: partial(one.read, nested) for written, (_, one) in known.items()})
    for key, (_, one) in known.items():
        if key in values and one.kind.onto is not None:
            thing = one.kind.onto(thing, values.pop(key))
    return replace(thing, **{known[key][0]: value for key, value in values.items()}, name=text)  # type: ignore[type-var]


def settings(rest: str, text: str, known: Mapping[str, Callable[[str], Any]]) -> dict[str, Any]:
    """`rest`, the part of `text` behind the colon, as values; `known` says how each setting is read."""
    values = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value:
            raise SettingError(f"{text!r}: {part!r} is not a setting: write name=value, separated by commas")
        if key not in known:
            raise SettingError(f"{text!r}: {unknown('setting', key, known)}")
        try:
            values[key] = known[key](value)
        except ValueError as error:
            raise SettingError(f"{text!r}: {key}={value}: {error}") from error
    return values


def spoken(name: str) -> str:
    """The name of a policy without the folders of its files."""
    return re.sub(r"(^|=)[^=,;]*/", r"\1", name)


def unknown(what: str, name: str, choices: Iterable[str]) -> str:
    """What to say of a name that does not exist, in one line: the one that was perhaps meant, else all there are."""
    choices = list(choices)
    begun = [one for one in choices if len(name) > 2 and one.startswith(name)]
    if near := begun or get_close_matches(name, choices, 1):
        return f"no {what} {name!r}; did you mean {near[0]}?"
    return f"no {what} {name!r}: choose from {', '.join(choices) or 'none'}"


def _read(number: type[int] | type[float], what: str, words: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            return number(text)
        except ValueError:
            raise ValueError(f"is not {what}; it {words}") from None

    return read


def _yes_no(value: str) -> bool:
    if value not in ("yes", "no"):
        raise ValueError("must be yes or no")
    return value == "yes"


def load(path: str, name: str) -> Any:
    """What a user's file calls so."""
    found = getattr(_module(path), name, None)
    if found is None:
        raise PolicyError(f"{path} defines no {name!r}")
    return found


def make(path: str, name: str, *methods: str) -> Any:
    """An object of a user's file, or one made of a class there, that has these methods and a `name`."""
    found = load(path, name)
    try:
        made = found() if isinstance(found, type) else found
    except (Exception, SystemExit) as error:
        raise PolicyError(f"{path}: {name}() failed: {type(error).__name__}: {error}") from error
    for method in methods:
        if not callable(getattr(made, method.partition("(")[0], None)):
            raise PolicyError(f"{path}: {name} has no method {method}")
    if not getattr(made, "name", ""):
        try:
            made.name = name
        except AttributeError:
            raise PolicyError(f"{path}: {name} needs a `name`") from None
    return made


@contextmanager
def of_user(who: str) -> Iterator[None]:
    """Around a call of what may be a user's own code: an error in it is told in one line, with its place. To end the
    process is an error too: what was asked for would not be there, and the exit code might say that all is well."""
    try:
        yield
    except (DovetailError, ImportError, MemoryError, OSError):
        raise
    except (Exception, SystemExit) as error:
        place = extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}, line {place.lineno}"
        raise PolicyError(f"{who} raised {type(error).__name__}: {error} ({where})") from error


def _module(path: str) -> ModuleType:
    """Run a user's file as a module. This executes the user's own code: it is what they asked for."""
    file = Path(path)
    if not file.is_file():
        raise PolicyError(f"{path}: no such file; write path/to/file.py:Name")
    module_name = f"dovetail_user_{file.stem}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None or spec.loader is None:
        raise PolicyError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise PolicyError(f"{path}: could not be loaded: {type(error).__name__}: {error}") from error
    return module
