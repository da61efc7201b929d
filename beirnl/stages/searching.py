"""What searches have in common: how deep they go, what each unit of them holds, and how units are grouped."""

import numpy as np
import pyarrow as pa

from beirnl.schema import RUN
from beirnl.specs import Spec


class SearchSpec(Spec):
    """How deep to search, and whether a hit whose id is the query's is dropped before the cut."""

    depth: int
    remove_self_matches: bool = False


def group(number: int, units: int, parts: int) -> range:
    """The shards of a unit: consecutive, as even as can be."""
    return range(number * parts // units, (number + 1) * parts // units)


def run_of(query: str, ids: list[str], scores: np.ndarray) -> pa.Table:
    """The run of one query."""
    return pa.table([[query] * len(ids), list(ids), np.asarray(scores, np.float32)], schema=RUN)
