"""Systems of an experiment query by query: values, first hits with their texts, relevant documents."""

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from beirnl.evaluation.page.plots import main_name
from beirnl.evaluation.page.query_views import Document, QueryView, View
from beirnl.graph import Evaluation, Node
from beirnl.pipeline import Pipeline
from beirnl.store.cache import pinned

_QUERIES = 200  # per dataset and language
_HITS = 5
_RELEVANT = 8  # per query
_TITLE, _TEXT, _QUERY = 120, 320, 400  # characters
_EQUAL = 1e-9


def views(pipeline: Pipeline, scores: pl.DataFrame | None) -> list[View]:
    """Datasets and languages of which something is finished, with the queries on which systems differ most.

    Args:
        pipeline: the experiment.
        scores: per query, as :func:`beirnl.reporting.scores.scores` gives them.
    """
    if scores is None:
        return []
    done = pipeline.finished()
    places: dict[tuple[str, str], list[Evaluation]] = {}
    for evaluation in pipeline.graph.evaluations:
        if evaluation.node.key in done:
            places.setdefault((evaluation.dataset, evaluation.language), []).append(evaluation)
    return [_view(pipeline, place, members, scores) for place, members in places.items()]


def _view(
    pipeline: Pipeline, place: tuple[str, str], members: Sequence[Evaluation], scores: pl.DataFrame
) -> View:
    depths = {evaluation.system.name: evaluation.system.depth for evaluation in members}
    systems = list(depths)
    own = scores.filter((pl.col("dataset") == place[0]) & (pl.col("language") == place[1]))
    measures = own["measure"].unique(maintain_order=True).to_list()
    ids, values = _matrices(own, measures, systems)
    spread = values[measures.index(main_name(measures))]
    differing = np.ptp(np.nan_to_num(spread), axis=1)
    order = sorted(range(len(ids)), key=lambda at: (-differing[at], ids[at]))[:_QUERIES]
    chosen = {ids[at]: np.nan_to_num(values[:, at]).tolist() for at in order}
    found = dict(_parts(pipeline, members, systems, chosen))
    documents = {key: text for _, texts in found.values() for key, text in texts.items()}
    shown = {query.id: query for queries, _ in found.values() for query in queries}
    pairs = [
        [_duel(matrix, a, b) for a in range(len(systems)) for b in range(len(systems))] for matrix in values
    ]
    listed = [shown[name] for name in chosen if name in shown]
    return View(*place, measures, systems, list(depths.values()), len(ids), pairs, listed, documents)


def _matrices(
    scores: pl.DataFrame, measures: Sequence[str], systems: Sequence[str]
) -> tuple[list[str], np.ndarray]:
    """Query ids, and values of shape (measures, queries, systems); NaN where a system has none."""
    ids = scores["query_id"].unique(maintain_order=True).to_list()
    values = np.full((len(measures), len(ids), len(systems)), np.nan)
    axes = {"measure": measures, "query_id": ids, "system": systems}
    places = [
        scores[column]
        .replace_strict({name: at for at, name in enumerate(names)}, return_dtype=pl.Int64)
        .to_numpy()
        for column, names in axes.items()
    ]
    values[tuple(places)] = scores["value"].to_numpy()
    return ids, values


def _duel(values: np.ndarray, a: int, b: int) -> tuple[int, int, int]:
    """Queries on which a is above b, below it, and equal, of those that both have."""
    difference = (values[:, a] - values[:, b])[~np.isnan(values[:, a] - values[:, b])]
    wins, losses = int((difference > _EQUAL).sum()), int((difference < -_EQUAL).sum())
    return wins, losses, len(difference) - wins - losses


def _parts(
    pipeline: Pipeline,
    members: Sequence[Evaluation],
    systems: Sequence[str],
    chosen: Mapping[str, list[list[float]]],
) -> Iterator[tuple[str, tuple[list[QueryView], dict[str, Document]]]]:
    """Chosen queries of each part, and the documents that they show."""
    for part in dict.fromkeys(evaluation.part for evaluation in members):
        prefix = f"{part}/" if part else ""
        own = {
            name.removeprefix(prefix): values for name, values in chosen.items() if name.startswith(prefix)
        }
        if own:
            yield part, _part(pipeline, [e for e in members if e.part == part], systems, own, prefix)


