"""From what a piece of work took to what another one, of another size, will take."""

from typing import NamedTuple

from beirnl.cost import Range
from beirnl.estimates.laws import LAWS, Law, Size
from beirnl.estimates.measuring import written
from beirnl.estimates.probes import Probe
from beirnl.estimates.sizes import Sizes
from beirnl.graph import Node
from beirnl.pipeline import Pipeline
from beirnl.stages import STAGES
from beirnl.store.artifacts import REDUCE
from beirnl.wording import counted

#: How far a rate may be off: that of a probe, and that of finished units.
PROBED, FINISHED = Range(0.75, 1.0, 1.5), Range(0.9, 1.0, 1.15)


class Rate(NamedTuple):
    """What work took on one worker.

    Attributes:
        seconds, size: of units of work.
        written, whole: bytes of all units together with their reduction, and the size of all units; None
            where the reduction is still to be made.
        reduction: its seconds.
        margin: how far the rate may be off.
        origin: where it is from, for people.
    """

    seconds: float
    size: Size
    written: int
    whole: Size | None
    reduction: float
    margin: Range
    origin: str

    def seconds_of(self, law: Law, size: Size) -> Range:
        """Seconds that units take that are so large together."""
        return _ratio(law, size, self.size, self.seconds).times(self.margin)

    def reduction_of(self, law: Law, size: Size) -> Range:
        """Seconds of the reduction."""
        return _ratio(law, size, self.whole or self.size, self.reduction).times(self.margin)

    def written_of(self, law: Law, size: Size) -> float:
        """Bytes on the disk, of units and reduction."""
        return self.written * law.volume(size) / max(1e-9, law.volume(self.whole or self.size))


def _ratio(law: Law, size: Size, measured: Size, seconds: float) -> Range:
    ends = zip(law.effort(size), law.effort(measured), strict=True)
    low, mid, high = (seconds * effort / max(1e-9, of) for effort, of in ends)
    return Range(min(low, high), mid, max(low, high))


def of_probe(stage: str, probe: Probe) -> Rate:
    """The rate that a probe has shown."""
    law, found, units = LAWS[stage], probe.measured, probe.measured.units
    if STAGES[stage].reduce is None:
        units = units[-1:]
    size = law.part(probe.size, found.rows)
    return Rate(
        seconds=found.seconds,
        size=size if law.partial else size._replace(units=1),  # rows and seconds are those of the last unit
        written=sum(written for _, _, written in units) + found.reduced,
        whole=law.part(probe.size, sum(rows for rows, _, _ in units)),
        reduction=found.reduction,
        margin=PROBED,
        origin="probe",
    )


def of_finished(pipeline: Pipeline, sizes: Sizes, node: Node) -> Rate | None:
    """The rate of a node's finished units, by their receipts; None where there are none."""
    artifact, law = node.artifact(pipeline.workspace), LAWS[node.stage]
    manifest, receipts = artifact.find_manifest(), artifact.receipts()
    rows = sum(receipt.rows_in for receipt in receipts)
    if not rows:
        return None
    reduced = manifest.reduced if manifest else artifact.receipt(REDUCE)
    size = law.part(sizes.of(node), rows)
    return Rate(
        seconds=sum(receipt.seconds for receipt in receipts),
        size=size,
        written=written(artifact.directory, [*receipts, *([reduced] if reduced else [])]),
        whole=size if reduced or not STAGES[node.stage].reduce else None,
        reduction=reduced.seconds if reduced else 0.0,
        margin=FINISHED,
        origin=counted(len(receipts), "finished unit", "finished units"),
    )
