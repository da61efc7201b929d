"""Units in this process: one after another, or as many at once as keep an engine full. For small sets, and to
debug."""

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

from beirnl.errors import BudgetError
from beirnl.executors import Aside, Done
from beirnl.stages import STAGES
from beirnl.stages.base import Stage, StoppedError, Task, execute
from beirnl.store.artifacts import Receipt
from beirnl.store.cache import Pins, collected
from beirnl.tally import Tally

logger = logging.getLogger(__name__)


class LocalExecutor:
    """Keeps what the last pool loaded, so that a model that the next pool shares is not loaded again."""

    def __init__(self) -> None:
        self._pool = ""
        self._resource: Any = None
        self._pins = Pins()

    def run(self, tasks: Sequence[Task], done: Done, aside: Aside) -> None:
        """Run the tasks in order; what they load is loaded first. What kills a unit here kills the run."""
        if not tasks:
            return
        stage = STAGES[tasks[0].stage]
        load = partial(self._load, stage, tasks[0])
        at_once = stage.in_flight(tasks[0].spec)
        if at_once == 1:
            for task in tasks:
                done(task, execute(stage, task, load))
        else:
            load()  # in the main thread, as some engines want it
            _in_threads(stage, tasks, load, at_once, done)

    def _load(self, stage: Stage, task: Task) -> Any:
        if stage.load is None:
            return None
        if stage.pool_key(task) != self._pool:
            self.close()
            with collected() as self._pins:
                self._resource, self._pool = stage.load(task), stage.pool_key(task)
        return self._resource

    def observe(self, stage: str, tally: Tally) -> None:
        """One process has no metrics."""

    def nodes(self) -> int:
        """This machine."""
        return 1

    def close(self) -> None:
        """Let go of the loaded model before the next one is loaded."""
        close = getattr(self._resource, "close", None)
        if close:
            close()
        self._resource, self._pool = None, ""
        self._pins.release()


def _in_threads(
    stage: Stage, tasks: Sequence[Task], load: Callable[[], Any], at_once: int, done: Done
) -> None:
    """Run tasks in threads; the first error stops the others and is raised when they have ended."""
    stop = threading.Event()
    waiting = iter(tasks)
    running: dict[Future[Receipt], Task] = {}
    errors: list[BaseException] = []
    with ThreadPoolExecutor(at_once, thread_name_prefix="unit") as threads:
        try:
            while True:
                while len(running) < at_once and not errors and (task := next(waiting, None)):
                    running[threads.submit(execute, stage, task, load, stop)] = task
                if not running:
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    task = running.pop(future)
                    error = future.exception()
                    if error is None:
                        done(task, future.result())
                        continue
                    errors.append(error)
                    if not isinstance(error, BudgetError):  # what is paid for is waited for
                        stop.set()
        except BaseException:
            stop.set()
            logger.info("stopping: waiting for what is under way, which is paid for; again to leave at once")
            raise
    if errors:
        raise next((error for error in errors if not isinstance(error, StoppedError)), errors[0])
