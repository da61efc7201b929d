"""Entries of models, and how what they say reaches a system."""

import json
import tomllib

import pytest
from beir_folder import doc, query, write_beir
from pydantic import ValidationError
from running import BM25, dataset, experiment, system

from beirnl import registry
from beirnl.cli import models as command
from beirnl.config import load_experiment
from beirnl.errors import ConfigError
from beirnl.graph import build_graph
from beirnl.registry import ModelEntry, Prompts, find_model, models, resolve_model
from beirnl.store.keys import artifact_key
from beirnl.store.workspace import Workspace


@pytest.fixture
def graph(tmp_path):
    """``graph(text)``: of an experiment with one small set."""
    data = write_beir(tmp_path / "set", [doc("a")], [query("q")], [("q", "a", 1)])

    def build(text):
        loaded = load_experiment(experiment(tmp_path, dataset(data, language="nl") + text))
        return build_graph(loaded, Workspace(loaded.workspace_path))

    return build


def encoder_of(graph):
    return next(node.spec.encoder for node in graph.nodes.values() if node.stage == "embed")


# Names ------------------------------------------------------------------------------------------------------


def test_no_two_models_share_a_name():
    called = [name for entry in models().values() for name in entry.names]
    assert len(called) == len(set(called))
    for entry in models().values():
        assert not entry.hub or entry.name == entry.hub.rpartition("/")[2]
        assert all(find_model(name) is entry for name in entry.names)


@pytest.mark.parametrize(
    ("written", "name", "source"),
    [
        ("e5-multilingual-small", "multilingual-e5-small", "hub:intfloat/multilingual-e5-small"),
        ("dunzhang/stella_en_1.5B_v5", "stella_en_1.5B_v5", "hub:NovaSearch/stella_en_1.5B_v5"),
        ("openai/text-embedding-3-large", "text-embedding-3-large", "api:text-embedding-3-large"),
        ("mContriever", "mcontriever", "hub:facebook/mcontriever"),
    ],
)
def test_an_alias_means_the_same_artifacts(written, name, source):
    assert resolve_model(written, "encoder") == resolve_model(name, "encoder")
    assert resolve_model(written, "encoder").source == source


def test_a_hub_path_near_to_one_of_the_registry():
    assert registry.model_like("infloat/multilingual-e5-small") == "intfloat/multilingual-e5-small"
    assert registry.model_like("someone/something-else") == ""
    with pytest.raises(ConfigError, match="did you mean 'LaBSE'"):
        registry.model("labse")
    with pytest.raises(ConfigError, match="did you mean 'gte-multilingual-base'"):
        resolve_model("gte-multilingal-base", "encoder")


# Prompts ----------------------------------------------------------------------------------------------------


def test_an_instruction_is_said_in_the_prompt(graph):
    entry = registry.model("multilingual-e5-large-instruct")
    assert entry.prompts_with() == Prompts(
        query="Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
    )
    said = registry.instruction("scifact", "en")
    settings = {"model": entry.name, "instruction": said}
    encoder = encoder_of(graph(system("dense", "d", **settings)))
    assert encoder.query_prompt == f"Instruct: {said}\nQuery: "
    assert encoder.document_prompt == ""
    assert (
        encoder_of(graph(system("dense", "d", model=entry.name))).query_prompt == entry.prompts_with().query
    )


def test_braces_of_an_instruction_are_text():
    entry = ModelEntry(
        name="m", kind="encoder", licence="MIT", prompts=Prompts(query="{instruction}: "), instruction="a {b}"
    )
    assert entry.prompts_with().query == "a {b}: "
    assert entry.prompts_with("{instruction} {x").query == "{instruction} {x: "


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"prompts": {"query": "{instruction}"}}, "there is no instruction"),
        ({"code": "a/b@0123"}, "trust_remote_code is not set"),
        ({"pooling": "cls", "modules": ["cls"]}, "pooling is for a checkpoint without modules"),
    ],
)
def test_an_entry_that_contradicts_itself(facts, message):
    with pytest.raises(ValidationError, match=message):
        ModelEntry(name="m", kind="encoder", licence="MIT", **facts)


# What reaches a system --------------------------------------------------------------------------------------


def test_facts_of_an_entry_reach_its_encoder(graph):
    small = encoder_of(graph(system("dense", "d", model="LEALLA-small")))
    assert (small.model.pooling, small.query_prompt) == ("pooler", "")
    jina = encoder_of(graph(system("dense", "d", model="jina-embeddings-v3")))
    assert (jina.query_task, jina.document_task) == ("retrieval.query", "retrieval.passage")
    assert jina.query_prompt == "Represent the query for retrieving evidence documents: "
    assert jina.model.code.startswith("jinaai/xlm-roberta-flash-implementation@")
    assert encoder_of(graph(system("dense", "d", model="dpr-xm"))).language == "nl"


def test_one_checkpoint_with_two_limits(graph):
    whole, cut = (
        encoder_of(graph(system("dense", "d", model=name)))
        for name in ("text-embedding-3-large", "text-embedding-3-large-512")
    )
    assert (whole.max_tokens, cut.max_tokens) == (8191, 512)
    assert whole.model.source == cut.model.source
    assert artifact_key("embed", 1, whole, {}) != artifact_key("embed", 1, cut, {})


def test_what_is_not_said_leaves_keys_as_they_are():
    ref = resolve_model("all-MiniLM-L6-v2", "encoder")
    fields = ref.model_dump(exclude_defaults=True)
    assert set(fields) == {"name", "source", "revision", "recipe"}


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("dense", {}),
        ("rerank", {"first": "bm25", "method": "bi-encoder"}),
    ],
)
def test_a_dtype_that_is_not_safe_is_refused(graph, kind, settings):
    refused = r'dtype float16 is not safe for this model; set dtype to "float32" or "bfloat16"'
    text = BM25 + system(kind, "d", model="stella_en_1.5B_v5", dtype="float16", **settings)
    with pytest.raises(ConfigError, match=refused):
        graph(text)
    assert graph(text.replace("float16", "bfloat16")).evaluations


# The command ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [entry.name for entry in models().values() if entry.kind != "llm"])
def test_the_system_that_is_shown_runs(name, graph, capsys):
    command.show_model(name)
    shown = capsys.readouterr().out.partition("In an experiment file:")[2]
    (only,) = tomllib.loads(shown)["system"]
    assert only["model"] == name
    assert len(graph(system("bm25", "BM25") + shown).evaluations) == 2


def test_facts_are_shown_as_they_are(capsys):
    command.show_model("dpr-xm")
    shown = capsys.readouterr().out
    for fact in ("unpinned", "852 million", "277 million", "XMOD", "antoinelouis/dpr-xm", "msmarco"):
        assert fact in shown
    assert "False" not in shown and "None" not in shown and "dtypes" not in shown
    command.show_model("text-embedding-3-large")
    assert "nobody says on what" in capsys.readouterr().out
    command.show_model("BAAI/bge-m3", format="json")
    assert ModelEntry(**json.loads(capsys.readouterr().out)) == find_model("bge-m3")


def test_the_list_is_whole(capsys):
    command.list_models()
    shown = capsys.readouterr().out
    for entry in models().values():
        assert entry.name in shown and entry.licence in shown
    command.list_models(kind="reranker", format="json")
    listed = json.loads(capsys.readouterr().out)
    assert [facts["name"] for facts in listed] == [
        entry.name for entry in models().values() if entry.kind == "reranker"
    ]
