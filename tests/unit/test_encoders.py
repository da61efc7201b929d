import time
from functools import cache

import numpy as np
import pytest

from beirnl.errors import ConfigError, EngineError, PrerequisiteError
from beirnl.models import model_path
from beirnl.registry import resolve_model
from beirnl.retrieval.batching import batches, clip
from beirnl.retrieval.encoders import load_encoder
from beirnl.specs import EncoderSpec

WORDS = "water vaccine train court tax river cell engine apple music storm glass paper school light"
SENTENCES = ["Water boils at 100 degrees.", "A court sets the fine.", "Vaccines train the immune system."]


@cache
def load(name="paraphrase-MiniLM-L3-v2", **settings):
    try:
        return load_encoder(
            EncoderSpec(model=resolve_model(name, "encoder"), **settings), device="cpu", threads=2
        )
    except PrerequisiteError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def encoder():
    return load()


def words(count, seed):
    return " ".join(np.random.default_rng(seed).choice(WORDS.split(), count))


def test_vectors_are_those_of_a_direct_forward_pass():
    import torch
    from transformers import AutoModel, AutoTokenizer

    vectors = load("all-MiniLM-L6-v2").encode(SENTENCES, "document").vectors
    folder = model_path(resolve_model("all-MiniLM-L6-v2", "encoder"))
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    for text, vector in zip(SENTENCES, vectors, strict=True):
        with torch.no_grad():
            mean = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(dim=0)
        np.testing.assert_allclose(vector, (mean / mean.norm()).numpy(), atol=1e-6)


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "use-multilingual-v3"])
def test_short_and_long_texts_in_turns_have_the_vectors_of_each_alone(name):
    texts = [words(5 if n % 2 else 500, n) for n in range(12)]
    together = load(name, batch_size=4).encode(texts, "document").vectors
    alone = load(name, batch_size=1).encode(texts, "document").vectors
    assert (together * alone).sum(axis=1).min() > 0.99999
    assert np.abs(together @ together.T - np.eye(12)).max() > 0.1
    assert len({vector.tobytes() for vector in together}) == 12


def test_vectors_do_not_depend_on_the_order_of_the_texts(encoder):
    texts = [words(1 + n % 9, n) for n in range(40)]
    order = np.random.default_rng(0).permutation(len(texts))
    straight = encoder.encode(texts, "document").vectors
    shuffled = encoder.encode([texts[n] for n in order], "document").vectors
    assert np.array_equal(straight[order], shuffled)


def test_equal_texts_have_equal_vectors_and_lengths_are_one(encoder):
    texts = [words(1 + n % 7, n % 10) for n in range(50)]
    vectors = encoder.encode(texts, "document").vectors
    assert vectors.shape == (50, encoder.dimension)
    assert vectors.dtype == np.float32
    for n, text in enumerate(texts):
        assert np.array_equal(vectors[n], vectors[texts.index(text)])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_prompts_stand_in_front_of_their_kind():
    plain = load("all-MiniLM-L6-v2")
    prompted = load("all-MiniLM-L6-v2", query_prompt="query: ", document_prompt="passage: ")
    for kind, prompt in (("query", "query: "), ("document", "passage: ")):
        expected = plain.encode([prompt + text for text in SENTENCES], kind).vectors
        assert np.array_equal(prompted.encode(SENTENCES, kind).vectors, expected)


def test_the_prompts_of_the_model_folder_are_not_used():
    """A sentence-transformers folder may carry a default prompt; only the spec decides."""
    encoder = load.__wrapped__()
    bare = encoder.encode(SENTENCES, "query").vectors
    encoder._backend._model.prompts["query"] = "something else: "
    encoder._backend._model.default_prompt_name = "query"
    assert np.array_equal(encoder.encode(SENTENCES, "query").vectors, bare)


def test_truncated_texts_are_counted_with_prompt_and_special_tokens():
    text = "water " * 126  # with the two special tokens: 128, the model's limit
    assert load().encode([text, text, "water"], "query").truncated == 0
    assert load().encode([text + "water", text + "water", "water"], "query").truncated == 2
    assert load(query_prompt="query ").encode([text, "water"], "query").truncated == 1
    assert load(max_tokens=8).encode(["water " * 6, "water " * 7], "query").truncated == 1


