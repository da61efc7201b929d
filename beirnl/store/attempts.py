"""Attempts at units: a marker each, from before the unit begins until it is done or has failed.

A marker that is left behind is that of a worker that was killed.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path

from beirnl.store.artifacts import Artifact, receipt_name

LOADING = "loading"  # what a marker says before its unit begins
_RECENT = 60.0  # seconds after which a unit that tells nothing more is taken for dead


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


def at_work(directories: Sequence[Path], run_id: str) -> tuple[int, str]:
    """Rows that units of a run have done so far, of several artifacts; and what is done before there are
    any."""
    loading = any(is_loading(directory, run_id) for directory in directories)
    return sum(rows_in_flight(directory, run_id) for directory in directories), LOADING if loading else ""


def is_loading(directory: Path, run_id: str) -> bool:
    """Whether a unit of this run waits for what its worker loads, such as a model."""
    folder = directory / "attempts"
    markers = folder.glob(f"*-{run_id}-*") if folder.is_dir() else ()
    return any(_text(marker) == LOADING for marker in markers)


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


def killed_units(artifact: Artifact) -> list[int]:
    """Units that were begun and are not done; of an artifact at which no worker is."""
    folder = artifact.directory / "attempts"
    begun = {name.partition("-")[0] for name in os.listdir(folder)} if folder.is_dir() else set()
    done = {name.removesuffix(".json") for name in artifact.committed()}
    return sorted(int(unit) for unit in begun - done if unit.isdigit())
