"""Attempts at units: a marker each, from before the unit begins until it is done or has failed.

A marker that is left behind is that of a worker that was killed.
"""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from beirnl.store.places import Place, RemotePath, names

if TYPE_CHECKING:
    from beirnl.store.artifacts import Artifact

REDUCE = -1  # the unit number of an artifact's reduction
_RECENT = 60.0  # seconds after which a unit that tells nothing more is taken for dead


def unit_name(unit: int) -> str:
    """What a unit is called in names of files."""
    return "reduced" if unit == REDUCE else f"{unit:05d}"


def marker(directory: Place, unit: int, run_id: str, attempt: str) -> Place:
    """The marker of an attempt; in an object store in a folder per unit, so that one request lists these."""
    folder, name = directory / "attempts", f"{run_id}-{attempt}"
    if isinstance(folder, RemotePath):
        return folder / unit_name(unit) / name
    return folder / f"{unit_name(unit)}-{name}"


def attempts_in_run(directory: Place, unit: int, run_id: str) -> int:
    """How often this run has begun a unit without finishing it."""
    start = marker(directory, unit, run_id, "")
    return sum(name.startswith(start.name) for name in names(start.parent))


def rows_in_flight(directory: Place, run_id: str = "") -> int:
    """Rows that units at work have done so far, as far as they tell; of one run, or of any."""
    folder = directory / "attempts"
    if isinstance(folder, RemotePath):
        return 0  # where nobody tells
    return sum(_told(folder / name) for name in names(folder) if f"-{run_id}" in name)


def _told(marker: Path) -> int:
    try:
        recent = time.time() - marker.stat().st_mtime < _RECENT
        return int(marker.read_text(encoding="ascii") or 0) if recent else 0
    except (OSError, ValueError):
        return 0


def killed_units(artifact: "Artifact") -> list[int]:
    """Units that were begun and are not done; of an artifact at which no worker is."""
    folder = artifact.directory / "attempts"
    if isinstance(folder, RemotePath):
        found = folder.entries(recursive=True)
        begun = {entry.path.split("/")[-2] for entry in found if entry.is_file}
    else:
        begun = {name.partition("-")[0] for name in names(folder)}
    done = {name.removesuffix(".json") for name in artifact.committed()}
    return sorted(int(unit) for unit in begun - done if unit.isdigit())
