"""What a stage is: a function from one unit of its inputs to parts, how many units there are, and what a
worker loads once. Units are executed here, whatever executor called."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from beirnl.config import Runtime
from beirnl.errors import BeirnlError, StageError
from beirnl.specs import LlmSpec, Spec
from beirnl.store.artifacts import Artifact, Receipt
from beirnl.store.attempts import LOADING, MAX_DEATHS, alone_in, attempts_in_run, unit_in_words
from beirnl.store.cache import pinned
from beirnl.store.failpoints import failpoint
from beirnl.store.files import disk_errors
from beirnl.store.keys import digest
from beirnl.store.places import Place
from beirnl.store.writing import PartWriter

_NO_MEMORY = "can't allocate memory", "cannot allocate memory", "failed to map segment"
_NAMED = 5  # units that an error names
_SEE = "see the traceback with --debug; finished units are kept"

Inputs = Mapping[str, Artifact]


class StoppedError(BeirnlError):
    """The run is being stopped: another unit has failed."""


class SetAsideError(StageError):
    """Units have killed their workers, alone in them, ``MAX_DEATHS`` times each; the others were run."""

    @classmethod
    def of(cls, errors: Sequence["SetAsideError"]) -> "SetAsideError":
        """One error for several; the first ones are named."""
        if len(errors) == 1:
            return errors[0]
        told = [f"{error.where}: {error.what}" for error in errors[:_NAMED]]
        more = f"; and {len(errors) - _NAMED} more" if len(errors) > _NAMED else ""
        return cls("; ".join(told) + more, remedy=errors[0].remedy)


class Allowance(NamedTuple):
    """Money that one worker may spend on the units of one group.

    Attributes:
        group: names the group; what was spent is counted from its start.
        money: the worker's share of what ``max_cost`` leaves.
        prompt, completion: price of a token.
    """

    group: str
    money: float
    prompt: float
    completion: float

    def price_of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Money for so many tokens."""
        return prompt_tokens * self.prompt + completion_tokens * self.completion


@dataclass(frozen=True)
class Task:
    """One unit of one artifact, as it travels to a worker. Rows stay in files.

    ``alone``: its worker has no other unit in flight, so that nothing else can be the cause of its death.
    """

    stage: str
    label: str
    spec: Spec
    directory: Place
    input_directories: dict[str, Place]
    unit: int
    run_id: str
    workspace: Place
    runtime: Runtime
    allowance: Allowance | None = None
    alone: bool = False

    @property
    def is_suspect(self) -> bool:
        """Whether a worker of this run has died, or been lost, with the unit in flight."""
        return attempts_in_run(self.directory, self.unit, self.run_id) > 0

    @property
    def place(self) -> str:
        """Stage and label, for errors."""
        return f"{self.stage} {self.label}"

    @property
    def inputs(self) -> dict[str, Artifact]:
        """The artifacts that the unit reads."""
        return {name: _opened(place, self.run_id) for name, place in self.input_directories.items()}


@lru_cache(maxsize=64)
def _opened(place: Place, run_id: str) -> Artifact:
    """An input of a run's units, opened once per process: it does not change while they are made."""
    return Artifact(place)


@dataclass
class Unit:
    """What a stage's function sees: task, opened inputs, writer, and what the worker has loaded.

    ``stop`` is set when another unit of the group has failed: a long unit then ends early.
    """

    task: Task
    out: PartWriter
    resource: Any
    inputs: dict[str, Artifact] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def number(self) -> int:
        """Number of the unit."""
        return self.task.unit

    def tell(self, rows: int) -> None:
        """Say how many rows are done, as every unit does that may take more than a few seconds.

        Raises:
            StoppedError: the run is being stopped.
        """
        self.check_stop()
        self.out.tell(rows)

    def check_stop(self) -> None:
        """Raise :class:`StoppedError` if the run is being stopped."""
        if self.stop.is_set():
            raise StoppedError("stopped, since another unit failed")


def one_unit(spec: Spec, inputs: Inputs) -> int:
    """The grain of stages that do all in one piece."""
    return 1


def one_at_a_time(spec: Spec) -> int:
    """A worker has one unit in flight."""
    return 1


def one_pool(spec: Spec, inputs: Mapping[str, str]) -> str:
    """The pool of stages whose workers load nothing: all datasets share it."""
    return ""


def nobody(spec: Spec) -> None:
    """Who is asked by stages that ask nobody."""


def never(spec: Spec) -> bool:
    """Whether a stage uses a GPU that has no use for one."""
    return False


def always(spec: Spec) -> bool:
    """Whether a stage uses a GPU that always can."""
    return True


