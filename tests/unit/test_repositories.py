"""Which files of a repository are which tables."""

import pytest

from beirnl.datasets.repositories import tables


def card(**configurations):
    """A card with configurations: patterns by split."""
    return {
        "configs": [
            {
                "config_name": name if name == "top_ranked" else name.replace("_", "-"),
                "data_files": [{"split": s, "path": p} for s, p in splits.items()],
            }
            for name, splits in configurations.items()
        ]
    }


def shown(names, metadata):
    return {part: (t.corpus, t.queries, t.qrels) for part, t in tables(names, metadata).items()}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (
            ["README.md", "corpus.jsonl.gz", "queries.jsonl.gz", "script.py"],
            {"": (["corpus.jsonl.gz"], ["queries.jsonl.gz"], {})},
        ),
        (
            ["dev.tsv", "test.tsv", ".gitattributes"],
            {"": ([], [], {"dev": ["dev.tsv"], "test": ["test.tsv"]})},
        ),
        (
            [
                "corpus/corpus-00000-of-00002.parquet",
                "corpus/corpus-00001-of-00002.parquet",
                "data/test-00000-of-00001.parquet",
                "queries/queries-00000-of-00001.parquet",
            ],
            {
                "": (
                    ["corpus/corpus-00000-of-00002.parquet", "corpus/corpus-00001-of-00002.parquet"],
                    ["queries/queries-00000-of-00001.parquet"],
                    {"test": ["data/test-00000-of-00001.parquet"]},
                )
            },
        ),
        (
            ["data/corpus-00000-of-00001.parquet", "data/queries-00000-of-00001.parquet"],
            {"": (["data/corpus-00000-of-00001.parquet"], ["data/queries-00000-of-00001.parquet"], {})},
        ),
        (
            ["gis/corpus.jsonl", "gis/qrels/test.tsv", "gis/queries.jsonl"],
            {"gis": (["gis/corpus.jsonl"], ["gis/queries.jsonl"], {"test": ["gis/qrels/test.tsv"]})},
        ),
    ],
)
def test_by_names(names, expected):
    assert shown(names, {}) == expected


def test_configurations_of_parts():
    names = [f"{part}/{name}.parquet" for part in ("de", "nl") for name in ("c", "q", "j")]
    metadata = card(
        de_corpus={"corpus": "de/c*"}, de_queries={"queries": "de/q*"}, de_qrels={"test": "de/j*"},
        corpus_nl={"x": "nl/c*"}, queries_nl={"x": "nl/q*"}, qrels_nl={"dev": "nl/j*"},
    )  # fmt: skip
    assert shown(names, metadata) == {
        "de": (["de/c.parquet"], ["de/q.parquet"], {"test": ["de/j.parquet"]}),
        "nl": (["nl/c.parquet"], ["nl/q.parquet"], {"dev": ["nl/j.parquet"]}),
    }


def test_one_configuration_with_corpus_and_queries_as_splits():
    names = ["data/corpus-0.parquet", "data/queries-0.parquet"]
    metadata = card(default={"corpus": "data/corpus-*", "queries": "data/queries-*"})
    assert shown(names, metadata) == {"": ([names[0]], [names[1]], {})}


def test_other_configurations_are_left_out_where_judgements_are_named():
    names = ["c.jsonl", "j.jsonl", "q.jsonl", "ranked.jsonl", "triplets.jsonl"]
    metadata = card(
        corpus={"corpus": "c.jsonl"}, queries={"queries": "q.jsonl"}, default={"test": "j.jsonl"},
        triplets={"test": "triplets.jsonl"}, top_ranked={"test": "ranked.jsonl"},
    )  # fmt: skip
    assert shown(names, metadata) == {"": (["c.jsonl"], ["q.jsonl"], {"test": ["j.jsonl"]})}


def test_a_corpus_for_each_split_is_not_taken_for_one():
    names = [f"{name}-{split}.jsonl" for name in "cqj" for split in ("dev", "test")]
    metadata = card(**{
        name: {split: f"{name[0] if name != 'default' else 'j'}-{split}.jsonl" for split in ("dev", "test")}
        for name in ("corpus", "queries", "default")
    })  # fmt: skip
    assert shown(names, metadata)[""][0] == []


def test_files_that_are_given_without_splits():
    metadata = {"configs": [{"config_name": "corpus", "data_files": "c/*.jsonl"}]}
    assert shown(["c/0.jsonl", "c/1.jsonl"], metadata)[""][0] == ["c/0.jsonl", "c/1.jsonl"]
