"""The application on Ray Serve, started as a user starts it, asked over HTTP, and ended."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import psutil
import pytest
from every_system import runs, write_models
from running import BM25, ENVIRONMENT, dataset, experiment, run, system
from support import ROOT

PATIENCE = 600  # seconds until it answers: the machine may be busy


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    models = write_models(folder)
    settings = {"depth": 10, "batch_size": 1}
    text = dataset(ROOT / "beirnl" / "sample", "sample", language="en") + BM25
    text += system("dense", "exact", model=models["bi"], **settings)
    text += system("rerank", "cross", first="bm25", model=models["cross"], **settings)
    return run(experiment(folder, text + "[runtime]\nthreads = 1\n"))


def get(url, **parameters):
    """Status and body of an answer."""
    try:
        with urllib.request.urlopen(f"{url}?{urlencode(parameters)}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def until_ready(process, url):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError):
            if get(f"{url}/ready")[0] == 200:
                return
        time.sleep(0.5)
    process.kill()
    pytest.fail(f"not ready: {process.communicate()[1]}")


def test_the_application_serves_what_was_run_and_ends_in_order(pipeline):
    port = free_port()
    url, file = f"http://127.0.0.1:{port}", pipeline.experiment.file
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "beirnl.cli",
            "serve",
            str(file),
            "--port",
            str(port),
            "--model-replicas",
            "1",
        ],
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    until_ready(process, url)
    started = psutil.Process(process.pid).children(recursive=True)
    expected = runs(pipeline)
    asked = [(name, query) for name in expected for query in sorted(expected[name])[:5]]

    def answer(which):
        name, query = which
        return get(f"{url}/search", dataset="sample/en", system=name, id=query, k=10)

    with ThreadPoolExecutor(8) as threads:
        for (name, query), (status, body) in zip(asked, threads.map(answer, asked), strict=True):
            found = [(hit["id"], hit["score"]) for hit in json.loads(body)["hits"]]
            assert (status, found) == (200, expected[name][query][:10]), (name, query)
    assert get(f"{url}/-/healthz") == (200, "success")
    assert get(f"{url}/search", dataset="sample/en", system="bm25", q="x", k=0)[0] == 422
    assert "Ask every system" in get(f"{url}/")[1]
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and out.splitlines()[0].startswith(f"open {url}/") and "stopped" in out
    assert not psutil.wait_procs(started, timeout=PATIENCE)[1]
