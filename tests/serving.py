"""Small experiments that are served, in this process, to a client or to a browser."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from running import BM25, dataset, experiment, run, system
from starlette.testclient import TestClient
from support import ROOT
from translating import table

from beirnl.pipeline import Pipeline
from beirnl.serve.http import create_app
from beirnl.serve.models import LocalModels
from beirnl.serve.service import Service
from beirnl.serve.settings import Limits

SAMPLE = ROOT / "beirnl" / "sample"


def translated(folder: Path) -> Pipeline:
    """The embedded sample, searched in English and in what the mock engine makes of it, by two systems."""
    text = dataset(SAMPLE, "sample", language="en") + table("translation", to="nl", engine="mock")
    return run(experiment(folder, text + BM25 + system("bm25", "flat", profile="flat")))


def service(pipeline: Pipeline) -> Service:
    return Service(pipeline, LocalModels(pipeline.experiment.runtime))


def client(given: Any, **limits: Any) -> TestClient:
    """Asks a service without a socket; an error of the service is an answer, as it is over one."""
    return TestClient(create_app(given, Limits(**limits)), raise_server_exceptions=False)


@contextmanager
def listening(given: Service) -> Iterator[str]:
    """The address of a service on a socket of this machine."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(create_app(given), port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
