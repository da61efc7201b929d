"""An OpenAI-compatible server that fails as told, for tests of engines, retries and batch files.

    with FaultServer(rates={"429": 0.2, "cut": 0.1}, seed=7) as server:
        client = openai.OpenAI(base_url=server.url + "/v1", api_key="any")
        ...
        assert server.counts.answered["Hello"] == 1

What happens to a request is one *outcome*:

    200 and other statuses   answered, or an error body; ``429:0.5`` sets Retry-After to half a second
    cut                      the connection ends in the middle of the body
    stall                    nothing is sent for ``stall_seconds``, then the connection ends
    malformed                status 200 with a body that is not JSON

``script`` lists outcomes, by number of the request (a sequence) or by prompt and attempt (a mapping); where
it says nothing, ``rates`` draws by (seed, prompt, attempt), so that the order of arrival does not matter.
A key like ``POST /v1/batches`` in the mapping stands for a route without a prompt; ``cut`` then loses the
reply to a call that has been carried out. Lines of a batch have their own ``batch_script`` and
``batch_rates``, with the outcomes 200, other statuses, ``missing``, ``duplicate`` and ``expired``.
"""

import json
import random
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from fault_answers import Answer, ApiError, Body, Model, parse, prompt_of
from fault_batches import Batches

Outcomes = Sequence[str] | Mapping[str, Sequence[str]]
_NAMED = {"cut", "stall", "malformed", "missing", "duplicate", "expired"}


class Script:
    """Decides outcomes: from a list, else at random by (seed, prompt, attempt)."""

    def __init__(self, listed: Outcomes, rates: Mapping[str, float], seed: int) -> None:
        self.listed, self.rates, self.seed = listed, rates, seed
        lists = listed.values() if isinstance(listed, Mapping) else [listed]
        for outcome in [*rates, *(one for some in lists for one in some)]:
            if outcome not in _NAMED and not outcome.partition(":")[0].isdigit():
                raise ValueError(f"unknown outcome {outcome!r}")

    def outcome(self, prompt: str, attempt: int, number: int) -> str:
        some = self.listed.get(prompt, ()) if isinstance(self.listed, Mapping) else self.listed
        place = attempt if isinstance(self.listed, Mapping) else number
        if place < len(some):
            return some[place]
        draw = random.Random(f"{self.seed}|{attempt}|{prompt}").random()
        for outcome, rate in self.rates.items():
            draw -= rate
            if draw < 0:
                return outcome
        return "200"


class Counts:
    """What has happened so far.

    Attributes:
        prompts: requests per prompt, whatever came of them.
        outcomes: requests per outcome.
        answered: whole answers per prompt: what a provider would have charged for.
        routes: requests per route, as ``POST /v1/batches``.
        peak: most requests in flight at once.
    """

    def __init__(self) -> None:
        self.prompts, self.outcomes = Counter[str](), Counter[str]()
        self.answered, self.routes = Counter[str](), Counter[str]()
        self.peak = self.in_flight = 0

    @contextmanager
    def one_in_flight(self, lock: threading.Lock) -> Iterator[None]:
        with lock:
            self.in_flight += 1
            self.peak = max(self.peak, self.in_flight)
        try:
            yield
        finally:
            with lock:
                self.in_flight -= 1

    def as_dict(self) -> Body:
        return {**vars(self), "requests": self.prompts.total()}


