"""A stage that does nothing, for workers too: they import this module with the spec of their task."""

from beirnl.specs import Spec
from beirnl.stages import STAGES, Stage
from beirnl.stages.base import Unit


class EmptySpec(Spec):
    units: int


def nothing(unit: Unit) -> None:
    """No rows, no parts: what is left is the pipeline and its executor."""


def units(spec: EmptySpec, inputs: object) -> int:
    return spec.units


STAGES.setdefault("empty", Stage("empty", 1, nothing, units))
