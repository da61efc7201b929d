"""Approximate search against plain USearch with the same parameters, and its recall against exact search.

python benchmarks/ann.py [--rows 1000000] [--queries 2000] [--depth 100] [--threads 2] [--expansions 256]

Vectors are clustered (``vectors.py``), and divided into units as the stage divides them. Each unit is built
in a process of its own by one thread, ``--threads`` of them at once: by USearch from a ``.npy`` file that has
just been written into a file; by this project from Parquet files into a unit, with identifiers and the
embedded vectors. Each then searches mapped files:
USearch for keys, unit by unit, the best of which numpy keeps; this project for a run with exact scores.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import vectors as generator
from usearch.index import Index

from beirnl.retrieval.ann import AnnIndex, build, recalls, rescored
from beirnl.retrieval.topk import merge_each
from beirnl.retrieval.vectors import VectorFiles
from beirnl.stages.ann import VECTORS_PER_INDEX, AnnIndexSpec, AnnSearchSpec, recall_of
from beirnl.stages.searching import group

SPEED, RECALL = 0.9, 0.99  # what is asked
Times = tuple[float, float]


def seconds(work: Callable[[], object]) -> Times:
    """Wall time and CPU time."""
    begin, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - begin, time.process_time() - cpu


def build_plain(folder: Path, number: int, array: Path, spec: AnnIndexSpec) -> float:
    """A graph by USearch; seconds of CPU."""
    begin, vectors = time.process_time(), np.load(array)
    index = Index(
        ndim=vectors.shape[1],
        metric="ip",
        dtype=spec.numbers,
        connectivity=spec.connectivity,
        expansion_add=spec.expansion_add,
    )
    index.add(np.arange(len(vectors), dtype=np.uint64), vectors, threads=1)
    index.save(str(folder / f"plain-{number}"))
    return time.process_time() - begin


def build_unit(folder: Path, number: int, files: VectorFiles, spec: AnnIndexSpec) -> float:
    """A unit by this project; seconds of CPU."""
    begin, out = time.process_time(), folder / f"unit-{number}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    build(files, out, **spec.model_dump())
    return time.process_time() - begin


class Contest:
    """Both contestants on the same vectors and queries."""

    def __init__(self, folder: Path, given: argparse.Namespace) -> None:
        self.folder, self.given = folder, given
        self.spec = AnnIndexSpec(
            numbers=given.numbers, connectivity=given.connectivity, expansion_add=given.expansion_add
        )
        clusters = generator.Clusters(given.dimension)
        self.queries = clusters.queries(given.queries)
        self.names = pa.array([f"q{n}" for n in range(given.queries)])
        paths = sorted((folder / "files").glob("*.parquet"))
        if not paths:
            paths = generator.write(folder / "files", clusters, given.rows)
        units = min(len(paths), -(-given.rows // given.unit))
        self.units = [
            VectorFiles([paths[place] for place in group(number, units, len(paths))])
            for number in range(units)
        ]

    def plain_build(self) -> Times:
        """All units; their vectors are in files of numpy before the clock starts."""
        arrays = [self.folder / f"plain-{number}.npy" for number in range(len(self.units))]
        for array, files in zip(arrays, self.units, strict=True):
            np.save(array, next(iter(files.blocks(files.rows))).vectors)
        return self._each(build_plain, arrays)

    def project_build(self) -> Times:
        return self._each(build_unit, self.units)

    def _each(self, build_one: Callable[..., float], inputs: Sequence[Any]) -> Times:
        """Wall time, and the CPU time of all, in processes that have been started before."""
        folders = [self.folder] * len(inputs)
        with ProcessPoolExecutor(self.given.threads, get_context("spawn")) as pool:
            list(pool.map(time.sleep, [0.5] * self.given.threads))
            begin = time.perf_counter()
            cpu = sum(pool.map(build_one, folders, range(len(inputs)), inputs, [self.spec] * len(inputs)))
            return time.perf_counter() - begin, cpu

    def plain_search(self, expansion: int) -> Callable[[], object]:
        indexes = [
            Index.restore(str(self.folder / f"plain-{number}"), view=True)
            for number in range(len(self.units))
        ]
        for index in indexes:
            index.expansion_search = expansion

        def work() -> np.ndarray:
            given = self.given
            found = [index.search(self.queries, given.depth, threads=given.threads) for index in indexes]
            distances = np.concatenate([matches.distances for matches in found], axis=1)
            return np.argpartition(distances, given.depth - 1, axis=1)[:, : given.depth]

        return work

    def project_search(self, expansion: int) -> Callable[[], pa.Table]:
        indexes = self.opened(expansion)

        def work() -> pa.Table:
            threads, depth = self.given.threads, self.given.depth
            found = (
                index.candidates(self.queries, index.fetched(depth), threads=threads) for index in indexes
            )
            return rescored(indexes, found, self.queries, self.names, depth, threads=threads)

        return work

    def exact(self) -> pa.Table:
        depth = self.given.depth
        runs = (unit.exact(self.queries, depth).run(self.names, unit.ids) for unit in self.opened(64))
        return merge_each(runs, depth)

    def opened(self, expansion: int) -> list[AnnIndex]:
        return [AnnIndex(self.folder / f"unit-{number}", expansion) for number in range(len(self.units))]


def show(what: str, rows: int, plain: Sequence[Times], own: Sequence[Times]) -> None:
    wall, cpu = ([statistics.median(one[kind] for one in times) for times in (plain, own)] for kind in (0, 1))
    print(
        f"  {what:24} USearch {rows / wall[0]:9,.0f}/s, this {rows / wall[1]:9,.0f}/s: "
        f"{wall[0] / wall[1]:.2f} of its speed, {cpu[0] / cpu[1]:.2f} by CPU time (asked: {SPEED})",
        flush=True,
    )


def compare(folder: Path, given: argparse.Namespace) -> None:
    contest = Contest(folder, given)
    spec = contest.spec
    print(
        f"{given.rows:,} x {given.dimension} in {len(contest.units)} units, {given.queries:,} queries, "
        f"top {given.depth}, {spec.numbers}, connectivity {spec.connectivity}, "
        f"expansion_add {spec.expansion_add}, {given.threads} threads, median of {given.runs} searches"
    )
    if not (folder / "unit-0").exists():
        show("build", given.rows, [contest.plain_build()], [contest.project_build()])
    exact = contest.exact()
    for expansion in given.expansions:
        plain, own = contest.plain_search(expansion), contest.project_search(expansion)
        plain(), own()  # pages of the mapped files are read
        times = [(seconds(plain), seconds(own)) for _ in range(given.runs)]
        show(f"search, expansion {expansion}", given.queries, *zip(*times, strict=True))
        recall = recall_of(recalls(own(), exact))
        print(
            f"  recall@{given.depth} {recall.mean:.4f}, 95 % interval {recall.low:.4f} to {recall.high:.4f} "
            f"over {recall.queries:,} queries (asked of the lower end: {RECALL})",
            flush=True,
        )


def main() -> None:
    default = AnnIndexSpec()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2, help="of the search, and units built at once")
    parser.add_argument("--runs", type=int, default=3, help="of the search; each builds once")
    parser.add_argument("--unit", type=int, default=VECTORS_PER_INDEX, help="vectors of an index")
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
