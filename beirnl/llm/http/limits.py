"""A provider's rate limits, kept by token buckets; for one event loop, without locks between threads."""

import asyncio
import time
from collections.abc import Awaitable, Callable

Clock = Callable[[], float]

_BURST_SECONDS = 1.0
_SLICE_SECONDS = 0.25  # a wait is looked at again this often: corrections shorten it
_INSTANT = 1e-6  # seconds; a shorter wait is a rounding error
_WEIGHT = 0.1  # of the newest answer in the moving mean of their lengths


class TokenBucket:
    """So much per minute, with a burst of one second's worth.

    What flows in is less than the limit by the burst, so that no minute exceeds the limit, wherever it
    begins. An amount above the burst is let go when the bucket is full, and leaves a debt.

    Args:
        per_minute: the limit.
        clock: seconds, never going back.
    """

    def __init__(self, per_minute: float, clock: Clock = time.monotonic) -> None:
        self._burst = per_minute * _BURST_SECONDS / 60
        self._rate = (per_minute - self._burst) / 60  # per second
        self._level, self._clock, self._then = self._burst, clock, clock()

    def wait(self, amount: float) -> float:
        """Seconds until ``amount`` may be taken; 0 if it may be now."""
        self._fill()
        return max(0.0, (min(amount, self._burst) - self._level) / self._rate)

    def take(self, amount: float) -> None:
        """Take ``amount`` now; a negative one is given back."""
        self._fill()
        self._level = min(self._burst, self._level - amount)

    def _fill(self) -> None:
        now = self._clock()
        self._level = min(self._burst, self._level + (now - self._then) * self._rate)
        self._then = now


class RateLimits:
    """Requests and tokens per minute of one worker, and the pauses that the server asks for.

    Tokens are reserved by an estimate before a request and corrected by what its answer reports.

    Args:
        requests_per_minute, tokens_per_minute: the limits; None: no limit.
        share: this worker's part of them.
        clock, sleep: time, for tests.
    """

    def __init__(
        self,
        requests_per_minute: float | None,
        tokens_per_minute: float | None,
        share: float = 1.0,
        *,
        clock: Clock = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._requests = TokenBucket(requests_per_minute * share, clock) if requests_per_minute else None
        self._tokens = TokenBucket(tokens_per_minute * share, clock) if tokens_per_minute else None
        self._clock, self._sleep = clock, sleep
        self._paused_until = clock()
        self._turn = asyncio.Lock()  # first come, first served
        self._mean_answer: float | None = None

    def estimate(self, payload_bytes: int, max_tokens: int) -> float:
        """Tokens that a request will cost: four bytes each in, and out as many as answers had so far."""
        out = max_tokens if self._mean_answer is None else min(max_tokens, self._mean_answer)
        return payload_bytes / 4 + out

    async def acquire(self, tokens: float) -> None:
        """Wait for permission to send a request that will cost about so many tokens."""
        if self._turn.locked() or self._wait(tokens) > _INSTANT:
            async with self._turn:
                while (seconds := self._wait(tokens)) > _INSTANT:
                    await self._sleep(min(seconds, _SLICE_SECONDS))
                self._take(tokens)
        else:
            self._take(tokens)

    def correct(self, reserved: float, prompt_tokens: int, completion_tokens: int) -> None:
        """Replace the estimate of an answered request by what it cost, if the server says that."""
        if not prompt_tokens + completion_tokens:
            return
        mean = completion_tokens if self._mean_answer is None else self._mean_answer
        self._mean_answer = mean + _WEIGHT * (completion_tokens - mean)
        if self._tokens:
            self._tokens.take(prompt_tokens + completion_tokens - reserved)

    def pause(self, seconds: float) -> None:
        """Let nothing go for so long."""
        self._paused_until = max(self._paused_until, self._clock() + seconds)

    def _wait(self, tokens: float) -> float:
        wait = self._paused_until - self._clock()
        if self._requests:
            wait = max(wait, self._requests.wait(1))
        return max(wait, self._tokens.wait(tokens)) if self._tokens else wait

    def _take(self, tokens: float) -> None:
        if self._requests:
            self._requests.take(1)
        if self._tokens:
            self._tokens.take(tokens)
