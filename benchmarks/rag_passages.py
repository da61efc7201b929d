"""Documents of 400 words: read from a folder, cut for three tokenizers, written to Parquet.

There is no peer: the figures are documents per second for reading and for each tokenizer, cutting and
writing together, by the receipts of the pipeline's stages with one worker and one thread, the loading of the
tokenizers included; the CPU time of the whole run, start included; and the memory of all processes. The
tokenizers are those of multilingual-e5-small (512 tokens, with its prefix), of all-MiniLM-L6-v2 (256), and
words (200). Texts are paragraphs of a JSON-lines corpus in turn.

python benchmarks/rag_passages.py FOLDER [--documents 50000] [--corpus CORPUS.jsonl]
"""

import argparse
import json
import os
import resource
import shutil
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one core each, which is what is measured

from setting import run_watched

WORDS = 400
PART = 1_000  # files per folder
EXPERIMENT = """
name = "passages"
workspace = "{workspace}"
[rag]
documents = "{documents}"
language = "it"
[rag.questions]
count = 1
engine = "mock"
[[rag.answers]]
engine = "mock"
[[system]]
name = "words"
kind = "bm25"
[[system]]
name = "multilingual-e5-small-q4"
kind = "dense"
model = "multilingual-e5-small-q4"
[[system]]
name = "all-MiniLM-L6-v2"
kind = "dense"
model = "all-MiniLM-L6-v2"
[runtime]
threads = 1
"""


def write_documents(folder: Path, corpus: Path, number: int) -> None:
    """Text files of 400 words each, in folders, out of the words of a corpus."""
    words = [w for line in corpus.open(encoding="utf-8") for w in json.loads(line)["text"].split()]
    for n in range(number):
        start = n * WORDS % (len(words) - WORDS)
        part = folder / f"{n // PART:03}"
        part.mkdir(parents=True, exist_ok=True)
        (part / f"{n:06}.txt").write_text(" ".join(words[start : start + WORDS]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="where documents and passages are put")
    parser.add_argument("--documents", type=int, default=50_000)
    parser.add_argument(
        "--corpus", type=Path, default=Path("../shared/data/exams_it/exams_it.passages.jsonl")
    )
    options = parser.parse_args()
    source, workspace = options.folder / f"documents-{options.documents}", options.folder / "workspace"
    if not source.exists():
        write_documents(source, options.corpus, options.documents)
    shutil.rmtree(workspace, ignore_errors=True)
    file = options.folder / "experiment.toml"
    file.write_text(EXPERIMENT.format(workspace=workspace, documents=source), encoding="utf-8")
    run_watched(file, "--only", "reader")  # models are prepared, and their windows known
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = run_watched(file, "--only", "cut")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    for node in run.pipeline.graph.nodes.values():
        if node.stage in ("import-documents", "cut"):
            artifact = node.artifact(run.pipeline.workspace)
            seconds = sum(receipt.seconds for receipt in artifact.receipts())
            kept = f", {artifact.rows / options.documents:.2f} passages each" if node.stage == "cut" else ""
            called = f"{node.stage} {node.purpose}"
            print(f"{called:30} {options.documents / seconds:8,.0f} documents/s{kept}", flush=True)
    spent = sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime"))
    print(f"{run.seconds:.0f} s of wall time, {spent:.0f} s of CPU for {options.documents:,} documents")
    run.print()


if __name__ == "__main__":
    main()
