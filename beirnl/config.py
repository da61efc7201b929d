"""The experiment file: TOML, strictly typed; an unknown key is an error that names the nearest valid one.

What enters the keys of artifacts is resolved from here into :mod:`beirnl.specs`; ``Runtime`` never does.
"""

import difflib
import os
import re
import tomllib
import types
import typing
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from beirnl.errors import ConfigError
from beirnl.specs import CheckSpec, Dtype

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._+-]*$"
PACKAGE = Path(__file__).resolve().parent


class Section(BaseModel):
    """Base of all tables of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False)


class DatasetConfig(Section):
    """``[[dataset]]``: a retrieval set in BEIR form.

    Attributes:
        name: how reports call it; a name of the dataset registry brings that entry's facts.
        path: folder with ``corpus.jsonl``, or with sub-folders that have one (a dataset in parts).
            ``${VARIABLE}`` is replaced. Default: the registry's; that of ``sample`` is in the package.
        language: ISO code of the text (default: the registry's, else ``en``).
        split: which file of ``qrels/`` judges (default: the registry's, else ``test``).
        domain: named in the translation prompts (BEIR-NL, Table 1).
        remove_self_matches: drop a hit whose id is the query's, before every cut.
        parts: the parts that must be there; the mean over fewer is shown as incomplete.
        shard_documents: most documents that a shard holds, about (default: 10,000; less in a small corpus).
    """

    name: str = Field(pattern=_NAME)
    path: str | None = None
    language: str | None = None
    split: str | None = None
    domain: str | None = None
    remove_self_matches: bool | None = None
    parts: tuple[str, ...] | None = None
    shard_documents: int | None = Field(default=None, gt=0)


class TranslationConfig(Section):
    """``[translation]``: every dataset is also evaluated in its translation.

    Attributes:
        to: ISO code of the target language.
        engine: ``vllm``, ``transformers``, ``mock``, or ``auto``: vLLM where it is installed.
        model: a model of the registry, a hub path, or a folder.
        query_prompt, document_prompt: prompt files of the registry.
        checks: thresholds; changing them asks the model nothing again.
    """

    to: str
    engine: str = "auto"
    model: str | None = None
    datasets: tuple[str, ...] | None = None
    query_prompt: str = "paper-query"
    document_prompt: str = "paper-document"
    dtype: Dtype = "bfloat16"
    temperature: float = Field(default=0.0, ge=0)
    max_tokens: int = Field(default=512, gt=0)
    max_model_len: int = Field(default=4096, gt=0)
    stop: tuple[str, ...] = ()
    checks: CheckSpec = CheckSpec()


class _System(Section):
    name: str = Field(pattern=_NAME)
    datasets: tuple[str, ...] | None = None
    languages: tuple[str, ...] | None = None
    depth: int = Field(default=100, gt=0, le=100_000)


class Bm25System(_System):
    """``[[system]]`` of kind ``bm25``."""

    kind: Literal["bm25"]
    profile: Literal["elasticsearch", "flat"] = "elasticsearch"
    analyzer: str | None = None
    k1: float = Field(default=1.2, ge=0)
    b: float = Field(default=0.75, ge=0, le=1)
    tie_breaker: float = Field(default=0.5, ge=0, le=1)


class DenseSystem(_System):
    """``[[system]]`` of kind ``dense``: a bi-encoder and exact search by cosine."""

    kind: Literal["dense"]
    model: str
    dtype: Dtype = "float32"
    vectors: Literal["float32", "float16"] = "float32"
    max_tokens: int | None = Field(default=None, gt=0)
    batch_size: int = Field(default=32, gt=0)


class RerankSystem(_System):
    """``[[system]]`` of kind ``rerank``: a second stage over the first ``depth`` of another system."""

    kind: Literal["rerank"]
    first: str
    model: str
    method: Literal["cross-encoder", "bi-encoder"] = "cross-encoder"
    dtype: Dtype = "float32"
    max_tokens: int | None = Field(default=None, gt=0)
    batch_size: int = Field(default=32, gt=0)


System = Annotated[Bm25System | DenseSystem | RerankSystem, Field(discriminator="kind")]


class EvaluationConfig(Section):
    """``[evaluation]``: measures by their names in ir_measures."""

    measures: tuple[str, ...] = Field(default=("nDCG@10", "R@100"), min_length=1)


class Runtime(Section):
    """``[runtime]``: where and how fast; never part of a key.

    Attributes:
        workers: actors per pool; more than one, or an address, means Ray.
        threads: threads per worker (default: all cores over the workers).
        gpus: GPUs per worker, fractions allowed.
        device: where encoders run.
        object_store_mb: Ray's object store on one machine.
    """

    workers: int = Field(default=1, gt=0)
    threads: int | None = Field(default=None, gt=0)
    gpus: float = Field(default=0.0, ge=0)
    device: str = Field(default="auto", pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$")
    object_store_mb: int = Field(default=256, ge=80)

    @property
    def worker_threads(self) -> int:
        """Threads that one worker may use."""
        return self.threads or max(1, len(os.sched_getaffinity(0)) // self.workers)


class Experiment(Section):
    """A whole experiment file."""

    name: str = Field(pattern=_NAME)
    workspace: str = "workspace"
    notes: tuple[str, ...] = ()
    dataset: tuple[DatasetConfig, ...] = Field(min_length=1)
    translation: TranslationConfig | None = None
    system: tuple[System, ...] = ()
    evaluation: EvaluationConfig = EvaluationConfig()
    runtime: Runtime = Runtime()
    file: Path = Field(default=Path("experiment.toml"), exclude=True)

    @model_validator(mode="after")
    def _names(self) -> "Experiment":
        if not self.system and not self.translation:
            raise ValueError("there is neither a system nor a translation: nothing to do")
        _unique([d.name for d in self.dataset], "dataset")
        systems = [s.name for s in self.system]
        _unique(systems, "system")
        datasets = [d.name for d in self.dataset]
        users = [*self.system, *([self.translation] if self.translation else [])]
        for user in users:
            for name in user.datasets or ():
                _known(name, datasets, "dataset")
        for position, system in enumerate(self.system):
            if isinstance(system, RerankSystem):
                _known(system.first, systems[:position], "first stage (a system above it)")
        return self

    @property
    def workspace_path(self) -> Path:
        """The workspace, against the folder of the experiment file."""
        return resolve_path(self.workspace, self.file)

    @property
    def workspace_is_relative(self) -> bool:
        """Whether the file names the workspace by a relative path."""
        return not Path(expand(self.workspace, self.file)).is_absolute()


def _unique(names: list[str], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two {what}s are called {name!r}")


def _known(name: str, names: list[str], what: str) -> None:
    if name not in names:
        raise ValueError(f"no {what} is called {name!r}{nearest(name, names)}")


def nearest(name: str, names: list[str]) -> str:
    """``; did you mean 'x'?`` for the valid name next to ``name``, or the list of names."""
    close = difflib.get_close_matches(name, names, 1, 0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f" (valid: {', '.join(sorted(names))})" if names else ""


_DEFAULTS = {"BEIRNL_DATA": str(PACKAGE.parents[1] / "shared" / "data")}


def expand(text: str, file: Path) -> str:
    """Replace ``${VARIABLE}``; ConfigError where the environment has none of that name."""

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        found = os.environ.get(name, _DEFAULTS.get(name))
        if found is None:
            raise ConfigError(
                f"environment variable {name} is not set", where=file, remedy=f"export {name}=..."
            )
        return found

    return re.sub(r"\$\{(\w+)\}", value, text)


def resolve_path(text: str, file: Path) -> Path:
    """A path of the file: variables replaced, relative to the file's folder."""
    return (file.parent / Path(expand(text, file)).expanduser()).resolve()


def load_experiment(path: Path) -> Experiment:
    """Read and validate an experiment file.

    Raises:
        ConfigError: the file is absent or not TOML, a key is unknown, a value is wrong.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        what = (
            "is not there" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        )
        raise ConfigError(what, where=path, remedy="give the path of an experiment file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"is not TOML: {error}", where=path) from error
    try:
        return Experiment.model_validate({**data, "file": path.resolve()})
    except ValidationError as error:
        raise ConfigError(_first_line(error), where=path) from error


def _first_line(error: ValidationError) -> str:
    """One line for the first error, an unknown key first, with the nearest valid key."""
    errors = sorted(error.errors(), key=lambda e: e["type"] != "extra_forbidden")
    first = errors[0]
    place = [part for part in first["loc"] if part not in ("bm25", "dense", "rerank")]
    where = ".".join(str(part) for part in place)
    if first["type"] == "extra_forbidden":
        key = str(place[-1])
        return f"unknown key {where!r}{nearest(key, _valid_keys(first['loc'][:-1]))}"
    message = str(first["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


def _valid_keys(location: tuple[Any, ...]) -> list[str]:
    """The keys that are valid in the table at ``location`` of the experiment file."""
    kinds: dict[str, type[BaseModel]] = {"bm25": Bm25System, "dense": DenseSystem, "rerank": RerankSystem}
    model: type[BaseModel] = Experiment
    for part in location:
        if part in kinds:
            model = kinds[part]
        elif isinstance(part, str) and part in model.model_fields:
            model = _inner(model.model_fields[part].annotation) or model
    return [name for name in model.model_fields if name != "file"]


def _inner(annotation: Any) -> type[BaseModel] | None:
    """The model within an annotation such as ``tuple[DatasetConfig, ...]`` or ``X | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if typing.get_origin(annotation) in (tuple, types.UnionType, typing.Union):
        models = [_inner(argument) for argument in typing.get_args(annotation)]
        return next((model for model in models if model), None)
    return None
