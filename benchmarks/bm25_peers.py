"""What the benchmarks of BM25 share: a corpus in shards, this project, and the peers beside it.

Every function that is measured runs in a fresh process and returns numbers only.
"""

import argparse
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from memory import private_bytes

from beirnl.retrieval.analysis import ANALYZERS, analyzer
from beirnl.retrieval.bm25 import Bm25Index, UnitWriter, combine
from beirnl.specs import Bm25Spec
from beirnl.stages.bm25 import units_of

ANALYZER, LANGUAGE = "dutch", "nl"
SHARD = 10_000
TOOLS = Path("../shared/tools")
_QUERIES = 250  # in a call


def options(description: str | None) -> argparse.ArgumentParser:
    """What all of these benchmarks can be told."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="a BEIR folder; made if it is not there")
    parser.add_argument("--documents", type=int, default=100_000, help="of a folder that is made")
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--profile", choices=["elasticsearch", "flat"], default="elasticsearch")
    parser.add_argument("--jar", type=Path, help="Anserini's jar; without it there is no Lucene")
    parser.add_argument("--java", default="java", help="of version 21 or newer")
    parser.add_argument("--peers", nargs="*", default=["bm25s", "tantivy", "lucene"])
    return parser


def make_corpus(folder: Path, documents: int, queries: int) -> None:
    """A BEIR folder with the statistics of Dutch text, unless there is one."""
    if not (folder / "corpus.jsonl").exists():
        made = [sys.executable, TOOLS / "make_corpus.py", "--out", folder]
        subprocess.run([*made, "--docs", str(documents), "--queries", str(queries)], check=True)


def shards_of(folder: Path) -> list[Path]:
    """The corpus as Parquet files, as importing leaves it."""
    out = folder / "shards"
    if not out.exists():
        partial = folder / "shards.partial"
        partial.mkdir(exist_ok=True)
        for number, table in enumerate(_read(folder / "corpus.jsonl")):
            pq.write_table(table, partial / f"{number:05d}.parquet", compression="zstd")
        partial.rename(out)
    return sorted(out.glob("*.parquet"))


def _read(file: Path) -> Iterator[pa.Table]:
    decode, rows = msgspec.json.Decoder().decode, []
    with file.open("rb") as lines:
        for line in lines:
            row = decode(line)
            rows.append({"id": row["_id"], "title": row["title"], "text": row["text"]})
            if len(rows) == SHARD:
                yield pa.Table.from_pylist(rows)
                rows = []
    if rows:
        yield pa.Table.from_pylist(rows)


def queries_of(folder: Path, number: int) -> list[str]:
    """The first queries of a folder."""
    lines = (folder / "queries.jsonl").read_bytes().splitlines()[:number]
    return [msgspec.json.decode(line)["text"] for line in lines]


def joined(folder: Path) -> Iterator[str]:
    """Title and text of each document."""
    for shard in shards_of(folder):
        table = pq.read_table(shard)
        for title, text in zip(table["title"].to_pylist(), table["text"].to_pylist(), strict=True):
            yield f"{title} {text}".strip()


def fresh(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def spec_of(profile: str) -> Bm25Spec:
    """The conditions of this project's index."""
    return Bm25Spec(profile=profile, analyzer=ANALYZER)


def unit(out: Path, shards: list[Path], first_row: int, profile: str) -> None:
    """A unit of this project's index."""
    writer = UnitWriter(out, spec_of(profile), first_row)
    for shard in shards:
        table = pq.read_table(shard)
        writer.add(table["id"], table["title"], table["text"])
    writer.close()


