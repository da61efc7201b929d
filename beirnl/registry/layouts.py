"""What the tables of a paper are made of: rows, columns and groups, in ``tables.toml``."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from beirnl.errors import ConfigError, nearest
from beirnl.registry.entries import Entry, read
from beirnl.registry.profiles import ProfileEntry, profiles


class Row(Entry):
    """One row of a table.

    Attributes:
        system: ``BM25``, a model's registry name, or ``FIRST+MODEL``; empty in a table of datasets.
        dataset: registry name of the original; empty in other tables.
        label: what the row is called; empty: its system.
        group: of rows that stand together.
        language: of the texts; empty: that of the table.
        profile: in place of the table's, such as a profile of BM25.
        citation: who published the dataset.
    """

    system: str = ""
    dataset: str = ""
    label: str = ""
    group: str = ""
    language: str = ""
    profile: str = ""
    citation: str = ""


class Layout(Entry):
    """One table.

    Attributes:
        name: what ``--table`` calls it.
        form: what its values are: ``datasets``, ``models``, ``scores`` or ``back-translation``.
        title: heading.
        head: of the first column.
        language: of rows that name none.
        rows: in order.
        others: whether systems of the experiment that no row names follow below.
        datasets: columns, by the originals' registry names.
        measures: one block of rows each.
        decimals: digits of a value in points of 100.
        mean: datasets over which the last column averages; empty: no such column.
        profile: of several systems that fit a row, the one under this profile is meant.
        published: table of published figures with the same cells, or empty.
    """

    name: str
    form: Literal["datasets", "models", "scores", "back-translation"]
    title: str
    head: str = "model"
    language: str = ""
    rows: tuple[Row, ...] = ()
    others: bool = False
    datasets: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    decimals: int = 2
    mean: tuple[str, ...] = ()
    profile: str = "paper"
    published: str = ""


class Source(Entry):
    """Where published figures are from.

    Attributes:
        name: what ``--compare`` calls it.
        title: in tables.
        files: tables of published figures; of two figures for one thing the first holds.
        translation: model that translated its texts, or empty.
    """

    name: str
    title: str
    files: tuple[str, ...]
    translation: str = ""

    @property
    def profile(self) -> ProfileEntry:
        """The other conditions of its figures."""
        return profiles()[self.name]


def layout(name: str) -> Layout:
    """A table by its name.

    Raises:
        ConfigError: there is none; those that there are are named.
    """
    found = layouts()
    if name not in found:
        raise ConfigError(f"unknown table {name!r}", remedy=f"tables are: {', '.join(found)}")
    return found[name]


@cache
def layouts() -> Mapping[str, Layout]:
    """All tables by name, in the file's order."""
    entries: dict[str, dict[str, Any]] = {}
    for name, facts in _read()["layout"].items():
        like = facts.pop("like", None)
        entries[name] = {**entries.get(like, {}), **facts, "name": name}
    return {name: Layout(**facts) for name, facts in entries.items()}


def source(name: str) -> Source:
    """A source of published figures by its name.

    Raises:
        ConfigError: there is none; the nearest one is named.
    """
    found = _read()["source"]
    if name not in found:
        raise ConfigError(f"unknown source of published figures {name!r}", remedy=nearest(name, found))
    return Source(name=name, **found[name])


def heading(dataset: str) -> str:
    """How tables call a dataset; its own name where they do not know it."""
    return str(_read()["heading"].get(dataset, dataset))


def stands_for(model: str) -> str:
    """The model whose published figures stand beside those of ``model``: itself, or what it was made from."""
    return str(_read()["stands_for"].get(model, model))


def _read() -> dict[str, Any]:
    return read("tables.toml")
