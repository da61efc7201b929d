"""Late-interaction models: which folders hold one, their language adapters, and whose code may run."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from beirnl.errors import ConfigError
from beirnl.models.cache import model_path
from beirnl.specs import Dtype, ModelRef, Spec


class LateSpec(Spec):
    """A late-interaction model.

    Attributes:
        model: a checkpoint of ColBERT or its kin, or a bi-encoder, whose normalised token vectors are taken.
        query_prompt, document_prompt: in place of the model's own markers; empty: those of the model.
        language: ISO 639-1 code of the texts; chooses the language adapter of a model that has some (XMOD).
        dtype: of the model's weights.
        vectors: how vectors are stored for exhaustive search.
        max_tokens: longest document, special tokens included; None: the model's own limit.
        batch_size: texts in one forward pass.
    """

    model: ModelRef
    query_prompt: str = ""
    document_prompt: str = ""
    language: str = ""
    dtype: Dtype = "float32"
    vectors: Literal["float32", "float16"] = "float16"
    max_tokens: int | None = None
    batch_size: int = 32


def load(spec: LateSpec, device: str) -> Any:
    """The model as a ``MultiVectorEncoder``; of a bi-encoder its normalised token vectors."""
    from sentence_transformers import MultiVectorEncoder, SentenceTransformer
    from sentence_transformers.base.modules import Normalize
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    folder = model_path(spec.model)
    settings: dict[str, Any] = {
        "device": device,
        "trust_remote_code": spec.model.trust_remote_code,
        "local_files_only": True,
        "model_kwargs": {"dtype": spec.dtype},
    }
    with own_code(spec.model):
        if _is_bi_encoder(folder):
            transformer = SentenceTransformer(str(folder), **settings)[0]
            parts = [transformer, MultiVectorMask(), Normalize(module_input_name="token_embeddings")]
            return MultiVectorEncoder(modules=parts, device=device)
        if not _has_projection(folder):
            raise ConfigError(
                "this model was not trained for late interaction: it lacks the projection of token vectors",
                where=spec.model.name,
                remedy="use a ColBERT checkpoint, or a bi-encoder with modules.json",
            )
        return MultiVectorEncoder(str(folder), **settings)


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _is_bi_encoder(folder: Path) -> bool:
    return any(str(module["type"]).endswith(".Pooling") for module in _json(folder / "modules.json"))


def _has_projection(folder: Path) -> bool:
    """Whether the checkpoint brings the projection of token vectors; libraries would make up a random one."""
    modules = [str(module["type"]) for module in _json(folder / "modules.json")]
    kinds = _json(folder / "config.json").get("architectures") or ()
    return (
        any(module.endswith((".Dense", ".MultiVectorMask")) for module in modules)
        or "HF_ColBERT" in kinds
        or any(str(kind).endswith("ForRetrieval") for kind in kinds)
    )


def set_language(model: Any, spec: LateSpec) -> None:
    """Choose the language adapters of an XMOD model (Pfeiffer et al., NAACL 2022): ``nl`` is ``nl_XX``."""
    transformer = model.transformers_model
    if not hasattr(transformer, "set_default_language"):
        return
    names = list(transformer.config.languages)
    fitting = [name for name in names if spec.language and name.startswith(f"{spec.language}_")]
    if not fitting:
        raise ConfigError(
            f"this model has no language adapter for {spec.language or 'an unnamed language'!r}",
            where=spec.model.name,
            remedy=f"give the dataset one of its languages: {', '.join(names)}",
        )
    transformer.set_default_language(fitting[0])


@contextmanager
def own_code(model: ModelRef) -> Iterator[None]:
    """Around the loading of a model: its own code runs only where the registry allows it and pins a revision.

    Raises:
        ConfigError: the model needs code of its own, which the registry does not allow or does not pin.
    """
    entry = "its entry in beirnl/registry/models.toml"
    if model.trust_remote_code and model.revision == "unpinned":
        raise ConfigError(
            "this model runs code of its own, and no revision pins it",
            where=model.name,
            remedy=f"add a revision to {entry}",
        )
    try:
        yield
    except ValueError as error:
        if "trust_remote_code" not in str(error):
            raise
        raise ConfigError(
            "this model runs code of its own, which the registry does not allow",
            where=model.name,
            remedy=f"read that code, then set trust_remote_code = true and a revision in {entry}",
        ) from error
