"""Adapter to OpenAI's batch API and to servers with the same endpoints, through the openai SDK."""

import json
from pathlib import Path
from typing import IO, Any

from beirnl.errors import PrerequisiteError
from beirnl.llm.batch.files import Result, read_line, request_line
from beirnl.llm.batch.provider import Look, ProviderErrors, Refusal, State
from beirnl.llm.http.access import api_key, key_variable, model_name
from beirnl.llm.protocol import Request
from beirnl.specs import LlmSpec

#: Name of our token in a batch's metadata.
METADATA = "beirnl"

_STATES: dict[str, State] = {
    "completed": "done",
    "expired": "expired",
    "cancelled": "cancelled",
    "failed": "failed",
}
_QUEUE_FULL = {"token_limit_exceeded", "request_limit_exceeded", "rate_limit_exceeded"}


class OpenAiProvider:
    """Files and batches endpoints; see :class:`beirnl.llm.batch.provider.Provider`.

    Args:
        spec: model and server.

    Raises:
        PrerequisiteError: no SDK or no key.
    """

    def __init__(self, spec: LlmSpec) -> None:
        server = spec.server
        key = api_key(spec) or "none"  # the SDK wants one, also for a server without keys
        try:
            import openai
        except ImportError as error:
            raise PrerequisiteError(
                f"the openai package cannot be imported ({error})", remedy="pip install openai"
            ) from error
        self.server = server.base_url
        self._model = model_name(spec)
        lost = (openai.APIError, json.JSONDecodeError)
        self._errors = ProviderErrors(self.server, key_variable(spec), openai.APIStatusError, lost, _refusal)
        self._client: Any = openai.OpenAI(
            base_url=server.base_url, api_key=key, timeout=server.timeout, max_retries=server.retries
        )

    def check(self) -> None:
        """List one batch."""
        with self._errors():
            self._client.batches.list(limit=1)

    def line(self, name: str, request: Request) -> bytes:
        """OpenAI's format."""
        return request_line(name, request, self._model)

    def upload(self, path: Path) -> str:
        """Upload an input file, streamed from the disk."""
        with self._errors(), path.open("rb") as file:
            return str(self._client.files.create(file=(path.name, file), purpose="batch").id)

    def create(self, file: str, endpoint: str, token: str) -> str:
        """Order a job; once, since a call whose reply was lost may have been carried out."""
        with self._errors():
            batch = self._client.with_options(max_retries=0).batches.create(
                input_file_id=file, endpoint=endpoint, completion_window="24h", metadata={METADATA: token}
            )
            return str(batch.id)

    def find(self, token: str, file: str) -> str | None:
        """Look through all pages; by input file too, since not every server keeps metadata."""
        with self._errors():
            for batch in self._client.batches.list(limit=100):
                if (batch.metadata or {}).get(METADATA) == token or batch.input_file_id == file:
                    return str(batch.id)
        return None

    def look(self, job: str) -> Look:
        """The state of a job, with its output file and its error file."""
        with self._errors():
            batch = self._client.batches.retrieve(job)
        state = _STATES.get(batch.status.lower(), "running")
        if state == "failed":
            return _failed(batch.errors)
        files = tuple(file for file in (batch.output_file_id, batch.error_file_id) if file)
        return Look(state, files, answered=batch.request_counts.completed if batch.request_counts else 0)

    def download(self, file: str, target: IO[bytes]) -> None:
        """Stream a file of results into ``target``."""
        with self._errors(), self._client.files.with_streaming_response.content(file) as response:
            for block in response.iter_bytes():
                target.write(block)

    def read(self, line: bytes) -> Result:
        """OpenAI's format."""
        return read_line(line)


def _refusal(error: Any) -> Refusal:
    return Refusal(error.status_code, error.message, error.code or "")


def _failed(errors: Any) -> Look:
    """A job that was refused as a whole, with the first reason."""
    first = next(iter((errors and errors.data) or ()), None)
    if first is None:
        return Look("failed", reason="no reason given")
    reason = first.message or first.code or "no reason given"
    if first.code in _QUEUE_FULL or "enqueued" in reason.lower():
        return Look("busy", reason=reason)
    return Look("failed", reason=f"line {first.line}: {reason}" if first.line else reason)
