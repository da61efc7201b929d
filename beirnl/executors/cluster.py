"""Units as shard descriptors through a Ray Data actor pool; rows stay in files, out of the object store.

One pool serves the units of all datasets that share a model. A worker loads it once. An error of a unit
travels back as a value, because Ray would otherwise retry it or wrap it in its own.

Ray gives the units of a worker that is lost to another one, without limit. Each of them is a suspect, and is
run again alone in its worker; who kills its worker so again and again is set aside, and the others go on.
"""

import asyncio
import contextlib
import logging
import os
import pickle
import signal
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from beirnl.config import Runtime
from beirnl.errors import BeirnlError, BudgetError, ClusterError, StageError
from beirnl.executors import Aside, Done, placement
from beirnl.executors.losses import keep_off_standard_output, live_nodes, losses_told
from beirnl.executors.metrics import Metrics
from beirnl.executors.room import Room
from beirnl.stages import STAGES, Stage
from beirnl.stages.base import SetAsideError, StoppedError, Task, execute
from beirnl.store.artifacts import Receipt
from beirnl.tally import Tally

logger = logging.getLogger(__name__)

_TOGETHER = 8  # most units of a block: each block costs Ray Data some ten milliseconds
_TURNS = 128  # blocks that each worker gets at least where units travel together, so that all end together

_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # workers use the interpreter of the driver
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",  # beirnl shows its own
}


class Worker:
    """An actor of the pool: loads the pool's resource at its first unit, then runs unit after unit."""

    def __init__(self) -> None:
        self._resource: Any = None
        self._loaded = False
        self._lock, self._stop, self._room = threading.Lock(), threading.Event(), Room()
        self._metrics, self._node = Metrics(), node_id()

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        """Run the units of a block, one by one; returns their number and pickled receipt or error."""
        return {
            "number": list(batch["number"]),
            "outcome": [self.run(bytes(task)) for task in batch["task"]],
        }

    def run(self, pickled: bytes) -> bytes:
        """Run one unit; its error stops the other units in flight here."""
        task: Task = pickle.loads(pickled)
        outcome: Receipt | BeirnlError
        try:
            stage, task = STAGES[task.stage], replace(task, alone=self._must_be_alone(task))
            with self._room.alone() if task.alone else self._room.together():
                receipt = execute(stage, task, partial(self._load, stage, task), self._stop)
            outcome = receipt.model_copy(update={"node": self._node})
        except BeirnlError as error:
            if not isinstance(error, BudgetError | SetAsideError):  # what is paid for is waited for
                self._stop.set()
            outcome = error
        self._metrics.ended(task, outcome)
        return pickle.dumps(outcome)

    def _must_be_alone(self, task: Task) -> bool:
        """A worker with one unit in flight knows no other way."""
        return True

    def _load(self, stage: Stage, task: Task) -> Any:
        with self._lock:
            if stage.load and not self._loaded:
                self._resource, self._loaded = stage.load(task), True
        return self._resource


class ManyWorker(Worker):
    """An actor with several units in flight, in threads, so that its engine never drains between them."""

    async def __call__(self, batch: dict[str, Any]) -> Any:  # type: ignore[override]
        """As :meth:`Worker.__call__`, for Ray Data's asynchronous functions."""
        outcomes = [await asyncio.to_thread(self.run, bytes(task)) for task in batch["task"]]
        yield {"number": list(batch["number"]), "outcome": outcomes}

    def _must_be_alone(self, task: Task) -> bool:
        return task.is_suspect


