"""What runs on a GPU gives what the CPU gives: vLLM, an encoder, a reranker, exact search."""

import importlib.util

import numpy as np
import pyarrow as pa
import pytest
from small_models import SYLLABLES, bi_encoder, cross_encoder

from beirnl.specs import EncoderSpec, LlmSpec, ModelRef, RerankerSpec

pytestmark = pytest.mark.gpu

TEXTS = [" ".join(SYLLABLES[n : n + 3 + n % 9]) for n in range(60)]
DEVICES = ("cuda", "cpu")


@pytest.fixture(autouse=True)
def _gpu():
    import torch

    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")


def of(path) -> ModelRef:
    return ModelRef(name="random", source=f"path:{path}")


def test_an_encoder_gives_the_vectors_of_the_cpu(tmp_path):
    from beirnl.retrieval.encoders import load_encoder

    spec = EncoderSpec(model=of(bi_encoder(tmp_path)))
    here, there = (load_encoder(spec, device=device).encode(TEXTS, "document") for device in DEVICES)
    np.testing.assert_allclose(here.vectors, there.vectors, atol=1e-4)


def test_a_reranker_gives_the_scores_of_the_cpu(tmp_path):
    from beirnl.retrieval.reranking import load_reranker

    spec = RerankerSpec(kind="cross-encoder", model=of(cross_encoder(tmp_path / "cross")))
    pairs = list(zip(TEXTS, reversed(TEXTS), strict=True))
    here, there = (load_reranker(spec, device=device).score(pairs) for device in DEVICES)
    np.testing.assert_allclose(here, there, atol=1e-4)


@pytest.mark.parametrize("products", ["float32", "bfloat16"])
def test_exact_search_gives_the_run_of_the_cpu(products):
    from beirnl.retrieval.exact import ExactSearch
    from beirnl.retrieval.topk import id_ranks

    draw = np.random.default_rng(5)
    vectors = draw.standard_normal((20_000, 64), np.float32)
    ranks, ascending = id_ranks(pa.array([f"d{n}" for n in range(len(vectors))], pa.string()))
    names = pa.array([f"q{n}" for n in range(50)], pa.string())
    runs = []
    for device in DEVICES:
        search = ExactSearch(vectors[:50], 100, products=products, device=device)
        search.add(vectors, ranks)
        runs.append(search.top.run(names, ascending))
    here, there = runs
    assert here.column("doc_id").to_pylist() == there.column("doc_id").to_pylist()
    np.testing.assert_allclose(here.column("score"), there.column("score"), atol=1e-6)


@pytest.mark.skipif(not importlib.util.find_spec("vllm"), reason="vLLM is not installed")
def test_vllm_answers_as_transformers_does():
    from beirnl.llm import Request, Surroundings, in_order, load_llm
    from beirnl.registry import resolve_model

    model = resolve_model("gemma-3-270m", "llm")
    asked = [Request(prompt=f"{n} + 1 = {n + 1}\n" * 3 + f"{n} + 1 =", max_tokens=4) for n in range(20, 60)]
    texts = []
    for engine, gpus in (("vllm", 0.5), ("transformers", 0)):
        llm = load_llm(LlmSpec(engine=engine, model=model, dtype="float32"), Surroundings(gpus=gpus))
        texts.append([answer.text.split()[:1] for answer in in_order(llm, asked)])
        getattr(llm, "close", lambda: None)()
    same = sum(ours == theirs for ours, theirs in zip(*texts, strict=True))
    assert same >= 0.95 * len(asked), "sums of floats differ, answers that are sure do not"
