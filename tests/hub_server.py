"""Small servers that stand for the Hugging Face hub, for its real client.

``serving`` asks an object with ``answer(method, path, body, headers)`` for each reply: status and JSON, or
a ``Reply``. ``Repositories`` is such an object for reading: datasets with their files at commits, byte
ranges, and connections that break where told.
"""

import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import huggingface_hub
from huggingface_hub import constants


class Reply(NamedTuple):
    """Status, headers and body; after ``cut`` bytes of it the connection ends."""

    status: int
    headers: dict
    body: bytes = b""
    cut: int | None = None


@contextmanager
def serving(fake):
    """The address of a server that answers as ``fake`` does, which also gets all requests in ``requests``."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def respond(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            fake.requests.append((f"{self.command} {self.path}", self.headers.get("Authorization")))
            reply = fake.answer(self.command, self.path.partition("?")[0], body, self.headers)
            if not isinstance(reply, Reply):
                reply = Reply(reply[0], {"Content-Type": "application/json"}, json.dumps(reply[1]).encode())
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply.body[: reply.cut])
            if reply.cut is not None:
                self.wfile.flush()
                self.close_connection = True

        do_GET = do_POST = do_HEAD = respond  # noqa: N815 - as the base class calls them

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def hub_at(address, monkeypatch, cache):
    """The hub's client talks to an address, and keeps its files in a folder."""
    monkeypatch.setattr(constants, "ENDPOINT", address)
    template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    huggingface_hub.close_session()
    try:
        yield
    finally:
        huggingface_hub.close_session()


class Repositories:
    """Datasets of a hub that is only read.

    Attributes:
        commits: names of commits, the newest last, by repository.
        cuts: how many bytes of a file come before the connection breaks, an entry for each time that it does.
        refused: files that are listed and not given.
        served: bytes of files that were sent.
    """

    def __init__(self):
        self.requests: list[tuple[str, str | None]] = []
        self.commits: dict[str, dict[str, dict[str, bytes]]] = {}
        self.cuts: dict[str, list[int]] = {}
        self.refused: set[str] = set()
        self.served: dict[str, int] = {}

    def publish(self, repository: str, files: dict[str, bytes]) -> str:
        """Add a commit; its name."""
        commits = self.commits.setdefault(repository, {})
        commit = hashlib.sha1(f"{repository}{len(commits)}".encode()).hexdigest()
        commits[commit] = dict(files)
        return commit

    def publish_folder(self, repository: str, folder: Path, **more: bytes) -> str:
        """Add a commit with the files of a folder."""
        files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        return self.publish(repository, {**files, **more})

    def answer(self, method, path, body, headers):
        api = path.startswith("/api/datasets/")
        rest = path.removeprefix("/api").removeprefix("/datasets/").split("/")
        repository, rest = "/".join(rest[:2]), rest[2:]
        commits = self.commits.get(repository)
        if commits is None:
            return _error("RepoNotFound")
        revision = rest[1] if len(rest) > 1 else "main"
        commit = list(commits)[-1] if revision == "main" else revision
        if commit not in commits:
            return _error("RevisionNotFound")
        files = commits[commit]
        if api and (not rest or rest[0] == "revision"):
            return 200, {"id": repository, "sha": commit, "private": False, "siblings": []}
        if api and rest[0] == "tree":
            return 200, [
                {"type": "file", "path": p, "size": len(d), "oid": hashlib.sha1(d).hexdigest()}
                for p, d in files.items()
            ]
        name = "/".join(rest[2:])
        if name not in files or name in self.refused:
            return _error("EntryNotFound")
        return self._file(name, files, commit, headers, cut=method == "GET" and self.cuts.get(name))

    def _file(self, name, files, commit, headers, cut):
        data = files[name]
        begin = int((headers.get("Range") or "bytes=0-").removeprefix("bytes=").partition("-")[0])
        reply = {
            "ETag": f'"{hashlib.sha1(data).hexdigest()}"',
            "X-Repo-Commit": commit,
            "Accept-Ranges": "bytes",
        }
        if begin:
            reply["Content-Range"] = f"bytes {begin}-{len(data) - 1}/{len(data)}"
        sent = cut.pop(0) if cut else None
        if cut is not False:
            self.served[name] = self.served.get(name, 0) + len(data[begin:][:sent])
        return Reply(206 if begin else 200, reply, data[begin:], sent)


def _error(code):
    return Reply(404, {"X-Error-Code": code, "Content-Type": "application/json"}, b'{"error": "not found"}')
