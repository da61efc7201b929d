"""Failpoints: named places where a test makes a process die, fail or run out of disk.

``BEIRNL_FAILPOINT=after-part:3:kill`` kills the process that has just written the part of shard 3. Several
rules stand separated by commas, and ``*`` means every shard. With ``BEIRNL_FAILPOINT_ONCE=DIR`` each rule
fires once over all processes that share the directory, so that the rerun of a killed shard goes through.
"""

import errno
import os
import re
import signal
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from beirnl.errors import ConfigError

VARIABLE = "BEIRNL_FAILPOINT"
ONCE_VARIABLE = "BEIRNL_FAILPOINT_ONCE"

Point = Literal["before-part", "after-part", "after-receipt", "after-answer"]


class _Rule(NamedTuple):
    point: str
    shard: int | None  # None: every shard
    action: str

    @property
    def marker(self) -> str:
        return f"{self.point}.{'every' if self.shard is None else self.shard}.{self.action}"


def failpoint(point: Point, shard: int) -> None:
    """Do what ``BEIRNL_FAILPOINT`` asks for at this point of this shard; nothing while it is unset.

    Args:
        point: the place in the code.
        shard: number of the shard at work.

    Raises:
        ConfigError: the variable is ill-formed.
        RuntimeError: the action is ``raise``.
        OSError: the action is ``enospc``; its ``errno`` is ``ENOSPC``.
    """
    setting = os.environ.get(VARIABLE)
    if not setting:
        return
    for rule in _parse(setting):
        if rule.point == point and rule.shard in (None, shard) and _claim(rule):
            _ACTIONS[rule.action](f"failpoint {point} of shard {shard}")


def _kill(message: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _raise(message: str) -> None:
    raise RuntimeError(message)


def _enospc(message: str) -> None:
    raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)} ({message})")


_ACTIONS: dict[str, Callable[[str], None]] = {"kill": _kill, "raise": _raise, "enospc": _enospc}
_RULE = re.compile(r"([a-z-]+):([0-9]+|\*):([a-z]+)")


@lru_cache(maxsize=8)
def _parse(setting: str) -> tuple[_Rule, ...]:
    return tuple(_rule(text.strip()) for text in setting.split(","))


def _rule(text: str) -> _Rule:
    match = _RULE.fullmatch(text)
    if match is None or match[1] not in get_args(Point) or match[3] not in _ACTIONS:
        raise ConfigError(
            f"{text!r} is not a failpoint",
            where=VARIABLE,
            remedy=f"write POINT:SHARD:ACTION with a point of {', '.join(get_args(Point))}, "
            f"a shard number or *, and an action of {', '.join(_ACTIONS)}",
        )
    return _Rule(match[1], None if match[2] == "*" else int(match[2]), match[3])


def _claim(rule: _Rule) -> bool:
    """True if this process may fire the rule; the marker file decides between processes."""
    folder = os.environ.get(ONCE_VARIABLE)
    if not folder:
        return True
    Path(folder).mkdir(parents=True, exist_ok=True)
    try:
        Path(folder, rule.marker).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
