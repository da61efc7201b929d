"""Routes and limits: requests are checked here, and whatever goes wrong is told as JSON, without a traceback.

The scheme of requests and answers is what ``/openapi.json`` says and ``/docs`` shows. Unknown parameters are
refused, so that a typing error is not taken for a default.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.exceptions import HTTPException

from beirnl.serve.answers import (
    DocumentsAnswer,
    Problem,
    QueriesAnswer,
    SearchAnswer,
    State,
    SystemsAnswer,
)
from beirnl.serve.problems import ProblemError
from beirnl.serve.service import Service
from beirnl.serve.settings import (
    LONGEST_QUERY,
    MOST_DOCUMENTS,
    MOST_HITS,
    MOST_QUERIES,
    Limits,
    Order,
)

logger = logging.getLogger(__name__)

_LONGEST_NAME = 500  # characters of an identifier or a name
#: Something visible, and no control characters but tab and line ends.
_TEXT = (
    r"^[^\x00-\x08\x0B\x0C\x0E-\x1F\x7F-\x9F]*[^\x00-\x20\x7F-\xA0][^\x00-\x08\x0B\x0C\x0E-\x1F\x7F-\x9F]*$"
)
_MESSAGES = {"string_pattern_mismatch": "must hold something visible and no control characters"}
#: Files of the page by path, each with its type.
_PAGE = {
    "/": ("index.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
    "/docs": ("docs.html", "text/html"),
    "/docs.js": ("docs.js", "text/javascript"),
}
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

Text = Annotated[str, Field(min_length=1, max_length=LONGEST_QUERY, pattern=_TEXT)]
Name = Annotated[str, Field(min_length=1, max_length=_LONGEST_NAME, pattern=_TEXT)]


class _Parameters(BaseModel):
    model_config = ConfigDict(extra="forbid")
    dataset: Name = Field(description="A dataset and a language, as nfcorpus/nl; /systems lists them.")


class _Search(_Parameters):
    system: Name = Field(description="A system of the experiment.")
    q: Text | None = Field(default=None, description="The question; give this or id.")
    id: Name | None = Field(default=None, description="A query of the dataset, in place of a question.")
    k: int = Field(
        default=10, ge=1, le=MOST_HITS, description="How many hits; not beyond the system's depth."
    )

    @model_validator(mode="after")
    def _one(self) -> "_Search":
        if (self.q is None) == (self.id is None):
            raise ValueError("give either q, a question, or id, a query of the dataset")
        return self


class _Documents(_Parameters):
    id: list[Name] = Field(min_length=1, max_length=MOST_DOCUMENTS, description="Documents; repeatable.")


class _Queries(_Parameters):
    offset: int = Field(default=0, ge=0, le=10_000_000)
    limit: int = Field(default=50, ge=1, le=MOST_QUERIES)
    order: Order = Field(
        default="difference", description="Those on which systems differ most first, or by id."
    )


class _Nothing(BaseModel):
    model_config = ConfigDict(extra="forbid")


def create_app(service: Service, limits: Limits | None = None) -> FastAPI:
    """The web application of a service.

    Args:
        service: gives the answers.
        limits: how much it takes.
    """
    limits = limits or Limits()
    app = FastAPI(title="beirnl", docs_url=None, redoc_url=None, description=__doc__)
    admission = _Admission(limits)
    _add_searching(app, service, admission)
    _add_states(app, service, admission)
    _add_page(app)
    app.add_exception_handler(ProblemError, _told)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _failed)
    return app


class _Admission:
    """Counts the requests that are worked on, and ends those that take too long."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._inside = limits, 0

    @asynccontextmanager
    async def admit(self) -> AsyncIterator[None]:
        """Let one in.

        Raises:
            ProblemError: there are too many (503), or this one takes too long (504).
        """
        if self._inside >= self._limits.concurrency:
            raise ProblemError(503, "too many requests at once; come back later", self._limits.retry_after)
        self._inside += 1
        try:
            async with asyncio.timeout(self._limits.timeout):
                yield
        except TimeoutError as error:
            raise ProblemError(504, f"no answer within {self._limits.timeout:g} s") from error
        finally:
            self._inside -= 1


