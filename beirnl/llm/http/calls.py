"""Many calls to one server at once, from threads: what keeps it busy and what ends them together.

Threads that ask share one event loop in a thread of its own. There each request is a task; a new one starts
when another ends, oldest call first, so that the server is kept busy across the ends of calls.
"""

import asyncio
import copy
import threading
from collections import deque
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

from beirnl.errors import BeirnlError, EngineError
from beirnl.llm.protocol import Enough, never

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")
T = TypeVar("T")
_AskedIn = TypeVar("_AskedIn", contravariant=True)
_AnsweredOut = TypeVar("_AnsweredOut", covariant=True)


class Answerer(Protocol[_AskedIn, _AnsweredOut]):
    """What answers one request at a time, in an event loop."""

    async def open(self) -> None:
        """Connect; raises where nothing can be answered."""

    async def close(self) -> None:
        """Let go of connections."""

    async def answer(self, request: _AskedIn) -> _AnsweredOut:
        """The answer to a request; raises where no request can be answered."""
        ...


class Calls(Generic[Asked, Answered]):
    """A server that threads ask many things at once.

    Args:
        client: answers one request.
        limit: most requests open at once.

    Raises:
        BeirnlError: what the client raises when it connects.
    """

    def __init__(self, client: Answerer[Asked, Answered], limit: int) -> None:
        self._client = client
        self._pump = _Pump(client, limit)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="requests", daemon=True)
        self._thread.start()
        try:
            self._run(self._client.open())
        except BaseException:
            self.close()
            raise

    def generate(self, requests: Sequence[Asked], enough: Enough = never) -> Iterator[tuple[int, Answered]]:
        """Answers as they come; see :class:`beirnl.llm.protocol.LLM`.

        An answer keeps its place among the ``limit`` until the caller asks for the next one, so that
        never more is paid for than a caller that puts away each answer has lost if the process dies. If the
        caller closes the iterator early, what is not answered is cancelled.

        Raises:
            EngineError: no request can be answered; every call that is under way raises it, after what it has
                sent is answered.
        """
        call: _Call[Asked, Answered] = _Call(requests, enough)
        self._soon(self._pump.admit, call)
        try:
            while item := call.answers.get():
                if isinstance(item, BaseException):
                    raise _copied(item)
                yield item
                self._soon(self._pump.settle, call)
        finally:
            with suppress(EngineError):  # closed: nothing is under way
                self._soon(self._pump.drop, call)

    def close(self) -> None:
        """Cancel what is under way and end the connections; a call that waits raises an EngineError."""
        if self._loop.is_closed():
            return
        self._run(self._pump.stop(EngineError("the engine was closed")))
        self._run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _soon(self, function: Any, *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError as error:  # the loop has ended
            raise EngineError("the engine was closed") from error


class _Call(Generic[Asked, Answered]):
    """One call of ``generate``: what is left to send, what is under way, and the answers that wait.

    Attributes:
        enough: whether the caller wants no more.
        answers: ``(place, answer)`` pairs; at the end None, or the error that ends the call.
        end: that last one.
        open: requests that are under way, or whose answer the caller has not put away.
    """

    def __init__(self, requests: Sequence[Asked], enough: Enough) -> None:
        self.enough = enough
        self.waiting = deque(enumerate(requests))
        self.tasks: set[asyncio.Task[None]] = set()
        self.answers: SimpleQueue[tuple[int, Answered] | BaseException | None] = SimpleQueue()
        self.end: BaseException | None = None
        self.open = 0


class _Pump(Generic[Asked, Answered]):
    """Starts requests; its methods run in the loop's thread.

    Args:
        client: answers one request.
        limit: most requests open at once, over all calls.
    """

    def __init__(self, client: Answerer[Asked, Answered], limit: int) -> None:
        self._client, self._limit = client, limit
        self._calls: list[_Call[Asked, Answered]] = []
        self._open = 0
        self._failed: BaseException | None = None

    def admit(self, call: _Call[Asked, Answered]) -> None:
        """Take in a new call."""
        self._calls.append(call)
        if self._failed:
            self.finish(call, self._failed)
        self._end(call)
        self.start()

    def start(self) -> None:
        """Start as many requests as there is room for."""
        while self._open < self._limit and (call := self._next()):
            place, request = call.waiting.popleft()
            task = asyncio.get_running_loop().create_task(self._answer(call, place, request))
            call.tasks.add(task)
            self._count(call, 1)
            task.add_done_callback(partial(self._ended, call))

    def settle(self, call: _Call[Asked, Answered]) -> None:
        """The caller has put an answer away."""
        if call.open:
            self._count(call, -1)
        self.start()

    def finish(self, call: _Call[Asked, Answered], error: BaseException | None = None) -> None:
        """Send nothing more for a call; it ends when what is under way has been answered."""
        call.waiting.clear()
        call.end = call.end or error
        self._end(call)

    def drop(self, call: _Call[Asked, Answered]) -> None:
        """Forget a call, and cancel what is under way for it."""
        call.waiting.clear()
        for task in call.tasks:
            task.cancel()
        call.tasks.clear()
        self._count(call, -call.open)
        self._calls = [other for other in self._calls if other is not call]
        self.start()

    async def stop(self, error: BaseException) -> None:
        """End all calls with this error at once, and those that come later."""
        self._fail(error)
        tasks = [task for call in self._calls for task in call.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _count(self, call: _Call[Asked, Answered], number: int) -> None:
        call.open += number
        self._open += number

    def _next(self) -> _Call[Asked, Answered] | None:
        """The oldest call with something to send."""
        for call in list(self._calls):
            if call.enough():
                self.finish(call)
            if call.waiting:
                return call
        return None

    async def _answer(self, call: _Call[Asked, Answered], place: int, request: Asked) -> None:
        call.answers.put((place, await self._client.answer(request)))

    def _ended(self, call: _Call[Asked, Answered], task: asyncio.Task[None]) -> None:
        if task not in call.tasks:  # the call was dropped
            return
        call.tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error:
            self._fail(error)
        if error or task.cancelled():
            self._count(call, -1)
        self._end(call)
        self.start()

    def _end(self, call: _Call[Asked, Answered]) -> None:
        """Tell the caller, once, that there is nothing more to come."""
        if call in self._calls and not (call.waiting or call.tasks):
            self._calls = [other for other in self._calls if other is not call]
            call.answers.put(call.end)

    def _fail(self, error: BaseException) -> None:
        """Finish all calls; the first error is what they and later ones raise."""
        self._failed = self._failed or error
        for call in list(self._calls):
            self.finish(call, self._failed)


def _copied(error: BaseException) -> BaseException:
    """The error for one thread among several: each has its own traceback."""
    if isinstance(error, BeirnlError):
        return copy.copy(error)
    failed = EngineError(f"the engine failed ({type(error).__name__}: {error})")
    failed.__cause__ = error
    return failed
