"""Every experiment that is shipped can be read and resolved, with small folders in place of its data."""

import tomllib

import pytest
from beir_folder import doc, query, write_beir
from support import ROOT

from beirnl import registry
from beirnl.config import load_experiment
from beirnl.graph import build_graph
from beirnl.store.workspace import Workspace

FILES = sorted((ROOT / "experiments").glob("*.toml"))
DENSE, RERANKERS = 12, 3  # BEIR-NL, Table 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A data folder with a small set for each of the registry, and two lines of parallel text."""
    folder = tmp_path_factory.mktemp("data")
    for entry in registry.datasets().values():
        place = entry.path.replace("{data}", str(folder))
        if not entry.parts and not place.startswith("{package}"):
            write_beir(folder / place, [doc("d1")], [query("q1")], [("q1", "d1", 1)], entry.split)
    (folder / "ntrex").mkdir()
    for name in ("newstest2019-src.eng.txt", "newstest2019-ref.nld.txt"):
        (folder / "ntrex" / name).write_text("een\ntwee\n")
    return folder


def systems(file, kind):
    return [s["model"] for s in tomllib.loads(file.read_text("utf-8"))["system"] if s["kind"] == kind]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_is_resolved(file, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("BEIRNL_DATA", str(folder))
    experiment = load_experiment(file)
    assert experiment.name == file.stem
    graph = build_graph(experiment, Workspace(tmp_path / "workspace"))
    assert graph.nodes
    for config in experiment.dataset:
        entry = registry.find_dataset(config.name)
        assert {e.part for e in graph.evaluations if e.dataset == config.name} == set(entry.parts or ("",))


def test_the_paper_is_whole():
    file = ROOT / "experiments" / "beir-nl.toml"
    assert len(systems(file, "dense")) == DENSE and len(systems(file, "rerank")) == RERANKERS
    published = {row["system"] for row in registry.published("beir-nl-table3")}
    content = tomllib.loads(file.read_text("utf-8"))
    assert {system["name"] for system in content["system"]} == published
    named = {registry.find_dataset(d["name"]) for d in content["dataset"]}
    for table, language in (("1", "nl"), ("3", "nl"), ("4", "en"), ("5", "en")):
        rows = registry.published(f"beir-nl-table{table}")
        wanted = {row["dataset"] for row in rows} - {"average"}
        assert wanted <= {entry.original for entry in named if entry.language == language}, table


def test_small_sets_are_those_under_60000_documents():
    content = tomllib.loads((ROOT / "experiments" / "beir-nl-small.toml").read_text("utf-8"))
    entries = registry.datasets().values()
    small = {e.name for e in entries if e.source and e.language == "nl" and e.counts and not e.whole}
    small = {name for name in small if registry.datasets()[name].counts.documents < 60_000}
    named = {dataset["name"] for dataset in content["dataset"]}
    assert named == small | {name.removesuffix("-nl") for name in small}


def test_back_translation_is_of_the_sets_and_systems_of_table_6():
    content = tomllib.loads((ROOT / "experiments" / "back-translation.toml").read_text("utf-8"))
    rows = registry.published("beir-nl-table6")
    assert {dataset["name"] for dataset in content["dataset"]} == {row["dataset"] for row in rows}
    assert {system["name"] for system in content["system"]} == {row["system"] for row in rows}
    assert content["translation"]["back"]


@pytest.mark.parametrize("name", ["scifact", "libreoffice"])
def test_all_encoders_that_need_no_hub_are_in(name):
    offline = {e.name for e in registry.models().values() if e.kind == "encoder" and e.package}
    assert set(systems(ROOT / "experiments" / f"{name}.toml", "dense")) == offline
