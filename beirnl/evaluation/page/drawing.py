"""What all plots of a report share: their look, a figure with axes, and the SVG that a page takes."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#010203"  # stands for the page's colour of text until the SVG is finished
#: Okabe and Ito's palette without black: told apart by the colour-blind, on light and dark ground.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
_LEGEND_COLUMNS, _WIDE_LABEL = 3, 12
_WIDTH = 4.6  # inches: about the width of a telephone, so that text stays readable there
_LONGEST_NAME = 26
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "beirnl",
    "text.parse_math": False,
    "font.size": 9,
    "font.family": "sans-serif",
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


class Plot(NamedTuple):
    """A figure for a page.

    Attributes:
        title: shown as its caption.
        alt: what it shows, in words, for those who do not see it.
        svg: an ``<svg>`` element whose ids no other plot of the report has.
    """

    title: str
    alt: str
    svg: str


@contextmanager
def figure(height: float, width: float = _WIDTH) -> "Iterator[tuple[Axes, StringIO]]":
    """Axes in a figure of so many inches; its SVG is in the second value at the end."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    out = StringIO()
    with mpl.rc_context(_SETTINGS):
        made = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(made)
        axes = made.add_subplot()
        yield axes, out
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        made.savefig(out, format="svg", transparent=True, metadata=metadata)


def finish(out: StringIO, name: str) -> str:
    """The ``<svg>`` element alone: ids made unique, the page's colour of text, no fixed size."""
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = svg.replace(INK, "currentColor")
    opening, rest = svg.split(">", 1)
    width = float(re.search(r'width="([0-9.]+)pt"', opening)[1])  # type: ignore[index]
    opening = re.sub(r' (width|height|version)="[^"]*"', "", opening)
    return f'{opening} aria-hidden="true" style="width: {width / 72:.2f}in">{rest}'


def short(name: str) -> str:
    """A long name without its middle: models of one family differ at the end."""
    return name if len(name) <= _LONGEST_NAME else f"{name[:8]}…{name[9 - _LONGEST_NAME :]}"


def legend(axes: "Axes", colours: Mapping[str, str]) -> None:
    """Colours of the series, above the axes."""
    from matplotlib.patches import Patch

    patches = [Patch(color=colour, label=short(name)) for name, colour in colours.items()]
    columns = _LEGEND_COLUMNS - (max(map(len, colours), default=0) > _WIDE_LABEL)
    axes.figure.legend(handles=patches, loc="outside upper left", ncols=columns)


def legend_height(series: int) -> float:
    """Inches that a legend of so many series takes."""
    return 0.2 * -(-min(series, len(COLOURS)) // (_LEGEND_COLUMNS - 1))
