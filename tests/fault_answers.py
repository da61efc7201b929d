"""What the fault server's model answers, in the shapes of OpenAI's API."""

import base64
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

Body = dict[str, Any]


class ApiError(Exception):
    """A request that OpenAI's API refuses."""

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = {
            "error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}
        }


class Answer(NamedTuple):
    """What a model says, and why it stopped."""

    text: str
    finish_reason: str = "stop"


def parse(raw: bytes) -> Body:
    try:
        body: Body = json.loads(raw)
        prompt_of(body)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ApiError(400, f"not a request: {error!r}") from None
    return body


def prompt_of(body: Mapping[str, Any]) -> str:
    """The text that a request is counted by: its last user message, its prompt or its input."""
    if "messages" in body:
        content = [m["content"] for m in body["messages"] if m["role"] == "user"][-1]
        return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    return "\n".join(_texts(body))


def _texts(body: Mapping[str, Any]) -> list[str]:
    texts = body["prompt"] if "prompt" in body else body["input"]
    return [texts] if isinstance(texts, str) else list(texts)


def _vector(text: str, dimensions: int) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    vector = np.random.default_rng(seed).standard_normal(dimensions).astype("<f4")
    return np.asarray(vector / np.linalg.norm(vector))


class Model:
    """Answers generation and embedding requests; a response is a function of its request alone.

    Args:
        answer: prompt to text or :class:`Answer`.
        names: models that exist; another one is answered with 404.
    """

    def __init__(self, answer: Callable[[str], str | Answer], names: Sequence[str]) -> None:
        self.answer, self.names = answer, names

    def complete(self, path: str, body: Mapping[str, Any]) -> Body:
        """The response body."""
        if body.get("model") not in self.names:
            raise ApiError(404, f"The model {body.get('model')!r} does not exist", "model_not_found")
        if body.get("stream"):
            raise ApiError(400, "this server does not stream")
        words = len(prompt_of(body).split())
        common = {"model": body["model"], "usage": {"prompt_tokens": words, "total_tokens": words}}
        if path == "/v1/embeddings":
            vectors = [_vector(text, body.get("dimensions", 8)) for text in _texts(body)]
            coded = body.get("encoding_format") == "base64"
            values = [base64.b64encode(v.tobytes()).decode() if coded else v.tolist() for v in vectors]
            data = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(values)]
            return common | {"object": "list", "data": data}
        chat = path == "/v1/chat/completions"
        texts = [prompt_of(body)] if chat else _texts(body)
        answers = [said for text in texts for said in [self._say(text)] * (body.get("n") or 1)]
        spent = sum(len(said.text.split()) for said in answers)
        common["usage"] |= {"completion_tokens": spent, "total_tokens": words + spent}
        choices = [_choice(i, said, chat) for i, said in enumerate(answers)]
        kind = "chat.completion" if chat else "text_completion"
        number = hashlib.sha256(prompt_of(body).encode()).hexdigest()[:12]
        return common | {
            "id": f"cmpl-{number}",
            "object": kind,
            "created": int(time.time()),
            "choices": choices,
        }

    def _say(self, text: str) -> Answer:
        said = self.answer(text)
        return Answer(said) if isinstance(said, str) else said


def _choice(index: int, said: Answer, chat: bool) -> Body:
    words = {"message": {"role": "assistant", "content": said.text}} if chat else {"text": said.text}
    return {"index": index, "finish_reason": said.finish_reason, "logprobs": None, **words}
