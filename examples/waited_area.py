"""An order of one's own: the jobs for which the most processor seconds have been waited come first."""

from typing import Any

from dovetail import State


def waited_area(state: State) -> Any:
    waited = state.now - state.submit[state.waiting]
    return -waited * state.size[state.waiting]
