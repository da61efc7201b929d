"""A run on a cluster ends with what one machine gives, also when a worker is killed in the middle."""

import json
import os
import subprocess
import sys

import pytest
from running import BM25, ENVIRONMENT, beirnl, dataset, experiment
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
