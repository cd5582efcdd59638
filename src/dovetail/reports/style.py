"""How pictures look: colours that all readers can tell apart, readable axes, and a figure as inline SVG."""

from __future__ import annotations

import io
import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK: Final = "#222222"
FAINT: Final = "#d9d9d9"
GREY: Final = "#767676"
BETTER: Final = "#0072B2"
WORSE: Final = "#D55E00"


@dataclass(frozen=True)
class Stroke:
    """How one policy is drawn: by colour, dashes and marker, so that one of them is enough to know it by."""

    colour: str
    dashes: tuple[float, ...]
    marker: str

    @property
    def line(self) -> dict[str, Any]:
        """As keywords of a Matplotlib line."""
        style: Any = (0, self.dashes) if self.dashes else "solid"
        return {"color": self.colour, "linestyle": style, "marker": self.marker, "markersize": 4, "linewidth": 1.4}


MARKS: Final[Mapping[str, str]] = {
    "": "",
    "o": "M12 6a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
    "s": "M12.3 3.3h5.4v5.4h-5.4z",
    "^": "M15 2.5l3.3 6h-6.6z",
    "v": "M15 9.5l3.3-6h-6.6z",
    "D": "M15 2.5l3.5 3.5-3.5 3.5-3.5-3.5z",
    "X": "M13 2.5l2 2 2-2 1.5 1.5-2 2 2 2-1.5 1.5-2-2-2 2-1.5-1.5 2-2-2-2z",
    "P": "M14 2.5h2v2.5h2.5v2h-2.5v2.5h-2v-2.5h-2.5v-2h2.5z",
    "*": "M15 2l1 2.7h2.9l-2.3 1.8 0.9 2.8-2.5-1.7-2.5 1.7 0.9-2.8-2.3-1.8h2.9z",
}
"""Matplotlib's markers as paths around (15, 6), for the keys of pictures."""

STROKES: Final = (
    Stroke(INK, (), "o"),
    Stroke("#0072B2", (5, 1.5), "s"),
    Stroke("#D55E00", (), "^"),
    Stroke("#009E73", (1.5, 1.2), "D"),
    Stroke("#CC79A7", (6, 1.5, 1.5, 1.5), "v"),
    Stroke("#E69F00", (), "X"),
    Stroke("#56B4E9", (3, 1.2), "P"),
    Stroke(GREY, (6, 1.2, 1.2, 1.2, 1.2, 1.2), "*"),
)
"""The colours of Okabe and Ito, with grey for their yellow, which does not show on white."""

_SETTINGS: Final[Mapping[str, Any]] = {
    "svg.fonttype": "none",  # text stays text: small, searchable, in the font of the page
    "text.parse_math": False,  # a policy may have a dollar sign in its name
    "font.family": ["DejaVu Sans"],  # wide: what is measured with it has room in any font that a browser takes
    "font.size": 8.5,
    "text.color": INK,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.5,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.visible": False,
    "ytick.minor.visible": False,
    "hatch.linewidth": 0.5,
    "path.simplify": False,
    "svg.hashsalt": "dovetail",  # same picture, same bytes
}


def settings() -> Any:
    """The settings to draw and to write a figure under, as a context; whatever the user's own are."""
    import matplotlib

    known: dict[Any, Any] = {**matplotlib.rcParamsDefault, **_SETTINGS}
    return matplotlib.rc_context({name: value for name, value in known.items() if not name.startswith("backend")})


def figure(width: float, height: float) -> Figure:
    """An empty figure, its size in points: 1 point is 1 to 1.4 pixels on the page."""
    from dovetail.reports.drawing import Drawing

    return Drawing(figsize=(width / 72, height / 72), layout="constrained")


