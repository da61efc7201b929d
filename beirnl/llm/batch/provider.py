"""What the job loop needs of a provider of batch jobs, and the ways in which one can refuse."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, Protocol

from beirnl.errors import EngineError
from beirnl.llm.batch.files import Result
from beirnl.llm.protocol import Request


class UnreachableError(EngineError):
    """No answer, or none that tells whether the call was carried out. It may pass."""


class BusyError(EngineError):
    """The provider takes no more work for now; the call was not carried out."""


class RejectedError(EngineError):
    """The provider does not accept this call, and would not if it were repeated."""


State = Literal["running", "done", "expired", "cancelled", "failed", "busy"]


class Look(NamedTuple):
    """A job as its provider shows it.

    Attributes:
        state: ``busy`` is a job that was refused as a whole because too much is queued already; ``failed``
            one that was refused for another reason. Neither has cost anything.
        files: of results; what is expired or cancelled may have some.
        reason: why it failed.
        answered: requests that have an answer, where the provider counts them.
    """

    state: State
    files: tuple[str, ...] = ()
    reason: str = ""
    answered: int = 0


class Provider(Protocol):
    """An adapter to one provider. Every method may raise the three errors above, or EngineError.

    Attributes:
        server: where it is; jobs of one server are not looked for at another.
    """

    server: str

    def check(self) -> None:
        """Find out whether the provider can be reached and lets us in."""

    def line(self, name: str, request: Request) -> bytes:
        """A request as a line of an input file."""

    def upload(self, path: Path) -> str:
        """Upload an input file; returns its id. May be repeated."""

    def create(self, file: str, endpoint: str, token: str) -> str:
        """Order a job over an input file and return its id. Never repeats the call by itself.

        Args:
            file: id of the input file.
            endpoint: route of all its requests.
            token: what :meth:`find` will know the job by.
        """

    def find(self, token: str, file: str) -> str | None:
        """The id of the job that was ordered under ``token``, if one was."""

    def look(self, job: str) -> Look:
        """The state of a job."""

    def download(self, file: str, target: IO[bytes]) -> None:
        """Append a file of results to ``target``."""

    def read(self, line: bytes) -> Result:
        """A line of results; raises ValueError if it is none."""


class Refusal(NamedTuple):
    """What a provider says instead of carrying out a call.

    Attributes:
        status: of HTTP.
        code: the provider's own, or empty.
    """

    status: int
    message: str
    code: str = ""


_WRONG_KEY = {401, 403}
_NO_MONEY = {"insufficient_quota", "billing_hard_limit_reached"}
_PASSING = {408, 409}


class ProviderErrors(NamedTuple):
    """Puts what an SDK raises into our terms.

    Attributes:
        server: where the provider is.
        key: name of the variable with the key.
        refused: what the SDK raises for a response that refuses a call.
        lost: what it raises where no whole response came, besides the errors of its HTTP client.
        read: what such a refusal says.
    """

    server: str
    key: str
    refused: type[Exception]
    lost: tuple[type[Exception], ...]
    read: Callable[[Any], Refusal]

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """While a call is made.

        Raises:
            UnreachableError, BusyError, RejectedError, EngineError: see :class:`Provider`.
        """
        try:
            yield
        except self.refused as error:
            raise self._meaning(self.read(error)) from error
        except (*self.lost, *_transport_errors()) as error:
            raise UnreachableError(
                f"no whole answer from the server ({error.__cause__ or str(error) or type(error).__name__})",
                where=self.server,
                remedy="check base_url and the network, and run the same command again",
            ) from error

    def _meaning(self, said: Refusal) -> EngineError:
        where = self.server
        if said.status in _WRONG_KEY:
            what = f"the server refuses the key ({said.message})"
            return EngineError(what, where=where, remedy=f"check the key in {self.key or 'api_key_env'}")
        if said.code in _NO_MONEY:
            return EngineError(said.message, where=where, remedy="add credit to the account and run again")
        if said.status == 429:
            return BusyError(said.message, where=where)
        if said.status >= 500 or said.status in _PASSING:
            return UnreachableError(said.message, where=where, remedy="run the same command again later")
        return RejectedError(
            said.message, where=where, remedy="check the model and base_url, which needs a batches endpoint"
        )


def _transport_errors() -> tuple[type[Exception], ...]:
    """What an SDK lets through from its HTTP client, which is httpx or httpx2 depending on its version."""
    present = (name for name in ("httpx", "httpx2") if find_spec(name))
    return tuple(import_module(name).RequestError for name in present)
