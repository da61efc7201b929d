"""Second stages, late interaction and fusion through the pipeline, undisturbed and killed."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
from beir_folder import doc, query, write_beir
from running import BM25, ENVIRONMENT, beirnl, dataset, experiment, ranking, report, run, system
from support import ROOT

from beirnl.config import load_experiment
from beirnl.errors import BeirnlError, ConfigError, StoreError
from beirnl.pipeline import Pipeline
from beirnl.registry import resolve_model
from beirnl.retrieval.late import LateEncoder, LateSpec
from beirnl.retrieval.reranking import load_reranker
from beirnl.specs import RerankerSpec

SAMPLE = ROOT / "beirnl" / "sample"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return write_models(tmp_path_factory.mktemp("models"))


def write_models(folder):
    """A tiny cross-encoder and a tiny bi-encoder with random weights, over the words of the sample."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import BertConfig, BertForSequenceClassification, BertModel, BertTokenizerFast

    torch.manual_seed(0)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(chr, range(97, 123))]
    vocabulary += [f"##{letter}" for letter in map(chr, range(97, 123))]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    tokenizer = BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=64)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        initializer_range=0.5,
        num_labels=1,
    )
    for name, kind in (("cross", BertForSequenceClassification), ("bare", BertModel)):
        kind(config).save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    SentenceTransformer(modules=[Transformer(str(folder / "bare")), Pooling(16)], device="cpu").save(
        str(folder / "bi")
    )
    return folder


def systems(models, depth=10):
    return (
        BM25
        + system("rerank", "cross", first="bm25", model=models / "cross", depth=depth, batch_size=7)
        + system("late", "second", first="bm25", model=models / "bi", depth=depth, batch_size=7)
        + system("late", "late", model=models / "bi", depth=depth, batch_size=7)
        + '[[system]]\nkind = "fusion"\nname = "fused"\nof = ["bm25", "late", "cross"]\n'
        + '[[system]]\nkind = "fusion"\nname = "sum"\nof = ["bm25", "late"]\nmethod = "min-max"\n'
        + "weights = [0.3, 1.0]\n[runtime]\nthreads = 1\n"
    )


def write(folder, models, **settings):
    folder.mkdir(exist_ok=True)
    return experiment(folder, dataset(SAMPLE, "sample", shard_documents=8) + systems(models, **settings))


def contents(path):
    """Digest of every artifact whose bytes are repeatable."""
    pipeline = Pipeline.of(load_experiment(path))
    return {
        key: node.artifact(pipeline.workspace).manifest.content
        for key, node in pipeline.graph.nodes.items()
        if node.stage != "index"
    }


def receipts(folder):
    """All receipts of a workspace: what is finished, and by which attempt."""
    return {str(file): file.read_bytes() for file in folder.rglob("receipts/*.json")}


def texts(pipeline, which):
    for evaluation in pipeline.graph.evaluations:
        table = getattr(evaluation, which).artifact(pipeline.workspace).table()
        rows = table.select(["id", "title", "text"]).to_pylist()
        return {row["id"]: f"{row['title']} {row['text']}".strip() for row in rows}


@pytest.fixture(scope="module")
def clean(models, tmp_path_factory):
    path = write(tmp_path_factory.mktemp("clean"), models)
    return path, run(path)


def test_a_reranker_orders_the_first_hits_by_its_own_scores(clean, models):
    _, pipeline = clean
    first, found = ranking(pipeline, "bm25"), ranking(pipeline, "cross")
    queries, corpus = texts(pipeline, "queries"), texts(pipeline, "corpus")
    model = resolve_model(str(models / "cross"), "reranker")
    reranker = load_reranker(RerankerSpec(kind="cross-encoder", model=model, batch_size=1), device="cpu")
    for asked in list(found)[:6]:
        names = first[asked][:10]
        scores = reranker.score([(queries[asked], corpus[name]) for name in names]).scores
        best = sorted(zip(scores.tolist(), names, strict=True), reverse=True)
        close = np.diff([score for score, _ in best])
        assert sorted(found[asked]) == sorted(names)
        assert np.abs(close).min() < 1e-5 or found[asked] == [name for _, name in best]


