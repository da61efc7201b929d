"""What an entry of ``models.toml`` says about a model."""

from typing import Literal

from pydantic import Field, model_validator

from beirnl.errors import ConfigError
from beirnl.registry.entries import Entry
from beirnl.specs import Dtype, Pooling

Kind = Literal["encoder", "reranker", "late-interaction", "llm"]

#: Stands in a prompt where the task is said in words.
_PLACE = "{instruction}"


class Prompts(Entry):
    """What a model wants in front of its input, in the words of its authors."""

    query: str = ""
    document: str = ""


class ModelEntry(Entry):
    """One model.

    Attributes:
        name: what an experiment file calls it: the last part of its hub path, where it has one.
        aliases: other names of it: those of papers and earlier hub paths. The hub path is always one.
        kind: what it is used as.
        hub: ``ORG/NAME`` on the Hugging Face hub, or empty.
        revision: commit on the hub; empty if no source pins it.
        package: ``DIST==VERSION`` of a package that carries the weights, or empty.
        recipe: key of :data:`beirnl.models.recipes.RECIPES` for such a package.
        licence: SPDX identifier where there is one; ``unstated`` where the authors state none.
        base: what it was trained from, in the words of its paper.
        parameters: in millions.
        active_parameters: in millions, of a model that uses only some of them for a text; else None.
        dimension: length of a vector; ``None`` for models that yield none.
        max_tokens: the longest input, special tokens included.
        pooling: how a vector is made from the tokens', for a checkpoint that does not say it itself.
        modules: what the checkpoint says itself, in sentence-transformers' ``modules.json``: what follows
            the transformer, in its order.
        prompts: prefixes for queries and documents; ``{instruction}`` stands for the task in words.
        instruction: the task in words, as the model card says it.
        tasks: the model's own names of what it does with queries and documents, for one with task adapters.
        language_adapters: whether it reads through an adapter of the text's language.
        dtypes: number formats that are safe, where a source says that another is not; empty: none says so.
        api: what the provider of an OpenAI-compatible API calls it, or empty.
        tokenizer: name of tiktoken's encoding that such a model has, or empty.
        notes: what a user should know before relying on it.
        for_retrieval: whether it was trained for retrieval; None: nobody says.
        training: datasets it was trained on, by their name here, for marks of contamination.
        training_source: who says so; empty: nobody, so that no mark does not mean unseen.
        trust_remote_code: whether the model's own code from the hub is run.
        code: ``ORG/NAME@COMMIT`` of the repository with that code, where it is not the model's.
    """

    name: str
    aliases: tuple[str, ...] = ()
    kind: Kind
    hub: str = ""
    revision: str = ""
    package: str = ""
    recipe: str = ""
    licence: str
    base: str = ""
    parameters: float | None = Field(default=None, gt=0)
    active_parameters: float | None = Field(default=None, gt=0)
    dimension: int | None = None
    max_tokens: int | None = None
    pooling: Pooling = ""
    modules: tuple[Literal["mean", "cls", "dense", "normalise"], ...] = ()
    prompts: Prompts = Prompts()
    instruction: str = ""
    tasks: Prompts = Prompts()
    language_adapters: bool = False
    dtypes: tuple[Dtype, ...] = ()
    api: str = ""
    tokenizer: str = ""
    notes: str = ""
    for_retrieval: bool | None = None
    training: tuple[str, ...] = ()
    training_source: str = ""
    trust_remote_code: bool = False
    code: str = ""

    @model_validator(mode="after")
    def _whole(self) -> "ModelEntry":
        if _PLACE in self.prompts.query + self.prompts.document and not self.instruction:
            raise ValueError(f"a prompt holds {_PLACE}, and there is no instruction")
        if self.code and not self.trust_remote_code:
            raise ValueError("code is named, and trust_remote_code is not set")
        if self.pooling and self.modules:
            raise ValueError("pooling is for a checkpoint without modules")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Everything that it can be called, its own name first."""
        return (self.name, *([self.hub] if self.hub else []), *self.aliases)

    def prompts_with(self, instruction: str | None = None) -> Prompts:
        """The prompts with the task said in words.

        Args:
            instruction: the task of a dataset (:func:`beirnl.registry.instruction`); None: the model card's.
        """
        said = self.instruction if instruction is None else instruction
        query, document = (text.replace(_PLACE, said) for text in (self.prompts.query, self.prompts.document))
        return Prompts(query=query, document=document)

    def check_dtype(self, dtype: Dtype) -> None:
        """Refuse a number format that gives wrong vectors.

        Raises:
            ConfigError: a source says that it is not safe for this model; names those that are.
        """
        if self.dtypes and dtype not in self.dtypes:
            raise ConfigError(
                f"dtype {dtype} is not safe for this model",
                where=self.name,
                remedy="set dtype to " + " or ".join(f'"{safe}"' for safe in self.dtypes),
            )
