"""What goes wrong in an object store, as one line that says what to do.

pyarrow tells it in words only: the name that the AWS SDK has for the error, or a status of HTTP.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from beirnl.errors import StoreError

_READS = 4  # of an object whose answer breaks off
_AGAIN = "run the same command again; finished units are kept"
_CREDENTIALS = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_PROFILE; GOOGLE_APPLICATION_CREDENTIALS) to "
    "credentials that may list, read, write and delete there"
)

#: What an error says, what it means, and what to do; the first that fits.
_MEANINGS: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), what, remedy)
    for pattern, what, remedy in (
        (
            r"no_?such_?bucket|bucket does not exist",
            "the bucket is not there",
            "create it, or correct workspace in the experiment file",
        ),
        (
            r"status 301|PermanentRedirect|AuthorizationHeaderMalformed|AWS_REGION",
            "the bucket lies in another region",
            "set AWS_REGION to that of the bucket",
        ),
        (
            r"expired|RequestTimeTooSkewed|too.?skewed",
            "the store takes these credentials, or this machine's clock, for out of date",
            "renew the credentials, or set the clock",
        ),
        (
            r"access_?denied|status 40[13]|forbidden|InvalidAccessKeyId|invalid_access_key|signature|"
            r"unauthor|unauthenticated|credential|missing_?authentication",
            "credentials are missing or refused",
            _CREDENTIALS,
        ),
        (
            r"slow_?down|throttl|service_?unavailable|internal_?failure|internal_?error|status (50\d|429)",
            "the store was busy or failed at every attempt",
            f"wait until it answers again, then {_AGAIN} (AWS_MAX_ATTEMPTS raises the number of attempts)",
        ),
        (
            r"network|curlCode|connect|resolve|timed? ?out|unreachable",
            "cannot be reached",
            f"check the network, AWS_ENDPOINT_URL and AWS_REGION, then {_AGAIN}",
        ),
    )
)


def meaning(error: Exception) -> tuple[str, str]:
    """What an error of an object store means, and what to do."""
    text = str(error)
    for pattern, what, remedy in _MEANINGS:
        if pattern.search(text):
            return what, remedy
    return f"the store reports: {text}", "see the traceback with --debug"


def again_if_cut(read: Callable[[], bytes]) -> bytes:
    """What is read; again, a few times, where an answer breaks off in its middle, which the AWS SDK does not
    retry."""
    for _ in range(_READS - 1):
        try:
            return read()
        except OSError as error:
            if error.errno or "response stream" not in str(error):
                raise
    return read()


@contextmanager
def remote_errors(where: object) -> Iterator[None]:
    """Turn errors of an object store into a :class:`StoreError`; those with a number stay what they are:
    that something is not there (FileNotFoundError), and what this machine's disk says."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        what, remedy = meaning(error)
        raise StoreError(what, where=where, remedy=remedy) from error
