"""Models as an experiment names them."""

from beirnl import registry
from beirnl.config import Experiment, ModelConfig, resolve_path
from beirnl.errors import ConfigError
from beirnl.models.cache import folder_at_hand
from beirnl.retrieval.own_code import check_allowed, check_pinned
from beirnl.specs import Dtype, ModelRef


def find(experiment: Experiment, name: str) -> registry.ModelEntry | None:
    """The facts of a model: those of the file's ``[[model]]``, else the registry's; None for a bare folder or
    hub path."""
    own: dict[str, registry.ModelEntry] = {model.name: model for model in experiment.model}
    return own.get(name) or registry.find_model(name)


def resolve(experiment: Experiment, name: str, kind: registry.Kind, dtype: Dtype | None = None) -> ModelRef:
    """A model by its name in the file or the registry, hub path, or folder (relative to the experiment file).

    Raises:
        ConfigError: no such model; or it is not safe in this number format; or it needs code of its own that
            the registry does not allow, or does not pin, as far as that can be told from what is on this
            machine.
    """
    entry = find(experiment, name)
    local = resolve_path(name, experiment.file)
    if isinstance(entry, ModelConfig):
        model = _own(experiment, entry, kind)
    else:
        entry = None if local.is_dir() else entry
        model = registry.resolve_model(str(local) if local.is_dir() else name, kind)
    if entry and dtype:
        entry.check_dtype(dtype)
    check_pinned(model)
    if kind != "llm" and (folder := folder_at_hand(model)):  # engines have architectures of their own
        check_allowed(model, folder)
    return model


def _own(experiment: Experiment, entry: ModelConfig, kind: registry.Kind) -> ModelRef:
    """The reference of a model that the file describes."""
    if entry.kind != kind:
        raise ConfigError(
            f"model {entry.name!r} is used as {kind} and is described as {entry.kind}",
            remedy=f'set kind = "{kind}" under its [[model]], or use another model',
        )
    shared = entry.model_dump(include={"trust_remote_code", "code", "pooling"})
    if entry.path:
        folder = registry.resolve_model(str(resolve_path(entry.path, experiment.file)), kind)
        return folder.model_copy(update={"name": entry.name, **shared})
    source = f"api:{entry.api}" if entry.api else f"hub:{entry.hub}"
    return ModelRef(name=entry.name, source=source, revision=entry.revision or "unpinned", **shared)
