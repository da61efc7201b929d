"""Datasets of the hub: what is fetched, what is resumed, what works offline, and what each failure says."""

import gzip
import json
import logging

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from beir_folder import doc, query, write_beir
from hub_server import Repositories, hub_at, serving
from huggingface_hub import constants
from running import BM25, dataset, experiment, report, run
from translated_set import translation

from beirnl.datasets import beir, hub, sources
from beirnl.errors import DataError, PrerequisiteError
from beirnl.models.cache import model_path
from beirnl.publish import publish
from beirnl.specs import ModelRef

DOCS = [doc("a", "alpha beta", "One"), doc("b", "beta gamma", "Two")]
QUERIES = [query("q1", "alpha"), query("q2", "gamma")]
QRELS = [("q1", "a", 1), ("q2", "b", 2)]


def parquet(*rows):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(list(rows)), sink)
    return sink.getvalue().to_pybytes()


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def judged(*rows):
    return [dict(zip(("query-id", "corpus-id", "score"), row, strict=True)) for row in rows]


def tsv(*rows):
    return "\n".join("\t".join(map(str, row)) for row in (("query-id", "corpus-id", "score"), *rows)).encode()


CARD = b"---\nconfigs:\n- config_name: default\n  data_files:\n  - split: test\n    path: qrels/test.jsonl\n"
CARD += b"- config_name: corpus\n  data_files:\n  - split: corpus\n    path: texts/documents-*\n"
CARD += (
    b"- config_name: queries\n  data_files:\n  - split: queries\n    path: texts/asked.jsonl\n---\n# A set\n"
)
LAYOUTS = {
    "Parquet by name": {
        "corpus/corpus-00000-of-00002.parquet": parquet(DOCS[0]),
        "corpus/corpus-00001-of-00002.parquet": parquet(DOCS[1]),
        "queries/queries-00000-of-00001.parquet": parquet(*QUERIES),
        "data/test-00000-of-00001.parquet": parquet(*judged(*QRELS)),
    },
    "BEIR": {
        "corpus.jsonl.gz": gzip.compress(lines(*DOCS)),
        "queries.jsonl": lines(*QUERIES),
        "qrels/test.tsv": tsv(*QRELS),
        "qrels/train.tsv": tsv(("q1", "b", 1)),
    },
    "by its card": {
        "README.md": CARD,
        "texts/documents-00.jsonl": lines(DOCS[0]),
        "texts/documents-01.jsonl": lines(DOCS[1]),
        "texts/asked.jsonl": lines(*QUERIES),
        "qrels/test.jsonl": lines(*judged(*QRELS)),
        "other/corpus.jsonl": b"not what the card names",
    },
}


@pytest.fixture
def repositories(tmp_path, monkeypatch):
    made = Repositories()
    monkeypatch.setenv("BEIRNL_CACHE", str(tmp_path / "beirnl" / "models"))
    with serving(made) as address, hub_at(address, monkeypatch, tmp_path / "hub"):
        yield made


def read(folder, split="test"):
    documents = [record[1:] for record in beir.read_records(beir.corpus_path(folder))]
    queries = [(record.id, record.text) for record in beir.read_records(beir.queries_path(folder))]
    return documents, queries, [j[1:] for j in beir.read_qrels(beir.qrels_path(folder, split))]


EXPECTED = (
    [("a", "One", "alpha beta"), ("b", "Two", "beta gamma")],
    [("q1", "alpha"), ("q2", "gamma")],
    QRELS,
)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_repositories(repositories, layout):
    commit = repositories.publish("org/set", LAYOUTS[layout])
    folder, source = hub.fetch(f"org/set@{commit}")
    assert read(folder) == EXPECTED and source == f"hub:org/set@{commit}"
    assert "other/corpus.jsonl" not in repositories.served


