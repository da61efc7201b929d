"""Running a stage on a small input, in a process of its own: how long, how much written, how much memory.

It is the stage itself that runs, with its receipts. This module is loaded once by the process from which the
others are forked, with the libraries that models need.
"""

import resource
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from beirnl.errors import BeirnlError, PrerequisiteError
from beirnl.stages import STAGES
from beirnl.stages.base import Task, execute
from beirnl.store.artifacts import REDUCE, Artifact, Manifest, Receipt, close_artifact, content_digest
from beirnl.store.places import Place, RemotePath

#: Seconds that the units of a probe may take, about.
BUDGET = 4.0
#: Units of a probe grow by this factor, so that the last one that fits into the budget tells the rate.
GROWTH = 4
_LOOK = 0.005  # seconds between two looks at the memory


class Measured(NamedTuple):
    """What a stage took for a small input.

    Attributes:
        units: rows, seconds and bytes of each unit. The last one is the largest, and tells the rate: what
            the first one prepares is not in it.
        reduction, reduced: seconds and bytes of the reduction.
        memory: bytes that the process held at most, files that are mapped not counted.
        bare: the same without libraries that had been imported for other stages.
    """

    units: list[tuple[int, float, int]]
    reduction: float
    reduced: int
    memory: int
    bare: int

    @property
    def rows(self) -> int:
        """Of the last unit."""
        return self.units[-1][0]

    @property
    def seconds(self) -> float:
        """Of the last unit."""
        return self.units[-1][1]


def measure(task: Task, gpu: bool) -> Measured:
    """Run units of a task, the first ones of all, and reduce what they made; the artifact is closed.

    Args:
        task: of a stage, on small inputs; its unit does not matter.
        gpu: whether it is to run on a GPU.

    Raises:
        PrerequisiteError: there is none, or what the stage loads is not on this machine.
    """
    if gpu:
        _require_gpu()
    before = private_memory()
    with _watched() as peak:
        receipts, reduced = _run(task)
    close(task.directory)
    memory = max(peak)
    return Measured(
        [(one.rows_in, one.seconds, written(task.directory, [one])) for one in receipts],
        reduced.seconds if reduced else 0.0,
        written(task.directory, [*receipts, reduced]) - written(task.directory, receipts) if reduced else 0,
        memory,
        _BASE + memory - before,
    )


def _run(task: Task) -> tuple[list[Receipt], Receipt | None]:
    """Receipts of the units and of the reduction."""
    stage = STAGES[task.stage]
    try:
        loaded = stage.load(task) if stage.load else None
    except BeirnlError:
        raise
    except Exception as error:  # whatever a library says of a model that it cannot load
        raise PrerequisiteError(f"it cannot be loaded ({type(error).__name__}: {error})") from error
    units = stage.units(task.spec, task.inputs)
    if units == 1:  # it is run twice, as the first time prepares what the second one finds ready
        first = task.directory.parent / f"{task.directory.name}.first"
        execute(stage, replace(task, directory=first, unit=0), lambda: loaded)
    receipts = []
    for unit in range(units):
        receipts.append(execute(stage, replace(task, unit=unit), lambda: loaded))
        if receipts[-1].seconds * (GROWTH if unit else 1) > BUDGET:
            break
    if stage.reduce is None:
        return receipts, None
    return receipts, execute(stage, replace(task, unit=REDUCE), lambda: loaded)


def close(folder: Place) -> Artifact:
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


def written(folder: Place, receipts: Iterable[Receipt]) -> int:
    """Bytes of the parts of receipts; a file that has several names counts once."""
    if isinstance(folder, RemotePath):
        return sum(file.size for one in receipts for part in one.parts for file in part.files)
    parts = [folder / part.file for receipt in receipts for part in receipt.parts]
    files = (file for part in parts for file in (part, *part.rglob("*")) if file.is_file())
    sizes = {(stat.st_dev, stat.st_ino): stat.st_size for stat in (file.stat() for file in files)}
    return sum(sizes.values())


def private_memory() -> int:
    """Memory of this process in bytes, without files that it has mapped; see proc(5), ``statm``."""
    _, resident, mapped, *_ = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return (int(resident) - int(mapped)) * resource.getpagesize()


@contextmanager
def _watched() -> Iterator[list[int]]:
    """What the process holds while the block runs, looked at all the time."""
    seen, end = [private_memory()], threading.Event()

    def watch() -> None:
        while not end.wait(_LOOK):
            seen.append(private_memory())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        end.set()
        thread.join()
        seen.append(private_memory())


def _require_gpu() -> None:
    import torch

    if not torch.cuda.is_available():
        raise PrerequisiteError("it is to run on a GPU, which this machine lacks")


_BASE = private_memory()  # of a process that has imported the stages, and nothing else yet
