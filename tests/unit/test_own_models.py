"""Models that an experiment file describes itself."""

import pytest
import tiny_models
from beir_folder import doc, query, write_beir
from running import dataset, experiment

from beirnl.config import load_experiment
from beirnl.errors import ConfigError
from beirnl.pipeline import Pipeline

SYSTEM = '[[system]]\nname = "own"\nkind = "dense"\nmodel = "mine"\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A set and a model."""
    place = tmp_path_factory.mktemp("own")
    write_beir(place / "set", [doc("d1")], [query("q1")], [("q1", "d1", 1)])
    tiny_models.sentence_transformer(place / "bi", tiny_models.bert(place / "bert"))
    return place


def encoder(folder, facts, system=SYSTEM):
    text = dataset(folder / "set") + f'[[model]]\nname = "mine"\n{facts}\n' + system
    graph = Pipeline.of(load_experiment(experiment(folder, text))).graph
    return next(node.spec.encoder for node in graph.nodes.values() if node.stage == "embed")


def test_a_system_has_the_facts_of_its_model(folder):
    facts = 'path = "bi"\nmax_tokens = 16\nprompts = { query = "query: ", document = "passage: " }'
    spec = encoder(folder, facts)
    assert (spec.query_prompt, spec.document_prompt, spec.max_tokens) == ("query: ", "passage: ", 16)
    assert spec.model.name == "mine" and spec.model.source == f"path:{folder / 'bi'}"
    bare = encoder(folder, 'path = "bi"', SYSTEM.replace('"mine"', '"bi"'))
    assert spec.model.revision == bare.model.revision and bare.query_prompt == ""
    stated = encoder(folder, facts, SYSTEM + 'query_prompt = "q: "\nmax_tokens = 8\n')
    assert (stated.query_prompt, stated.document_prompt, stated.max_tokens) == ("q: ", "passage: ", 8)


def test_a_model_of_the_hub_is_pinned_by_its_revision(folder):
    spec = encoder(folder, 'hub = "org/model"\nrevision = "abc"\npooling = "cls"')
    assert (spec.model.source, spec.model.revision, spec.model.pooling) == ("hub:org/model", "abc", "cls")
    assert encoder(folder, 'hub = "org/model"').model.revision == "unpinned"


@pytest.mark.parametrize(
    "facts, said",
    [
        ('hub = "a/b"\nprompt = "x"', "model 'mine': unknown key 'prompt'; did you mean 'prompts'?"),
        (
            'hub = "a/b"\nprompts = { querry = "x" }',
            "model 'mine': unknown key 'prompts.querry'; did you mean 'query'?",
        ),
        ("", "needs one of path, hub and api"),
        ('hub = "a/b"\npath = "bi"', "needs one of path, hub and api"),
        ('package = "x==1"', "package and recipe are for models of the registry"),
        ('hub = "a/b"\nkind = "reranker"', "'mine' is used as encoder and is described as reranker"),
        ('hub = "a/b"\n[[model]]\nname = "mine"\nhub = "c/d"', "two models are called 'mine'"),
        ('hub = "a/b"\n[[model]]\nname = "bge-m3"\nhub = "c/d"', "the registry has a model 'bge-m3'"),
        ('path = "absent"', "this model folder does not exist"),
    ],
)
def test_mistakes_are_one_line(folder, facts, said):
    with pytest.raises(Exception) as error:
        encoder(folder, facts)
    assert said in str(error.value) and "\n" not in str(error.value)
    assert isinstance(error.value, ConfigError) or "absent" in facts
