"""The dataset card: front matter that the hub reads, figures that were counted, text that is data."""

import pytest
import yaml
from translated_set import DOCUMENTS, translation

from beirnl.publish import card, publish


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("card")
    return (publish("owls-nl", [translation(folder / "in")], folder / "out").hub / "README.md").read_text(
        encoding="utf-8"
    )


def rows_of(text, heading):
    """The table below a heading, as cells."""
    lines = text[text.index(f"## {heading}") :].split("\n")
    start = next(number for number, line in enumerate(lines) if line.startswith("|"))
    table = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return table


def front_matter(text):
    return yaml.safe_load(text.split("---\n")[1])


def test_the_front_matter_is_what_the_hub_wants(text):
    found = front_matter(text)
    assert found["language"] == ["nl"] and found["license"] == "unknown"
    assert found["size_categories"] == ["n<1K"] and found["task_categories"] == ["text-retrieval"]
    assert found["source_datasets"] == ["owls"] and "beir" in found["tags"]
    assert [one["config_name"] for one in found["configs"]] == ["corpus", "queries", "default"]
    assert found["configs"][2]["data_files"] == [{"split": "test", "path": "qrels/test-*.parquet"}]


def test_statistics_count_only_labels_above_0(text):
    head, _, row = rows_of(text, "Statistics")
    assert head == ["domain", "queries", "documents", "relevant documents per query", "judgements"]
    assert row == [r"Tea \| owls", "2", "6", "1.5", "4"]


def test_the_table_of_checks_counts_every_failed_check(text):
    found = {row[0]: row[1:] for row in rows_of(text, "Checks")[2:]}
    assert found["ok (all checks passed)"][:2] == ["4", "2"]
    assert found["numbers"][:2] == found["length-ratio"][:2] == found["refusal"][:2] == ["1", "0"]
    assert found["refusal"][2] == "the source text" and found["numbers"][2] == "the translation"
    assert found["truncated"][:2] == ["0", "0"] and found["all rows"][:2] == ["6", "2"]


def test_repairs_and_kept_sources_are_counted(text):
    assert "| room | asked again, warmer and with more room (vllm, org/m, revision abc) | 1 | 0 |" in text
    assert "**Not translated: 1 of 6 documents and 0 of 2 queries.**" in text


def test_engine_model_and_the_whole_prompt_are_named(text):
    assert "| model | org/m, revision abc | org/m, revision abc |" in text
    assert "````text\nTranslate the document:\n```{text}```\n````" in text
    assert "translated from English into\nDutch" in text


def test_what_a_user_must_know_is_said(text):
    assert "the corpus of the source lacks: 1." in text
    assert "The licence of the source is not known" in text
    assert "title         = {{BEIR-NL}: Zero-shot" in text and "2412.08329" in text


def test_a_known_dataset_has_its_registered_licence():
    assert card.licence_of("scifact", "MIT") == "CC-BY-SA-4.0"
    assert card.licence_of("cqadupstack") == "Apache-2.0"
    assert card.licence_of("owls", "MIT") == "MIT" and card.licence_of("owls") == card.UNKNOWN


def test_parts_have_their_own_configurations_and_a_sum(tmp_path):
    parts = [translation(tmp_path / part, part) for part in ("android", "english")]
    text = (publish("owls-nl", parts, tmp_path / "out").hub / "README.md").read_text(encoding="utf-8")
    names = [one["config_name"] for one in front_matter(text)["configs"]]
    assert names[:3] == ["android-corpus", "android-queries", "android-qrels"] and len(names) == 6
    assert front_matter(text)["configs"][3]["data_files"][0]["path"] == "english/corpus/*.parquet"
    assert [row[:4] for row in rows_of(text, "Statistics")[2:]] == [
        ["android", r"Tea \| owls", "2", "6"],
        ["english", r"Tea \| owls", "2", "6"],
        ["all", r"Tea \| owls", "4", "12"],
    ]


@pytest.mark.parametrize(
    ("rows", "size"), [(0, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (5_420_000, "1M<n<10M")]
)
def test_size_categories(rows, size):
    assert card.size_category(rows) == size


def test_rows_without_a_text_in_the_source_are_counted_and_only_where_there_are_some(text, tmp_path):
    said = "has neither title nor text: 1. Queries whose source has no text: 0. They are empty here too."
    assert said in text
    found = {row[0]: row[1:] for row in rows_of(text, "Checks")[2:]}
    assert found["no-text"][2] == "no text, as its source"
    full = publish("owls-nl", [translation(tmp_path / "in", documents=DOCUMENTS[:5])], tmp_path / "out")
    assert "empty here too" not in (full.hub / "README.md").read_text(encoding="utf-8")
