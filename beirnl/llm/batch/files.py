"""OpenAI's batch file format: JSON lines of requests and of results, split at a provider's limits.

A request is ``{"custom_id", "method", "url", "body"}``; a result, in any order, is ``{"custom_id",
"response": {"status_code", "body"}, "error"}``. Providers differ in how a failure looks: a status, an
``error`` that is an object or a string, a ``body`` that is null, or no line at all.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

from beirnl.errors import ConfigError, DataError
from beirnl.llm.http.access import model_name
from beirnl.llm.openai_format import endpoint, read_answer, request_body
from beirnl.llm.protocol import Answer, Request
from beirnl.specs import LlmSpec

#: What a line of results says: the custom id, and an answer or the reason why there is none.
Result = tuple[str, Answer | str]

# Legal inside JSON strings, but ends of a line to readers that split by Unicode's rules.
_LINE_ENDS = [(char.encode(), f"\\u{ord(char):04x}".encode()) for char in "\u2028\u2029\x85"]


class Origin(NamedTuple):
    """Where in the journal an answer belongs: folder, first bucket, and last bucket plus one."""

    journal: str
    low: int
    high: int


def custom_id(origin: Origin, key: str) -> str:
    """The id of a request in a file that leaves this machine, of at most 64 characters.

    Args:
        origin: of the request; its folder is a digest of 20 digits.
        key: of the request, see :meth:`beirnl.llm.protocol.Request.key`.
    """
    return f"{origin.journal}-{origin.low:x}-{origin.high:x}-{key}"


def split_custom_id(name: str) -> tuple[Origin, str]:
    """Origin and key: the inverse of :func:`custom_id`.

    Raises:
        ValueError: not an id that :func:`custom_id` has made.
    """
    journal, low, high, key = name.split("-")
    return Origin(journal, int(low, 16), int(high, 16)), key


def one_line(value: Any) -> bytes:
    """``value`` as one JSON line, in UTF-8, which stays one line to every reader."""
    line = msgspec.json.encode(value)
    for char, escape in _LINE_ENDS:
        line = line.replace(char, escape)
    return line + b"\n"


def request_line(name: str, request: Request, model: str) -> bytes:
    """A line of a request file."""
    body = request_body(request, model)
    return one_line({"custom_id": name, "method": "POST", "url": endpoint(request), "body": body})


class _Response(msgspec.Struct):
    status_code: int | None = None
    body: msgspec.Raw = msgspec.Raw(b"null")


class _Line(msgspec.Struct):
    custom_id: str
    response: _Response | None = None
    error: Any = None
    method: str | None = None


_DECODER = msgspec.json.Decoder(_Line)


def read_line(line: bytes) -> Result:
    """A line of a result file.

    Raises:
        ValueError: not a line of results.
    """
    entry = _DECODER.decode(line)
    if entry.method is not None:
        raise ValueError("this is a request, not a result")
    response = entry.response
    if response is None or response.status_code != 200 or bytes(response.body) == b"null":
        return entry.custom_id, _reason(entry)
    try:
        return entry.custom_id, read_answer(bytes(response.body))
    except ValueError as error:
        return entry.custom_id, f"the response is malformed: {error}"


def _reason(entry: _Line) -> str:
    """Why a line holds no answer, in the words of the provider."""
    if entry.response is None:
        return _message(entry.error) or "no response and no reason"
    body = msgspec.json.decode(entry.response.body)
    return _message(entry.error) or _message(body) or f"status {entry.response.status_code}"


def _message(error: Any) -> str:
    """The text of an error, which stands bare or in up to two objects."""
    if not isinstance(error, dict):
        return str(error) if error else ""
    return _message(error.get("error")) or str(error.get("message") or error.get("code") or "")


class BatchFileWriter:
    """Writes request files: a new one at each limit, and one kind of endpoint per file.

    A file has its name only when it is whole. Leaving the ``with`` block by an exception takes away all
    that was written, so that no part of a set is taken for the whole.

    Args:
        folder: where ``STEM-00000.jsonl`` and so on are written; made if absent.
        spec: the model's name, and the limits ``batch_requests`` and ``batch_megabytes`` of its server.
        stem: first part of the file names.
        line: writes a request as a line; OpenAI's format if not given.

    Raises:
        ConfigError: the folder already holds such files, or the spec names no model.
    """

    def __init__(
        self,
        folder: Path,
        spec: LlmSpec,
        stem: str = "requests",
        line: Callable[[str, Request], bytes] | None = None,
    ) -> None:
        model = model_name(spec)
        self._line = line or (lambda name, request: request_line(name, request, model))
        self._limits = spec.server.batch_requests, int(spec.server.batch_megabytes * 1_000_000)
        self._folder, self._stem = folder, stem
        folder.mkdir(parents=True, exist_ok=True)
        if next(folder.glob(f"{stem}-*.jsonl"), None):
            raise ConfigError(
                "this folder already holds request files",
                where=folder,
                remedy="read their results first and remove them, or name another folder",
            )
        self._parts: dict[str, _Part] = {}  # the open ones, by endpoint
        #: Files written so far, the open ones included.
        self.paths: list[Path] = []

    def add(self, name: str, request: Request) -> Path:
        """Write a request; returns the file that holds it once the writer is closed.

        Raises:
            ConfigError: the request alone is larger than a file may be.
        """
        line = self._line(name, request)
        most, room = self._limits
        if len(line) > room:
            raise ConfigError(
                f"a request of {len(line):,} bytes does not fit into a batch file of {room:,}",
                remedy="raise batch_megabytes, or split documents at a smaller max_model_len",
            )
        route = endpoint(request)
        part = self._parts.get(route)
        if part and (part.count == most or part.size + len(line) > room):
            self._parts.pop(route).finish()
            part = None
        if part is None:
            part = self._parts[route] = _Part(self._folder / f"{self._stem}-{len(self.paths):05}.jsonl")
            self.paths.append(part.path)
        part.write(line)
        return part.path

    def close(self) -> None:
        """Finish the files that are open."""
        while self._parts:
            self._parts.popitem()[1].finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            return self.close()
        for part in self._parts.values():
            part.abandon()
        for path in self.paths:
            path.unlink(missing_ok=True)


class _Part:
    """A request file that is being written, under a name that no reader looks for."""

    def __init__(self, path: Path) -> None:
        self.path, self._temporary = path, path.with_name(f".{path.name}.partial")
        self._file = self._temporary.open("wb")
        self.count = self.size = 0

    def write(self, line: bytes) -> None:
        self._file.write(line)
        self.count, self.size = self.count + 1, self.size + len(line)

    def finish(self) -> None:
        self._file.close()
        self._temporary.replace(self.path)

    def abandon(self) -> None:
        with suppress(OSError):  # a full disk, which is why it is abandoned
            self._file.close()
        self._temporary.unlink(missing_ok=True)


def read_results(folder: Path) -> Iterator[Result]:
    """The results in all ``*.jsonl`` files of a folder, as they stand there; request files are passed over.

    A request may have several lines: the first answer counts, and a reason counts only where there is no
    answer. A request without any line has failed.

    Raises:
        DataError: a line that is not a result, or no result files at all.
    """
    found = False
    for path in sorted(folder.glob("*.jsonl")):
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                line = line.strip().removeprefix(b"\xef\xbb\xbf")
                if number == 1 and _is_request(line):
                    break
                if line:
                    found = True
                    yield _read(line, path, number)
    if not found:
        raise DataError(
            "no batch results here", where=folder, remedy="put the provider's output files (*.jsonl) there"
        )


def _read(line: bytes, path: Path, number: int) -> Result:
    try:
        return read_line(line)
    except ValueError as error:
        raise DataError(
            f"not a batch result: {error}",
            where=f"{path}:{number}",
            remedy="download the file again, or remove the line: its request is asked again",
        ) from error


def _is_request(line: bytes) -> bool:
    with suppress(ValueError):
        return _DECODER.decode(line).method is not None
    return False
