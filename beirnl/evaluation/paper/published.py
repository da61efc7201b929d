"""Figures that others have published, and how those of a report differ from them, and why they may."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from beirnl import registry
from beirnl.evaluation.measures import parse
from beirnl.evaluation.paper.identity import original, written_system
from beirnl.evaluation.records import DatasetSize, Record
from beirnl.evaluation.tables import Cell, Column, Table
from beirnl.registry import Counts
from beirnl.registry.layouts import Source, heading, stands_for
from beirnl.wording import counted

#: Differences of published figures for one model and set that need no reason, as a fraction of 1.
AGREEMENT = 0.0035
_NONE = "–"
_REVISION = 12  # characters of a commit that are shown


class Key(NamedTuple):
    """What a figure is of: the dataset by its original's name, the system as :mod:`.identity` says."""

    system: str
    dataset: str
    language: str
    measure: str


class Figure(NamedTuple):
    """A published value (0 to 1), and the model's revision if it is told."""

    value: float
    revision: str = ""


def figures(files: Iterable[str]) -> dict[Key, Figure]:
    """Published figures by what they are of; of two for one thing that of the earlier file holds.

    Args:
        files: names of tables with the columns dataset, language, system, measure, value (0 to 1) and, where
            it is known, revision.
    """
    found: dict[Key, Figure] = {}
    for file in files:
        for row in registry.published(file):
            [measure] = parse([row["measure"]])
            dataset = original(row["dataset"])
            key = Key(written_system(row["system"]), dataset, row["language"], measure.name)
            found.setdefault(key, Figure(float(row["value"]), row.get("revision") or ""))
    return found


def key_of(record: Record, system: str) -> Key:
    """What a record is of, given what its system is."""
    return Key(system, original(record.dataset), record.language, record.measure)


def comparison(
    records: Sequence[Record],
    named: Mapping[str, str],
    sources: Sequence[Source],
    published: Mapping[str, Mapping[Key, Figure]],
    sizes: Sequence[DatasetSize] = (),
) -> Table:
    """One row per value that somebody has published too: ours, theirs, the differences, what differs.

    Args:
        records: values to compare.
        named: what each system is, see :func:`beirnl.evaluation.paper.identity.systems`.
        sources: to compare with; columns in this order.
        published: figures by the name of the source.
        sizes: of the datasets, where they are known: a value on another set is of another set.

    Returns:
        A table without rows if nothing of the report was published.
    """
    rows, differences = [], {source.name: list[float]() for source in sources}
    held = {(size.dataset, size.language): size for size in sizes}
    for record in records:
        key = key_of(record, _theirs(named[record.system]))
        theirs = {source: published[source.name].get(key) for source in sources}
        if record.value is None or not any(theirs.values()):
            continue
        cells, reasons = [], Counter[str]()
        for source, figure in theirs.items():
            cells += (
                [_points(figure.value), _change(record.value - figure.value)] if figure else [Cell(_NONE)] * 2
            )
            if figure:
                differences[source.name].append(record.value - figure.value)
                size = held.get((record.dataset, record.language))
                reasons.update(_told(record, named[record.system], source, figure, size))
        where = f"{heading(key.dataset)} ({record.language})"
        head = [Cell(record.system), Cell(where), Cell(record.measure), _points(record.value)]
        rows.append([*head, *cells, Cell("; ".join(reasons) or _NONE)])
    names = [name for source in sources for name in (source.title, f"Δ {source.title}")]
    columns = [Column(name) for name in ("system", "dataset", "measure", "ours", *names, "what differs")]
    return Table(
        "Comparison", "Compared with published figures", _caption(sources, differences), columns, rows
    )


def _theirs(system: str) -> str:
    """The system whose published figures stand beside those of ``system``."""
    return "+".join(map(stands_for, system.split("+")))


def _caption(sources: Sequence[Source], differences: Mapping[str, Sequence[float]]) -> str:
    counted = [
        f"{source.title}: {sum(abs(one) <= AGREEMENT for one in found)} of {len(found)} within "
        f"{100 * AGREEMENT:.2f}, largest {100 * max(map(abs, found)):.2f}"
        for source in sources
        if (found := differences[source.name])
    ]
    return "In points of 100. Δ: ours less theirs. " + "; ".join(counted) + "."