class RayExecutor:
    """Runs units on a Ray cluster.

    Args:
        runtime: what a cluster of this machine's own is to have room for; a pool's size is its task's.
        address: ``auto``, ``HOST:PORT``, or None for a cluster of this machine's own, ended by :meth:`close`.
        gpus: GPUs of a worker, by stage, of stages that will use some.

    Raises:
        ClusterError: no cluster answers at the address or starts, or it lacks the resources of one worker.
    """

    CONNECT_SECONDS = 60

    def __init__(
        self, runtime: Runtime, address: str | None, gpus: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        self._metrics = Metrics()
        options: dict[str, Any] = {"log_to_driver": bool(os.environ.get("BEIRNL_WORKER_LOGS"))}
        if address is None:
            os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # else Ray leaves a token in the user's home
            options |= {
                "address": "local",
                "include_dashboard": False,
                "object_store_memory": runtime.object_store_mb << 20,
                "num_cpus": max(runtime.most_workers, len(os.sched_getaffinity(0))),
            }
        else:
            options["address"] = address
            _check_address(address)
        _start(address, options, self.CONNECT_SECONDS)
        if not options["log_to_driver"]:
            keep_off_standard_output()
        placement.check(gpus)

    def observe(self, stage: str, tally: Tally) -> None:
        """Show on Ray's metrics how far a stage is."""
        self._metrics.observe(stage, tally)

    def nodes(self) -> int:
        """Number of live nodes."""
        return len(live_nodes())

    def run(self, tasks: Sequence[Task], done: Done, aside: Aside) -> None:
        """Run tasks that share a pool; none is no work, and no pool."""
        if not tasks:
            return
        import ray

        _set_context()
        items = [{"number": number, "task": pickle.dumps(task)} for number, task in enumerate(tasks)]
        size = min(tasks[0].runtime.workers, len(items))
        blocks = count_blocks(len(items), size)
        at_once = min(STAGES[tasks[0].stage].in_flight(tasks[0].spec), -(-blocks // size))
        many: dict[str, Any] = {"max_concurrency": at_once} if at_once > 1 else {}
        results = ray.data.from_items(items, override_num_blocks=blocks).map_batches(
            ManyWorker if many else Worker,
            compute=ray.data.ActorPoolStrategy(
                min_size=1,
                max_size=size,
                initial_size=size,
                max_tasks_in_flight_per_actor=at_once,
            ),
            batch_size=None,  # a block
            **placement.actor_options(tasks[0]),
            **many,
        )
        with losses_told(tasks[0]):
            _take(results, tasks, done, aside)

    def close(self) -> None:
        """Leave the cluster; end it if it was this run's own."""
        import ray

        ray.shutdown()


def count_blocks(units: int, workers: int) -> int:
    """How many blocks so many units travel in: one each, but for very many, which travel by up to eight."""
    together = min(_TOGETHER, units // (workers * _TURNS))
    return -(-units // max(together, 1))


def node_id() -> str:
    """The beginning of the id of the node that this process is on, as `ray list nodes` shows it."""
    import ray

    return str(ray.get_runtime_context().get_node_id())[:12] if ray.is_initialized() else ""


def _start(address: str | None, options: dict[str, Any], seconds: int) -> None:
    """Connect to a cluster, or start one.

    Raises:
        ClusterError: it does not answer within ``seconds``, or does not start; one of this machine's own has
            as long as Ray gives it.
    """
    import ray

    try:
        with _deadline(seconds) if address else contextlib.nullcontext():
            ray.init(logging_level="warning", **options)
    except Exception as error:  # Ray has no exception of its own for a node that does not come up
        ray.shutdown()
        said = str(error).split(". ")[0]
        remedy = "run again when the machine is less busy, or with --workers 1"
        if address:
            remedy = "start one with `ray start --head`, or leave --address out to run on this machine"
        raise ClusterError(
            f"no Ray cluster {'answers' if address else 'starts'} ({type(error).__name__}: {said})",
            where=address or "this machine",
            remedy=remedy,
        ) from error


def _take(results: Any, tasks: Sequence[Task], done: Done, aside: Aside) -> None:
    """Tell of what is done or set aside, as it comes; raise the first error that ended a unit, or all that
    were set aside."""
    stopped: BeirnlError | None = None
    deadly: list[SetAsideError] = []
    for row in _rows(results, tasks[0]):
        outcome = pickle.loads(row["outcome"])
        if isinstance(outcome, StoppedError | BudgetError):  # the others go on to their end
            stopped = stopped or outcome
        elif isinstance(outcome, SetAsideError):
            logger.warning("%s", outcome)
            deadly.append(outcome)
            aside(tasks[row["number"]])
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            done(tasks[row["number"]], outcome)
    if stopped:
        raise stopped
    if deadly:
        raise SetAsideError.of(deadly)


def _rows(results: Any, task: Task) -> Iterator[dict[str, Any]]:
    """The rows of a Ray dataset; what fails in Ray itself is one line, for the stage of a task."""
    import ray

    lost = ray.exceptions.OutOfMemoryError, ray.exceptions.WorkerCrashedError, ray.exceptions.ActorDiedError
    try:
        yield from results.iter_rows()
    except lost as error:
        raise StageError(
            f"a worker was killed, most often for want of memory ({_lines(error)[0]})",
            where=task.place,
            remedy=STAGES[task.stage].less_memory(task.runtime.workers),
        ) from error
    except ray.exceptions.RayError as error:
        raise ClusterError(
            f"the cluster could not run the units ({_lines(error)[-1]})",
            where="Ray",
            remedy="see the traceback with --debug; finished units are kept",
        ) from error


def _lines(error: Exception) -> list[str]:
    """The lines of Ray's message, at least one."""
    return [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]


def _set_context() -> None:
    """Ray Data's bars and log lines give way to beirnl's own; its pools grow when all their workers are busy
    and shrink only where nodes are lost, or when there is nothing left to begin."""
    import ray

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.autoscaling_config.actor_pool_util_upscaling_threshold = 1.0
    context.autoscaling_config.actor_pool_util_downscaling_threshold = -1.0
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", message=".*ray_remote_args")  # max_concurrency, until Ray 2.64


def _check_address(address: str) -> None:
    """Refuse at once what cannot be an address, or where nothing listens."""
    import socket

    if address == "auto" or "://" in address:
        return
    host, _, port = address.rpartition(":")
    remedy = "give HOST:PORT of the head's GCS (ray start --head prints it), or auto"
    if not host or not port.isdigit():
        raise ClusterError("is not HOST:PORT", where=address, remedy=remedy)
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise ClusterError(f"nothing listens there ({error})", where=address, remedy=remedy) from error


@contextlib.contextmanager
def _deadline(seconds: int) -> Iterator[None]:
    """Raise TimeoutError after some seconds; only in the main thread, where signals arrive."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def expire(number: int, frame: Any) -> None:
        raise TimeoutError(f"no answer within {seconds} s")

    before = signal.signal(signal.SIGALRM, expire)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
