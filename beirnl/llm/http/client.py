"""A client of one OpenAI-compatible server: sends requests, tries again, knows when it is hopeless."""

import asyncio
import time
import urllib.request
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, NoReturn, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec

from beirnl.config.fields import check_url
from beirnl.errors import ConfigError, EngineError
from beirnl.llm.http.access import api_key, key_variable, model_name
from beirnl.llm.http.limits import RateLimits
from beirnl.llm.http.retry import LengthFieldError, RefusedError, TransientError, backoff, failure, read_error
from beirnl.llm.openai_format import endpoint, read_answer, request_body
from beirnl.llm.protocol import Answer, Request
from beirnl.specs import LlmSpec
from beirnl.wording import counted

_CONNECT_SECONDS = 10.0
_KEEP_ALIVE_SECONDS = 4.0  # below the 5 s after which uvicorn, hence vLLM, drops an idle connection
_PROBES, _PROBE_SECONDS = 3, 10.0
_FEWEST_HOPELESS = 20
_NAMED_MODELS = 8
_REFUSED_KEY = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class _Counts(Protocol):
    """What came back, with the tokens that it cost."""

    @property
    def prompt_tokens(self) -> int: ...

    @property
    def completion_tokens(self) -> int: ...


Counted = TypeVar("Counted", bound=_Counts)


