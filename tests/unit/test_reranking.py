import json

import numpy as np
import pytest
import tiny_models

from beirnl.errors import ConfigError, EngineError, PrerequisiteError
from beirnl.registry import resolve_model
from beirnl.retrieval.encoders import load_encoder
from beirnl.retrieval.reranking import load_reranker
from beirnl.specs import EncoderSpec, RerankerSpec

WORDS = ["water", "boils", "at", "degrees", "vaccine", "trains", "immune", "system"]
WORDS += ["court", "sets", "fine", "what", "the", "how", "does"]
PAIRS = [
    ("what boils", "water boils at the degrees"),
    ("what trains the immune system", "vaccine trains the immune system"),
    ("how does the court", "the court sets the fine " * 10),
    ("what boils", "the court sets the fine"),
    ("what", ""),
    ("", "water"),
]


def write_bert(folder, *, labels=1, head=True):
    """A tiny BERT with random weights; with ``head`` one that scores pairs."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertModel, BertTokenizerFast

    torch.manual_seed(0)
    folder.mkdir()
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    tokenizer = BertTokenizerFast(vocab=str(vocabulary), model_max_length=64)
    config = BertConfig(
        vocab_size=len(WORDS) + 5,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.5,
        num_labels=labels,
    )
    model = (BertForSequenceClassification if head else BertModel)(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model.eval(), tokenizer


def load(folder, **settings):
    spec = RerankerSpec(kind="cross-encoder", model=resolve_model(str(folder), "reranker"), **settings)
    return load_reranker(spec, device="cpu", threads=2)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "bert"
    return folder, *write_bert(folder)


def logits(model, tokenizer, pairs):
    import torch

    with torch.no_grad():
        return [
            model(**tokenizer([query], [document], truncation=True, return_tensors="pt")).logits.item()
            for query, document in pairs
        ]


def test_scores_are_the_logits_of_a_direct_forward_pass_in_input_order(bert):
    folder, model, tokenizer = bert
    expected = logits(model, tokenizer, PAIRS)
    scores = load(folder, batch_size=4).score(PAIRS).scores
    assert scores.dtype == np.float32
    assert np.ptp(expected) > 0.1, "the pairs must differ for this test to show anything"
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    np.testing.assert_allclose(load(folder, batch_size=1).score(PAIRS).scores, expected, atol=1e-5)


def test_scores_do_not_depend_on_the_order_of_the_pairs(bert):
    reranker = load(bert[0], batch_size=2)
    assert np.array_equal(reranker.score(PAIRS).scores[::-1], reranker.score(PAIRS[::-1]).scores)
    assert np.array_equal(reranker.score(PAIRS + PAIRS).scores, np.tile(reranker.score(PAIRS).scores, 2))


def test_batches_hold_pairs_of_like_lengths_in_tokens_and_pairs_are_tokenised_once(bert, monkeypatch):
    reranker = load(bert[0], batch_size=2)
    model, widths, tokenised = reranker._model, [], []
    whole, preprocess = type(model).__call__, model.preprocess

    def forward(self, features, **rest):
        widths.append(features["attention_mask"].sum(dim=1).tolist())
        return whole(self, features, **rest)

    def counted(pairs, **rest):
        tokenised.extend(pairs)
        return preprocess(pairs, **rest)

    monkeypatch.setattr(type(model), "__call__", forward)
    monkeypatch.setattr(model, "preprocess", counted)
    many = [*PAIRS, ("what", "at " * 30), ("what", "immune system degrees vaccine")]  # characters mislead
    reranker.score(many + many)
    lengths = [length for batch in widths for length in batch]
    assert lengths == sorted(lengths, reverse=True) and len(lengths) == len(many)
    assert sorted(tokenised) == sorted(many)


def test_pairs_that_are_cut_are_counted_as_the_tokenizer_counts_them(bert):
    folder, _, tokenizer = bert
    pairs = [("what", "at " * n) for n in range(4, 14)] + [("what at " * 5, "at"), ("what", "at " * 13)]
    lengths = [len(tokenizer(query, document)["input_ids"]) for query, document in pairs]
    expected = sum(length > 16 for length in lengths)
    assert 1 < expected < len(pairs) - 1 and 16 in lengths
    told = []
    reranker = load(folder, max_tokens=16, batch_size=4)
    assert reranker.score(pairs + pairs[:1], told.append).truncated == expected
    assert told == sorted(told) and len(told) > 2 and told[-1] == len(pairs) + 1
    assert load(folder).score(PAIRS).truncated == 0
    assert reranker.score([]).truncated == 0


def test_pairs_of_a_bi_encoder_are_cut_where_one_of_their_texts_is(tmp_path):
    folder = tiny_models.sentence_transformer(tmp_path / "bi", tiny_models.bert(tmp_path / "bert"))
    settings = {"model": resolve_model(str(folder), "encoder"), "max_tokens": 8}
    encoder = load_encoder(EncoderSpec(**settings), device="cpu", threads=2)
    pairs = [(q, d) for q in ("water", "water " * 9) for d in ("boils", "boils " * 9, "boils at")]
    cut = [
        encoder.encode([query], "query").truncated + encoder.encode([document], "document").truncated
        for query, document in pairs
    ]
    told = []
    scored = load_reranker(RerankerSpec(kind="bi-encoder", **settings), device="cpu").score(
        pairs, told.append
    )
    assert scored.truncated == sum(map(bool, cut)) == 4 and told[-1] == len(pairs)


def test_a_model_that_makes_its_tokens_itself_scores_the_same(bert, monkeypatch):
    from beirnl.retrieval import reranking

    scores = load(bert[0], batch_size=4).score(PAIRS).scores
    monkeypatch.setattr(reranking, "_reads_plain_text", lambda model: False)
    np.testing.assert_allclose(load(bert[0], batch_size=4).score(PAIRS).scores, scores, atol=1e-5)


def test_own_code_is_refused_unless_the_registry_allows_and_pins_it(tmp_path):
    write_bert(tmp_path / "own")
    config = json.loads((tmp_path / "own" / "config.json").read_text())
    config |= {"model_type": "unheard-of", "auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.Model"}}
    (tmp_path / "own" / "config.json").write_text(json.dumps(config))
    (tmp_path / "own" / "own.py").write_text("raise SystemExit('ran')")
    with pytest.raises(ConfigError, match="which the registry does not allow; read that code"):
        load(tmp_path / "own")
    model = resolve_model(str(tmp_path / "own"), "reranker")
    loose = model.model_copy(update={"trust_remote_code": True, "revision": "unpinned"})
    with pytest.raises(ConfigError, match="no revision pins it"):
        load_reranker(RerankerSpec(kind="cross-encoder", model=loose), device="cpu")


def test_prompts_stand_in_front(bert):
    folder, model, tokenizer = bert
    scores = load(folder, query_prompt="how ", document_prompt="the ").score(PAIRS[:3]).scores
    expected = logits(
        model, tokenizer, [(f"how {query}", f"the {document}") for query, document in PAIRS[:3]]
    )
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_long_documents_are_cut_at_the_limit(bert):
    folder, model, tokenizer = bert
    huge = [("what boils", "water boils at the degrees " * 20_000)]
    np.testing.assert_allclose(load(folder).score(huge).scores, logits(model, tokenizer, huge), atol=1e-5)
    shorter = load(folder, max_tokens=16).score(huge).scores
    tokenizer.model_max_length = 16
    np.testing.assert_allclose(shorter, logits(model, tokenizer, huge), atol=1e-5)
    tokenizer.model_max_length = 64
    with pytest.raises(ConfigError, match="max_tokens is 65 and the model has 64 positions"):
        load(folder, max_tokens=65)


def test_no_pairs(bert):
    assert load(bert[0]).score([]).scores.shape == (0,)


def test_a_model_without_a_head_is_refused(tmp_path):
    write_bert(tmp_path / "bare", head=False)
    with pytest.raises(ConfigError, match="no classification head"):
        load(tmp_path / "bare")


def test_a_classifier_of_three_classes_is_refused(tmp_path):
    write_bert(tmp_path / "nli", labels=3)
    with pytest.raises(ConfigError, match="3 numbers for a pair"):
        load(tmp_path / "nli")


def test_a_bi_encoder_is_refused_as_cross_encoder():
    try:
        spec = RerankerSpec(kind="cross-encoder", model=resolve_model("paraphrase-MiniLM-L3-v2", "encoder"))
        with pytest.raises(ConfigError, match='set method = "bi-encoder"'):
            load_reranker(spec, device="cpu")
    except PrerequisiteError as error:
        pytest.skip(str(error))


def test_a_cross_encoder_is_refused_as_encoder(tmp_path):
    write_bert(tmp_path / "cross")
    model = resolve_model(str(tmp_path / "cross"), "reranker")
    with pytest.raises(ConfigError, match="is a classifier or cross-encoder"):
        load_reranker(RerankerSpec(kind="bi-encoder", model=model), device="cpu")


def test_broken_weights_are_an_error(tmp_path):
    model, _ = write_bert(tmp_path / "broken")
    model.classifier.weight.data.fill_(float("nan"))
    model.save_pretrained(tmp_path / "broken")
    with pytest.raises(EngineError, match="NaN"):
        load(tmp_path / "broken").score(PAIRS)


def test_bi_encoder_scores_are_cosines():
    model = resolve_model("all-MiniLM-L6-v2", "encoder")
    prompts = {"query_prompt": "query: ", "document_prompt": "passage: "}
    try:
        encoder = load_encoder(EncoderSpec(model=model, **prompts), device="cpu", threads=2)
    except PrerequisiteError as error:
        pytest.skip(str(error))
    reranker = load_reranker(RerankerSpec(kind="bi-encoder", model=model, **prompts), device="cpu", threads=2)
    scores = reranker.score(PAIRS).scores
    queries = encoder.encode([query for query, _ in PAIRS], "query").vectors
    documents = encoder.encode([document for _, document in PAIRS], "document").vectors
    np.testing.assert_allclose(scores, (queries * documents).sum(axis=1), atol=1e-5)
    assert scores.dtype == np.float32
    assert scores[0] > scores[3], "the document about boiling water answers what boils"
    assert reranker.score([]).scores.shape == (0,)
