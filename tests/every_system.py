"""An experiment with every kind of system over models of a few kilobytes."""

from pathlib import Path

import tiny_models
from running import system

from beirnl.pipeline import Pipeline

BM25_KINDS = ("bm25", "flat", "sharded")
EVERYTHING = ("exact", "half", "int8", "ann", "late")  # find every document
SECOND = ("cross", "bi", "second")  # order what BM25 has found
NAMES = (*BM25_KINDS, *EVERYTHING, *SECOND, "fused")


def write_models(folder: Path) -> dict[str, Path]:
    """A bi-encoder and a cross-encoder."""
    bi = tiny_models.sentence_transformer(folder / "bi", tiny_models.bert(folder / "bert"))
    return {"bi": bi, "cross": tiny_models.cross_encoder(folder / "cross")}


def systems(models: dict[str, Path], depth: int = 10, batch_size: int = 1) -> str:
    """All of :data:`NAMES`. With one text in a batch, numbers are the same bits whatever the shards."""
    batch = {"depth": depth, "batch_size": batch_size}
    dense = {"model": models["bi"], **batch}
    text = "".join(
        [
            system("bm25", "bm25", depth=depth),
            system("bm25", "flat", depth=depth, profile="flat"),
            system("bm25", "sharded", depth=depth, shards=3),
            system("dense", "exact", **dense),
            system("dense", "half", **dense, vectors="float16"),
            system("dense", "int8", **dense, vectors="int8"),
            system("dense", "ann", **dense, search="ann"),
            system("late", "late", **dense),
            system("rerank", "cross", first="bm25", **{**batch, "model": models["cross"]}),
            system("rerank", "bi", first="bm25", method="bi-encoder", **dense),
            system("late", "second", first="bm25", **dense),
        ]
    )
    fused = f'[[system]]\nkind = "fusion"\nname = "fused"\ndepth = {depth}\nof = ["bm25", "exact"]\n'
    return text + fused + "[runtime]\nthreads = 1\n"


def runs(pipeline: Pipeline) -> dict[str, dict[str, list[tuple[str, float]]]]:
    """Hits by system and query: identifiers and scores, best first."""
    found: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for evaluation in pipeline.graph.evaluations:
        of_system = found.setdefault(evaluation.system.name, {})
        for row in evaluation.node.inputs["run"].artifact(pipeline.workspace).table().to_pylist():
            of_system.setdefault(row["query_id"], []).append((row["doc_id"], row["score"]))
    return found
