"""Where retrieval sets come from: a folder, or what is made a folder first; one table, by prefix.

hub:ORG/NAME@REVISION      Hugging Face's hub           beirnl.datasets.hub
irds:ID                    ir_datasets                  beirnl.datasets.irds
anything else              a folder                     beirnl.datasets.beir
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from beirnl import registry
from beirnl.config.paths import PACKAGE, resolve_path
from beirnl.datasets import beir, hub, irds
from beirnl.errors import DataError, PrerequisiteError
from beirnl.registry import DatasetEntry

#: What makes a folder of a name, and says what it is: ``hub:ORG/NAME@COMMIT``.
FETCH: dict[str, Callable[[str], tuple[Path, str]]] = {"hub": hub.fetch, "irds": irds.fetch}


class Place(NamedTuple):
    """A retrieval set (or a part of one) on this machine.

    Attributes:
        folder: read through :mod:`beirnl.datasets.beir`.
        source: where it is from and at which revision; empty for a folder of the user's.
    """

    folder: Path
    source: str = ""


def locate(path: str, file: Path) -> dict[str, Place]:
    """The sets that a path of an experiment file names, by part; ``""`` where there are no parts.

    Args:
        path: a folder, or ``PREFIX:NAME``; a hub dataset without a revision has that of the registry, if any.
        file: the experiment file, against whose folder a relative path is.

    Raises:
        DataError: no retrieval set is there.
        PrerequisiteError: it cannot be fetched.
    """
    prefix, colon, name = path.partition(":")
    if not colon or prefix not in FETCH:
        return _places(resolve_path(path, file))
    if prefix == "hub" and "@" not in name:
        revisions = {entry.hub: entry.revision for entry in registry.datasets().values() if entry.revision}
        name += f"@{revisions[name]}" if name in revisions else ""
    return _places(*FETCH[prefix](name))


def find(name: str, file: Path) -> tuple[DatasetEntry | None, dict[str, Place]]:
    """What a user calls a dataset: an entry of the registry, else a folder or ``PREFIX:NAME``.

    Args:
        name: as the user wrote it.
        file: as for :func:`locate`.

    Raises:
        ConfigError: it is neither; the nearest name is given.
        DataError: as :func:`locate`; PrerequisiteError: as :func:`locate`.
    """
    entry = registry.dataset(name)
    if entry is not None:
        return entry, locate_entry(entry, file)
    if name.partition(":")[0] not in FETCH and not resolve_path(name, file).exists():
        raise registry.unknown_dataset(name)
    return None, locate(name, file)


def twins(entry: DatasetEntry | None, name: str | None, file: Path) -> dict[str, Place]:
    """The same set in the language that it was translated from, by part; empty where none is known.

    Args:
        entry: of the set itself.
        name: what the user calls its twin; by default the ``source`` of the entry, if it can be had.
        file: as for :func:`locate`.
    """
    if name:
        return find(name, file)[1]
    source = getattr(entry, "source", "")
    try:
        return find(source, file)[1] if source else {}
    except (DataError, PrerequisiteError):
        return {}


def locate_entry(entry: DatasetEntry, file: Path) -> dict[str, Place]:
    """The sets of a registry entry by part: in its folder, or from the hub where there is no such folder.

    Args:
        entry: of the registry.
        file: as for :func:`locate`.

    Raises:
        DataError: as :func:`locate`; PrerequisiteError: as :func:`locate`.
    """
    path = entry.path.replace("{package}", str(PACKAGE)).replace("{data}", "${BEIRNL_DATA}")
    folder = resolve_path(path, file)
    if folder.is_dir():
        return _places(folder)
    if entry.hub:
        try:
            found = locate(
                f"hub:{entry.hub}@{entry.revision}" if entry.revision else f"hub:{entry.hub}", file
            )
        except PrerequisiteError as error:
            remedy = f"{error.remedy}; or put the set into {folder}"
            raise PrerequisiteError(error.what, where=error.where, remedy=remedy) from error
        return _one_part(found, getattr(entry, "hub_split", ""), entry)
    parts = {part: registry.dataset(f"{entry.name}-{part}") for part in entry.parts}
    if not parts or not all(other and other.hub for other in parts.values()):
        return _places(folder)  # says that it is not there
    return {part: locate_entry(other, file)[""] for part, other in parts.items() if other}


def _one_part(found: dict[str, Place], part: str, entry: DatasetEntry) -> dict[str, Place]:
    """The part of a repository that an entry stands for; all, if it names none."""
    if not part:
        return found
    if part not in found:
        raise DataError(
            f"has no part {part!r} (present: {', '.join(found)})",
            where=f"hub:{entry.hub}",
            remedy="check the dataset's revision",
        )
    return {"": found[part]}


def _places(folder: Path, source: str = "") -> dict[str, Place]:
    return {part: Place(place, source) for part, place in beir.locate(folder).items()}
