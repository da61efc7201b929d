"""Queries per second and core of BM25, top 100, against bm25s with numba, plain Tantivy and Lucene.

python benchmarks/bm25_search.py FOLDER [--documents 100000] [--profile flat] [--jar ANSERINI.jar]

Each searches in a process of its own on one thread, the analysis of the queries included; this project also
in two processes. bm25s knows one field only (``--profile flat``). Private memory leaves out the pages of
mapped files.
"""

import os
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import bm25_peers as peers
import bm25_tantivy
import pyarrow.parquet as pq

OURS = "this project"


def main() -> None:
    parser = peers.options(__doc__)
    parser.add_argument("--k", type=int, default=100)
    arguments = parser.parse_args()
    peers.make_corpus(arguments.folder, arguments.documents, arguments.queries)
    documents = sum(pq.read_metadata(shard).num_rows for shard in peers.shards_of(arguments.folder))
    peers.conditions(arguments, documents)
    queries = peers.queries_of(arguments.folder, arguments.queries)
    os.environ["NUMBA_NUM_THREADS"] = "1"
    here = [name for name in peers.there(arguments) if name != "bm25s" or arguments.profile == "flat"]
    figures: dict[str, list[dict[str, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peers.project_build(arguments.folder, folder, arguments.profile, 2)
        ours = peers.project_search, folder / "index", arguments.profile, queries, arguments.k
        contestants: dict[str, tuple[Any, ...]] = {OURS: (*ours, 1), f"{OURS}, 2 workers": (*ours, 2)}
        if "bm25s" in here:
            peers.fresh(peers.bm25s_build, arguments.folder, folder / "bm25s")
            contestants["bm25s"] = (peers.bm25s_search, folder / "bm25s", queries, arguments.k)
        if "tantivy" in here:
            peers.fresh(bm25_tantivy.build, arguments.folder, folder / "tantivy", arguments.profile)
            plain = bm25_tantivy.search, folder / "tantivy", arguments.profile, queries, arguments.k
            contestants["tantivy"] = plain
        for _ in range(arguments.runs):
            for contestant, call in contestants.items():
                figures[contestant].append(peers.fresh(*call))
            if "lucene" in here:
                figures["lucene"].append(peers.lucene(arguments, 1, arguments.k))
    speeds = {contestant: [run["queries/s"] for run in runs] for contestant, runs in figures.items()}
    peers.show(OURS, speeds.pop(OURS), speeds, "queries/s")
    for contestant, runs in figures.items():
        if "private" in runs[0]:
            print(f"private memory, {contestant}: {max(run['private'] for run in runs) / 1e6:,.0f} MB")


if __name__ == "__main__":
    main()
