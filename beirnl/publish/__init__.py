"""Publishing a translated set: written, read back and proven, and only then called by its name.

    TO/scifact-nl/
      beir/   corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv, proof.json
      hub/    README.md, corpus/*.parquet, queries/*.parquet, qrels/SPLIT-*.parquet, proof.json

A set in parts has a folder per part in both. ``hub`` is what is uploaded.
"""

import json
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from beirnl import __version__
from beirnl.datasets.importing import examples
from beirnl.errors import DataError
from beirnl.publish import card, folders, proof
from beirnl.publish.find import Side, Translation, translations
from beirnl.publish.folders import Folders, Tally
from beirnl.store.files import disk_errors, fsync_path

__all__ = ["Published", "Side", "Translation", "publish", "sets", "translations"]

FORMAT = 1


@dataclass(frozen=True)
class Published:
    """A set that was published and proven.

    Attributes:
        folder: where it lies.
        dataset: its name in the experiment.
        parts: what the proof found, per part.
        licence: SPDX identifier, or ``unknown``.
        written: whether it was written now; False where it was there already, and was proven again.
    """

    folder: Path
    dataset: str
    parts: list[dict[str, Any]]
    licence: str
    written: bool

    @property
    def hub(self) -> Path:
        """The folder in the hub's layout."""
        return Folders.of(self.folder).hub

    def total(self, what: str) -> int:
        """The sum of a count over all parts."""
        return sum(part[what] for part in self.parts)

    @property
    def warnings(self) -> list[str]:
        """What whoever passes the set on must know; one line each."""
        lines = []
        if self.licence == card.UNKNOWN:
            lines.append(
                "no licence of its source is known: find it out before you pass the set on, and say it with "
                "--licence"
            )
        for kind in ("documents", "queries"):
            found = [part[f"{kind}_without_text_in_source"] for part in self.parts]
            if count := sum(one["count"] for one in found):
                ids = [name for one in found for name in one["examples"]]
                lines.append(f"{kind} without any text, in the source and here: {count:,} ({examples(ids)})")
        return lines


def sets(found: Sequence[Translation]) -> dict[str, list[Translation]]:
    """The parts of every set, by the name that it is published under: ``DATASET-LANGUAGE``."""
    return {
        f"{dataset}-{language}": list(group)
        for (dataset, language), group in groupby(found, lambda one: (one.dataset, one.language))
    }


def publish(
    name: str, parts: Sequence[Translation], to: Path, *, force: bool = False, licence: str | None = None
) -> Published:
    """Write a set in both layouts, prove it from what was written, and put it in place by one rename.

    What is there already and was made from the same artifacts is not written again, but proven again; under
    another licence it is written anew.

    Args:
        name: of the set; its folder in ``to``.
        parts: its parts; one without a name where there are none.
        to: the folder that holds published sets; it is made.
        force: replace what is there.
        licence: of a dataset that the registry does not know; None: as it was published before.

    Raises:
        DataError: the folder holds something else, or the proof fails; then nothing new is left there.
        StoreError: the disk is full, or an artifact is damaged.
    """
    target = to / name
    places = Folders.of(target)
    known = {} if force else _same(places, parts)
    licence = card.licence_of(parts[0].dataset, licence or known.get("licence"))
    if known and known["licence"] == licence:
        found = _prove_again(parts, places, [part["contents"] for part in known["parts"]])
        return Published(target, parts[0].dataset, found, licence, written=False)
    if not (force or known) and target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DataError(
            "is there already, and is not what this experiment makes",
            where=target,
            remedy="give another --to, or --force to replace it",
        )
    with disk_errors(to), _replacing(target) as new:
        found = _write(name, parts, Folders.of(new), new / "rows", licence)
    return Published(target, parts[0].dataset, found, licence, written=True)


def _write(
    name: str, parts: Sequence[Translation], places: Folders, scratch: Path, licence: str
) -> list[dict[str, Any]]:
    tallies: list[dict[str, Tally]] = []
    for part in parts:
        tallies.append(folders.write(part, places.part(part.part), scratch))
    contents = [{kind: tally[kind].content for kind in tally} for tally in tallies]
    found = _prove(parts, places, contents)
    facts = card.Facts(name, licence, parts, found, tallies)
    (places.hub / "README.md").write_text(card.render(facts), encoding="utf-8")
    record = {
        "format": FORMAT,
        "beirnl": __version__,
        "name": name,
        "licence": licence,
        "claims": proof.CLAIMS,
        "parts": found,
        "sha256": proof.checksums(places.beir, places.hub),
    }
    for folder in (places.beir, places.hub):
        (folder / "proof.json").write_text(json.dumps(record, indent=1, ensure_ascii=False), encoding="utf-8")
    return found


def _prove(
    parts: Sequence[Translation], places: Folders, contents: Sequence[dict[str, str]]
) -> list[dict[str, Any]]:
    return [
        proof.prove(part, places.part(part.part), known) for part, known in zip(parts, contents, strict=True)
    ]


def _prove_again(
    parts: Sequence[Translation], places: Folders, contents: Sequence[dict[str, str]]
) -> list[dict[str, Any]]:
    """Prove what was proven when it was written: whatever is wrong with it has come since."""
    try:
        return _prove(parts, places, contents)
    except DataError as error:
        raise DataError(
            f"was altered since it was published: {error.what}",
            where=error.where,
            remedy="publish again with --force to write it anew, or give another --to",
        ) from error


def _same(places: Folders, parts: Sequence[Translation]) -> dict[str, Any]:
    """The record of a publication that stands there and was made from these very artifacts; else nothing."""
    try:
        record = json.loads((places.hub / "proof.json").read_text(encoding="utf-8"))
        same = (
            record["format"] == FORMAT
            and record["beirnl"] == __version__
            and isinstance(record["licence"], str)
            and [part["artifacts"] for part in record["parts"]] == list(map(proof.artifact_contents, parts))
            and all(part["contents"] for part in record["parts"])
        )
        if same and (places.hub / "README.md").exists():
            return dict(record)
    except (OSError, ValueError, KeyError, TypeError):
        pass  # nothing, or something else, is there
    return {}


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """A new folder beside ``target`` that takes its place when all went well, and is removed if not.

    What a killed run leaves is called ``NAME.tmp-...``, never by the name of the set.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(f"{target.name}.tmp-{uuid.uuid4().hex[:8]}")
    old = new.with_name(f"{new.name}.old")
    new.mkdir()
    try:
        yield new
        for path in (*new.rglob("*"), new):
            fsync_path(path)
        if target.exists():
            target.rename(old)
        new.rename(target)
        fsync_path(target.parent)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        shutil.rmtree(new, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)
