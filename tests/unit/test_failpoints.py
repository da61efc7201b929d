"""Failpoints fire where, when and as often as the environment says."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from beirnl.errors import ConfigError
from beirnl.store.failpoints import ONCE_VARIABLE, VARIABLE, failpoint

ROOT = Path(__file__).resolve().parents[2]
REACH = "from beirnl.store.failpoints import failpoint; failpoint('after-part', 3); print('survived')"


def reach(**variables: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run([sys.executable, "-c", REACH], env=environment, capture_output=True, text=True)


def test_nothing_happens_while_the_variable_is_unset(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    failpoint("before-part", 0)


def test_raise_fires_at_its_point_and_shard_only(monkeypatch):
    monkeypatch.setenv(VARIABLE, "after-part:3:raise")
    failpoint("after-part", 2)
    failpoint("before-part", 3)
    with pytest.raises(RuntimeError, match="after-part of shard 3"):
        failpoint("after-part", 3)


def test_enospc_is_an_oserror_with_its_number(monkeypatch):
    monkeypatch.setenv(VARIABLE, "after-answer:*:enospc")
    with pytest.raises(OSError, match="after-answer") as caught:
        failpoint("after-answer", 41)
    assert caught.value.errno == errno.ENOSPC


def test_several_rules_stand_side_by_side(monkeypatch):
    monkeypatch.setenv(VARIABLE, "after-part:1:raise, after-receipt:2:enospc")
    failpoint("after-part", 2)
    with pytest.raises(RuntimeError):
        failpoint("after-part", 1)
    with pytest.raises(OSError, match="after-receipt"):
        failpoint("after-receipt", 2)


def test_kill_ends_the_process_without_clean_up():
    done = reach(**{VARIABLE: "after-part:3:kill"})
    assert done.returncode == -signal.SIGKILL
    assert done.stdout == ""


def test_kill_of_another_shard_lets_the_process_live():
    done = reach(**{VARIABLE: "after-part:30:kill"})
    assert (done.returncode, done.stdout) == (0, "survived\n")


def test_once_fires_once_over_processes(tmp_path):
    variables = {VARIABLE: "after-part:*:kill", ONCE_VARIABLE: str(tmp_path / "fired")}
    codes = [reach(**variables).returncode for _ in range(3)]
    assert codes == [-signal.SIGKILL, 0, 0]


def test_once_counts_each_rule_for_itself(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, "after-part:1:raise,after-part:2:raise")
    monkeypatch.setenv(ONCE_VARIABLE, str(tmp_path))
    for shard in (1, 2):
        with pytest.raises(RuntimeError):
            failpoint("after-part", shard)
        failpoint("after-part", shard)


@pytest.mark.parametrize(
    "setting",
    [
        "after-part",
        "after-part:3",
        "after-part:3:explode",
        "afterpart:3:kill",
        "after-part:-1:kill",
        "after-part:x:kill",
        "after-part:²:kill",
        "after-part:3:kill:now",
        "after-part:3:raise,",
    ],
)
def test_an_ill_formed_value_names_the_choices(monkeypatch, setting):
    monkeypatch.setenv(VARIABLE, setting)
    with pytest.raises(ConfigError) as caught:
        failpoint("before-part", 0)
    message = str(caught.value)
    assert message.startswith(VARIABLE)
    for word in ("before-part", "after-part", "after-receipt", "after-answer", "kill", "raise", "enospc"):
        assert word in message


def test_unset_costs_next_to_nothing(monkeypatch):
    from timeit import timeit

    monkeypatch.delenv(VARIABLE, raising=False)
    assert timeit(lambda: failpoint("after-answer", 1), number=10_000) / 10_000 < 50e-6