def test_late_interaction_orders_by_maxsim_as_a_second_stage_and_over_everything(clean, models):
    _, pipeline = clean
    queries, corpus = texts(pipeline, "queries"), texts(pipeline, "corpus")
    spec = LateSpec(model=resolve_model(str(models / "bi"), "encoder"), language="en")
    encoder = LateEncoder(spec, "cpu")
    documents = encoder.encode(list(corpus.values()), "document")
    questions = encoder.encode(list(queries.values()), "query")
    for number, asked in enumerate(queries):
        scores = {
            name: (questions.of(number) @ documents.of(place).T).max(axis=1).sum()
            for place, name in enumerate(corpus)
        }
        for name, pool in (("late", list(scores)), ("second", ranking(pipeline, "bm25")[asked][:10])):
            found = ranking(pipeline, name)[asked]
            best = sorted((scores[hit] for hit in pool), reverse=True)[:10]
            np.testing.assert_allclose([scores[hit] for hit in found], best, atol=0.05)  # float16 vectors


def test_a_corpus_is_gathered_once_for_all_second_stages(clean):
    _, pipeline = clean
    gathered = [node for node in pipeline.graph.nodes.values() if node.stage == "gather"]
    assert len(gathered) == 1
    artifact = gathered[0].artifact(pipeline.workspace)
    wanted = {name for names in ranking(pipeline, "bm25").values() for name in names[:10]}
    corpus = texts(pipeline, "corpus")
    assert artifact.rows == len(wanted) < len(corpus)
    assert sum(receipt.rows_in for receipt in artifact.receipts()) == len(corpus), (
        "each document is read once"
    )


def test_fusion_is_that_of_the_reported_runs(clean):
    _, pipeline = clean
    runs = [ranking(pipeline, name) for name in ("bm25", "late", "cross")]
    for asked, found in ranking(pipeline, "fused").items():
        total: dict[str, float] = {}
        for hits in (one.get(asked, []) for one in runs):
            for rank, name in enumerate(hits, 1):
                total[name] = total.get(name, 0.0) + 1 / (60 + rank)
        best = sorted(total, key=lambda name: (np.float32(total[name]), name), reverse=True)
        assert found == best[:100]


def test_conditions_say_how_each_number_came_about(clean):
    path, _ = clean
    conditions = {record.system: record.conditions.model_dump() for record in report(path).records}
    assert conditions["second"]["search"] == "rerank" and conditions["second"]["first"] == "bm25"
    assert conditions["second"]["method"] == conditions["late"]["method"] == "late-interaction"
    assert conditions["cross"]["method"] == "cross-encoder"
    assert conditions["late"]["search"] == "late" and conditions["late"]["vectors"] == "float16"
    fused, weighted = conditions["fused"], conditions["sum"]
    assert fused["search"] == "fusion" and fused["of"] == "bm25 + late + cross" and fused["k"] == 60
    assert weighted["method"] == "min-max" and weighted["weights"] == "0.3, 1.0" and weighted["k"] is None


def test_settings_that_change_a_score_stand_in_its_conditions(tmp_path, models):
    bi = {"model": models / "bi", "depth": 10}
    text = (
        system("bm25", "bm25", tie_breaker=0.1)
        + system("bm25", "flat", profile="flat", shards=4)
        + system("dense", "short", **bi, max_tokens=9, dimensions=8)
        + system("rerank", "cross", first="bm25", model=models / "cross", depth=2, max_tokens=11)
        + system("late", "late", **bi, max_tokens=12)
    )
    path = experiment(tmp_path, dataset(SAMPLE, "sample") + text)
    conditions = {record.system: record.conditions.model_dump() for record in report(path).records}
    assert conditions["bm25"]["tie_breaker"] == 0.1 and conditions["flat"]["tie_breaker"] is None
    assert conditions["flat"]["document_shards"] == 1, "as many as there are, not as were asked for"
    assert conditions["short"]["max_tokens"] == 9 and conditions["short"]["dimensions"] == 8
    assert conditions["cross"]["max_tokens"] == 11 and conditions["late"]["max_tokens"] == 12


