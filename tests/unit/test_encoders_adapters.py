"""Adapters, tasks, and token ids that are made once, on random checkpoints of a few kilobytes."""

import numpy as np
import pyarrow.parquet as pq
import pytest
import tiny_models
import torch
from beir_folder import doc, query, write_beir
from running import dataset, experiment, run, system

from beirnl.errors import ConfigError, EngineError
from beirnl.registry import resolve_model
from beirnl.retrieval.batching import batches
from beirnl.retrieval.encoders import load_encoder
from beirnl.retrieval.languages import adapter_code
from beirnl.retrieval.tokens import TOKENISED, Tokens
from beirnl.retrieval.vectors import vectors_of
from beirnl.specs import EncoderSpec

TEXTS = ["water boils at 100 degrees", "a court", "", "the court sets the fine , " * 12]
LANGUAGES = ["en_XX", "nl_XX", "zh_CN", "zh_TW"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """``folders(name)``: a model folder, made once."""
    root, made = tmp_path_factory.mktemp("models"), {}
    bert = tiny_models.bert(root / "bert")
    left = tiny_models.bert(root / "left", padding_side="left")
    xmod = tiny_models.xmod(root / "xmod", LANGUAGES)
    recipes = {
        "mean": lambda to: tiny_models.sentence_transformer(to, bert),
        "left": lambda to: tiny_models.sentence_transformer(to, left),
        "without-prompt": lambda to: tiny_models.sentence_transformer(to, bert, include_prompt=False),
        "xmod": lambda to: tiny_models.sentence_transformer(to, xmod),
        "asymmetric": lambda to: tiny_models.asymmetric(to, bert, tiny_models.bert(root / "other", seed=1)),
        "static": tiny_models.static,
    }

    def folder(name: str) -> str:
        if name not in made:
            made[name] = str(recipes[name](root / f"made-{name}"))
        return made[name]

    return folder


def load(folder: str, **settings):
    return load_encoder(EncoderSpec(model=resolve_model(folder, "encoder"), **settings), device="cpu")


def peer(folder: str):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(folder, device="cpu", local_files_only=True)


# Languages --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["query", "document"])
def test_the_adapter_of_the_language_is_set_for_queries_and_documents(folders, kind):
    from transformers import AutoTokenizer, XmodModel

    vectors = {
        language: load(folders("xmod"), language=language).encode(TEXTS[:2], kind).vectors
        for language in ("en", "nl")
    }
    tokens = AutoTokenizer.from_pretrained(folders("xmod"))(TEXTS[:2], padding=True, return_tensors="pt")
    model = XmodModel.from_pretrained(folders("xmod")).eval()
    for place, language in enumerate(vectors):
        with torch.no_grad():
            hidden = model(**tokens, lang_ids=torch.full((2,), place)).last_hidden_state
        mask = tokens["attention_mask"][..., None]
        mean = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)
        np.testing.assert_allclose(vectors[language], mean.numpy(), atol=1e-5)
    assert (vectors["en"] * vectors["nl"]).sum(axis=1).max() < 0.999


def test_a_model_with_adapters_and_no_language_is_an_error(folders):
    with pytest.raises(
        ConfigError, match="no language is named; set `language_adapter` to one of: en_XX, nl_XX"
    ):
        load(folders("xmod"))
    with pytest.raises(ConfigError, match="none for 'fy'"):
        load(folders("xmod"), language="fy")
    with pytest.raises(ConfigError, match="has no adapters of languages, and is to be used with 'nl'"):
        load(folders("mean"), language="nl")


def test_a_language_means_the_first_adapter_of_its_code():
    assert adapter_code(LANGUAGES, "nl", "m") == adapter_code(LANGUAGES, "NL_xx", "m") == "nl_XX"
    assert adapter_code(LANGUAGES, "zh", "m") == "zh_CN"
    assert adapter_code(LANGUAGES, "zh_TW", "m") == "zh_TW"
    with pytest.raises(ConfigError, match=r"none for 'n'.*x7_XX and 6 more"):
        adapter_code([*LANGUAGES, *(f"x{n}_XX" for n in range(14))][-18:], "n", "m")


# Tasks ------------------------------------------------------------------------------------------------------

OWN_CODE = """
from sentence_transformers.base.modules import Transformer

class Adapted(Transformer):
    forward_kwargs = {"task"}
    def forward(self, features, task=None, **kwargs):
        features = super().forward(features)
        shift = {"retrieval.query": 1.0, "retrieval.passage": -1.0, None: 0.0}[task]
        features["token_embeddings"] = features["token_embeddings"] + shift
        return features
"""


