"""A run that is killed goes on where it stood, and ends with what an undisturbed one gives."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest
from running import BM25, ENVIRONMENT, beirnl, dataset, experiment, run, system
from support import ROOT

from beirnl.config import load_experiment
from beirnl.pipeline import Pipeline

POINTS = ["before-part", "after-part", "after-receipt", "after-answer"]


def write(folder, encoder, per_shard=8):
    """The sample in shards of eight, translated by the mock engine, through every kind of system."""
    folder.mkdir(exist_ok=True)
    dense = system("dense", "dense", model=encoder)
    second = system("rerank", "two", first="bm25", method="bi-encoder", model=encoder)
    systems = BM25 + dense + second
    translation = '[translation]\nto = "nl"\nengine = "mock"\n'
    sample = dataset(
        ROOT / "beirnl" / "sample", "sample", shard_documents=per_shard, remove_self_matches=True
    )
    return experiment(folder, sample + translation + systems)


def records(path):
    """The report's numbers, without the digests of the installation."""
    return json.loads(beirnl("report", path, "--format", "json").stdout)


def receipts(folder):
    """Every receipt that is there, with the attempt that it names."""
    found = {}
    for path in (folder / "workspace" / "artifacts").rglob("receipts/*.json"):
        found[str(path.relative_to(folder))] = json.loads(path.read_text())["attempt"]
    return found


@pytest.fixture(scope="module")
def clean(tmp_path_factory, tiny_encoder):
    """What an undisturbed run gives."""
    path = write(tmp_path_factory.mktemp("clean"), tiny_encoder)
    beirnl("run", path)
    return records(path)


def start(path, workers):
    environment = {**os.environ, **ENVIRONMENT, "BEIRNL_MOCK_DELAY": "0.02"}
    command = [sys.executable, "-m", "beirnl.cli", "run", str(path), "--workers", str(workers)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def killed(process, folder, moments):
    """Kill a run at a random moment: soon after its start, or soon after its first new receipt."""
    before = receipts(folder)
    if moments.random() < 0.7:
        while process.poll() is None and receipts(folder).keys() <= before.keys():
            time.sleep(0.02)
    try:
        process.wait(moments.uniform(0.0, 0.8))
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def test_ten_kills_at_random_moments_with_changing_numbers_of_workers(tmp_path, tiny_encoder, clean):
    moments = random.Random(7)
    kills = 0
    while kills < 10:  # a machine may be so fast that a run ends between two kills: then another one begins
        folder = tmp_path / f"after-{kills}-kills"
        path = write(folder, tiny_encoder)
        kept: dict[str, str] = {}
        while kills < 10 and killed(start(path, 2 if kills % 4 == 3 else 1), folder, moments):
            kills += 1
            time.sleep(0.5)  # workers of a killed driver may still commit what they were at
            now = receipts(folder)
            assert all(now.get(name) == attempt for name, attempt in kept.items())
            kept = now
        beirnl("run", path)
        assert records(path) == clean
        assert all(receipts(folder).get(name) == attempt for name, attempt in kept.items())


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_every_point_of_a_unit(tmp_path, tiny_encoder, clean, point):
    path = write(tmp_path, tiny_encoder)
    for shard in (0, 3):
        done = beirnl("run", path, check=None, BEIRNL_FAILPOINT=f"{point}:{shard}:kill")
        assert done.returncode == -signal.SIGKILL
    beirnl("run", path)
    assert records(path) == clean


def test_units_and_reduction_done_but_no_manifest_then_workers_on_ray(tmp_path, tiny_encoder, clean):
    path = write(tmp_path, tiny_encoder)
    beirnl("run", path, "--only", "index")
    (manifest,) = (tmp_path / "workspace/artifacts/index/sample/en").glob("*/manifest.json")
    manifest.unlink()  # as a kill between the last receipt and the manifest leaves it
    beirnl("run", path, "--workers", "2")
    assert records(path) == clean


def test_a_second_run_does_nothing(tmp_path, tiny_encoder):
    path = write(tmp_path, tiny_encoder)
    run(path)
    before = receipts(tmp_path)
    done = beirnl("run", path)
    assert "everything is done already" in done.stderr and receipts(tmp_path) == before


def test_answers_in_the_journal_are_not_asked_again(tmp_path, tiny_encoder):
    path = write(tmp_path, tiny_encoder)
    run(path)
    text = path.read_text()
    path.write_text(text + "[translation.checks]\nmax_length_ratio = 9.0\n")
    run(path)
    translate = tmp_path / "workspace" / "artifacts" / "translate"
    assert len(list(translate.rglob("manifest.json"))) == 2  # the checks are a stage of their own
    shutil.rmtree(translate)
    pipeline = run(path)
    asked = [
        receipt.counts["asked"]
        for node in pipeline.graph.nodes.values()
        if node.stage == "translate"
        for receipt in node.artifact(pipeline.workspace).receipts()
    ]
    assert len(asked) > 2 and set(asked) == {0}


def test_a_changed_input_makes_what_stands_on_it_stale(tmp_path, tiny_encoder):
    path = write(tmp_path, tiny_encoder)
    pipeline = run(path)
    node = next(
        n for n in pipeline.graph.nodes.values() if n.stage == "repair" and n.label.endswith("document")
    )
    manifest_path = node.artifact(pipeline.workspace).directory / "manifest.json"
    manifest = json.loads(manifest_path.read_text())
    manifest_path.write_text(json.dumps({**manifest, "content": "0" * 20}))
    states = {(s.node.stage, s.node.label): s.state for s in Pipeline.of(load_experiment(path)).plan()}
    assert states["index", "sample/nl"] == "stale" and states["index", "sample/en"] == "done"
    assert states["search-bm25", "sample/nl"] == "waiting"


def test_the_number_of_shards_does_not_change_the_numbers(tmp_path, tiny_encoder, clean):
    path = write(tmp_path, tiny_encoder, per_shard=1000)
    run(path)
    drop = ("conditions",)
    strip = [{k: v for k, v in record.items() if k not in drop} for record in records(path)]
    assert strip == [{k: v for k, v in record.items() if k not in drop} for record in clean]


def test_only_makes_a_stage_and_what_it_needs(tmp_path, tiny_encoder):
    path = write(tmp_path, tiny_encoder)
    beirnl("run", path, "--only", "index")
    done = {s.node.stage for s in Pipeline.of(load_experiment(path)).plan() if s.state == "done"}
    assert done == {"import-corpus", "translate", "lengths", "check", "repair", "index"}
    error = beirnl("run", path, "--only", "indx", check=2).stderr
    assert "did you mean 'index'" in error
