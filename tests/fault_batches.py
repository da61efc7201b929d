"""The files and batches endpoints of the fault server: what is uploaded, and how a batch moves on."""

import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from urllib.parse import parse_qsl

from fault_answers import ApiError, Body


class Batches:
    """Files and batches in memory; each look at a batch moves it one state on.

    Args:
        decide: outcome of a batch line, given its request body.
        complete: response body for an endpoint and a request body.
        seed: of the order of output lines.
        errors_in_output: put failed lines in the output file, as vLLM does, not in an error file.

    Attributes:
        refusals: errors with which the next batches fail as a whole, one each.
    """

    def __init__(
        self,
        decide: Callable[[Body], str],
        complete: Callable[[str, Body], Body],
        *,
        seed: int,
        errors_in_output: bool,
    ) -> None:
        self.decide, self.complete = decide, complete
        self.seed, self.errors_in_output = seed, errors_in_output
        self.files: dict[str, Body] = {}
        self.contents: dict[str, bytes] = {}
        self.batches: dict[str, Body] = {}
        self.refusals: list[Body] = []
        self.lock = threading.Lock()

    def route(self, method: str, path: str, body: bytes, content_type: str, query: str = "") -> Body | bytes:
        """Carry out a call to the files or batches API."""
        with self.lock:
            match method, path.removeprefix("/v1/").split("/"):
                case "POST", ["files"]:
                    return self.add_file(**_form(body, content_type))
                case "GET", ["files"]:
                    return _list(list(self.files.values()))
                case "GET", ["files", name] if name in self.files:
                    return self.files[name]
                case "GET", ["files", name, "content"] if name in self.files:
                    return self.contents[name]
                case "DELETE", ["files", name] if name in self.files:
                    del self.files[name], self.contents[name]
                    return {"id": name, "object": "file", "deleted": True}
                case "POST", ["batches"]:
                    return self.create_batch(**json.loads(body))
                case "GET", ["batches"]:
                    return _page([_public(batch) for batch in self.batches.values()], dict(parse_qsl(query)))
                case "GET", ["batches", name] if name in self.batches:
                    return _public(self.advance(self.batches[name]))
                case "POST", ["batches", name, "cancel"] if name in self.batches:
                    return _public(self.cancel(self.batches[name]))
        raise ApiError(404, f"no such thing: {method} {path}")

    def add_file(self, file: bytes, purpose: str, filename: str) -> Body:
        name = f"file-{len(self.contents) + 1}"
        about = {"id": name, "object": "file", "bytes": len(file), "created_at": int(time.time())}
        about |= {"filename": filename, "purpose": purpose, "status": "processed"}
        self.files[name], self.contents[name] = about, file
        return about

    def create_batch(
        self,
        input_file_id: str,
        endpoint: str,
        completion_window: str,
        metadata: dict[str, str] | None = None,
    ) -> Body:
        """A batch in state ``validating``; every later look moves it one state on."""
        if input_file_id not in self.files:
            raise ApiError(400, f"no input file {input_file_id}")
        batch: Body = {
            "id": f"batch_{len(self.batches) + 1}",
            "object": "batch",
            "endpoint": endpoint,
            "input_file_id": input_file_id,
            "completion_window": completion_window,
            "metadata": metadata,
            "output_file_id": None,
            "error_file_id": None,
            "errors": None,
            "request_counts": {"total": 0, "completed": 0, "failed": 0},
        }
        self.batches[batch["id"]] = batch
        return _public(self._move(batch, "validating"))

    def _move(self, batch: Body, status: str) -> Body:
        stamp = "created_at" if status == "validating" else f"{status}_at"
        batch |= {"status": status, stamp: int(time.time())}
        return batch

    def advance(self, batch: Body) -> Body:
        match batch["status"]:
            case "validating":
                return self._validate(batch)
            case "in_progress":
                return self._finish(batch)
            case "cancelling":
                return self._move(batch, "cancelled")
        return batch

    def cancel(self, batch: Body) -> Body:
        if batch["status"] not in ("validating", "in_progress"):
            raise ApiError(400, f"cannot cancel a batch with status {batch['status']!r}")
        return self._move(batch, "cancelling")

    def _validate(self, batch: Body) -> Body:
        lines: dict[str, Body] = {}
        for number, text in enumerate(self.contents[batch["input_file_id"]].splitlines(), 1):
            try:
                line = json.loads(text)
                if line["custom_id"] in lines or (line["method"], line["url"]) != ("POST", batch["endpoint"]):
                    raise ValueError(f"repeated custom_id, or not a POST to {batch['endpoint']}")
                lines[line["custom_id"]] = line["body"]
            except (ValueError, KeyError) as error:
                problem = {"code": "invalid_line", "line": number, "message": str(error), "param": None}
                batch["errors"] = _list([problem])
                return self._move(batch, "failed")
        if self.refusals:
            batch["errors"] = _list([self.refusals.pop(0)])
            return self._move(batch, "failed")
        batch["_lines"] = lines
        batch["request_counts"]["total"] = len(lines)
        return self._move(batch, "in_progress")

    def _finish(self, batch: Body) -> Body:
        good: list[Body] = []
        bad: list[Body] = []
        counts = Counter(completed=0, failed=0)
        expired = False
        for name, body in batch["_lines"].items():
            outcome = self.decide(body)
            expired |= outcome == "expired"
            if outcome == "missing":
                continue
            line = self._line(batch["endpoint"], name, body, outcome)
            answered = line["response"] is not None and line["response"]["status_code"] == 200
            counts["completed" if answered else "failed"] += 1
            (good if answered or self.errors_in_output else bad).append(line)
            if outcome == "duplicate":
                good.append(line)
        random.Random(self.seed).shuffle(good)
        batch["request_counts"] |= counts
        for field, lines in {"output_file_id": good, "error_file_id": bad}.items():
            if lines:
                text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
                batch[field] = self.add_file(text.encode(), "batch_output", f"{batch['id']}.jsonl")["id"]
        return self._move(batch, "expired" if expired else "completed")

    def _line(self, path: str, name: str, body: Body, outcome: str) -> Body:
        line: Body = {"id": f"batch_req_{name}", "custom_id": name, "response": None, "error": None}
        if outcome == "expired":
            return line | {"error": {"code": "batch_expired", "message": "not done within the window"}}
        try:
            if outcome not in ("200", "duplicate"):
                raise ApiError(int(outcome), f"batch line answered with {outcome}")
            status, payload = 200, self.complete(path, body)
        except ApiError as error:
            status, payload = error.status, error.body
        return line | {"response": {"status_code": status, "request_id": f"req_{name}", "body": payload}}


def _list(data: list[Body]) -> Body:
    return {"object": "list", "data": data, "has_more": False}


def _page(data: list[Body], query: dict[str, str]) -> Body:
    """A page of a listing: at most ``limit`` things that come behind ``after``."""
    names = [one["id"] for one in data]
    start = names.index(query["after"]) + 1 if "after" in query else 0
    end = start + int(query.get("limit", 20))
    return _list(data[start:end]) | {"has_more": end < len(data)}


def _public(batch: Body) -> Body:
    return {key: value for key, value in batch.items() if not key.startswith("_")}


def _form(body: bytes, content_type: str) -> Body:
    """The fields of a multipart upload: ``file``, ``filename`` and ``purpose``."""
    boundary = content_type.partition("boundary=")[2].strip('"').encode()
    fields: Body = {}
    for part in body.split(b"--" + boundary)[1:-1]:
        head, _, value = part.partition(b"\r\n\r\n")
        names = dict(re.findall(r'\b(name|filename)="([^"]*)"', head.decode()))
        value = value.removesuffix(b"\r\n")
        if names["name"] == "file":
            fields |= {"file": value, "filename": names.get("filename", "upload")}
        elif names["name"] == "purpose":
            fields["purpose"] = value.decode()
    return fields
