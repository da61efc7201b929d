import json

import numpy as np
import pytest

from beirnl.errors import ConfigError, DataError, EngineError
from beirnl.registry import resolve_model
from beirnl.retrieval.late import LateEncoder, LateReranker, LateSearch, LateSpec, TokenVectors
from beirnl.retrieval.topk import top

WORDS = ["water", "boils", "at", "degrees", "vaccine", "trains", "immune", "system", "court", "sets", "fine"]
TEXTS = ["water boils at degrees", "the court sets fine", "", "vaccine trains , immune system .", "water"]
TEXTS += ["water boils " * 40, "court", "fine fine fine"]
QUERIES = ["what boils at degrees", "vaccine", "court sets fine"]


def write_tokenizer(folder):
    from transformers import BertTokenizerFast

    folder.mkdir()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]", ",", ".", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=48).save_pretrained(folder)
    return len(vocabulary)


def facts(tokens, **more):
    return {
        "vocab_size": tokens,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
        "initializer_range": 0.5,
        **more,
    }


def write_colbert(folder):
    """A tiny BERT as Stanford's ColBERT saves it: with its projection and artifact.metadata."""
    import torch
    from safetensors.torch import save_file
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    model = BertModel(BertConfig(**facts(write_tokenizer(folder))))
    model.save_pretrained(folder)
    weights = {f"bert.{name}": tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_file(
        {**weights, "linear.weight": torch.randn(16, 32)}, folder / "model.safetensors", {"format": "pt"}
    )
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["HF_ColBERT"]}))
    settings = {"query_maxlen": 12, "doc_maxlen": 40, "mask_punctuation": True}
    (folder / "artifact.metadata").write_text(json.dumps(settings))
    return folder


def write_xmod(folder):
    """A tiny XMOD with adapters for English and Dutch, and a projection."""
    import torch
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
    from transformers import XmodConfig, XmodModel

    torch.manual_seed(0)
    bare = folder.with_name(f"{folder.name}-bare")
    settings = facts(
        write_tokenizer(bare), languages=("en_XX", "nl_XX"), pad_token_id=0, ln_before_adapter=True
    )
    XmodModel(XmodConfig(**settings)).save_pretrained(bare)
    dense = Dense(
        32, 16, bias=False, activation_function=torch.nn.Identity(), module_input_name="token_embeddings"
    )
    parts = [
        Transformer(str(bare)),
        dense,
        MultiVectorMask(),
        Normalize(module_input_name="token_embeddings"),
    ]
    MultiVectorEncoder(modules=parts, device="cpu").save(str(folder))
    return folder


@pytest.fixture(scope="module")
def colbert(tmp_path_factory):
    return write_colbert(tmp_path_factory.mktemp("models") / "colbert")


@pytest.fixture(scope="module")
def xmod(tmp_path_factory):
    return write_xmod(tmp_path_factory.mktemp("models") / "xmod")


def spec(folder, **settings):
    return LateSpec(model=resolve_model(str(folder), "encoder"), **settings)


def encoder(folder, **settings):
    return LateEncoder(spec(folder, **settings), "cpu", 2)


def by_hand(queries, documents):
    """MaxSim of all pairs."""
    return np.array([[(q @ d.T).max(axis=1).sum() for d in documents] for q in queries])


def test_token_vectors_are_those_of_a_direct_forward_pass(colbert):
    import torch
    from safetensors.torch import load_file
    from transformers import AutoTokenizer, BertConfig, BertModel

    weights = load_file(colbert / "model.safetensors")
    model = BertModel(BertConfig.from_pretrained(colbert)).eval()
    model.load_state_dict({n.removeprefix("bert."): w for n, w in weights.items() if n != "linear.weight"})
    tokenizer = AutoTokenizer.from_pretrained(colbert)

    def vectors(text, marker, length=None):
        words = tokenizer(text, add_special_tokens=False)["input_ids"]
        ids = [2, tokenizer.convert_tokens_to_ids(marker), *words, 3]
        attended = len(ids)
        ids += [4] * ((length or 0) - len(ids))  # [MASK]
        mask = torch.tensor([[1] * attended + [0] * (len(ids) - attended)])
        with torch.no_grad():
            hidden = model(torch.tensor([ids]), attention_mask=mask).last_hidden_state[0]
        kept = [place for place, token in enumerate(ids) if length or token not in (7, 8)]  # , .
        return torch.nn.functional.normalize(hidden @ weights["linear.weight"].T, dim=-1).numpy()[kept]

    late = encoder(colbert)
    documents = late.encode(TEXTS[:5], "document")
    for number, text in enumerate(TEXTS[:5]):
        np.testing.assert_allclose(documents.of(number), vectors(text, "[unused1]"), atol=1e-5)
    queries = late.encode(QUERIES, "query")
    for number, text in enumerate(QUERIES):
        np.testing.assert_allclose(queries.of(number), vectors(text, "[unused0]", 12), atol=1e-5)


