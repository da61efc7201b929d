"""The estimate: a row for every artifact that retrieval will make."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from beirnl.cost import Range
from beirnl.estimates import rates
from beirnl.estimates.laws import LAWS, Size
from beirnl.estimates.probes import Probe, Prober
from beirnl.estimates.rates import Rate
from beirnl.estimates.sizes import Sizes, embedding_of
from beirnl.estimates.weights import weights_of
from beirnl.graph import Node
from beirnl.pipeline import Pipeline
from beirnl.stages.ann import AnnSearchSpec
from beirnl.stages.dense import EmbedSpec, embedded_bytes, journalled_bytes
from beirnl.stages.searching import SearchSpec
from beirnl.states import Status

#: Workers that run together share caches and memory; a probe runs alone.
TOGETHER = Range(1.0, 1.1, 1.4)
#: Bytes that Ray's own part of a worker takes.
RAY = 100 << 20


class Row(NamedTuple):
    """What is left to be made of one artifact.

    Attributes:
        node: the artifact.
        rows, counted: of the whole artifact, as its receipts will count them, and what they are.
        workers: how many will be at it together.
        disk: bytes still to be written; None where not known.
        memory: bytes per worker, mapped files not counted; of a model that cannot be probed those of its
            weights. None where not known, or done.
        hours: still to be run; None where not known.
        origin: how it is known.
    """

    node: Node
    rows: int
    counted: str
    workers: int
    disk: float | None = 0.0
    memory: float | None = None
    hours: Range | None = Range(0.0, 0.0, 0.0)
    origin: str = "done"


def sources(pipeline: Pipeline) -> list[Node]:
    """The rows that an estimate reads, imported or cut from documents: they must be there before."""
    nodes = pipeline.graph.nodes.values()
    return [node for node in nodes if node.stage in ("import-corpus", "import-queries", "import-run", "cut")]


def forecast(pipeline: Pipeline) -> list[Row]:
    """What an experiment whose sources are imported will make for retrieval, in order of making.

    Nothing is put into the workspace, and no model is asked over a network. Searches for questions that are
    not there yet are left out.
    """
    plan = pipeline.plan()
    unknown = [status.node for status in plan if status.node.stage == "questions" and status.state != "done"]
    later = _standing_on(pipeline, unknown)
    states = [status for status in plan if status.node.stage in LAWS and status.node.key not in later]
    with tempfile.TemporaryDirectory(prefix="beirnl-probe-") as folder:
        forecaster = _Forecaster(pipeline, states, Path(folder))
        return [forecaster.row(status) for status in states]


def _standing_on(pipeline: Pipeline, nodes: Sequence[Node]) -> set[str]:
    """Keys of nodes and of everything that is made from them."""
    found = {node.key for node in nodes}
    for node in pipeline.graph.nodes.values():  # in order of making
        if any(other.key in found for other in node.inputs.values()):
            found.add(node.key)
    return found


class _Forecaster:
    def __init__(self, pipeline: Pipeline, states: Sequence[Status], folder: Path) -> None:
        self._pipeline, self._runtime = pipeline, pipeline.experiment.runtime
        self._sizes = sizes = Sizes(pipeline)
        pending = [status.node for status in states if status.state != "done"]
        self._prober = Prober(pipeline, sizes, pending, folder)
        self._finished = {
            node.key: rate
            for node in (status.node for status in states if status.state != "stale")
            if (rate := rates.of_finished(pipeline, sizes, node))
        }
        self._nodes = [status.node for status in states]

    def row(self, status: Status) -> Row:
        """The row of a node; those that it stands on have been asked for before."""
        node, law = status.node, LAWS[status.node.stage]
        size = self._sizes.of(node)
        workers = max(1, min(self._runtime.of(node.stage).workers, size.units))
        row = Row(node, law.rows(size), law.noun, workers)
        if status.state == "done":
            return row
        probe = self._prober.of(node)
        size = self._sizes.of(node)  # a probe tells the dimension
        rate = None
        if isinstance(probe, str):
            row = row._replace(disk=_stated(node, size), hours=None, origin=f"not known: {probe}")
            row = row._replace(memory=weights_of(node))
        else:
            rate, size = rates.of_probe(node.stage, probe), size._replace(terms=probe.size.terms)
            row = row._replace(memory=self._memory(node, size, probe))
        return self._timed(row, size, rate, self._like(node))

    def _timed(self, row: Row, size: Size, probed: Rate | None, done: Rate | None) -> Row:
        """The row with its hours and its disk: what has been finished tells them better than a probe."""
        node, law = row.node, LAWS[row.node.stage]
        units, whole = done or probed, done if done and done.whole else probed or done
        if units is None or whole is None:
            return row
        seconds = units.seconds_of(law, size)
        if node.stage == "search-ann" and units is probed:
            seconds += self._recall(node)
        if row.workers > 1 and units is probed:
            seconds = seconds.times(TOGETHER)
        own = self._finished.get(node.key)
        left = 1 - law.rows(own.size) / max(1, row.rows) if own else 1.0
        share = Range.exactly(left / row.workers / 3600)
        hours = seconds.times(share) + whole.reduction_of(law, size).times(Range.exactly(1 / 3600))
        disk = max(0.0, whole.written_of(law, size) - (own.written if own else 0))
        return row._replace(disk=disk, hours=hours, origin=units.origin)

    def _recall(self, node: Node) -> Range:
        """Seconds of the exact search that a search of graphs is compared with."""
        assert isinstance(node.spec, AnnSearchSpec)
        embedding = embedding_of(node)
        assert embedding is not None
        inputs = {"rows": embedding, "queries": node.inputs["queries"]}
        exact = Node("search-exact", node.label, SearchSpec(depth=node.spec.depth), inputs, node.purpose)
        probe = self._prober.of(exact)
        assert isinstance(probe, Probe)
        size = self._sizes.of(exact)
        size = size._replace(queries=min(size.queries, node.spec.recall_queries))
        return rates.of_probe("search-exact", probe).seconds_of(LAWS["search-exact"], size)

    def _like(self, node: Node) -> Rate | None:
        """The rate of finished units of the node itself, or of most units of the same work."""
        if node.key in self._finished:
            return self._finished[node.key]
        alike = self._prober.alike(node, [n for n in self._nodes if n.key in self._finished])
        found = [self._finished[other.key] for other in alike]
        return max(found, key=lambda rate: LAWS[node.stage].rows(rate.size), default=None)

    def _memory(self, node: Node, size: Size, probe: Probe) -> float:
        law, found = LAWS[node.stage], probe.measured
        base = (found.memory if law.torch else found.bare) + RAY * (self._runtime.most_workers > 1)
        return base + max(0.0, law.held(size) - law.held(probe.size))


def _stated(node: Node, size: Size) -> float | None:
    """Bytes that vectors take, also in the journal, where their dimension is known without the model."""
    if not isinstance(node.spec, EmbedSpec):
        return None
    vectors = embedded_bytes(node.spec, size.documents)
    return None if vectors is None else vectors + journalled_bytes(node.spec, size.documents)
