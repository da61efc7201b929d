"""What an experiment has found, in the forms that other tools read.

| form | files |
|---|---|
| ``trec`` | ``runs/SYSTEM/SET.trec``, ``qrels/SET.qrels`` |
| ``beir`` | ``runs/SYSTEM/SET.json``, ``results/SYSTEM/SET.json`` |
| ``ranx`` | ``runs/SYSTEM/SET.json``, ``qrels/SET.json``, ``results/SET.json`` |
| ``mteb`` | ``results/MODEL/REVISION/TASK.json`` and ``model_meta.json`` beside it |

SET is ``DATASET.LANGUAGE``, of a part ``DATASET.PART.LANGUAGE``.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from beirnl import registry
from beirnl.errors import DataError
from beirnl.evaluation import measures
from beirnl.evaluation.records import Conditions
from beirnl.evaluation.runs import exchange, trec
from beirnl.graph import Evaluation
from beirnl.pipeline import Pipeline
from beirnl.reporting.depths import depth
from beirnl.reporting.mteb import meta_of, task_of
from beirnl.reporting.scores import conditions
from beirnl.store.files import disk_errors, write_atomically

Form = Literal["trec", "beir", "ranx", "mteb"]


class _Found:
    """A finished evaluation, and what is exported of it."""

    def __init__(self, pipeline: Pipeline, evaluation: Evaluation) -> None:
        self._pipeline, self.evaluation = pipeline, evaluation
        self.system = evaluation.system.name
        parts = (evaluation.dataset, evaluation.part, evaluation.language)
        self.set = ".".join(filter(None, parts))

    @property
    def run(self) -> pa.Table:
        return self.evaluation.node.inputs["run"].artifact(self._pipeline.workspace).table()

    @property
    def qrels(self) -> pa.Table:
        return self.evaluation.qrels.artifact(self._pipeline.workspace).table()

    @property
    def values(self) -> dict[str, float]:
        """Means over the judged queries of all measures that the formats hold, as far as the run goes."""
        names = exchange.measures(depth(self._pipeline, self.evaluation))
        qrels = self.qrels
        summary = measures.summarise(measures.evaluate(self.run, qrels, names), qrels)
        return dict(zip(summary["measure"], summary["mean"], strict=True))

    @property
    def conditions(self) -> Conditions:
        return conditions(self._pipeline, [self.evaluation])

    @property
    def split(self) -> str:
        spec: Any = self.evaluation.qrels.spec
        return str(spec.split)

    @property
    def seconds(self) -> float:
        """Seconds of work on it and on all that it stands on."""
        nodes = self._pipeline.needed([self.evaluation.node])
        artifacts = [node.artifact(self._pipeline.workspace) for node in nodes]
        return sum(receipt.seconds for artifact in artifacts for receipt in artifact.receipts())

    @property
    def is_original(self) -> bool:
        """Whether it is of the set as it came, not of a translation made here."""
        return self._pipeline.graph.source_languages.get(self.evaluation.dataset) == self.evaluation.language


def export(pipeline: Pipeline, folder: Path, form: Form) -> list[Path]:
    """Write what is finished; files that are there are replaced.

    Returns:
        The files.

    Raises:
        DataError: nothing is finished; or a run is too shallow for the form.
    """
    finished = pipeline.finished()
    found = [_Found(pipeline, e) for e in pipeline.graph.evaluations if e.node.key in finished]
    if not found:
        raise DataError("no system is finished", where=pipeline.experiment.file, remedy="run it first")
    written = []
    with disk_errors(folder):
        for path, write in _FORMS[form](found):
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            write(target)
            written.append(target)
    return written


#: Where a file lies, and what writes it.
File = tuple[str, Callable[[Path], None]]


def _json(value: Any) -> Callable[[Path], None]:
    data = (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()
    return partial(write_atomically, data=data)


def _nested(table: pa.Table) -> dict[str, dict[str, Any]]:
    """``{query_id: {doc_id: value}}``."""
    nested: dict[str, dict[str, Any]] = {}
    for query, document, value in zip(*(column.to_pylist() for column in table.columns), strict=True):
        nested.setdefault(query, {})[document] = value
    return nested


def _trec(found: Sequence[_Found]) -> Iterator[File]:
    for one in found:
        yield f"runs/{one.system}/{one.set}.trec", partial(trec.write_run, table=one.run, tag=one.system)
    for name, one in _sets(found).items():
        yield f"qrels/{name}.qrels", partial(trec.write_qrels, table=one.qrels)


def _sets(found: Sequence[_Found]) -> Mapping[str, _Found]:
    """One evaluation of each set."""
    return {one.set: one for one in found}


def _beir(found: Sequence[_Found]) -> Iterator[File]:
    for one in found:
        yield f"runs/{one.system}/{one.set}.json", _json(_nested(one.run))
        yield f"results/{one.system}/{one.set}.json", _json(exchange.beir_results(one.values))


def _ranx(found: Sequence[_Found]) -> Iterator[File]:
    for one in found:
        yield f"runs/{one.system}/{one.set}.json", _json(_nested(one.run))
    for name, first in _sets(found).items():
        systems = {one.system: one.values for one in found if one.set == name}
        yield f"qrels/{name}.json", _json(_nested(first.qrels))
        yield f"results/{name}.json", _json(exchange.ranx_results(systems))


def _mteb(found: Sequence[_Found]) -> Iterator[File]:
    owners: dict[str, str] = {}
    for one in found:
        told = one.conditions
        meta = meta_of(one.system, told)
        folder = f"results/{meta['name'].replace('/', '__')}/{meta['revision']}"
        if owners.setdefault(folder, one.system) != one.system:  # two systems with one model
            meta = meta_of(one.system, told, own_name=True)
            folder = f"results/{meta['name'].replace('/', '__')}/{meta['revision']}"
        owners.setdefault(folder, one.system)
        task = task_of(one.evaluation.dataset, one.evaluation.part) if one.is_original else None
        language = registry.language(one.evaluation.language.rpartition("-")[2])
        scores = exchange.mteb_scores(one.values, [language.nllb.replace("_", "-")] if language.nllb else [])
        source = str((told.model_extra or {}).get("dataset_source") or "")
        result = {
            "dataset_revision": source.partition("@")[2] or told.dataset_hash,
            "task_name": task or one.set,
            "mteb_version": None,  # it was not MTEB that computed it
            "scores": {one.split: [scores]},
            "evaluation_time": round(one.seconds, 2),
            "kg_co2_emissions": None,
        }
        yield f"{folder}/{result['task_name']}.json", _json(result)
        yield f"{folder}/model_meta.json", _json(meta)


_FORMS: Mapping[Form, Callable[[Sequence[_Found]], Iterator[File]]] = {
    "trec": _trec,
    "beir": _beir,
    "ranx": _ranx,
    "mteb": _mteb,
}
