"""The workspace: where artifacts, the journal, reports and the locks of experiments lie."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from beirnl.errors import StoreError
from beirnl.store import claims
from beirnl.store.artifacts import Artifact
from beirnl.store.claims import Claim
from beirnl.store.files import disk_errors, write_atomically
from beirnl.store.keys import FileDigests
from beirnl.store.lease import Lease, alive_here
from beirnl.store.places import Place, RemotePath, place_of, remove_tree


class Workspace:
    """A workspace folder.

    Args:
        root: the folder, or its address in an object store; it is made when something is first written.

    Raises:
        StoreError: ``root``, or a folder above it, is a file.
    """

    def __init__(self, root: Path | RemotePath | str) -> None:
        self.root = place_of(root)
        above = (self.root, *self.root.parents) if isinstance(self.root, Path) else ()
        if file := next((path for path in above if path.is_file()), None):
            raise StoreError("is a file", where=file, remedy="set workspace to a folder, or move that away")

    @property
    def journal(self) -> Place:
        """Folder of answers already paid for."""
        return self.root / "journal"

    @property
    def lease_path(self) -> Place:
        """The file, or folder of claims, by which a run holds the workspace."""
        return self.root / ("lease" if isinstance(self.root, RemotePath) else "lease.json")

    def artifact(self, stage: str, label: str, key: str) -> Artifact:
        """The artifact that ``stage`` makes for ``label`` (``dataset/language``) under ``key``."""
        return Artifact(self.root / "artifacts" / stage / label / key)

    def discard(self, artifact: Artifact) -> None:
        """Remove an artifact that is stale."""
        remove_tree(artifact.directory)

    def digests(self) -> FileDigests:
        """Digests of input files, remembered in this workspace."""
        return FileDigests(self.root / "digests.json")

    def report_folder(self, experiment: str) -> Place:
        """Where the written reports of an experiment lie."""
        return self.root / "reports" / experiment

    def lock(self, experiment: str, keys: dict[str, str]) -> None:
        """Record which keys the names of an experiment stand for."""
        path = self.root / "experiments" / f"{experiment}.lock.json"
        with disk_errors(self.root):
            write_atomically(path, json.dumps(keys, indent=1, sort_keys=True).encode())

    def events_path(self, experiment: str) -> Place:
        """Where the events of an experiment's runs are: a file, or a folder in an object store; see
        :mod:`beirnl.store.events`."""
        return self.root / "experiments" / f"{experiment}.events.jsonl"

    def failures(self, experiment: str) -> dict[str, str]:
        """Why systems of an experiment were left out of its last run, by name."""
        try:
            return dict(json.loads(self._failures_path(experiment).read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError):
            return {}

    def record_failures(self, experiment: str, reasons: dict[str, str]) -> None:
        """Write down why systems were left out."""
        path = self._failures_path(experiment)
        if reasons or path.exists():
            with disk_errors(self.root):
                write_atomically(path, json.dumps(reasons, indent=1, sort_keys=True).encode())

    def _failures_path(self, experiment: str) -> Place:
        return self.root / "experiments" / f"{experiment}.failed.json"

    def lease(self, say: Callable[[str], None]) -> AbstractContextManager[object]:
        """Hold the workspace for the length of a ``with`` block.

        Args:
            say: called with a line for the user while another holder is being watched.

        Raises:
            StoreError: another run holds it; names it.
        """
        place = self.lease_path
        return Claim(place, say) if isinstance(place, RemotePath) else Lease(place, say)

    def holder(self) -> dict[str, Any] | None:
        """The process that holds the workspace, or None."""
        place = self.lease_path
        return claims.holder(place) if isinstance(place, RemotePath) else Lease.holder(place)

    def is_running(self) -> bool:
        """Whether a run holds the workspace now, as far as this host can tell at once."""
        found = self.holder()
        return found is not None and alive_here(found) is not False