def test_the_models_own_names_of_its_tasks_reach_its_code(folders, tmp_path):
    folder = tiny_models.sentence_transformer(tmp_path / "own", tiny_models.bert(tmp_path / "bert"))
    tiny_models.add_module(folder, OWN_CODE, "Adapted")
    model = resolve_model(str(folder), "encoder").model_copy(update={"trust_remote_code": True})
    spec = EncoderSpec(model=model, query_task="retrieval.query", document_task="retrieval.passage")
    encoder = load_encoder(spec, device="cpu")
    bare = peer(folders("mean")).encode(TEXTS[:2])
    for kind, shift in (("query", 1), ("document", -1)):
        shifted = bare + shift
        expected = shifted / np.linalg.norm(shifted, axis=1, keepdims=True)
        np.testing.assert_allclose(encoder.encode(TEXTS[:2], kind).vectors, expected, atol=1e-5)


def test_an_asymmetric_model_reads_queries_and_documents_by_their_own_modules(folders):
    encoder, model = load(folders("asymmetric")), peer(folders("asymmetric"))
    for kind, encode in (("query", model.encode_query), ("document", model.encode_document)):
        expected = encode(TEXTS[:3], normalize_embeddings=True)
        np.testing.assert_allclose(encoder.encode(TEXTS[:3], kind).vectors, expected, atol=1e-5)
    assert not np.allclose(
        encoder.encode(TEXTS[:1], "query").vectors, encoder.encode(TEXTS[:1], "document").vectors
    )


# Token ids --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "once"), [("mean", True), ("left", True), ("without-prompt", True), ("static", False)]
)
def test_ids_that_are_made_once_give_the_vectors_of_encode(folders, name, once):
    encoder = load(folders(name), query_prompt="query : ", batch_size=2)
    assert (encoder._backend._tokens["query"] is not None) == once
    expected = peer(folders(name)).encode(TEXTS, prompt="query : ", batch_size=2, normalize_embeddings=True)
    np.testing.assert_allclose(encoder.encode(TEXTS, "query").vectors, expected, atol=1e-5)


