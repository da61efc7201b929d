"""Models as an experiment names them."""

from beirnl import registry
from beirnl.config import Experiment, resolve_path
from beirnl.models.cache import folder_at_hand
from beirnl.retrieval.own_code import check_allowed, check_pinned
from beirnl.specs import ModelRef


def resolve(experiment: Experiment, name: str, kind: registry.Kind) -> ModelRef:
    """A model by its registry name, hub path, or folder (relative to the experiment file).

    Raises:
        ConfigError: no such model; or it needs code of its own that the registry does not allow, or does not
            pin, as far as that can be told from what is on this machine.
    """
    local = resolve_path(name, experiment.file)
    model = registry.resolve_model(str(local) if local.is_dir() else name, kind)
    check_pinned(model)
    if kind != "llm" and (folder := folder_at_hand(model)):  # engines have architectures of their own
        check_allowed(model, folder)
    return model
