"""Rows of an artifact by their identifiers."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from beirnl.retrieval.bm25.forward import hashes
from beirnl.store.artifacts import Artifact

_SHARDS = 64  # kept as they were read


class Row(NamedTuple):
    """A query or document; ``status`` is the verdict of the checks on a translation, or empty."""

    title: str
    text: str
    status: str = ""


class _Places(NamedTuple):
    """Where each row is: hashes of identifiers, ascending, and the rows that have them, in all shards."""

    hashes: np.ndarray
    rows: np.ndarray


class Texts:
    """Finds rows among any number of shards: 16 bytes per row, and the shards that were read last.

    Args:
        artifact: rows with the columns of ``CORPUS``.
    """

    def __init__(self, artifact: Artifact) -> None:
        self._artifact = artifact
        self._begins = np.cumsum([0, *(part.rows for part in artifact.parts)])
        self._shard = lru_cache(_SHARDS)(artifact.read)

    @cached_property
    def _places(self) -> _Places:
        shards = [_hashes(shard["id"].combine_chunks()) for shard in self._artifact.tables(["id"])]
        found = np.concatenate([np.empty(0, np.uint64), *shards])
        order = np.argsort(found, kind="stable")
        return _Places(found[order], order)

    def find(self, ids: Sequence[str]) -> dict[str, Row]:
        """The rows that have these identifiers; what is not there is not in the answer."""
        wanted = _hashes(pa.array(ids, pa.string()))
        places = self._places
        begins, ends = (np.searchsorted(places.hashes, wanted, side) for side in ("left", "right"))
        found = {}
        for name, begin, end in zip(ids, begins, ends, strict=True):
            for row in places.rows[begin:end]:  # more than one where identifiers have one hash
                number = int(np.searchsorted(self._begins, row, "right")) - 1
                here = self._shard(number).slice(row - self._begins[number], 1).to_pylist()[0]
                if here["id"] == name:
                    found[name] = Row(here["title"], here["text"], here.get("status", ""))
        return found


def _hashes(ids: pa.Array) -> np.ndarray:
    return hashes(ids.cast(pa.large_string()))
