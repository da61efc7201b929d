"""Running a stage on a small input, in a process of its own: how long, how much written, how much memory.

It is the stage itself that runs, with its receipts. This module is loaded once by the process from which the
others are forked, with the libraries that models need.
"""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from beirnl.errors import BeirnlError, PrerequisiteError
from beirnl.stages import STAGES
from beirnl.stages.base import Task, execute
from beirnl.store.artifacts import REDUCE, Artifact, Manifest, close_artifact, content_digest

#: Seconds that the units of a probe may take, about.
BUDGET = 4.0
#: Units of a probe grow by this factor, so that the last one that fits into the budget tells the rate.
GROWTH = 4


class Measured(NamedTuple):
    """What a stage took for a small input.

    Attributes:
        rows, seconds: of the last unit, which is the largest: what the first one prepares is not in it.
        reduction: seconds of the reduction.
        all_rows, written: of all units together, the latter in bytes, with the reduction.
        memory: bytes that the process held at most, files that are mapped not counted.
        bare: the same without libraries that had been imported for other stages.
    """

    rows: int
    seconds: float
    reduction: float
    all_rows: int
    written: int
    memory: int
    bare: int


def measure(task: Task, gpu: bool) -> Measured:
    """Run units of a task, the first ones of all, and reduce what they made; the artifact is closed.

    Args:
        task: of a stage, on small inputs; its unit does not matter.
        gpu: whether it is to run on a GPU.

    Raises:
        PrerequisiteError: there is none, or what the stage loads is not on this machine.
    """
    before = _memory()["RssAnon"]
    if gpu:
        _require_gpu()
    stage = STAGES[task.stage]
    try:
        resource = stage.load(task) if stage.load else None
    except BeirnlError:
        raise
    except Exception as error:  # whatever a library says of a model that it cannot load
        raise PrerequisiteError(f"it cannot be loaded ({type(error).__name__}: {error})") from error
    receipts = []
    for unit in range(stage.units(task.spec, task.inputs)):
        receipts.append(execute(stage, replace(task, unit=unit), resource))
        # The first unit prepares what the others find ready, and says little of them.
        if receipts[-1].seconds * (GROWTH if unit else 1) > BUDGET:
            break
    reduced = execute(stage, replace(task, unit=REDUCE), resource) if stage.reduce else None
    close(task.directory)
    status = _memory()
    memory = status["VmHWM"] - status["RssFile"]
    return Measured(
        receipts[-1].rows_in,
        receipts[-1].seconds,
        reduced.seconds if reduced else 0.0,
        sum(receipt.rows_in for receipt in receipts),
        written(task.directory),
        memory,
        _BASE + memory - before,
    )


def close(folder: Path) -> Artifact:
    """Close a small artifact with what is committed, so that it can be read."""
    artifact = Artifact(folder)
    receipts, reduced = tuple(artifact.receipts()), artifact.receipt(REDUCE)
    manifest = Manifest(
        stage="",
        label="",
        key="",
        spec={},
        inputs={},
        versions={},
        content=content_digest(list(receipts), reduced),
        receipts=receipts,
        reduced=reduced,
    )
    close_artifact(folder, manifest)
    return Artifact(folder)


def written(folder: Path) -> int:
    """Bytes of an artifact's parts; a file that has several names counts once."""
    files = (file for part in folder.glob("part-*") for file in (part, *part.rglob("*")) if file.is_file())
    sizes = {(stat.st_dev, stat.st_ino): stat.st_size for stat in (file.stat() for file in files)}
    return sum(sizes.values())


def _memory() -> dict[str, int]:
    """Memory of this process, in bytes, by the names of proc(5)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    fields = [line.split() for line in lines if line.startswith(("VmHWM", "RssAnon", "RssFile"))]
    return {name.rstrip(":"): int(number) << 10 for name, number, _ in fields}


def _require_gpu() -> None:
    import torch

    if not torch.cuda.is_available():
        raise PrerequisiteError("it is to run on a GPU, which this machine lacks")


_BASE = _memory()["RssAnon"]  # of a process that has imported the stages, and nothing else yet
