"""A run on a cluster ends with what one machine gives, also when a worker is killed in the middle; where
workers are killed again and again, it says what to lower."""

import json
import os
import signal
import subprocess
import sys

import pytest
from running import BM25, ENVIRONMENT, beirnl, dataset, experiment, start
from support import ROOT

TRANSLATION = '[translation]\nto = "nl"\nengine = "mock"\n'


def write(folder):
    folder.mkdir()
    sample = dataset(ROOT / "beirnl" / "sample", "sample", shard_documents=4, remove_self_matches=True)
    return experiment(folder, sample + TRANSLATION + BM25)


def records(path):
    return json.loads(beirnl("report", path, "--format", "json").stdout)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    path = write(tmp_path_factory.mktemp("alone") / "set")
    beirnl("run", path)
    return records(path)


def test_a_killed_worker_changes_nothing(cluster, tmp_path, expected):
    local = cluster(nodes=2, cpus=2)
    path = write(tmp_path / "set")
    command = [
        sys.executable,
        "-m",
        "beirnl.cli",
        "run",
        str(path),
        "--workers",
        "2",
        "--address",
        local.address,
    ]
    environment = {**os.environ, **ENVIRONMENT, "BEIRNL_MOCK_DELAY": "0.4"}
    driver = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    killed = local.kill_worker("ray::MapWorker", timeout=120)
    output = driver.communicate(timeout=240)
    assert driver.returncode == 0, output
    assert killed and records(path) == expected
    attempts = [receipt.name for receipt in (tmp_path / "set" / "workspace").rglob("receipts/*.json")]
    assert len(attempts) > 40 and not list((tmp_path / "set").rglob("attempts"))


def test_a_unit_that_kills_its_workers_is_given_up_with_what_to_lower(tmp_path):
    path = write(tmp_path / "set")
    beirnl("run", path, "--only", "import-corpus")
    death = {"BEIRNL_FAILPOINT": "before-part:1:kill"}
    done = beirnl("run", path, "--only", "translate", "--workers", "2", check=2, **death)
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("error: "))
    assert "translate sample/nl/document: unit 1 has killed its worker 3 times" in line
    assert "lower translation.max_model_len, translation.server.in_flight or runtime.workers, or" in line
    assert len(list((tmp_path / "set" / "workspace/artifacts/translate").rglob("receipts/*.json"))) > 1


@pytest.fixture
def no_room(monkeypatch):
    """Ray takes every node for full, and kills what it can."""
    monkeypatch.setenv("RAY_memory_usage_threshold", "0.001")
    monkeypatch.setenv("RAY_memory_monitor_refresh_ms", "100")


def test_workers_that_never_begin_for_want_of_memory_are_told_of(tmp_path, no_room):
    run = start("run", write(tmp_path / "set"), "--workers", "2")
    try:
        told = next((line for line in run.stderr if "has lost workers" in line), "")
        assert told.startswith("import-corpus sample/en: Ray has lost workers and started them again")
        assert "lower runtime.workers, or give a worker more memory; or free memory on their nodes" in told
    finally:
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=60)


@pytest.mark.parametrize("name", ["OutOfMemoryError", "WorkerCrashedError", "ActorDiedError"])
def test_what_ray_says_of_a_lost_worker_becomes_what_to_lower(tmp_path, name):
    import ray

    from beirnl.config import Runtime
    from beirnl.errors import StageError
    from beirnl.executors.cluster import _rows
    from beirnl.specs import Spec
    from beirnl.stages.base import Task

    class Lost:
        def iter_rows(self):
            yield {"number": 0}
            kind = getattr(ray.exceptions, name)
            raise kind("running low on memory\nmany more lines") if name == "OutOfMemoryError" else kind()

    task = Task("embed", "set/nl", Spec(), tmp_path, {}, 0, "run", tmp_path, Runtime(workers=2))
    rows = _rows(Lost(), task)
    assert next(rows) == {"number": 0}
    with pytest.raises(
        StageError, match=r"^embed set/nl: a worker was killed.*lower batch_tokens, .*workers"
    ):
        next(rows)