def test_use_counts_and_cuts_at_its_limit():
    encoder = load("use-multilingual-v3", max_tokens=16)
    long, longer = words(100, 1), words(100, 1) + " " + words(100, 2)
    encoded = encoder.encode([long, longer, "water"], "document")
    assert encoded.truncated == 2
    assert np.array_equal(encoded.vectors[0], encoded.vectors[1])
    assert not np.array_equal(
        load("use-multilingual-v3").encode([long], "query").vectors[0], encoded.vectors[0]
    )


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "use-multilingual-v3"])
def test_two_megabytes_of_text_are_cut_before_they_are_tokenised(name):
    start = words(4000, 3)
    huge = start + " " + "en nog veel meer woorden " * 80_000
    encoder = load(name)
    begun = time.monotonic()
    encoded = encoder.encode([huge, start, "water"], "document")
    assert time.monotonic() - begun < 10
    assert encoded.truncated == 2
    assert float(encoded.vectors[0] @ encoded.vectors[1]) > 0.99999


def test_a_cut_never_removes_tokens_that_the_model_reads():
    def lengths(texts):
        return [len(text.split()) for text in texts]

    sparse = " " * 100_000 + "one two three"
    assert clip(sparse, 4, lengths) == sparse
    dense = "a " * 100_000
    cut = clip(dense, 4, lengths)
    assert len(cut) < 1000
    assert lengths([cut])[0] > 8
    assert clip("a " * 30, 4, lengths) == "a " * 30
    assert clip(dense, None, lengths) == dense


def test_empty_text_and_no_text(encoder):
    vectors = encoder.encode(["", "water", " "], "document").vectors
    assert np.isfinite(vectors).all()
    none = encoder.encode([], "document")
    assert none.vectors.shape == (0, encoder.dimension)
    assert none.truncated == 0
    assert np.isfinite(load("use-multilingual-v3").encode(["", " "], "query").vectors).all()


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (
            lambda vectors: np.where(np.arange(len(vectors))[:, None] == 1, np.nan, vectors),
            "NaN or infinity for 1",
        ),
        (lambda vectors: vectors[:-1], r"returned \d+ vectors for \d+ texts"),
        (lambda vectors: vectors[:, :7], "shape"),
    ],
)
def test_an_encoder_that_returns_rubbish_is_an_error(monkeypatch, returned, message):
    encoder = load()
    honest = encoder._backend.embed
    monkeypatch.setattr(encoder._backend, "embed", lambda texts, prompt: returned(honest(texts, prompt)))
    with pytest.raises(EngineError, match=message):
        encoder.encode(SENTENCES, "document")


def test_half_precision_is_near_and_differs():
    full = load().encode(SENTENCES, "document").vectors
    half = load(dtype="bfloat16").encode(SENTENCES, "document").vectors
    assert half.dtype == np.float32
    assert (full * half).sum(axis=1).min() > 0.99
    assert not np.array_equal(full, half)


def test_what_a_model_cannot_do_is_an_error():
    with pytest.raises(ConfigError, match="max_tokens is 513 and the model has 512 positions"):
        load("all-MiniLM-L6-v2", max_tokens=513)
    with pytest.raises(ConfigError, match="cannot run in bfloat16"):
        load("use-multilingual-v3", dtype="bfloat16")


def test_nothing_is_written_to_stdout(capfd):
    load("all-MiniLM-L6-v2").encode(SENTENCES, "document")
    assert capfd.readouterr().out == ""


def test_batches_go_from_long_to_short_whatever_the_input_order():
    texts = ["bb", "a", "dddd", "ccc", "c"]
    assert [[texts[n] for n in batch] for batch in batches([len(t) for t in texts], texts, 2)] == [
        ["dddd", "ccc"],
        ["bb", "a"],
        ["c"],
    ]
