"""Where the time of an experiment went, from the events of its runs: a table, and a chart for the page."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from beirnl.errors import DataError
from beirnl.evaluation.page.drawing import COLOURS, INK, Plot, figure, finish
from beirnl.evaluation.records import Report
from beirnl.evaluation.tables import Cell, Column, Table
from beirnl.history import Interval, Run, StageTime, merged, runs, stage_times
from beirnl.pipeline import Pipeline
from beirnl.store.events import read_events
from beirnl.tally import duration, rate_text, size_text
from beirnl.wording import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = (
    "stage",
    "units",
    "failed",
    "wall",
    "share",
    "worker-seconds",
    "workers",
    "busy",
    "rows/s",
    "tokens/s",
    "written",
)
_BARS = " ▁▂▃▄▅▆▇█"
_STRIP = 32  # characters
_LANES = 24  # of a stage that are drawn
_WIDTH, _LANE = 11.0, 0.09  # inches
_STEPS = (0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 43200, 86400, 604800)
_TICKS = 9  # at most, on the axis of time
_INTERVALS = 20_000  # that a chart holds at most
_FAILED = 20  # failures that are listed


def timeline(pipeline: Pipeline, *, strips: bool = False) -> Report:
    """The timeline of all runs of an experiment, also of one that goes on.

    Args:
        pipeline: of the experiment.
        strips: draw the chart in the table too, a strip of characters per stage.

    Raises:
        DataError: no run of it has left events.
    """
    path = pipeline.workspace.events_path(pipeline.experiment.name)
    history = runs(read_events(path))
    stages = stage_times(history)
    if not stages:
        raise DataError("no run has left events", where=path, remedy="run the experiment first")
    failures = [f"{duration(f.at)} {stage.stage}: {f.what}" for stage in stages for f in stage.failures]
    rest = len(failures) - _FAILED
    more = [counted(rest, "more failure", "more failures")] if rest > 0 else []
    return Report(
        name=f"{pipeline.experiment.name}: timeline",
        tables=[table(history, stages, strips)],
        plots=[chart(history, stages)],
        warnings=[*failures[:_FAILED], *more],
    )


def table(history: Sequence[Run], stages: Sequence[StageTime], strips: bool) -> Table:
    """Stages with what they did, how long they took, and when."""
    columns = [Column(name) for name in (*_COLUMNS, *(["when"] if strips else []))]
    whole = history[-1].end
    rows = [[*_row(stage, whole), *([Cell(strip(stage, whole))] if strips else [])] for stage in stages]
    between = max(0.0, whole - sum(stage.wall for stage in stages))
    rows.append([Cell("between stages"), *_blank(2), *_time(between, whole), *_blank(len(columns) - 5)])
    number = f"{counted(len(history), 'run')}, {duration(whole)} of wall time"
    caption = (
        f"{number}. Worker-seconds: how long workers had a unit; busy: their share of the workers' time, the "
        "rest is loading a model, waiting, or idle."
    )
    caption += " When: busy workers, from the first start to the last end." if strips else ""
    return Table("Time", "Where the time went", caption, columns, rows)


def _row(stage: StageTime, whole: float) -> list[Cell]:
    failed = len(stage.failures)
    return [
        Cell(stage.stage),
        Cell(f"{stage.units:,}", stage.units),
        Cell(str(failed), failed) if failed else Cell("", 0),
        *_time(stage.wall, whole),
        Cell(f"{stage.work:,.1f}", stage.work),
        Cell(str(len(stage.lanes)), len(stage.lanes)),
        Cell(f"{stage.busy:.0%}", stage.busy),
        _rate(stage.rows, stage.wall),
        _rate(stage.tokens, stage.wall),
        Cell(size_text(stage.bytes) if stage.bytes else "", stage.bytes),
    ]


def _time(seconds: float, whole: float) -> list[Cell]:
    share = seconds / max(1e-9, whole)
    return [Cell(duration(seconds), seconds), Cell(f"{share:.1%}", share)]


def _rate(number: int, seconds: float) -> Cell:
    rate = number / seconds if seconds > 0 else 0.0
    return Cell(rate_text(rate) if rate else "", rate)


def _blank(number: int) -> list[Cell]:
    return [Cell("")] * number


def strip(stage: StageTime, whole: float, width: int = _STRIP) -> str:
    """Busy workers over time in characters, the fullest block being all of them; ``·``: open, nobody busy."""
    step = max(1e-9, whole) / width
    busy = [sum(_shares(lane, step, width, at) for lane in stage.lanes) for at in range(width)]
    most = max(1, len(stage.lanes))
    drawn = []
    for at, value in enumerate(busy):
        level = min(len(_BARS) - 1, -int(-value / most * (len(_BARS) - 1) // 1))
        is_open = any(begin < (at + 1) * step and end > at * step for begin, end in stage.open)
        drawn.append(_BARS[level] if level else "·" if is_open else " ")
    return "".join(drawn).rstrip()


def _shares(lane: Sequence[Interval], step: float, width: int, at: int) -> float:
    """Which share of the slice ``at`` a lane was busy."""
    low, high = at * step, (at + 1) * step
    return sum(max(0.0, min(high, end) - max(low, begin)) for begin, end in lane) / step


def chart(history: Sequence[Run], stages: Sequence[StageTime]) -> Plot:
    """Workers of every stage over time: a band while it is made, bars while they have a unit, crosses where
    one died or the stage ended early; dashed lines between runs."""
    whole = history[-1].end
    drawn = sum(min(len(stage.lanes), _LANES) or 1 for stage in stages)
    gap = max(whole / 2000, whole * drawn / _INTERVALS)
    height = 0.9 + _LANE * drawn + 0.12 * len(stages)
    ticks: list[float] = []
    with figure(height, _WIDTH) as (axes, out):
        top = 0.0
        for number, stage in enumerate(stages):
            shown = stage.lanes[:_LANES]
            deep = max(1, len(shown))
            _draw(axes, stage, shown, top, gap, COLOURS[number % 2])
            ticks.append(top + deep / 2)
            top += deep + 1.3
        for run in history[1:]:
            axes.axvline(run.begin, color=INK, linewidth=0.6, linestyle="--")
        axes.set_yticks(ticks, [stage.stage for stage in stages])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(top - 0.3, -1)
        axes.set_xlim(0, max(whole, 1e-3))
        axes.set_xticks(_tick_marks(whole))
        axes.xaxis.set_major_formatter(lambda value, _: duration(value))
    said = "; ".join(
        f"{s.stage} {duration(s.wall)}, {counted(len(s.lanes), 'worker')} {s.busy:.0%} busy, "
        f"{counted(len(s.failures), 'failure')}"
        for s in stages
    )
    cut = [s for s in stages if len(s.lanes) > _LANES]
    more = "".join(f"; {_LANES} of {len(s.lanes)} workers of {s.stage}" for s in cut)
    title = f"Workers of each stage over time (bars: at work; pale: idle or loading; crosses: failures{more})"
    return Plot(title, f"{title}: {said}", finish(out, "timeline"))


def _tick_marks(whole: float) -> list[float]:
    """Round times, from nothing to the end."""
    step = next((step for step in _STEPS if whole / step < _TICKS), whole)
    return [number * step for number in range(int(whole / step) + 1)]


def _draw(
    axes: "Axes", stage: StageTime, shown: Sequence[list[Interval]], top: float, gap: float, colour: str
) -> None:
    deep = max(1, len(shown))
    bands = merged(stage.open, gap)
    axes.broken_barh([(b, e - b) for b, e in bands], (top, deep), color=colour, alpha=0.18, linewidth=0)
    for lane, spans in enumerate(shown):
        bars = [(b, max(e - b, gap / 2)) for b, e in merged(spans, gap)]
        axes.broken_barh(bars, (top + lane + 0.08, 0.84), color=colour, linewidth=0)
    if stage.failures:
        at = [failure.at for failure in stage.failures]
        axes.plot(at, [top - 0.35] * len(at), "x", color=COLOURS[5], markersize=5, clip_on=False)
