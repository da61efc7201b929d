"""Exact search against a bare matrix product with top k, beir's exact search, and mteb's where it is there.

python benchmarks/exact.py [--rows 1000000] [--queries 2000] [--threads 2] [--runs 3] [--only files]

Vectors are clustered (``vectors.py``). Every contestant runs in a process of its own, in turn; all but
``files`` have the vectors in memory before the clock starts. ``files`` streams them from Parquet as the stage
does, by units of 64 files, ids included. Memory is the process's peak, its libraries included.
"""

import argparse
import hashlib
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import vectors as generator

from beirnl.retrieval.exact import ExactSearch
from beirnl.retrieval.topk import id_ranks, merge_each
from beirnl.retrieval.vectors import VectorFiles

FILES_PER_UNIT = 64
BARE_BLOCK = 65_536
RATIOS = [  # contestant, peer, what is asked
    ("float32", "bare-float32", 0.85),
    ("bfloat16", "bare-bfloat16", 0.85),
    ("bfloat16", "beir", 2.0),
    ("bfloat16", "mteb", 4.0),
    ("files", "beir", 2.0),
]


def bare(documents: np.ndarray, queries: np.ndarray, depth: int, dtype: str) -> Callable[[], Any]:
    import torch

    left = torch.from_numpy(queries).to(getattr(torch, dtype))
    right = torch.from_numpy(documents).to(left.dtype)

    def search() -> None:
        best = torch.empty(len(left), 0, dtype=left.dtype), torch.empty(len(left), 0, dtype=torch.long)
        for begin in range(0, len(right), BARE_BLOCK):
            products = left @ right[begin : begin + BARE_BLOCK].T
            values, places = torch.topk(products, min(depth, products.shape[1]), dim=1)
            values, places = torch.cat([best[0], values], 1), torch.cat([best[1], places + begin], 1)
            values, chosen = torch.topk(values, min(depth, values.shape[1]), dim=1)
            best = values, places.gather(1, chosen)

    return search


def project(documents: np.ndarray, queries: np.ndarray, depth: int, dtype: Any) -> Callable[[], pa.Table]:
    ids = pa.array([f"d{n}" for n in range(len(documents))])
    names = pa.array([f"q{n}" for n in range(len(queries))])

    def search() -> pa.Table:
        ranks, ascending = id_ranks(ids)
        found = ExactSearch(queries, depth, products=dtype)
        found.add(documents, ranks)
        return merge_each([found.top.run(names, ascending)], depth)

    return search


def project_files(paths: list[Path], queries: np.ndarray, depth: int) -> Callable[[], pa.Table]:
    names = pa.array([f"q{n}" for n in range(len(queries))])

    def unit(part: list[Path]) -> pa.Table:
        files = VectorFiles(part)
        ranks, ascending = id_ranks(files.ids())
        found = ExactSearch(queries, depth)
        for begin, block in files.blocks(found.block_rows):
            found.add(block, ranks[begin : begin + len(block)])
        return found.top.run(names, ascending)

    units = [paths[begin : begin + FILES_PER_UNIT] for begin in range(0, len(paths), FILES_PER_UNIT)]
    return lambda: merge_each((unit(part) for part in units), depth)


class Ready:
    """A model whose texts are numbers of vectors that are there already."""

    def __init__(self, documents: np.ndarray, queries: np.ndarray) -> None:
        import torch

        self._documents, self._queries = torch.from_numpy(documents), torch.from_numpy(queries)
        self._next = 0

    def encode_queries(self, queries: list[str], **_: object) -> Any:
        return self._queries

    def encode_corpus(self, corpus: list[dict], **_: object) -> Any:
        first = int(corpus[0]["title"])
        return self._documents[first : first + len(corpus)]

    def encode(self, loader: Any, **_: object) -> Any:
        begin, self._next = self._next, self._next + len(loader.dataset)
        return self._documents[begin : self._next]


def beir(documents: np.ndarray, queries: np.ndarray, depth: int) -> Callable[[], Any]:
    from beir.retrieval.search.dense import DenseRetrievalExactSearch

    width = len(str(len(documents)))  # equally long, so that sorting by length keeps the order
    corpus = {f"d{n}": {"title": f"{n:0{width}}"} for n in range(len(documents))}
    names = {f"q{n}": "" for n in range(len(queries))}
    search = DenseRetrievalExactSearch(Ready(documents, queries), show_progress_bar=False)
    return lambda: search.search(corpus, names, depth, "cos_sim")


