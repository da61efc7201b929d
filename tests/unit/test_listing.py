import json

from running import beirnl

from beirnl import registry
from beirnl.config import load_experiment


def test_datasets_are_listed_with_size_licence_and_revision():
    lines = beirnl("datasets").stdout.splitlines()
    wholes = [entry for entry in registry.datasets().values() if not entry.whole]
    assert len(lines) == 1 + len(wholes)
    [line] = [line for line in lines if line.startswith("scifact-nl ")]
    assert " ".join(line.split()) == (
        "scifact-nl nl 5,183 300 1.1 Scientific CC-BY-SA-4.0 clips/beir-nl-scifact@856d8dfc294b"
    )
    [line] = [line for line in lines if line.startswith("cqadupstack ")]
    assert " ".join(line.split()) == ("cqadupstack en 457,199 13,145 1.8 StackExchange Apache-2.0 12 parts")


def test_json_has_every_fact_of_every_entry():
    found = json.loads(beirnl("datasets", "--format", "json").stdout)
    assert [entry["name"] for entry in found] == list(registry.datasets())
    assert [registry.DatasetEntry.model_validate(entry) for entry in found] == list(
        registry.datasets().values()
    )


def test_bm25_is_shown_with_its_conditions_though_it_is_no_model(tmp_path):
    said = beirnl("models", "show", "bm25").stdout
    assert all(name in said for name in registry.bm25_profiles()) and "there is nothing to fetch" in said
    file = tmp_path / "e.toml"
    file.write_text('name = "a"\n[[dataset]]\nname = "sample"\n' + said[said.index("[[system]]") :])
    assert load_experiment(file).system[0].profile == "elasticsearch"
    found = json.loads(beirnl("models", "show", "BM25", "--format", "json").stdout)
    assert [registry.Bm25Entry.model_validate(one) for one in found] == list(
        registry.bm25_profiles().values()
    )


def test_analyze_offers_more_than_two_languages():
    assert "ISO 639-1" in " ".join(beirnl("analyze", "--help").stdout.split())
    assert beirnl("analyze", "--language", "de", input="Häuser\n").stdout == "haus\n"
