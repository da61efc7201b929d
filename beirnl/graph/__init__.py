"""From an experiment to its graph: which artifact is made by which stage from which others."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from beirnl.config import Experiment
from beirnl.errors import ConfigError, nearest
from beirnl.evaluation import names
from beirnl.graph.expected import check_sizes
from beirnl.graph.nodes import Answering, Evaluation, Graph, Node, Translation, back_version
from beirnl.graph.rag import add_answering
from beirnl.graph.systems import add_systems
from beirnl.graph.texts import add_parallel, variants
from beirnl.stages import STAGES
from beirnl.store.workspace import Workspace

__all__ = [
    "Answering",
    "Evaluation",
    "Graph",
    "Node",
    "Translation",
    "back_version",
    "build_graph",
    "check_sizes",
]


def build_graph(
    experiment: Experiment, workspace: Workspace, failed: Mapping[str, str] | None = None
) -> Graph:
    """Resolve an experiment against the registry and the files that it names.

    Args:
        experiment: as its file says.
        workspace: where it is carried out.
        failed: reason by system of those that are left out of question answering (default: those that failed
            in the last run).

    Raises:
        ConfigError: a name that the registry lacks, or systems that fit no language.
        DataError: a dataset's folder or split is not there.
        PrerequisiteError: a model's folder is not there.
    """
    graph = Graph()
    digests = workspace.digests()
    with _named(experiment):
        names.reported(experiment.evaluation.measures)
        _check_stages(experiment)
        for dataset in experiment.dataset:
            for texts in variants(graph, experiment, dataset, digests):
                add_systems(graph, experiment, texts, digests)
        add_parallel(graph, experiment, digests)
        if experiment.rag:
            left_out = workspace.failures(experiment.name) if failed is None else failed
            add_answering(graph, experiment, digests, left_out)
        else:
            _refuse_idle(graph, experiment)
    return graph


@contextmanager
def _named(experiment: Experiment) -> Iterator[None]:
    """What cannot be resolved, and names no other file, is wrong in the experiment file."""
    try:
        yield
    except ConfigError as error:
        if error.where is not None:
            raise
        raise ConfigError(error.what, where=experiment.file, remedy=error.remedy) from error


def _check_stages(experiment: Experiment) -> None:
    """What is set for a stage that does not exist is a mistake."""
    for name in experiment.runtime.stages:
        if name not in STAGES:
            raise ConfigError(f"unknown stage {name!r} in runtime.stages", remedy=nearest(name, STAGES))


def _refuse_idle(graph: Graph, experiment: Experiment) -> None:
    """A system whose datasets and languages fit nothing is a mistake."""
    used = {evaluation.system.name for evaluation in graph.evaluations}
    for system in experiment.system:
        if system.name not in used:
            raise ConfigError(
                f"system {system.name!r} runs on no dataset",
                where=experiment.file,
                remedy="look at its datasets and languages",
            )
