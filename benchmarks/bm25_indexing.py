"""Documents per second from Parquet shards to a BM25 index, against bm25s, plain Tantivy and Lucene.

python benchmarks/bm25_indexing.py FOLDER [--documents 100000] [--workers 2] [--jar ANSERINI.jar]

Analysis is included everywhere. This project runs in as many processes as are asked for, each on a core of
its own, which have been started before the clock does, and combines their units; Lucene has as many threads,
reads the JSON lines, and merges its segments; bm25s and Tantivy's loop have one process. FOLDER is made if it
is not there.
"""

import tempfile
from collections import defaultdict
from pathlib import Path

import bm25_peers as peers
import bm25_tantivy
import pyarrow.parquet as pq


def main() -> None:
    parser = peers.options(__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    peers.make_corpus(arguments.folder, arguments.documents, arguments.queries)
    documents = sum(pq.read_metadata(shard).num_rows for shard in peers.shards_of(arguments.folder))
    peers.conditions(arguments, documents)
    ours: dict[int, list[float]] = defaultdict(list)
    theirs: dict[str, list[float]] = defaultdict(list)
    here = peers.there(arguments)
    for _ in range(arguments.runs):
        for workers in arguments.workers:
            with tempfile.TemporaryDirectory() as name:
                arrangement = arguments.folder, Path(name), arguments.profile, workers
                ours[workers].append(documents / peers.project_build(*arrangement))
        with tempfile.TemporaryDirectory() as name:
            if "bm25s" in here:
                seconds = peers.fresh(peers.bm25s_build, arguments.folder, Path(name) / "bm25s")
                theirs["bm25s"].append(documents / seconds)
            if "tantivy" in here:
                built = arguments.folder, Path(name) / "tantivy", arguments.profile
                theirs["tantivy, one process"].append(documents / peers.fresh(bm25_tantivy.build, *built))
        if "lucene" in here:
            figures = peers.lucene(arguments, max(arguments.workers), 100)
            theirs[f"lucene, {max(arguments.workers)} threads"].append(figures["documents/s"])
    if len(ours) > 1:
        theirs |= {f"this project, {workers} workers": values for workers, values in ours.items()}
    for workers, values in ours.items():
        peers.show(f"this project, {workers} workers", values, theirs, "documents/s")


if __name__ == "__main__":
    main()
