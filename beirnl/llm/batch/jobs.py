"""The loop that all batch engines share: claim, order, look, collect, and ask again for what is missing."""

import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, NamedTuple

from beirnl.errors import EngineError, PrerequisiteError
from beirnl.llm.batch.board import Board, logger
from beirnl.llm.batch.book import Claim, Job, JobBook
from beirnl.llm.batch.files import Result
from beirnl.llm.batch.provider import BusyError, Look, Provider, RejectedError, UnreachableError
from beirnl.llm.protocol import Answer, Enough, Request, Surroundings, never
from beirnl.specs import LlmSpec
from beirnl.store.files import disk_errors
from beirnl.wording import counted

#: How often a request is ordered at most, within one call of ``generate``.
ROUNDS = 3
#: Failing looks in a row, at growing intervals, after which the provider counts as unreachable.
_MANY = 20  # as many requests that all fail for one reason are no accident of a text
PATIENCE = 8
#: How often a job is offered to a provider that takes no more, while none of ours is in its queue.
OFFERS = 6
#: Longest interval, in units of ``poll_seconds``.
LONGEST = 16
_GLANCE = 0.5  # seconds after which one who waits looks whether the run is being stopped


@dataclass
class _Wanted:
    """What one call of ``generate`` still waits for."""

    requests: dict[str, Request] = field(default_factory=dict)  # by custom id
    places: dict[str, list[int]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, place: int, request: Request) -> None:
        self.requests[name] = request
        self.places.setdefault(name, []).append(place)

    def take(self, name: str) -> list[int]:
        del self.requests[name]
        return self.places.pop(name)


class _Finished(NamedTuple):
    claim: Claim
    look: Look
    results: Sequence[IO[bytes]]


