"""What both adapters of batch jobs share: the meaning of a refusal, and what is said of jobs under way."""

import logging

import pytest

from beirnl.errors import EngineError
from beirnl.llm.batch.board import Board
from beirnl.llm.batch.book import Job
from beirnl.llm.batch.provider import (
    BusyError,
    Look,
    ProviderErrors,
    Refusal,
    RejectedError,
    UnreachableError,
)


class RefusedError(Exception):
    pass


def raised(refusal: Refusal | Exception) -> EngineError:
    errors = ProviderErrors("http://there", "MY_KEY", RefusedError, (KeyError,), lambda error: error.args[0])
    with pytest.raises(EngineError) as caught, errors():
        raise RefusedError(refusal) if isinstance(refusal, Refusal) else refusal
    return caught.value


@pytest.mark.parametrize(
    ("status", "code", "kind", "remedy"),
    [
        (401, "", EngineError, "check the key in MY_KEY"),
        (403, "", EngineError, "check the key in MY_KEY"),
        (429, "insufficient_quota", EngineError, "add credit"),
        (400, "billing_hard_limit_reached", EngineError, "add credit"),
        (429, "", BusyError, None),
        (408, "", UnreachableError, "run the same command again later"),
        (409, "", UnreachableError, "run the same command again later"),
        (503, "", UnreachableError, "run the same command again later"),
        (400, "", RejectedError, "check the model and base_url"),
        (404, "", RejectedError, "check the model and base_url"),
    ],
)
def test_a_refusal_has_one_meaning_for_all_providers(status, code, kind, remedy):
    error = raised(Refusal(status, "so it is", code))
    assert type(error) is kind and error.where == "http://there" and "so it is" in error.what
    assert (error.remedy is None) if remedy is None else error.remedy.startswith(remedy)


def test_a_reply_that_does_not_come_may_come_later():
    import httpx

    for lost in (KeyError("candidates"), httpx.ConnectError("no route")):
        error = raised(lost)
        assert type(error) is UnreachableError and "no whole answer" in error.what
    errors = ProviderErrors("there", "", RefusedError, (), lambda error: error)
    with pytest.raises(ZeroDivisionError), errors():
        _ = 1 / 0


def job(name: str, requests: int) -> Job:
    return Job(name, "there", "/v1", 0, tuple(str(n) for n in range(requests)), id=f"id-{name}")


def test_the_board_says_what_is_ordered_and_every_state_once(caplog):
    caplog.set_level(logging.INFO, "beirnl.batch")
    board = Board(1000)
    board.ordered(job("a", 3))
    for answered in (0, 0, 1, 2):  # told once a poll: the clock has not moved on
        board.looked(job("a", 3), Look("running", answered=answered))
    board.looked(job("b", 2000), Look("running"))
    for _ in range(2):
        board.looked(job("a", 3), Look("done", answered=3))
    assert caplog.messages == [
        "batch job id-a ordered: 3 requests",
        "batch jobs: 1 running, 3 requests; looked at every 1000 s (poll_seconds)",
        "batch job id-b of 2000 requests was ordered before",
        "batch jobs: 1 done, 1 running, 3 of 2,003 requests answered; looked at every 1000 s (poll_seconds)",
    ]


def test_the_board_counts_again_when_it_is_time(caplog):
    caplog.set_level(logging.INFO, "beirnl.batch")
    board = Board(0)
    for answered in (1, 1, 2):
        board.looked(job("a", 3), Look("running", answered=answered))
    assert [line.count("of 3 requests answered") for line in caplog.messages[1:]] == [1, 1]
