"""Nodes that are made together: which can be, what they are called, what goes on when they fail, and at which
units they were killed."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from beirnl.errors import BeirnlError, BudgetError, ClusterError, StoreError
from beirnl.graph.nodes import Graph, Node
from beirnl.stages import STAGES
from beirnl.stages.base import StoppedError
from beirnl.store.attempts import killed_units, unit_in_words, units_set_aside
from beirnl.store.workspace import Workspace

_NAMED = 5  # units
_OF_NO_SYSTEM = BudgetError, ClusterError, StoppedError, StoreError  # end a run, whoever met them


def without(graph: Graph, group: Sequence[Node], error: BeirnlError) -> dict[str, str]:
    """The systems that are left out since these nodes fail, with the reason.

    Raises:
        BeirnlError: the error itself, where it is of no system, or no system would be left.
    """
    names = dict.fromkeys(name for node in group for name in graph.systems_on(node))
    systems = {one.system.name for one in graph.searching}
    if isinstance(error, _OF_NO_SYSTEM) or not names or len(names) == len(systems):
        raise error
    return dict.fromkeys(names, str(error))


def of_one_fate(graph: Graph, nodes: Sequence[Node]) -> list[Node]:
    """The first nodes of which all end the same systems if they fail."""
    first = graph.systems_on(nodes[0])
    return [node for node in nodes if graph.systems_on(node) == first]


def that_ask_apart(nodes: Sequence[Node], openings: Callable[[Any], tuple[str, ...]]) -> list[Node]:
    """The first nodes of which no two can ask the same: of what they might ask alike, the first one asks."""
    chosen: list[Node] = []
    taken: list[str] = []
    for node in nodes:
        begins = openings(node.spec)
        if not any(a.startswith(b) or b.startswith(a) for a in begins for b in taken):
            chosen.append(node)
            taken.extend(begins)
    return chosen


def heading(group: Sequence[Node]) -> str:
    """What a group is called while it is made."""
    labels = list(dict.fromkeys(node.label for node in group))
    shown = ", ".join(labels[:3]) + (f" and {len(labels) - 3} more" if len(labels) > 3 else "")
    purposes = {node.purpose.split(",")[0] for node in group if node.purpose}
    return f"{shown} ({purposes.pop()})" if len(purposes) == 1 else shown


def deaths(node: Node, workspace: Workspace, workers: int) -> str:
    """A line on the units at which a run was killed that is no more, or nothing."""
    units = killed_units(node.artifact(workspace))
    if not units:
        return ""
    listed = f"{'units' if len(units) > 1 else 'unit'} {', '.join(map(str, units[:_NAMED]))}"
    advice = STAGES[node.stage].less_memory(workers)
    return f"{node.stage} {node.label}: an earlier run was killed at {listed}; if for memory: {advice}"


def set_aside(nodes: Iterable[Node], workspace: Workspace) -> list[str]:
    """A line for each unit that killed its workers again and again, and is not done since then."""
    return [
        f"{node.stage} {node.label}: {unit_in_words(unit)} killed its workers and is set aside; "
        "the next run tries it again"
        for node in nodes
        for unit in units_set_aside(node.artifact(workspace))
    ]
