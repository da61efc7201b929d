"""Approximate search against plain USearch with the same parameters, and its recall against exact search.

python benchmarks/ann.py [--rows 1000000] [--queries 2000] [--depth 100] [--threads 2] [--expansions 256 512]

Vectors are clustered (``vectors.py``). Each builds by one thread: USearch from an array in memory into a
file; this project from Parquet files into a unit, with identifiers and the embedded vectors. Each then
searches its mapped file: USearch for keys, this project for hits with exact scores, which give the recall.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import vectors as generator
from usearch.index import Index

from beirnl.retrieval.ann import AnnIndex, build, recalls
from beirnl.retrieval.vectors import VectorFiles
from beirnl.stages.ann import AnnIndexSpec, AnnSearchSpec, recall_of

SPEED, RECALL = 0.9, 0.99  # what is asked
Times = tuple[float, float]


def seconds(work: Callable[[], object]) -> Times:
    """Wall time and CPU time."""
    begin, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - begin, time.process_time() - cpu


def plain_build(files: VectorFiles, path: Path, spec: AnnIndexSpec) -> Callable[[], object]:
    (block,) = files.blocks(files.rows)
    keys = np.arange(files.rows, dtype=np.uint64)

    def work() -> None:
        index = Index(
            ndim=files.dimension,
            metric="ip",
            dtype=spec.numbers,
            connectivity=spec.connectivity,
            expansion_add=spec.expansion_add,
        )
        index.add(keys, block.vectors, threads=1)
        index.save(str(path))

    return work


def project_build(files: VectorFiles, folder: Path, spec: AnnIndexSpec) -> Callable[[], object]:
    folder.mkdir()
    return lambda: build(files, folder, **spec.model_dump())


def show(what: str, rows: int, plain: Sequence[Times], own: Sequence[Times]) -> None:
    wall, cpu = ([statistics.median(one[kind] for one in times) for times in (plain, own)] for kind in (0, 1))
    print(
        f"  {what:24} USearch {rows / wall[0]:9,.0f}/s, this {rows / wall[1]:9,.0f}/s: "
        f"{wall[0] / wall[1]:.2f} of its speed, {cpu[0] / cpu[1]:.2f} by CPU time (asked: {SPEED})",
        flush=True,
    )


def compare_search(folder: Path, queries: np.ndarray, given: argparse.Namespace) -> None:
    names = pa.array([f"q{n}" for n in range(len(queries))])
    unit = AnnIndex(folder / "unit", 64)
    exact = unit.exact(queries, given.depth).run(names, unit.ids)
    for expansion in given.expansions:
        plain = Index.restore(str(folder / "plain.usearch"), view=True)
        plain.expansion_search = expansion
        index = AnnIndex(folder / "unit", expansion)
        ask = partial(plain.search, queries, given.depth, threads=given.threads)
        ask_own = partial(index.search, queries, given.depth, threads=given.threads)
        times = [(seconds(ask), seconds(ask_own)) for _ in range(given.runs)]
        show(f"search, expansion {expansion}", len(queries), *zip(*times, strict=True))
        recall = recall_of(recalls(ask_own().run(names, index.ids), exact))
        print(
            f"  recall@{given.depth} {recall.mean:.4f}, 95 % interval {recall.low:.4f} to {recall.high:.4f} "
            f"over {recall.queries:,} queries (asked of the lower end: {RECALL})",
            flush=True,
        )


def compare(folder: Path, given: argparse.Namespace) -> None:
    spec = AnnIndexSpec(
        numbers=given.numbers, connectivity=given.connectivity, expansion_add=given.expansion_add
    )
    clusters = generator.Clusters(given.dimension)
    queries = clusters.queries(given.queries)
    print(
        f"{given.rows:,} x {given.dimension}, {given.queries:,} queries, top {given.depth}, {spec.numbers}, "
        f"connectivity {spec.connectivity}, expansion_add {spec.expansion_add}, {given.threads} threads"
    )
    if not (folder / "unit").exists():
        files = VectorFiles(generator.write(folder / "files", clusters, given.rows))
        plain = seconds(plain_build(files, folder / "plain.usearch", spec))
        own = seconds(project_build(files, folder / "unit", spec))
        show("build, one thread", given.rows, [plain], [own])
    compare_search(folder, queries, given)


def main() -> None:
    default = AnnIndexSpec()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2, help="of the search")
    parser.add_argument("--runs", type=int, default=3, help="of the search; each builds once")
    parser.add_argument("--numbers", choices=["bf16", "i8"], default=default.numbers)
    parser.add_argument("--connectivity", type=int, default=default.connectivity)
    parser.add_argument("--expansion-add", type=int, default=default.expansion_add)
    parser.add_argument(
        "--expansions", type=int, nargs="+", default=[AnnSearchSpec(depth=1).expansion_search]
    )
    parser.add_argument("--folder", type=Path, help="keeps what was built for the next time")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kept = given.folder or Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        compare(kept, given)


if __name__ == "__main__":
    sys.exit(main())