def project_build(folder: Path, out: Path, profile: str, workers: int) -> float:
    """Seconds in which workers that are started already build an index."""
    shards = shards_of(folder)
    units = units_of(len(shards), sum(pq.read_metadata(shard).num_rows for shard in shards))
    cuts = [len(shards) * i // units for i in range(units + 1)]
    groups = [shards[a:b] for a, b in pairwise(cuts) if a < b]
    rows = [sum(pq.read_metadata(shard).num_rows for shard in group) for group in groups]
    firsts = [sum(rows[:i]) for i in range(len(rows))]
    with on_cores(workers) as pool:
        list(pool.map(_warm, range(workers * 4)))
        begin = time.monotonic()
        folders = [out / f"unit-{i}" for i in range(len(groups))]
        list(pool.map(unit, folders, groups, firsts, [profile] * len(groups)))
        combine(folders, out / "index", spec_of(profile))
        return time.monotonic() - begin


def on_cores(workers: int) -> ProcessPoolExecutor:
    """Processes of which each has a core of its own, whatever threads its libraries start."""
    context = get_context("spawn")
    return ProcessPoolExecutor(workers, context, _take_core, (context.Value("i", 0),))


def _take_core(taken: Any) -> None:
    cores = sorted(os.sched_getaffinity(0))
    with taken.get_lock():
        os.sched_setaffinity(0, {cores[taken.value % len(cores)]})
        taken.value += 1


def _warm(_: int) -> None:
    analyzer(ANALYZER).terms("warm")
    importlib.import_module("tantivy")
    time.sleep(0.1)


_OPENED: list[Bm25Index] = []


def project_search(index: Path, profile: str, queries: list[str], k: int, workers: int) -> dict[str, float]:
    """Queries per second of workers that have the index open, and private memory of one of them."""
    with on_cores(workers) as pool:
        list(pool.map(_open, [index] * workers, [profile] * workers, [queries[:20]] * workers))
        begin = time.monotonic()
        parts = [queries[start : start + _QUERIES] for start in range(0, len(queries), _QUERIES)]
        private = list(pool.map(_search, parts, [k] * len(parts)))
        return {"queries/s": len(queries) / (time.monotonic() - begin), "private": max(private)}


def _open(index: Path, profile: str, queries: list[str]) -> None:
    _OPENED.append(Bm25Index.open(index, spec_of(profile)))
    _OPENED[0].search(queries, 10)
    time.sleep(1)  # so that each worker gets one of these calls


def _search(queries: list[str], k: int) -> int:
    _OPENED[0].search(queries, k)
    return private_bytes()


def bm25s_build(folder: Path, out: Path) -> float:
    """Seconds in which bm25s tokenises and indexes with the same stemmer and stop list."""
    import bm25s

    texts = list(joined(folder))
    begin = time.monotonic()
    tokens = _bm25s_tokens(texts)
    index = bm25s.BM25(method="lucene", k1=1.2, b=0.75, backend="numba")
    index.index(tokens, show_progress=False)
    seconds = time.monotonic() - begin
    index.save(out)
    return seconds


def _bm25s_tokens(texts: list[str], ids: bool = True) -> Any:
    import bm25s
    import Stemmer

    stop = sorted(analyzer(ANALYZER)._stop)
    stemmer = Stemmer.Stemmer(ANALYZERS[ANALYZER].stemmer)
    return bm25s.tokenize(texts, stopwords=stop, stemmer=stemmer, return_ids=ids, show_progress=False)


def bm25s_search(index: Path, queries: list[str], k: int) -> dict[str, float]:
    """Queries per second with numba on one thread, and private memory afterwards."""
    import bm25s

    opened = bm25s.BM25.load(index, show_progress=False)
    opened.backend = "numba"
    opened.activate_numba_scorer()

    def search(texts: list[str]) -> None:
        opened.retrieve(_bm25s_tokens(texts, ids=False), k=k, n_threads=1, show_progress=False)

    search(queries[:20])
    begin = time.monotonic()
    search(queries)
    return {"queries/s": len(queries) / (time.monotonic() - begin), "private": private_bytes()}


def lucene(arguments: argparse.Namespace, threads: int, k: int) -> dict[str, float]:
    """Documents and queries per second of Lucene with the same fields."""
    fields = {"elasticsearch": "multi", "flat": "flat"}[arguments.profile]
    run = arguments.folder / "lucene.run"
    program = [arguments.java, "-Xmx3g", "-cp", arguments.jar, TOOLS / "LuceneOracle.java", "rank", LANGUAGE]
    command = [*program, fields, arguments.folder, str(k), run, str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"docs_per_s (\d+).*queries_per_s ([\d.]+)", done.stderr)
    assert found, done.stderr
    return {"documents/s": float(found[1]), "queries/s": float(found[2])}


def there(arguments: argparse.Namespace) -> list[str]:
    """The peers that were asked for and are installed."""
    found = {name: importlib.util.find_spec(name) is not None for name in ("bm25s", "tantivy")}
    found["lucene"] = arguments.jar is not None
    missing = [name for name in arguments.peers if not found[name]]
    if missing:
        print(f"not there, left out: {', '.join(missing)}")
    return [name for name in arguments.peers if found[name]]


def show(name: str, ours: list[float], theirs: dict[str, list[float]], unit_of: str) -> None:
    """Medians and their ratios."""
    middle = statistics.median(ours)
    print(f"{name}: {middle:,.0f} {unit_of} ({', '.join(f'{value:,.0f}' for value in ours)})")
    for peer, values in theirs.items():
        median = statistics.median(values)
        print(f"  {peer}: {median:,.0f} {unit_of}; ratio {middle / median:.2f}")


def conditions(arguments: argparse.Namespace, documents: int) -> None:
    """What the figures hold for."""
    facts = {"documents": documents, "profile": arguments.profile, "runs": arguments.runs}
    print(json.dumps({**facts, "load": os.getloadavg()[0]}))
