"""Starts the application on this machine or on a cluster, and ends it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from beirnl.config import Experiment
from beirnl.errors import ClusterError
from beirnl.executors import placement
from beirnl.executors.cluster import RayExecutor
from beirnl.pipeline import Pipeline
from beirnl.serve.collections import check_built
from beirnl.serve.searching import models_of
from beirnl.serve.settings import Settings

logger = logging.getLogger(__name__)

_SLACK = 5  # seconds between the application's own limit of time and Serve's


@contextmanager
def served(
    experiment: Experiment, settings: Settings, host: str, port: int, address: str | None = None
) -> Iterator[None]:
    """Serve an experiment until the block ends; what is being answered then is answered.

    Args:
        experiment: which was run.
        settings: of the application.
        host: address to listen on.
        port: to listen on.
        address: of a Ray cluster; None: one of this machine's own.

    Raises:
        StoreError: something that is to be served was not made.
        ClusterError: the cluster cannot be reached, or the application does not start there.
    """
    pipeline = Pipeline.of(experiment)
    check_built(pipeline)
    models = len(models_of(pipeline))
    processes = settings.replicas + models * settings.model_replicas
    runtime = experiment.runtime.model_copy(update={"workers": processes})
    executor = RayExecutor(runtime, address)
    try:
        _tell_of_room(processes * settings.cpus)
        _start(settings, host, port)
        yield
    finally:
        _stop()
        executor.close()


def _tell_of_room(cpus: float) -> None:
    """Ray Serve waits without a word for processes that have no room: say what is needed and there."""
    there = placement.cpus()
    if cpus > there:
        logger.warning(
            "the service takes up to %g CPUs, and the cluster has %g: processes without room wait until "
            "nodes join; lower --replicas, or cpus in its settings",
            cpus,
            there,
        )


def _start(settings: Settings, host: str, port: int) -> None:
    from ray import serve

    from beirnl.serve.application import build

    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    quiet = {"log_level": "WARNING", "enable_access_log": False}
    serve.start(
        http_options={"host": host, "port": port, "request_timeout_s": settings.timeout + _SLACK},
        logging_config=quiet,
    )
    try:
        serve.run(build(settings), name="beirnl", logging_config=quiet)
    except RuntimeError as error:
        raise ClusterError(
            f"the application does not start ({str(error).splitlines()[0]})",
            where="Ray Serve",
            remedy="see the logs of its replicas under /tmp/ray/session_latest/logs/serve",
        ) from error


def _stop() -> None:
    from ray import serve

    serve.shutdown()
