"""Sheets for the tests of the human check."""

from pathlib import Path

from beirnl.audit.labels import Labels
from beirnl.audit.sheet import Head, Item, Sheet, write_sheet


def item(dataset="scifact", id="1", **fields):
    """An item; what is not given is made up."""
    usual = {
        "dataset": dataset,
        "part": "",
        "kind": "document",
        "id": id,
        "language": "nl",
        "source_language": "en",
        "size": 100,
        "status": "ok",
        "source_title": f"Title {id}",
        "source_text": f"A text about {id}.",
        "title": f"Titel {id}",
        "text": f"Een tekst over {id}.",
    }
    return Item(**{**usual, **fields})


def sheet(path: Path, items) -> Path:
    """A sheet with these items."""
    write_sheet(path, Sheet(Head("test", 7, 10), tuple(items)))
    return path


def datasets(**sizes: int) -> list[Item]:
    """Ten items of each dataset, which has so many."""
    return [item(name, str(n), size=size) for name, size in sizes.items() for n in range(10)]


def label(path: Path, annotator: str, items, letters: str) -> None:
    """Labels in the order of items: c, m, j, or a blank for none."""
    names = {"c": "correct", "m": "minor", "j": "major"}
    labels = Labels(path)
    for one, letter in zip(items, letters, strict=True):
        if letter in names:
            labels.append(annotator, one.key, names[letter])