class BatchLlm:
    """An engine whose answers come from batch jobs.

    A job is in the book before it is ordered, and stays there until its answers have been consumed: until
    the generator is resumed after the last of them. A process that dies at any moment in between leaves a
    book from which the next one goes on, without ordering a request twice.

    Args:
        spec: model, and the server with its limits.
        surroundings: its ``folder`` holds the book, as ``batches``.
        provider: the adapter.

    Raises:
        PrerequisiteError: no folder to remember jobs in.
        EngineError: the provider cannot be reached, or refuses the key.
    """

    def __init__(self, spec: LlmSpec, surroundings: Surroundings, provider: Provider) -> None:
        if surroundings.folder is None:
            raise PrerequisiteError(
                "a batch engine needs a folder to remember its jobs in",
                remedy="run it in a workspace on a disk, or give Surroundings(folder=...)",
            )
        self._spec, self._provider = spec, provider
        self._book = JobBook(surroundings.folder / "batches", spec, provider.server, provider.line)
        self._board = Board(spec.server.poll_seconds)
        self._closing = threading.Event()
        provider.check()

    def generate(self, requests: Sequence[Request], enough: Enough = never) -> Iterator[tuple[int, Answer]]:
        """Answers as their jobs finish; see :class:`beirnl.llm.protocol.LLM`. May take a day; what has been
        ordered when ``enough`` is said stays in the book, and the next run waits for it.

        Raises:
            EngineError: the provider refuses a whole job, a job was cancelled, or it cannot be reached for
                a long time. What was ordered stays in the book.
        """
        wanted = _Wanted()
        for place, request in enumerate(requests):
            wanted.add(request.key(self._spec.model), place, request)
        for _ in range(ROUNDS):
            if wanted.requests:
                for finished in self._finished(self._book.claim(wanted.requests), enough):
                    yield from self._collect(finished, wanted)
        for name, places in wanted.places.items():
            for place in places:
                yield place, Answer("", "error", error=wanted.reasons[name])

    def close(self) -> None:
        """Wake up whoever waits for a job; it stays in the book."""
        self._closing.set()

    def _finished(self, claims: list[Claim], enough: Enough) -> Iterator[_Finished]:
        """The jobs, each as soon as it has ended and its results are here."""
        waiting = {claim.job.name: claim for claim in claims}
        failures = offers = 0
        while waiting:
            busy = False
            for name, (job, names) in list(waiting.items()):
                try:
                    job = self._ordered(job)
                    waiting[name] = Claim(job, names)
                    finished = self._ended(waiting[name])
                    failures = 0
                except BusyError as error:
                    busy = True
                    waiting[name] = Claim(job.but(id=""), names)  # the book knows what has become of it
                    self._say(error)
                    continue
                except UnreachableError as error:
                    failures += 1
                    if failures > PATIENCE:
                        raise
                    self._say(error)
                    break
                if finished:
                    del waiting[name]
                    yield finished
            offers = offers + 1 if busy else 0
            if waiting:
                self._pause(min(2 ** max(failures, offers), LONGEST), enough)

    def _pause(self, factor: int, enough: Enough) -> None:
        until = time.monotonic() + self._spec.server.poll_seconds * factor
        while (left := until - time.monotonic()) > 0 and not enough():
            if self._closing.wait(min(left, _GLANCE)):
                break
        if enough() or self._closing.is_set():
            raise EngineError(
                "stopped while batch jobs were running",
                remedy="run the same command again: it waits for the same jobs",
            )

    def _say(self, error: EngineError) -> None:
        logger.warning("%s: %s; trying again later", self._provider.server, error.what)

    def _ordered(self, job: Job) -> Job:
        """The job, ordered now if it is not yet at the provider."""
        if job.id:
            return job
        with self._book.ordering(job) as job:
            if job.id:
                return job
            if job.state != "open":
                raise EngineError("the provider has refused this batch job", where=self._book.place(job))
            if job.file:  # somebody got this far; a job may be there though its id was never heard
                found = self._provider.find(job.token, job.file)
                if found:
                    return self._book.write(job.but(id=found))
            try:
                return self._order(job)
            except BusyError as error:
                self._put_off(job, error)
                raise
            except RejectedError as error:
                self._book.fail(job)
                raise _refused(error.what, self._provider.server) from error

    def _order(self, job: Job) -> Job:
        """Order a job that is not at the provider; each id is in the book before the next step."""
        if not job.file:
            job = self._book.write(job.but(file=self._provider.upload(self._book.input_file(job))))
        job = self._book.write(job.but(id=self._provider.create(job.file, job.endpoint, job.token)))
        self._board.ordered(job)
        return job

    def _put_off(self, job: Job, reason: BusyError) -> None:
        """Note that a job was turned away, unless it will always be."""
        if job.tries + 1 >= OFFERS and not self._book.others(job):
            self._book.fail(job)
            raise EngineError(
                f"the provider does not take a batch of {counted(len(job.waiting), 'request')} "
                f"({reason.what})",
                where=self._provider.server,
                remedy="lower batch_requests, or ask the provider for a higher limit, and run again",
            ) from reason
        self._book.write(job.but(id="", file="", tries=job.tries + 1))

    def _ended(self, claim: Claim) -> _Finished | None:
        """A job with its results, if it has ended."""
        job = claim.job
        try:
            look = self._provider.look(job.id)
            self._board.looked(job, look)
            if look.state == "running":
                return None
            results = [self._download(file) for file in look.files]
        except RejectedError as error:
            raise EngineError(
                f"batch job {job.id} cannot be read ({error.what})",
                where=self._provider.server,
                remedy="use the key of the account that ordered it, or remove "
                f"{self._book.place(job)} to order and pay its {counted(len(job.waiting), 'request')} again",
            ) from error
        if look.state == "busy":
            busy = BusyError(look.reason, where=self._provider.server)
            with self._book.ordering(job) as current:
                if current.id == job.id:
                    self._put_off(current, busy)
            raise busy
        if look.state == "failed":
            self._book.fail(job)
            raise _refused(look.reason, f"batch job {job.id}")
        return _Finished(claim, look, results)

    def _download(self, file: str) -> IO[bytes]:
        """A file of results, on disk without a name: it is gone when it is closed or the process dies."""
        with disk_errors(self._book.folder):
            target = tempfile.TemporaryFile(dir=self._book.folder)  # noqa: SIM115 - closed by its reader
            self._provider.download(file, target)
            target.seek(0)
            return target

    def _collect(self, finished: _Finished, wanted: _Wanted) -> Iterator[tuple[int, Answer]]:
        """The answers of a job that are waited for; what has none stays wanted, with the reason."""
        (job, names), look, _ = finished
        answered: set[str] = set()
        reasons = dict.fromkeys(names, f"batch job {job.id} ({look.state}) gave no answer")
        for name, result in self._results(finished):
            if name not in names or name in answered:
                continue
            if isinstance(result, str):
                reasons[name] = result
                continue
            answered.add(name)
            for place in wanted.take(name):
                yield place, result
        self._book.release(job, answered, names - answered)
        wanted.reasons |= reasons
        if look.state == "cancelled" and names - answered:
            raise EngineError(
                f"batch job {job.id} was cancelled with {counted(len(names - answered), 'request')} "
                "unanswered",
                where=self._provider.server,
                remedy="run the same command again to order those",
            )
        if not answered and len(names) >= _MANY and len(set(reasons.values())) == 1:
            raise EngineError(
                f"the provider answers none of the {counted(len(names), 'request')} of batch job {job.id} "
                f"({reasons.popitem()[1]})",
                where=self._provider.server,
                remedy="correct what it names (model, prompt, limits under [translation]) and run again",
            )

    def _results(self, finished: _Finished) -> Iterator[Result]:
        """What the lines of all result files say; a line that says nothing is passed over."""
        for file in finished.results:
            with file:
                for line in file:
                    try:
                        yield self._provider.read(line)
                    except ValueError as error:
                        job = finished.claim.job.id
                        logger.warning("batch job %s: passed over a line of results: %s", job, error)


def _refused(reason: str, where: str) -> EngineError:
    return EngineError(
        f"the provider refuses the whole batch ({reason})",
        where=where,
        remedy="correct what it names (model, prompt, limits under [translation]) and run again; "
        "nothing was charged for it",
    )
