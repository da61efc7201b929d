"""Models that answer with less than they were asked, or with no numbers: refused, counted and named."""

import numpy as np
import pytest
import tiny_models

from beirnl.errors import EngineError
from beirnl.registry import resolve_model
from beirnl.retrieval.encoders import load_encoder
from beirnl.retrieval.late import LateEncoder, LateReranker, LateSpec
from beirnl.retrieval.reranking import load_reranker
from beirnl.specs import EncoderSpec, RerankerSpec

#: Of about equal length, so that they make one batch; the longest comes first in it.
TEXTS = [
    "water boils at 100 degrees , the court",
    "the court trains the immune system at",
    "the immune system trains the water , the court",
]
PAIRS = [("the court", text) for text in TEXTS]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    bi = tiny_models.sentence_transformer(root / "bi", tiny_models.bert(root / "bert"))
    cross = tiny_models.cross_encoder(root / "cross")
    return {name: resolve_model(str(path), "encoder") for name, path in (("bi", bi), ("cross", cross))}


def dense(models, spoil, monkeypatch, dtype="float32"):
    encoder = load_encoder(EncoderSpec(model=models["bi"], batch_size=8, dtype=dtype), device="cpu")
    honest = encoder._backend.embed
    monkeypatch.setattr(encoder._backend, "embed", lambda items, kind: spoil(honest(items, kind)))
    return lambda: encoder.encode(TEXTS, "document")


def bi(models, spoil, monkeypatch, dtype="float32"):
    spec = RerankerSpec(kind="bi-encoder", model=models["bi"], batch_size=8, dtype=dtype)
    reranker = load_reranker(spec, device="cpu")
    backend = reranker._encoder._backend
    honest = backend.embed
    only = {"document": spoil, "query": lambda found: found}
    monkeypatch.setattr(backend, "embed", lambda items, kind: only[kind](honest(items, kind)))
    return lambda: reranker.score(PAIRS)


def cross(models, spoil, monkeypatch, dtype="float32"):
    spec = RerankerSpec(kind="cross-encoder", model=models["cross"], batch_size=8, dtype=dtype)
    reranker = load_reranker(spec, device="cpu")
    honest = reranker._forward
    monkeypatch.setattr(reranker, "_forward", lambda tokens: spoil(honest(tokens)))
    return lambda: reranker.score(PAIRS)


def late(models, spoil, monkeypatch, dtype="float32"):
    encoder = LateEncoder(LateSpec(model=models["bi"], batch_size=8, dtype=dtype), "cpu")
    honest = encoder._model.encode_document
    monkeypatch.setattr(encoder._model, "encode_document", lambda *a, **b: spoil(honest(*a, **b)))
    return lambda: encoder.encode(TEXTS, "document")


def second(models, spoil, monkeypatch, dtype="float32"):
    reranker = LateReranker(LateSpec(model=models["bi"], batch_size=8, dtype=dtype), "cpu")
    model = reranker._encoder._model
    honest = model.encode_document
    monkeypatch.setattr(model, "encode_document", lambda *a, **b: spoil(honest(*a, **b)))
    return lambda: reranker.score(PAIRS)


KINDS = [dense, bi, cross, late, second]


def broken(number):
    """The longest text, which a batch begins with, has an answer that is no number."""

    def spoil(found):
        first = np.full_like(found[0], number)
        return [first, *found[1:]] if isinstance(found, list) else np.stack([first, *found[1:]])

    return spoil


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused_with_the_text_and_the_count(kind, bad, models, monkeypatch):
    with pytest.raises(EngineError) as error:
        kind(models, broken(bad), monkeypatch)()
    line = str(error.value)
    assert "the model returned NaN or infinity for 1 of 3 texts, first '" in line
    assert "the immune system trains" in line and "its weights may be damaged" in line
    assert ("the court | the immune" in line) == (kind is cross)


@pytest.mark.parametrize("kind", KINDS)
def test_a_narrow_number_format_is_blamed_where_one_is_used(kind, models, monkeypatch):
    with pytest.raises(EngineError, match='dtype is bfloat16: try dtype = "float32"'):
        kind(models, broken(np.nan), monkeypatch, "bfloat16")()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [0, 2, 4])
def test_fewer_or_more_answers_than_texts_are_refused_with_both_numbers(kind, number, models, monkeypatch):
    what = "scores" if kind is cross else "vectors"

    def spoil(found):
        one_more = [*found, found[0]] if isinstance(found, list) else np.concatenate([found, found[:1]])
        return one_more[:number]

    wrong = kind(models, spoil, monkeypatch)
    with pytest.raises(EngineError, match=rf"model returned {number} {what} for 3 texts; it must return one"):
        wrong()


@pytest.mark.parametrize("kind", [dense, late])
def test_answers_of_another_dimension_are_refused(kind, models, monkeypatch):

    def spoil(found):
        return [one[..., :7] for one in found] if isinstance(found, list) else found[:, :7]

    wrong = kind(models, spoil, monkeypatch)
    with pytest.raises(EngineError, match=r"\(3, 7\) for 3 texts; it must return 32|of 7 numbers where 32"):
        wrong()
