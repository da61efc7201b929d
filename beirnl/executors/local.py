"""Units one after another in this process: for small sets, and to debug."""

from collections.abc import Sequence
from typing import Any

from beirnl.executors import Done
from beirnl.stages import STAGES
from beirnl.stages.base import Task, execute


class LocalExecutor:
    """Keeps what the last pool loaded, so that a model that the next pool shares is not loaded again."""

    def __init__(self) -> None:
        self._pool = ""
        self._resource: Any = None

    def run(self, tasks: Sequence[Task], done: Done) -> None:
        """Run the tasks in order."""
        for task in tasks:
            stage = STAGES[task.stage]
            if stage.load and stage.pool_key(task) != self._pool:
                self.close()
                self._resource, self._pool = stage.load(task), stage.pool_key(task)
            done(task, execute(stage, task, self._resource if stage.load else None))

    def nodes(self) -> int:
        """This machine."""
        return 1

    def close(self) -> None:
        """Let go of the loaded model before the next one is loaded."""
        close = getattr(self._resource, "close", None)
        if close:
            close()
        self._resource, self._pool = None, ""