@dataclass(frozen=True)
class Stage:
    """A row of the stage table.

    Attributes:
        name: what ``--only`` and the workspace call it.
        version: enters the key; raised when the function's result changes.
        run: makes the parts of one unit.
        units: number of units, from the spec and the finished inputs.
        reduce: makes one result of all units' parts, or None.
        load: what a worker loads once for all units of its pool.
        pool: units with equal pools share workers; from the spec and the inputs' folders.
        eager: made as soon as its inputs are there: cheap, and people wait for it.
        in_flight: units that one worker runs at once, in threads; from the spec.
        openings: of a stage that pays for answers, what its requests begin with, from the spec. Artifacts
            that may ask the same are made one after another: only what has been answered can be found.
        asks: it asks an LLM, and ``max_cost`` holds for it.
        server: who answers over the network, from the spec; None: nobody.
        gpu: whether its workers use GPUs, from the spec; those of other stages ask for none.
        memory: settings by which a worker takes less memory, the most effective one first.
        check: refuses inputs whose numbers of rows show already that they are too large; from the spec, the
            inputs (made or not) and the label.
        retried: a count of receipts: units that have any are made again by the next run.
        least_bytes: what it will write at least, from the spec and the rows that go in; None if not known.
    """

    name: str
    version: int
    run: Callable[[Unit], None]
    units: Callable[[Any, Inputs], int] = one_unit
    reduce: Callable[[Unit], None] | None = None
    load: Callable[[Task], Any] | None = None
    pool: Callable[[Any, Mapping[str, str]], str] = one_pool
    eager: bool = False
    in_flight: Callable[[Any], int] = one_at_a_time
    openings: Callable[[Any], tuple[str, ...]] | None = None
    asks: bool = False
    server: Callable[[Any], LlmSpec | None] = nobody
    gpu: Callable[[Any], bool] = never
    memory: tuple[str, ...] = ()
    check: Callable[[Any, Inputs, str], None] | None = None
    retried: str = ""
    least_bytes: Callable[[Any, int], float | None] | None = None

    def pool_key(self, task: Task) -> str:
        """Tasks with equal keys may run in one pool of workers: what these load is the same."""
        folders = {name: str(path) for name, path in task.input_directories.items()}
        return digest([getattr(self.load, "__qualname__", ""), self.pool(task.spec, folders)])

    def gpus(self, spec: Spec, runtime: Runtime) -> float:
        """GPUs of one worker; ``runtime`` is that of the experiment."""
        return runtime.of(self.name).gpus if self.gpu(spec) else 0.0

    def less_memory(self, workers: int) -> str:
        """What to do where memory runs out."""
        settings = [*self.memory, *(["runtime.workers"] if workers > 1 else [])]
        if not settings:
            return "give a worker more memory"
        listed = f"{', '.join(settings[:-1])} or {settings[-1]}" if len(settings) > 1 else settings[0]
        return f"lower {listed}, or give a worker more memory"


def execute(
    stage: Stage,
    task: Task,
    load: Callable[[], Any] | None = None,
    stop: threading.Event | None = None,
) -> Receipt:
    """Run one unit and commit it; a unit that has its receipt is not run again.

    Args:
        stage: what is to be done.
        task: for which unit.
        load: gives what the worker has loaded, or loads it now: who dies of that has died of the unit.
        stop: ends a long unit early.

    Raises:
        SetAsideError: the unit has killed its worker, alone in it, ``MAX_DEATHS`` times in this run.
        StageError: it failed otherwise.
    """
    existing = Artifact(task.directory).receipt(task.unit)
    if existing:
        return existing
    if task.alone:
        _refuse_deadly(stage, task)
    try:
        with disk_errors(task.directory):
            return _attempt(stage, task, load, stop or threading.Event())
    except BeirnlError as error:
        if error.where is None:
            raise type(error)(error.what, where=task.place, remedy=error.remedy) from error
        raise
    except Exception as error:
        short = _is_short_of_memory(error)
        raise StageError(
            f"unit {task.unit} {'ran out of memory' if short else 'failed'}: {type(error).__name__}: {error}",
            where=task.place,
            remedy=stage.less_memory(task.runtime.workers) if short else _SEE,
        ) from error


def _refuse_deadly(stage: Stage, task: Task) -> None:
    if attempts_in_run(task.directory, task.unit, alone_in(task.run_id)) >= MAX_DEATHS:
        raise SetAsideError(
            f"{unit_in_words(task.unit)} has killed its worker {MAX_DEATHS} times and is set aside, "
            "most often for want of memory",
            where=task.place,
            remedy=f"{stage.less_memory(task.runtime.workers)}; the worker's log says more",
        )


def _is_short_of_memory(error: Exception) -> bool:
    """Whether an allocation failed: numpy and pyarrow say so by Python's error, torch by its own, and the
    system in words: also where a library or a file cannot be mapped any more."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return any(words in str(error).lower() for words in _NO_MEMORY)


def _attempt(stage: Stage, task: Task, load: Callable[[], Any] | None, stop: threading.Event) -> Receipt:
    out = PartWriter(task.directory, task.unit, alone_in(task.run_id) if task.alone else task.run_id)
    failpoint("before-part", task.unit)
    function = stage.run if task.unit >= 0 else stage.reduce
    assert function is not None, f"{stage.name} has no reduction"
    try:
        resource = _loaded(stage, out, load)  # keeps what it has opened for as long as it lives
        with pinned():
            out.start()
            function(Unit(task, out, resource, task.inputs, stop))
            return out.commit()
    except BaseException:
        out.abandon()
        raise


def _loaded(stage: Stage, out: PartWriter, load: Callable[[], Any] | None) -> Any:
    """What the worker has loaded; whoever looks is told while it is being loaded."""
    if load is None or stage.load is None:
        return load() if load else None
    out.doing(LOADING)
    resource = load()
    out.doing("")
    return resource
