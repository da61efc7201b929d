"""What is said of nodes that are lost or join, and what Ray itself says of them."""

import logging

import pytest

from beirnl.executors import losses


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ("ab", "ab", ""),
        ("abc", "ab", "nodes lost: 1, 2 in all; their units are run again on others"),
        ("ab", "abc", "nodes joined: 1, 3 in all"),
        ("abc", "cde", "nodes lost: 2, nodes joined: 2, 3 in all; their units are run again on others"),
    ],
)
def test_nodes_that_are_lost_and_join_are_counted(before, now, told):
    assert losses.change_of(frozenset(before), frozenset(now)) == told


def test_what_ray_says_goes_to_the_log(monkeypatch, capsys, caplog):
    import ray._private.worker as worker

    monkeypatch.setattr(worker, "print_to_stdstream", worker.print_to_stdstream)
    losses.keep_off_standard_output()
    with caplog.at_level(logging.DEBUG, "beirnl"):
        worker.print_to_stdstream({"lines": ["Raylet is terminated."], "pid": "raylet"}, ignore_prefix=False)
    assert capsys.readouterr() == ("", "") and "Ray: Raylet is terminated." in caplog.text
