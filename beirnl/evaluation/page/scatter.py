"""Quality against what it takes: parameters, and documents and queries per second."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import harmonic_mean
from typing import TYPE_CHECKING, NamedTuple

from beirnl import registry
from beirnl.evaluation.page.drawing import COLOURS, INK, Plot, figure, finish, legend, legend_height, short
from beirnl.evaluation.records import Record, Report
from beirnl.wording import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE = 0.16  # inches per label
_LEAST = 2.1  # inches of axes
_NARROW = 30  # range of a logarithmic axis that has few powers of ten

#: A system in a language.
_System = tuple[str, str]


class Point(NamedTuple):
    """A system: its mean over the datasets in a language, and what that takes (None: no such number)."""

    system: str
    language: str
    quality: float
    cost: float | None


def plots(report: Report, measure: str) -> Iterator[Plot]:
    """Plots with a logarithmic axis, each if at least two systems have a number to stand at."""
    means = _means(report.records, measure)
    speeds = {
        name: _by_system({(s.system, s.language, s.dataset): getattr(s, name) for s in report.speeds})
        for name in ("queries", "documents")
    }
    axes: Mapping[str, tuple[str, Mapping[_System, float]]] = {
        "parameters": ("millions of parameters in use (dotted: none)", _parameters(report.records)),
        "queries": ("queries per second and worker, first stages included", speeds["queries"]),
        "documents": ("documents per second and worker, before any query", speeds["documents"]),
    }
    without = {record.system for record in report.records if record.conditions.model is None}
    dotted = {"parameters": without}
    of = _datasets(report.records, measure, {system for system, _ in means})
    for name, (label, costs) in axes.items():
        points = [Point(*key, quality, costs.get(key)) for key, quality in means.items()]
        shown = [one for one in points if one.cost or one.system in dotted.get(name, ())]
        if len({point.system for point in shown if point.cost}) > 1:
            title = f"{measure} against {name}{' per second' if name != 'parameters' else ''} ({of})"
            yield plot(f"against-{name}", title, label, measure, shown)


def _means(records: Sequence[Record], measure: str) -> dict[_System, float]:
    """Mean over the datasets of a language, for systems that have all of them."""
    values: dict[_System, dict[str, float]] = {}
    datasets: dict[str, set[str]] = {}
    for record in records:
        if record.measure == measure:
            datasets.setdefault(record.language, set()).add(record.dataset)
            if record.value is not None:
                values.setdefault((record.system, record.language), {})[record.dataset] = record.value
    return {
        (system, language): math.fsum(own.values()) / len(own)
        for (system, language), own in values.items()
        if set(own) == datasets[language]
    }


def _datasets(records: Sequence[Record], measure: str, systems: Collection[str]) -> str:
    """Over what the means are, and how many systems lack some of it."""
    own = [record for record in records if record.measure == measure]
    datasets = dict.fromkeys(record.dataset for record in own)
    lacking = {record.system for record in own} - set(systems)
    said = f"mean over {len(datasets)} datasets" if len(datasets) > 1 else next(iter(datasets))
    return said + (
        f"; without {counted(len(lacking), 'system that lacks', 'systems that lack')} some" if lacking else ""
    )


def _parameters(records: Sequence[Record]) -> dict[_System, float]:
    found = {}
    for record in records:
        entry = registry.find_model(record.conditions.model or "")
        if entry is not None and entry.parameters:
            found[record.system, record.language] = entry.active_parameters or entry.parameters
    return found


def _by_system(rates: Mapping[tuple[str, str, str], float | None]) -> dict[_System, float]:
    """Harmonic mean over datasets: as if each had as many rows."""
    gathered: dict[_System, list[float]] = {}
    for (system, language, _), rate in rates.items():
        if rate:
            gathered.setdefault((system, language), []).append(rate)
    return {key: harmonic_mean(some) for key, some in gathered.items()}


def plot(name: str, title: str, label: str, measure: str, points: Sequence[Point]) -> Plot:
    """Systems by what they take (logarithmic) and how good they are, a colour for each language.

    Args:
        name: of the plot, as in :func:`.drawing.finish`.
        title: of the plot.
        label: of the axis of costs.
        measure: of the quality.
        points: at least one with a cost; those without are dotted lines.
    """
    languages = list(dict.fromkeys(point.language for point in points))
    colours = {language: COLOURS[at % len(COLOURS)] for at, language in enumerate(languages)}
    height = 0.6 + legend_height(len(languages)) + max(_LEAST, _LINE * len(points))
    with figure(height) as (axes, out):
        _points(axes, points, colours, height)
        axes.set_xlabel(label)
        axes.set_ylabel(measure)
        legend(axes, colours)
    listed = "; ".join(f"{p.system}, {p.language}: {p.quality:.4f} at {_said(p.cost)}" for p in points)
    return Plot(title, f"{title}: {listed}", finish(out, name))


def _said(cost: float | None) -> str:
    return "none" if cost is None else f"{cost:,.4g}"


def _points(axes: "Axes", points: Sequence[Point], colours: Mapping[str, str], height: float) -> None:
    """Points, and their names in a column beside the axes; systems without a cost are dotted lines."""
    qualities = [point.quality for point in points]
    low, high = min(qualities), max(qualities)
    pad = max(0.05 * (high - low), 0.005)
    axes.set_ylim(low - pad, high + pad)
    _logarithmic(axes, [point.cost for point in points if point.cost])
    ordered = sorted(points, key=lambda point: point.quality)
    places = spread(
        [(p.quality - low + pad) / (high - low + 2 * pad) for p in ordered], 1.15 * _LINE / height
    )
    for point, place in zip(ordered, places, strict=True):
        colour = colours[point.language]
        if point.cost is None:
            axes.axhline(point.quality, color=colour, linestyle="dotted", linewidth=1)
            at, coordinates = (1.0, point.quality), axes.get_yaxis_transform()
        else:
            axes.scatter([point.cost], [point.quality], color=colour, s=22, zorder=3)
            at, coordinates = (point.cost, point.quality), axes.transData
        axes.annotate(
            short(point.system),
            at,
            xycoords=coordinates,
            xytext=(1.06, place),
            textcoords="axes fraction",
            va="center",
            fontsize=8,
            arrowprops={"arrowstyle": "-", "color": INK, "linewidth": 0.4, "alpha": 0.5, "shrinkB": 3},
        )


def _logarithmic(axes: "Axes", costs: Sequence[float]) -> None:
    """A logarithmic axis of x with plain numbers: powers of ten, over a narrow range 2 and 5 times them."""
    from matplotlib.ticker import LogLocator

    axes.set_xscale("log")
    if max(costs) < _NARROW * min(costs):
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(_plain)
    axes.xaxis.set_minor_formatter(lambda value, _: "")


def _plain(value: float, _: object) -> str:
    return f"{value:g}"


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Places from bottom to top, moved until they are a gap apart, and within 0 to 1 if they fit.

    Args:
        places: ascending.
        gap: least distance.
    """
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + gap) if moved else place)
    ceiling = max(1.0, gap * (len(moved) - 1))
    for at in range(len(moved) - 1, -1, -1):
        moved[at] = min(moved[at], ceiling)
        ceiling = moved[at] - gap
    return moved
