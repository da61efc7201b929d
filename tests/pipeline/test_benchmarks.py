"""The benchmarks that need no peer run, small, and show what they promise."""

import os
import re
import subprocess
import sys

from running import ENVIRONMENT
from support import ROOT


def benchmark(name, *arguments):
    """What a benchmark has printed; it must have ended well."""
    command = [sys.executable, str(ROOT / "benchmarks" / name), *map(str, arguments)]
    done = subprocess.run(
        command, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def numbers(pattern, text):
    """The groups of a pattern in a text, as numbers."""
    found = re.search(pattern, text)
    assert found, text
    return [int(group) for group in found.groups()]


def test_four_kills_cost_no_more_than_what_was_in_flight():
    said = benchmark("kills.py", "--kills", 4, "--documents", 150)
    kills, distinct, asked, bound = numbers(
        r"(\d+) kills, (\d+) distinct requests, (\d+) asked \(at most (\d+) allowed\)", said
    )
    assert kills == 4 and bound == distinct + 4 * 8 and distinct <= asked <= bound
    assert 100 < distinct < 151  # one in ten repeats another, and the query
    assert re.search(r"results equal: [0-9a-f]{16}", said)


def test_a_server_that_fails_loses_no_row():
    said = benchmark("faulty.py", "--documents", 150)
    (requests,) = numbers(r"(\d+) requests: ", said)
    outcomes = {
        name: int(number) for number, name in re.findall(r"(\d+) (\w+)[,\n]", said.splitlines()[0] + "\n")
    }
    assert sum(outcomes.values()) == requests
    assert {"429", "500", "cut", "malformed", "stall"} <= outcomes.keys()
    assert numbers(r"(\d+) lost, (\d+) twice", said) == [0, 0]
    assert numbers(r"(\d+) rows: ", said) == [150]


def test_two_kills_of_a_stage_of_retrieval_leave_no_trace():
    said = benchmark("retrieval_kills.py", "--stage", "gather", "--kills", 2, "--workers", 1, "--size", 0.1)
    kills, finished, repeated, ends, differ = numbers(
        r"(\d+) kills in .*: (\d+) units were finished before one, (\d+) of them repeated; "
        r"(\d+) ends compared, (\d+) stages differ",
        said,
    )
    assert (kills, repeated, differ) == (2, 0, 0) and ends > 1 and finished >= 0
