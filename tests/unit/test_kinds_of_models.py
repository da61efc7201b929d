"""Each kind of model in the registry: our vectors and scores against the formula of its model card.

The checkpoints are random and small, of the same architectures and layout of files: a formula holds whatever
the weights are. What the formula leaves open (prompts, tasks, pooling, own code) comes from the entry.
"""

import json
from typing import NamedTuple

import numpy as np
import pytest
import tiny_models
import torch
from torch.nn.functional import normalize

from beirnl.errors import ConfigError, PrerequisiteError
from beirnl.models.cache import folder_at_hand, model_path
from beirnl.registry import ModelEntry, find_model, models, resolve_model
from beirnl.retrieval.encoders import load_encoder
from beirnl.retrieval.reranking import load_reranker
from beirnl.specs import EncoderSpec, ModelRef, RerankerSpec

TEXTS = ["water boils at 100 degrees", "a court", "vaccines train the immune system . a court sets the fine"]
PAIRS = [(TEXTS[1], TEXTS[0]), ("fine", TEXTS[2]), (TEXTS[0], TEXTS[0])]
LANGUAGES = ["en_XX", "nl_XX"]


class Card(NamedTuple):
    """What a model card's lines work on; hidden states are [texts, tokens, 32]."""

    hidden: torch.Tensor
    mask: torch.Tensor
    pooler: torch.Tensor | None
    folder: object
    texts: list[str]

    @property
    def mean(self):
        return self.hidden.masked_fill(~self.mask[..., None].bool(), 0.0).sum(1) / self.mask.sum(1)[..., None]


def read(folder, texts, model=None, **inputs):
    """As every card begins: tokenise, and run the transformer."""
    from transformers import AutoModel, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(folder)(texts, padding=True, truncation=True, return_tensors="pt")
    model = model or AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        found = model(**tokens, **inputs)
    return Card(found.last_hidden_state, tokens["attention_mask"], found.get("pooler_output"), folder, texts)


# Layouts of files -------------------------------------------------------------------------------------------


def dense(activation, size=24):
    from sentence_transformers.base.modules import Dense

    torch.manual_seed(5)
    return Dense(32, size, activation_function=activation)


def normalised():
    from sentence_transformers.sentence_transformer.modules import Normalize

    return Normalize()


def packed(base, to, pooling, *modules):
    """sentence-transformers' modules.json over a transformer."""
    return tiny_models.sentence_transformer(to, base, *modules, pooling=pooling), None


def e5(to):
    return packed(tiny_models.xlm_roberta(to / "base"), to / "whole", "mean", normalised())


def bge(to):
    return packed(tiny_models.xlm_roberta(to / "base"), to / "whole", "cls", normalised())


def labse(to):
    return packed(tiny_models.bert(to / "base"), to / "whole", "cls", dense(torch.nn.Tanh()), normalised())


def stella(to):
    return packed(tiny_models.bert(to / "base"), to / "whole", "mean", dense(torch.nn.Identity(), 16))


def plain_bert(to):
    return tiny_models.bert(to / "plain"), None


def dpr_xm(to):
    return packed(tiny_models.xmod(to / "base", LANGUAGES), to / "whole", "mean")


JINA = """
import torch
from sentence_transformers.base.modules import Transformer

class Adapted(Transformer):
    forward_kwargs = {"task"}
    def forward(self, features, task=None, **kwargs):
        features = super().forward(features)
        states = features["token_embeddings"]
        torch.manual_seed({"retrieval.query": 1, "retrieval.passage": 2}[task])
        low, high = torch.randn(32, 4), torch.randn(4, 32)
        features["token_embeddings"] = states + states @ low @ high
        return features
"""


def jina(to):
    folder, _ = packed(tiny_models.xlm_roberta(to / "base"), to / "whole", "mean", normalised())
    tiny_models.add_module(folder, JINA, "Adapted")
    return folder, None


def adapted(card, kind):
    """The low-rank adapter of a task, added to what the transformer gives."""
    torch.manual_seed({"query": 1, "document": 2}[kind])
    low, high = torch.randn(32, 4), torch.randn(4, 32)
    return card._replace(hidden=card.hidden + card.hidden @ low @ high).mean