class Health:
    """Tells a server that fails now and then from one that is gone.

    Args:
        limit: so many rows in a row whose every try failed mean the latter.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._failed = max(limit, _FEWEST_HOPELESS), 0
        self._heard = float("-inf")

    def heard(self) -> None:
        """A response has begun, whatever it says."""
        self._heard = time.monotonic()

    def answered(self) -> None:
        """A row has its answer."""
        self._failed = 0

    def exhausted(self, error: TransientError, begun: float, where: str) -> None:
        """All tries of a row have failed; the first began at ``begun``.

        Raises:
            EngineError: there was no connection since then, or too many rows have ended like this.
        """
        self._failed += 1
        remedy = "run again when the server answers; what was answered stays"
        if error.unreachable and self._heard < begun:
            raise EngineError(f"the server is gone ({error})", where=where, remedy=remedy)
        if self._failed >= self._limit:
            raise EngineError(
                f"{counted(self._failed, 'row')} on end {'has' if self._failed == 1 else 'have'} failed "
                f"({error})",
                where=where,
                remedy=remedy,
            )


class Client:
    """One session with one server, in one event loop.

    Args:
        spec: model and server.
        share: of the server's rate limits.

    Raises:
        ConfigError: no model.
        PrerequisiteError: the key is not in the environment.
    """

    def __init__(self, spec: LlmSpec, share: float = 1.0) -> None:
        self._server, self._model = spec.server, model_name(spec)
        self._key, self._key_name = api_key(spec), key_variable(spec)
        self._base = spec.server.base_url.rstrip("/")
        self._health = Health(spec.server.in_flight)
        self._length_field = "max_tokens"
        self._limits = RateLimits(spec.server.requests_per_minute, spec.server.tokens_per_minute, share)
        self._session: Any = None

    async def open(self) -> None:
        """Connect, and see whether the server is there and lets the key in.

        Raises:
            ConfigError: ``base_url`` is not a URL.
            EngineError: the server cannot be reached, or refuses the key.
        """
        import aiohttp

        try:
            url = urlsplit(check_url(self._base))
        except ValueError as error:
            raise ConfigError(f"base_url {error}") from error
        bypassed = urllib.request.proxy_bypass(url.hostname or "")
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_SECONDS),
            timeout=aiohttp.ClientTimeout(total=self._server.timeout, sock_connect=_CONNECT_SECONDS),
            headers={
                "Content-Type": "application/json",
                **({"Authorization": f"Bearer {self._key}"} if self._key else {}),
            },
            proxy=None if bypassed else urllib.request.getproxies().get(url.scheme),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        await self._probe()

    async def close(self) -> None:
        """End the session and its connections."""
        if self._session:
            await self._session.close()

    async def answer(self, request: Request) -> Answer:
        """The answer to a request, after as many tries as it takes; an ``error`` if all of them failed.

        Raises:
            EngineError: no request can be answered.
        """
        body = self._body(request)
        try:
            return await self.ask(endpoint(request), body, read_answer, request.max_tokens)
        except RefusedError as refused:
            if isinstance(refused, LengthFieldError) and "max_tokens" in body:
                self._length_field = "max_completion_tokens"
                return await self.answer(request)
            return Answer("", "error", error=str(refused))
        except TransientError as failed:
            return Answer("", "error", error=f"{failed}, after {self._server.retries + 1} tries")

    async def ask(
        self, route: str, body: Mapping[str, Any], read: Callable[[bytes], Counted], max_tokens: int = 0
    ) -> Counted:
        """What a response says, after as many tries as it takes.

        Args:
            route: with the API's version, as ``/v1/embeddings``.
            body: of the request, for JSON.
            read: makes the result of a body with status 200; ValueError where the body is not whole.
            max_tokens: most tokens that the answer can have, for the rate limits.

        Raises:
            RefusedError: the server refuses this request, and would again.
            TransientError: every try has failed.
            EngineError: no request can be answered.
        """
        begun, payload = time.monotonic(), msgspec.json.encode(body)
        for tries in range(1, self._server.retries + 2):
            try:
                answer = await self._try(route, payload, read, max_tokens)
            except TransientError as failed:
                last = failed
            else:
                self._health.answered()
                return answer
            if tries <= self._server.retries:
                await self._pause(last, tries)
        self._health.exhausted(last, begun, self._base)
        raise last

    def _body(self, request: Request) -> dict[str, Any]:
        body = request_body(request, self._model)
        if self._length_field != "max_tokens" and request.messages is not None:
            body[self._length_field] = body.pop("max_tokens")
        return body

    async def _pause(self, failed: TransientError, tries: int) -> None:
        """Wait before the next try; after a rate limit, let all requests wait."""
        seconds = backoff(tries)
        if failed.retry_after is not None:  # a little more than asked, not all at the same moment
            seconds = failed.retry_after + backoff(1)
        if failed.limited:
            self._limits.pause(seconds if failed.retry_after is None else failed.retry_after)
        await asyncio.sleep(seconds)

    async def _try(
        self, route: str, payload: bytes, read: Callable[[bytes], Counted], max_tokens: int
    ) -> Counted:
        """One try at a request.

        Raises:
            TransientError, RefusedError, EngineError: see :mod:`beirnl.llm.http.retry`.
        """
        reserved = self._limits.estimate(len(payload), max_tokens)
        await self._limits.acquire(reserved)
        status, headers, content = await self._send("POST", self._url(route), payload)
        if status != HTTPStatus.OK:
            await self._raise_failure(status, headers, content)
        try:
            answer = read(content)
        except ValueError as error:
            raise TransientError(f"the response cannot be read ({error})") from error
        self._limits.correct(reserved, answer.prompt_tokens, answer.completion_tokens)
        return answer

    async def _send(self, method: str, url: str, payload: bytes | None = None) -> tuple[int, Mapping, bytes]:
        """Status, headers and body of a response; the key is blotted out, should the server repeat it."""
        import aiohttp

        try:
            async with self._session.request(method, url, data=payload, allow_redirects=False) as response:
                self._health.heard()
                content = await response.read()
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise TransientError(f"no connection ({_reason(error)})", unreachable=True) from error
        except TimeoutError as error:
            raise TransientError(f"no answer within {self._server.timeout:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise TransientError(f"the connection broke ({_reason(error)})") from error
        if self._key and response.status != HTTPStatus.OK:
            content = content.replace(self._key.encode(), b"***")
        return response.status, response.headers, content

    async def _raise_failure(self, status: int, headers: Mapping[str, str], content: bytes) -> NoReturn:
        message, code = read_error(content)
        if status in _REFUSED_KEY:
            raise self._refused_key(status, message)
        if code == "model_not_found" or status == HTTPStatus.NOT_FOUND:
            raise await self._unknown_model(message)
        raise failure(status, headers, content, self._base)

    def _refused_key(self, status: int, message: str) -> EngineError:
        name = self._key_name
        remedy = f"check the key in {name}" if name else "name the variable with its key in api_key_env"
        return EngineError(
            f"the server refuses the key ({status}: {message})", where=self._base, remedy=remedy
        )

    async def _unknown_model(self, message: str) -> EngineError:
        names = await self._models()
        if not names:
            remedy = "check `model`, and base_url: it ends in the API's version, as in .../v1"
            return EngineError(
                f"no model {self._model!r} at this address ({message})", where=self._base, remedy=remedy
            )
        listed = ", ".join(names[:_NAMED_MODELS]) + (", ..." if len(names) > _NAMED_MODELS else "")
        return EngineError(
            f"the server has no model {self._model!r}", where=self._base, remedy=f"it lists: {listed}"
        )

    async def _models(self) -> list[str]:
        """Names of the models that the server lists; none if it does not say."""
        try:
            status, _, content = await self._send("GET", self._url("/v1/models"))
            return [model["id"] for model in msgspec.json.decode(content)["data"]] if status == 200 else []
        except (TransientError, ValueError, KeyError, TypeError):
            return []

    async def _probe(self) -> None:
        """Ask for the models once; any response but a refused key will do."""
        for tries in range(1, _PROBES + 1):
            try:
                async with asyncio.timeout(_PROBE_SECONDS):
                    status, _, content = await self._send("GET", self._url("/v1/models"))
                break
            except TimeoutError:
                return  # connected, and busy
            except TransientError as error:
                if not error.unreachable:
                    return  # the requests will have their tries
                if tries == _PROBES:
                    raise EngineError(
                        f"the server cannot be reached: {error}",
                        where=self._base,
                        remedy="start it, or correct base_url",
                    ) from error
                await asyncio.sleep(backoff(tries))
        message, _ = read_error(content)
        # A key may be good for answers and not for the list. Gemini refuses a key with 400.
        refused = status in _REFUSED_KEY and "scope" not in message
        if refused or (status == HTTPStatus.BAD_REQUEST and "api key" in message.lower()):
            raise self._refused_key(status, message)

    def _url(self, route: str) -> str:
        return self._base + route.removeprefix("/v1")


def _reason(error: BaseException) -> str:
    """The operating system's reason for an error, or its name."""
    inner = getattr(error, "os_error", None) or error
    return (isinstance(inner, OSError) and inner.strerror) or str(inner) or type(error).__name__
