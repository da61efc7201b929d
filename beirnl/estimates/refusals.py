"""What cannot fit is refused before anything is made, with the number."""

from collections.abc import Sequence

from beirnl.errors import BeirnlError, ConfigError, StoreError
from beirnl.estimates.forecasting import Row
from beirnl.estimates.machine import Machine
from beirnl.stages import STAGES
from beirnl.tally import size_text

#: How less of the disk is taken, by the stage that takes most of it.
_SMALLER = {
    "index": "give the BM25 systems shards = 2 or more, whose indexes are not kept twice",
    "embed": 'give the dense systems vectors = "float16" or "int8", or dimensions',
    "ann-index": 'give the dense systems vectors = "float16" or "int8", or search = "exact"',
    "embed-tokens": 'give the late systems first = "BM25", so that they keep no vectors',
}


def refusal(rows: Sequence[Row], machine: Machine, where: object) -> BeirnlError | None:
    """Why an experiment cannot run on a machine; None if it can, as far as is known.

    Args:
        rows: the estimate.
        machine: its memory, and what is free on the workspace's disk.
        where: the experiment file.
    """
    return _memory(rows, machine, where) or _disk(rows, machine, where)


def _memory(rows: Sequence[Row], machine: Machine, where: object) -> BeirnlError | None:
    known = [row for row in rows if row.memory]
    worst = max(known, key=lambda row: (row.memory or 0) * row.workers, default=None)
    if worst is None or worst.memory is None or worst.memory * worst.workers <= machine.memory:
        return None
    fitting = int(machine.memory // worst.memory)
    fewer = f"set workers = {fitting}, or " if fitting else ""
    together = f" each, {worst.workers} workers {size_text(worst.memory * worst.workers)}"
    return ConfigError(
        f"a worker of {worst.node.stage} for {worst.node.label} {worst.node.purpose} takes about "
        f"{size_text(worst.memory)}{together if worst.workers > 1 else ''}, and this machine has "
        f"{size_text(machine.memory)} of memory",
        where=where,
        remedy=fewer + STAGES[worst.node.stage].less_memory(1),
    )


def _disk(rows: Sequence[Row], machine: Machine, where: object) -> BeirnlError | None:
    needed = sum(row.disk or 0 for row in rows)
    if needed <= machine.disk:
        return None
    most = max(rows, key=lambda row: row.disk or 0)
    advice = _SMALLER.get(most.node.stage)
    largest = f"{size_text(most.disk or 0)} by {most.node.stage} for {most.node.label}"
    return StoreError(
        f"about {size_text(needed)} are to be written, most of it ({largest}), and the workspace's disk has "
        f"{size_text(machine.disk)} free",
        where=where,
        remedy="free space, or set workspace to a larger disk" + (f"; or {advice}" if advice else ""),
    )
