"""Workers and nodes that a cluster loses, said while units run.

Ray restarts a worker without limit and without a word. A unit that kills its workers is given up after three
of them; but where a node is so full that Ray kills workers before they begin a unit, nothing else would tell.
Of lost nodes it tells with pages of their logs, on standard output, which is the report's.
"""

import contextlib
import logging
import threading
from collections.abc import Iterator
from typing import Any

from beirnl.stages import STAGES
from beirnl.stages.base import Task

logger = logging.getLogger(__name__)

LOOK = 5.0  # seconds between two looks
TOLD = 3  # restarts that are worth a line


@contextlib.contextmanager
def losses_told(task: Task) -> Iterator[None]:
    """While units like ``task`` run: a line for every ``TOLD`` restarts of a worker, with what may help, and
    for nodes that are lost or join."""
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=(task, ended), name="losses", daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join()


def _watch(task: Task, ended: threading.Event) -> None:
    advice = STAGES[task.stage].less_memory(task.runtime.workers)
    before, told, nodes = restarts(), 0, live_nodes()
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
        found = live_nodes()
        if change := change_of(nodes, found):
            logger.warning("%s: %s", task.place, change)
        nodes = found


def change_of(before: frozenset[str], now: frozenset[str]) -> str:
    """What has become of the nodes between two looks, as a line; empty where they are the same."""
    lost, joined = len(before - now), len(now - before)
    told = [f"nodes lost: {lost}"] * bool(lost) + [f"nodes joined: {joined}"] * bool(joined)
    if not told:
        return ""
    again = "; their units are run again on others" if lost else ""
    return f"{', '.join(told)}, {len(now)} in all{again}"


def live_nodes() -> frozenset[str]:
    """Ids of the nodes that are alive."""
    import ray

    return frozenset(node["NodeID"] for node in ray.nodes() if node["Alive"])


def restarts() -> int:
    """How often workers of this driver have been started again; 0 where Ray does not tell."""
    with contextlib.suppress(Exception):  # no interface that needs no dashboard is public
        import ray
        from ray._private.state import actors

        job = ray.get_runtime_context().get_job_id()
        mine = [actor for actor in actors().values() if actor["JobID"] == job]
        return sum(int(actor["NumRestarts"]) for actor in mine if "MapWorker" in actor["ActorClassName"])
    return 0


def keep_off_standard_output() -> None:
    """Ray's own messages on what is lost become debug messages of the log."""
    with contextlib.suppress(ImportError):  # Ray has no setting for it
        import ray._private.worker as worker

        worker.print_to_stdstream = _note


def _note(message: dict[str, Any], *_: object, **__: object) -> None:
    logger.debug("Ray: %s", " ".join(map(str, message.get("lines", ()))))
