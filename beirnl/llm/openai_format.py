"""OpenAI's request and response format, shared by the engines that speak it: servers, batch files, vLLM.

A request becomes a JSON body for one of two routes; a response becomes an :class:`Answer`. Nothing here
reaches a network.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from beirnl.llm.protocol import Answer, FinishReason, Request

#: Finish reasons of OpenAI, and the other names that compatible servers have for the same two.
FINISH_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "stop_sequence": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "length": "length",
    "max_tokens": "length",
}


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Token(msgspec.Struct):
    token: str
    logprob: float


class _Position(msgspec.Struct):
    top_logprobs: list[_Token] | None = None


class _Logprobs(msgspec.Struct):
    """Of a chat: ``content``; of a completion: ``top_logprobs``; both per token of the answer."""

    content: list[_Position] | None = None
    top_logprobs: list[dict[str, float] | None] | None = None


class _Choice(msgspec.Struct):
    message: _Message | None = None
    text: str | None = None
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


def endpoint(request: Request) -> str:
    """The route of a request, with the version, as a batch file names it."""
    return "/v1/completions" if request.messages is None else "/v1/chat/completions"


def json_schema(fields: Sequence[str]) -> dict[str, Any]:
    """The JSON Schema of one object with these text fields and no others."""
    return {
        "type": "object",
        "properties": {field: {"type": "string"} for field in fields},
        "required": list(fields),
        "additionalProperties": False,
    }


def schema_of(request: Request) -> dict[str, Any] | None:
    """The JSON Schema that the answer must follow, or None."""
    if request.json_schema:
        schema: dict[str, Any] = msgspec.json.decode(request.json_schema)
        return schema
    return json_schema(request.json_fields) if request.json_fields else None


def request_body(request: Request, model: str) -> dict[str, Any]:
    """The JSON body of a request. OpenAI's format has no way to ask for one of its ``choices``.

    Args:
        request: what is asked.
        model: the name by which the server knows the model.
    """
    body: dict[str, Any] = {"model": model}
    if request.messages is None:
        body["prompt"] = request.prompt
    else:
        body["messages"] = [{"role": role, "content": content} for role, content in request.messages]
    body["max_tokens"] = request.max_tokens
    body["temperature"] = request.temperature
    if request.stop:
        body["stop"] = list(request.stop)
    schema = schema_of(request)
    if schema:
        named = {"name": "answer", "strict": True, "schema": schema}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    if request.logprobs:
        chat = request.messages is not None
        body |= (
            {"logprobs": True, "top_logprobs": request.logprobs} if chat else {"logprobs": request.logprobs}
        )
    return body


def read_answer(payload: bytes | dict[str, Any]) -> Answer:
    """The answer in the body of a response with status 200.

    A refusal in a field of its own becomes the text, for the checks to see; an answer that a content filter
    or the server ended is an ``error`` with that reason. Tokens that are not reported count 0.

    Args:
        payload: the body, as bytes or already parsed.

    Raises:
        ValueError: not JSON, or not a completion with a choice.
    """
    parsed = msgspec.json.decode(payload) if isinstance(payload, bytes) else payload
    body = msgspec.convert(parsed, _Completion)
    if not body.choices:
        raise ValueError("the response has no choices")
    choice = body.choices[0]
    text = choice.text
    if text is None:
        if choice.message is None:
            raise ValueError("the response has neither a message nor a text")
        text = choice.message.content if choice.message.content is not None else choice.message.refusal
    usage = body.usage or _Usage()
    tokens = (usage.prompt_tokens or 0, usage.completion_tokens or 0)
    reason = FINISH_REASONS.get(choice.finish_reason or "")
    if reason is None:
        return Answer("", "error", *tokens, f"the server ended the answer: {choice.finish_reason}")
    return Answer(text or "", reason, *tokens, logprobs=_first_logprobs(choice.logprobs))


def _first_logprobs(told: _Logprobs | None) -> tuple[tuple[str, float], ...]:
    """The likeliest first tokens, as a chat or a completion tells them."""
    if told and told.content:
        return tuple((one.token, one.logprob) for one in told.content[0].top_logprobs or ())
    if told and told.top_logprobs:
        return tuple((told.top_logprobs[0] or {}).items())
    return ()
