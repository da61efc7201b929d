"""From what a user calls a dataset to folders, without a network."""

import pytest
from beir_folder import doc, query, write_beir

from beirnl import registry
from beirnl.datasets import sources
from beirnl.errors import ConfigError, DataError, PrerequisiteError
from beirnl.registry import DatasetEntry


@pytest.fixture
def fetched(tmp_path, monkeypatch):
    """Names that were fetched; each is a set in two parts."""
    names = []

    def fetch(name):
        names.append(name)
        if "gone" in name:
            raise PrerequisiteError("the hub is not reached", where=f"hub:{name}", remedy="try again")
        for part in ("gis", "tex") if "forums" in name else ("",):
            write_beir(tmp_path / "fetched" / part, [doc("1")], [query("q")], [("q", "1", 1)])
        return tmp_path / "fetched", f"hub:{name}"

    monkeypatch.setitem(sources.FETCH, "hub", fetch)
    return names


def entry(name, **facts):
    return DatasetEntry(
        **{
            "name": name,
            "path": f"/none/{name}",
            "language": "en",
            "domain": "any",
            "licence": "MIT",
            **facts,
        }
    )


@pytest.fixture
def known(monkeypatch):
    entries = {e.name: e for e in (
        entry("own", hub="org/own", revision="abc"),
        entry("forums", parts=("gis", "tex")),
        entry("forums-gis", hub="org/gis"),
        entry("forums-tex", hub="org/tex", revision="def"),
    )}  # fmt: skip
    monkeypatch.setattr(registry, "datasets", lambda: entries)
    monkeypatch.setattr(registry, "dataset", entries.get)
    return entries


@pytest.mark.parametrize(
    ("path", "asked"),
    [("hub:org/own", "org/own@abc"), ("hub:org/own@main", "org/own@main"), ("hub:org/new", "org/new")],
)
def test_the_revision_of_the_registry_holds_unless_another_is_named(fetched, known, tmp_path, path, asked):
    assert sources.locate(path, tmp_path / "e.toml") == {
        "": sources.Place(tmp_path / "fetched", f"hub:{asked}")
    }
    assert fetched == [asked]


def test_forums_that_are_repositories_of_their_own(fetched, known, tmp_path):
    found = sources.find("forums", tmp_path / "e.toml")
    assert found[0] == known["forums"] and list(found[1]) == ["gis", "tex"]
    assert fetched == ["org/gis", "org/tex@def"]


def test_a_relative_folder_is_against_the_file(tmp_path):
    write_beir(tmp_path / "sets" / "own", [doc("1")], [query("q")], [("q", "1", 1)])
    assert sources.locate("sets/own", tmp_path / "e.toml") == {"": sources.Place(tmp_path / "sets" / "own")}


def test_what_is_nowhere(fetched, known, tmp_path):
    with pytest.raises(ConfigError, match="unknown dataset 'scifakt'; did you mean 'scifact'"):
        sources.find("scifakt", tmp_path / "e.toml")
    with pytest.raises(
        ConfigError, match="sets/none: there is no such folder; give a folder in BEIR form, hub:"
    ):
        sources.find("sets/none", tmp_path / "e.toml")
    with pytest.raises(DataError, match="/none/alone: is not there"):
        sources.locate_entry(entry("alone"), tmp_path / "e.toml")
    with pytest.raises(PrerequisiteError, match="try again; or put the set into /none/lost"):
        sources.locate_entry(entry("lost", hub="org/gone"), tmp_path / "e.toml")


def test_the_twin_in_the_source_language(fetched, known, tmp_path):
    assert sources.twins(None, None, tmp_path / "e.toml") == {}
    assert sources.twins(None, "own", tmp_path / "e.toml")[""].source == "hub:org/own@abc"