class FaultServer:
    """The server; starts on entering and ends, with its connections, on leaving.

    Args:
        script: listed outcomes, see the module.
        rates: probability of each outcome where ``script`` says nothing; the rest is 200.
        seed: of the draws.
        answer: the model: prompt to text or :class:`Answer`.
        models: names that exist; another one is answered with 404.
        api_key: if set, the only key that is let in.
        retry_after: seconds in the Retry-After header of 429.
        stall_seconds: how long ``stall`` stays silent.
        latency: seconds before each answer.
        batch_script, batch_rates: outcomes of batch lines.
        errors_in_output: put failed lines in the output file, as vLLM does, not in an error file.
    """

    def __init__(
        self,
        script: Outcomes = (),
        *,
        rates: Mapping[str, float] | None = None,
        seed: int = 0,
        answer: Callable[[str], str | Answer] = "NL: {}".format,
        models: Sequence[str] = ("mock",),
        api_key: str | None = None,
        retry_after: float = 0,
        stall_seconds: float = 30,
        latency: float = 0,
        batch_script: Outcomes = (),
        batch_rates: Mapping[str, float] | None = None,
        errors_in_output: bool = False,
    ) -> None:
        self.script = Script(script, rates or {}, seed)
        self.batch_script = Script(batch_script, batch_rates or {}, seed)
        self.model, self.api_key = Model(answer, models), api_key
        self.retry_after, self.stall_seconds, self.latency = retry_after, stall_seconds, latency
        self.store = Batches(
            self._admit_line, self._complete_line, seed=seed, errors_in_output=errors_in_output
        )
        self.counts = Counts()
        self.bodies: list[Body] = []  # requests with a prompt, in order of arrival
        self.lock = threading.Lock()
        self.closing = threading.Event()

    def __enter__(self) -> Self:
        self._http = _Http(self)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server and every connection, in the middle of an answer too."""
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._http.hang_up()

    def admit(self, key: str, body: Body | None, script: Script) -> str:
        """Count a request and decide its outcome; without a body it is a route, decided by a mapping only."""
        with self.lock:
            seen = self.counts.routes if body is None else self.counts.prompts
            attempt, number = seen[key], seen.total()
            seen[key] += 1
            if body is None:
                listed = script.listed.get(key, ()) if isinstance(script.listed, Mapping) else ()
                return listed[attempt] if attempt < len(listed) else "200"
            self.bodies.append(body)
            outcome = script.outcome(key, attempt, number)
            self.counts.outcomes[outcome.partition(":")[0]] += 1
            return outcome

    def charge(self, body: Body) -> None:
        with self.lock:
            self.counts.answered[prompt_of(body)] += 1

    def _admit_line(self, body: Body) -> str:
        return self.admit(prompt_of(body), body, self.batch_script)

    def _complete_line(self, path: str, body: Body) -> Body:
        answer = self.model.complete(path, body)
        self.charge(body)
        return answer

    def route(self, method: str, path: str, raw: bytes, content_type: str, query: str = "") -> Body | bytes:
        """Answer a call without a prompt: the list of models, files and batches."""
        if (method, path) == ("GET", "/v1/models"):
            models = [
                {"id": name, "object": "model", "created": 0, "owned_by": "test"} for name in self.model.names
            ]
            return {"object": "list", "data": models}
        return self.store.route(method, path, raw, content_type, query)


class _Http(ThreadingHTTPServer):
    """The sockets: knows its open connections, so that leaving the server ends them."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, app: FaultServer) -> None:
        self.app = app
        self.connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def hang_up(self) -> None:
        for connection in list(self.connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that left is part of the game
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: the counts tell."""

    def do_GET(self) -> None:
        app, path = self.server.app, self.path.partition("?")[0]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if path == "/_stats":
            return self._send(200, app.counts.as_dict())
        try:
            if app.api_key and self.headers.get("Authorization") != f"Bearer {app.api_key}":
                raise ApiError(401, "Incorrect API key provided", "invalid_api_key")
            with app.counts.one_in_flight(app.lock):
                self._serve(path, body)
        except ApiError as error:
            self._send(error.status, error.body)

    def do_POST(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def _serve(self, path: str, raw: bytes) -> None:
        app = self.server.app
        if path in _PROMPTED:
            body = parse(raw)
            outcome = app.admit(prompt_of(body), body, app.script)
        else:
            body, outcome = None, app.admit(f"{self.command} {path}", None, app.script)
        kind, _, argument = outcome.partition(":")
        if kind.isdigit() and kind != "200":
            seconds = float(argument or app.retry_after)
            headers = {"Retry-After": f"{seconds:g}"} if kind == "429" else {}
            message = f"{HTTPStatus(int(kind)).phrase} (as the script says)"
            return self._send(int(kind), ApiError(int(kind), message).body, headers)
        app.closing.wait(app.stall_seconds if kind == "stall" else app.latency)
        if kind == "stall":
            self.close_connection = True
            return None
        content_type = self.headers.get("Content-Type", "")
        query = self.path.partition("?")[2]
        payload = (
            app.model.complete(path, body)
            if body
            else app.route(self.command, path, raw, content_type, query)
        )
        if body and kind == "200":
            app.charge(body)
        self._send(200, payload, cut=kind == "cut", malformed=kind == "malformed")

    def _send(
        self,
        status: int,
        payload: Body | bytes,
        headers: Mapping[str, str] | None = None,
        *,
        cut: bool = False,
        malformed: bool = False,
    ) -> None:
        content = payload if isinstance(payload, bytes) else json.dumps(payload, ensure_ascii=False).encode()
        if malformed:
            content = content[: len(content) // 2]
        kind = "application/octet-stream" if isinstance(payload, bytes) else "application/json"
        self.send_response(status)
        sizes = {"Content-Type": kind, "Content-Length": str(len(content))}
        for name, value in {**sizes, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if cut else content)
        if cut:
            self.close_connection = True


_PROMPTED = ("/v1/chat/completions", "/v1/completions", "/v1/embeddings")
