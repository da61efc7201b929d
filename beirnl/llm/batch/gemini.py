"""Adapter to the Gemini API's batch jobs, through Google's SDK (google-genai)."""

import json
from pathlib import Path
from typing import IO, Any

from beirnl.errors import PrerequisiteError
from beirnl.llm.batch.files import Result, one_line
from beirnl.llm.batch.provider import Look, ProviderErrors, Refusal, State
from beirnl.llm.http.access import api_key, key_variable, model_name
from beirnl.llm.protocol import Answer, FinishReason, Request
from beirnl.specs import LlmSpec, Server

_STATES: dict[str, State] = {
    "JOB_STATE_SUCCEEDED": "done",
    "JOB_STATE_PARTIALLY_SUCCEEDED": "done",
    "JOB_STATE_EXPIRED": "expired",
    "JOB_STATE_CANCELLED": "cancelled",
    "JOB_STATE_FAILED": "failed",
}
_FINISH: dict[str, FinishReason] = {"STOP": "stop", "MAX_TOKENS": "length"}
_ROLES = {"assistant": "model"}


class GeminiProvider:
    """Files and batches of the Gemini API; see :class:`beirnl.llm.batch.provider.Provider`.

    Args:
        spec: model and server. A ``base_url`` or ``api_key_env`` at its default means Google's endpoint and
            ``GEMINI_API_KEY``; another ``base_url`` is given without a version.

    Raises:
        PrerequisiteError: no SDK or no key.
    """

    def __init__(self, spec: LlmSpec) -> None:
        server, default = spec.server, Server()
        key = api_key(spec)
        try:
            from google import genai
            from google.genai import errors, types
        except ImportError as error:
            raise PrerequisiteError(
                f"the google-genai package cannot be imported ({error})",
                remedy="pip install 'beirnl[gemini]'",
            ) from error
        url = None if server.base_url == default.base_url else server.base_url
        self.server = url or "https://generativelanguage.googleapis.com"
        self._model = model_name(spec)
        lost = (ValueError, KeyError)  # of a reply cut short
        self._errors = ProviderErrors(self.server, key_variable(spec), errors.APIError, lost, _refusal)
        self._once = types.HttpOptions(retry_options=types.HttpRetryOptions(attempts=1))
        self._client: Any = genai.Client(
            vertexai=False,
            api_key=key,
            http_options=types.HttpOptions(
                base_url=url,
                timeout=int(server.timeout * 1000),
                retry_options=types.HttpRetryOptions(attempts=server.retries + 1),
            ),
        )

    def check(self) -> None:
        """List one batch."""
        with self._errors():
            self._client.batches.list(config={"page_size": 1})

    def line(self, name: str, request: Request) -> bytes:
        """A key and a GenerateContentRequest."""
        return one_line({"key": name, "request": _body(request)})

    def upload(self, path: Path) -> str:
        """Upload an input file in resumable parts."""
        with self._errors():
            config = {"display_name": path.stem, "mime_type": "jsonl"}
            return str(self._client.files.upload(file=path, config=config).name)

    def create(self, file: str, endpoint: str, token: str) -> str:
        """Order a job; once, since a call whose reply was lost may have been carried out."""
        with self._errors():
            config = {"display_name": token, "http_options": self._once}
            return str(self._client.batches.create(model=self._model, src=file, config=config).name)

    def find(self, token: str, file: str) -> str | None:
        """Look through all pages for the display name."""
        with self._errors():
            for batch in self._client.batches.list(config={"page_size": 100}):
                if batch.display_name == token:
                    return str(batch.name)
        return None

    def look(self, job: str) -> Look:
        """The state of a job, with its file of responses; the SDK does not pass on why a job failed."""
        with self._errors():
            batch = self._client.batches.get(name=job)
        file = batch.dest and batch.dest.file_name
        reason = batch.error.message if batch.error else "the SDK gives no reason; see it in AI Studio"
        return Look(_STATES.get(batch.state.name, "running"), (file,) if file else (), reason)

    def download(self, file: str, target: IO[bytes]) -> None:
        """Stream a file of results into ``target``."""
        with self._errors():
            self._client.files.download(file=file, destination=target)

    def read(self, line: bytes) -> Result:
        """A key, and a GenerateContentResponse or an error."""
        entry = json.loads(line)
        if not isinstance(entry, dict) or not isinstance(entry.get("key"), str):
            raise ValueError("no key")
        response = entry.get("response")
        if isinstance(response, dict):
            return entry["key"], _answer(response)
        error = entry.get("error") or entry.get("status") or "no response and no reason"
        return entry["key"], str(error.get("message", error) if isinstance(error, dict) else error)


def _refusal(error: Any) -> Refusal:
    """What the API says; a wrong key is refused with 400."""
    wrong_key = "API_KEY_INVALID" in str(error.details)
    return Refusal(401 if wrong_key else error.code, str(error.message))


def _body(request: Request) -> dict[str, Any]:
    """A request as a GenerateContentRequest."""
    messages = request.messages or (("user", request.prompt or ""),)
    contents = [
        {"role": _ROLES.get(role, role), "parts": [{"text": content}]}
        for role, content in messages
        if role != "system"
    ]
    config: dict[str, Any] = {"temperature": request.temperature, "maxOutputTokens": request.max_tokens}
    if request.stop:
        config["stopSequences"] = list(request.stop)
    if request.json_fields:
        properties = {field: {"type": "STRING"} for field in request.json_fields}
        config["responseMimeType"] = "application/json"
        config["responseSchema"] = {
            "type": "OBJECT",
            "properties": properties,
            "required": list(properties),
            "propertyOrdering": list(properties),
        }
    if request.json_schema:
        config["responseMimeType"] = "application/json"
        config["responseJsonSchema"] = json.loads(request.json_schema)
    if request.choices:
        config["responseMimeType"] = "text/x.enum"
        config["responseSchema"] = {"type": "STRING", "enum": list(request.choices)}
    body: dict[str, Any] = {"contents": contents, "generationConfig": config}
    system = [{"text": content} for role, content in messages if role == "system"]
    return body | ({"systemInstruction": {"parts": system}} if system else {})


def _answer(response: dict[str, Any]) -> Answer | str:
    """A GenerateContentResponse as an answer; a safety block is one without text."""
    usage = response.get("usageMetadata") or {}
    prompt = int(usage.get("promptTokenCount") or 0)
    completion = sum(int(usage.get(name) or 0) for name in ("candidatesTokenCount", "thoughtsTokenCount"))
    candidates = response.get("candidates") or []
    if not candidates:
        block = (response.get("promptFeedback") or {}).get("blockReason")
        return Answer("", "error", prompt, completion, f"blocked: {block}") if block else "no candidates"
    parts = (candidates[0].get("content") or {}).get("parts") or []
    text = "".join(part.get("text", "") for part in parts if not part.get("thought"))
    ended = str(candidates[0].get("finishReason"))
    reason = _FINISH.get(ended)
    if reason is None:
        return Answer("", "error", prompt, completion, f"the server ended the answer: {ended}")
    return Answer(text, reason, prompt, completion)
