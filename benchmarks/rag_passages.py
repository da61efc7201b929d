"""Documents of 400 words: read from a folder, cut for three tokenizers, written to Parquet.

There is no peer: the figures are documents per second of CPU time (so of one core) for reading and for
each tokenizer, cutting and writing together, and the memory of all processes. The tokenizers are those of
multilingual-e5-small (512 tokens, with its prefix), of all-MiniLM-L6-v2 (256), and words (200). Texts are
paragraphs of a JSON-lines corpus in turn.

python benchmarks/rag_passages.py FOLDER [--documents 50000] [--corpus CORPUS.jsonl]
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one core each, which is what is measured

import pyarrow as pa
from memory import Memory
from pyarrow import parquet

from beirnl import registry
from beirnl.models import model_path
from beirnl.rag.documents import Document, read_folder, table
from beirnl.rag.passages import Cut, Reader, passages, reader
from beirnl.rag.tables import PASSAGES
from beirnl.rag.tokenizers import FastTokenizer, Words

WORDS = 400
SHARD = 2_000  # documents in memory at once
PART = 1_000  # files per folder


def write_documents(folder: Path, corpus: Path, number: int) -> None:
    """Text files of 400 words each, in folders, out of the words of a corpus."""
    words = [w for line in corpus.open(encoding="utf-8") for w in json.loads(line)["text"].split()]
    for n in range(number):
        start = n * WORDS % (len(words) - WORDS)
        part = folder / f"{n // PART:03}"
        part.mkdir(parents=True, exist_ok=True)
        (part / f"{n:06}.txt").write_text(" ".join(words[start : start + WORDS]), encoding="utf-8")


def readers() -> list[Reader]:
    """The three readers of passages."""

    def fast(name: str, window: int, prefix: str = "") -> Reader:
        from tokenizers import Tokenizer

        folder = model_path(registry.resolve_model(name, "encoder"))
        return reader(
            name, FastTokenizer(Tokenizer.from_file(str(folder / "tokenizer.json"))), window, prefix
        )

    e5, minilm = fast("multilingual-e5-small-q4", 512, "passage: "), fast("all-MiniLM-L6-v2", 256)
    return [e5, minilm, reader("words", Words(), None, size=200)]


def shards(folder: Path) -> Iterator[pa.Table]:
    """The documents of a folder, some at a time."""
    found = (item for item in read_folder(folder) if isinstance(item, Document))
    while some := list(islice(found, SHARD)):
        yield table(some)


def cut_folder(folder: Path, out: Path) -> None:
    """Read, cut and write one folder; prints the CPU time of each step per document."""
    spent: dict[str, float] = defaultdict(float)
    made: dict[str, int] = defaultdict(int)
    documents = 0
    plans = readers()
    out.mkdir(parents=True, exist_ok=True)
    writers = {one.name: parquet.ParquetWriter(out / f"{one.name}.parquet", PASSAGES) for one in plans}
    clock = time.process_time()
    for shard in shards(folder):
        spent["reading"] += -clock + (clock := time.process_time())
        documents += len(shard)
        for one in plans:
            found = passages(shard, Cut([one]))
            writers[one.name].write_table(found)
            made[one.name] += len(found)
            spent[one.name] += -clock + (clock := time.process_time())
    for writer in writers.values():
        writer.close()
    for name, seconds in spent.items():
        kept = f", {made[name] / documents:.2f} passages a document" if name in made else ""
        print(f"{name:26} {documents / seconds:8,.0f} documents/s of CPU time{kept}", flush=True)
    cutting = sum(spent[one.name] for one in plans) / len(plans)
    print(f"{documents} documents; mean over tokenizers {documents / cutting:,.0f} documents/s and core")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="where documents and passages are put")
    parser.add_argument("--documents", type=int, default=50_000)
    parser.add_argument(
        "--corpus", type=Path, default=Path("../shared/data/exams_it/exams_it.passages.jsonl")
    )
    options = parser.parse_args()
    source = options.folder / f"documents-{options.documents}"
    if not source.exists():
        write_documents(source, options.corpus, options.documents)
    readers()  # models are prepared before anything is measured
    begin = time.monotonic()
    process = multiprocessing.get_context("spawn").Process(
        target=cut_folder, args=(source, options.folder / "passages")
    )
    process.start()
    with Memory(process.pid or 0).watched() as watch:
        process.join()
    print(f"{time.monotonic() - begin:.0f} s of wall time; peak memory {watch.peak / 2**30:.2f} GiB")
    sys.exit(process.exitcode)


if __name__ == "__main__":
    main()