def test_judgements_in_a_repository_of_their_own(repositories):
    files = {name: data for name, data in LAYOUTS["BEIR"].items() if "qrels" not in name}
    first, second = (
        repositories.publish("org/set", files),
        repositories.publish("org/set-qrels", {"test.tsv": tsv(*QRELS), "dev.tsv": tsv(("q1", "b", 1))}),
    )
    folder, source = hub.fetch("org/set")
    assert read(folder) == EXPECTED and source == f"hub:org/set@{first}+org/set-qrels@{second}"
    assert beir.splits(folder) == ("dev", "test")
    repositories.publish("org/set-qrels", {"test.tsv": tsv(("q1", "b", 1))})
    assert read(hub.fetch(f"org/set@{first}+org/set-qrels@{second}")[0]) == EXPECTED


def test_forums_are_splits_of_one_repository(repositories):
    names = {"corpus": DOCS, "queries": QUERIES, "test": judged(*QRELS)}
    files = {
        f"{name}/{part}.parquet": parquet(*rows) for name, rows in names.items() for part in ("gis", "tex")
    }
    configs = "".join(
        f"- config_name: {name}\n  data_files:\n  - split: gis\n    path: {name}/gis*\n"
        f"  - split: tex\n    path: {name}/tex*\n"
        for name in names
    )
    repositories.publish("org/forums", {**files, "README.md": f"---\nconfigs:\n{configs}---\n".encode()})
    places = beir.locate(hub.fetch("org/forums")[0])
    assert list(places) == ["gis", "tex"] and all(read(folder) == EXPECTED for folder in places.values())


def test_what_beirnl_publishes_is_read_back(repositories, tmp_path):
    published = publish("owls-nl", [translation(tmp_path / "in")], tmp_path / "out")
    repositories.publish_folder("org/owls", published.hub)
    (local,) = beir.locate(published.folder).values()
    assert read(hub.fetch("org/owls")[0]) == read(local)


def test_a_broken_connection_goes_on_where_it_stood(repositories, monkeypatch):
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1024)
    big = parquet(*(doc(f"d{n}", f"text {n} " * 50) for n in range(2000)))
    files = LAYOUTS["Parquet by name"] | {"corpus/corpus-00001-of-00002.parquet": big}
    repositories.publish("org/set", files)
    repositories.cuts["corpus/corpus-00001-of-00002.parquet"] = [len(big) // 2]
    folder, _ = hub.fetch("org/set")
    assert beir.count_rows(beir.corpus_path(folder)) == 2001
    twice = repositories.served["corpus/corpus-00001-of-00002.parquet"] - len(big)
    assert 0 <= twice < 1024


def test_files_that_have_come_are_not_fetched_again(repositories):
    repositories.publish("org/set", LAYOUTS["Parquet by name"])
    name = "data/test-00000-of-00001.parquet"
    repositories.refused = {name}
    assert "what has come is kept" in refused("org/set")
    before = dict(repositories.served)
    assert before and name not in before
    repositories.refused = set()
    assert read(hub.fetch("org/set")[0]) == EXPECTED
    assert {n: size for n, size in repositories.served.items() if n != name} == before


def test_offline_once_it_was_fetched(repositories, monkeypatch):
    commit = repositories.publish("org/set", LAYOUTS["by its card"])
    folder, source = hub.fetch("org/set")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    asked = len(repositories.requests)
    assert hub.fetch("org/set") == (folder, source) == hub.fetch(f"org/set@{commit}")
    assert read(folder) == EXPECTED and len(repositories.requests) == asked


def test_links_are_made_again_when_the_cache_was_cleared(repositories, tmp_path):
    import shutil

    repositories.publish("org/set", LAYOUTS["BEIR"])
    folder, _ = hub.fetch("org/set")
    shutil.rmtree(tmp_path / "hub")
    assert read(hub.fetch("org/set")[0]) == EXPECTED and folder.is_dir()


def refused(name, kind=PrerequisiteError):
    with pytest.raises(kind) as caught:
        hub.fetch(name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_hub_that_is_not_there_says_what_is_missing_and_how_to_get_it(repositories, monkeypatch, tmp_path):
    commit = repositories.publish("org/set", LAYOUTS["Parquet by name"])
    hub._open("org/set", commit)  # only the list of files has come
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    said = refused(f"org/set@{commit}")
    assert "corpus/corpus-00000-of-00002.parquet, corpus/corpus-00001-of-00002.parquet" in said
    assert "and 1 more" in said and f"hf download org/set --repo-type dataset --revision {commit}" in said
    assert str(tmp_path / "hub" / "datasets--org--set") in said
    said = refused("org/other")
    assert "the list of its files cannot be fetched" in said and "README" not in said and ".git" not in said


def test_a_revision_that_no_longer_exists(repositories):
    repositories.publish("org/set", LAYOUTS["BEIR"])
    gone = "0" * 40
    said = refused(f"org/set@{gone}")
    assert f"hub:org/set@{gone}: the repository has no revision" in said and "leave @000000000000 out" in said


def test_a_repository_that_does_not_exist(repositories):
    assert "the hub has no such dataset" in refused("org/none")
    assert "give hub:ORG/NAME@REVISION" in refused("none")


def test_a_split_that_the_hub_does_not_have(repositories):
    repositories.publish("org/set", LAYOUTS["BEIR"])
    with pytest.raises(DataError, match=r"has no split 'dev' \(present: test, train\)"):
        beir.qrels_path(hub.fetch("org/set")[0], "dev")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"model.bin": b"x"}, "holds no files of a retrieval set"),
        (
            {"corpus.jsonl": lines(*DOCS), "queries.jsonl": lines(*QUERIES)},
            "holds no judgements, and org/set-qrels",
        ),
        ({"test.tsv": tsv(*QRELS)}, "holds no corpus"),
    ],
)
def test_a_repository_that_is_no_retrieval_set(repositories, files, said):
    repositories.publish("org/set", files)
    assert said in refused("org/set", DataError)


