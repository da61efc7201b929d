"""Probes: the stages themselves, run on small inputs, once for each distinct piece of work."""

import multiprocessing
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import forkserver
from pathlib import Path
from typing import Any, NamedTuple

from beirnl.errors import BeirnlError
from beirnl.estimates.laws import LAWS, Size, terms_of
from beirnl.estimates.machine import this_machine
from beirnl.estimates.measuring import Measured, measure
from beirnl.estimates.samples import SEARCH_MB, Samples
from beirnl.estimates.sizes import Sizes, embedding_of, encoder_of, graph_of
from beirnl.estimates.weights import weights_of
from beirnl.graph import Node
from beirnl.pipeline import Pipeline
from beirnl.stages import STAGES
from beirnl.stages.base import Task
from beirnl.store.artifacts import Artifact
from beirnl.store.keys import digest, spec_fields
from beirnl.store.places import Place
from beirnl.tally import Tally

#: Fields of specs that hardly change what a row takes.
_IDLE = {"depth", "remove_self_matches", "tag", "weights", "k", "recall_queries", "shards"}
_OF_VECTORS = ("search-exact", "ann-index", "search-ann")
_LOADED = ["beirnl.estimates.measuring"]
_OF_MODELS = ["sentence_transformers"]  # what their stages load before any model


class Probe(NamedTuple):
    """What a probe has measured, and the size of its input."""

    measured: Measured
    size: Size


class Prober:
    """Probes the work of nodes.

    Args:
        pipeline: the experiment; its progress is told what is probed.
        sizes: of it.
        pending: nodes that are not finished: of those with the same work the largest is probed.
        folder: for small inputs and what is made of them.
    """

    def __init__(self, pipeline: Pipeline, sizes: Sizes, pending: Sequence[Node], folder: Path) -> None:
        self._pipeline, self._sizes, self._pending, self._folder = pipeline, sizes, pending, folder
        self._samples = Samples(folder, sizes, self._made)
        self._found: dict[str, Probe | str] = {}

    def of(self, node: Node) -> Probe | str:
        """The probe of a node's work; or why there is none."""
        key = self._work(node)
        if key not in self._found:
            same = self.alike(node, self._pending) or [node]
            largest = max(same, key=lambda other: LAWS[other.stage].rows(self._sizes.of(other)))
            self._found[key] = self._unknown(largest) or self._probe(largest, key)
        return self._found[key]

    def alike(self, node: Node, others: Iterable[Node]) -> list[Node]:
        """Those of other nodes whose work is that of a node."""
        work = self._work(node)
        return [other for other in others if other.stage == node.stage and self._work(other) == work]

    def _work(self, node: Node) -> str:
        """Nodes with equal work take as long for a row, by the law of their stage."""
        idle = _IDLE | {"kind"} if node.stage == "embed" else _IDLE
        fields = {name: value for name, value in spec_fields(node.spec).items() if name not in idle}
        graph, embedding = graph_of(node), embedding_of(node)
        vectors: list[Any] = []
        if embedding and node.stage in _OF_VECTORS:
            vectors = [self._sizes.dimension(node), encoder_of(embedding).vectors]
        elif embedding and node.stage != "embed":
            vectors = [spec_fields(encoder_of(embedding))]
        return digest([node.stage, fields, spec_fields(graph) if graph else {}, vectors, len(node.inputs)])

    def _unknown(self, node: Node) -> str:
        """Why a node cannot be probed, if that is known beforehand."""
        encoder = getattr(node.spec, "encoder", None)
        if getattr(encoder, "is_remote", False):
            return "it is asked of an API"
        if (weights_of(node) or 0) > this_machine(self._folder).memory:
            return "its weights do not fit into the memory of this machine"
        if node.stage in _OF_VECTORS and not self._sizes.dimension(node):
            return "how many numbers a vector has"
        return ""

    def _probe(self, node: Node, key: str) -> Probe | str:
        progress, name = self._pipeline.progress, f"{node.stage} {node.label} {node.purpose}".strip()
        try:
            progress.start("probe", name, Tally(units=1))
            sample = self._samples.of(node)
            task = self._task(node, sample.spec, sample.inputs, self._folder / key)
            measured = self._run(task)
        except (BeirnlError, BrokenProcessPool) as error:
            reason = error.what if isinstance(error, BeirnlError) else "it was killed, perhaps for its memory"
            progress.finish(f"not known: {reason}")
            return reason
        progress.show(Tally(units=1, done=1, rows=measured.rows, seconds=measured.seconds))
        progress.finish(f"{measured.rows / max(measured.seconds, 1e-3):,.0f} rows/s")
        if node.stage in ("embed", "embed-tokens"):
            self._sizes.learn(node, _dimension(task.directory))
        return Probe(measured, sample.size._replace(terms=_terms(node, measured)))

    def _run(self, task: Task) -> Measured:
        runtime = self._pipeline.experiment.runtime
        gpu = LAWS[task.stage].torch and (runtime.gpus > 0 or runtime.device.startswith("cuda"))
        models = any(STAGES[other.stage].load and LAWS[other.stage].torch for other in self._pending)
        with ProcessPoolExecutor(1, mp_context=_context(_LOADED + _OF_MODELS * models)) as pool:
            return pool.submit(measure, task, gpu).result()

    def _task(self, node: Node, spec: Any, inputs: dict[str, Place], folder: Path) -> Task:
        runtime = self._pipeline.experiment.runtime.model_copy(update={"search_memory_mb": SEARCH_MB})
        return Task(
            stage=node.stage,
            label=node.label,
            spec=spec,
            directory=folder,
            input_directories=inputs,
            unit=0,
            run_id="probe",
            workspace=self._folder,
            runtime=runtime,
        )

    def _made(self, node: Node) -> Place:
        """The folder of what a node has made, or else of what its probe has.

        Raises:
            BeirnlError: it could not be probed.
        """
        artifact = node.artifact(self._pipeline.workspace)
        if artifact.find_manifest():
            return artifact.directory
        if isinstance(found := self.of(node), str):
            raise BeirnlError(found)
        return self._folder / self._work(node)


def _terms(node: Node, measured: Measured) -> float:
    """What terms take in the index that a probe has built, as far as its units tell."""
    if node.stage not in ("index", "index-shards") or len(measured.units) < 2:
        return 0.0
    small, large = ((rows, written) for rows, _, written in (measured.units[0], measured.units[-1]))
    return terms_of(small, large)


def _dimension(folder: Place) -> int:
    """Numbers of a vector in an artifact of embeddings."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    artifact = Artifact(folder)
    path = artifact.path(artifact.parts[0])
    if path.suffix == ".parquet":
        return int(pq.read_schema(path).field("vector").type.list_size)
    with pa.memory_map(str(path)) as file:
        return int(pa.ipc.open_file(file).schema.field("vectors").type.value_type.list_size)


def _context(modules: list[str]) -> Any:
    """Processes forked from one that has loaded modules, and that looks for no model on a network."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(modules)
    # Left to itself, it would look into the current folder for the package first.
    here = os.pathsep.join(path for path in sys.path if path)
    with _environment(HF_HUB_OFFLINE="1", PYTHONSAFEPATH="1", PYTHONPATH=here):
        forkserver.ensure_running()
    return context


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Set variables for what is started in the block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
