"""Reading Parquet files."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def read_table(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """The table in a Parquet file, or some of its columns (never memory-mapped: the file may be replaced)."""
    with path.open("rb") as file:
        return pq.read_table(file, columns=columns and list(columns))
