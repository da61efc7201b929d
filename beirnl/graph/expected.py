"""How many parts and rows an artifact will have, before it is made, and whether that is too much."""

from collections.abc import Iterable, Sequence
from functools import cached_property

from beirnl.errors import StoreError
from beirnl.graph.nodes import Node
from beirnl.stages import STAGES
from beirnl.stages.searching import group
from beirnl.store.artifacts import Artifact, Part
from beirnl.store.files import free_bytes, on_disk
from beirnl.store.places import Place
from beirnl.store.workspace import Workspace


class Expected(Artifact):
    """An artifact that is not made yet, as far as a stage asks for it to count its units.

    Args:
        directory: where it will lie.
        rows: of each of its parts.
    """

    def __init__(self, directory: Place, rows: Sequence[int]) -> None:
        super().__init__(directory)
        self._rows = rows

    @cached_property
    def parts(self) -> list[Part]:
        """Parts without a file."""
        return [Part(file="", rows=rows, sha256="") for rows in self._rows]


def expected(node: Node, workspace: Workspace, known: dict[str, Artifact | None]) -> Artifact | None:
    """The artifact of a node: as it is, or as its inputs tell that it will be; None before those are there.

    A part of what a stage makes has the rows of the shards that its unit reads: a translation has as many as
    its source. (Of a run only the number of parts is told.)

    Args:
        node: whatever is to be made.
        workspace: where that which is made lies.
        known: what has been found, by key; added to.
    """
    if node.key not in known:
        artifact = node.artifact(workspace)
        known[node.key] = artifact if artifact.find_manifest() else _predicted(node, workspace, known)
    return known[node.key]


def _predicted(node: Node, workspace: Workspace, known: dict[str, Artifact | None]) -> Artifact | None:
    inputs = expected_inputs(node, workspace, known)
    if not inputs:
        return None
    units = STAGES[node.stage].units(node.spec, inputs)
    parts = inputs["rows"].parts if "rows" in inputs else []
    rows = [sum(parts[n].rows for n in group(number, units, len(parts))) for number in range(units)]
    return Expected(node.artifact(workspace).directory, rows)


def expected_inputs(
    node: Node, workspace: Workspace, known: dict[str, Artifact | None]
) -> dict[str, Artifact] | None:
    """The inputs of a node, as :func:`expected` has them; None if it has none, or one is not known."""
    found = {name: expected(other, workspace, known) for name, other in node.inputs.items()}
    inputs = {name: artifact for name, artifact in found.items() if artifact is not None}
    return inputs if inputs and len(inputs) == len(found) else None


def check_sizes(nodes: Iterable[Node], workspace: Workspace) -> None:
    """Refuse what the rows that are known show to be too large, before anything of it is made.

    Args:
        nodes: to be made.
        workspace: where.

    Raises:
        ConfigError: a stage does not take so many rows.
        StoreError: vectors whose dimension is known do not fit on the disk.
    """
    known: dict[str, Artifact | None] = {}
    least = 0.0
    for node in nodes:
        stage, inputs = STAGES[node.stage], expected_inputs(node, workspace, known)
        if inputs and stage.check:
            stage.check(node.spec, inputs, node.label)
        if inputs and stage.least_bytes:
            left = 1 - len(node.artifact(workspace).committed()) / max(1, stage.units(node.spec, inputs))
            least += left * (stage.least_bytes(node.spec, inputs["rows"].rows) or 0.0)
    if least > (free := free_bytes(workspace.root)):
        raise StoreError(
            f"the vectors to be made take {least / 1e9:,.1f} GB and the disk has {free / 1e9:,.1f} GB free",
            where=on_disk(workspace.root),
            remedy='free space, or give the dense systems vectors = "float16" or "int8"',
        )
