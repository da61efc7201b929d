"""Models as an experiment names them."""

from beirnl import registry
from beirnl.config import Experiment, resolve_path
from beirnl.models.cache import folder_at_hand
from beirnl.retrieval.own_code import check_allowed, check_pinned
from beirnl.specs import Dtype, ModelRef


def resolve(experiment: Experiment, name: str, kind: registry.Kind, dtype: Dtype | None = None) -> ModelRef:
    """A model by its registry name, hub path, or folder (relative to the experiment file).

    Raises:
        ConfigError: no such model; or it is not safe in this number format; or it needs code of its own that
            the registry does not allow, or does not pin, as far as that can be told from what is on this
            machine.
    """
    local = resolve_path(name, experiment.file)
    model = registry.resolve_model(str(local) if local.is_dir() else name, kind)
    entry = None if local.is_dir() else registry.find_model(name)
    if entry and dtype:
        entry.check_dtype(dtype)
    check_pinned(model)
    if kind != "llm" and (folder := folder_at_hand(model)):  # engines have architectures of their own
        check_allowed(model, folder)
    return model
