"""The calls of the Gemini API that Google's SDK makes for batch jobs, in memory, failing as told.

    with GeminiServer(lines={"Hello": ["SAFETY"]}) as server:
        client = genai.Client(api_key="any", http_options={"base_url": server.url})

``calls`` lists outcomes by call (``create``, ``list``, ``get``, ``start``, ``upload``, ``download``): a
status, ``cut`` (the reply is lost after the call has been carried out) or ``ok``. ``lines`` lists outcomes
by prompt: a finish reason, ``blocked``, ``error``, ``missing``, ``duplicate``. ``states`` are those in which
the next jobs end, ``BATCH_STATE_SUCCEEDED`` if not told.
"""

import json
import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

Body = dict[str, Any]
_ROUTES = {
    "start": r"POST /upload/v1\w*/files",
    "upload": r"POST /upload/v1\w*/files/(?P<name>\w+)",
    "create": r"POST /v1\w*/models/(?P<name>[\w.-]+):batchGenerateContent",
    "list": r"GET /v1\w*/batches",
    "get": r"GET /v1\w*/(?P<name>batches/\w+)",
    "download": r"GET (?:/download)?/v1\w*/(?P<name>files/\w+):download",
}


class GeminiServer:
    """The server; starts on entering and ends on leaving.

    Attributes:
        answered: whole answers per prompt: what would have been charged for.
        counts: calls by name.
        requests: the requests of all jobs, as they were uploaded.
    """

    def __init__(
        self,
        *,
        calls: Mapping[str, Sequence[str]] | None = None,
        lines: Mapping[str, Sequence[str]] | None = None,
        states: Sequence[str] = (),
        api_key: str | None = None,
    ) -> None:
        self.calls, self.lines = calls or {}, lines or {}
        self.states, self.api_key = list(states), api_key
        self.answered, self.counts, self.asked = Counter[str](), Counter[str](), Counter[str]()
        self.files: dict[str, bytes] = {}
        self.jobs: dict[str, Body] = {}
        self.requests: list[Body] = []
        self.lock = threading.Lock()

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"app": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def outcome(self, call: str) -> str:
        listed, number = self.calls.get(call, ()), self.counts[call]
        self.counts[call] += 1
        return listed[number] if number < len(listed) else "ok"

    def start(self, name: str, query: Body, raw: bytes, headers: Any) -> tuple[Body, Body]:
        assert headers["X-Goog-Upload-Protocol"] == "resumable"
        number = f"f{len(self.files)}"
        self.files[f"files/{number}"] = b""
        return {}, {"X-Goog-Upload-URL": f"{self.url}/upload/v1/files/{number}"}

    def upload(self, name: str, query: Body, raw: bytes, headers: Any) -> tuple[Body, Body]:
        name = f"files/{name}"
        assert int(headers["X-Goog-Upload-Offset"]) == len(self.files[name])
        self.files[name] += raw
        final = "finalize" in headers["X-Goog-Upload-Command"]
        status = {"X-Goog-Upload-Status": "final" if final else "active"}
        return {"file": {"name": name, "sizeBytes": str(len(self.files[name]))}}, status

    def create(self, name: str, query: Body, raw: bytes, headers: Any) -> Body:
        batch = json.loads(raw)["batch"]
        job = f"batches/b{len(self.jobs)}"
        lines = self.files[batch["inputConfig"]["fileName"]].splitlines()
        self.jobs[job] = {
            "name": job,
            "metadata": {
                "model": f"models/{name}",
                "displayName": batch["displayName"],
                "state": "BATCH_STATE_PENDING",
            },
            "lines": [json.loads(line) for line in lines],
        }
        return _public(self.jobs[job])

    def list(self, name: str, query: Body, raw: bytes, headers: Any) -> Body:
        start, size = int(query.get("pageToken", 0)), int(query.get("pageSize", 10))
        jobs = list(self.jobs.values())
        page: Body = {"operations": [_public(job) for job in jobs[start : start + size]]}
        return page | ({"nextPageToken": str(start + size)} if start + size < len(jobs) else {})

    def get(self, name: str, query: Body, raw: bytes, headers: Any) -> Body | None:
        if name not in self.jobs:
            return None
        job = self.jobs[name]
        about = job["metadata"]
        if about["state"] == "BATCH_STATE_RUNNING":
            about["state"] = self.states.pop(0) if self.states else "BATCH_STATE_SUCCEEDED"
            if about["state"] == "BATCH_STATE_SUCCEEDED":
                lines = [line for request in job["lines"] for line in self.answer(request)]
                self.files["files/out" + name[-1]] = "".join(
                    json.dumps(line, ensure_ascii=False) + "\n" for line in reversed(lines)
                ).encode()
                about["output"] = {"responsesFile": "files/out" + name[-1]}
        elif about["state"] == "BATCH_STATE_PENDING":
            about["state"] = "BATCH_STATE_RUNNING"
        return _public(job)

    def download(self, name: str, query: Body, raw: bytes, headers: Any) -> bytes | None:
        assert query["alt"] == "media"
        return self.files.get(name)

    def answer(self, line: Body) -> Sequence[Body]:
        """The lines that come back for one."""
        key, request = line["key"], line["request"]
        self.requests.append(request)
        prompt = request["contents"][-1]["parts"][0]["text"]
        listed, number = self.lines.get(prompt, ()), self.asked[prompt]
        self.asked[prompt] += 1
        outcome = listed[number] if number < len(listed) else "STOP"
        if outcome == "missing":
            return ()
        if outcome == "error":
            return ({"key": key, "error": {"code": 13, "message": "internal"}},)
        words = len(prompt.split())
        usage = {"promptTokenCount": words, "totalTokenCount": words}
        if outcome == "blocked":
            response = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": usage}
            return ({"key": key, "response": response},)
        self.answered[prompt] += 1
        finish = "STOP" if outcome == "duplicate" else outcome
        parts = [{"text": "(thinks)", "thought": True}, {"text": "NL: "}, {"text": prompt}]
        candidate: Body = {"index": 0, "finishReason": finish}
        if finish != "SAFETY":
            candidate["content"] = {"role": "model", "parts": parts}
            usage |= {"candidatesTokenCount": words + 1, "thoughtsTokenCount": 5}
        answer = {"key": key, "response": {"candidates": [candidate], "usageMetadata": usage}}
        return (answer, answer) if outcome == "duplicate" else (answer,)


