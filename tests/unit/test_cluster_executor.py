"""What goes wrong with Ray before any unit runs is one line; no cluster is started here."""

import pytest

from beirnl.config import Runtime
from beirnl.errors import ClusterError
from beirnl.executors.cluster import RayExecutor


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (None, "^this machine: no Ray cluster starts .Exception: The node timed out.; .*less busy"),
        ("auto", "^auto: no Ray cluster answers .Exception: The node timed out.; .*ray start --head"),
    ],
)
def test_a_cluster_that_does_not_start_or_answer_is_one_line(monkeypatch, address, message):
    import ray

    def init(**options):
        raise Exception("The node timed out. This could happen because the machine is overloaded.")

    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(ClusterError, match=message):
        RayExecutor(Runtime(workers=2), address)
