"""The texts that retrieval will read: how long they are, and a sample of them."""

from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beirnl.graph import Node
from beirnl.store.workspace import Workspace

#: Most documents of which a sample is drawn: of whole shards, which divide a corpus at random.
POOL = 60_000
_MEASURED = 10_000  # of which at least lengths are taken
_COLUMNS = ["row", "id", "title", "text"]
_MADE_OF = {
    "document": ("corpus", "index", "passages", "rows", "run", "run-0"),
    "query": ("queries", "run", "run-0", "rows"),
}


class Lengths(NamedTuple):
    """Mean bytes of a text with its title, and of an identifier."""

    text: float
    name: float


class Texts:
    """Texts by the nodes that hold them.

    Args:
        workspace: where they have been imported.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._pool = lru_cache(2)(self._read)  # texts are large
        self._lengths = cache(self._measure)

    def sample(self, node: Node, rows: int) -> pa.Table:
        """Rows drawn at random, as many as there are at most, the same every time: row, id, title, text."""
        return self._pool(self.of(node), POOL).slice(0, rows)

    def lengths(self, node: Node) -> Lengths:
        """How long texts and identifiers are."""
        return self._lengths(self.of(node))

    def _measure(self, node: Node) -> Lengths:
        pool = self._read(node, _MEASURED)
        sizes = {name: pc.sum(pc.binary_length(pool[name])).as_py() or 0 for name in _COLUMNS[1:]}
        rows = max(1, len(pool))
        return Lengths((sizes["title"] + sizes["text"]) / rows, sizes["id"] / rows)

    def of(self, node: Node) -> Node:
        """The node whose rows are those of a text: itself where they are there, else what it translates."""

        def is_there(node: Node) -> bool:
            return is_text(node) and node.artifact(self._workspace).find_manifest() is not None

        while "rows" in node.inputs and not is_there(node):
            node = node.inputs["rows"]
        return node

    def _read(self, node: Node, wanted: int) -> pa.Table:
        """Rows of the first shards, as many as are wanted at most, in an order of no meaning."""
        artifact, tables, rows = node.artifact(self._workspace), [], 0
        for number in range(len(artifact.parts)):
            if rows >= wanted:
                break
            tables.append(artifact.read(number).select(_COLUMNS))
            rows += len(tables[-1])
        table = pa.concat_tables(tables).combine_chunks()
        return table.take(np.random.default_rng(0).permutation(len(table))[:wanted])


def origin(node: Node, kind: str) -> Node:
    """The texts (``document`` or ``query``) that what a node makes is of."""
    name = next(name for name in _MADE_OF[kind] if name in node.inputs)
    found = node.inputs[name]
    return found if is_text(found) else origin(found, kind)


def is_text(node: Node) -> bool:
    """Whether a node holds texts, imported, translated or cut, or questions."""
    return node.stage in ("import-corpus", "import-queries", "check", "repair", "cut", "questions")