def _public(job: Body) -> Body:
    return {key: value for key, value in job.items() if key != "lines"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    app: GeminiServer

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = urlsplit(self.path)
        if self.app.api_key and self.headers.get("x-goog-api-key") not in (self.app.api_key, None):
            return self._error(400, "API key not valid.", reason="API_KEY_INVALID")
        for call, pattern in _ROUTES.items():
            match = re.fullmatch(pattern, f"{self.command} {url.path}")
            if match:
                with self.app.lock:
                    return self._carry_out(call, match.groupdict().get("name", ""), url.query, raw)
        return self._error(404, f"no such call: {self.command} {self.path}")

    def do_GET(self) -> None:
        self.do_POST()

    def _carry_out(self, call: str, name: str, query: str, raw: bytes) -> None:
        outcome = self.app.outcome(call)
        if outcome.isdigit():
            return self._error(int(outcome), f"as told: {outcome}")
        result = getattr(self.app, call)(name, dict(parse_qsl(query)), raw, self.headers)
        if result is None:
            return self._error(404, f"{name} not found")
        payload, headers = result if isinstance(result, tuple) else (result, {})
        content = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        self._send(200, content, headers, cut=outcome == "cut")

    def _error(self, status: int, message: str, reason: str = "") -> None:
        error: Body = {"code": status, "message": message, "status": "AS_TOLD"}
        if reason:
            error["details"] = [{"reason": reason}]
        self._send(status, json.dumps({"error": error}).encode(), {})

    def _send(self, status: int, content: bytes, headers: Body, *, cut: bool = False) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if cut else content)
        self.close_connection = cut
