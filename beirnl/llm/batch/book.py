"""The job book: which requests are ordered in which job, so that nothing is ordered, and paid, twice.

    FOLDER/<name>.json          a job whose answers are not all safe
    FOLDER/<name>.jsonl         its input file
    FOLDER/<name>.lock          held by the process that is ordering it
    FOLDER/closed/<name>.json   a job that needs no more attention

A job is entered before it is ordered, with its input file beside it, so that any process can take it up where
another one died. Entering is done under one lock for the whole book; many processes may use one folder.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from beirnl.errors import StoreError
from beirnl.llm.batch.files import BatchFileWriter
from beirnl.llm.openai_format import endpoint
from beirnl.llm.protocol import Request
from beirnl.specs import LlmSpec
from beirnl.store.files import disk_errors, write_atomically
from beirnl.store.places import Place, RemotePath

#: Seconds for which a collected job still counts as holding its answers: whoever looked for them in the
#: journal shortly before they were there finds them here.
RECENT = 3600.0

State = Literal["open", "collected", "failed"]


class Job(msgspec.Struct, frozen=True):
    """A job in the book.

    Attributes:
        name: of its files.
        server: where it is ordered.
        endpoint: route of its requests.
        created: when it was entered, in nanoseconds since 1970.
        waiting: custom ids of requests whose answers are not safe yet.
        consumed: custom ids of those whose answers are.
        unanswered: how many requests came back without an answer.
        file: id of the uploaded input file; empty: not uploaded.
        id: of the job; empty: not ordered, or not known to be.
        tries: how often it was turned away because too much was queued.
        state: ``open``; ``collected`` once no answer is waited for; ``failed`` if it was refused as a whole.
    """

    name: str
    server: str
    endpoint: str
    created: int
    waiting: tuple[str, ...]
    consumed: tuple[str, ...] = ()
    unanswered: int = 0
    file: str = ""
    id: str = ""
    tries: int = 0
    state: State = "open"

    @property
    def token(self) -> str:
        """What the provider is told to know this job by: one for each time that it is ordered."""
        return f"beirnl-{self.name}-{self.tries}"

    def but(self, **changes: object) -> "Job":
        """The job with some fields changed."""
        return msgspec.structs.replace(self, **changes)


class Claim(NamedTuple):
    """A job, and the custom ids in it that somebody waits for."""

    job: Job
    wanted: frozenset[str]


class JobBook:
    """The book of one provider.

    Args:
        folder: where it is kept; made if absent.
        spec: the limits by which requests are split into jobs.
        server: of new jobs; jobs of other servers are left alone.
        line: writes a request as a line of an input file.
    """

    def __init__(
        self, folder: Path, spec: LlmSpec, server: str, line: Callable[[str, Request], bytes]
    ) -> None:
        self.folder = folder
        self._spec, self._server, self._line = spec, server, line
        with disk_errors(folder):
            (folder / "closed").mkdir(parents=True, exist_ok=True)

    def claim(self, requests: Mapping[str, Request]) -> list[Claim]:
        """The jobs that hold these requests; what no job holds is entered as new ones, not ordered yet.

        Args:
            requests: by custom id.
        """
        with self._lock():
            left = dict(requests)
            claims = []
            for job in sorted(self._jobs(), key=lambda job: -job.created):
                wanted = [name for name in (*job.waiting, *job.consumed) if left.pop(name, None)]
                if wanted:
                    claims.append(Claim(job, frozenset(wanted)))
            return claims + [Claim(job, frozenset(job.waiting)) for job in self._enter(left)]

    def _enter(self, requests: Mapping[str, Request]) -> list[Job]:
        """New jobs over these requests, split by the provider's limits."""
        self._tidy()
        parts: dict[Path, list[str]] = {}
        routes: dict[Path, str] = {}
        with BatchFileWriter(self.folder, self._spec, uuid.uuid4().hex[:12], self._line) as writer:
            for name, request in requests.items():
                path = writer.add(name, request)
                parts.setdefault(path, []).append(name)
                routes[path] = endpoint(request)
        return [
            self.write(Job(path.stem, self._server, routes[path], time.time_ns(), tuple(names)))
            for path, names in parts.items()
        ]

    def _tidy(self) -> None:
        """Remove input files of jobs that were not entered, since their process died."""
        half = self.folder.glob(".*.partial")
        whole = (path for path in self.folder.glob("*.jsonl") if not path.with_suffix(".json").exists())
        for path in [*half, *whole]:
            path.unlink()

    def write(self, job: Job) -> Job:
        """Put a job into the book, or in place of what the book says of it."""
        write_atomically(self.place(job), msgspec.json.encode(job))
        return job

    @contextmanager
    def ordering(self, job: Job) -> Iterator[Job]:
        """The job as the book has it now, which nobody else orders or puts off meanwhile."""
        from filelock import FileLock

        with disk_errors(self.folder), FileLock(self.folder / f"{job.name}.lock"):
            yield self._current(job)

    def _current(self, job: Job) -> Job:
        for path in (self.place(job.but(state="open")), self.place(job.but(state="collected"))):
            with suppress(FileNotFoundError):
                return _read(path)
        raise StoreError(
            "the record of a batch job is gone", where=self.place(job), remedy="run the same command again"
        )

    def release(self, job: Job, answered: Set[str], unanswered: Set[str]) -> None:
        """Note which answers are safe, and which requests have none; closes a job that holds no others."""
        with self._lock():
            job = self._current(job)
            if job.state != "open":
                return  # by somebody who waited for the same answers
            safe = tuple(name for name in job.waiting if name in answered)
            left = tuple(name for name in job.waiting if name not in answered and name not in unanswered)
            lost = len(job.waiting) - len(left) - len(safe)
            job = job.but(waiting=left, consumed=job.consumed + safe, unanswered=job.unanswered + lost)
            if left:
                self.write(job)
            else:
                self._close(job, "collected")

    def fail(self, job: Job) -> None:
        """Close a job that was refused as a whole: its requests may be ordered again."""
        with self._lock():
            job = self._current(job)
            if job.state == "open":
                self._close(job.but(waiting=(), unanswered=len(job.waiting)), "failed")

    def _close(self, job: Job, state: State) -> None:
        self.write(job.but(state=state))
        for suffix in (".json", ".jsonl", ".lock"):
            (self.folder / f"{job.name}{suffix}").unlink(missing_ok=True)

    def others(self, job: Job) -> bool:
        """Whether another job is at the provider."""
        with self._lock():
            return any(
                other.id and other.state == "open" and other.name != job.name for other in self._jobs()
            )

    def place(self, job: Job) -> Path:
        """The job's file."""
        return (self.folder if job.state == "open" else self.folder / "closed") / f"{job.name}.json"

    def input_file(self, job: Job) -> Path:
        """The file of its requests."""
        return self.folder / f"{job.name}.jsonl"

    def _jobs(self) -> Iterator[Job]:
        """Jobs of this server that hold requests: the open ones, and those collected a short while ago."""
        since = time.time() - RECENT
        closed = (path for path in (self.folder / "closed").glob("*.json") if path.stat().st_mtime > since)
        for path in (*self.folder.glob("*.json"), *closed):
            job = _read(path)
            if job.server == self._server:
                yield job

    @contextmanager
    def _lock(self) -> Iterator[None]:
        from filelock import FileLock

        with disk_errors(self.folder), FileLock(self.folder / "book.lock"):
            yield


def open_jobs(folder: Place) -> list[Job]:
    """The jobs of an engine that are not closed, oldest first; may be asked while others work on them.

    Args:
        folder: of the engine in the journal.
    """
    if isinstance(folder, RemotePath):
        return []  # where no book is kept
    found = []
    for path in (folder / "batches").glob("*.json"):
        with suppress(FileNotFoundError):  # closed a moment ago
            found.append(_read(path))
    return sorted(found, key=lambda job: job.created)


def _read(path: Path) -> Job:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Job)
    except ValueError as error:
        raise StoreError(
            f"not a record of a batch job: {error}",
            where=path,
            remedy="restore the file; if it is removed, the job's requests are ordered and paid again",
        ) from error
