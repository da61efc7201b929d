"""Workers and nodes are lost, nodes join, drivers are killed: the bytes are those of an undisturbed run."""

import json
import signal
import time

import pytest
from ray_nodes import contents, drive, made
from running import dataset, experiment
from support import ROOT

TEXT = dataset(ROOT / "beirnl" / "sample", "sample", shard_documents=4, remove_self_matches=True) + (
    '[translation]\nto = "nl"\nengine = "mock"\nrepair = []\n'
)


def write(folder):
    """An experiment whose texts have been imported: what is left are the units of one pool."""
    folder.mkdir()
    path = experiment(folder, TEXT)
    made(path, "import-corpus", "import-queries")
    return path


def receipts(path, stage="translate"):
    return {
        file: json.loads(file.read_bytes())
        for file in (path.parent / "workspace/artifacts" / stage).rglob("receipts/*.json")
    }


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    path = write(tmp_path_factory.mktemp("alone") / "set")
    made(path, "translate")
    return contents(path)


def wait_for(ready, driver, seconds=150):
    """Until it is ready, while the driver runs."""
    deadline = time.monotonic() + seconds
    while not ready():
        assert driver.poll() is None, driver.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def finish(driver, seconds=240):
    output = driver.communicate(timeout=seconds)[0]
    assert driver.returncode == 0, output
    assert "(raylet)" not in output, "Ray's own words, pages of them, are not for the user"
    return output


def test_a_worker_and_a_node_are_lost_and_a_node_joins(cluster, tmp_path, expected):
    local = cluster(nodes=3, cpus=1)
    path = write(tmp_path / "set")
    driver = drive(path, local.address)
    wait_for(lambda: len(receipts(path)) >= 2, driver)
    _, one, other = local.alive
    local.kill_worker("MapWorker", number=one)
    wait_for(lambda: len(receipts(path)) >= 4, driver)
    local.kill_node(other)
    wait_for(lambda: len(receipts(path)) >= 6, driver)
    new = local.add_node()
    wait_for(lambda: local.workers(new, "MapWorker") or len(receipts(path)) >= 14, driver)
    finish(driver)
    assert contents(path) == expected


@pytest.mark.slow
def test_a_run_ends_on_the_nodes_that_are_left(cluster, tmp_path, expected):
    local = cluster(nodes=3, cpus=1)
    path = write(tmp_path / "set")
    driver = drive(path, local.address)
    wait_for(lambda: len(receipts(path)) >= 2, driver)
    for number in local.alive[1:]:
        local.kill_node(number)
    assert "nodes lost: " in finish(driver)
    assert contents(path) == expected


def test_a_job_whose_driver_was_killed_goes_on_when_it_is_submitted_again(cluster, tmp_path, expected):
    local = cluster(nodes=3, cpus=1)
    path = write(tmp_path / "set")
    driver = drive(path, local.address)
    wait_for(lambda: len(receipts(path)) >= 3, driver)
    driver.send_signal(signal.SIGKILL)
    driver.communicate(timeout=30)
    before = receipts(path)
    finish(drive(path, local.address, workers=2, delay=0))
    assert contents(path) == expected
    after = receipts(path)
    assert before and all(after[file] == receipt for file, receipt in before.items()), "nothing is repeated"


@pytest.mark.slow
def test_a_second_driver_is_refused_with_the_name_of_the_first(cluster, tmp_path, expected):
    local = cluster(nodes=3, cpus=1)
    path = write(tmp_path / "set")
    first = drive(path, local.address, workers=1, delay=0.1)
    wait_for((path.parent / "workspace" / "lease.json").exists, first)
    second = drive(path, local.address, workers=1)
    output = second.communicate(timeout=120)[0]
    assert second.returncode == 2, output
    assert f"another run holds this workspace: process {first.pid} on " in output
    finish(first)
    assert contents(path) == expected
