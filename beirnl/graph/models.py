"""Models as an experiment names them."""

from beirnl import registry
from beirnl.config import Experiment, resolve_path
from beirnl.specs import ModelRef


def resolve(experiment: Experiment, name: str, kind: registry.Kind) -> ModelRef:
    """A model by its registry name, hub path, or folder (relative to the experiment file)."""
    local = resolve_path(name, experiment.file)
    return registry.resolve_model(str(local) if local.is_dir() else name, kind)