def _part(
    pipeline: Pipeline,
    members: Sequence[Evaluation],
    systems: Sequence[str],
    chosen: Mapping[str, list[list[float]]],
    prefix: str,
) -> tuple[list[QueryView], dict[str, Document]]:
    first = members[0]
    runs = {e.system.name: _hits(pipeline, e.node.inputs["run"], chosen) for e in members}
    labels = _labels(pipeline, first.qrels, chosen)
    texts = _texts(pipeline, first.queries, chosen)
    queries = []
    for name, values in chosen.items():
        ranks = [runs.get(system, {}).get(name, {}) for system in systems]
        judged = labels.get(name, {})
        hits = [list(found)[:_HITS] for found in ranks]
        relevant = _relevant(judged, ranks)
        kept = {doc for found in hits for doc in found} | set(relevant)
        queries.append(
            QueryView(
                prefix + name,
                _cut(texts[name].text, _QUERY) if name in texts else "",
                values,
                [[prefix + doc for doc in found] for found in hits],
                {prefix + doc: label for doc, label in judged.items() if doc in kept},
                {prefix + doc: places for doc, places in relevant.items()},
                sum(label > 0 for label in judged.values()) - len(relevant),
            )
        )
    wanted = {doc.removeprefix(prefix) for q in queries for docs in (*q.hits, q.relevant) for doc in docs}
    documents = _texts(pipeline, first.corpus, wanted)
    return queries, {prefix + doc: documents.get(doc, Document(doc, "", "")) for doc in wanted}


def _relevant(judged: Mapping[str, int], ranks: Sequence[Mapping[str, int]]) -> dict[str, list[int]]:
    """Ranks of some relevant documents: highest labels first, then those that fewest systems found."""
    found = {doc: [run.get(doc, 0) for run in ranks] for doc, label in judged.items() if label > 0}
    order = sorted(found, key=lambda doc: (-judged[doc], sum(map(bool, found[doc])), doc))
    return {doc: found[doc] for doc in order[:_RELEVANT]}


def _frame(pipeline: Pipeline, node: Node) -> pl.DataFrame:
    frame = pl.from_arrow(node.artifact(pipeline.workspace).table())
    assert isinstance(frame, pl.DataFrame)
    return frame


def _hits(pipeline: Pipeline, run: Node, queries: Collection[str]) -> dict[str, dict[str, int]]:
    """Rank by document, best first, by query."""
    rows = _frame(pipeline, run).filter(pl.col("query_id").is_in(list(queries)))
    groups = rows.group_by("query_id", maintain_order=True).agg("doc_id")
    return {query: {doc: rank for rank, doc in enumerate(docs, 1)} for query, docs in groups.iter_rows()}


def _labels(pipeline: Pipeline, qrels: Node, queries: Collection[str]) -> dict[str, dict[str, int]]:
    rows = _frame(pipeline, qrels).filter(pl.col("query_id").is_in(list(queries)))
    found: dict[str, dict[str, int]] = {}
    for query, doc, label in rows.select("query_id", "doc_id", "relevance").iter_rows():
        found.setdefault(query, {})[doc] = label
    return found


def _texts(pipeline: Pipeline, rows: Node, wanted: Collection[str]) -> dict[str, Document]:
    """Texts by id, cut; shards are read one after another."""
    artifact = rows.artifact(pipeline.workspace)
    ids = pl.Series(sorted(wanted), dtype=pl.String).implode()
    found = {}
    for part in artifact.parts:
        with pinned():
            shard = pl.scan_parquet(artifact.path(part), glob=False).select("id", "title", "text")
            texts = shard.filter(pl.col("id").is_in(ids)).collect()
        for name, title, text in texts.iter_rows():
            found[name] = Document(name, _cut(title, _TITLE), _cut(text, _TEXT))
    return found


def _cut(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
