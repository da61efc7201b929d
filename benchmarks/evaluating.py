"""Speed of evaluation beside bare pytrec_eval, which is given dictionaries that are ready, or makes them.

    python benchmarks/evaluating.py [--queries 6980] [--hits 1000] [--measures nDCG@10 R@100]

Three ways from the same run, in turn, on one thread each: pytrec_eval alone on dictionaries that were made
before (what the figure is measured against), pytrec_eval with dictionaries made from the same table, and
``beirnl.evaluation.measures.evaluate`` on that table, its checks included. Values must be equal.
"""

import argparse
import os

os.environ.setdefault("POLARS_MAX_THREADS", "1")

import statistics
import time

import numpy as np
import polars as pl
import pyarrow as pa
import pytrec_eval

from beirnl import schema
from beirnl.evaluation.measures import evaluate, parse

TURNS = 3
DOCUMENTS = 1_000_000


def made(queries: int, hits: int) -> tuple[pa.Table, pa.Table]:
    """A run with float32 scores, some of them tied, in the stages' order; one or two relevant documents."""
    generator = np.random.default_rng(7)
    scores = -np.sort(-np.round(generator.gamma(9.0, 1.5, (queries, hits)), 3), axis=1)
    docs = generator.integers(0, DOCUMENTS // hits, (queries, hits)) * hits + np.arange(hits)
    ids = [f"q{number}" for number in range(queries)]
    frame = pl.DataFrame(
        {
            "query_id": np.repeat(ids, hits),
            "doc_id": pl.Series(docs.ravel()).cast(pl.String),
            "score": scores.ravel().astype(np.float32),
            "place": np.repeat(np.arange(queries), hits),
        }
    )
    frame = frame.sort("place", "score", "doc_id", descending=[False, True, True]).drop("place")
    relevant = [
        (q, str(docs[q, at])) for q in range(queries) for at in generator.integers(0, hits // 2, 1 + q % 2)
    ]
    qrels = pl.DataFrame(
        {"query_id": [ids[q] for q, _ in relevant], "doc_id": [doc for _, doc in relevant], "relevance": 1}
    ).unique(maintain_order=True)
    return frame.to_arrow().cast(schema.RUN), qrels.to_arrow().cast(schema.QRELS)


def nested(table: pa.Table, value: str) -> dict[str, dict[str, float]]:
    """Dictionaries as one would make them for pytrec_eval."""
    made: dict[str, dict[str, float]] = {}
    columns = (table[name].to_pylist() for name in ("query_id", "doc_id", value))
    for query, doc, number in zip(*columns, strict=True):
        made.setdefault(query, {})[doc] = number
    return made


def bare(run: dict, qrels: dict, names: list[str]) -> dict:
    """pytrec_eval alone."""
    return pytrec_eval.RelevanceEvaluator(qrels, {one.trec for one in parse(names)}).evaluate(run)


def seconds(work) -> tuple[float, object]:
    """CPU seconds of a piece of work, and its result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def main() -> None:
    """Project and bare pytrec_eval in turn; prints medians, their ratio and the conditions."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=6980)
    parser.add_argument("--hits", type=int, default=1000)
    parser.add_argument("--measures", nargs="+", default=["nDCG@10", "R@100"])
    told = parser.parse_args()
    run, qrels = made(told.queries, told.hits)
    ready = nested(run, "score"), nested(qrels, "relevance")
    ways = {
        "pytrec_eval on dictionaries that are ready": lambda: bare(*ready, told.measures),
        "pytrec_eval from the Arrow table": lambda: bare(
            nested(run, "score"), nested(qrels, "relevance"), told.measures
        ),
        "beirnl from the Arrow table": lambda: evaluate(run, qrels, told.measures),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(TURNS):
        for name, work in ways.items():
            spent, result = seconds(work)
            taken[name].append(spent)
            if isinstance(result, dict):
                peer = result
    for one in parse(told.measures):
        if one.trec == "recip_rank" and one.cutoff:
            continue  # which trec_eval has without a cutoff only
        ours = dict(result.filter(measure=one.name).select("query_id", "value").rows())
        assert ours == {query: found[one.trec] for query, found in peer.items()}, one
    print(
        f"{told.queries:,} queries x {told.hits:,} hits, {', '.join(told.measures)}; medians of {TURNS}, "
        f"seconds of CPU, load {os.getloadavg()[0]:.1f}"
    )
    medians = {name: statistics.median(values) for name, values in taken.items()}
    first = next(iter(medians.values()))
    for name, median in medians.items():
        turns = ", ".join(f"{value:.2f}" for value in taken[name])
        print(f"{name:44} {median:6.2f} s  {median / first:5.2f} of the first  ({turns})")


if __name__ == "__main__":
    main()
