"""Pictures in the colours of the page: its style sheet has each of them twice, for light and for dark screens."""

from __future__ import annotations

import re
from typing import Final

from dovetail.reports.style import BETTER, FAINT, GREY, INK, WORSE

NAMES: Final = {
    "#ffffff": "--paper", INK: "--ink", FAINT: "--rule", GREY: "--grey", BETTER.lower(): "--blue",
    WORSE.lower(): "--orange", "#009e73": "--green", "#cc79a7": "--pink", "#e69f00": "--amber", "#56b4e9": "--sky",
}  # fmt: skip
"""The colours of pictures, and what page.css calls them."""

_PAPER: Final = (0x15, 0x18, 0x1C)
"""The paper of a dark page."""
_MOST: Final = 0.85
"""How much of its colour the darkest cell of a matrix keeps there: light text can then be read on all of them."""

_TAG: Final = re.compile(r"<(\w+)[^<>]*>")
_STYLE: Final = re.compile(r'style="[^"]*"')
_COLOUR: Final = re.compile(r"(fill|stroke):(#[0-9a-f]{6})")


def themed(colour: str) -> str:
    """A colour as the style sheet knows it; one that it does not know stays as it is."""
    name = NAMES.get(colour.lower())
    return f"var({name})" if name else colour


def themed_svg(svg: str, matrix: bool = False) -> str:
    """A picture whose colours are those of the page. Text on coloured cells keeps its own, white or black.

    `matrix`: its cells go from white to a colour. Each also gets the one that goes from the dark paper there.
    """

    def tag(found: re.Match[str]) -> str:
        return _STYLE.sub(lambda style: _COLOUR.sub(lambda one: recoloured(found[1], one), style[0]), found[0])

    def recoloured(kind: str, found: re.Match[str]) -> str:
        colour = found[2]
        if colour in NAMES and not (kind == "text" and colour == "#ffffff"):
            return f"{found[1]}:{themed(colour)}"
        if matrix and kind == "path" and found[1] == "fill":
            return f"--dark:{on_dark(colour)};{found[0]}"
        return found[0]

    return _TAG.sub(tag, svg)


def on_dark(colour: str) -> str:
    """A mixture of white and a colour that lacks red or blue, as the same mixture of dark paper and that colour."""
    parts = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    white = min(parts)
    share = _MOST * (1 - white / 255)
    mixed = [round((1 - share) * paper + _MOST * (part - white)) for paper, part in zip(_PAPER, parts, strict=True)]
    return "#" + "".join(f"{part:02x}" for part in mixed)