def test_texts_are_counted_and_cut_as_the_model_cuts_them(folders):
    encoder = load(folders("mean"))
    tokens = encoder._backend._tokens["document"]
    prepared = tokens.prepare(TEXTS * (TOKENISED // 4 + 1))  # more than the tokenizer is given at once
    assert prepared.lengths[:4] == prepared.lengths[-4:] == [7, 4, 2, 74]
    assert [len(ids) for ids in prepared.items[-4:]] == [7, 4, 2, 32]
    assert encoder.encode(TEXTS * 3, "document").truncated == 3
    model = encoder._backend._model
    theirs = model.preprocess(TEXTS, prompt="")
    ours = tokens.features(prepared.items[:4])
    assert all(
        torch.equal(ours[name], theirs[name]) for name in ("input_ids", "attention_mask", "token_type_ids")
    )


def test_a_model_that_makes_other_features_is_fed_with_text(folders):
    model = peer(folders("mean"))
    assert Tokens.of(model, "", 32, {}) is not None
    honest = model.preprocess
    model.preprocess = lambda texts, **options: {
        **honest(texts, **options),
        "offsets": torch.zeros(len(texts)),
    }
    assert Tokens.of(model, "", 32, {}) is None
    model.preprocess = lambda texts, **options: honest([text + " a" for text in texts], **options)
    assert Tokens.of(model, "", 32, {}) is None


# Batches and dimensions -------------------------------------------------------------------------------------


def test_batches_hold_no_more_tokens_than_their_budget_with_padding():
    lengths, texts = [3, 50, 9, 9, 1, 20], list("abcdef")
    found = list(batches(lengths, texts, 3, budget=27, limit=20))
    assert found == [[1], [5], [2, 3, 0], [4]]
    assert list(batches(lengths, texts, 6, limit=9)) == [[1, 5, 2, 3, 0], [4]]


def test_the_padding_of_a_batch_is_less_than_its_longest_text():
    draw = np.random.default_rng(5)
    lengths = np.minimum(draw.lognormal(3.7, 0.5, 300), 90).astype(int)
    found = list(batches(lengths.tolist(), list(range(300)), 8))
    assert sorted(place for batch in found for place in batch) == list(range(300))
    for batch, following in zip(found, [*found[1:], [None]], strict=True):
        of_batch = lengths[batch]
        assert of_batch[0] * len(batch) - of_batch.sum() < of_batch[0]
        if following != [None]:  # and one more would be too many, or too much padding
            more = [*of_batch, lengths[following[0]]]
            assert len(more) > 8 or of_batch[0] * len(more) - sum(more) >= of_batch[0]
    assert list(batches([7] * 20, list(range(20)), 8)) == [list(range(n, min(n + 8, 20))) for n in (0, 8, 16)]


def test_a_token_budget_changes_no_vector(folders):
    texts = [" ".join(tiny_models.WORDS[n % 7 : n]) for n in range(19)]
    whole = load(folders("mean")).encode(texts, "document").vectors
    small = load(folders("mean"), batch_size=100, batch_tokens=40).encode(texts, "document").vectors
    np.testing.assert_allclose(small, whole, atol=1e-5)


def test_dimensions_cut_a_vector_before_it_is_normalised(folders):
    whole = load(folders("mean")).encode(TEXTS, "document").vectors
    cut = load(folders("mean"), dimensions=8).encode(TEXTS, "document").vectors
    expected = whole[:, :8] / np.linalg.norm(whole[:, :8], axis=1, keepdims=True)
    np.testing.assert_allclose(cut, expected, atol=1e-6)
    with pytest.raises(ConfigError, match="dimensions is 33 and the model's vectors have 32 numbers"):
        load(folders("mean"), dimensions=33)


def test_a_batch_that_does_not_fit_says_what_to_lower(folders, monkeypatch):
    encoder = load(folders("mean"))

    def full(*arguments):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(encoder._backend, "_forward", full)
    with pytest.raises(EngineError, match=r"batch of \d texts does not fit.*lower batch_size"):
        encoder.encode(TEXTS, "document")


# Through the stage ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vectors", ["float32", "float16", "int8"])
def test_vectors_are_stored_as_the_system_says_with_the_ids_of_their_rows(folders, tmp_path, vectors):
    rows = [doc(f"d{n}", text) for n, text in enumerate(TEXTS)]
    folder = write_beir(tmp_path / "set", rows, [query("q", TEXTS[1])], [("q", "d1", 1)])
    config = dataset(folder) + system("dense", "own", model=folders("mean"), vectors=vectors)
    pipeline = run(experiment(tmp_path, config))
    node = next(n for n in pipeline.graph.nodes.values() if n.stage == "embed" and n.spec.kind == "document")
    table = node.artifact(pipeline.workspace).table()
    assert str(table.schema.field("vector").type.value_type) in (vectors, "float", "halffloat")
    assert ("scale" in table.column_names) == (vectors == "int8")
    places = [int(name[1:]) for name in table["id"].to_pylist()]
    assert sorted(places) == list(range(len(TEXTS)))
    expected = load(folders("mean")).encode([TEXTS[place] for place in places], "document").vectors
    assert (vectors_of(table) * expected).sum(axis=1).min() > 0.9999
    (receipt,) = node.artifact(pipeline.workspace).receipts()
    assert receipt.counts == {"truncated": 1}


def test_files_of_vectors_take_the_room_of_their_numbers(folders, tmp_path):
    """Floats as they are; bytes, which Parquet stores as integers of four, not four times."""
    rows = [doc(f"d{n}", f"water {'boils ' * (n % 7)}at {n}") for n in range(3000)]
    folder = write_beir(tmp_path / "set", rows, [query("q", "water")], [("q", "d1", 1)])
    kinds = {"float32": 4, "float16": 2, "int8": 1}
    systems = "".join(
        system("dense", kind, model=folders("mean"), vectors=kind, batch_size=500) for kind in kinds
    )
    pipeline = run(experiment(tmp_path, dataset(folder, shard_documents=5000) + systems))
    for node in pipeline.graph.nodes.values():
        if node.stage == "embed" and node.spec.kind == "document":
            artifact = node.artifact(pipeline.workspace)
            numbers = 32 * kinds[node.spec.encoder.vectors] * artifact.rows
            beside = 40 * artifact.rows  # rows, identifiers, scales
            assert artifact.path(artifact.parts[0]).stat().st_size < numbers + beside
            (column,) = (
                column
                for column in _columns(artifact.path(artifact.parts[0]))
                if column.path_in_schema.startswith("vector")
            )
            assert (column.compression == "ZSTD") == (node.spec.encoder.vectors == "int8")


def _columns(path):
    group = pq.ParquetFile(path).metadata.row_group(0)
    return [group.column(number) for number in range(group.num_columns)]
