"""Late-interaction models: which folders hold one, and how they are loaded."""

from typing import Any, Literal

from beirnl.errors import ConfigError
from beirnl.retrieval.checkpoints import settings, weights
from beirnl.retrieval.heads import has_projection, pools
from beirnl.retrieval.own_code import own_code, restore_buffers
from beirnl.specs import Dtype, ModelRef, Spec


class LateSpec(Spec):
    """A late-interaction model.

    Attributes:
        model: a checkpoint of ColBERT or its kin, or a bi-encoder, whose normalised token vectors are taken.
        query_prompt, document_prompt: in place of the model's own markers; empty: those of the model.
        language: of the texts; chooses the adapter of a model that has some; see
            :mod:`beirnl.retrieval.languages`.
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

    folder = weights(spec.model)
    options: dict[str, Any] = {"device": device, **settings(spec.model, spec.dtype)}
    with own_code(spec.model):
        if pools(folder):
            transformer = SentenceTransformer(str(folder), **options)[0]
            parts = [transformer, MultiVectorMask(), Normalize(module_input_name="token_embeddings")]
            return _whole(spec, MultiVectorEncoder(modules=parts, device=device))
        if not has_projection(folder):
            raise ConfigError(
                "this model was not trained for late interaction: it lacks the projection of token vectors",
                where=spec.model.name,
                remedy="use a ColBERT checkpoint, or a bi-encoder with modules.json",
            )
        return _whole(spec, MultiVectorEncoder(str(folder), **options))


def _whole(spec: LateSpec, model: Any) -> Any:
    if spec.model.trust_remote_code:
        restore_buffers(model)
    return model