def mteb(documents: np.ndarray, queries: np.ndarray, depth: int) -> Callable[[], Any]:
    import torch
    from datasets import Dataset
    from mteb.models.search_wrappers import chunked_full_corpus_search
    from mteb.similarity_functions import cos_sim

    ids = [f"d{n}" for n in range(len(documents))]
    corpus = Dataset.from_dict({"id": ids, "title": [""] * len(ids), "text": [""] * len(ids)})
    task: Any = type(
        "Task", (), {"modalities": ["text"], "name": "", "get_modalities": lambda *_: ["text"]}
    )()
    return lambda: chunked_full_corpus_search(
        task_corpus=corpus,
        corpus_chunk_size=50_000,
        query_idx_to_id={n: f"q{n}" for n in range(len(queries))},
        query_embeddings=torch.from_numpy(queries),
        task_metadata=task,
        hf_subset="default",
        hf_split="test",
        top_k=depth,
        encode_kwargs={"show_progress_bar": False},
        encode_fn=Ready(documents, queries).encode,
        similarity_fn=cos_sim,
        search_k_offset=1,
    )


def contestants(given: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    """What makes each contestant ready."""
    paths = sorted(given.folder.glob("*.parquet"))
    queries = np.load(given.folder / "queries.npy")

    def documents() -> np.ndarray:
        (block,) = VectorFiles(paths).blocks(given.rows)
        return block.vectors

    return {
        "bare-float32": lambda: bare(documents(), queries, given.depth, "float32"),
        "float32": lambda: project(documents(), queries, given.depth, "float32"),
        "bare-bfloat16": lambda: bare(documents(), queries, given.depth, "bfloat16"),
        "bfloat16": lambda: project(documents(), queries, given.depth, "bfloat16"),
        "files": lambda: project_files(paths, queries, given.depth),
        "beir": lambda: beir(documents(), queries, given.depth),
        "mteb": lambda: mteb(documents(), queries, given.depth),
    }


def contest(given: argparse.Namespace) -> None:
    """Run one contestant and print what it took."""
    import torch

    torch.set_num_threads(given.threads)
    try:
        search = contestants(given)[given.contestant]()
    except ImportError as error:
        print(json.dumps({"missing": str(error)}))
        return
    begin, cpu = time.perf_counter(), time.process_time()
    found = search()
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    digest = ""
    if isinstance(found, pa.Table):
        digest = hashlib.sha256(json.dumps(found.to_pydict()).encode()).hexdigest()[:12]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "cpu": cpu, "megabytes": peak, "run": digest}))


def measure(name: str, given: argparse.Namespace) -> dict[str, Any]:
    arguments = [
        f"--{key}={getattr(given, key)}" for key in ("rows", "queries", "depth", "threads", "folder")
    ]
    command = [sys.executable, __file__, f"--contestant={name}", *arguments]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(result.stdout.splitlines()[-1])


def compare(given: argparse.Namespace) -> None:
    clusters = generator.Clusters(given.dimension)
    if not (given.folder / "queries.npy").exists():
        generator.write(given.folder, clusters, given.rows)
        np.save(given.folder / "queries.npy", clusters.queries(given.queries))
    names = given.only or list(contestants(given))
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(given.runs):
        for name in names:
            results[name].append(measure(name, given))
    print(
        f"{given.rows:,} x {given.dimension} float32 ({given.rows * given.dimension * 4 / 2**20:,.0f} MB), "
        f"{given.queries:,} queries, top {given.depth}, {given.threads} threads, median of {given.runs}"
    )
    medians = {}
    for name, runs in results.items():
        if "missing" in runs[0]:
            print(f"  {name:14} not run: {runs[0]['missing']}")
            continue
        medians[name] = statistics.median(run["seconds"] for run in runs)
        peak, cpu = max(run["megabytes"] for run in runs), statistics.median(run["cpu"] for run in runs)
        print(
            f"  {name:14} {medians[name]:8.2f} s   CPU {cpu:8.2f} s   peak {peak:6,.0f} MB   {runs[0]['run']}"
        )
    for name, peer, asked in RATIOS:
        if name in medians and peer in medians:
            print(f"  {name} / {peer}: {medians[peer] / medians[name]:.2f} times its speed (asked: {asked})")
    digests = {run["run"] for runs in results.values() for run in runs if run.get("run")}
    print(f"  runs of this project are {'equal' if len(digests) <= 1 else 'DIFFERENT'}")
    sys.exit(len(digests) > 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="+", help="contestants to run")
    parser.add_argument(
        "--folder", type=Path, help="keeps the vectors for the next time; else a temporary one"
    )
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.contestant:
        contest(given)
        return
    with tempfile.TemporaryDirectory() as folder:
        given.folder = given.folder or Path(folder)
        compare(given)


if __name__ == "__main__":
    main()