def test_order_and_batches_do_not_matter_and_long_texts_are_counted(colbert):
    late, one = encoder(colbert, batch_size=3), encoder(colbert, batch_size=1)
    documents = late.encode(TEXTS, "document")
    turned = late.encode(TEXTS[::-1], "document")
    single = one.encode(TEXTS, "document")
    assert documents.truncated == turned.truncated == 1
    for number in range(len(TEXTS)):
        assert np.array_equal(documents.of(number), turned.of(len(TEXTS) - 1 - number))
        np.testing.assert_allclose(documents.of(number), single.of(number), atol=1e-5)
    assert len(documents.of(5)) == 40, "cut at the document length of the checkpoint"
    assert len(encoder(colbert, max_tokens=16).encode(TEXTS, "document").of(5)) == 16
    with pytest.raises(ConfigError, match="65 and the model has 64 positions"):
        encoder(colbert, max_tokens=65)
    # [CLS], the marker and [SEP] take three of the twelve tokens of a query.
    queries = [" ".join(["alpha"] * count) for count in (1, 9, 10, 13, 300)]
    assert [late.encode([query], "query").truncated for query in queries] == [0, 0, 1, 1, 1]
    none = late.encode([], "document")
    assert none.vectors.shape == (0, 16) and none.offsets.tolist() == [0]


def test_pairs_are_counted_that_are_cut_and_told_as_they_are_done(colbert):
    short, long = "water", "water boils " * 40
    pairs = [("what", short), ("what", long), ("court " * 10, short), ("court " * 10, long), ("what", long)]
    told = []
    scored = LateReranker(spec(colbert, batch_size=1), "cpu", 2).score(pairs, told.append)
    assert scored.truncated == 4 and told == [3, 5]
    told.clear()
    assert (
        encoder(colbert, batch_size=1).encode(["fine", long, "fine"], "document", told.append).truncated == 1
    )
    assert told == [1, 3]


@pytest.mark.parametrize("kind", ["colbert", "xmod"])
def test_a_second_stage_scores_by_maxsim(kind, request):
    folder = request.getfixturevalue(kind)
    late = encoder(folder, language="nl")
    queries, documents = late.encode(QUERIES, "query"), late.encode(TEXTS, "document")
    expected = by_hand(
        [queries.of(q) for q in range(len(QUERIES))], [documents.of(d) for d in range(len(TEXTS))]
    )
    pairs = [(query, text) for query in QUERIES for text in TEXTS]
    scores = LateReranker(spec(folder, language="nl"), "cpu", 2).score(pairs).scores
    assert scores.dtype == np.float32 and np.ptp(expected) > 0.1
    np.testing.assert_allclose(scores, expected.reshape(-1), atol=1e-4)
    assert LateReranker(spec(folder, language="nl"), "cpu").score([]).scores.shape == (0,)


def test_the_language_chooses_the_adapter(xmod):
    dutch = encoder(xmod, language="nl").encode(TEXTS, "document").vectors
    english = encoder(xmod, language="en").encode(TEXTS, "document").vectors
    assert np.abs(dutch - english).max() > 0.01
    from sentence_transformers import MultiVectorEncoder

    peer = MultiVectorEncoder(str(xmod), device="cpu", local_files_only=True)
    peer.transformers_model.set_default_language("nl_XX")
    np.testing.assert_allclose(
        dutch, np.concatenate(peer.encode_document(TEXTS, convert_to_numpy=True)), atol=1e-5
    )


