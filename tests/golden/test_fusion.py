"""Fused scores as in ranx 0.3.21: ``rrf``, and ``wsum`` after its norms ``min-max`` and ``zmuv``."""

import pyarrow as pa
import pytest

from beirnl.retrieval.fusion import fuse
from beirnl.schema import RUN

RUNS = [
    {
        "q1": {"d1": 12.5, "d2": 11.0, "d3": 7.25, "d4": 3.5},
        "q2": {"d5": 4.0, "d1": 2.5, "d7": 1.0},
    },
    {
        "q1": {"d3": 0.875, "d5": 0.75, "d1": 0.5, "d6": 0.25},
        "q2": {"d7": 0.75, "d1": 0.5, "d8": 0.125},
    },
    {"q1": {"d6": 31.0, "d2": 30.0, "d9": 28.0}, "q2": {"d8": 9.0, "d5": 6.0, "d2": 5.0}},
]
WEIGHTS = (0.5, 0.25, 1.0)
RANX = {
    "rrf": {
        ("q1", "d1"): 0.032266458,
        ("q1", "d2"): 0.032258065,
        ("q1", "d3"): 0.032266458,
        ("q1", "d4"): 0.015625,
        ("q1", "d5"): 0.016129032,
        ("q1", "d6"): 0.032018443,
        ("q1", "d9"): 0.015873016,
        ("q2", "d1"): 0.032258065,
        ("q2", "d2"): 0.015873016,
        ("q2", "d5"): 0.032522475,
        ("q2", "d7"): 0.032266458,
        ("q2", "d8"): 0.032266458,
    },
    "min-max": {
        ("q1", "d1"): 0.6,
        ("q1", "d2"): 1.083333333,
        ("q1", "d3"): 0.458333333,
        ("q1", "d4"): 0.0,
        ("q1", "d5"): 0.2,
        ("q1", "d6"): 1.0,
        ("q1", "d9"): 0.0,
        ("q2", "d1"): 0.4,
        ("q2", "d2"): 0.0,
        ("q2", "d5"): 0.75,
        ("q2", "d7"): 0.25,
        ("q2", "d8"): 1.0,
    },
    "z-score": {
        ("q1", "d1"): 0.46602785,
        ("q1", "d2"): 0.616199525,
        ("q1", "d3"): 0.105035205,
        ("q1", "d4"): -0.724717972,
        ("q1", "d5"): 0.162736139,
        ("q1", "d6"): 0.711025462,
        ("q1", "d9"): -1.33630621,
        ("q2", "d1"): 0.040555355,
        ("q2", "d2"): -0.980580676,
        ("q2", "d5"): 0.220140165,
        ("q2", "d7"): -0.328484949,
        ("q2", "d8"): 1.048370104,
    },
}


@pytest.mark.parametrize("method", RANX)
def test_fused_scores_equal_ranx(method):
    tables = [
        pa.Table.from_pylist(
            [
                {"query_id": query, "doc_id": doc, "score": score}
                for query, hits in run.items()
                for doc, score in hits.items()
            ],
            RUN,
        )
        for run in RUNS
    ]
    fused = fuse(tables, 10, method=method, weights=() if method == "rrf" else WEIGHTS)
    found = {(row["query_id"], row["doc_id"]): row["score"] for row in fused.to_pylist()}
    assert found == pytest.approx(RANX[method], abs=1e-7)
