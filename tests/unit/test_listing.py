import json

from running import beirnl

from beirnl import registry


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
