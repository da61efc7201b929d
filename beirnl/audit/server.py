"""The local server of the page: gives the items of a sheet, takes labels, and has no other door.

It listens on this machine only unless told otherwise. Requests that name another host (a page elsewhere that
had its name point here) and posts that come from another page are refused.
"""

import errno
import secrets
import sys
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import msgspec

from beirnl.audit.labels import Label, Labels, annotator_name
from beirnl.audit.sheet import Item, read_sheet
from beirnl.errors import BeirnlError, ConfigError
from beirnl.translation.checks import Kept, keeps

_LOCAL = {"127.0.0.1", "localhost", "::1"}
_LONGEST_POST = 64 * 1024  # bytes
_LONGEST_NOTE = 4000  # characters
_JSON = "application/json"
_HEADERS = {
    "Content-Type": _JSON,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
#: Languages that are written from right to left (Unicode CLDR).
_RIGHT_TO_LEFT = {"ar", "ckb", "dv", "fa", "he", "ks", "ps", "sd", "ug", "ur", "yi"}


class _Post(msgspec.Struct):
    """Body of a post: a label, a note, or both, on an item."""

    annotator: str
    key: str
    label: Label | None = None
    note: str = ""


class _RefusedError(Exception):
    """A request that gets no answer but its status and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class AuditServer(ThreadingHTTPServer):
    """Serves one sheet until it is shut down.

    Args:
        path: the sheet.
        host: address to listen on.
        port: 0 takes a free one.
        annotator: who labels; None: the page asks.

    Raises:
        ConfigError: the port is taken, the address is not this machine's, or the annotator's name is none.
        DataError: the file is no sheet.
        OSError: the sheet cannot be read.
    """

    daemon_threads = True

    def __init__(
        self, path: Path, host: str = "127.0.0.1", port: int = 8790, annotator: str | None = None
    ) -> None:
        self.sheet = read_sheet(path)
        self.labels = Labels(path)
        self.keys = {item.key for item in self.sheet.items}
        self.items = msgspec.json.encode(_shown(self.sheet.items))
        self.annotator = annotator_name(annotator) if annotator is not None else None
        self.local = host in _LOCAL
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            what = f"port {port} is in use" if taken else f"cannot listen on {host}:{port} ({error.strerror})"
            remedy = "give another --port" if taken else "give another --host or --port"
            raise ConfigError(what, remedy=remedy) from error

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that has gone away is no error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """Where the page is."""
        who = f"?annotator={quote(self.annotator)}" if self.annotator else ""
        return f"http://{self.server_address[0]!s}:{self.server_port}/{who}"


def _shown(items: Sequence[Item]) -> list[dict[str, Any]]:
    """What the page is told of items. The checks' verdict is left out, since it would sway the annotator, but
    where it left the source (or its title) in place of an answer, that and the verdict are said."""
    return [_shown_item(item, keeps(item.status)) for item in items]


def _shown_item(item: Item, kept: Kept) -> dict[str, Any]:
    language = item.source_language if kept == "source" else item.language
    return {
        "key": item.key,
        "dataset": item.stratum,
        "part": item.part,
        "kind": item.kind,
        "id": item.id,
        "kept": kept,
        "because": "" if kept == "answer" else item.status,
        "source": _text(item.source_language, item.source_title, item.source_text),
        "translation": {**_text(language, item.title, item.text), "wanted": item.language},
    }


def _text(language: str, title: str, text: str) -> dict[str, str]:
    direction = "rtl" if language.split("-")[0] in _RIGHT_TO_LEFT else "ltr"
    return {"language": language, "direction": direction, "title": title, "text": text}


class _Handler(BaseHTTPRequestHandler):
    """``GET /``, ``GET /items``, ``GET /labels?annotator=NAME``, ``POST /labels``."""

    server: AuditServer
    timeout = 30  # seconds that a connection may be silent
    server_version = "beirnl"

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal is the annotator's."""

    def _answer(self, act: Any) -> None:
        try:
            self._check_host()
            act()
        except _RefusedError as refused:
            self._send(refused.status, {"error": str(refused)})
        except ConfigError as error:
            self._send(400, {"error": str(error)})
        except ConnectionError:
            raise
        except (BeirnlError, OSError) as error:
            self._send(500, {"error": str(error)})

    def _check_host(self) -> None:
        name = urlsplit(f"//{self.headers.get('Host', '')}").hostname
        if self.server.local and name not in _LOCAL:
            raise _RefusedError(403, "this page is for this machine only")

    def _get(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/":
            self._page(url.query)
        elif url.path == "/items":
            self._send(200, self.server.items)
        elif url.path == "/labels":
            annotator = annotator_name("".join(parse_qs(url.query).get("annotator", [])))
            judgements = self.server.labels.read(annotator)
            self._send(200, {"annotator": annotator, "labels": judgements})
        else:
            raise _RefusedError(404, "there is no such page")

    def _page(self, query: str) -> None:
        if self.server.annotator and not query:
            self.send_response(302)
            self.send_header("Location", f"/?annotator={quote(self.server.annotator)}")
            self.end_headers()
            return
        nonce = secrets.token_urlsafe(16)
        page = files(__package__).joinpath("page.html").read_text("utf-8").replace("{{ nonce }}", nonce)
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; "
            "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        kind = "text/html; charset=utf-8"
        self._send(200, page.encode(), {"Content-Type": kind, "Content-Security-Policy": policy})

    def _post(self) -> None:
        self._check_origin()
        if urlsplit(self.path).path != "/labels":
            raise _RefusedError(404, "there is no such page")
        post = self._body()
        if post.key not in self.server.keys:
            raise _RefusedError(409, "the sheet has changed: load the page again")
        if len(post.note) > _LONGEST_NOTE:
            raise _RefusedError(400, f"the note is longer than {_LONGEST_NOTE} characters")
        judgement = self.server.labels.append(post.annotator, post.key, post.label, post.note)
        self._send(200, judgement)

    def _check_origin(self) -> None:
        """Only the page itself may post: browsers name the page that a post comes from."""
        origin = self.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != self.headers.get("Host"):
            raise _RefusedError(403, "labels are taken from the page itself only")
        if self.headers.get_content_type() != _JSON:
            raise _RefusedError(415, f"labels are sent as {_JSON}")

    def _body(self) -> _Post:
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or int(length) > _LONGEST_POST:
            raise _RefusedError(413, f"a label has at most {_LONGEST_POST} bytes, and says how many")
        try:
            return msgspec.json.decode(self.rfile.read(int(length)), type=_Post)
        except ValueError as error:
            raise _RefusedError(400, f"this is no label: {error}") from error

    def _send(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        self.send_response(status)
        for name, value in {**_HEADERS, "Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