def test_an_experiment_on_the_hub_says_which_revision_it_has(repositories, tmp_path):
    commit = repositories.publish("org/set", LAYOUTS["BEIR"])
    pipeline = run(experiment(tmp_path, dataset("hub:org/set", "own") + BM25))
    manifests = [n.artifact(pipeline.workspace).manifest for n in pipeline.graph.nodes.values()]
    imported = {m.source for m in manifests if m.stage.startswith("import-")}
    assert imported == {f"hub:org/set@{commit}"}
    found = report(tmp_path / "experiment.toml")
    assert {r.conditions.model_dump()["dataset_source"] for r in found.records} == {f"hub:org/set@{commit}"}
    assert [r.value for r in found.records] == [1.0, 1.0]


def test_an_entry_without_its_folder_comes_from_the_hub(repositories, tmp_path, monkeypatch):
    from beirnl.registry import DatasetEntry

    monkeypatch.setenv("BEIRNL_DATA", str(tmp_path / "data"))
    facts = {"language": "en", "domain": "any", "licence": "MIT", "path": "{data}/own"}
    commit = repositories.publish("org/set", LAYOUTS["BEIR"])
    entry = DatasetEntry(name="own", hub="org/set", revision=commit, **facts)
    (place,) = sources.locate_entry(entry, tmp_path / "experiment.toml").values()
    assert read(place.folder) == EXPECTED and place.source == f"hub:org/set@{commit}"
    write_beir(tmp_path / "data" / "own", DOCS, QUERIES, QRELS)
    (place,) = sources.locate_entry(entry, tmp_path / "experiment.toml").values()
    assert place == sources.Place(tmp_path / "data" / "own")


def test_the_hubs_client_is_quiet_while_it_is_asked(monkeypatch):
    client = logging.getLogger("huggingface_hub.utils._http")
    told = []

    def unreachable(*args, **kwargs):
        told.append(client.isEnabledFor(logging.WARNING))
        raise OSError("no route")

    monkeypatch.setattr("huggingface_hub.snapshot_download", unreachable)
    before = client.isEnabledFor(logging.WARNING)
    with pytest.raises(PrerequisiteError, match="the hub is not reached"):
        hub.fetch("org/set")
    with pytest.raises(PrerequisiteError, match="hf download org/model"):
        model_path(ModelRef(name="m", source="hub:org/model"))
    assert told == [False, False] and client.isEnabledFor(logging.WARNING) == before
