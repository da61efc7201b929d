"""Files of the workspace that are lost, cut or exchanged: named by who reads them, and made again alone."""

import json
import re
import shutil
import subprocess

import pytest
from beir_folder import query, write_beir
from every_system import runs, systems, write_models
from running import dataset, experiment, run
from tiny_models import WORDS

from beirnl.config import load_experiment
from beirnl.errors import StoreError
from beirnl.pipeline import Pipeline
from beirnl.store import verification

#: What retrieval reads, and a stage that reads it.
READ_BY = {
    "import-corpus": "index",
    "import-queries": "search-bm25",
    "index": "search-bm25",
    "index-shards": "search-shards",
    "embed": "search-exact",
    "ann-index": "search-ann",
    "embed-tokens": "search-late",
    "gather": "rerank",
    "search-bm25": "rerank",
    "search-exact": "fuse",
    "rerank": "evaluate",
}


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """A finished experiment: its file's text, its workspace and its runs."""
    folder = tmp_path_factory.mktemp("clean")
    documents = [{"_id": f"d{n:02}", "text": " ".join(WORDS[n % 7 : n % 7 + 4])} for n in range(30)]
    queries = [query(f"q{n}", WORDS[n]) for n in range(4)]
    data = write_beir(folder / "set", documents, queries, [(f"q{n}", "d01", 1) for n in range(4)])
    text = dataset(data, shard_documents=10) + systems(write_models(folder))
    return text, folder / "workspace", runs(run(experiment(folder, text)))


@pytest.fixture
def copy(clean, tmp_path):
    """The experiment with a workspace of its own."""
    shutil.copytree(clean[1], tmp_path / "workspace")
    return experiment(tmp_path, clean[0])


def nodes(path, stage):
    pipeline = Pipeline.of(load_experiment(path))
    return [(n, n.artifact(pipeline.workspace)) for n in pipeline.graph.nodes.values() if n.stage == stage]


def file_to_damage(path, stage):
    """The largest file of a part that the stage's readers read."""
    for node, artifact in nodes(path, stage):
        if node.label and getattr(node.spec, "kind", "document") == "document":
            manifest = artifact.manifest
            part = artifact.directory / (manifest.reduced or manifest.receipts[-1]).parts[0].file
            files = [part] if part.is_file() else [file for file in part.rglob("*") if file.is_file()]
            return max(files, key=lambda file: file.stat().st_size)
    raise LookupError(stage)


def lose(file):
    file.unlink()


def cut(file):
    file.write_bytes(file.read_bytes()[:-1])


def exchange(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)


DAMAGES = {lose: "is missing", cut: "bytes, its receipt says", exchange: "has another checksum"}


def unread(path, stage):
    """Forget what stands on a stage's artifacts, so that the next run reads them again."""
    for _, artifact in nodes(path, READ_BY[stage]):
        shutil.rmtree(artifact.directory)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("stage", READ_BY)
def test_what_is_damaged_is_named_and_the_command_makes_it_again(copy, clean, stage, damage):
    before = {file: file.read_bytes() for file in copy.parent.rglob("receipts/*.json")}
    file = file_to_damage(copy, stage)
    damage(file)
    unread(copy, stage)
    with pytest.raises(StoreError) as error:
        run(copy)
    line = str(error.value)
    assert line.startswith(f"{file}: ") and DAMAGES[damage] in line and "\n" not in line
    command, then = re.search(r"run again: (rm -f .*); (beirnl run EXP)", line).groups()
    assert then and subprocess.run(["bash", "-c", command]).returncode == 0
    gone = [name for name in before if not name.exists() and f"/{READ_BY[stage]}/" not in str(name)]
    assert len(gone) == 1 and f"/artifacts/{stage}/" in str(gone[0]), "one unit is made again"
    assert runs(run(copy)) == clean[2]


@pytest.mark.parametrize("stage", ["search-exact", "search-ann", "search-shards", "search-late"])
def test_a_partial_run_is_verified_before_it_is_merged(copy, clean, stage):
    """Between its units and its reduction a stage has no manifest yet."""
    ((_, artifact), *_) = nodes(copy, stage)
    (artifact.directory / "manifest.json").unlink()
    (artifact.directory / "receipts" / "reduced.json").unlink()
    receipt = json.loads((artifact.directory / "receipts" / "00000.json").read_text())
    exchange(artifact.directory / receipt["parts"][0]["file"])
    with pytest.raises(StoreError, match=r"/part-00000-000-\w+.parquet: has another checksum") as error:
        run(copy)
    subprocess.run(["bash", "-c", re.search(r"rm -f .*json", str(error.value)).group()], check=True)
    assert runs(run(copy)) == clean[2]


def test_contents_decide_where_times_differ_and_large_parts_are_not_read_where_not(copy, clean, monkeypatch):
    for file in copy.parent.rglob("part-*"):
        file.touch()
    unread(copy, "embed")
    assert runs(run(copy)) == clean[2]
    monkeypatch.setattr(verification, "LARGE", 0)
    monkeypatch.setattr(verification, "_sha256", lambda part, found: pytest.fail(f"{part} was read"))
    for _, artifact in nodes(copy, "search-exact"):
        artifact.reduced_path()
