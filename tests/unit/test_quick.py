"""What `beirnl evaluate` asks for, as the tables of an experiment."""

import tomllib

import pytest
import tiny_models

from beirnl import quick
from beirnl.config import experiment_of
from beirnl.config.writing import to_toml
from beirnl.errors import ConfigError, PrerequisiteError
from beirnl.models.checkpoint import use_of


def systems(*models, **settings):
    made = quick.tables(models, ["scifact"], **settings)
    return [tuple(table.get(key) for key in ("name", "kind", "model", "first")) for table in made["system"]]


BM25 = ("BM25", "bm25", None, None)
MINILM = ("all-MiniLM-L6-v2", "dense", "all-MiniLM-L6-v2", None)
RERANKED = ("BM25+bge-reranker-v2-m3", "rerank", "bge-reranker-v2-m3", "BM25")


def test_models_of_the_registry_are_used_as_it_says():
    assert systems("bm25") == [BM25]
    assert systems("all-MiniLM-L6-v2") == [MINILM]
    assert systems("bge-reranker-v2-m3") == [BM25, RERANKED]
    assert systems("bge-reranker-v2-m3", "BM25") == [BM25, RERANKED]
    over = ("all-MiniLM-L6-v2+bge-reranker-v2-m3", "rerank", "bge-reranker-v2-m3", "all-MiniLM-L6-v2")
    assert systems("bge-reranker-v2-m3", first="all-MiniLM-L6-v2") == [MINILM, over]
    assert systems("colbert-xm") == [("colbert-xm", "late", "colbert-xm", None)]
    assert systems("colbert-xm", first="BM25")[1] == ("BM25+colbert-xm", "late", "colbert-xm", "BM25")
    assert systems("BAAI/bge-m3") == [("bge-m3", "dense", "BAAI/bge-m3", None)]
    assert systems("all-MiniLM-L6-v2", "BM25", first="bge-m3") == [MINILM, BM25]  # nobody needs a first stage


def test_the_kind_can_be_given():
    assert systems("bge-m3", kind="late") == [("bge-m3", "late", "bge-m3", None)]


def test_folders_are_used_as_their_files_say(tmp_path):
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Dense as Projection
    from sentence_transformers.base.modules import Normalize
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
    from sentence_transformers.sentence_transformer.modules import Transformer

    bert = tiny_models.bert(tmp_path / "bert")
    dense = tiny_models.sentence_transformer(tmp_path / "dense", bert)
    cross = tiny_models.cross_encoder(tmp_path / "cross")
    static = tiny_models.static(tmp_path / "static")
    parts = [
        Transformer(str(bert)),
        Projection(32, 8, bias=False, module_input_name="token_embeddings"),
        MultiVectorMask(),
        Normalize(module_input_name="token_embeddings"),
    ]
    MultiVectorEncoder(modules=parts, device="cpu").save(str(tmp_path / "late"))
    uses = {folder.name: use_of(folder) for folder in (bert, dense, cross, static, tmp_path / "late")}
    assert uses == {"bert": "dense", "dense": "dense", "cross": "rerank", "static": "dense", "late": "late"}
    assert systems(str(cross))[1] == ("BM25+cross", "rerank", str(cross), "BM25")
    assert quick.use_of(str(dense)) == "dense"


def test_colbert_names_its_class(tmp_path):
    (tmp_path / "config.json").write_text('{"architectures": ["HF_ColBERT"]}')
    assert use_of(tmp_path) == "late"


def test_sets_are_names_folders_or_have_a_source(tmp_path):
    (tmp_path / "my set (nl)").mkdir()
    sets = ["scifact", str(tmp_path / "my set (nl)"), "hub:clips/beir-nl-scifact@main", "irds:cranfield"]
    made = quick.tables(["BM25"], sets, language="nl", split="dev")
    facts = {"language": "nl", "split": "dev"}
    assert made["dataset"] == [
        {"name": "scifact", **facts},
        {"name": "my-set-nl-", "path": str(tmp_path / "my set (nl)"), **facts},
        {"name": "beir-nl-scifact", "path": "hub:clips/beir-nl-scifact@main", **facts},
        {"name": "cranfield", "path": "irds:cranfield", **facts},
    ]


