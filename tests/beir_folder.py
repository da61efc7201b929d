"""Builds small BEIR folders by hand."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path


def write_beir(
    folder: Path,
    corpus: Sequence[Mapping] | bytes,
    queries: Sequence[Mapping] | bytes,
    qrels: Sequence[tuple] | bytes,
    split: str = "test",
) -> Path:
    """Write a folder; bytes are written as they are."""
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    for name, rows in (("corpus.jsonl", corpus), ("queries.jsonl", queries)):
        data = rows if isinstance(rows, bytes) else "".join(json.dumps(r) + "\n" for r in rows).encode()
        (folder / name).write_bytes(data)
    if not isinstance(qrels, bytes):
        lines = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in qrels)]
        qrels = ("\n".join(lines) + "\n").encode()
    (folder / "qrels" / f"{split}.tsv").write_bytes(qrels)
    return folder


def doc(identifier: str | int, text: str | None = "some text", title: str | None = "") -> dict:
    return {"_id": identifier, "title": title, "text": text}


def query(identifier: str | int, text: str = "some text") -> dict:
    return {"_id": identifier, "text": text}
