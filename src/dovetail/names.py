"""Things that are given by name: `NAME:setting=value,setting=value`, or `path/to/file.py:Name` for a user's own."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from dovetail.errors import PolicyError, SettingError

FILE: Final = re.compile(r"^(?P<path>.+\.py):(?P<name>[A-Za-z_]\w*)(?:,(?P<settings>.*))?$")


def in_file(text: str) -> tuple[str, str] | None:
    """The path and the name, if the text names something in a user's file."""
    match = FILE.match(text)
    if match is None or ("=" in match["path"] and not Path(match["path"]).is_file()):
        return None
    if match["settings"]:
        raise SettingError(f"{text!r}: what comes from a file takes no settings; write them into the file")
    return match["path"], match["name"]


def settings(rest: str, text: str, known: Mapping[str, Callable[[str], Any]]) -> dict[str, Any]:
    """`rest`, the part of `text` behind the colon, as values; `known` says how each setting is read."""
    values = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value:
            raise SettingError(f"{text!r}: {part!r} is not a setting: write name=value, separated by commas")
        if key not in known:
            raise SettingError(f"{text!r}: no setting {key!r}: choose from {', '.join(known) or 'none'}")
        try:
            values[key] = known[key](value)
        except ValueError as error:
            raise SettingError(f"{text!r}: {key}={value}: {error}") from error
    return values


def yes_no(value: str) -> bool:
    """How a setting that is yes or no is read."""
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
    except Exception as error:
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
    except Exception as error:
        raise PolicyError(f"{path}: could not be loaded: {type(error).__name__}: {error}") from error
    return module
