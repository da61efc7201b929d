"""The route ``/v1/embeddings`` of OpenAI's API: what is sent for several texts, and what must come back."""

import base64
import binascii
import json
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np

from beirnl.errors import EngineError
from beirnl.llm.http.access import model_name
from beirnl.llm.http.client import Client
from beirnl.llm.http.retry import RefusedError, TransientError
from beirnl.retrieval.answers import check_finite
from beirnl.specs import EncoderSpec
from beirnl.wording import counted

ROUTE = "/v1/embeddings"


class Vectors(NamedTuple):
    """What a request for texts came to.

    Attributes:
        vectors: float32 [texts, dimension], as the server gave them; empty where there is an error.
        prompt_tokens: tokens that the server counted.
        completion_tokens: none.
        error: why there are no vectors.
        refused: the server refuses these texts, and would again: one of them may be at fault.
    """

    vectors: np.ndarray
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str = ""
    refused: bool = False


class EmbeddingClient:
    """One session with one server, in one event loop; for :class:`beirnl.llm.http.calls.Calls`.

    Args:
        spec: model, server and number of dimensions.
        share: of the server's rate limits.

    Raises:
        PrerequisiteError: the key is not in the environment.
    """

    def __init__(self, spec: EncoderSpec, share: float) -> None:
        llm = spec.api
        assert llm is not None
        self._client, self._model = Client(llm, share), model_name(llm)
        self._dimensions = spec.dimensions
        self._where = f"{self._model} at {spec.server.base_url}"
        self._format = "base64"

    async def open(self) -> None:
        """Connect; see :meth:`beirnl.llm.http.client.Client.open`."""
        await self._client.open()

    async def close(self) -> None:
        """End the session and its connections."""
        await self._client.close()

    async def answer(self, request: Sequence[str]) -> Vectors:
        """The vectors of texts, after as many tries as it takes; an ``error`` if all of them failed.

        Raises:
            EngineError: no request can be answered, or the server answers with something else.
        """
        coded = self._format
        body: dict[str, Any] = {"model": self._model, "input": list(request), "encoding_format": coded}
        if self._dimensions:
            body["dimensions"] = self._dimensions
        try:
            return await self._client.ask(ROUTE, body, partial(self._read, request))
        except RefusedError as refused:
            if coded == "base64" and "encoding_format" in str(refused):
                self._format = "float"  # a server that knows no other
                return await self.answer(request)
            return Vectors(np.empty((0, 0), np.float32), error=str(refused), refused=True)
        except TransientError as failed:
            return Vectors(np.empty((0, 0), np.float32), error=str(failed))

    def _read(self, request: Sequence[str], payload: bytes) -> Vectors:
        return read_vectors(payload, request, self._dimensions, self._where)


class _Embedding(msgspec.Struct):
    embedding: str | list[float | None]
    index: int


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    total_tokens: int | None = None


class _Answer(msgspec.Struct):
    data: list[_Embedding]
    usage: _Usage | None = None


def read_vectors(
    payload: bytes, texts: Sequence[str], dimensions: int | None = None, model: str = ""
) -> Vectors:
    """The vectors in the body of a response with status 200, in the order of their texts.

    Args:
        payload: the body; vectors as lists of numbers, or as base64 of little-endian float32.
        texts: what was asked.
        dimensions: how many numbers a vector must have; None: as many as the first.
        model: its name, for errors.

    Raises:
        ValueError: not JSON, or not of this form: it may have been cut on its way.
        EngineError: a whole answer with another number of vectors or of numbers, or with NaN.
    """
    body = _parsed(payload)
    if sorted(item.index for item in body.data) != list(range(len(texts))):
        raise EngineError(
            f"the server gave {counted(len(body.data), 'vector')} for {counted(len(texts), 'text')}",
            where=model,
            remedy=_OTHER,
        )
    rows = [_numbers(item.embedding) for item in sorted(body.data, key=lambda item: item.index)]
    expected = dimensions or len(rows[0])
    for row in rows:
        if len(row) != expected or not expected:
            raise EngineError(
                f"the server gave a vector of {counted(len(row), 'number')} where {expected} were expected",
                where=model,
                remedy="leave `dimensions` out, or set it to a number that the model knows",
            )
    vectors = np.stack(rows)
    check_finite(np.isfinite(vectors).all(axis=1), texts, model, _OTHER)
    usage = body.usage or _Usage()
    return Vectors(vectors, usage.prompt_tokens or usage.total_tokens or 0)


def _parsed(payload: bytes) -> _Answer:
    """The body; numbers that are none, which JSON does not have, as Python and some servers write them."""
    try:
        return msgspec.json.decode(payload, type=_Answer)
    except msgspec.DecodeError:
        if b"NaN" not in payload and b"Infinity" not in payload:
            raise
        return msgspec.convert(json.loads(payload), _Answer)


_OTHER = "see to the server, or use another; what was answered before stays"


def _numbers(embedding: str | list[float | None]) -> np.ndarray:
    if isinstance(embedding, list):
        return np.array(embedding, np.float32)  # None is NaN
    return decode(embedding)


def encode(vector: np.ndarray) -> str:
    """A vector as base64 of little-endian float32: what the API sends, and the journal keeps."""
    return base64.b64encode(vector.astype("<f4", copy=False).tobytes()).decode("ascii")


def decode(text: str) -> np.ndarray:
    """The vector, float32 [dimension]; ValueError where it is none."""
    try:
        return np.frombuffer(base64.b64decode(text, validate=True), "<f4").astype(np.float32, copy=False)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from error
