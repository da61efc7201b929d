"""The experiment file: TOML, strictly typed; an unknown key is an error that names the nearest valid one.

What enters the keys of artifacts is resolved from here into :mod:`beirnl.specs`; ``Runtime`` never does.
"""

from beirnl.config.experiment import Experiment
from beirnl.config.loading import experiment_of, load_experiment
from beirnl.config.models import ModelConfig
from beirnl.config.paths import PACKAGE, expand, resolve_path
from beirnl.config.rag import AnswersConfig, QuestionsConfig, RagConfig, RagCorpus
from beirnl.config.sections import (
    DatasetConfig,
    EngineConfig,
    ParallelConfig,
    PriceConfig,
    Runtime,
    TranslationConfig,
)
from beirnl.config.systems import (
    Bm25System,
    DenseSystem,
    FusionSystem,
    LateSystem,
    RerankSystem,
    RunSystem,
    System,
)

__all__ = [
    "PACKAGE",
    "AnswersConfig",
    "Bm25System",
    "DatasetConfig",
    "DenseSystem",
    "EngineConfig",
    "Experiment",
    "FusionSystem",
    "LateSystem",
    "ModelConfig",
    "ParallelConfig",
    "PriceConfig",
    "QuestionsConfig",
    "RagConfig",
    "RagCorpus",
    "RerankSystem",
    "RunSystem",
    "Runtime",
    "System",
    "TranslationConfig",
    "expand",
    "experiment_of",
    "load_experiment",
    "resolve_path",
]
