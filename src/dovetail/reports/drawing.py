"""A Matplotlib figure that a notebook shows by itself. Imported where something is drawn: Matplotlib is heavy."""

from __future__ import annotations

from io import BytesIO
from typing import Final

from matplotlib.figure import Figure

_SHARP: Final = 1.5
"""Pixels of the file for each on the screen, either way."""
_DPI: Final = 96


class Drawing(Figure):
    """A figure outside of pyplot: nothing keeps it, nothing shows it twice."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        out = BytesIO()
        self.savefig(out, format="png", dpi=_SHARP * _DPI, metadata={"Software": None})
        width, height = (round(_DPI * inches) for inches in self.get_size_inches())
        return out.getvalue(), {"width": width, "height": height}
