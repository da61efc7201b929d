"""A whole experiment file, and how its tables must agree."""

from pathlib import Path

from pydantic import Field, model_validator

from beirnl.config.fields import Line, Name
from beirnl.config.models import ModelConfig
from beirnl.config.paths import expand, resolve_path
from beirnl.config.rag import RagConfig
from beirnl.config.sections import (
    DatasetConfig,
    EvaluationConfig,
    ParallelConfig,
    Runtime,
    Section,
    TranslationConfig,
)
from beirnl.config.systems import Bm25System, DenseSystem, FusionSystem, LateSystem, RerankSystem, System
from beirnl.errors import nearest


class Experiment(Section):
    """A whole experiment file."""

    name: Name
    workspace: Line = "workspace"
    notes: tuple[str, ...] = ()
    dataset: tuple[DatasetConfig, ...] = ()
    model: tuple[ModelConfig, ...] = ()
    parallel: tuple[ParallelConfig, ...] = ()
    translation: TranslationConfig | None = None
    rag: RagConfig | None = None
    system: tuple[System, ...] = ()
    evaluation: EvaluationConfig = EvaluationConfig()
    runtime: Runtime = Runtime()
    file: Path = Field(default=Path("experiment.toml"), exclude=True)

    @model_validator(mode="after")
    def _names(self) -> "Experiment":
        if self.rag:
            self._check_rag(self.rag)
        elif not self.dataset and not self.parallel:
            raise ValueError("there is neither a [[dataset]] nor a [[parallel]]: nothing to do")
        if not self.system and not self.translation:
            raise ValueError("there is neither a system nor a translation: nothing to do")
        if self.parallel and not self.translation:
            raise ValueError("[[parallel]] compares translations with references: add [translation]")
        _unique([d.name for d in self.dataset] + [p.name for p in self.parallel], "dataset")
        systems = [s.name for s in self.system]
        _unique(systems, "system")
        _unique([m.name for m in self.model], "model")
        datasets = [d.name for d in self.dataset]
        users = [*self.system, *([self.translation] if self.translation else [])]
        for user in users:
            for name in user.datasets or ():
                _known(name, datasets, "dataset")
        for position, system in enumerate(self.system):
            for name in _stands_on(system):
                _known(name, systems[:position], "system above it")
        return self

    def _check_rag(self, rag: RagConfig) -> None:
        """Documents take the place of datasets, and systems are those that search them by themselves."""
        for name in ("dataset", "parallel", "translation"):
            if getattr(self, name):
                raise ValueError(f"[rag] and [{name}] are for two experiment files: leave one out")
        if not self.system:
            raise ValueError("[rag] compares systems: add a [[system]]")
        deepest = max(rag.ks)
        for system in self.system:
            searches = isinstance(system, Bm25System | DenseSystem | LateSystem) and not _stands_on(system)
            if not searches:
                raise ValueError(
                    f"system {system.name!r} cannot stand beside [rag]: use kind bm25, dense, "
                    "or late without first"
                )
            if system.datasets or system.languages:
                raise ValueError(f"system {system.name!r}: [rag] has no datasets and no languages to choose")
            if system.depth < deepest:
                raise ValueError(f"system {system.name!r}: depth must be {deepest} or more, as ks say")

    @property
    def max_cost(self) -> float | None:
        """What answers may cost, in the price's currency; None: no limit."""
        asking = self.translation or self.rag
        return asking.max_cost if asking else None

    @property
    def only_translated(self) -> "Experiment":
        """The experiment without its systems: what is translated needs no analyzer and no encoder."""
        return self.model_copy(update={"system": ()})

    @property
    def workspace_path(self) -> Path | str:
        """The workspace, against the folder of the experiment file; its address, if it has one."""
        found = expand(self.workspace, self.file)
        return found if "://" in found else resolve_path(self.workspace, self.file)

    @property
    def workspace_is_relative(self) -> bool:
        """Whether the file names the workspace by a relative path."""
        path = Path(expand(self.workspace, self.file))
        return isinstance(self.workspace_path, Path) and not path.is_absolute()


def _stands_on(system: System) -> tuple[str, ...]:
    """Names of the systems whose runs it needs."""
    if isinstance(system, FusionSystem):
        return system.of
    first = system.first if isinstance(system, RerankSystem | LateSystem) else None
    return (first,) if first else ()


def _unique(names: list[str], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two {what}s are called {name!r}")


def _known(name: str, names: list[str], what: str) -> None:
    if name not in names:
        raise ValueError(f"no {what} is called {name!r}; {nearest(name, names)}")
