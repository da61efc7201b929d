"""An S3 server in a process of its own, for tests and benchmarks: moto's, with what they want to see and do.

    python tests/s3_server.py LOG [DELAY]

prints its address, writes a line per request (method, path, status) to LOG, lets every request wait DELAY
seconds, and answers what the file LOG.answer says (status, and code of the error) while there is one.
"""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

BUCKET = "bucket"
ERROR = '<?xml version="1.0" encoding="UTF-8"?><Error><Code>{}</Code><Message>No.</Message></Error>'


class Server(NamedTuple):
    """A running server.

    Attributes:
        endpoint: its address.
        log: where its requests are listed.
    """

    endpoint: str
    log: Path

    @property
    def environment(self) -> dict[str, str]:
        """What a client is told by its environment."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }

    def requests(self) -> list[str]:
        """The requests so far."""
        return self.log.read_text(encoding="utf-8").splitlines()

    @contextlib.contextmanager
    def failing(self, status: str = "503 Slow Down", code: str = "SlowDown") -> Iterator[None]:
        """Answers every request like that meanwhile."""
        answer = self.log.with_suffix(".answer")
        answer.write_text(f"{status}\n{code}", encoding="ascii")
        try:
            yield
        finally:
            answer.unlink()


@contextlib.contextmanager
def s3_server(folder: Path, delay: float = 0.0) -> Iterator[Server]:
    """Run a server with an empty bucket; its log lies in ``folder``. Skips where moto is not installed."""
    pytest.importorskip("moto", reason="moto is not installed (pip install beirnl[dev])")
    log = folder / "requests.log"
    log.touch()
    command = [sys.executable, str(Path(__file__).resolve()), str(log), str(delay)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Server(process.stdout.readline().strip(), log)
        finally:
            process.kill()


def _watched(app: Any, log: Path, delay: float) -> Callable[[dict[str, Any], Any], Any]:
    failure = log.with_suffix(".answer")

    def answer(environ: dict[str, Any], start: Any) -> Any:
        def started(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            query = f"?{environ['QUERY_STRING']}" if environ.get("QUERY_STRING") else ""
            with log.open("a", encoding="utf-8") as file:
                file.write(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}{query} {status[:3]}\n")
            return start(status, headers, *more)

        time.sleep(delay)
        if failure.exists():
            status, code = failure.read_text(encoding="ascii").splitlines()
            body = ERROR.format(code).encode()
            started(status, [("Content-Type", "text/xml"), ("Content-Length", str(len(body)))])
            return [body]
        return app(environ, started)

    return answer


def main(log: Path, delay: float) -> None:
    import logging

    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server
    from werkzeug.test import Client

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    app = DomainDispatcherApplication(create_backend_app)
    signed = {"Authorization": "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request"}
    Client(app).put(f"/{BUCKET}", headers=signed, base_url="http://127.0.0.1")
    MotoRequestHandler.protocol_version = "HTTP/1.1"
    server = make_server("127.0.0.1", 0, _watched(app, log, delay), True, request_handler=MotoRequestHandler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.0)
