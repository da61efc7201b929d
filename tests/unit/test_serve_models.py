"""Models of the service: what several requests ask together is what each would be answered alone."""

import numpy as np
import pytest
import tiny_models
from fault_server import FaultServer

from beirnl.config import Runtime
from beirnl.registry import resolve_model
from beirnl.retrieval.api_encoder import ApiEncoder, JournalledEncoder
from beirnl.retrieval.late import LateEncoder, LateSpec
from beirnl.retrieval.reranking import load_reranker
from beirnl.serve.models import Model, load
from beirnl.specs import EncoderSpec, ModelRef, RerankerSpec, Server
from beirnl.store.journal import Journal

TEXTS = ["the court sets fine", "water boils", "vaccines train immune system", "water boils"]
RUNTIME = Runtime(threads=1, device="cpu")


def test_a_reranker_gives_each_request_its_own_scores(tmp_path):
    folder = tiny_models.cross_encoder(tmp_path / "cross")
    spec = RerankerSpec(kind="cross-encoder", model=resolve_model(str(folder), "reranker"), batch_size=1)
    requests = [
        [("water", text) for text in TEXTS],
        [("court", TEXTS[0])],
        [("fine", text) for text in TEXTS[1:]],
    ]
    found = load(Model("reranker", spec), RUNTIME)(requests)
    alone = load_reranker(spec, device="cpu", threads=1)
    assert [len(scores) for scores in found] == [4, 1, 3]
    for request, scores in zip(requests, found, strict=True):
        assert np.array_equal(scores, alone.score(request).scores)


def test_a_token_encoder_gives_each_query_its_own_vectors(tmp_path):
    folder = tiny_models.sentence_transformer(tmp_path / "bi", tiny_models.bert(tmp_path / "bert"))
    spec = LateSpec(model=resolve_model(str(folder), "late-interaction"), batch_size=1)
    found = load(Model("token-encoder", spec), RUNTIME)(TEXTS)
    expected = LateEncoder(spec, "cpu", 1).encode(TEXTS, "query")
    assert len(found) == len(TEXTS)
    for number, vectors in enumerate(found):
        assert np.array_equal(vectors, expected.of(number))


def test_an_encoder_behind_an_api_is_asked_and_nothing_is_written_down(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with FaultServer() as server:
        spec = EncoderSpec(
            model=ModelRef(name="mock", source="api:mock"),
            server=Server(base_url=f"{server.url}/v1", api_key_env=""),
        )
        found = load(Model("encoder", spec), RUNTIME)(TEXTS)
        assert not list(tmp_path.iterdir())
        with Journal(tmp_path / "journal", 0, 4096, "w") as journal:
            expected = JournalledEncoder(ApiEncoder(spec), journal).encode(TEXTS, "query").vectors
    assert np.allclose(found, expected) and np.ptp(expected) > 0


def test_the_same_model_under_other_conditions_has_another_name():
    model = ModelRef(name="org/some model", source="path:/x", revision="1")
    specs = [EncoderSpec(model=model), EncoderSpec(model=model, query_prompt="query: ")]
    names = [Model("encoder", spec).name for spec in specs]
    assert names[0] != names[1] and all(name.startswith("encoder-some-model-") for name in names)
    assert Model("encoder", specs[0]).name == names[0]


@pytest.mark.parametrize("role", ["encoder", "token-encoder", "reranker"])
def test_a_model_that_is_not_there_is_told(role):
    from beirnl.errors import PrerequisiteError

    model = ModelRef(name="gone", source="path:/nowhere/gone")
    spec = {
        "encoder": EncoderSpec(model=model),
        "token-encoder": LateSpec(model=model),
        "reranker": RerankerSpec(kind="cross-encoder", model=model),
    }[role]
    with pytest.raises(PrerequisiteError, match="gone"):
        load(Model(role, spec), RUNTIME)
