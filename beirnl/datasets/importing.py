"""From a BEIR folder to tables: partition by content, duplicates, and how the three files agree."""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from beirnl.datasets import rows
from beirnl.datasets.beir import Judgement, Record, read_qrels, read_records
from beirnl.errors import DataError
from beirnl.schema import CORPUS, QRELS, QUERIES
from beirnl.wording import counted

_BUFFERED_BYTES = 64 << 20
_EXAMPLES = 5
_HELD = pa.schema([*CORPUS, ("content", pa.uint64())])
_PRINTED = "[!-~]"


def text_digest(title: str, text: str) -> int:
    """A 64-bit digest of a document's content; its leading bits choose the shard and the journal's bucket."""
    return int.from_bytes(_digest(title.encode() + b"\0" + text.encode()), "big")


def text_digests(titles: pa.Array, texts: pa.Array) -> np.ndarray:
    """:func:`text_digest` of each document, as uint64 of the shape of the columns."""
    joined = pc.binary_join_element_wise(titles.cast(pa.binary()), texts.cast(pa.binary()), b"\0")
    digests = b"".join(_digest(value) for value in joined.to_pylist())
    return np.frombuffer(digests, ">u8").astype(np.uint64)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=8).digest()


def shards_of(contents: np.ndarray, shards: int) -> np.ndarray:
    """The shard of each digest (uint64 [n]) among ``shards``, a power of two: its leading bits, int64 [n]."""
    if shards == 1:
        return np.zeros(len(contents), np.int64)
    return (contents >> np.uint64(64 - (shards.bit_length() - 1))).astype(np.int64)


