"""Workers on a cluster of CPU nodes and a GPU node, as Ray places them; GPUs are what Ray is told."""

from pathlib import Path

import pytest

from beirnl.config import Runtime
from beirnl.config.sections import StageRuntime
from beirnl.errors import ClusterError
from beirnl.executors.cluster import RayExecutor
from beirnl.executors.placement import actor_options
from beirnl.specs import Spec
from beirnl.stages.base import Task

RUNTIME = Runtime(workers=2, gpus=1, stages={"rerank": StageRuntime(gpus=0.5)})


def test_workers_with_gpus_share_their_node_and_the_others_keep_off_it(cluster):
    import ray

    local = cluster(nodes=2, cpus=2)
    number = local.add_node(gpus=1)
    try:
        executor = RayExecutor(RUNTIME, local.address, {"rerank": 0.5})
        (gpu_node,) = (
            node["NodeID"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("GPU")
        )
        assert places("rerank", 2) == [gpu_node] * 2
        assert gpu_node not in places("check", 3)
        assert gpu_node in places("check", 6), "rather there than nowhere"
        executor.close()
        with pytest.raises(
            ClusterError,
            match=r"no node has 2 GPUs .* of embed needs \(nodes: 2 with 2 CPUs, 1 with 2 CPUs and 1 GPUs",
        ):
            RayExecutor(RUNTIME, local.address, {"embed": 2, "rerank": 0.5})
    finally:
        ray.shutdown()
        local.kill_node(number)


def places(stage, number):
    """Nodes on which so many workers of a stage's pool are placed at once."""
    import ray

    task = Task(stage, "set/nl", Spec(), Path(), {}, 0, "run", Path(), RUNTIME.of(stage))

    class Where:
        def node(self):
            import ray

            return ray.get_runtime_context().get_node_id()

    options = actor_options(task)
    workers = [ray.remote(Where).options(**options).remote() for _ in range(number)]
    found = ray.get([worker.node.remote() for worker in workers], timeout=300)
    for worker in workers:
        ray.kill(worker)
    return found
