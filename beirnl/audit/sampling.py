"""Draw the items that people check: uniformly from each dataset, the same ones wherever its rows lie."""

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from beirnl.audit.sheet import Head, Item, Kind, Sheet
from beirnl.audit.translations import TranslatedSet, translated, unfinished
from beirnl.errors import ConfigError, PrerequisiteError, StoreError

if TYPE_CHECKING:
    from beirnl.pipeline import Pipeline


class _Place(NamedTuple):
    """Where a row lies; places are ordered by what was drawn for them."""

    drawn: bytes
    member: int
    row: int
    shard: int


def draw(
    pipeline: "Pipeline", per_dataset: int, seed: int, kind: Kind | None = None
) -> tuple[Sheet, list[str]]:
    """A sheet of the finished translations of an experiment, and the labels of those that are not finished.

    Args:
        pipeline: the experiment.
        per_dataset: number of items of each dataset.
        seed: as of :func:`sample`.
        kind: only documents, or only queries; None: both.

    Raises:
        ConfigError: the experiment translates no dataset.
        PrerequisiteError: none of its translations is finished.
        StoreError: as :func:`sample`.
    """
    file = pipeline.experiment.file
    found = [one for one in translated(pipeline) if kind in (None, one.kind)]
    missing = [label for label in unfinished(pipeline) if kind is None or label.endswith(f"/{kind}")]
    if not found and not missing:
        remedy = "add a [[dataset]] and a [translation] of it ([[parallel]] texts only measure)"
        raise ConfigError("the experiment translates no dataset", where=file, remedy=remedy)
    if not found:
        raise PrerequisiteError("no translation is finished", where=file, remedy=f"run `beirnl run {file}`")
    items = sample(found, per_dataset, seed)
    return Sheet(Head(pipeline.experiment.name, seed, per_dataset), tuple(items)), missing


def sample(sets: Iterable[TranslatedSet], per_dataset: int, seed: int) -> list[Item]:
    """``per_dataset`` items of every dataset, or all where it has fewer.

    An item is drawn if the hash of seed, dataset, part, kind and id is among the smallest. So every item has
    the same chance (documents and queries, and the parts of a dataset, are drawn in proportion to their
    numbers), and the choice depends neither on shards nor on engine or language: a second translation is
    checked on the same items. Within a dataset items stand in the order of the hash, so that whoever stops
    early has labelled a random sample, too. Memory holds one shard at a time.

    Args:
        sets: what may be drawn from; parts of one dataset and language count as one dataset.
        per_dataset: number of items.
        seed: another seed, another sample.

    Raises:
        StoreError: an artifact is damaged, or a translation lacks its source.
    """
    groups: dict[tuple[str, str], list[TranslatedSet]] = {}
    for one in sets:
        groups.setdefault((one.dataset, one.language), []).append(one)
    return [item for members in groups.values() for item in _drawn(members, per_dataset, seed)]


def _drawn(members: Sequence[TranslatedSet], number: int, seed: int) -> list[Item]:
    places = heapq.nsmallest(number, _places(members, seed))
    size = sum(one.rows.rows for one in members)
    by_shard: dict[tuple[int, int], list[_Place]] = {}
    for place in places:
        by_shard.setdefault((place.member, place.shard), []).append(place)
    items: dict[_Place, Item] = {}
    for (member, shard), here in by_shard.items():
        items.update(zip(here, _items(members[member], shard, [p.row for p in here], size), strict=True))
    return [items[place] for place in places]


def _places(members: Sequence[TranslatedSet], seed: int) -> Iterator[_Place]:
    for member, one in enumerate(members):
        prefix = "\0".join((str(seed), one.dataset, one.part, one.kind, "")).encode()
        begun = hashlib.blake2b(prefix, digest_size=16)
        for shard in range(len(one.rows.parts)):
            table = one.rows.read(shard, ["row", "id"])
            rows, ids = table["row"].to_pylist(), table["id"].to_pylist()
            for row, identifier in zip(rows, ids, strict=True):
                hashed = begun.copy()
                hashed.update(identifier.encode())
                yield _Place(hashed.digest(), member, row, shard)


def _items(one: TranslatedSet, shard: int, rows: Sequence[int], size: int) -> Iterator[Item]:
    after, before = one.rows.read(shard), one.source.read(shard)
    for row in rows:
        translation, source = _row(after, row, one), _row(before, row, one)
        yield Item(
            dataset=one.dataset,
            part=one.part,
            kind=one.kind,
            id=translation["id"],
            language=one.language,
            source_language=one.source_language,
            size=size,
            status=translation["status"],
            source_title=source["title"],
            source_text=source["text"],
            title=translation["title"],
            text=translation["text"],
        )


def _row(table: pa.Table, row: int, one: TranslatedSet) -> dict[str, Any]:
    """The row with this number of the source file, wherever in the shard it stands."""
    at = pc.index(table["row"], row).as_py()
    if at < 0:
        remedy = "run the experiment again"
        raise StoreError(f"lacks row {row} of its source", where=one.rows.directory, remedy=remedy)
    found: dict[str, Any] = table.slice(at, 1).to_pylist()[0]
    return found
