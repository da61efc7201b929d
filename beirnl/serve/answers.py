"""What the service answers, as its OpenAPI document describes it."""

from pydantic import BaseModel, Field


class Hit(BaseModel):
    """A document that was found; ``relevance`` is its judgement, where there is one."""

    rank: int
    id: str
    score: float
    relevance: int | None = None


class Asked(BaseModel):
    """The query; ``id`` where it is one of the dataset."""

    text: str
    id: str | None = None
    relevant: int | None = Field(default=None, description="Documents judged relevant.")


class SearchAnswer(BaseModel):
    """What a system has found, best first."""

    dataset: str
    system: str
    query: Asked
    seconds: float
    hits: list[Hit]


class Source(BaseModel):
    """What was translated."""

    language: str
    title: str
    text: str


class Document(BaseModel):
    """A document, and where it was translated its source and the verdict of the checks."""

    id: str
    language: str
    title: str
    text: str
    status: str = ""
    source: Source | None = None


class DocumentsAnswer(BaseModel):
    """Documents in the order in which they were asked for."""

    dataset: str
    documents: list[Document]


class JudgedQuery(BaseModel):
    """A query of the dataset; ``values`` of the measure by system, in the order of ``systems``."""

    id: str
    text: str
    values: list[float | None]


class QueriesAnswer(BaseModel):
    """Some of the judged queries."""

    dataset: str
    measure: str
    systems: list[str]
    total: int
    queries: list[JudgedQuery]


class System(BaseModel):
    """A system; ``searchable`` is false for a run that was made elsewhere."""

    name: str
    kind: str
    depth: int
    searchable: bool


class Dataset(BaseModel):
    """A dataset (or a part of one) in a language."""

    name: str
    language: str
    translated_from: str | None = None
    documents: int
    queries: int
    systems: list[System]


class SystemsAnswer(BaseModel):
    """What can be asked."""

    experiment: str
    datasets: list[Dataset]


class State(BaseModel):
    """Whether the service works."""

    status: str
    waiting: list[str] = []


class Problem(BaseModel):
    """Why there is no answer."""

    title: str
    status: int
    detail: str
