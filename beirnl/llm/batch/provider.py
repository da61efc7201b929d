"""What the job loop needs of a provider of batch jobs, and the ways in which one can refuse."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Literal, NamedTuple, Protocol

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
    """

    state: State
    files: tuple[str, ...] = ()
    reason: str = ""


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


def transport_errors() -> tuple[type[Exception], ...]:
    """What an SDK lets through from its HTTP client, which is httpx or httpx2 depending on its version."""
    present = (name for name in ("httpx", "httpx2") if find_spec(name))
    return tuple(import_module(name).RequestError for name in present)
