"""Passages against the model's own tokenizer: whole texts, with prefix and special tokens."""

import json
from itertools import islice, pairwise

import pyarrow as pa
import pytest
from support import shared

from beirnl.models import model_path
from beirnl.rag.passages import Cut, passages, reader
from beirnl.rag.tables import DOCUMENTS
from beirnl.rag.tokenizers import FastTokenizer
from beirnl.registry import resolve_model


@pytest.mark.parametrize(
    ("model", "window", "prefix"),
    [("multilingual-e5-small-q4", 512, "passage: "), ("all-MiniLM-L6-v2", 256, "")],
)
def test_passages_fill_the_window_of_the_model(model, window, prefix):
    from tokenizers import Tokenizer

    with shared("exams_it", "exams_it.passages.jsonl").open(encoding="utf-8") as file:
        paragraphs = [json.loads(line)["text"] for line in islice(file, 300)]
    texts = ["\n\n".join(paragraphs[n : n + 20]) for n in range(0, 300, 20)]
    names, empty = [f"d{n}" for n in range(len(texts))], [""] * len(texts)
    documents = pa.table([names, empty, texts, empty, empty], schema=DOCUMENTS)
    theirs = Tokenizer.from_file(str(model_path(resolve_model(model, "encoder")) / "tokenizer.json"))
    theirs.no_truncation()
    theirs.no_padding()
    made = passages(documents, Cut([reader(model, FastTokenizer(theirs), window, prefix)])).to_pylist()

    def read(texts):
        return [len(one.ids) for one in theirs.encode_batch([prefix + text for text in texts])]

    assert max(read(row["text"] for row in made)) <= window
    longer = [
        texts[int(row["doc_id"][1:])][row["start"] : after["start"]]
        + texts[int(row["doc_id"][1:])][after["start"] :].split(maxsplit=1)[0]
        for row, after in pairwise(made)
        if row["doc_id"] == after["doc_id"]
    ]
    assert len(longer) > 50
    assert min(read(longer)) > window  # one more word would be cut off
    around = len(theirs.encode(prefix.strip()).ids)
    assert [row["tokens"] + around for row in made] == read(row["text"] for row in made)
