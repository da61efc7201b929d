"""Systems query by query: what a page needs to show where one beat another, as JSON of bounded size."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

#: Characters of JSON in one page; what does not fit is left out, and the page says how much.
LIMIT = 3_000_000
_DIGITS = 4
#: Characters that could end a script element, or a line of a script.
_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


class Document(NamedTuple):
    """A document as far as it is shown."""

    id: str
    title: str
    text: str


class QueryView(NamedTuple):
    """One query, its values, and what was found.

    Attributes:
        id, text: of the query.
        values: per measure, per system.
        hits: per system the first documents, by their key in :attr:`View.documents`.
        labels: relevance of the judged documents that are shown.
        relevant: rank of relevant documents per system, 0 where the run does not have it; best label first.
        more: relevant documents that are not among these.
    """

    id: str
    text: str
    values: Sequence[Sequence[float]]
    hits: Sequence[Sequence[str]]
    labels: Mapping[str, int]
    relevant: Mapping[str, Sequence[int]]
    more: int


class View(NamedTuple):
    """A dataset in a language, query by query.

    Attributes:
        dataset, language: as records name them.
        measures, systems: in the order of the values.
        depths: hits per query in the run of each system.
        total: number of queries that were evaluated.
        pairs: per measure, for each two systems in order, queries that the first wins, loses and ties.
        queries: those on which systems differ most, first.
        documents: by key.
    """

    dataset: str
    language: str
    measures: Sequence[str]
    systems: Sequence[str]
    depths: Sequence[int]
    total: int
    pairs: Sequence[Sequence[tuple[int, int, int]]]
    queries: Sequence[QueryView]
    documents: Mapping[str, Document]


def embedded(views: Sequence[View], limit: int = LIMIT) -> str:
    """Views as JSON that may stand in a script element; queries that do not fit the limit are left out.

    Args:
        views: with at least two systems each are worth showing; others are passed over.
        limit: characters, shared equally.
    """
    shown = [view for view in views if len(view.systems) > 1 and view.queries]
    share = limit // max(1, len(shown))
    return in_script([_place(view, share) for view in shown])


def in_script(value: Any) -> str:
    """A value as JSON that may stand in a script element."""
    return _dump(value).translate(_ESCAPES)


def fitted(
    items: Iterable[T],
    keys: Callable[[T], Iterable[str]],
    made: Callable[[T, Mapping[str, int]], Any],
    texts: Mapping[str, Any],
    limit: int,
) -> tuple[list[Any], list[Any]]:
    """As many items as fit, from the first on, and the texts that they show, each once.

    Args:
        items: in order of interest.
        keys: of the texts that an item shows.
        made: an item as JSON, given the number of each text.
        texts: by key.
        limit: characters of JSON.
    """
    numbers: dict[str, int] = {}
    shown, kept = [], []
    for item in items:
        new = [key for key in dict.fromkeys(keys(item)) if key not in numbers]
        known = numbers | {key: len(numbers) + at for at, key in enumerate(new)}
        one, added = made(item, known), [texts[key] for key in new]
        limit -= len(_dump(one)) + len(_dump(added))
        if limit < 0:
            break
        numbers = known
        kept += added
        shown.append(one)
    return shown, kept


def _keys(query: QueryView) -> list[str]:
    return [*(key for hits in query.hits for key in hits), *query.relevant]


def _place(view: View, limit: int) -> dict[str, Any]:
    queries, documents = fitted(view.queries, _keys, _query, view.documents, limit)
    return {
        "name": f"{view.dataset} ({view.language})",
        "measures": view.measures,
        "systems": view.systems,
        "depths": view.depths,
        "total": view.total,
        "pairs": view.pairs,
        "queries": queries,
        "documents": documents,
    }


def _query(query: QueryView, numbers: Mapping[str, int]) -> dict[str, Any]:
    return {
        "id": query.id,
        "text": query.text,
        "values": [[round(value, _DIGITS) for value in row] for row in query.values],
        "hits": [[numbers[key] for key in hits] for hits in query.hits],
        "labels": {str(numbers[key]): label for key, label in query.labels.items()},
        "relevant": [[numbers[key], *ranks] for key, ranks in query.relevant.items()],
        "more": query.more,
    }


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