def svg(drawn: Figure, name: str, label: str) -> str:
    """A figure as an SVG element for an HTML page. `name` makes its ids unique there; `label` says what it is."""
    out = io.StringIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)  # the browser will have it
        drawn.savefig(out, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    root = ElementTree.fromstring(out.getvalue())  # noqa: S314 (made above, by Matplotlib)
    _tidy(root, name)
    place = {"viewBox": root.attrib["viewBox"], "preserveAspectRatio": "xMinYMin"}
    root.attrib = {**place, "role": "img", "aria-label": label}
    text: str = ElementTree.tostring(root, encoding="unicode")
    return text


def _tidy(root: ElementTree.Element, name: str) -> None:
    """Fit for a page with other pictures, and small.

    Plain names in place of XML's namespaces. Ids only where something refers to them, unique on the page. The font
    and the ends of lines are left to the style sheet, which a `style` element in here would rule the whole page by.
    A hundredth of a point is as exact as a place needs to be.
    """
    seen: dict[str, str] = {}

    def renamed(found: re.Match[str]) -> str:
        return found[1] + seen.setdefault(found[2], f"{name}-{len(seen)}")

    elements = list(root.iter())
    for element in elements:
        element.tag = element.tag.rpartition("}")[2]
        element.tail = "\n" if element.tag == "path" else None
        if element.tag != "text":
            element.text = None
        found = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
        for key, value in found.items():
            if key in ("d", "x", "y", "width", "height", "transform"):
                found[key] = re.sub(r"\s+", " ", _DECIMALS.sub(_rounded, value)).strip()
            elif key in ("href", "clip-path", "style"):
                found[key] = re.sub(r"(^#|url\(#)([\w-]+)", renamed, value)
        if found.get("transform", "").startswith("rotate(-0 "):
            del found["transform"]
        if "style" in found:
            found["style"] = re.sub(r"font-family: [^;]*; |(?<=[:;]) ", "", found["style"])
        element.attrib = found
    for element in elements:
        mark = element.attrib.pop("id", None)
        if mark in seen:
            element.attrib["id"] = seen[mark]
        for child in element.findall("style"):
            element.remove(child)


_DECIMALS: Final = re.compile(r"-?\d*\.\d{3,}(?:e-?\d+)?")


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")


_DAY: Final = 86400
DURATIONS: Final = (
    (1, "1 s"), (60, "1 min"), (3600, "1 h"), (_DAY, "1 d"), (30 * _DAY, "30 d"), (365 * _DAY, "1 year"),
    (3650 * _DAY, "10 years"), (36500 * _DAY, "100 years"), (365000 * _DAY, "1,000 years"),
)  # fmt: skip
"""Durations that people know, for logarithmic axes."""
BETWEEN: Final = ((10, "10 s"), (600, "10 min"), (6 * 3600, "6 h"), (7 * _DAY, "1 week"))
"""More of them, where there is room."""


def duration_ticks(low: float, high: float, most: int) -> list[tuple[float, str]]:
    """Well-known durations within a range, no more than `most` of them, spread over it."""
    known, more = ([(float(s), text) for s, text in each if low <= s <= high] for each in (DURATIONS, BETWEEN))
    if len(known) + len(more) <= most:
        return sorted(known + more)
    every = -(-len(known) // most)
    return known[::-every][::-1]


def short_duration(seconds: float) -> str:
    """A duration in one unit and a few characters, for the cells of a map: 45 s, 12 m, 5.3 h, 18 d."""
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        value = seconds / length
        if value >= 1:
            return f"{value:.1f} {unit}" if value < 9.95 and unit != "m" else f"{value:.0f} {unit}"
    return f"{seconds:.0f} s"


def span_axis(ax: Axes, seconds: float) -> float:
    """Labels the axis of a span in the unit that it is best counted in, and gives that unit's seconds."""
    units = ((86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))
    unit_s, name = next((s, text) for s, text in units if seconds >= 3 * s or s == 1)
    ax.set_xlabel(f"{name} since the first arrival")
    ax.set_xlim(0, max(seconds / unit_s, 1e-9))
    return float(unit_s)


def text_colour(rgb: Sequence[float]) -> str:
    """Black or white, whichever stands out more from a colour (by the contrast ratio of WCAG 2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb[:3]]
    light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#ffffff" if 1.05 / (light + 0.05) > (light + 0.05) / 0.05 else "#000000"