def jina_hf(to):
    peft = pytest.importorskip("peft")
    from transformers import AutoModel

    folder = tiny_models.jina_v3(to / "jina")
    for seed, task in enumerate(("retrieval_query", "retrieval_passage")):
        torch.manual_seed(seed)
        low_rank = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
        peft.get_peft_model(AutoModel.from_pretrained(folder), low_rank).save_pretrained(str(folder / task))
    return folder, None


def merged(card, kind):
    """The adapter's product added to the weights, without peft: the transformer is run again."""
    from safetensors.torch import load_file
    from transformers import AutoModel

    model = AutoModel.from_pretrained(card.folder).eval()
    adapter = card.folder / {"query": "retrieval_query", "document": "retrieval_passage"}[kind]
    facts, low = json.loads((adapter / "adapter_config.json").read_text()), "lora_A.weight"
    weights = load_file(adapter / "adapter_model.safetensors")
    for name in [name for name in weights if name.endswith(low)]:
        module = model.get_submodule(name.removeprefix("base_model.model.").removesuffix(f".{low}"))
        product = weights[name.replace("lora_A", "lora_B")] @ weights[name]
        module.weight.data += facts["lora_alpha"] / facts["r"] * product
    return read(card.folder, card.texts, model).mean


def gte(to):
    model = tiny_models.new_model(to / "base", "NewModel")
    folder = to / "base"
    (folder / "1_Pooling").mkdir()
    pooling = {
        "word_embedding_dimension": 32,
        "pooling_mode_cls_token": True,
        "pooling_mode_mean_tokens": False,
    }
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [
        {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for n, (path, kind) in enumerate(kinds.items())
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    return folder, model


def linear(card, x):
    """The dense layer that the folder holds, by hand."""
    from safetensors.torch import load_file

    weights = load_file(next(card.folder.glob("2_Dense*/*.safetensors")))
    return x @ weights["linear.weight"].T + weights["linear.bias"]


#: entry: the layout of its files, and its card's formula of what :func:`read` gives and the kind of text.
ENCODERS = {
    "multilingual-e5-small": (e5, lambda card, _: card.mean),
    "multilingual-e5-large-instruct": (e5, lambda card, _: card.mean),
    "bge-m3": (bge, lambda card, _: card.hidden[:, 0]),
    "gte-multilingual-base": (gte, lambda card, _: card.hidden[:, 0]),
    "LaBSE": (labse, lambda card, _: torch.tanh(linear(card, card.hidden[:, 0]))),
    "LEALLA-small": (plain_bert, lambda card, _: card.pooler),
    "mcontriever": (plain_bert, lambda card, _: card.mean),
    "dpr-xm": (dpr_xm, lambda card, _: card.mean),
    "jina-embeddings-v3": (jina, adapted),
    "jina-embeddings-v3-hf": (jina_hf, merged),
    "stella_en_1.5B_v5": (stella, lambda card, _: linear(card, card.mean)),
}
#: Entries that are, for the purpose, one of those above.
LIKE = {
    "multilingual-e5-small": {"multilingual-e5-base", "multilingual-e5-large", "multilingual-e5-small-q4"},
    "LEALLA-small": {"LEALLA-base"},
}
PACKAGED = {"use-multilingual-v3", "all-MiniLM-L6-v2", "all-mpnet-base-v2", "paraphrase-MiniLM-L3-v2"}


def spec_of(entry: ModelEntry, folder, **more) -> EncoderSpec:
    prompts = entry.prompts_with()
    return EncoderSpec(
        model=ref_of(entry, folder),
        query_prompt=prompts.query,
        document_prompt=prompts.document,
        query_task=entry.tasks.query,
        document_task=entry.tasks.document,
        language="nl" if entry.language_adapters else "",
        **more,
    )


def ref_of(entry: ModelEntry, folder) -> ModelRef:
    facts = {"pooling": entry.pooling, "trust_remote_code": entry.trust_remote_code}
    return resolve_model(str(folder), "encoder").model_copy(update=facts)


@pytest.mark.parametrize("name", ENCODERS)
def test_vectors_are_those_of_the_cards_formula(name, tmp_path):
    layout, formula = ENCODERS[name]
    entry = find_model(name)
    folder, model = layout(tmp_path)
    encoder = load_encoder(spec_of(entry, folder, batch_size=2), device="cpu")
    adapter = {"lang_ids": torch.ones(3, dtype=torch.int64)} if entry.language_adapters else {}
    prompts = entry.prompts_with()
    found = {}
    for kind, prompt in (("query", prompts.query), ("document", prompts.document)):
        card = read(folder, [prompt + text for text in TEXTS], model, **adapter)
        expected = normalize(formula(card, kind), dim=1).numpy()
        found[kind] = encoder.encode(TEXTS, kind).vectors
        assert (found[kind] * expected).sum(axis=1).min() > 0.9999
        assert np.abs(expected[0] @ expected[1]) < 0.999  # the checkpoint tells texts apart
    alike = not (entry.tasks.query or prompts.query != prompts.document)
    assert np.allclose(found["query"], found["document"], atol=1e-5) == alike


def test_every_encoder_that_is_loaded_is_of_a_kind_that_is_tested():
    of_a_kind = set(ENCODERS) | {name for names in LIKE.values() for name in names} | PACKAGED
    assert of_a_kind == {
        entry.name for entry in models().values() if entry.kind == "encoder" and not entry.api
    }
    for name, others in LIKE.items():
        shape = {"modules", "pooling", "prompts", "tasks", "language_adapters", "trust_remote_code"}
        for other in others:
            assert find_model(other).model_dump(include=shape) == find_model(name).model_dump(include=shape)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_that_of_the_weights(tmp_path, dtype):
    folder, _ = e5(tmp_path)
    encoder = load_encoder(
        EncoderSpec(model=resolve_model(str(folder), "encoder"), dtype=dtype), device="cpu"
    )
    found = encoder.encode(TEXTS, "document").vectors
    cosines = (found * normalize(read(folder, TEXTS).mean, dim=1).numpy()).sum(axis=1)
    assert 0.99 < cosines.min() < 0.9999999
    assert np.isfinite(found).all()


# Cross-encoders ---------------------------------------------------------------------------------------------


def bge_reranker(to):
    from transformers import AutoModelForSequenceClassification

    folder = tiny_models.xlm_roberta(to / "bge", labels=1)
    return folder, AutoModelForSequenceClassification.from_pretrained(folder).eval()


def gte_reranker(to):
    return to / "gte", tiny_models.new_model(to / "gte", "NewForSequenceClassification")


#: entry: the layout of its files, and what its card makes of the logits (the order of both is the same).
RERANKERS = {
    "bge-reranker-v2-m3": (bge_reranker, lambda logits: logits),
    "gte-multilingual-reranker-base": (gte_reranker, lambda logits: logits),
    "jina-reranker-v2-base-multilingual": (gte_reranker, torch.sigmoid),
}


@pytest.mark.parametrize("name", RERANKERS)
def test_scores_are_those_of_the_cards_formula(name, tmp_path):
    from transformers import AutoTokenizer

    layout, formula = RERANKERS[name]
    folder, model = layout(tmp_path)
    tokens = AutoTokenizer.from_pretrained(folder)(PAIRS, padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        expected = formula(model(**tokens).logits.view(-1).float())
    spec = RerankerSpec(kind="cross-encoder", model=ref_of(find_model(name), folder), batch_size=2)
    scores = torch.from_numpy(load_reranker(spec, device="cpu").score(PAIRS).scores)
    torch.testing.assert_close(formula(scores), expected, atol=1e-5, rtol=1e-5)
    assert set(RERANKERS) == {entry.name for entry in models().values() if entry.kind == "reranker"}


# Checkpoints that do not say how they are read --------------------------------------------------------------


def test_a_checkpoint_that_says_its_pooling_is_not_told_another(tmp_path):
    folder, _ = bge(tmp_path)
    with pytest.raises(ConfigError, match=r"says itself .* in modules\.json; leave `pooling` out"):
        load_encoder(spec_of(find_model("mcontriever"), folder), device="cpu")


@pytest.mark.parametrize("safe", [True, False])
def test_a_pooler_is_never_made_up(tmp_path, safe):
    from safetensors.torch import load_file, save_file

    folder = tiny_models.bert(tmp_path / "plain")
    file = folder / "model.safetensors"
    weights = load_file(file)
    assert any("pooler" in name for name in weights)
    without = {name: tensor for name, tensor in weights.items() if "pooler" not in name}
    if safe:
        save_file(without, file, {"format": "pt"})
    else:
        file.unlink()
        torch.save(without, folder / "pytorch_model.bin")
    with pytest.raises(ConfigError, match='has no pooler; set pooling to "cls" or "mean"'):
        load_encoder(spec_of(find_model("LEALLA-small"), folder), device="cpu")


@pytest.mark.parametrize("installed", [True, False])
def test_task_adapters_that_are_not_there(tmp_path, monkeypatch, installed):
    folder = tiny_models.jina_v3(tmp_path / "jina")
    (folder / "retrieval_query").mkdir()
    (folder / "retrieval_query" / "adapter_config.json").write_text("{}")
    entry = find_model("jina-embeddings-v3-hf")
    tasks = entry.tasks.model_copy(update={"query": "no_such_task", "document": "retrieval_query"})
    monkeypatch.setattr("beirnl.retrieval.task_adapters.find_spec", lambda name: installed or None)
    error, message = (
        (ConfigError, "no adapter of the task 'no_such_task'; use one of: retrieval_query")
        if installed
        else (PrerequisiteError, r"peft is not installed.*pip install 'beirnl\[adapters\]'")
    )
    with pytest.raises(error, match=message):
        load_encoder(spec_of(entry.model_copy(update={"tasks": tasks}), folder), device="cpu")


# Code of the model's own ------------------------------------------------------------------------------------


def cached(hub, repository, revision):
    """The folder of a repository in a hub cache, as it would be downloaded at a commit."""
    return hub / f"models--{repository.replace('/', '--')}" / "snapshots" / revision


def test_code_of_another_repository_is_that_of_its_commit(tmp_path, monkeypatch):
    """Two commits of the code: the one that is named is run, and nothing asks a hub."""
    hub = tmp_path / "hub"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(hub))
    monkeypatch.setenv("BEIRNL_CACHE", str(tmp_path / "cache"))
    weights, right, wrong = "a" * 40, "b" * 40, "c" * 40
    model = tiny_models.new_model(cached(hub, "org/model", weights), "NewModel", code="org/code")
    for revision in (right, wrong):
        tiny_models.copy_code(cached(hub, "org/code", revision))
    (cached(hub, "org/code", wrong) / "modeling.py").write_text("raise SystemExit('ran')")
    pinned = ModelRef(
        name="m", source="hub:org/model", revision=weights, trust_remote_code=True, pooling="cls",
        code=f"org/code@{right}",
    )  # fmt: skip
    folder = model_path(pinned)
    assert folder == model_path(pinned) and "--" not in (folder / "config.json").read_text()
    found = load_encoder(EncoderSpec(model=pinned), device="cpu").encode(TEXTS, "document").vectors
    expected = normalize(read(folder, TEXTS, model).hidden[:, 0], dim=1).numpy()
    assert (found * expected).sum(axis=1).min() > 0.9999
    with pytest.raises(ConfigError, match=r"runs code of org/code, and no revision pins it; add code ="):
        load_encoder(EncoderSpec(model=pinned.model_copy(update={"code": ""})), device="cpu")
    missing = pinned.model_copy(update={"code": f"org/code@{'d' * 40}"})
    assert folder_at_hand(pinned) == cached(hub, "org/model", weights) and not folder_at_hand(missing)
    with pytest.raises(PrerequisiteError, match=f"org/code --revision {'d' * 40}"):
        load_encoder(EncoderSpec(model=missing), device="cpu")


def test_code_that_the_installed_library_cannot_run_is_an_error(tmp_path):
    folder, _ = gte(tmp_path)
    code = (folder / "modeling.py").read_text()
    (folder / "modeling.py").write_text(code.replace("self.post_init()", "self.gone_since_version_4()"))
    with (folder / "configuration.py").open("a") as file:  # else transformers remembers the class of before
        file.write("# as of version 4\n")
    with pytest.raises(ConfigError, match=r"own code fails with transformers 5.*gone_since_version_4"):
        load_encoder(spec_of(find_model("gte-multilingual-base"), folder), device="cpu")


def test_a_hub_path_near_to_one_of_the_registry_is_answered_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for written, meant in (("infloat/multilingual-e5-small", "intfloat/multilingual-e5-small"), ("x/y", "")):
        with pytest.raises(PrerequisiteError) as caught:
            load_encoder(EncoderSpec(model=resolve_model(written, "encoder")), device="cpu")
        assert ("did you mean" in str(caught.value)) == bool(meant) and meant in str(caught.value)
        assert f"hf download {written}" in str(caught.value)
