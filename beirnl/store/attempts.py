"""Attempts at units: a marker each, from before the unit begins until it is done or has failed.

A marker that is left behind is that of a worker that was killed.
"""

import os
import time
from collections import Counter
from pathlib import Path

from beirnl.store.artifacts import Artifact, receipt_name

_RECENT = 60.0  # seconds after which a unit that tells nothing more is taken for dead


def attempts_in_run(directory: Path, unit: int, run_id: str) -> int:
    """How often this run has begun a unit without finishing it."""
    folder = directory / "attempts"
    start = f"{receipt_name(unit)[:-5]}-{run_id}-"
    return sum(name.startswith(start) for name in os.listdir(folder)) if folder.is_dir() else 0


def attempts_by_unit(directory: Path, run_id: str) -> Counter[str]:
    """How many attempts of a run each unit has whose marker is there, by the name of its receipt without
    suffix: those at work and those that have died."""
    folder = directory / "attempts"
    names = os.listdir(folder) if folder.is_dir() else []
    return Counter(name.partition("-")[0] for name in names if f"-{run_id}-" in name)


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
