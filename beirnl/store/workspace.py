"""The workspace: where artifacts, the journal, reports and the locks of experiments lie."""

import json
import shutil
from pathlib import Path

from beirnl.errors import StoreError
from beirnl.store.artifacts import Artifact
from beirnl.store.files import disk_errors, write_atomically
from beirnl.store.keys import FileDigests
from beirnl.store.lease import Lease


class Workspace:
    """A workspace folder.

    Args:
        root: the folder; it is made when something is first written.

    Raises:
        StoreError: ``root``, or a folder above it, is a file.
    """

    def __init__(self, root: Path) -> None:
        file = next((path for path in (root, *root.parents) if path.is_file()), None)
        if file:
            raise StoreError("is a file", where=file, remedy="set workspace to a folder, or move that away")
        self.root = root

    @property
    def journal(self) -> Path:
        """Folder of answers already paid for."""
        return self.root / "journal"

    @property
    def lease_path(self) -> Path:
        """The file by which a run holds the workspace."""
        return self.root / "lease.json"

    def artifact(self, stage: str, label: str, key: str) -> Artifact:
        """The artifact that ``stage`` makes for ``label`` (``dataset/language``) under ``key``."""
        return Artifact(self.root / "artifacts" / stage / label / key)

    def discard(self, artifact: Artifact) -> None:
        """Remove an artifact that is stale."""
        shutil.rmtree(artifact.directory, ignore_errors=True)

    def digests(self) -> FileDigests:
        """Digests of input files, remembered in this workspace."""
        return FileDigests(self.root / "digests.json")

    def report_folder(self, experiment: str) -> Path:
        """Where the written reports of an experiment lie."""
        return self.root / "reports" / experiment

    def lock(self, experiment: str, keys: dict[str, str]) -> None:
        """Record which keys the names of an experiment stand for."""
        path = self.root / "experiments" / f"{experiment}.lock.json"
        with disk_errors(self.root):
            write_atomically(path, json.dumps(keys, indent=1, sort_keys=True).encode())

    def events_path(self, experiment: str) -> Path:
        """Where the events of an experiment's runs are appended; see :mod:`beirnl.store.events`."""
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

    def _failures_path(self, experiment: str) -> Path:
        return self.root / "experiments" / f"{experiment}.failed.json"

    def is_running(self) -> bool:
        """Whether a run holds the workspace now."""
        return Lease.is_live(self.lease_path)
