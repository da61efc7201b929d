"""Reading Parquet files."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def read_table(path: Path) -> pa.Table:
    """The table in a Parquet file, read whole (never memory-mapped, so that the file may be replaced)."""
    with path.open("rb") as file:
        return pq.read_table(file)
