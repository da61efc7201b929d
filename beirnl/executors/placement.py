"""Where workers go: GPUs for those that use them, nodes without GPUs for the others.

A worker with several GPUs has them on one node, where vLLM splits the model over them in its own processes:
so one actor that asks for n GPUs is the whole tensor-parallel group, and needs no placement group.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from beirnl.errors import ClusterError
from beirnl.stages import STAGES
from beirnl.stages.base import Task

#: What ``ray up`` leaves on the head, where the driver of a job runs.
AUTOSCALER = Path("~/ray_bootstrap_config.yaml")


class NodeKind(NamedTuple):
    """Resources of nodes that are alike, and how many of them there are, or may be added."""

    cpus: float
    gpus: float
    number: int
    may_be_added: bool = False

    def __str__(self) -> str:
        """For an error."""
        gpus = f" and {self.gpus:g} GPUs" if self.gpus else ""
        return f"{self.number} {'more ' if self.may_be_added else ''}with {self.cpus:g} CPUs{gpus}"


def actor_options(task: Task) -> dict[str, Any]:
    """Ray's options for the workers of the pool that runs a task."""
    gpus = STAGES[task.stage].gpus(task.spec, task.runtime)
    if gpus:
        return {"num_cpus": 1, "num_gpus": gpus}
    # Ray's default strategy fills nodes without GPUs first, but packs; Ray Data's own one spreads.
    return {"num_cpus": 1} | ({"scheduling_strategy": "DEFAULT"} if is_mixed(nodes()) else {})


def is_mixed(kinds: list[NodeKind]) -> bool:
    """Whether there are nodes with GPUs and nodes with CPUs alone."""
    return any(kind.gpus for kind in kinds) and any(kind.cpus and not kind.gpus for kind in kinds)


def check(gpus: Mapping[str, float]) -> None:
    """Refuse a cluster on which a worker could never be placed.

    Args:
        gpus: GPUs of a worker, by stage.

    Raises:
        ClusterError: no node has them, nor a CPU; says what is there and what was asked for.
    """
    kinds = [*nodes(), *node_types()]
    there = ", ".join(map(str, kinds)) or "none"
    if not any(kind.cpus >= 1 for kind in kinds):
        raise ClusterError(
            f"no node has a CPU for a worker (nodes: {there})",
            where="Ray cluster",
            remedy="add nodes with CPUs",
        )
    for stage, number in gpus.items():
        if not any(kind.gpus >= number and kind.cpus >= 1 for kind in kinds):
            raise ClusterError(
                f"no node has {number:g} GPUs and a CPU, which a worker of {stage} needs (nodes: {there})",
                where="Ray cluster",
                remedy="add such nodes, or lower runtime.gpus (0: run on CPUs); "
                f"for this stage alone: gpus under [runtime.stages.{stage}]",
            )


def nodes() -> list[NodeKind]:
    """The live nodes of the cluster, by their resources."""
    import ray

    return counted([node["Resources"] for node in ray.nodes() if node["Alive"]])


def cpus() -> float:
    """CPUs of the cluster, with those of nodes that the autoscaler may add."""
    return sum(kind.cpus * kind.number for kind in [*nodes(), *node_types()])


def counted(resources: list[Mapping[str, float]]) -> list[NodeKind]:
    """Nodes that are alike, once with their number."""
    shapes = [(node.get("CPU", 0.0), node.get("GPU", 0.0)) for node in resources]
    return [NodeKind(*shape, shapes.count(shape)) for shape in sorted(set(shapes))]


def node_types(file: Path = AUTOSCALER) -> list[NodeKind]:
    """What the autoscaler may add, as the configuration on the head says; nothing where there is none."""
    path = file.expanduser()
    if not path.is_file():
        return []
    import yaml

    config = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    head = config.get("head_node_type")
    kinds = [kind for name, kind in config.get("available_node_types", {}).items() if name != head]
    return [
        NodeKind(float(there.get("CPU", 0)), float(there.get("GPU", 0)), most, True)
        for kind in kinds
        for there in [kind.get("resources", {})]
        if (most := int(kind.get("max_workers", config.get("max_workers", 0))))
    ]
