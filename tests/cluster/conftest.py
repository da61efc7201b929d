"""A Ray cluster of several nodes on this machine: a head and workers, each with processes of its own."""

from collections.abc import Callable, Iterator

import pytest
from ray_nodes import LocalCluster, clean_up


def pytest_unconfigure() -> None:
    clean_up()


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
