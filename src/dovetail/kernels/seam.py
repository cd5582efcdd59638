"""A seam: a question whose answer depends on the type of its first argument, decided when kernels are compiled.

`decide = seam("decide")` makes the question; `answers(Model, decide=...)` says how a NamedTuple class answers it.
Uncompiled, the class of the argument decides in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import overload

from dovetail.kernels.compile import INNER

_ANSWERS: dict[tuple[type, str], Callable[..., Any]] = {}


def answers(model: type, **functions: Callable[..., Any]) -> None:
    """Say which compiled function answers which question for a model."""
    for name, function in functions.items():
        _ANSWERS[model, name] = function


def seam(name: str) -> Callable[..., Any]:
    """A question that kernels may ask of any model that answers it."""

    def question(model: Any, *args: Any) -> Any:
        return _ANSWERS[type(model), name](model, *args)

    def choose(model: Any, *args: Any) -> Callable[..., Any] | None:
        function = _ANSWERS.get((getattr(model, "instance_class", type(None)), name))
        return getattr(function, "py_func", function)

    overload(question, strict=False, jit_options=INNER)(choose)
    return question
