"""What a failed request means: for itself, for its row, or for the run; and when to try again."""

import random
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import msgspec

from beirnl.errors import EngineError

BACKOFF_SECONDS = 0.5
LONGEST_BACKOFF_SECONDS = 60.0
LONGEST_RETRY_AFTER_SECONDS = 900.0  # a server that asks for more (a daily quota) ends the run
_LONGEST_MESSAGE = 300

#: Statuses after which the same request may succeed.
TRANSIENT = frozenset({408, 409, 425, 429, *range(500, 600)})
#: Statuses that no row can change, and what to do.
FATAL: dict[int, str] = {
    402: "see to the account's credit",
    405: "check base_url: it is that of an OpenAI-compatible API, with its version, as in .../v1",
    **dict.fromkeys((301, 302, 303, 307, 308), "set base_url to where the server redirects"),
}
#: Error codes of OpenAI's API, with any status, that no row can change, and what to do.
FATAL_CODES: dict[str, str] = {
    "insufficient_quota": "see to the account's credit",
    "unsupported_parameter": "use decoding parameters that this model takes",
    "unsupported_value": "use decoding parameters that this model takes",
}


class TransientError(Exception):
    """A try that failed; another one may succeed.

    Args:
        cause: for the error of the row, if no try succeeds.
        retry_after: seconds that the server asks to wait, if it does.
        limited: a rate limit was met.
        unreachable: there was no connection to the server.
    """

    def __init__(
        self,
        cause: str,
        retry_after: float | None = None,
        *,
        limited: bool = False,
        unreachable: bool = False,
    ) -> None:
        super().__init__(cause)
        self.retry_after, self.limited, self.unreachable = retry_after, limited, unreachable


class RefusedError(Exception):
    """The server refuses this request, and would again; others may be answered."""


class LengthFieldError(RefusedError):
    """The model takes ``max_completion_tokens`` in place of ``max_tokens``."""


class _Error(msgspec.Struct):
    message: str = ""
    code: str | int | None = None


class _ErrorBody(msgspec.Struct):
    error: _Error | str | None = None
    message: str = ""


def backoff(tries: int) -> float:
    """Seconds to wait after so many failed tries: exponential, the upper half of it random (jitter)."""
    longest = min(LONGEST_BACKOFF_SECONDS, BACKOFF_SECONDS * 2.0 ** (tries - 1))
    return longest * random.uniform(0.5, 1)


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that a Retry-After header asks to wait: a number or an HTTP date (RFC 9110, section 10.2.3).

    Returns:
        None without the header, or where it cannot be read.
    """
    value = headers.get("Retry-After", "").strip()
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (aware - (now or datetime.now(UTC))).total_seconds())


def failure(status: int, headers: Mapping[str, str], payload: bytes, where: str) -> Exception:
    """What a response that is no answer means.

    Args:
        status, headers, payload: the response; keys, models and routes that do not exist (401, 403, 404) are
            the client's to explain.
        where: the URL, for errors.

    Returns:
        TransientError, RefusedError or, if no row can succeed, EngineError.
    """
    message, code = read_error(payload)
    phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "unknown status"
    cause = f"{status} {phrase}" + (f": {message}" if message else "")
    if code == "unsupported_parameter" and "max_completion_tokens" in message:
        return LengthFieldError(cause)
    remedy = FATAL_CODES.get(code) or FATAL.get(status)
    if remedy:
        target = headers.get("Location", "")
        to = f" to {target}" if target else ""
        return EngineError(f"the server refuses every request ({cause}{to})", where=where, remedy=remedy)
    if status not in TRANSIENT:
        return RefusedError(cause)
    seconds = retry_after(headers)
    if seconds is not None and seconds > LONGEST_RETRY_AFTER_SECONDS:
        return EngineError(
            f"the server asks to wait for {seconds:.0f} s ({cause})",
            where=where,
            remedy="run again then; what was answered stays",
        )
    return TransientError(cause, seconds, limited=status == HTTPStatus.TOO_MANY_REQUESTS)


def read_error(payload: bytes) -> tuple[str, str]:
    """Message and code of an error body, in OpenAI's form or in that of others; text as it is."""
    try:
        body = msgspec.json.decode(payload, type=_ErrorBody)
        error = body.error if isinstance(body.error, _Error) else _Error(body.error or body.message)
    except ValueError:
        error = _Error(payload.decode("utf-8", "replace"))
    message = " ".join(error.message.split())
    code = error.code if isinstance(error.code, str) else ""
    return message[:_LONGEST_MESSAGE], code
