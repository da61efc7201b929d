"""What this machine has: memory and disk."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from beirnl.store.files import free_bytes
from beirnl.store.places import Place


class Machine(NamedTuple):
    """Bytes of memory that processes may take together, and bytes that are free on the workspace's disk."""

    memory: int
    disk: int


def this_machine(workspace: Place) -> Machine:
    """The machine that runs this, and the disk that a workspace lies on, or will."""
    total = Path("/proc/meminfo").read_text(encoding="ascii").split("MemTotal:")[1].split()[0]
    return Machine(min(int(total) << 10, *_limits()), free_bytes(workspace))


def _limits(groups: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> Iterator[int]:
    """What the control groups of this process may take, of version 2 (``0::/path``) or 1."""
    for line in groups.read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory"):
            folder = Path(root, controllers, path.lstrip("/"))
            name = "memory.limit_in_bytes" if controllers else "memory.max"
            for place in (folder, *folder.parents):
                limit = (place / name).read_text(encoding="ascii") if (place / name).is_file() else ""
                if limit.strip().isdigit():
                    yield int(limit)
