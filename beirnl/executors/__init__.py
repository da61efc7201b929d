"""Executors run the units of a stage: in this process, or in actor pools on a Ray cluster.

This is the only place that imports ray. Both executors have the same outcome: they call
:func:`beirnl.stages.base.execute`, and receipts are all that counts.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from beirnl.stages.base import Task
from beirnl.store.artifacts import Receipt
from beirnl.tally import Tally

Done = Callable[[Task, Receipt], None]
Aside = Callable[[Task], None]


class Executor(Protocol):
    """Runs tasks of one pool, and tells of each that is done."""

    def run(self, tasks: Sequence[Task], done: Done, aside: Aside) -> None:
        """Run all tasks, of which there may be none; they share a stage and a pool.

        Args:
            tasks: what is to be run.
            done: is told of each that is done.
            aside: is told of each that has killed its workers, when the others go on without it.

        Raises:
            SetAsideError: some units have killed their workers; all others have been run.
            BeirnlError: that of a unit.
        """

    def observe(self, stage: str, tally: Tally) -> None:
        """Show on the metrics of the cluster, where there are any, how far a stage is."""

    def nodes(self) -> int:
        """Number of machines that run units."""

    def close(self) -> None:
        """Let go of what was loaded."""
