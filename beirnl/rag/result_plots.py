"""Plots of a result: accuracy against k (BES4RAG, Figures 4 and 5), and accuracy against cost."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from beirnl.evaluation.page.drawing import COLOURS, INK, Plot, figure, finish, short
from beirnl.evaluation.page.scatter import Point, plot
from beirnl.rag.marks import Estimate, Setup
from beirnl.rag.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINES = ("solid", "dashed", "dotted", "dashdot")
_MARKERS = "os^Dvpx*"
_AXES, _LEGEND_LINE, _LEGEND_COLUMNS = 3.0, 0.2, 2  # inches
_FAINT = 0.12  # opacity of a band
#: Column of the costs -> what it is called, label of its axis.
_COSTS = {
    "prompt_tokens": ("prompt tokens", "tokens of a prompt, mean"),
    "seconds": ("seconds of encoding", "seconds of encoding (dotted: not known)"),
}


def plots(result: Result, mark: str = "") -> list[Plot]:
    """Accuracy against k for each LLM, for all LLMs on the same axes, and against cost where it is known.

    Args:
        result: of one corpus.
        mark: begins the identifiers, of which a page has each once.
    """
    made = [
        _against_k(result, [llm], f"{mark}by-k-{at}", f"Accuracy against k, answered by {llm}")
        for at, llm in enumerate(result.llms)
    ]
    if len(result.llms) > 1:
        made.append(_against_k(result, result.llms, f"{mark}by-k", "Accuracy against k, all LLMs"))
    return [*made, *_against_cost(result, mark)]


def _against_k(result: Result, llms: Sequence[str], name: str, title: str) -> Plot:
    """Lines from k = 0, which systems share, with bands of their intervals where one LLM answers."""
    series = len(result.systems) + (len(llms) if len(llms) > 1 else 0)
    height = _AXES + _LEGEND_LINE * -(-series // _LEGEND_COLUMNS)
    said = []
    with figure(height) as (axes, out):
        for number, llm in enumerate(llms):
            for at, system in enumerate(result.systems):
                line = _line(result, llm, system)
                _draw(axes, line, at, _LINES[number % len(_LINES)], band=len(llms) == 1)
                values = ", ".join(f"{one.value:.3f} at {k}" for k, one in line)
                said.append(f"{system}, {llm}: {values}")
        axes.set_xticks(result.ks)
        axes.set_xlabel("k, passages in the prompt")
        axes.set_ylabel("accuracy (band: 95% interval)" if len(llms) == 1 else "accuracy")
        _legend(axes, result.systems, llms)
    return Plot(title, f"{title}: {'; '.join(said)}", finish(out, name))


def _line(result: Result, llm: str, system: str) -> list[tuple[int, Estimate]]:
    found = {k: result.found.get(Setup(llm, system if k else "", k)) for k in result.ks}
    return [(k, one) for k, one in found.items() if one and one.complete]


def _draw(axes: "Axes", line: Sequence[tuple[int, Estimate]], at: int, style: str, *, band: bool) -> None:
    ks, look = [k for k, _ in line], _look(at)
    if band:
        ends = [one.low for _, one in line], [one.high for _, one in line]
        axes.fill_between(ks, *ends, color=look["color"], alpha=_FAINT, linewidth=0)
    axes.plot(ks, [one.value for _, one in line], linestyle=style, **look)


def _look(at: int) -> dict[str, Any]:
    """Colour and marker of a system; markers go on where colours begin anew."""
    marker = _MARKERS[at % len(_MARKERS)]
    return {"color": COLOURS[at % len(COLOURS)], "marker": marker, "markersize": 4, "linewidth": 1.4}


def _legend(axes: "Axes", systems: Sequence[str], llms: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=short(name), **_look(at)) for at, name in enumerate(systems)]
    if len(llms) > 1:
        handles += [
            Line2D([], [], color=INK, linestyle=_LINES[at % len(_LINES)], label=short(llm))
            for at, llm in enumerate(llms)
        ]
    axes.figure.legend(handles=handles, loc="outside upper left", ncols=_LEGEND_COLUMNS)


def _against_cost(result: Result, mark: str) -> Iterator[Plot]:
    for column, (name, label) in _COSTS.items():
        rows = result.costs.select("llm", "system", "accuracy", column).rows()
        points = [Point(system, llm, accuracy, cost) for llm, system, accuracy, cost in rows]
        if len({point.cost for point in points if point.cost}) > 1:
            title = f"Accuracy at k = {result.k} against {name}"
            yield plot(f"{mark}against-{column}", title, label, "accuracy", points)
