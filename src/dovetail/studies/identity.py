"""What the code does that makes a run, as a hash: ours, a user's own files, and the solver's version.

Code is known by its syntax. So a comment, a docstring or a moved file leaves the name of a run as it is, and the edit
of a rule does not. docs/store.md says what else may change it.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parent.parent
"""Where Dovetail lies."""
_NOT_FOLLOWED: Final = ("", "version", "studies.cases")
"""Modules of ours that decide nothing in a run: the front door, the number of the version, and what reads a store."""
_SHAPE: Final = frozenset(("ctx", "kind", "type_comment"))
"""Fields of a syntax tree that follow from others, or only say how a thing was written."""


@dataclass(frozen=True)
class _Places:
    """Where modules are looked for that are followed: one package, and folders with a user's own."""

    package: Path
    beside: tuple[Path, ...] = ()

    def file(self, name: str) -> Path | None:
        """The file of a module; None if it is not to be followed."""
        first, _, rest = name.partition(".")
        if first == self.package.name:
            return None if rest in _NOT_FOLLOWED else _file(self.package, rest)
        return next(filter(None, (_file(folder, name) for folder in self.beside)), None) if name else None

    def ours(self, name: str) -> bool:
        return name.partition(".")[0] == self.package.name or self.file(name) is not None


@dataclass(frozen=True)
class _Import:
    """What an import binds: what of a module (empty: the module), and its name from then on."""

    module: str
    what: str
    name: str


@dataclass(frozen=True)
class _Module:
    """What a file does, without imports of modules that are followed, and these."""

    does: str
    imports: frozenset[_Import]


def code_hash(start: Path) -> str:
    """Hash of what a file of a package does, and of all that it imports of the package, directly or not."""
    package = start.resolve().parent
    while (package.parent / "__init__.py").is_file():
        package = package.parent
    return _hash([start.resolve()], _Places(package))


@cache
def worker_code() -> str:
    """Hash of the code that a worker runs: its file and all modules of ours that it imports."""
    return code_hash(Path(__file__).with_name("worker.py"))


def hash_of_files(text: str) -> str:
    """Hash of what the user's files do or say that the text of a policy or an estimate names, and of all that they
    import from beside them and of Dovetail, directly or not. Empty if it names no file."""
    parts = [part.rpartition("=")[2] for part in re.split("[:,;]", text)]
    files = [Path(part).resolve() for part in parts if part.endswith((".py", ".toml", ".json"))]
    return _hash(files, _Places(PACKAGE, tuple(file.parent for file in files))) if files else ""


def ortools_version() -> str:
    """The version of OR-Tools; empty if it is not installed."""
    try:
        return version("ortools")
    except PackageNotFoundError:
        return ""


def modules(start: Iterable[Path], places: _Places) -> dict[Path, _Module]:
    """The files, and those of all modules that they import, directly or not. Of a package that is imported as a whole,
    all modules count: it is looked through for what it has."""
    found: dict[Path, _Module] = {}
    ahead = list(start)
    while ahead:
        path = ahead.pop()
        if path not in found:
            ours = path.is_relative_to(PACKAGE)
            found[path] = _of_dovetail(path) if ours else _read(path, places)
            names = {part for one in found[path].imports for part in _prefixes(one.module)}
            ahead += filter(None, map(places.file, names))
            for one in found[path].imports:
                file = places.file(one.module)
                if not one.what and file is not None and file.name == "__init__.py":
                    ahead += sorted(file.parent.glob("*.py"))
    return found


def _hash(start: Sequence[Path], places: _Places) -> str:
    """Modules are sorted by content, not by name. An import counts by what it binds: the content of the module."""
    found = modules(start, places)
    parts = []
    for module in found.values():
        targets = ((one, places.file(one.module)) for one in module.imports)
        bound = sorted((one.what, one.name, found[file].does if file else "") for one, file in targets)
        if module.does or bound:
            parts.append(_sha256(repr((module.does, bound))))
    return _sha256("".join(sorted(parts)))[:16]


