"""Rate limits on a clock that the test moves, and what failures mean for the next try."""

import asyncio
import email.utils
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beirnl.errors import EngineError
from beirnl.llm.http import retry
from beirnl.llm.http.limits import RateLimits, TokenBucket
from beirnl.llm.http.retry import RefusedError, TransientError, backoff, failure, read_error, retry_after


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


def limited(clock: Clock, requests=None, tokens=None, share=1.0) -> RateLimits:
    return RateLimits(requests, tokens, share, clock=clock, sleep=clock.sleep)


def departures(limits: RateLimits, clock: Clock, costs: list[float]) -> list[float]:
    """When each request was let go, in seconds from the start, if all ask at once."""
    start, times = clock(), [0.0] * len(costs)

    async def one(place: int, cost: float) -> None:
        await limits.acquire(cost)
        times[place] = clock() - start

    async def main() -> None:
        await asyncio.gather(*(one(place, cost) for place, cost in enumerate(costs)))

    asyncio.run(main())
    return times


def most_in_a_minute(times: list[float], costs: list[float]) -> float:
    """The largest sum of costs over any half-open minute."""
    within = [[cost for t, cost in zip(times, costs, strict=True) if s <= t < s + 60] for s in times]
    return max(map(sum, within))


# Limits -----------------------------------------------------------------------------------------------------


def test_without_limits_nothing_waits():
    clock = Clock()
    assert departures(limited(clock), clock, [1e9] * 100) == [0.0] * 100


@pytest.mark.parametrize("limit", [3, 60, 500])
def test_no_minute_exceeds_the_request_limit_and_little_of_it_is_wasted(limit):
    clock, number = Clock(), 3 * limit
    times = departures(limited(clock, requests=limit), clock, [1] * number)
    assert times == sorted(times)
    assert 0.9 * limit <= most_in_a_minute(times, [1] * number) <= limit


@given(st.lists(st.integers(1, 900), min_size=20, max_size=60))
def test_no_minute_exceeds_the_token_limit_by_more_than_one_request(costs):
    clock = Clock()
    times = departures(limited(clock, tokens=6000), clock, costs)
    assert most_in_a_minute(times, costs) <= 6000 + max(costs)


def test_the_stricter_limit_counts():
    clock = Clock()
    times = departures(limited(clock, requests=6000, tokens=600), clock, [100] * 4)
    assert times[-1] > 25


def test_a_burst_is_one_second_of_the_limit():
    clock = Clock()
    times = departures(limited(clock, requests=600), clock, [1] * 12)
    assert [t == 0 for t in times] == [True] * 10 + [False] * 2


def test_workers_together_keep_the_limit_of_the_cluster():
    clock, times = Clock(), []
    for _ in range(4):  # each on the same stretch of time
        clock.now = 1000.0
        times += departures(limited(clock, requests=120, share=1 / 4), clock, [1] * 60)
    assert most_in_a_minute(times, [1] * len(times)) <= 120
    assert max(times) > 100


def test_what_an_answer_cost_replaces_what_was_reserved():
    clock = Clock()
    bucket = TokenBucket(600, clock)
    bucket.take(310)
    debt = bucket.wait(10)
    bucket.take(-300)
    assert debt == pytest.approx(300 / (590 / 60) + bucket.wait(10))


def test_a_correction_shortens_a_wait_that_has_begun():
    clock = Clock()
    limits = limited(clock, tokens=600)

    async def main() -> float:
        await limits.acquire(600)  # a minute's worth
        waiting = asyncio.create_task(limits.acquire(10))
        await asyncio.sleep(0)
        limits.correct(600, 5, 5)
        await waiting
        return clock() - 1000

    assert asyncio.run(main()) < 2


def test_estimates_learn_how_long_answers_are():
    limits = limited(Clock(), tokens=1e6)
    assert limits.estimate(400, 2048) == 100 + 2048
    limits.correct(2148, 100, 200)
    assert limits.estimate(400, 2048) == 100 + 200
    assert limits.estimate(400, 50) == 100 + 50
    limits.correct(300, 0, 0)  # a server without usage teaches nothing
    assert limits.estimate(400, 2048) == 300


def test_a_pause_holds_everything_and_the_longest_counts():
    clock = Clock()
    limits = limited(clock)
    limits.pause(5)
    limits.pause(2)
    assert all(t == pytest.approx(5) for t in departures(limits, clock, [1, 1, 1]))


# When to try again ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("7", 7), ("0.5", 0.5), (" 3 ", 3), ("-1", 0), ("soon", None), ("", None)],
)
def test_retry_after_in_seconds(value, seconds):
    assert retry_after({"Retry-After": value}) == seconds


def test_retry_after_as_a_date():
    now = datetime(2025, 3, 4, 5, 6, 7, tzinfo=UTC)
    for ahead, seconds in ((90, 90), (-90, 0)):
        date = email.utils.format_datetime(now + timedelta(seconds=ahead), usegmt=True)
        assert retry_after({"Retry-After": date}, now) == seconds
    assert retry_after({}) is None


def test_backoff_doubles_up_to_a_bound_and_is_spread():
    for tries in range(1, 12):
        longest = min(retry.LONGEST_BACKOFF_SECONDS, retry.BACKOFF_SECONDS * 2 ** (tries - 1))
        waits = {backoff(tries) for _ in range(50)}
        assert len(waits) > 1
        assert longest / 2 <= min(waits) <= max(waits) <= longest


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "context_length_exceeded", RefusedError),
        (413, None, RefusedError),
        (422, None, RefusedError),
        (408, None, TransientError),
        (429, None, TransientError),
        (500, None, TransientError),
        (503, None, TransientError),
        (599, None, TransientError),
        (402, None, EngineError),
        (308, None, EngineError),
        (429, "insufficient_quota", EngineError),
        (400, "unsupported_value", EngineError),
    ],
)
def test_what_a_status_means(status, code, kind):
    payload = f'{{"error": {{"message": "because", "code": {f"{code!r}" if code else None}}}}}'
    payload = payload.replace("'", '"').replace("None", "null").encode()
    error = failure(status, {}, payload, "http://server/v1")
    assert type(error) is kind
    assert str(status) in str(error) and "because" in str(error)


def test_only_a_rate_limit_holds_the_others():
    assert failure(429, {"Retry-After": "2"}, b"", "").limited
    assert not failure(503, {"Retry-After": "2"}, b"", "").limited
    assert failure(503, {"Retry-After": "2"}, b"", "").retry_after == 2


def test_a_wait_of_hours_ends_the_run():
    error = failure(429, {"Retry-After": "7200"}, b"", "http://server/v1")
    assert isinstance(error, EngineError) and "7200 s" in str(error)


@pytest.mark.parametrize(
    ("payload", "message", "code"),
    [
        (b'{"error": {"message": "too\\nlong", "code": "c"}}', "too long", "c"),
        (b'{"error": {"message": "m", "code": 400}}', "m", ""),
        (b'{"error": "plain"}', "plain", ""),
        (b'{"object": "error", "message": "old vLLM"}', "old vLLM", ""),
        (b"<html>Bad Gateway</html>", "<html>Bad Gateway</html>", ""),
        (b"\xff" + b"x" * 1000, "\ufffd" + "x" * 299, ""),
        (b"", "", ""),
    ],
)
def test_error_bodies_of_several_servers(payload, message, code):
    assert read_error(payload) == (message, code)
