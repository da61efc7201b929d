"""Plots of a report as SVG for a page, drawn by matplotlib; text stays text and takes the page's colour."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, NamedTuple

from beirnl.evaluation.page import scatter
from beirnl.evaluation.page.drawing import COLOURS, INK, Plot, figure, finish, legend, legend_height, short
from beirnl.evaluation.records import Record, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAR = 0.19  # inches per bar


class _Bar(NamedTuple):
    row: str
    series: str
    value: float | None
    interval: tuple[float, float] | None = None


def plots(report: Report) -> list[Plot]:
    """The report's own; values by system for each dataset, statuses of translated rows, time by stage."""
    drawn = [*report.plots, *_quality(report), *_scattered(report)]
    if any(sum(made.counts.values()) for made in report.translations.values()):
        drawn.append(_statuses(report))
    if report.timings:
        drawn.append(_time(report))
    return drawn


def _scattered(report: Report) -> Iterator[Plot]:
    return scatter.plots(report, main_measure(report.records)) if report.records else iter(())


def main_measure(records: Sequence[Record]) -> str:
    """The measure to plot, see :func:`main_name`."""
    return main_name([record.measure for record in records])


def main_name(measures: Sequence[str]) -> str:
    """The measure that counts: nDCG@10 if it is there, as in the papers, else the first one."""
    return "nDCG@10" if "nDCG@10" in measures else measures[0]


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
        yield Plot(title, f"{title}: {listed}", finish(out, f"quality{number}"))


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
        colour = COLOURS[series.index(bar.series) % len(COLOURS)]
        end = bar.value or 0.0
        axes.barh(at, end, height * 0.9, color=colour)
        if bar.interval:
            low, end = bar.interval
            axes.plot([low, end], [at, at], color=INK, linewidth=1)
        axes.text(end + 0.012, at, _label(bar.value), va="center", fontsize=8)
    _rows(axes, rows)
    axes.set_xlim(0, 1.2)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    legend(axes, {name: COLOURS[series.index(name) % len(COLOURS)] for name in present})


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
    return Plot(title, f"{title}: {listed}", finish(out, "statuses"))


def _stacked(axes: "Axes", parts: Mapping[str, Mapping[str, float]], series: Sequence[str]) -> None:
    """Horizontal bars, each made of its series from left to right; beyond the colours, small ones are one."""
    total = {name: sum(made.get(name, 0.0) for made in parts.values()) for name in series}
    shown = list(series)
    if len(shown) > len(COLOURS):
        largest = sorted(shown, key=lambda name: -total[name])[: len(COLOURS) - 1]
        shown = [name for name in shown if name in largest]
    for at, made in enumerate(parts.values()):
        widths = [made.get(name, 0.0) for name in shown]
        widths.append(sum(made.values()) - sum(widths))
        left = 0.0
        for order, width in enumerate(widths):
            axes.barh(at, width, 0.7, left=left, color=COLOURS[order % len(COLOURS)])
            left += width
    _rows(axes, list(parts))
    labels = [*shown, "others"] if len(shown) < len(series) else shown
    legend(axes, dict(zip(labels, COLOURS, strict=False)))


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
    return Plot(title, f"{title}: {listed}", finish(out, "time"))


def _rows(axes: "Axes", names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), [short(name) for name in names])
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)


@contextmanager
def _figure(bars: Sequence[_Bar], series: int) -> "Iterator[tuple[Axes, StringIO]]":
    """Axes high enough for the bars and a legend of the series; the SVG is in the second value at the end."""
    height = 0.7 + legend_height(series) + max(_BAR * len(bars), 0.25 * len({bar.row for bar in bars}))
    with figure(height) as (axes, out):
        yield axes, out
