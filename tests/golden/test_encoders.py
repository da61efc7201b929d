"""Vectors against the formulas of the models' own cards, applied to transformers' hidden states by hand.

The checkpoints are random and of the same architectures: a formula holds whatever the weights are.
"""

import numpy as np
import pytest
import tiny_models
import torch
from torch.nn.functional import normalize

from beirnl.registry import model as entry
from beirnl.registry import resolve_model
from beirnl.retrieval.encoders import load_encoder
from beirnl.specs import EncoderSpec

TEXTS = ["water boils at 100 degrees", "a court", "vaccines train the immune system . a court sets the fine"]


def hidden_states(folder, texts):
    """Last hidden states [texts, tokens, 32] and the mask, as every card begins."""
    from transformers import AutoModel, AutoTokenizer

    batch = AutoTokenizer.from_pretrained(folder)(texts, padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        return AutoModel.from_pretrained(folder).eval()(**batch).last_hidden_state, batch["attention_mask"]


def cosines(folder, expected, kind="document", **settings):
    spec = EncoderSpec(model=resolve_model(str(folder), "encoder"), **settings)
    found = load_encoder(spec, device="cpu").encode(TEXTS, kind).vectors
    return (found * normalize(expected, dim=1).numpy()).sum(axis=1)


def test_mean_pooling_with_the_prefixes_of_e5(tmp_path):
    """``average_pool``: masked positions are zero, the sum is over all tokens, those of the prefix too."""
    base = tiny_models.bert(tmp_path / "base")
    folder = tiny_models.sentence_transformer(tmp_path / "e5", base)
    prompts = entry("multilingual-e5-small").prompts
    for kind, prefix in (("query", prompts.query), ("document", prompts.document)):
        hidden, mask = hidden_states(base, [prefix + text for text in TEXTS])
        hidden = hidden.masked_fill(~mask[..., None].bool(), 0.0)
        expected = hidden.sum(dim=1) / mask.sum(dim=1)[..., None]
        settings = {"query_prompt": prompts.query, "document_prompt": prompts.document}
        assert cosines(folder, expected, kind, **settings).min() > 0.9999
        other = cosines(folder, expected, kind)
        assert other.min() < 0.9999  # without the prefix they are others


def test_cls_then_dense_then_normalise_as_labse(tmp_path):
    """The first token's state, a linear layer with tanh, length 1 (LaBSE's modules, in their order)."""
    from sentence_transformers.base.modules import Dense
    from sentence_transformers.sentence_transformer.modules import Normalize

    base = tiny_models.bert(tmp_path / "base")
    torch.manual_seed(5)
    dense = Dense(32, 24, activation_function=torch.nn.Tanh())
    folder = tiny_models.sentence_transformer(tmp_path / "labse", base, dense, Normalize(), pooling="cls")
    hidden, _ = hidden_states(base, TEXTS)
    with torch.no_grad():
        expected = torch.tanh(hidden[:, 0] @ dense.linear.weight.T + dense.linear.bias)
    assert cosines(folder, expected).min() > 0.9999
    assert cosines(folder, expected).shape == (3,)


def test_cls_pooling_as_bge_and_gte(tmp_path):
    base = tiny_models.bert(tmp_path / "base")
    folder = tiny_models.sentence_transformer(tmp_path / "bge", base, pooling="cls")
    hidden, _ = hidden_states(base, TEXTS)
    assert cosines(folder, hidden[:, 0]).min() > 0.9999


def test_mean_pooling_of_mcontriever_counts_no_padding(tmp_path):
    """``mean_pooling`` of the card, one text at a time: nothing is padded there."""
    base = tiny_models.bert(tmp_path / "base")
    folder = tiny_models.sentence_transformer(tmp_path / "mcontriever", base)
    alone = torch.cat([hidden_states(base, [text])[0].mean(dim=1) for text in TEXTS])
    assert cosines(folder, alone).min() > 0.9999


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_that_of_the_weights(tmp_path, dtype):
    base = tiny_models.bert(tmp_path / "base")
    folder = tiny_models.sentence_transformer(tmp_path / "half", base)
    hidden, mask = hidden_states(base, TEXTS)
    expected = (hidden * mask[..., None]).sum(1) / mask.sum(1)[..., None]
    found = cosines(folder, expected, dtype=dtype)
    assert 0.99 < found.min() < 0.9999999
    assert np.isfinite(found).all()
