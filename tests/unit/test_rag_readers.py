"""Readers of passages: what a model's own tokenizer and window are, as a row and back."""

import pyarrow as pa
import pytest

from beirnl.models.usem3 import UseM3
from beirnl.rag.passages import Cut, passages
from beirnl.rag.readers import SIZE, Bytes, ReaderSpec, Sentencepieces, describe, reader_of
from beirnl.rag.tables import DOCUMENTS
from beirnl.registry import resolve_model
from beirnl.retrieval.encoders import load_encoder
from beirnl.specs import EncoderSpec, ModelRef

SENTENCE = "Glaciers carry boulders over long distances; zij laten morenen achter in het landschap. "


def document(text):
    return pa.table([["d"], [""], [text], [""], [""]], schema=DOCUMENTS)


@pytest.mark.parametrize(
    ("model", "prefix", "window"), [("all-MiniLM-L6-v2", "passage: ", None), ("use-multilingual-v3", "", 100)]
)
def test_no_passage_is_cut_off_by_its_encoder(model, prefix, window):
    spec = EncoderSpec(model=resolve_model(model, "encoder"), document_prompt=prefix, max_tokens=window)
    (row,) = describe(ReaderSpec(encoder=spec)).to_pylist()
    cut = passages(document(60 * SENTENCE), Cut([reader_of(row)])).to_pylist()
    assert len(cut) > 2
    encoder = load_encoder(spec, device="cpu", threads=1)
    assert encoder.encode([one["text"] for one in cut], "document").truncated == 0
    longer = [f"{one['text']} boulders boulders boulders" for one in cut[:-1]]
    assert encoder.encode(longer, "document").truncated == len(longer)


def test_tokens_of_use_are_those_of_its_encoder():
    texts = [SENTENCE.strip(), "a", "antidisestablishmentarianism 100 °C", "één woord"]
    assert [count + 2 for count in Sentencepieces().counts(texts)] == UseM3().lengths(texts)
    (ends,) = Sentencepieces().ends(["antidisestablishmentarianism"])
    assert (
        ends[-1] == 28
        and list(ends) == sorted(ends)
        and len(ends) == Sentencepieces().counts(["anti" + "disestablishmentarianism"])[0]
    )


@pytest.mark.parametrize("text", ["", "a", "abcd", "één €uro 日本", "abcdef"])
def test_bytes_are_counted_by_threes(text):
    (ends,), (count,) = Bytes().ends([text]), Bytes().counts([text])
    assert len(ends) == count == -(-len(text.encode()) // 3)
    assert not len(ends) or (ends[-1] == len(text) and list(ends) == sorted(ends))
    for token, end in enumerate(ends[:-1], 1):
        assert len(text[:end].encode()) >= 3 * token  # a token ends where the character under it does


def test_readers_without_a_window_have_a_size():
    (words,) = describe(ReaderSpec()).to_pylist()
    assert reader_of(words).limit == SIZE and reader_of(words, 50).limit == 50
    api = EncoderSpec(model=ModelRef(name="m", source="api:m"), max_tokens=8191, tokenizer="bytes")
    (row,) = describe(ReaderSpec(encoder=api)).to_pylist()
    assert row["kind"] == "bytes" and reader_of(row).limit == 8191 and reader_of(row, 300).limit == 300