def _points(value: float) -> Cell:
    return Cell(f"{100 * value:.2f}", 100 * value)


def _change(value: float) -> Cell:
    return Cell(f"{100 * value:+.2f}", 100 * value)


def _told(
    record: Record, system: str, source: Source, figure: Figure, size: DatasetSize | None
) -> Iterator[str]:
    """What differs, with the source's name where it is not a matter of ours alone."""
    found = [*_other_set(record, size), *reasons(record, system, source, figure)]
    if not found and abs((record.value or 0.0) - figure.value) > AGREEMENT:
        found = ["no stated condition differs"]
    yield from (f"{source.title}: {reason}" for reason in found)


def _other_set(record: Record, size: DatasetSize | None) -> Iterator[str]:
    """That what was evaluated is not the set of the registry, whose numbers are known."""
    entry = registry.dataset(record.dataset)
    if size and entry and entry.counts:
        found = Counts(queries=size.queries, documents=size.documents, relevant=size.relevant)
        if unlike := entry.counts.unlike(found):
            yield f"the set holds {unlike}"


def reasons(record: Record, system: str, source: Source, figure: Figure) -> Iterator[str]:
    """Conditions of a record that are not those of a published figure; one phrase each, ours first.

    Args:
        record: ours.
        system: what its system is, see :func:`beirnl.evaluation.paper.identity.systems`.
        source: of the figure.
        figure: theirs.
    """
    stated = record.conditions
    if _theirs(system) != system:
        yield f"{system} is made from {_theirs(system)}"
    if stated.search == "bm25":
        yield from _bm25(record, source)
    if figure.revision and stated.revision and stated.revision != figure.revision:
        yield f"model revision {stated.revision[:_REVISION]}, not {figure.revision[:_REVISION]}"
    if stated.dtype not in (None, "float32"):
        yield f"dtype {stated.dtype}"
    if stated.search == "ann":
        yield f"approximate search, which found {getattr(stated, 'ann_recall', 'an unknown share')} of exact"
    yield from _prompts(record, source)
    yield from _rules(record, source)


def _bm25(record: Record, source: Source) -> Iterator[str]:
    """Another profile of BM25, or the same with other parameters."""
    theirs = registry.bm25_profiles()[source.profile.bm25]
    if record.conditions.profile != theirs.name:
        yield f"BM25 profile {record.conditions.profile}, not {theirs.name}"
        return
    for name in ("k1", "b", "tie_breaker"):
        said, expected = getattr(record.conditions, name, None), getattr(theirs, name)
        if said is not None and said != expected:
            yield f"{name} {said}, not {expected}"


def _prompts(record: Record, source: Source) -> Iterator[str]:
    """Prompts that are not those of the source: the model's own, with the task in its words."""
    entry = registry.find_model(record.conditions.model or "")
    if entry is None:
        return
    of_dataset = registry.instruction(original(record.dataset), record.language)
    theirs = entry.prompts_with(None if source.profile.instruction == "card" else of_dataset)
    for kind in ("query", "document"):
        said, expected = getattr(record.conditions, f"{kind}_prompt", None) or "", getattr(theirs, kind)
        if said != expected:
            yield f"{kind} prompt {said!r}, not {expected!r}"


def _rules(record: Record, source: Source) -> Iterator[str]:
    """Rules of evaluation and texts: self-matches, averaging, depth, translation."""
    stated = record.conditions
    entry = registry.dataset(original(record.dataset))
    rule = source.profile
    removed = rule.removes_self_matches(entry) if entry else rule.self_matches == "all"
    theirs = "removed" if removed else "kept"
    if stated.self_matches != theirs:
        yield f"self-matches {stated.self_matches}, not {theirs}"
    if entry is not None and entry.parts and stated.averaging != "parts":
        yield "mean over queries, not over parts"
    depth = getattr(stated, "depth", None)
    cutoff = parse([record.measure])[0].cutoff
    if depth and cutoff and cutoff > depth:
        yield f"only {counted(depth, 'hit')} a query"
    translator = getattr(stated, "translation_model", None)
    if translator and source.translation and translator != source.translation:
        yield f"translated by {translator}, not {source.translation}"
