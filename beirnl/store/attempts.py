"""Attempts at units: a marker each, from before the unit begins until it is done or has failed.

A marker that is left behind is that of a worker that was killed. Its name also says whether the unit was
alone in its worker: only then is the unit the cause beyond doubt.
"""

import os
import time
from collections import Counter
from pathlib import Path

from beirnl.store.artifacts import REDUCE, Artifact, receipt_name

MAX_DEATHS = 3  # of a unit, alone in its worker: Ray would retry it for ever
_RECENT = 60.0  # seconds after which a unit that tells nothing more is taken for dead


def alone_in(run_id: str) -> str:
    """What stands for the run in markers of units that are alone in their worker."""
    return f"{run_id}-alone"


def attempts_in_run(directory: Path, unit: int, run_id: str) -> int:
    """How often this run has begun a unit without finishing it."""
    folder = directory / "attempts"
    start = f"{receipt_name(unit)[:-5]}-{run_id}-"
    return sum(name.startswith(start) for name in os.listdir(folder)) if folder.is_dir() else 0


def rows_in_flight(directory: Path, run_id: str = "") -> int:
    """Rows that units at work have done so far, as far as they tell; of one run, or of any."""
    folder = directory / "attempts"
    names = os.listdir(folder) if folder.is_dir() else []
    return sum(_told(folder / name) for name in names if f"-{run_id}" in name)


def _told(marker: Path) -> int:
    try:
        recent = time.time() - marker.stat().st_mtime < _RECENT
        return int(marker.read_text(encoding="ascii") or 0) if recent else 0
    except (OSError, ValueError):
        return 0


def killed_units(artifact: Artifact) -> list[int]:
    """Units that were begun and are not done; of an artifact at which no worker is."""
    folder = artifact.directory / "attempts"
    begun = {name.partition("-")[0] for name in os.listdir(folder)} if folder.is_dir() else set()
    done = {name.removesuffix(".json") for name in artifact.committed()}
    return sorted(int(unit) for unit in begun - done if unit.isdigit())


def units_set_aside(artifact: Artifact) -> list[int]:
    """Units that a run has set aside, since they killed its workers, and that are not done since then.

    A reduction has the number of :data:`beirnl.store.artifacts.REDUCE`.
    """
    folder = artifact.directory / "attempts"
    names = os.listdir(folder) if folder.is_dir() else []
    deaths = Counter(name.rpartition("-")[0] for name in names if "-alone-" in name)
    found = {name.partition("-")[0] for name, number in deaths.items() if number >= MAX_DEATHS}
    left = found - {name.removesuffix(".json") for name in artifact.committed()}
    return sorted(REDUCE if unit == "reduced" else int(unit) for unit in left)