def shard_count(documents: int, per_shard: int | None = None) -> int:
    """The smallest power of two of shards with at most ``per_shard`` documents each.

    By default 10,000 documents a shard; a small corpus is cut into up to eight shards of 500 or more, so that
    several workers have something to share and a long stage shows how far it is.
    """
    if per_shard is None:
        per_shard = max(500, min(10_000, -(-documents // 8)))
    shards = 1
    while documents > shards * per_shard:
        shards *= 2
    return shards


class Partitioner:
    """Streams batches into shards, holding a bounded amount of text.

    Args:
        shards: number of shards, a power of two.
        write: called with a shard's number and its next rows, several times per shard.
    """

    def __init__(self, shards: int, write: Callable[[int, pa.Table], None]) -> None:
        self._write, self._shards = write, shards
        self._held: list[pa.RecordBatch] = []
        self._bytes = 0
        self._row = 0
        self._identities = Identities()

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a batch of schema :data:`beirnl.datasets.rows.TEXTS`; rows are numbered in order, from 0."""
        contents = text_digests(batch["title"], batch["text"])
        self._identities.add(batch["id"], batch["line"], contents)
        numbers = np.arange(self._row, self._row + len(batch), dtype=np.int64)
        columns = [pa.array(numbers), batch["id"], batch["title"], batch["text"], pa.array(contents)]
        self._held.append(pa.record_batch(columns, schema=_HELD))
        self._row += len(batch)
        self._bytes += batch.nbytes
        if self._bytes > _BUFFERED_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is held, shard by shard; within a shard rows keep their order."""
        if not self._held:
            return
        held = pa.Table.from_batches(self._held).combine_chunks()
        self._held, self._bytes = [], 0
        shards = shards_of(held["content"].to_numpy(), self._shards)
        rows_of, order = held.drop_columns("content"), np.argsort(shards, kind="stable")
        present, begins = np.unique(shards[order], return_index=True)
        for shard, places in zip(present.tolist(), np.split(order, begins[1:]), strict=True):
            self._write(shard, rows_of.take(places))
        del held, rows_of
        pa.default_memory_pool().release_unused()

    def duplicates(self, path: Path) -> list[str]:
        """Identifiers that occur more than once with one text; their later lines are to be dropped.

        Raises:
            DataError: one identifier has two texts; names both lines.
        """
        repeated = self._identities.repeated()
        refuse_two_texts(repeated, path)
        return list(repeated["id"].unique(maintain_order=True))


class Identities:
    """Identifiers of a corpus with their lines and contents: about 40 bytes a document."""

    def __init__(self) -> None:
        self._ids: list[pa.Array] = []
        self._lines: list[np.ndarray] = []
        self._contents: list[np.ndarray] = []
        self._hashes: list[np.ndarray] = []

    def add(self, ids: pa.Array, lines: pa.Array, contents: np.ndarray) -> None:
        """Take the documents of a batch."""
        self._ids.append(ids)
        self._lines.append(lines.to_numpy())
        self._contents.append(contents)
        self._hashes.append(id_hashes(ids))

    def repeated(self) -> pl.DataFrame:
        """The rows [id, line, content] of identifiers that occur more than once, by line."""
        hashes = np.concatenate(self._hashes) if self._hashes else np.empty(0, np.uint64)
        suspects = np.sort(repeated_rows(hashes))
        found = pl.DataFrame(
            {
                "id": pa.chunked_array(self._ids, pa.string()).take(suspects).to_pylist(),
                "line": _take(self._lines, suspects, np.int64),
                "content": _take(self._contents, suspects, np.uint64),
            },
            schema={"id": pl.String, "line": pl.Int64, "content": pl.UInt64},
        )
        return found.filter(pl.col("id").is_duplicated()).sort("line")


def id_hashes(ids: pa.Array) -> np.ndarray:
    """A hash of each identifier, uint64; the same within one process only."""
    hashes: np.ndarray = pl.Series(pl.from_arrow(ids)).hash().to_numpy()
    return hashes


def repeated_rows(values: np.ndarray) -> np.ndarray:
    """Places of all values that occur more than once, in order of value."""
    order = np.argsort(values, kind="stable")
    same = np.diff(values[order]) == 0
    if not len(order):
        return order
    repeated: np.ndarray = order[np.concatenate([same, [False]]) | np.concatenate([[False], same])]
    return repeated


def _take(chunks: list[np.ndarray], places: np.ndarray, dtype: type) -> np.ndarray:
    taken: np.ndarray = (np.concatenate(chunks) if chunks else np.empty(0, dtype))[places]
    return taken


def refuse_two_texts(repeated: pl.DataFrame, path: Path) -> None:
    """DataError naming both lines if an identifier in [id, line, content] has two contents."""
    if repeated.is_empty():
        return
    clash = repeated.group_by("id", maintain_order=True).agg(
        pl.col("line"), pl.col("content").n_unique().alias("contents")
    )
    clash = clash.filter(pl.col("contents") > 1)
    if clash.height:
        lines = clash["line"][0].to_list()
        raise DataError(
            f"_id {clash['id'][0]!r} has two texts, in lines {lines[0]} and {lines[1]}",
            where=path,
            remedy="keep one of the lines or give the other its own _id",
        )


def is_empty(record: Record) -> bool:
    """Whether neither title nor text of a record holds more than white space."""
    return not (record.title.strip() or record.text.strip())


def empty_ids(batch: pa.RecordBatch) -> list[str]:
    """Identifiers of the documents of a batch that :func:`is_empty`."""
    joined = pc.binary_join_element_wise(batch["title"], batch["text"], " ")
    without = batch.filter(pc.invert(pc.match_substring_regex(joined, _PRINTED)))  # few: looked at one by one
    return [record.id for record in rows.records([without]) if is_empty(record)]


def read_queries(path: Path, judged: set[str]) -> tuple[pa.Table, list[str]]:
    """The judged queries in order of the file, and warnings.

    Raises:
        DataError: one identifier has two texts; names both lines.
    """
    records = list(read_records(path))
    frame = pl.DataFrame(
        {
            "id": [r.id for r in records],
            "line": [r.line for r in records],
            "content": [r.text for r in records],
        },
        schema={"id": pl.String, "line": pl.Int64, "content": pl.String},
    )
    repeated = frame.filter(pl.col("id").is_duplicated()).sort("line")
    refuse_two_texts(repeated, path)
    kept = {r.id: (row, r.id, "", r.text) for row, r in reversed(list(enumerate(records))) if r.id in judged}
    ordered = sorted(kept.values())
    warnings = _repeated_warning(list(repeated["id"].unique(maintain_order=True)), "query", "queries")
    missing = sorted(judged - kept.keys())
    if missing:
        warnings.append(
            f"qrels name {counted(len(missing), 'query')} that {path.name} lacks; not scored: "
            f"{examples(missing)}"
        )
    empty = [r.id for r in {r.id: r for r in records if r.id in judged}.values() if is_empty(r)]
    if empty:
        warnings.append(
            f"{counted(len(empty), 'query has', 'queries have')} no text; kept: {examples(empty)}"
        )
    columns = [list(column) for column in zip(*ordered, strict=True)] if ordered else [[], [], [], []]
    return pa.table(columns, schema=QUERIES), warnings


def read_judgements(path: Path, query_ids: set[str]) -> pa.Table:
    """The qrels of the given queries, each pair once.

    Raises:
        DataError: a pair has two labels; names both lines.
    """
    pairs: dict[tuple[str, str], Judgement] = {}
    for judgement in read_qrels(path):
        pair = (judgement.query_id, judgement.doc_id)
        earlier = pairs.setdefault(pair, judgement)
        if earlier.relevance != judgement.relevance:
            raise DataError(
                f"query {pair[0]!r} and document {pair[1]!r} have two labels, "
                f"in lines {earlier.line} and {judgement.line}",
                where=path,
                remedy="keep one of the lines",
            )
    kept = [j for j in pairs.values() if j.query_id in query_ids]
    columns = [[j.query_id for j in kept], [j.doc_id for j in kept], [j.relevance for j in kept]]
    return pa.table(columns, schema=QRELS)


def qrels_warnings(qrels: pl.DataFrame, corpus_ids: Iterable[pl.Series]) -> list[str]:
    """Warnings about qrels that name documents the corpus lacks, and about queries with nothing relevant."""
    wanted = qrels["doc_id"].unique()
    present = pl.Series("id", [], dtype=pl.String)
    for ids in corpus_ids:
        present = pl.concat([present, ids.filter(ids.is_in(wanted.implode()))])
    warnings = []
    missing = wanted.filter(~wanted.is_in(present.implode())).sort().to_list()
    if missing:
        warnings.append(
            f"qrels name {counted(len(missing), 'document')} that the corpus lacks; these count in the "
            f"denominator of recall, as trec_eval counts them: {examples(missing)}"
        )
    best = qrels.group_by("query_id").agg(pl.col("relevance").max())
    empty = best.filter(pl.col("relevance") <= 0)["query_id"].sort().to_list()
    if empty:
        warnings.append(
            f"{counted(len(empty), 'query has', 'queries have')} no relevant document (all labels 0) and "
            f"{'scores' if len(empty) == 1 else 'score'} 0: {examples(empty)}"
        )
    return warnings


def _repeated_warning(ids: list[str], one: str, many: str) -> list[str]:
    what = counted(len(ids), f"{one} occurs", f"{many} occur")
    return [f"{what} more than once with one text; kept once: {examples(ids)}"] if ids else []


def corpus_warnings(repeated: list[str], empty: list[str]) -> list[str]:
    """Warnings about repeated and about empty documents."""
    warnings = _repeated_warning(repeated, "document", "documents")
    if empty:
        warnings.append(
            f"{counted(len(empty), 'document has', 'documents have')} neither title nor text; kept: "
            f"{examples(empty)}"
        )
    return warnings


def examples(ids: list[str]) -> str:
    """The first few identifiers, for a warning."""
    more = ", ..." if len(ids) > _EXAMPLES else ""
    return ", ".join(ids[:_EXAMPLES]) + more
