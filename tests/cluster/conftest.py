"""A Ray cluster of several nodes on this machine: a head and workers, each with processes of its own."""

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]

# Ray reads these when it is imported, and its processes inherit them.
os.environ.pop("RAY_ADDRESS", None)
os.environ |= {
    "HF_HUB_OFFLINE": "1",
    "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
    "RAY_AUTH_MODE": "disabled",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
    "RAY_TMPDIR": tempfile.mkdtemp(prefix="ray-", dir="/tmp"),  # short: it is part of socket names
    "RAY_USAGE_STATS_ENABLED": "0",
}

OBJECT_STORE = 200 * 1024 * 1024


def pytest_unconfigure() -> None:
    shutil.rmtree(os.environ["RAY_TMPDIR"], ignore_errors=True)


class LocalCluster:
    """A head, node 0, and workers, nodes 1 to ``nodes - 1``, of ``cpus`` CPUs each.

    The test's process is not connected: what is tested does ``ray.init(address=cluster.address)`` itself.
    """

    def __init__(self, nodes: int, cpus: int) -> None:
        from ray.cluster_utils import Cluster

        self.cpus = cpus
        self._nodes: list[Any] = []
        self._cluster = Cluster()
        for _ in range(nodes):
            self.add_node()

    @property
    def address(self) -> str:
        """What ``ray.init`` takes."""
        return str(self._cluster.address)

    @property
    def alive(self) -> list[int]:
        """Numbers of the nodes that have not been killed."""
        return [i for i, node in enumerate(self._nodes) if node.any_processes_alive()]

    def add_node(self) -> int:
        """Start one more node; its number. In the main thread only: a node ends with its thread."""
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("nodes are added in the main thread")
        self._nodes.append(self._cluster.add_node(num_cpus=self.cpus, object_store_memory=OBJECT_STORE))
        return len(self._nodes) - 1

    def kill_node(self, number: int) -> None:
        """SIGKILL a node's raylet and all that it started; not of node 0, where the driver is."""
        if number == 0:
            raise ValueError("node 0 is the head: killing it ends the cluster")
        workers = self.workers(number, "ray::")
        self._cluster.remove_node(self._nodes[number], allow_graceful=False)
        psutil.wait_procs(workers, timeout=20)

    def workers(self, number: int | None = None, name: str = "ray::") -> list[psutil.Process]:
        """Worker processes of a node (default: all) whose title, as ``ray::Actor.method``, has ``name``."""
        found = []
        for node in self.alive if number is None else [number]:
            raylet = psutil.Process(self._nodes[node].all_processes["raylet"][0].process.pid)
            found += [child for child in raylet.children(recursive=True) if name in _title(child)]
        return found

    def kill_worker(self, name: str, number: int | None = None, timeout: float = 60) -> int:
        """SIGKILL one worker process, waiting until there is one; its process id.

        Args:
            name: part of its title: an actor's class or method, or a task's function.
            number: its node; any if not given.
            timeout: seconds to wait.
        """
        deadline = time.monotonic() + timeout
        while not (found := self.workers(number, name)):
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"no worker {name!r}; there are {[_title(w) for w in self.workers(number)]}"
                )
            time.sleep(0.05)
        found[0].send_signal(signal.SIGKILL)
        found[0].wait(20)
        return found[0].pid

    def shutdown(self) -> None:
        """End the driver's connection and every process of the cluster."""
        import ray

        ray.shutdown()
        self._cluster.shutdown()


def _title(process: psutil.Process) -> str:
    try:
        title = " ".join(process.cmdline())
    except psutil.Error:
        return ""
    return title if title.startswith("ray::") else ""


@pytest.fixture(scope="session")
def cluster() -> Iterator[Callable[..., LocalCluster]]:
    """``cluster(nodes=2, cpus=1)``: a whole cluster of that shape, the last one again if it fits."""
    current: list[LocalCluster] = []

    def make(nodes: int = 2, cpus: int = 1) -> LocalCluster:
        if current and current[0].cpus != cpus:
            current.pop().shutdown()
        if not current:
            current.append(LocalCluster(nodes, cpus))
        (local,) = current
        for surplus in local.alive[nodes:]:
            local.kill_node(surplus)
        while len(local.alive) < nodes:
            local.add_node()
        return local

    yield make
    for last in current:
        last.shutdown()


@pytest.fixture(autouse=True)
def disconnect() -> Iterator[None]:
    """Each test connects for itself."""
    yield
    import ray

    ray.shutdown()
