"""A workspace in an object store: the same artifacts as on a disk, also after a run that was killed."""

import signal

import pytest
from running import BM25, beirnl, dataset, run, system
from support import ROOT

from beirnl.config import load_experiment
from beirnl.pipeline import Pipeline
from beirnl.reporting import gather, writing
from beirnl.store.places import names


def write(folder, workspace, encoder):
    folder.mkdir()
    sample = dataset(ROOT / "beirnl" / "sample", "sample", shard_documents=32, remove_self_matches=True)
    systems = BM25 + system("dense", "dense", model=encoder)
    path = folder / "experiment.toml"
    path.write_text(
        f'name = "test"\nworkspace = "{workspace}"\n{sample}'
        f'[translation]\nto = "nl"\nengine = "mock"\n{systems}',
        encoding="utf-8",
    )
    return path


def contents(pipeline):
    """Digests of what every artifact holds, by key; indexes name their segments at random."""
    return {
        (node.stage, node.label, node.purpose): node.artifact(pipeline.workspace).manifest.content
        for node in pipeline.graph.nodes.values()
        if not node.stage.startswith("index")
    }


@pytest.fixture(scope="module")
def local(tmp_path_factory, tiny_encoder):
    folder = tmp_path_factory.mktemp("local")
    return contents(run(write(folder / "run", folder / "workspace", tiny_encoder)))


def test_killed_and_resumed_in_an_object_store_it_ends_as_on_a_disk(
    bucket, tmp_path, monkeypatch, tiny_encoder, local
):
    path = write(tmp_path / "run", "s3://bucket/killed", tiny_encoder)
    killed = beirnl("run", path, check=None, timeout=800, BEIRNL_FAILPOINT="after-part:1:kill")
    assert killed.returncode == -signal.SIGKILL
    first = Pipeline.of(load_experiment(path))
    kept = {
        (node.key, name)
        for node in first.graph.nodes.values()
        for name in node.artifact(first.workspace).committed()
    }
    assert kept
    monkeypatch.setenv("BEIRNL_CACHE", str(tmp_path / "another node"))
    pipeline = run(path)
    assert contents(pipeline) == local
    assert str(writing.write(pipeline, gather(pipeline))) == "s3://bucket/killed/reports/test/report.html"
    assert {"report.html", "report.json", "report.md"} <= set(names(pipeline.workspace.report_folder("test")))
    assert pipeline.workspace.holder() is None
    assert not pipeline.workspace.is_running()
    assert {status.state for status in Pipeline.of(load_experiment(path)).plan()} == {"done"}


def test_what_is_wrong_with_the_store_is_one_line(bucket, tmp_path, tiny_encoder):
    path = write(tmp_path / "run", "s3://none/w", tiny_encoder)
    done = beirnl("run", path, check=2)
    assert "s3://none/w" in done.stderr and "the bucket is not there; create it" in done.stderr
    assert done.stderr.count("\n") <= 2 and "Traceback" not in done.stderr
    with bucket.failing("403 Forbidden", "AccessDenied"):
        done = beirnl("plan", path, check=2)
    assert "credentials are missing or refused; set AWS_ACCESS_KEY_ID" in done.stderr
