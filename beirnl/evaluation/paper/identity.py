"""Which dataset and which system of the registry a record is about, whatever an experiment calls them."""

from collections.abc import Iterable

from beirnl import registry
from beirnl.evaluation.records import Record

BM25 = "BM25"


def original(dataset: str) -> str:
    """The registry name of the set that a dataset is, or was translated from; without an entry its own."""
    entry = registry.dataset(dataset)
    return entry.original if entry else dataset


def model_name(name: str) -> str:
    """The registry name of a model; what was written if the registry has none."""
    entry = registry.find_model(name)
    return entry.name if entry else name


def systems(records: Iterable[Record]) -> dict[str, str]:
    """What each system of a report is: ``BM25``, its model, or ``FIRST+MODEL``; a fusion has its own name.

    Args:
        records: of one report, in which a system's name stands for one thing.
    """
    by_name = {record.system: record for record in records}
    return {name: _system(record, by_name) for name, record in by_name.items()}


def _system(record: Record, by_name: dict[str, Record], depth: int = 0) -> str:
    stated = record.conditions
    if stated.search == "bm25":
        return BM25
    if stated.model is None:
        return record.system
    first = by_name.get(str(getattr(stated, "first", None)))
    if first is None or first is record or depth > len(by_name):
        return model_name(stated.model)
    return f"{_system(first, by_name, depth + 1)}+{model_name(stated.model)}"


def written_system(name: str) -> str:
    """A system as tables of published figures write it (``BM25 + bge-reranker-v2-m3``), in the same form."""
    parts = [part.strip() for part in name.split("+")]
    return "+".join(BM25 if part.lower() == "bm25" else model_name(part) for part in parts)


def trained_on(system: str) -> tuple[str, ...]:
    """Originals of the datasets on which the model of a system was trained, as far as the registry says."""
    entry = registry.find_model(system.rpartition("+")[2])
    return tuple(original(name) for name in entry.training) if entry else ()
