"""The cluster under test is a real one: several nodes, whose processes can be killed and work goes on."""

import threading
import time
from collections.abc import Callable

import psutil
import pytest


def slow_rows(marks: str) -> type:
    """A batch actor that writes one file per call; defined here so that it is shipped by value."""

    class SlowRows:
        def __call__(self, batch: dict) -> dict:
            import os
            import time
            from pathlib import Path

            Path(marks, f"{batch['item'][0]}-{os.getpid()}-{time.monotonic_ns()}").touch()
            time.sleep(0.4)
            return {"item": batch["item"], "pid": [os.getpid()] * len(batch["item"])}

    return SlowRows


def run_with(accident: Callable[[], object], address: str, marks: str, rows: int = 24) -> tuple[list, list]:
    """Map the rows over an actor pool of two; the accident happens once an actor has begun work."""
    import ray

    ray.init(address=address, log_to_driver=False)
    failures: list[BaseException] = []

    def interfere() -> None:
        try:
            accident()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=interfere)
    thread.start()
    data = ray.data.from_items(list(range(rows)), override_num_blocks=rows)
    pool = ray.data.ActorPoolStrategy(size=2)
    done = data.map_batches(slow_rows(marks), batch_size=1, compute=pool).take_all()
    thread.join(60)
    assert not failures, failures
    return sorted(row["item"] for row in done), sorted({row["pid"] for row in done})


def calls_begun(folder) -> int:
    return len(list(folder.iterdir()))


def wait_for_calls(folder, number: int) -> None:
    deadline = time.monotonic() + 90
    while calls_begun(folder) < number and time.monotonic() < deadline:
        time.sleep(0.05)


def test_the_nodes_are_separate_and_have_the_cpus_asked_for(cluster):
    import ray

    local = cluster(nodes=2, cpus=1)
    ray.init(address=local.address, log_to_driver=False)
    alive = [node for node in ray.nodes() if node["Alive"]]
    assert [node["Resources"]["CPU"] for node in alive] == [1.0, 1.0]
    assert len({node["NodeID"] for node in alive}) == 2
    assert local.alive == [0, 1]


def test_a_map_over_an_actor_pool_finishes_when_a_worker_is_killed(cluster, tmp_path):
    local = cluster(nodes=2, cpus=1)
    killed: list[int] = []

    def accident() -> None:
        wait_for_calls(tmp_path, 4)
        killed.append(local.kill_worker("SlowRows"))

    items, pids = run_with(accident, local.address, str(tmp_path))
    assert items == list(range(24))
    assert not psutil.pid_exists(killed[0])
    assert len(pids) >= 2
    assert calls_begun(tmp_path) >= 24  # more where the kill met a call; it may also fall between two


def test_a_map_over_an_actor_pool_finishes_when_a_node_is_killed(cluster, tmp_path):
    local = cluster(nodes=3, cpus=1)
    killed: list[int] = []

    def accident() -> None:
        wait_for_calls(tmp_path, 4)
        killed.extend(node for node in local.alive[1:] if local.workers(node, "SlowRows"))
        local.kill_node(killed[0])

    items, _ = run_with(accident, local.address, str(tmp_path))
    assert items == list(range(24))
    assert len(local.alive) == 2
    assert killed[0] not in local.alive
    assert len(cluster(nodes=3, cpus=1).alive) == 3


def test_the_head_is_not_killed_by_mistake(cluster):
    with pytest.raises(ValueError, match="head"):
        cluster(nodes=2, cpus=1).kill_node(0)


def test_a_worker_that_is_not_there_is_reported(cluster):
    with pytest.raises(TimeoutError, match="no worker 'Nobody'"):
        cluster(nodes=2, cpus=1).kill_worker("Nobody", timeout=0.2)
