"""Units in one worker: many together, or one alone."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Room:
    """Who is alone waits until those inside have left, and keeps others out until then and while inside."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._left = threading.Condition()
        self._inside = 0

    @contextmanager
    def together(self) -> Iterator[None]:
        """With others that are together."""
        with self._turn, self._left:
            self._inside += 1
        try:
            yield
        finally:
            with self._left:
                self._inside -= 1
                self._left.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """With nobody else."""
        with self._turn:
            with self._left:
                self._left.wait_for(lambda: self._inside == 0)
            yield
