"""BM25 through its stages: in one piece, by document shards, and with parts that are damaged."""

import pytest
from beir_folder import doc, query, write_beir
from running import dataset, experiment, run, system

from beirnl.errors import StoreError
from beirnl.store.artifacts import Artifact

WORDS = [f"w{i}" for i in range(40)]


@pytest.fixture
def folder(tmp_path):
    """300 documents, and queries whose ids are also documents'."""
    texts = [" ".join(WORDS[(i * j) % 40] for j in range(1, 2 + i % 9)) for i in range(300)]
    documents = [doc(f"d{i:03}", text, WORDS[i % 40] if i % 3 else "") for i, text in enumerate(texts)]
    queries = [query(f"d{i:03}", f"w{i} w{3 * i + 1} w{39 - i}") for i in range(6)]
    qrels = [(f"d{i:03}", f"d{i + 40:03}", 1) for i in range(6)]
    return write_beir(tmp_path / "set", documents, queries, qrels)


def run_bm25(folder, workspace, **settings):
    """The finished pipeline of one BM25 system."""
    workspace.mkdir()
    data = f'[[dataset]]\nname = "own"\npath = "{folder}"\nremove_self_matches = true\nshard_documents = 40\n'
    numbers = "".join(f"{name} = {value}\n" for name, value in settings.items() if isinstance(value, int))
    text = {name: value for name, value in settings.items() if not isinstance(value, int)}
    return run(experiment(workspace, data + system("bm25", "bm25", **text) + "depth = 20\n" + numbers))


def artifact_of(pipeline, stage):
    (node,) = [node for node in pipeline.graph.nodes.values() if node.stage == stage]
    return Artifact(node.artifact(pipeline.workspace).directory)


@pytest.mark.parametrize("profile", ["elasticsearch", "flat"])
def test_document_shards_give_the_run_of_one_index(folder, tmp_path, profile):
    whole = run_bm25(folder, tmp_path / "whole", profile=profile)
    divided = run_bm25(folder, tmp_path / "divided", profile=profile, shards=3)
    assert len(artifact_of(divided, "index-shards").parts) == 3
    order = [("query_id", "ascending"), ("score", "descending"), ("doc_id", "descending")]
    expected = artifact_of(whole, "search-bm25").table().sort_by(order)
    assert artifact_of(divided, "search-shards").table().sort_by(order).equals(expected)
    assert expected.num_rows == 6 * 20
    assert not any(row["query_id"] == row["doc_id"] for row in expected.to_pylist())


def test_searches_of_one_index_have_parameters_of_their_own(folder, tmp_path):
    """Both in one run score as each does alone."""
    systems = {"one": {"k1": 0.9, "b": 0.4}, "other": {"k1": 2.0, "b": 0.75}}
    text = f'[[dataset]]\nname = "own"\npath = "{folder}"\n'
    (tmp_path / "both").mkdir()
    both = run(
        experiment(tmp_path / "both", text + "".join(system("bm25", n, **s) for n, s in systems.items()))
    )
    assert len([node for node in both.graph.nodes.values() if node.stage == "index"]) == 1
    found = {}
    for name, settings in systems.items():
        (tmp_path / name).mkdir()
        alone = run(experiment(tmp_path / name, text + system("bm25", name, **settings)))
        [node] = [e.node.inputs["run"] for e in both.graph.evaluations if e.system.name == name]
        found[name] = node.artifact(both.workspace).table()
        assert found[name].equals(artifact_of(alone, "search-bm25").table())
    assert not found["one"].equals(found["other"])


@pytest.mark.parametrize("change", ["missing", "other bytes"])
def test_a_part_of_an_index_that_is_missing_or_has_another_checksum(folder, tmp_path, change):
    index = artifact_of(run_bm25(folder, tmp_path / "workspace"), "index")
    file = index.reduced_path() / "text.numbers.npy"
    if change == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-1] + b"\x7f")
    what = {"missing": "is missing", "other bytes": "has another checksum than its receipt"}[change]
    with pytest.raises(StoreError, match=rf"text.numbers.npy: {what}; delete .* run again") as error:
        index.reduced_path()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("setting", ["k1 = 0.4", "b = 0.2", "tie_breaker = 0.1"])
def test_systems_over_one_index_each_search_with_their_own_parameters(folder, tmp_path, setting):
    def found(*names):
        workspace = tmp_path / "-".join(names)
        workspace.mkdir()
        text = {"default": system("bm25", "default"), "other": f"{system('bm25', 'other')}{setting}\n"}
        pipeline = run(experiment(workspace, dataset(folder) + "".join(text[name] for name in names)))
        return {
            evaluation.system.name: evaluation.node.inputs["run"].artifact(pipeline.workspace).table()
            for evaluation in pipeline.graph.evaluations
        }

    alone = {**found("default"), **found("other")}
    assert not alone["default"].equals(alone["other"])
    assert found("default", "other") == alone
