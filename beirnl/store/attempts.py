"""Attempts at units: a marker each, from before the unit begins until it is done or has failed.

A marker that is left behind is that of a worker that was killed. Its name also says whether the unit was
alone in its worker: only then is the unit the cause beyond doubt.
"""

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from beirnl.store.places import Place, RemotePath, names

if TYPE_CHECKING:
    from beirnl.store.artifacts import Artifact

REDUCE = -1  # the unit number of an artifact's reduction
MAX_DEATHS = 3  # of a unit, alone in its worker: Ray would retry it for ever
LOADING = "loading"  # what a marker says before its unit begins
_RECENT = 60.0  # seconds after which a unit that tells nothing more is taken for dead


def unit_name(unit: int) -> str:
    """What a unit is called in names of files."""
    return "reduced" if unit == REDUCE else f"{unit:05d}"


def unit_in_words(unit: int) -> str:
    """What a unit is called in a line for the user."""
    return "the reduction" if unit == REDUCE else f"unit {unit}"


def alone_in(run_id: str) -> str:
    """What stands for the run in markers of units that are alone in their worker."""
    return f"{run_id}-alone"


def marker(directory: Place, unit: int, run_id: str, attempt: str) -> Place:
    """The marker of an attempt; in an object store in a folder per unit, so that one request lists these."""
    folder, name = directory / "attempts", f"{run_id}-{attempt}"
    if isinstance(folder, RemotePath):
        return folder / unit_name(unit) / name
    return folder / f"{unit_name(unit)}-{name}"


def outlives_its_unit(directory: Place) -> bool:
    """Whether markers of units that are done stay until their artifact is, as in an object store."""
    return isinstance(directory, RemotePath)


def attempts_in_run(directory: Place, unit: int, run_id: str) -> int:
    """How often this run has begun a unit without finishing it."""
    start = marker(directory, unit, run_id, "")
    return sum(name.startswith(start.name) for name in names(start.parent))


def attempts_by_unit(directory: Place, run_id: str) -> Counter[str]:
    """How many attempts of a run each unit has whose marker is there, by the name of its receipt without
    suffix: those at work and those that have died."""
    return Counter(unit for unit, attempt in _markers(directory) if attempt.startswith(f"{run_id}-"))


def rows_in_flight(directory: Place, run_id: str = "") -> int:
    """Rows that units at work have done so far, as far as they tell; of one run, or of any."""
    folder = directory / "attempts"
    if isinstance(folder, RemotePath):
        return 0  # where nobody tells
    return sum(_told(folder / name) for name in names(folder) if f"-{run_id}" in name)


def at_work(directories: Sequence[Place], run_id: str) -> tuple[int, str]:
    """Rows that units of a run have done so far, of several artifacts; and what is done before there are
    any."""
    loading = any(is_loading(directory, run_id) for directory in directories)
    return sum(rows_in_flight(directory, run_id) for directory in directories), LOADING if loading else ""


def is_loading(directory: Place, run_id: str) -> bool:
    """Whether a unit of this run waits for what its worker loads, such as a model; as far as it tells."""
    folder = directory / "attempts"
    if isinstance(folder, RemotePath) or not folder.is_dir():
        return False
    return any(_text(marker) == LOADING for marker in folder.glob(f"*-{run_id}-*"))


def _text(marker: Path) -> str:
    try:
        return marker.read_text(encoding="ascii")
    except OSError:  # the unit has just been done
        return ""


def _told(marker: Path) -> int:
    try:
        recent = time.time() - marker.stat().st_mtime < _RECENT
    except OSError:
        return 0
    told = _text(marker)
    return int(told) if recent and told.isdigit() else 0


def _markers(directory: Place) -> list[tuple[str, str]]:
    """Names of the units that were begun, and of the run and attempt that began each."""
    folder = directory / "attempts"
    if isinstance(folder, RemotePath):
        paths = [entry.path.split("/") for entry in folder.entries(recursive=True) if entry.is_file]
        return [(path[-2], path[-1]) for path in paths]
    split = (name.partition("-") for name in names(folder))
    return [(unit, attempt) for unit, _, attempt in split]


def killed_units(artifact: "Artifact") -> list[int]:
    """Units that were begun and are not done; of an artifact at which no worker is."""
    begun = {unit for unit, _ in _markers(artifact.directory)}
    return sorted(int(unit) for unit in begun - _done(artifact) if unit.isdigit())


def units_set_aside(artifact: "Artifact") -> list[int]:
    """Units that a run has set aside, since they killed its workers, and that are not done since then.

    A reduction has the number :data:`REDUCE`.
    """
    alone = [
        (unit, name.rpartition("-")[0]) for unit, name in _markers(artifact.directory) if "-alone-" in name
    ]
    found = {unit for (unit, _), deaths in Counter(alone).items() if deaths >= MAX_DEATHS}
    return sorted(REDUCE if unit == "reduced" else int(unit) for unit in found - _done(artifact))


def _done(artifact: "Artifact") -> set[str]:
    return {name.removesuffix(".json") for name in artifact.committed()}
