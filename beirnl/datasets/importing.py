"""From a BEIR folder to tables: partition by content, duplicates, and how the three files agree."""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

import polars as pl
import pyarrow as pa

from beirnl.datasets import hub_layout
from beirnl.datasets.beir import Judgement, Record, read_qrels, read_records
from beirnl.errors import DataError
from beirnl.schema import CORPUS, QRELS, QUERIES

_BUFFERED_CHARACTERS = 64 << 20
_EXAMPLES = 5


def text_digest(title: str, text: str) -> int:
    """A 64-bit digest of a document's content; its leading bits choose the shard and the journal's bucket."""
    data = title.encode() + b"\0" + text.encode()
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


def shard_of(content: int, shards: int) -> int:
    """The shard of a digest among ``shards``, a power of two: its leading bits."""
    return content >> (64 - (shards.bit_length() - 1)) if shards > 1 else 0


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


def count_lines(path: Path) -> int:
    """Number of lines in a file, blank ones included, or of rows in a folder of Parquet files."""
    if path.is_dir():
        return hub_layout.count_rows(path)
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b"")) + 1


class Partitioner:
    """Streams records into shards, holding a bounded amount of text.

    Args:
        shards: number of shards, a power of two.
        write: called with a shard's number and its next rows, several times per shard.
    """

    def __init__(self, shards: int, write: Callable[[int, pa.Table], None]) -> None:
        self._write, self._shards = write, shards
        self._buffers: list[list[tuple[int, str, str, str]]] = [[] for _ in range(shards)]
        self._size = 0
        self._ids: list[str] = []
        self._lines: list[int] = []
        self._digests: list[int] = []
        self._seen: list[pl.DataFrame] = []

    def add(self, row: int, record: Record) -> None:
        """Take a record; ``row`` is its place among the records of the file."""
        content = text_digest(record.title, record.text)
        self._buffers[shard_of(content, self._shards)].append((row, record.id, record.title, record.text))
        self._ids.append(record.id)
        self._lines.append(record.line)
        self._digests.append(content)
        self._size += len(record.title) + len(record.text) + 100
        if self._size > _BUFFERED_CHARACTERS:
            self.flush()

    def flush(self) -> None:
        """Write what is held."""
        for shard, rows in enumerate(self._buffers):
            if rows:
                columns = [list(column) for column in zip(*rows, strict=True)]
                self._write(shard, pa.table(columns, schema=CORPUS))
                rows.clear()
        frame = {"id": self._ids, "line": self._lines, "content": self._digests}
        self._seen.append(
            pl.DataFrame(frame, schema={"id": pl.String, "line": pl.Int64, "content": pl.UInt64})
        )
        self._ids, self._lines, self._digests, self._size = [], [], [], 0

    def duplicates(self, path: Path) -> list[str]:
        """Identifiers that occur more than once with one text; their later lines are to be dropped.

        Raises:
            DataError: one identifier has two texts; names both lines.
        """
        seen = pl.concat(self._seen) if self._seen else pl.DataFrame({"id": [], "line": [], "content": []})
        repeated = seen.filter(pl.col("id").is_duplicated()).sort("line")
        refuse_two_texts(repeated, path)
        return list(repeated["id"].unique(maintain_order=True))


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
    rows = sorted(kept.values())
    warnings = _repeated_warning(list(repeated["id"].unique(maintain_order=True)), "queries")
    missing = sorted(judged - kept.keys())
    if missing:
        warnings.append(
            f"qrels name {len(missing)} queries that {path.name} lacks; not scored: {examples(missing)}"
        )
    empty = [r.id for r in {r.id: r for r in records if r.id in judged}.values() if is_empty(r)]
    if empty:
        warnings.append(f"{len(empty)} queries have no text; kept: {examples(empty)}")
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[], [], [], []]
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
            f"qrels name {len(missing)} documents that the corpus lacks; they count in the denominator of "
            f"recall, as trec_eval counts them: {examples(missing)}"
        )
    best = qrels.group_by("query_id").agg(pl.col("relevance").max())
    empty = best.filter(pl.col("relevance") <= 0)["query_id"].sort().to_list()
    if empty:
        warnings.append(
            f"{len(empty)} queries have no relevant document (all labels 0) and score 0: {examples(empty)}"
        )
    return warnings


def _repeated_warning(ids: list[str], what: str) -> list[str]:
    return (
        [f"{len(ids)} {what} occur more than once with one text; kept once: {examples(ids)}"] if ids else []
    )


def corpus_warnings(repeated: list[str], empty: list[str]) -> list[str]:
    """Warnings about repeated and about empty documents."""
    warnings = _repeated_warning(repeated, "documents")
    if empty:
        warnings.append(f"{len(empty)} documents have neither title nor text; kept: {examples(empty)}")
    return warnings


def examples(ids: list[str]) -> str:
    """The first few identifiers, for a warning."""
    more = ", ..." if len(ids) > _EXAMPLES else ""
    return ", ".join(ids[:_EXAMPLES]) + more
