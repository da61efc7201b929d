"""Clustered unit vectors of any size, the same for the same arguments; a larger set begins as a smaller one.

2,000 topics in 100 fields: topics of a field are nearer to each other than to others, and their sizes fall as
Zipf's law has it. Around a topic, documents spread in 32 directions of falling weight, and a little in all:
as with embeddings of text, neighbours are near in few dimensions, and not equally far from everything.

python benchmarks/vectors.py --rows 1000000 --queries 2000 --dimension 384 --out FOLDER [--dtype float16]
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from beirnl.retrieval.vectors import is_compressible, vector_columns

BLOCK = 10_000  # rows drawn, and stored, together
FIELDS, TOPICS, BASES, DIRECTIONS = 100, 2_000, 64, 32
SPREAD, NOISE = 0.9, 0.25  # lengths of what lies around a topic's unit vector, in few and in all directions
_QUERIES = 1 << 40  # blocks from here on are queries


class Clusters:
    """Where vectors are drawn from.

    Args:
        dimension: of the vectors.
        seed: another one gives other topics.
    """

    def __init__(self, dimension: int = 384, seed: int = 0) -> None:
        self.dimension, self._seed = dimension, seed
        random = np.random.default_rng([seed, 0])
        fields = _unit(random.standard_normal((FIELDS, dimension), np.float32))
        topics = _unit(random.standard_normal((TOPICS, dimension), np.float32))
        self._topics = _unit(topics + fields[np.arange(TOPICS) % FIELDS])
        weights = 1 / np.sqrt(np.arange(1, DIRECTIONS + 1, dtype=np.float32))
        weights *= SPREAD / np.linalg.norm(weights)
        bases = random.standard_normal((BASES, DIRECTIONS, dimension), np.float32)
        self._bases = weights[:, None] * bases / np.float32(np.sqrt(dimension))
        shares = 1 / (np.arange(TOPICS) + 50.0)
        self._reach = np.cumsum(shares / shares.sum())

    def block(self, number: int, rows: int = BLOCK) -> np.ndarray:
        """The vectors of a block, float32 [rows, dimension]."""
        random = np.random.default_rng([self._seed, 1, number])
        topics = np.minimum(np.searchsorted(self._reach, random.random(BLOCK)), TOPICS - 1)
        around = random.standard_normal((BLOCK, DIRECTIONS), np.float32)
        noise = random.standard_normal((BLOCK, self.dimension), np.float32)
        vectors = self._topics[topics] + noise * np.float32(NOISE / np.sqrt(self.dimension))
        for base in range(BASES):
            mine = topics % BASES == base
            vectors[mine] += around[mine] @ self._bases[base]
        return _unit(vectors)[:rows]

    def blocks(self, rows: int) -> Iterator[np.ndarray]:
        """All documents, block by block."""
        for number, begin in enumerate(range(0, rows, BLOCK)):
            yield self.block(number, min(BLOCK, rows - begin))

    def queries(self, rows: int) -> np.ndarray:
        """Vectors like the documents', none of which is one of them."""
        parts = [
            self.block(_QUERIES + number, min(BLOCK, rows - begin))
            for number, begin in enumerate(range(0, rows, BLOCK))
        ]
        return np.concatenate(parts)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def write(folder: Path, clusters: Clusters, rows: int, dtype: str = "float32") -> list[Path]:
    """Documents as embeddings tables of ``BLOCK`` rows; the files in order."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, vectors in enumerate(clusters.blocks(rows)):
        places = np.arange(number * BLOCK, number * BLOCK + len(vectors))
        columns = {"row": pa.array(places), "id": pa.array([f"d{place}" for place in places])}
        paths.append(folder / f"part-{number:05d}.parquet")
        table = pa.table(columns | vector_columns(vectors, dtype))
        compress = is_compressible(dtype)  # as the stage that embeds does it
        pq.write_table(table, paths[-1], compression="zstd" if compress else "none", use_dictionary=compress)
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--dtype", choices=["float32", "float16", "int8"], default="float32")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    clusters = Clusters(given.dimension)
    files = write(given.out, clusters, given.rows, given.dtype)
    np.save(given.out / "queries.npy", clusters.queries(given.queries))
    print(f"{given.rows:,} vectors in {len(files)} files, {given.queries:,} queries: {given.out}")


if __name__ == "__main__":
    main()