@cache
def _of_dovetail(path: Path) -> _Module:
    """A module of Dovetail; a process runs what it loaded, so it is read once."""
    return _read(path, _Places(PACKAGE))


def _read(path: Path, places: _Places) -> _Module:
    source = path.read_bytes()
    try:
        tree = ast.parse(source) if path.suffix == ".py" else None
    except (SyntaxError, ValueError):
        tree = None
    if tree is None:  # no Python: its bytes must do
        return _Module(hashlib.sha256(source).hexdigest(), frozenset())
    written: list[str] = []
    imports: set[_Import] = set()
    _write(_acting(tree.body, path, places, imports), written, path, places, imports)
    return _Module(_sha256("".join(written)) if len(written) > 2 else "", frozenset(imports))


def _write(node: object, out: list[str], path: Path, places: _Places, imports: set[_Import]) -> None:
    """Write down a part of a syntax tree, and collect the imports in it. Empty fields are left out: which there are
    differs from one version of Python to the next."""
    if isinstance(node, ast.AST):
        out.append(f"{type(node).__name__}(")
        for field in node._fields:
            value = getattr(node, field, None)
            if value is not None and value != [] and field not in _SHAPE:
                out.append(f"{field}=")
                if isinstance(value, list) and isinstance(value[0], ast.stmt):
                    value = _acting(value, path, places, imports)
                _write(value, out, path, places, imports)
        out.append(")")
    elif isinstance(node, list):
        out.append("[")
        for one in node:
            _write(one, out, path, places, imports)
        out.append("]")
    else:
        out.append(f"{node!r},")


def _acting(body: Iterable[ast.stmt], path: Path, places: _Places, imports: set[_Import]) -> list[ast.stmt]:
    """The statements that do something; collects the imports of modules that are followed, and leaves them out."""
    kept: list[ast.stmt] = []
    for one in body:
        if isinstance(one, ast.Import | ast.ImportFrom):
            names = [(alias, list(_bound(one, alias, path, places))) for alias in one.names]
            imports.update(found for _, all_found in names for found in all_found)
            one.names = [alias for alias, all_found in names if not all_found]
            if one.names and getattr(one, "module", "") != "__future__":
                kept.append(one)
        elif isinstance(one, ast.If) and _for_types(one.test):
            kept += _acting(one.orelse, path, places, imports)
        elif not isinstance(one, ast.Pass) and not _is_text(one):
            kept.append(one)
    return kept


def _bound(node: ast.Import | ast.ImportFrom, alias: ast.alias, path: Path, places: _Places) -> Iterator[_Import]:
    """What one name of an import statement binds, if its module is followed."""
    if isinstance(node, ast.Import):
        if places.ours(alias.name):
            yield _Import(alias.name, "", alias.asname or "")
        return
    module = _absolute(node, path, places)
    inner = f"{module}.{alias.name}".removeprefix(".")
    if places.file(inner):
        yield _Import(inner, "", alias.asname or alias.name)
    elif places.ours(module):
        yield _Import(module, alias.name, alias.asname or alias.name)


def _absolute(node: ast.ImportFrom, path: Path, places: _Places) -> str:
    """The module of `from MODULE import ...`, dots in front of it resolved."""
    if not node.level:
        return node.module or ""
    folder = path.parents[node.level - 1]
    for base in (places.package.parent, *places.beside):
        if folder.is_relative_to(base):
            return ".".join([*folder.relative_to(base).parts, *filter(None, [node.module])])
    return ""


def _prefixes(name: str) -> Iterator[str]:
    """A module and the packages that it is in: Python imports them all."""
    parts = name.split(".")
    return (".".join(parts[:many]) for many in range(1, len(parts) + 1))


def _file(folder: Path, name: str) -> Path | None:
    """The file of a module by its name as seen from a folder."""
    place = folder.joinpath(*name.split("."))
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)


def _for_types(test: ast.expr) -> bool:
    """Whether a condition is TYPE_CHECKING: never true where anything runs."""
    return "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", ""))


def _is_text(node: ast.stmt) -> bool:
    """Whether a statement is but a text: a docstring, of whatever."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
