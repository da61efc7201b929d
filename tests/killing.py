"""Runs that are killed: processes that run one stage, and what is to be the same after a kill."""

import hashlib
import multiprocessing
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from running import ENVIRONMENT

from beirnl.api import run_nodes
from beirnl.config import load_experiment
from beirnl.pipeline import Pipeline
from beirnl.stages import STAGES
from beirnl.store.artifacts import Artifact

#: What names an attempt in receipts and manifests, or says when it was, and not its result.
ATTEMPT = {"attempt", "file", "files", "seconds", "finished", "worker"}


def processes() -> Any:
    """Makes processes, forked from one that has imported what takes seconds to import."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["sentence_transformers", "usearch.index", "killing"])
    return context


def drive(file: Path, stage: str, workers: int, log: Path, environment: Mapping[str, str]) -> None:
    """Run a stage (``all``: every one) and what it needs, as ``beirnl run`` does; its words go to ``log``."""
    os.environ.update({**ENVIRONMENT, **environment})
    with log.open("ab") as out:
        for stream in (1, 2):
            os.dup2(out.fileno(), stream)
    experiment = load_experiment(file)
    runtime = experiment.runtime.model_copy(update={"workers": workers})
    pipeline = Pipeline.of(experiment.model_copy(update={"runtime": runtime}))
    chosen = [node for node in pipeline.graph.nodes.values() if stage in (node.stage, "all")]
    run_nodes(pipeline, None, pipeline.needed(chosen))


@dataclass(frozen=True)
class Scene:
    """An experiment that is run and killed, in a folder of its own."""

    file: Path

    @cached_property
    def pipeline(self) -> Pipeline:
        return Pipeline.of(load_experiment(self.file))

    @property
    def stages(self) -> list[str]:
        there = {node.stage for node in self.pipeline.graph.nodes.values()}
        return [stage for stage in STAGES if stage in there]

    def folder(self, stage: str) -> Path:
        return self.pipeline.workspace.root / "artifacts" / stage

    def artifacts(self, stage: str) -> list[Artifact]:
        nodes = self.pipeline.graph.nodes.values()
        return [node.artifact(self.pipeline.workspace) for node in nodes if node.stage == stage]

    def is_done(self, stage: str) -> bool:
        return all((artifact.directory / "manifest.json").exists() for artifact in self.artifacts(stage))

    def markers(self, stage: str) -> set[str]:
        """Names of the attempts that have begun and not ended."""
        return {path.name for path in self.folder(stage).rglob("attempts/*")}

    def receipts(self, stage: str) -> dict[str, tuple[int, int, bytes]]:
        """Receipts that are there: which file it is, and what it says."""
        found = {}
        for path in self.folder(stage).rglob("receipts/*.json"):
            if not path.name.startswith("."):
                data, stat = path.read_bytes(), path.stat()
                found[str(path)] = stat.st_ino, stat.st_mtime_ns, data
        return found

    def contents(self, stage: str) -> dict[str, Any]:
        """What is to be equal: every manifest but for its attempts, and the bytes of every part."""
        found: dict[str, Any] = {}
        for artifact in self.artifacts(stage):
            name = str(artifact.directory.relative_to(self.folder(stage)))
            manifest = artifact.manifest
            reduced = [manifest.reduced] if manifest.reduced else []
            found[name] = _without_attempts(manifest.model_dump())
            for receipt in [*manifest.receipts, *reduced]:
                for number, part in enumerate(receipt.parts):
                    for file, sha256 in _bytes_of(artifact.directory / part.file):
                        found[f"{name} {receipt.unit} {number} {file}"] = sha256
        return found

    def left(self, stage: str) -> list[Path]:
        """Files that belong to no manifest."""
        found: list[Path] = []
        for artifact in self.artifacts(stage):
            manifest = artifact.manifest
            everything = [*manifest.receipts, *([manifest.reduced] if manifest.reduced else [])]
            named = {part.file for receipt in everything for part in receipt.parts}
            for path in artifact.directory.iterdir():
                found += [path] if path.name not in named | {"receipts", "manifest.json"} else []
            found += [path for path in artifact.directory.glob("receipts/*") if path.name.startswith(".")]
        return found


def _without_attempts(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_attempts(one) for name, one in value.items() if name not in ATTEMPT}
    return [_without_attempts(one) for one in value] if isinstance(value, list | tuple) else value


def _bytes_of(part: Path) -> Iterator[tuple[str, str]]:
    files = sorted(path for path in part.rglob("*") if path.is_file()) if part.is_dir() else [part]
    for file in files:
        name = str(file.relative_to(part)) if part.is_dir() else ""
        yield name, hashlib.sha256(file.read_bytes()).hexdigest()
