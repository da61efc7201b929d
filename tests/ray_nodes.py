"""Ray clusters of several nodes on this machine, each with processes of its own, and runs on them.

To be imported before Ray, which reads the environment that is set here.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil
from running import ENVIRONMENT
from support import ROOT

from beirnl.config import load_experiment
from beirnl.executors.local import LocalExecutor
from beirnl.pipeline import Pipeline

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


def clean_up() -> None:
    """Remove what Ray has left in its folder."""
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

    def add_node(self, gpus: int = 0) -> int:
        """Start one more node; its number. In the main thread only: a node ends with its thread.

        ``gpus`` is what Ray is told that the node has.
        """
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("nodes are added in the main thread")
        self._nodes.append(
            self._cluster.add_node(num_cpus=self.cpus, num_gpus=gpus, object_store_memory=OBJECT_STORE)
        )
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


def drive(path: Path, address: str, workers: int = 3, delay: float = 0.3) -> subprocess.Popen:
    """Begin the translation of an experiment on a cluster, whose workers wait so long for each answer."""
    job = {"runtime_env": {"env_vars": {"BEIRNL_MOCK_DELAY": str(delay)}}}
    arguments = ["run", str(path), "--only", "translate", "--workers", str(workers), "--address", address]
    return subprocess.Popen(
        [sys.executable, "-m", "beirnl.cli", *arguments],
        env={**os.environ, **ENVIRONMENT, "RAY_JOB_CONFIG_JSON_ENV_VAR": json.dumps(job)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def made(path: Path, *stages: str) -> Pipeline:
    """A pipeline after these stages, run in this process."""
    pipeline = Pipeline.of(load_experiment(path))
    nodes = pipeline.graph.nodes.values()
    pipeline.run(LocalExecutor(), nodes=pipeline.needed([node for node in nodes if node.stage in stages]))
    return pipeline


def contents(path: Path) -> dict[str, str]:
    """Digests of the bytes of the translations, which are finished."""
    pipeline = Pipeline.of(load_experiment(path))
    nodes = [node for node in pipeline.graph.nodes.values() if node.stage == "translate"]
    return {f"{node.label} {node.key}": node.artifact(pipeline.workspace).manifest.content for node in nodes}