@pytest.mark.parametrize("language", ["fy", ""])
def test_a_language_without_an_adapter_is_named(xmod, language):
    with pytest.raises(ConfigError, match="`language_adapter` to one of: en_XX, nl_XX"):
        encoder(xmod, language=language)


def test_a_bi_encoder_lends_its_normalised_token_vectors(tmp_path):
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    tokens = write_tokenizer(tmp_path / "bert")
    BertModel(BertConfig(**facts(tokens))).save_pretrained(tmp_path / "bert")
    model = SentenceTransformer(modules=[Transformer(str(tmp_path / "bert")), Pooling(32)], device="cpu")
    model.save(str(tmp_path / "encoder"))
    found = encoder(tmp_path / "encoder", document_prompt="water ").encode(["boils"], "document").vectors
    raw = model.encode(["water boils"], output_value="token_embeddings")[0].numpy()
    np.testing.assert_allclose(found, raw / np.linalg.norm(raw, axis=1, keepdims=True), atol=1e-5)
    with pytest.raises(ConfigError, match="not trained for late interaction"):
        encoder(tmp_path / "bert")


def test_broken_weights_are_an_error(tmp_path):
    import torch
    from safetensors.torch import load_file, save_file

    folder = write_colbert(tmp_path / "broken")
    weights = load_file(folder / "model.safetensors")
    weights["linear.weight"] = torch.full_like(weights["linear.weight"], float("nan"))
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(EngineError, match="NaN"):
        encoder(folder).encode(TEXTS, "document")


def random_texts(draw, number, dimension=8, longest=9):
    lengths = draw.integers(1, longest, number)
    vectors = draw.normal(size=(lengths.sum(), dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return TokenVectors(vectors, np.concatenate([[0], np.cumsum(lengths)]))


def part_of(texts, begin, end):
    offsets = texts.offsets[begin : end + 1]
    return TokenVectors(texts.vectors[offsets[0] : offsets[-1]], offsets - offsets[0])


def as_lists(run):
    found = {}
    for row in run.to_pylist():
        found.setdefault(row["query_id"], []).append((row["doc_id"], row["score"]))
    return found


@pytest.fixture
def small_blocks(monkeypatch):
    from beirnl.retrieval.late import search

    monkeypatch.setattr(search, "_QUERY_TOKENS", 16)
    monkeypatch.setattr(search, "_DOCUMENT_TOKENS", 40)
    monkeypatch.setattr(search, "_DOCUMENTS", 37)


@pytest.mark.parametrize("remove_self", [False, True])
def test_exhaustive_search_equals_brute_force_however_it_is_cut(small_blocks, remove_self):
    draw = np.random.default_rng(5)
    queries, documents = random_texts(draw, 7), random_texts(draw, 200)
    again = TokenVectors.join([documents, part_of(documents, 0, 60)])  # 60 documents twice: ties at every cut
    names = [f"d{number}" for number in draw.permutation(len(again.offsets) - 1)]
    query_ids = ["d3", "d77", *(f"q{number}" for number in range(5))]
    scores = by_hand(
        [queries.of(q).astype(np.float64) for q in range(7)],
        [again.of(d).astype(np.float64) for d in range(len(names))],
    ).astype(np.float32)

    def searched(depth, sizes):
        search = LateSearch(query_ids, queries, depth, remove_self=remove_self, threads=1, device="cpu")
        begin = 0
        for size in sizes:
            search.add(names[begin : begin + size], part_of(again, begin, begin + size))
            begin += size
        return as_lists(search.result())

    for depth in (1, 10, 400):
        whole = searched(depth, [260])
        for row, query in enumerate(query_ids):
            best = top(scores[row], names, depth, exclude=query if remove_self else None)
            assert whole[query] == [(names[place], scores[row, place]) for place in best]
        assert searched(depth, [100, 1, 0, 159]) == whole


def test_search_refuses_other_dimensions_and_nan():
    draw = np.random.default_rng(5)
    search = LateSearch(["q"], random_texts(draw, 1), 3, device="cpu")
    with pytest.raises(DataError, match="4 dimensions, queries 8"):
        search.add(["a"], random_texts(draw, 1, dimension=4))
    broken = random_texts(draw, 1)
    broken.vectors[0, 0] = np.nan
    with pytest.raises(DataError, match="NaN"):
        search.add(["a"], broken)
