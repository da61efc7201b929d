"""Encoding through the pipeline's stages against one SentenceTransformer.encode over the whole list.

python benchmarks/embed.py [--documents 400] [--runs 3] [--model paraphrase-MiniLM-L3-v2]
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer

from beirnl.config import load_experiment
from beirnl.executors.local import LocalExecutor
from beirnl.models import model_path
from beirnl.pipeline import Pipeline
from beirnl.registry import resolve_model

EXPERIMENT = """
name = "benchmark"
workspace = "{folder}/workspace"
[[dataset]]
name = "benchmark"
path = "{folder}/set"
[[system]]
name = "dense"
kind = "dense"
model = "{model}"
"""


def texts_of(data: Path, number: int) -> list[str]:
    with data.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line, _ in zip(file, range(number), strict=False)]
    return [f"{row['title']} {row['text']}".strip() for row in rows]


def write_set(folder: Path, texts: list[str]) -> None:
    (folder / "set" / "qrels").mkdir(parents=True)
    rows = [{"_id": str(n), "text": text} for n, text in enumerate(texts)]
    (folder / "set" / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "set" / "queries.jsonl").write_text('{"_id": "q", "text": "a"}\n')
    (folder / "set" / "qrels" / "test.tsv").write_text("q\t0\t1\n")


def through_stages(texts: list[str], model: str) -> float:
    """Seconds that the units of the embed stage took, from their receipts; loading the model is outside."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_set(folder, texts)
        file = folder / "experiment.toml"
        file.write_text(EXPERIMENT.format(folder=folder, model=model))
        pipeline = Pipeline.of(load_experiment(file))
        pipeline.run(LocalExecutor(), only="embed")
        nodes = [n for n in pipeline.graph.nodes.values() if n.stage == "embed" and n.spec.kind == "document"]
        return sum(r.seconds for n in nodes for r in n.artifact(pipeline.workspace).receipts())


def in_one_call(texts: list[str], model: str) -> float:
    encoder = SentenceTransformer(str(model_path(resolve_model(model, "encoder"))), device="cpu")
    begin = time.monotonic()
    encoder.encode(texts, batch_size=32, normalize_embeddings=True)
    return time.monotonic() - begin


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data/scifact/corpus.jsonl"))
    parser.add_argument("--documents", type=int, default=400)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--model", default="paraphrase-MiniLM-L3-v2")
    arguments = parser.parse_args()
    texts = texts_of(arguments.corpus, arguments.documents)
    pairs = [
        (in_one_call(texts, arguments.model), through_stages(texts, arguments.model))
        for _ in range(arguments.runs)
    ]
    peer, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"{len(texts)} documents, {torch.get_num_threads()} threads, median of {arguments.runs} runs")
    print(f"one encode {len(texts) / peer:.1f} documents/s, stages {len(texts) / ours:.1f} documents/s")
    print(f"ratio {peer / ours:.2f}")


if __name__ == "__main__":
    main()
