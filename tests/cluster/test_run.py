"""A run on a cluster ends with what one machine gives, also when a worker is killed in the middle; a unit
that kills its workers again and again is set aside, and the run says what to lower."""

import json
import os
import signal
import subprocess
import sys

import pytest
from fault_server import FaultServer
from ray_nodes import made
from running import BM25, ENVIRONMENT, beirnl, dataset, experiment, start
from support import ROOT

from beirnl.llm import Request, in_order
from beirnl.llm.mock import MockLlm
from beirnl.specs import LlmSpec

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


def numbers(path, stage="translate"):
    """Units that are done, by kind of text."""
    found = {}
    for receipt in (path.parent / "workspace/artifacts" / stage).rglob("receipts/*.json"):
        found.setdefault(receipt.parents[2].name, set()).add(int(receipt.stem))
    return found


DEATH = {"BEIRNL_FAILPOINT": "after-answer:1:kill"}


def test_a_unit_that_kills_its_workers_is_set_aside_with_what_to_lower(tmp_path):
    path = write(tmp_path / "set")
    made(path, "import-corpus", "import-queries")
    done = beirnl("run", path, "--only", "translate", "--workers", "2", check=2, **DEATH)
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("error: "))
    aside = "translate sample/nl/document: unit 1 has killed its worker 3 times and is set aside"
    assert aside in line and sum(aside in said for said in done.stderr.splitlines()) > 1, "also while it runs"
    assert "lower translation.max_model_len, translation.server.in_flight or runtime.workers, or" in line
    assert 1 not in numbers(path)["document"] >= {0, 2, 3}


def test_units_in_flight_with_one_that_kills_its_worker_are_done(tmp_path):
    with FaultServer(answer=in_dutch) as server:
        api = f'[translation.server]\nbase_url = "{server.url}/v1"\napi_key_env = ""\nin_flight = 8\n'
        text = dataset(ROOT / "beirnl" / "sample", "sample", shard_documents=4)
        text += '[translation]\nto = "nl"\nengine = "openai"\nmodel = "mock"\n'
        path = experiment(tmp_path, text + "price = { input = 0, output = 0 }\nrepair = []\n" + api)
        beirnl("run", path, "--only", "import-corpus")
        done = beirnl("run", path, "--only", "translate", "--workers", "2", check=2, **DEATH)
    assert (
        "translate sample/nl/document: unit 1 has killed its worker 3 times and is set aside" in done.stderr
    )
    units = numbers(path)["document"]
    assert units == set(range(max(units) + 1)) - {1} and len(units) > 10


def in_dutch(prompt):
    return in_order(MockLlm(LlmSpec(engine="mock")), [Request(messages=(("user", prompt),))])[0].text


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
