"""Where a source can be mutated, and how: each point is one small change of its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COUNTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
CALLED = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any",
    "floor": "ceil", "ceil": "floor", "zeros": "ones", "ones": "zeros", "argmin": "argmax", "argmax": "argmin",
}  # fmt: skip
Change = Callable[[], Callable[[], None]]
"""Changes a tree, and gives what undoes it."""


@dataclass(frozen=True)
class Point:
    """One mutant. `first` and `last`: the lines of the outermost function that holds it, 0: none does."""

    file: str
    line: int
    operator: str
    before: str
    after: str
    first: int
    last: int
    number: int
    """Its place among all of the file, by which `mutated` finds it again."""


def points(path: Path, root: Path) -> list[Point]:
    """All mutants of a file, in a fixed order."""
    file, tree = path.relative_to(root).as_posix(), ast.parse(path.read_text(encoding="utf-8"))
    inside: dict[int, tuple[int, int]] = {}
    for function in _outermost(tree):
        first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
        # Its defaults are evaluated with the module, not in the function.
        inside |= {id(node): (first, function.end_lineno or first) for part in function.body for node in ast.walk(part)}
    found = []
    for number, (node, shown, operator, change) in enumerate(_changes(tree)):
        before, line = _text(shown), getattr(node, "lineno", 0)
        undo = change()
        after = "pass" if operator == "deleted statement" else _text(shown)
        undo()
        found.append(Point(file, line, operator, before, after, *inside.get(id(node), (0, 0)), number))
    return found


def mutated(source: str, number: int) -> ast.Module:
    """The source's tree with its change of that number made. Lines stay what they were."""
    tree = ast.parse(source)
    change = next(change for at, (_, _, _, change) in enumerate(_changes(tree)) if at == number)
    change()
    return ast.fix_missing_locations(tree)


def _outermost(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield node
        else:
            yield from _outermost(node)


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 120 else text[:119] + "…"


def _walk(node: ast.AST, parent: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Nodes with their parents; not what nobody evaluates, nor what only makes a message."""
    yield node, parent
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list", "type_params"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _walk(child, node)


def _changes(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.AST, str, Change]]:
    """Each change: the node, the node that shows it best, the operator, and what makes it (and gives its undoing)."""
    bodies = {id(child): part for node in ast.walk(tree) for part in _bodies(node) for child in part}
    for node, parent in _walk(tree, tree):
        shown = parent if isinstance(node, ast.Constant) and isinstance(parent, ast.expr) else node
        if isinstance(node, ast.Compare):
            for at, operator in enumerate(node.ops):
                yield node, node, "comparison", _put(node.ops, at, COMPARED[type(operator)]())
        elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in COUNTED and not _of_text(node):
            yield node, node, "arithmetic", _set(node, "op", COUNTED[type(node.op)]())
        elif isinstance(node, ast.BoolOp):
            yield node, node, "and/or", _set(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
            yield node, node, "not", _set(node, "operand", ast.UnaryOp(type(node.op)(), node.operand))
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
            yield node, shown, "constant", _set(node, "value", _other(node.value))
        elif isinstance(node, ast.Break | ast.Continue):
            other = ast.Continue() if isinstance(node, ast.Break) else ast.Break()
            yield node, node, "break/continue", _put(bodies[id(node)], bodies[id(node)].index(node), other)
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in CALLED:
                yield node, node, "call", _set(node.func, "attr" if hasattr(node.func, "attr") else "id", CALLED[name])
            if len(node.args) > 1 and _alike(*node.args[:2]):
                yield node, node, "swapped arguments", _set(node, "args", [node.args[1], node.args[0], *node.args[2:]])
        if _can_go(node):
            yield node, node, "deleted statement", _put(bodies[id(node)], bodies[id(node)].index(node), ast.Pass())


def _bodies(node: ast.AST) -> list[list[ast.AST]]:
    parts = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
    return [part for part in parts if isinstance(part, list)]


def _can_go(node: ast.AST) -> bool:
    """Statements without which the rest still runs: a name that is never given would be found at once."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    if isinstance(node, ast.Assign):
        return not any(isinstance(one, ast.Name | ast.Tuple) for one in node.targets)
    return isinstance(node, ast.AugAssign | ast.Raise)


def _alike(one: ast.AST, other: ast.AST) -> bool:
    """Arguments that may be of the same type: both names, or both attributes, and not the same."""
    kinds = (ast.Name, ast.Attribute, ast.Subscript)
    return type(one) is type(other) and isinstance(one, kinds) and ast.dump(one) != ast.dump(other)


def _of_text(node: ast.AST) -> bool:
    return any(isinstance(one, ast.JoinedStr) or isinstance(getattr(one, "value", 0), str) for one in ast.walk(node))


def _other(value: Any) -> float:
    """Not 0 for 1 and 1 for 0 only: one more than any other number."""
    if isinstance(value, bool):
        return not value
    other: float = 0 if value == 1 and isinstance(value, int) else value + 1
    return other


def _set(node: ast.AST, name: str, new: object) -> Change:
    def change() -> Callable[[], None]:
        old = getattr(node, name)
        setattr(node, name, new)
        return lambda: setattr(node, name, old)

    return change


def _put(part: list[Any], at: int, new: Any) -> Change:
    def change() -> Callable[[], None]:
        old = part[at]
        part[at] = ast.copy_location(new, old) if hasattr(old, "lineno") else new
        return lambda: part.__setitem__(at, old)

    return change
