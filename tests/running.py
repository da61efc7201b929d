"""Runs experiments in this process or in one of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

from support import ROOT

from beirnl.config import load_experiment
from beirnl.evaluation.records import Report
from beirnl.executors.local import LocalExecutor
from beirnl.pipeline import Pipeline
from beirnl.reporting import gather


def system(kind: str, name: str, **settings: object) -> str:
    """A [[system]] table."""
    return _table("system", kind=kind, name=name, **settings)


def _table(heading: str, **settings: object) -> str:
    lines = [f"{key} = {json.dumps(str(v) if isinstance(v, Path) else v)}" for key, v in settings.items()]
    return "\n".join([f"[[{heading}]]", *lines, ""])


BM25 = system("bm25", "bm25")
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "HF_HUB_OFFLINE": "1",
    "PYTHONPATH": str(ROOT),
}


def experiment(folder: Path, text: str) -> Path:
    """Write an experiment file with its workspace beside it."""
    path = folder / "experiment.toml"
    path.write_text(f'name = "test"\nworkspace = "{folder / "workspace"}"\n{text}', encoding="utf-8")
    return path


def dataset(path: Path, name: str = "own", **settings: object) -> str:
    """A [[dataset]] table."""
    return _table("dataset", name=name, path=path, **settings)


def run(path: Path) -> Pipeline:
    """Run an experiment in this process."""
    pipeline = Pipeline.of(load_experiment(path))
    executor = LocalExecutor()
    pipeline.run(executor)
    executor.close()
    return pipeline


def report(path: Path) -> Report:
    """Run an experiment and gather its report."""
    return gather(run(path))


def ranking(pipeline: Pipeline, system: str = "bm25", **which: str) -> dict[str, list[str]]:
    """Document ids per query, best first."""
    for evaluation in pipeline.graph.evaluations:
        found = {"dataset": evaluation.dataset, "language": evaluation.language, "part": evaluation.part}
        if evaluation.system.name == system and which.items() <= found.items():
            table = evaluation.node.inputs["run"].artifact(pipeline.workspace).table()
            result: dict[str, list[str]] = {}
            for row in table.to_pylist():
                result.setdefault(row["query_id"], []).append(row["doc_id"])
            return result
    raise KeyError(system)


def start(*arguments: object, **environment: str) -> subprocess.Popen:
    """Begin the command line in a process of its own; its error stream can be read."""
    return subprocess.Popen(
        [sys.executable, "-m", "beirnl.cli", *map(str, arguments)],
        env={**os.environ, **ENVIRONMENT, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def beirnl(
    *arguments: object,
    check: int | None = 0,
    timeout: float = 300,
    input: str | None = None,
    **environment: str,
) -> subprocess.CompletedProcess:
    """Run the command line in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "beirnl.cli", *map(str, arguments)],
        env={**os.environ, **ENVIRONMENT, **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=timeout,
        input=input,
    )
    assert check is None or done.returncode == check, done.stdout + done.stderr
    return done
