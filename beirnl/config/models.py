"""``[[model]]``: a model that the registry does not know, described in the experiment file."""

from pydantic import model_validator

from beirnl import registry
from beirnl.config.fields import Line, Name


class ModelConfig(registry.ModelEntry):
    """``[[model]]``: facts of a model under a name that systems and translations can use.

    The fields are those of :class:`beirnl.registry.ModelEntry`; ``max_tokens`` also cuts longer texts.

    Attributes:
        name: not one of the registry.
        kind: what it is used as (default: ``encoder``).
        licence: may stay empty.
        path: folder with the weights, in place of ``hub`` or ``api``.
    """

    name: Name
    kind: registry.Kind = "encoder"
    licence: str = ""
    path: Line | None = None

    @model_validator(mode="after")
    def _found(self) -> "ModelConfig":
        if registry.find_model(self.name):
            raise ValueError(f"the registry has a model {self.name!r}: give this one another name")
        if self.package or self.recipe:
            raise ValueError("package and recipe are for models of the registry: give path, hub or api")
        if sum(map(bool, (self.path, self.hub, self.api))) != 1:
            raise ValueError("needs one of path, hub and api")
        return self
