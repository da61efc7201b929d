"""Plots of a report as SVG for a page, drawn by matplotlib; text stays text and takes the page's colour."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any, NamedTuple

from beirnl.evaluation.records import Record, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INK = "#010203"  # stands for the page's colour of text until the SVG is finished
#: Okabe and Ito's palette without black: told apart by the colour-blind, on light and dark ground.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
_LEGEND_COLUMNS, _WIDE_LABEL = 3, 12
_WIDTH = 4.6  # inches: about the width of a telephone, so that text stays readable there
_BAR = 0.19  # inches per bar
_LONGEST_NAME = 26
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "beirnl",
    "text.parse_math": False,
    "font.size": 9,
    "font.family": "sans-serif",
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
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


class _Bar(NamedTuple):
    row: str
    series: str
    value: float | None
    interval: tuple[float, float] | None = None


def plots(report: Report) -> list[Plot]:
    """Values by system for each dataset, statuses of translated rows, time by stage: as far as known."""
    drawn = list(_quality(report))
    if any(sum(made.counts.values()) for made in report.translations.values()):
        drawn.append(_statuses(report))
    if report.timings:
        drawn.append(_time(report))
    return drawn


def main_measure(records: Sequence[Record]) -> str:
    """The measure to plot: nDCG@10 if it is there, as in the papers, else the first one."""
    names = [record.measure for record in records]
    return "nDCG@10" if "nDCG@10" in names else names[0]


def _quality(report: Report) -> Iterator[Plot]:
    datasets = list(dict.fromkeys(record.dataset for record in report.records))
    languages = list(dict.fromkeys(record.language for record in report.records))
    for number, dataset in enumerate(datasets):
        records = [record for record in report.records if record.dataset == dataset]
        measure = main_measure(records)
        bars = [_Bar(r.system, r.language, r.value, _interval(r)) for r in records if r.measure == measure]
        title = f"{measure} on {dataset}"
        known = any(bar.interval for bar in bars)
        with _figure(bars, len(languages)) as (axes, out):
            _grouped(axes, bars, languages)
            axes.set_xlabel(f"{measure} (line: 95% bootstrap interval)" if known else measure)
        listed = "; ".join(map(_said, bars))
        yield Plot(title, f"{title}: {listed}", _finish(out, f"quality{number}"))


def _said(bar: _Bar) -> str:
    interval = f" (95% interval {bar.interval[0]:.4f} to {bar.interval[1]:.4f})" if bar.interval else ""
    return f"{bar.row}, {bar.series}: {_label(bar.value)}{interval}"


def _label(value: float | None) -> str:
    return "incomplete" if value is None else f"{value:.4f}"


def _interval(record: Record) -> tuple[float, float] | None:
    return (record.low, record.high) if record.low is not None and record.high is not None else None


def _grouped(axes: "Axes", bars: Sequence[_Bar], series: Sequence[str]) -> None:
    """Horizontal bars in groups by row, one colour for each series, the value at the end."""
    rows = list(dict.fromkeys(bar.row for bar in bars))
    present = [name for name in series if any(bar.series == name for bar in bars)]
    height = 0.8 / len(present)
    for bar in bars:
        order = present.index(bar.series)
        at = rows.index(bar.row) + (order - (len(present) - 1) / 2) * height
        colour = _COLOURS[series.index(bar.series) % len(_COLOURS)]
        end = bar.value or 0.0
        axes.barh(at, end, height * 0.9, color=colour)
        if bar.interval:
            low, end = bar.interval
            axes.plot([low, end], [at, at], color=_INK, linewidth=1)
        axes.text(end + 0.012, at, _label(bar.value), va="center", fontsize=8)
    _rows(axes, rows)
    axes.set_xlim(0, 1.2)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    _legend(axes, {name: _COLOURS[series.index(name) % len(_COLOURS)] for name in present})


def _statuses(report: Report) -> Plot:
    counts = {
        dataset: made.counts for dataset, made in report.translations.items() if sum(made.counts.values())
    }
    names = list(dict.fromkeys(["ok", *(status for made in counts.values() for status in made)]))
    shares = {d: {name: c.get(name, 0) / sum(c.values()) for name in names} for d, c in counts.items()}
    listed = "; ".join(
        f"{dataset}: " + ", ".join(f"{name} {share:.2%}" for name, share in made.items() if share)
        for dataset, made in shares.items()
    )
    with _figure([_Bar(dataset, "", 0) for dataset in shares], len(names)) as (axes, out):
        _stacked(axes, shares, names)
        axes.set_xlabel("share of rows")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    title = "Translated rows by status"
    return Plot(title, f"{title}: {listed}", _finish(out, "statuses"))


def _stacked(axes: "Axes", parts: Mapping[str, Mapping[str, float]], series: Sequence[str]) -> None:
    """Horizontal bars, each made of its series from left to right; beyond the colours, small ones are one."""
    total = {name: sum(made.get(name, 0.0) for made in parts.values()) for name in series}
    shown = list(series)
    if len(shown) > len(_COLOURS):
        largest = sorted(shown, key=lambda name: -total[name])[: len(_COLOURS) - 1]
        shown = [name for name in shown if name in largest]
    for at, made in enumerate(parts.values()):
        widths = [made.get(name, 0.0) for name in shown]
        widths.append(sum(made.values()) - sum(widths))
        left = 0.0
        for order, width in enumerate(widths):
            axes.barh(at, width, 0.7, left=left, color=_COLOURS[order % len(_COLOURS)])
            left += width
    _rows(axes, list(parts))
    labels = [*shown, "others"] if len(shown) < len(series) else shown
    _legend(axes, dict(zip(labels, _COLOURS, strict=False)))


def _time(report: Report) -> Plot:
    stages: dict[str, dict[str, float]] = {}
    for timing in report.timings:
        made = stages.setdefault(timing.stage, {})
        made[timing.dataset] = made.get(timing.dataset, 0.0) + timing.seconds
    datasets = list(dict.fromkeys(timing.dataset for timing in report.timings))
    listed = "; ".join(f"{stage} {sum(made.values()):,.1f} s" for stage, made in stages.items())
    with _figure([_Bar(stage, "", 0) for stage in stages], len(datasets)) as (axes, out):
        _stacked(axes, stages, datasets)
        axes.set_xlabel("seconds of work")
    title = "Time by stage"
    return Plot(title, f"{title}: {listed}", _finish(out, "time"))


def _rows(axes: "Axes", names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), [_short(name) for name in names])
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)


def _short(name: str) -> str:
    """A long name without its middle: models of one family differ at the end."""
    return name if len(name) <= _LONGEST_NAME else f"{name[:8]}…{name[9 - _LONGEST_NAME :]}"


def _legend(axes: "Axes", colours: Mapping[str, str]) -> None:
    from matplotlib.patches import Patch

    patches = [Patch(color=colour, label=_short(name)) for name, colour in colours.items()]
    columns = _LEGEND_COLUMNS - (max(map(len, colours), default=0) > _WIDE_LABEL)
    axes.figure.legend(handles=patches, loc="outside upper left", ncols=columns)


@contextmanager
def _figure(bars: Sequence[_Bar], series: int) -> "Iterator[tuple[Axes, StringIO]]":
    """Axes high enough for the bars and a legend of the series; the SVG is in the second value at the end."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    out = StringIO()
    with mpl.rc_context(_SETTINGS):
        height = (
            0.7
            + 0.2 * -(-min(series, len(_COLOURS)) // (_LEGEND_COLUMNS - 1))
            + max(_BAR * len(bars), 0.25 * len({bar.row for bar in bars}))
        )
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        yield axes, out
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(out, format="svg", transparent=True, metadata=metadata)


def _finish(out: StringIO, name: str) -> str:
    """The ``<svg>`` element alone: ids made unique, the page's colour of text, no fixed size."""
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = svg.replace(_INK, "currentColor")
    opening, rest = svg.split(">", 1)
    width = float(re.search(r'width="([0-9.]+)pt"', opening)[1])  # type: ignore[index]
    opening = re.sub(r' (width|height|version)="[^"]*"', "", opening)
    return f'{opening} aria-hidden="true" style="width: {width / 72:.2f}in">{rest}'
