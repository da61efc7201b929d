"""Whose own code may run: told when an experiment is planned, and again when a model is loaded."""

import json
import shutil

import pytest
import tiny_models
from beir_folder import doc, query, write_beir
from running import BM25, dataset, experiment, system

from beirnl import registry
from beirnl.config import load_experiment
from beirnl.errors import ConfigError
from beirnl.graph import build_graph
from beirnl.registry import ModelEntry, resolve_model
from beirnl.retrieval.encoders import load_encoder
from beirnl.retrieval.late import LateEncoder, LateSpec
from beirnl.retrieval.own_code import needs_own_code, own_code
from beirnl.retrieval.reranking import load_reranker
from beirnl.specs import EncoderSpec, ModelRef, RerankerSpec
from beirnl.store.workspace import Workspace

NOT_ALLOWED = "which the registry does not allow; read that code"
NO_HEAD = "has no classification head"  # found before anything is loaded
LOADERS = {
    "dense": lambda model: load_encoder(EncoderSpec(model=model), device="cpu"),
    "rerank": lambda model: load_reranker(RerankerSpec(kind="cross-encoder", model=model), device="cpu"),
    "late": lambda model: LateEncoder(LateSpec(model=model), "cpu"),
}


def test_a_models_own_code_runs_only_where_it_is_allowed_and_pinned():
    model = ModelRef(name="m", source="hub:a/m", trust_remote_code=True)
    with pytest.raises(ConfigError, match="no revision pins it"), own_code(model):
        pass
    with own_code(model.model_copy(update={"revision": "0123"})):
        pass
    with (
        pytest.raises(ConfigError, match="registry does not allow"),
        own_code(ModelRef(name="m", source="hub:a/m")),
    ):
        raise ValueError("set the option\n`trust_remote_code=True` to remove this error.")
    with pytest.raises(ValueError, match="else"), own_code(model.model_copy(update={"revision": "0123"})):
        raise ValueError("something else")


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """A bi-encoder that needs no code of its own."""
    root = tmp_path_factory.mktemp("models")
    return tiny_models.sentence_transformer(root / "honest", tiny_models.bert(root / "bert"))


@pytest.fixture(params=["a module of its own", "an architecture of its own"])
def strange(request, honest, tmp_path):
    """A model that cannot be read without running its code, which would end the test."""
    folder = shutil.copytree(honest, tmp_path / "strange")
    if request.param == "a module of its own":
        tiny_models.add_module(folder, "raise SystemExit('ran')", "Strange")
    else:
        facts = json.loads((folder / "config.json").read_text())
        facts |= {"model_type": "unheard-of", "architectures": ["StrangeForSequenceClassification"]}
        facts |= {
            "auto_map": {"AutoConfig": "own_code.Config", "AutoModel": "own_code.Model"},
            "num_labels": 1,
        }
        facts["auto_map"]["AutoModelForSequenceClassification"] = "own_code.Model"
        (folder / "config.json").write_text(json.dumps(facts))
        (folder / "own_code.py").write_text("raise SystemExit('ran')")
    return folder


@pytest.mark.parametrize("kind", LOADERS)
def test_no_loader_runs_it(kind, strange):
    with pytest.raises(ConfigError, match=f"{NOT_ALLOWED}|{NO_HEAD}"):
        LOADERS[kind](resolve_model(str(strange), "encoder"))


@pytest.mark.parametrize("kind", LOADERS)
def test_no_loader_takes_a_revision_that_may_move(kind, honest):
    model = resolve_model(str(honest), "encoder")
    loose = model.model_copy(update={"trust_remote_code": True, "revision": "unpinned"})
    with pytest.raises(ConfigError, match=f"no revision pins it|{NO_HEAD}"):
        LOADERS[kind](loose)


def planned(folder, models):
    """The graph of an experiment with a system of each kind."""
    data = write_beir(folder / "set", [doc("a")], [query("q")], [("q", "a", 1)])
    text = (
        dataset(data)
        + BM25
        + "".join(
            system(kind, kind, model=model, **({} if kind == "dense" else {"first": "bm25"}))
            for kind, model in models.items()
        )
    )
    loaded = load_experiment(experiment(folder, text))
    return build_graph(loaded, Workspace(loaded.workspace_path))


@pytest.mark.parametrize("kind", LOADERS)
def test_a_folder_that_needs_it_is_refused_when_the_experiment_is_planned(kind, strange, honest, tmp_path):
    assert planned(tmp_path, {kind: honest}).evaluations
    with pytest.raises(ConfigError, match=NOT_ALLOWED):
        planned(tmp_path, {kind: strange})


@pytest.mark.parametrize("kind", ["encoder", "reranker", "late-interaction"])
def test_an_entry_that_allows_it_and_pins_nothing_is_refused_when_planned(kind, tmp_path, monkeypatch):
    def entries(revision):
        entry = ModelEntry(
            name="own", kind=kind, hub="a/own", licence="MIT", trust_remote_code=True, revision=revision
        )
        monkeypatch.setattr(registry, "models", lambda: {"own": entry})

    system_kind = {"encoder": "dense", "reranker": "rerank", "late-interaction": "late"}[kind]
    entries("")
    with pytest.raises(ConfigError, match="own: this model runs code of its own, and no revision pins it"):
        planned(tmp_path, {system_kind: "own"})
    entries("0123")
    assert planned(tmp_path, {system_kind: "own"}).evaluations


def test_an_architecture_that_the_library_knows_needs_none(honest, tmp_path):
    folder = shutil.copytree(honest, tmp_path / "known")
    facts = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(facts | {"auto_map": {"AutoModel": "own_code.Model"}}))
    assert not needs_own_code(folder) and not needs_own_code(tmp_path / "nowhere")
    assert (
        load_encoder(EncoderSpec(model=resolve_model(str(folder), "encoder")), device="cpu").dimension == 32
    )
