"""What is published loads with the libraries that others use: ``beir`` and ``datasets``."""

import pytest
from translated_set import DOCUMENTS, JUDGEMENTS, QUERIES, capitals, translation

from beirnl.publish import publish

ROWS = [*DOCUMENTS, *((f"n{number}", f"title {number}", f"text {number}") for number in range(40))]


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    return publish("owls-nl", [translation(folder / "in", documents=ROWS)], folder / "out").folder


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    made = [translation(folder / part, part) for part in ("android", "english")]
    return publish("owls-nl", made, folder / "out").folder


@pytest.fixture
def datasets(tmp_path, monkeypatch):
    found = pytest.importorskip("datasets")
    monkeypatch.setattr(found.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(found.config, "HF_HUB_OFFLINE", True)
    return found


def judged():
    found: dict[str, dict[str, int]] = {}
    for query, document, relevance in JUDGEMENTS:
        found.setdefault(query, {})[document] = relevance
    return found


def test_beir_loads_the_beir_folder(published):
    loader = pytest.importorskip("beir.datasets.data_loader")
    corpus, queries, qrels = loader.GenericDataLoader(str(published / "beir")).load(split="test")
    assert corpus == {i: {"title": title, "text": text} for i, title, text in capitals(ROWS)}
    assert list(corpus) == [row[0] for row in ROWS]
    assert queries == {i: text for i, _, text in capitals(QUERIES)}
    assert qrels == judged()


def test_datasets_loads_the_hub_layout(published, datasets, tmp_path):
    load, cache = datasets.load_dataset, str(tmp_path / "cache")
    hub = str(published / "hub")
    assert set(datasets.get_dataset_config_names(hub)) == {"corpus", "queries", "default"}
    corpus = load(hub, "corpus", split="corpus", cache_dir=cache)
    assert [(row["_id"], row["title"], row["text"]) for row in corpus] == capitals(ROWS)
    queries = load(hub, "queries", split="queries", cache_dir=cache)
    assert [(row["_id"], "", row["text"]) for row in queries] == capitals(QUERIES)
    qrels = load(hub, split="test", cache_dir=cache)  # the default configuration, as beir and mteb ask for it
    assert [tuple(row.values()) for row in qrels] == JUDGEMENTS


def test_datasets_loads_a_set_in_parts(parts, datasets, tmp_path):
    hub, cache = str(parts / "hub"), str(tmp_path / "cache")
    assert len(datasets.get_dataset_config_names(hub)) == 6
    corpus = datasets.load_dataset(hub, "english-corpus", split="corpus", cache_dir=cache)
    assert corpus["_id"][:] == [row[0] for row in DOCUMENTS]
    qrels = datasets.load_dataset(hub, "android-qrels", split="test", cache_dir=cache)
    assert len(qrels) == len(JUDGEMENTS)


def test_beirs_loader_of_the_hub_finds_what_it_asks_for(published, datasets, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    loader = pytest.importorskip("beir.datasets.data_loader_hf")
    hub = str(published / "hub")
    corpus, queries, qrels = loader.HFDataLoader(hf_repo=hub, hf_repo_qrels=hub, keep_in_memory=True).load()
    assert corpus["id"][:] == [row[0] for row in ROWS] and queries["id"][:] == ["q1", "q2"]
    assert {query: dict(found) for query, found in qrels.items()} == judged()