def test_other_names_of_sets_and_profiles(tmp_path):
    made = quick.tables(["BM25"], ["SciFact-NL", "webis-touche2020"], profile="mteb")
    assert [one["name"] for one in made["dataset"]] == ["scifact-nl", "webis-touche2020"]
    experiment = experiment_of(made, tmp_path / "e.toml")
    assert experiment.evaluation.profile == "mteb" and experiment.evaluation.measures == ("nDCG@10", "R@100")


def test_what_is_alike_is_told_apart(tmp_path):
    folders = [str(tmp_path / name / "set") for name in "ab"]
    for folder in folders:
        tiny_models.bert(type(tmp_path)(folder))
    made = quick.tables(folders, folders, runs=["a/set.trec.gz", "b/{dataset}.json"])
    assert [one["name"] for one in made["system"]] == ["set", "set-2", "set-3", "dataset"]
    assert [one["name"] for one in made["dataset"]] == ["set", "set-2"]


def test_exported_runs_are_called_by_their_systems():
    runs = ["out/runs/BM25/mini.en.trec", "out/runs/e5/mini.en.trec", "out/runs/best.json"]
    made = quick.tables([], ["scifact"], runs=runs)
    assert [one["name"] for one in made["system"]] == ["BM25", "e5", "best"]
    assert made["name"] == "BM25+e5+best-on-scifact"


@pytest.mark.parametrize(
    "models, sets, settings, said",
    [
        ([], ["scifact"], {}, "there is neither a model nor a run; give --model or --run"),
        (["BM25"], [], {}, "there is no dataset; give --dataset"),
        (["all-MiniLM-L6-v3"], ["scifact"], {}, "did you mean 'all-MiniLM-L6-v2'"),
        (["gemma-3-270m"], ["scifact"], {}, "is an LLM: it retrieves nothing"),
        (
            ["BM25"],
            ["scifakt"],
            {},
            "unknown dataset 'scifakt'; did you mean 'scifact'? If not, give a folder",
        ),
        (["BM25"], ["./scifact"], {}, "./scifact: there is no such folder"),
        (
            ["BM25"],
            ["clips/none"],
            {},
            "clips/none: there is no such folder; give a folder in BEIR form, hub:clips/",
        ),
        (["bm2"], ["scifact"], {}, "did you mean 'BM25'? If not, give a hub path ORG/NAME or a folder"),
        (["bge-reranker-v2-m3"], ["scifact"], {"first": "colbert-xm"}, "'colbert-xm' finds no candidates"),
    ],
)
def test_mistakes_are_one_line(models, sets, settings, said):
    with pytest.raises(ConfigError) as error:
        quick.tables(models, sets, **settings)
    assert said in str(error.value)


def test_a_model_that_is_not_here_and_cannot_be_fetched_is_said():
    with pytest.raises(PrerequisiteError, match="hf download org/absent"):
        quick.tables(["org/absent"], ["scifact"])
    with pytest.raises(PrerequisiteError, match="did you mean 'intfloat/multilingual-e5-small'"):
        quick.tables(["intfloat/multilingual-e5-smal"], ["scifact"])


def test_the_tables_as_toml_say_the_same(tmp_path):
    made = quick.tables(
        ["bge-reranker-v2-m3", "all-MiniLM-L6-v2"],
        ["scifact"],
        measures=["nDCG@10", "AP"],
        runs=['odd "name"\\é.trec'],
        depth=50,
    )
    file = tmp_path / "e.toml"
    again = tomllib.loads(to_toml(made))
    assert again == made
    experiment = experiment_of(again, file)
    assert experiment == experiment_of(made, file) and len(experiment.system) == 4
    assert {system.depth for system in experiment.system} == {50, 100_000}


def test_toml_of_nested_tables():
    data = {
        "a": 1,
        "b": {"x": True, "o": "\x7f\u2028", "y": {"z": [0.5, 1]}},
        "c": [{"d": "e\n", "f": {"g": None}}],
        "h": [],
    }
    assert tomllib.loads(to_toml(data)) == {**data, "c": [{"d": "e\n", "f": {}}]}
