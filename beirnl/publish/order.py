"""Rows of a sharded table in their source order, in bounded memory."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

_ROWS_PER_RUN = 32_768
_RUNS = 256  # files that are open at once
_BUFFERED_BYTES = 32 << 20


def in_row_order(tables: Iterable[pa.Table], rows: int, folder: Path) -> Iterator[pa.Table]:
    """Rows in order of their column ``row``, in tables of bounded size.

    Shards are made by content, so every one of them spans the whole source: a merge would hold a page of each
    column of each shard, which grows with the corpus. Rows are dealt to files by the range that their ``row``
    lies in, and each file is then sorted by itself. Held at once: 32 MB and a table while they are dealt,
    then one file: 32,768 rows, or a 256th of all where that is more.

    Args:
        tables: all shards, one after another, with a column ``row``.
        rows: at least the largest ``row`` plus one, or about so many.
        folder: made, used for the files, and removed again.
    """
    per_run = max(_ROWS_PER_RUN, -(-rows // _RUNS))
    folder.mkdir()
    for path in _deal(tables, per_run, folder):
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
            table = reader.read_all()
        path.unlink()
        yield table.sort_by("row")
    folder.rmdir()


def _deal(tables: Iterable[pa.Table], per_run: int, folder: Path) -> list[Path]:
    """Write rows to one file per range of ``per_run`` rows; the files in order of their range."""
    writers: dict[int, pa.RecordBatchWriter] = {}
    paths: dict[int, Path] = {}
    for table in _gathered(tables):
        table = table.sort_by("row")
        runs = pc.divide(table["row"], per_run).to_numpy()
        start = 0
        while start < len(runs):
            run = int(runs[start])
            end = int(runs.searchsorted(run, side="right"))
            if run not in writers:
                paths[run] = folder / f"run-{run:05d}.arrow"
                options = pa.ipc.IpcWriteOptions(compression="lz4")
                writers[run] = pa.ipc.new_stream(str(paths[run]), table.schema, options=options)
            writers[run].write_table(table.slice(start, end - start).combine_chunks())
            start = end
    for writer in writers.values():
        writer.close()
    return [paths[run] for run in sorted(paths)]


def _gathered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Several tables as one, until they hold enough that dealing them pays."""
    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        if sum(one.nbytes for one in held) > _BUFFERED_BYTES:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)
