"""Memory of a process and of all that it has started."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil


def private_bytes(process: psutil.Process | None = None) -> int:
    """Memory of a process (default: this one) that is in no file, with its part of what is shared."""
    rollup = Path(f"/proc/{(process or psutil.Process()).pid}/smaps_rollup").read_text()
    found = re.findall(r"^Pss_(?:Anon|Shmem): +(\d+) kB", rollup, re.MULTILINE)
    return sum(1024 * int(kilobytes) for kilobytes in found)


class Memory:
    """Peak memory of a process and all that it has started: proportional set sizes, summed."""

    EVERY = 0.5  # seconds

    def __init__(self, pid: int) -> None:
        self.peak = 0
        self._pid = pid
        self._end = threading.Event()

    def _watch(self) -> None:
        while not self._end.wait(self.EVERY):
            self.peak = max(self.peak, sum(self._sizes()))

    def _sizes(self) -> Iterator[int]:
        try:
            root = psutil.Process(self._pid)
            processes = [root, *root.children(recursive=True)]
        except psutil.Error:
            return
        for process in processes:
            try:
                yield self.size_of(process)
            except (psutil.Error, OSError):
                continue

    def size_of(self, process: psutil.Process) -> int:
        """Bytes of a process: of what several share, its part."""
        return int(process.memory_full_info().pss)

    @contextmanager
    def watched(self) -> Iterator["Memory"]:
        """Watch until the block ends."""
        thread = threading.Thread(target=self._watch, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._end.set()
            thread.join()


class Anonymous(Memory):
    """Memory that is in no file."""

    def size_of(self, process: psutil.Process) -> int:
        return private_bytes(process)
