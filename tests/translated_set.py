"""Builds the artifacts of a small translated set by hand, as a run leaves them."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from beirnl.publish import Side, Translation
from beirnl.schema import CORPUS, QRELS, TRANSLATED
from beirnl.specs import LlmSpec, ModelRef, Rung, TranslationSpec
from beirnl.store.artifacts import Artifact, Manifest, close_artifact, content_digest
from beirnl.store.writing import PartWriter

Row = tuple[str, str, str]  # id, title, text

DOCUMENTS: list[Row] = [
    ("d1", "Tea", "Green tea\u2028is steeped at 80 °C."),
    ("d2", "", 'He said "no"\tand left.\n'),
    ("d3", "Only a title", ""),
    ('"Love"_d4', "Rain", "It rains | in `May`."),
    ("5", "Owls", "Owls hunt at night."),
    ("d6", "", ""),
]
QUERIES: list[Row] = [("q1", "", "how hot is tea"), ("q2", "", "when do owls hunt")]
JUDGEMENTS = [("q1", "d1", 2), ("q1", '"Love"_d4', 0), ("q2", "5", 1), ("q2", "gone", 1)]
STATUSES = {"d2": "numbers,length-ratio", "d3": "refusal"}
REPAIRS = {"5": "room"}


def artifact(folder: Path, tables: Sequence[pa.Table], schema: pa.Schema) -> Artifact:
    """A finished artifact with a unit per table."""
    receipts = []
    for unit, table in enumerate(tables):
        out = PartWriter(folder, unit, "run")
        out.write(table, schema)
        receipts.append(out.commit())
    content = content_digest(receipts, None)
    manifest = Manifest(
        stage="", label="", key="", spec={}, inputs={}, versions={}, content=content, receipts=tuple(receipts)
    )
    close_artifact(folder, manifest)
    return Artifact(folder)


def side(folder: Path, kind: str, rows: Sequence[Row], shards: int = 3) -> Side:
    """Rows as imported and translated, dealt to shards in turn; each text becomes that of its capitals."""
    ids, titles, texts = zip(*rows, strict=True)
    columns = {"row": range(len(rows)), "id": ids, "title": titles, "text": texts}
    source = pa.table({name: list(values) for name, values in columns.items()}, schema=CORPUS)
    kept = [STATUSES.get(name) == "refusal" for name in ids]
    changed = {
        name: [old if keep else old.upper() for old, keep in zip(columns[name], kept, strict=True)]
        for name in ("title", "text")
    }
    statuses = [STATUSES.get(name, "ok") for name in ids]
    repairs = [REPAIRS.get(name, "") for name in ids]
    translated = pa.table(
        {"row": source["row"], "id": source["id"], **changed, "status": statuses, "repair": repairs},
        schema=TRANSLATED,
    )
    dealt = [list(range(shard, len(rows), shards)) for shard in range(shards)][::-1]
    llm = LlmSpec(engine="vllm", model=ModelRef(name="m", source="hub:org/m", revision="abc"), max_tokens=64)
    spec = TranslationSpec(
        llm=llm,
        kind=kind,  # type: ignore[arg-type]
        prompt=f"paper-{kind}",
        template=f"Translate the {kind}:\n```{{text}}```\n",
        source_language="en",
        target_language="nl",
        domain="Tea | owls",
    )
    return Side(
        artifact(folder / kind / "source", [source.take(rows) for rows in dealt], CORPUS),
        artifact(folder / kind / "translated", [translated.take(rows) for rows in dealt], TRANSLATED),
        spec,
        (Rung(name="room", number=1, translation=spec),),
    )


def translation(folder: Path, part: str = "", documents: Sequence[Row] = DOCUMENTS) -> Translation:
    """A set whose judgements name one document that its corpus lacks."""
    columns = [list(column) for column in zip(*JUDGEMENTS, strict=True)]
    qrels = artifact(folder / "qrels", [pa.table(columns, schema=QRELS)], QRELS)
    sides = (side(folder, "document", documents), side(folder, "query", QUERIES, shards=1))
    return Translation("owls", part, "test", *sides, qrels)


def capitals(rows: Sequence[Row]) -> list[Row]:
    """What is published of rows."""
    return [
        row if STATUSES.get(row[0]) == "refusal" else (row[0], row[1].upper(), row[2].upper()) for row in rows
    ]
