"""Workers that Ray starts again and again, said while it happens.

Ray restarts a worker without limit and without a word. A unit that kills its workers is given up after three
of them; but where a node is so full that Ray kills workers before they begin a unit, nothing else would tell.
"""

import contextlib
import logging
import threading
from collections.abc import Iterator

from beirnl.stages import STAGES
from beirnl.stages.base import Task

logger = logging.getLogger(__name__)

LOOK = 5.0  # seconds between two looks
TOLD = 3  # restarts that are worth a line


@contextlib.contextmanager
def restarts_told(task: Task) -> Iterator[None]:
    """While units like ``task`` run: a line for every ``TOLD`` restarts of a worker, with what may help."""
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=(task, ended), name="restarts", daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join()


def _watch(task: Task, ended: threading.Event) -> None:
    advice = STAGES[task.stage].less_memory(task.runtime.workers)
    before, told = restarts(), 0
    while not ended.wait(LOOK):
        now = restarts() - before
        if now >= told + TOLD:
            told = now
            logger.warning(
                "%s: Ray has lost workers and started them again (%d times); if for memory: %s; "
                "or free memory on their nodes",
                task.place,
                now,
                advice,
            )


def restarts() -> int:
    """How often workers of this driver have been started again; 0 where Ray does not tell."""
    with contextlib.suppress(Exception):  # no interface that needs no dashboard is public
        import ray
        from ray._private.state import actors

        job = ray.get_runtime_context().get_job_id()
        mine = [actor for actor in actors().values() if actor["JobID"] == job]
        return sum(int(actor["NumRestarts"]) for actor in mine if "MapWorker" in actor["ActorClassName"])
    return 0
