"""Model folders as sentence-transformers reads them: where they are, and what it needs to be told."""

from pathlib import Path
from typing import Any

from beirnl import registry
from beirnl.errors import ConfigError, PrerequisiteError
from beirnl.models.cache import model_path
from beirnl.retrieval.own_code import check_code, own_code, restore_buffers
from beirnl.specs import Dtype, ModelRef


def weights(model: ModelRef) -> Path:
    """The folder of a model; downloaded or prepared if it is not there yet.

    Raises:
        PrerequisiteError: it cannot be obtained; for a hub path near to one of the registry, names that one.
        ConfigError: it runs code of a repository that nothing pins.
    """
    try:
        folder = model_path(model)
    except PrerequisiteError as error:
        place = model.source.removeprefix("hub:")
        meant = "" if registry.find_model(place) else registry.model_like(place)
        if not meant or place == model.source:
            raise
        remedy = f"did you mean {meant!r}? If not, {error.remedy}"
        raise PrerequisiteError(error.what, where=error.where, remedy=remedy) from error
    check_code(model, folder)
    return folder


def sentence_transformer(model: ModelRef, folder: Path, device: str, dtype: Dtype) -> Any:
    """A bi-encoder; its modules are those of its folder, or the transformer and the pooling of ``model``.

    Args:
        model: what is loaded, and how its vectors are made where its folder does not say that.
        folder: as :func:`weights` gives it.
        device: torch's name of it.
        dtype: of the weights.

    Raises:
        ConfigError: the folder says it and ``model`` does too, or the model has no pooler.
    """
    from sentence_transformers import SentenceTransformer

    options = settings(model, dtype)
    with own_code(model):
        if model.pooling:
            modules = _pooled(model, folder, options)
            loaded = SentenceTransformer(modules=modules, device=device)
        else:
            loaded = SentenceTransformer(str(folder), device=device, **options)
    if model.trust_remote_code:
        restore_buffers(loaded)
    return loaded.eval()


def settings(model: ModelRef, dtype: Dtype) -> dict[str, Any]:
    """What every class of sentence-transformers is told when it loads a folder."""
    return {
        "trust_remote_code": model.trust_remote_code,
        "local_files_only": True,
        "model_kwargs": {"dtype": dtype},
    }


def _pooled(model: ModelRef, folder: Path, options: dict[str, Any]) -> list[Any]:
    """The transformer of a plain checkpoint, and its pooling."""
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    if (folder / "modules.json").is_file():
        raise ConfigError(
            "this checkpoint says itself how its vectors are made, in modules.json",
            where=model.name,
            remedy="leave `pooling` out",
        )
    shared = {name: options[name] for name in ("trust_remote_code", "local_files_only")}
    kwargs = {
        "model_kwargs": options["model_kwargs"] | shared,
        "config_kwargs": shared,
        "processor_kwargs": shared,
    }
    if model.pooling == "pooler":
        _check_pooler(model, folder)
        output = {"text": {"method": "forward", "method_output_name": "pooler_output"}}
        return [
            Transformer(
                str(folder), modality_config=output, module_output_name="sentence_embedding", **kwargs
            )
        ]
    transformer = Transformer(str(folder), **kwargs)
    return [transformer, Pooling(transformer.get_embedding_dimension(), pooling_mode=model.pooling)]


def _check_pooler(model: ModelRef, folder: Path) -> None:
    """Refuse a checkpoint without a trained pooler: libraries would make up a random one."""
    if not any(".pooler." in f".{name}" for name in _weight_names(folder)):
        raise ConfigError(
            "this checkpoint has no pooler",
            where=model.name,
            remedy='set pooling to "cls" or "mean", as its authors use it',
        )


def _weight_names(folder: Path) -> list[str]:
    """Names of the tensors of a checkpoint, from whichever of its files torch reads."""
    from safetensors import safe_open

    names: list[str] = []
    for file in folder.glob("*.safetensors"):
        with safe_open(file, framework="pt") as tensors:
            names.extend(tensors.keys())
    if not names:
        import torch

        for file in folder.glob("pytorch_model*.bin"):
            names.extend(torch.load(file, map_location="meta", weights_only=True))
    return names