def test_self_matches_go_before_the_cut(tmp_path, models):
    documents = [doc(f"d{n}", f"alpha beta {'gamma ' * n}") for n in range(6)]
    folder = write_beir(tmp_path / "set", documents, [query("d0", "alpha beta")], [("d0", "d1", 1)])
    settings = dataset(folder, remove_self_matches=True) + systems(models, depth=5)
    pipeline = run(experiment(tmp_path, settings))
    for name in ("cross", "second", "late", "fused"):
        assert sorted(ranking(pipeline, name)["d0"])[:5] == ["d1", "d2", "d3", "d4", "d5"], name


def test_shards_without_any_hit_are_gathered_as_empty(tmp_path, models):
    documents = [doc(f"d{n}", f"alpha {'beta ' * n}" if n < 2 else f"gamma {n}") for n in range(40)]
    folder = write_beir(tmp_path / "set", documents, [query("q", "alpha")], [("q", "d1", 1)])
    second = system("rerank", "cross", first="bm25", model=models / "cross")
    path = experiment(tmp_path, dataset(folder, shard_documents=5) + BM25 + second)
    assert sorted(ranking(run(path), "cross")["q"]) == ["d0", "d1"]


def test_a_corpus_too_large_for_exhaustive_search_is_refused_with_the_number(tmp_path, models):
    late = system("late", "late", model=models / "bi", max_passages=20)
    path = experiment(tmp_path, dataset(SAMPLE, "sample") + late)
    with pytest.raises(ConfigError, match=r"takes 20 passages at most, not 63; .*first"):
        run(path)


def test_a_document_that_the_corpus_lacks_is_named(clean, models, tmp_path):
    from beirnl.stages.second import _passages

    _, pipeline = clean
    node = next(node for node in pipeline.graph.nodes.values() if node.stage == "gather")
    with pytest.raises(StoreError, match="names 1 document that the corpus lacks, such as 'nowhere'"):
        _passages(node.artifact(pipeline.workspace), pa.array(["nowhere"]))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('of = ["bm25", "bm52"]', "system above it is called 'bm52'"),
        ('of = ["bm25"]', "at least 2"),
        ('of = ["bm25", "second"]\nweights = [1.0]', "2 systems have 1 weight:"),
        ('of = ["bm25", "second"]\nmethd = "rrf"', "unknown key .*methd.*method"),
    ],
)
def test_mistakes_in_a_fusion_are_one_line(tmp_path, models, lines, message):
    above = BM25 + system("rerank", "second", first="bm25", model=models / "cross")
    wrong = f'[[system]]\nkind = "fusion"\nname = "f"\n{lines}\n'
    with pytest.raises(ConfigError, match=message):
        load_experiment(experiment(tmp_path, dataset(SAMPLE, "sample") + above + wrong))


@pytest.mark.parametrize("point", ["before-part", "after-part", "after-receipt"])
def test_an_error_in_every_stage_then_resume_equals_the_clean_run(
    clean, models, tmp_path, monkeypatch, point
):
    path = write(tmp_path, models)
    for action, shard in (("raise", 0), ("enospc", "*"), ("raise", 1), ("enospc", 3)):
        monkeypatch.setenv("BEIRNL_FAILPOINT", f"{point}:{shard}:{action}")
        for _ in range(6):
            try:
                run(path)
            except BeirnlError as error:
                assert "\n" not in str(error)
    monkeypatch.delenv("BEIRNL_FAILPOINT")
    run(path)
    assert contents(path) == contents(clean[0])


def test_killed_at_random_moments_equals_the_clean_run(clean, models, tmp_path):
    path, moments, kills, finished = write(tmp_path, models), random.Random(11), 0, {}
    environment = {**os.environ, **ENVIRONMENT}
    begun = time.monotonic()
    beirnl("run", write(tmp_path / "whole", models), BEIRNL_FAILPOINT="")
    longest = time.monotonic() - begun
    while kills < 3:
        process = subprocess.Popen(
            [sys.executable, "-m", "beirnl.cli", "run", str(path)], env=environment, stderr=subprocess.DEVNULL
        )
        try:
            process.wait(moments.uniform(0.3, 1.0) * longest)
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
            finished |= receipts(tmp_path / "workspace")
    beirnl("run", path)
    assert kills and finished
    assert finished.items() <= receipts(tmp_path / "workspace").items(), "finished units are not repeated"
    assert contents(path) == contents(clean[0]) == contents(tmp_path / "whole" / "experiment.toml")
