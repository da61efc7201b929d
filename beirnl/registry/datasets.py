"""The datasets of the registry, and the names by which they are found."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from beirnl.errors import ConfigError, nearest
from beirnl.registry.entries import Entry, read
from beirnl.wording import near


class Counts(Entry):
    """How many a dataset has of what, by its source: asserted after the import.

    Attributes:
        queries: judged queries of the split.
        documents: of the corpus.
        relevant: pairs of a query and a document whose label is more than 0.
    """

    queries: int
    documents: int
    relevant: int

    @property
    def relevant_per_query(self) -> float:
        """Mean number of relevant documents of a query (BEIR-NL, Table 1: Avg. D/Q)."""
        return self.relevant / self.queries

    def unlike(self, found: "Counts") -> str:
        """How what was found differs from this, as ``30 queries and not 300``; nothing if it does not."""
        stated = self.model_dump()
        return ", ".join(
            f"{number:,} {name} and not {stated[name]:,}"
            for name, number in found.model_dump().items()
            if number != stated[name]
        )


class DatasetEntry(Entry):
    """One dataset.

    Attributes:
        name: what an experiment file calls it.
        path: folder in BEIR's layout; ``{package}`` is the installed package, ``{data}`` the data folder.
        language: ISO 639-1 code of corpus and queries.
        source: the entry of the same set in the language that it was translated from, or empty.
        whole: the entry of the set whose part it is, or empty.
        split: qrels file that is evaluated.
        domain: as given to the translating LLM (BEIR-NL, Table 1).
        licence: SPDX identifier, as BEIR states it (BEIR-NL, appendix A) for BEIR's sets.
        hub: ``ORG/NAME`` on the Hugging Face hub, or empty.
        revision: commit on the hub; empty if no source pins it.
        hub_split: the split of corpus and queries there, where several sets share a repository.
        aliases: other names: MTEB's task, BEIR's folder. Case does not matter.
        remove_self_matches: whether the ``mteb`` profile removes hits whose id is the query's (the task's
            ``ignore_identical_ids``).
        parts: sub-folders that are scored one by one and averaged.
        counts: what it must hold; None where no source says. Those of a dataset in parts are sums.
    """

    name: str
    path: str
    language: str
    source: str = ""
    whole: str = ""
    split: str = "test"
    domain: str
    licence: str
    hub: str = ""
    revision: str = ""
    hub_split: str = ""
    aliases: tuple[str, ...] = ()
    remove_self_matches: bool = False
    parts: tuple[str, ...] = ()
    counts: Counts | None = None

    @property
    def original(self) -> str:
        """The name of the set in its original language: what all its translations have in common."""
        return self.source or self.name

    @property
    def pinned(self) -> str:
        """``ORG/NAME@REVISION`` of the hub, or nothing."""
        return f"{self.hub}@{self.revision or 'unpinned'}" if self.hub else ""


#: What an entry has from its source, and from its whole, where it does not say otherwise.
_OF_SOURCE = ("domain", "licence", "split", "remove_self_matches", "parts", "counts")
_OF_WHOLE = ("language", "domain", "licence", "split", "remove_self_matches", "hub", "revision")


@cache
def datasets() -> dict[str, DatasetEntry]:
    """All datasets by name, in the file's order."""
    tables = read("datasets.toml")
    entries = {name: DatasetEntry(**_facts(name, tables)) for name in tables}
    for name, entry in entries.items():
        parts = [other.counts for other in entries.values() if other.whole == name and other.counts]
        if parts:
            entries[name] = entry.model_copy(update={"counts": _sum(parts)})
    return entries


def _facts(name: str, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """An entry's own facts, and those it has from others."""
    own = tables[name]
    facts: dict[str, Any] = {"name": name, "path": f"{{data}}/{name}"}
    if source := own.get("source"):
        facts |= _some(_facts(source, tables), _OF_SOURCE)
    if whole := own.get("whole"):
        above = _facts(whole, tables)
        part = name.removeprefix(f"{above.get('source', whole)}-").removesuffix(f"-{above['language']}")
        facts |= _some(above, _OF_WHOLE) | {"path": f"{above['path']}/{part}"}
    return facts | dict(own)


def _some(facts: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: facts[name] for name in names if name in facts}


def _sum(counts: Iterable[Counts]) -> Counts:
    tables = [part.model_dump() for part in counts]
    return Counts(**{name: sum(table[name] for table in tables) for name in Counts.model_fields})


@cache
def _names() -> dict[str, str]:
    """Names of entries by all the names that they are found by, in lower case."""
    found: dict[str, str] = {}
    for entry in datasets().values():
        hub = () if entry.whole and entry.hub_split else (entry.hub,)
        for name in (entry.name, *entry.aliases, *hub):
            if name and found.setdefault(name.casefold(), entry.name) != entry.name:
                raise ValueError(f"datasets {entry.name!r} and {found[name.casefold()]!r} share {name!r}")
    return found


def dataset(name: str) -> DatasetEntry | None:
    """The entry of a dataset by its name, an alias or its hub path, or ``None``.

    A user's own folder needs no entry; who needs one calls :func:`find_dataset`.
    """
    found = _names().get(name.casefold())
    return datasets()[found] if found else None


def find_dataset(name: str) -> DatasetEntry:
    """The entry of a dataset by its name, MTEB's or BEIR's name of it, or its hub path.

    Raises:
        ConfigError: no such name; the nearest one is named, or all but those of parts.
    """
    entry = dataset(name)
    if entry is None:
        raise ConfigError(f"unknown dataset {name!r}", remedy=near_datasets(name))
    return entry


def part_of(entry: DatasetEntry, part: str) -> DatasetEntry | None:
    """The entry of a part of a dataset, by the part's name (``android``); None if it has none."""
    path = f"{entry.path}/{part}"
    parts = (other for other in datasets().values() if other.whole == entry.name)
    return next((other for other in parts if other.path == path), None)


def near_datasets(name: str, otherwise: str = "") -> str:
    """Which datasets could have been meant, in words; ``otherwise`` as for :func:`nearest`."""
    entries = datasets().values()
    names = [n for entry in entries for n in (entry.name, *entry.aliases)]
    wholes = [entry.name for entry in entries if not entry.whole]
    return nearest(name, names if near(name, names) else wholes, otherwise)


def unknown_dataset(text: str) -> ConfigError:
    """The error for what a user calls a dataset and is neither a name nor a folder that is there.

    A text with a separator can only be meant as a path, of a folder or of the hub: names of datasets are not
    listed for it.
    """
    if not {"/", "\\"} & set(text):
        return ConfigError(
            f"unknown dataset {text!r}", remedy=near_datasets(text, "give a folder in BEIR form")
        )
    on_hub = f", hub:{text}" if re.fullmatch(r"\w[\w.-]*/[\w.-]+", text) else ""
    return ConfigError(
        "there is no such folder",
        where=text,
        remedy=f"give a folder in BEIR form{on_hub}, or a name that `beirnl datasets` lists",
    )
