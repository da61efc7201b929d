"""Nodes that are made together: which can be, what they are called, and what goes on when they fail."""

from collections.abc import Callable, Sequence
from typing import Any

from beirnl.errors import BeirnlError, BudgetError, ClusterError, StoreError
from beirnl.graph.nodes import Graph, Node
from beirnl.stages.base import StoppedError

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