def _documented(model: type[BaseModel], *statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route answers, for the OpenAPI document."""
    found: dict[int | str, dict[str, Any]] = {200: {"model": model, "description": "The answer."}}
    for status in statuses:
        found[status] = {"model": Problem, "description": HTTPStatus(status).phrase}
    return found


def _add_searching(app: FastAPI, service: Service, admission: _Admission) -> None:
    @app.get("/search", responses=_documented(SearchAnswer, 404, 422, 500, 503, 504))
    async def search(given: Annotated[_Search, Query()]) -> Response:
        """What a system finds for a question."""
        async with admission.admit():
            found = await service.search(given.dataset, given.system, given.k, given.q, given.id)
            return _json(found)

    @app.get("/documents", responses=_documented(DocumentsAnswer, 404, 422, 500, 503, 504))
    async def documents(given: Annotated[_Documents, Query()]) -> Response:
        """Documents, beside them what they were translated from."""
        async with admission.admit():
            return _json(await service.documents(given.dataset, given.id))

    @app.get("/queries", responses=_documented(QueriesAnswer, 404, 422, 500, 503, 504))
    async def queries(given: Annotated[_Queries, Query()]) -> Response:
        """Judged queries of a dataset, with the value of each system."""
        async with admission.admit():
            return _json(await service.queries(given.dataset, given.offset, given.limit, given.order))


def _add_states(app: FastAPI, service: Service, admission: _Admission) -> None:
    @app.get("/systems", responses=_documented(SystemsAnswer, 422, 500, 503, 504))
    async def systems(given: Annotated[_Nothing, Query()]) -> Response:
        """Datasets, languages and systems that can be asked."""
        async with admission.admit():
            return _json(await service.systems())

    @app.get("/health", responses=_documented(State, 422))
    async def health(given: Annotated[_Nothing, Query()]) -> Response:
        """Whether this process lives."""
        return _json(State(status="ok"))

    states = _documented(State, 422, 500)
    states[503] = {"model": State, "description": "Some models do not answer yet."}

    @app.get("/ready", responses=states)
    async def ready(given: Annotated[_Nothing, Query()]) -> Response:
        """Whether every index is open and every model answers; else 503, and which do not."""
        state = await service.ready()
        return _json(state, 503 if state.waiting else 200)


def _add_page(app: FastAPI) -> None:
    folder = files(__package__).joinpath("page")
    for path, (name, kind) in _PAGE.items():
        app.get(path, include_in_schema=False)(_giving(folder.joinpath(name).read_bytes(), kind))


def _giving(content: bytes, kind: str) -> Callable[[], Any]:
    async def give() -> Response:
        return Response(content, media_type=kind, headers={**_HEADERS, "Content-Security-Policy": _POLICY})

    return give


def _json(answer: BaseModel, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    body = answer.model_dump_json()
    return Response(body, status, {**_HEADERS, **(headers or {})}, "application/json")


def _problem(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    return _json(Problem(title=HTTPStatus(status).phrase, status=status, detail=detail), status, headers)


async def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)
    return _problem(error.status, error.detail, error.headers)


async def _malformed(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return _problem(422, "; ".join(map(_said, error.errors())))


def _said(error: dict[str, Any]) -> str:
    """What is wrong with a parameter, in words."""
    name = ".".join(str(part) for part in error["loc"][1:])
    message = _MESSAGES.get(error["type"], error["msg"].removeprefix("Value error, "))
    message = message[0].lower() + message[1:]
    return f"{name}: {message}" if name else message


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _problem(
        error.status_code, f"{request.method} {request.url.path}: {error.detail}", dict(error.headers or {})
    )


async def _failed(request: Request, error: Exception) -> Response:
    logger.error("%s failed", request.url.path, exc_info=error)
    return _problem(500, "something is wrong with the service; its log says what")
