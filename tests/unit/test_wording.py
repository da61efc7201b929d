"""Counts with their nouns, and names that were nearly right."""

import re
from pathlib import Path

import pytest

from beirnl.config.sections import DatasetConfig
from beirnl.errors import nearest
from beirnl.wording import counted, near


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (counted(1, "query"), "1 query"),
        (counted(0, "query"), "0 queries"),
        (counted(2_000, "document"), "2,000 documents"),
        (counted(1, "unit of work"), "1 unit of work"),
        (counted(2, "unit of work"), "2 units of work"),
        (counted(1, "query has", "queries have"), "1 query has"),
        (counted(3, "query has", "queries have"), "3 queries have"),
        (counted(1, "query has", "queries have", of=12), "1 of 12 queries has"),
        (counted(1, "query has", "queries have", of=1), "1 of 1 query has"),
        (counted(2, "query", of=1_200), "2 of 1,200 queries"),
        (counted(1, "failed attempt", "failed attempts"), "1 failed attempt"),
    ],
)
def test_a_noun_goes_with_its_count(said, expected):
    assert said == expected


@pytest.mark.parametrize(
    ("name", "names", "expected"),
    [
        ("langauge", ["language", "split"], "language"),
        ("PROFIL", ["profile"], "profile"),
        ("vlm", ["mock", "vllm"], "vllm"),
        ("gemma", ["bge-m3", "gemma-3-270m"], "gemma-3-270m"),
        ("batch-size", ["size", "batch_size"], "batch_size"),
        ("dtpe", ["type", "dtype"], "dtype"),
        ("recurrence", ["reference"], ""),
        ("revision", ["reference", "remove_self_matches"], ""),
        ("nl", ["n", "en"], ""),
        ("", ["n"], ""),
        ("___", ["n", "name"], ""),
    ],
)
def test_a_name_is_guessed_only_where_it_is_nearly_right(name, names, expected):
    assert near(name, names) == expected


@pytest.mark.parametrize("key", ["difference", "licence", "prefix", "query_file", "frequency"])
def test_a_key_that_no_dataset_has_is_answered_with_those_that_there_are(key):
    assert nearest(key, DatasetConfig.model_fields).startswith("use one of: name, path, language, split")


def test_the_readme_has_the_keys_of_a_dataset():
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    table = text.split("The keys of a `[[dataset]]`")[1].split("\n\n")[1]
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == list(DatasetConfig.model_fields)
