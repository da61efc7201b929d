"""Which files of a folder are its corpus, queries and judgements, and in what form each is.

A *table* is a file, or a folder of files of one form, or the first of several numbered files of a split.
"""

import re
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Literal

from beirnl.datasets.rows import lines

Form = Literal["parquet", "json", "trec", "columns"]

#: Names under which documents and queries lie; BEIR's first.
NAMES = {"corpus": ("corpus", "docs", "documents", "collection"), "queries": ("queries", "topics")}
_FORMS: dict[str, Form | None] = {
    ".jsonl": "json",
    ".jsonl.gz": "json",
    ".parquet": "parquet",
    ".trec": "trec",
    ".trec.gz": "trec",
    ".sgml": "trec",
    ".xml": "trec",
    ".xml.gz": "trec",
    ".tsv": "columns",
    ".tsv.gz": "columns",
    ".txt": None,  # by its first character
    ".txt.gz": None,
}
_JUDGED = (".tsv", ".txt", ".qrels", ".jsonl", ".tsv.gz", ".txt.gz", ".jsonl.gz", ".parquet")
_JUDGED_FOLDERS = ("qrels", "data")
_JUDGED_FILE = re.compile(r"qrels(?:[._-](.+))?")
_NUMBERED = re.compile(r"(.+?)(?:-\d{5}-of-\d{5})?")
_FIRST = {b"{": "json", b"<": "trec"}
_SPLIT = "test"  # of a qrels file that names none


def find_texts(folder: Path, kind: str) -> Path | None:
    """The table of documents (``corpus``) or ``queries`` of a folder, or None."""
    for name in NAMES[kind]:
        for suffix in _FORMS:
            if (folder / f"{name}{suffix}").is_file():
                return folder / f"{name}{suffix}"
        if files_of(folder / name):
            return folder / name
    return None


def find_judgements(folder: Path) -> dict[str, Path]:
    """Tables of judgements by split: text before Parquet, ``qrels/`` before ``data/`` before ``qrels.*``."""
    found: dict[str, Path] = {}
    for split, path in [*_in_folders(folder), *_beside(folder)]:
        found.setdefault(split, path)
    return found


def _in_folders(folder: Path) -> Iterator[tuple[str, Path]]:
    for name in _JUDGED_FOLDERS:
        files = sorted(p for p in (folder / name).glob("*") if suffix_of(p) in _JUDGED and p.is_file())
        if name == "data":  # the hub's; others keep other things there
            files = [path for path in files if suffix_of(path) == ".parquet"]
        text = [path for path in files if suffix_of(path) != ".parquet"]
        yield from ((split_of(path), path) for path in text or files)


def _beside(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.glob("qrels*")):
        match = _JUDGED_FILE.fullmatch(path.name.removesuffix(suffix_of(path)))
        if match and path.is_file() and suffix_of(path) in _JUDGED:
            yield match.group(1) or _SPLIT, path


def readable(name: str) -> bool:
    """Whether a file of this name can be a table."""
    return suffix_of(PurePath(name)) in {*_FORMS, *_JUDGED}


def suffix_of(path: PurePath) -> str:
    """``.tsv``, ``.jsonl.gz``: the suffix that tells a file's form."""
    return "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix


def split_of(path: PurePath) -> str:
    """The split that a file belongs to: ``test`` for ``test-00000-of-00002.parquet``."""
    stem = path.name.removesuffix(suffix_of(path))
    match = _NUMBERED.fullmatch(stem)
    return match.group(1) if match else stem


def files_of(path: Path) -> list[Path]:
    """The files of a table in order."""
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if suffix_of(p) in _FORMS and p.is_file())
        parquet = [file for file in files if suffix_of(file) == ".parquet"]
        return parquet or files
    if not path.is_file():
        return []
    numbered = path.parent.glob(f"*{suffix_of(path)}")
    return sorted(p for p in numbered if p == path or _continues(p, path))


def _continues(other: Path, path: Path) -> bool:
    """Whether both are numbered files of one split."""
    stems = [p.name.removesuffix(suffix_of(p)) for p in (other, path)]
    return split_of(other) == split_of(path) and all(stem != split_of(path) for stem in stems)


def form_of(file: Path) -> Form:
    """The form of a file, by its suffix or else by its first character."""
    form = _FORMS.get(suffix_of(file))
    if form:
        return form
    _, line = next(lines(file), (0, b""))
    return _FIRST.get(line[:1], "columns")  # type: ignore[return-value]
