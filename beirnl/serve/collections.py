"""What is served: a dataset (or a part of one) in a language, with its texts, judgements and scores."""

from collections.abc import Sequence
from functools import cached_property

import polars as pl

from beirnl.errors import ConfigError, StoreError
from beirnl.evaluation.page.plots import main_name
from beirnl.graph import Evaluation, Node, Translation
from beirnl.pipeline import Pipeline
from beirnl.reporting.scores import scores
from beirnl.serve.answers import Dataset, Document, JudgedQuery, QueriesAnswer, Source, System
from beirnl.serve.searching import Opener, Query, is_searchable
from beirnl.serve.settings import Order
from beirnl.wording import counted

_NAMED = 3  # artifacts that are missing


def check_built(pipeline: Pipeline) -> None:
    """Refuse an experiment of which something that is to be served is not there.

    Raises:
        ConfigError: it evaluates no system.
        StoreError: it was not run, or not to its end; names what is missing and the command.
    """
    evaluations = pipeline.graph.evaluations
    if not evaluations:
        raise ConfigError(
            "evaluates no system, so that there is nothing to serve",
            where=pipeline.experiment.file,
            remedy="add a [[dataset]] and a [[system]]",
        )
    states = pipeline.plan(pipeline.needed([evaluation.node for evaluation in evaluations]))
    missing = [f"{state.node.stage} {state.node.label}" for state in states if state.state != "done"]
    if missing:
        named = ", ".join(dict.fromkeys(missing[:_NAMED])) + (", ..." if len(missing) > _NAMED else "")
        raise StoreError(
            f"{counted(len(missing), 'artifact is', 'artifacts are', of=len(states))} not made ({named})",
            where=pipeline.experiment.file,
            remedy=f"run them first: beirnl run {pipeline.experiment.file}",
        )


class Collection:
    """A dataset in one language.

    Args:
        pipeline: the experiment.
        evaluations: those of the systems on it, at least one.
        opener: opens its searchers and texts.
    """

    def __init__(self, pipeline: Pipeline, evaluations: Sequence[Evaluation], opener: Opener) -> None:
        self._pipeline, self._opener = pipeline, opener
        self._first, self._evaluations = evaluations[0], list(evaluations)
        self.name = self._first.node.label
        runs = {one.system.name: one.node.inputs["run"] for one in evaluations}
        self.searchers = {name: opener.open(run) for name, run in runs.items() if is_searchable(run)}
        self._translation = self._find_translation()
        self.language = self._translation.language if self._translation else self._first.language

    def _find_translation(self) -> Translation | None:
        corpus = self._first.corpus
        found = (one for one in self._pipeline.graph.translations if one.final.key == corpus.key)
        return next(found, None)

    @property
    def _source_language(self) -> str | None:
        """The language that its documents were translated from."""
        translation = self._translation
        if translation is None:
            return None
        if translation.back:  # through the language of the other translation
            return next(one.language for one in self._pipeline.graph.translations if not one.back)
        return self._pipeline.graph.source_languages[self._first.dataset]

    # queries ------------------------------------------------------------------------------------------------

    def _frame(self, node: Node) -> pl.DataFrame:
        frame = pl.from_arrow(self._opener.artifact(node).table())
        assert isinstance(frame, pl.DataFrame)
        return frame

    @cached_property
    def _queries(self) -> dict[str, str]:
        """Texts by identifier."""
        return dict(self._frame(self._first.queries).select("id", "text").iter_rows())

    @cached_property
    def _by_text(self) -> dict[str, str]:
        """Identifiers by text, of the first query where several have one."""
        return {text.strip(): name for name, text in reversed(self._queries.items())}

    @cached_property
    def _labels(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        columns = self._frame(self._first.qrels).select("query_id", "doc_id", "relevance")
        for query, document, label in columns.iter_rows():
            found.setdefault(query, {})[document] = label
        return found

    def query(self, text: str | None, name: str | None) -> Query | None:
        """The query of the dataset that has an identifier, or a text; else a new one, or None.

        Args:
            text: what was typed.
            name: the identifier of a query, in place of a text.
        """
        if name is not None:
            return Query(self._queries[name], name) if name in self._queries else None
        assert text is not None
        found = self._by_text.get(text.strip())
        return Query(text, "") if found is None else Query(self._queries[found], found)

    def labels(self, query: Query) -> dict[str, int]:
        """The judgements of a query of the dataset by document; none of another."""
        return self._labels.get(query.id, {})

    # scores -------------------------------------------------------------------------------------------------

    @cached_property
    def _scored(self) -> tuple[str, list[JudgedQuery]]:
        """The measure that counts, and all judged queries with their values, by identifier."""
        frame = scores(self._pipeline, self._evaluations)
        assert frame is not None
        measure = main_name(frame["measure"].unique(maintain_order=True).to_list())
        prefix = f"{self._first.part}/" if self._first.part else ""
        values: dict[str, dict[str, float]] = {}
        rows = frame.filter(pl.col("measure") == measure).select("query_id", "system", "value")
        for name, system, value in rows.iter_rows():
            values.setdefault(name.removeprefix(prefix), {})[system] = value
        return measure, [
            JudgedQuery(id=name, text=self._queries[name], values=[of.get(s) for s in self.systems])
            for name, of in sorted(values.items())
        ]

    @property
    def systems(self) -> list[str]:
        """Names of all systems on it."""
        return [one.system.name for one in self._evaluations]

    def queries(self, offset: int, limit: int, order: Order) -> QueriesAnswer:
        """Some of the judged queries: by identifier, or those first on which systems differ most."""
        measure, listed = self._scored
        chosen = sorted(listed, key=_difference) if order == "difference" else listed
        return QueriesAnswer(
            dataset=self.name,
            measure=measure,
            systems=self.systems,
            total=len(listed),
            queries=chosen[offset : offset + limit],
        )

    # documents ----------------------------------------------------------------------------------------------

    def documents(self, ids: Sequence[str]) -> tuple[list[Document], list[str]]:
        """The documents with these identifiers in their order, and the identifiers that there are not."""
        rows = self._opener.texts(self._first.corpus).find(ids)
        translation, sources = self._translation, {}
        if translation:
            language = self._source_language or ""
            found = self._opener.texts(translation.source).find(list(rows))
            sources = {
                name: Source(language=language, title=row.title, text=row.text) for name, row in found.items()
            }
        documents = [
            Document(id=name, language=self.language, **rows[name]._asdict(), source=sources.get(name))
            for name in ids
            if name in rows
        ]
        return documents, [name for name in ids if name not in rows]

    def described(self) -> Dataset:
        """What there is to ask."""
        return Dataset(
            name=self.name,
            language=self.language,
            translated_from=self._source_language,
            documents=self._opener.artifact(self._first.corpus).rows,
            queries=len(self._queries),
            systems=[
                System(
                    name=one.system.name,
                    kind=one.system.kind,
                    depth=one.system.depth,
                    searchable=one.system.name in self.searchers,
                )
                for one in self._evaluations
            ],
        )


def _difference(query: JudgedQuery) -> tuple[float, str]:
    """Orders queries by how much systems differ on them, most first."""
    values = [value for value in query.values if value is not None]
    return min(values, default=0.0) - max(values, default=0.0), query.id


def collections(pipeline: Pipeline, opener: Opener) -> dict[str, Collection]:
    """All that an experiment has, by name, in the order of its file."""
    places: dict[str, list[Evaluation]] = {}
    for evaluation in pipeline.graph.evaluations:
        places.setdefault(evaluation.node.label, []).append(evaluation)
    return {name: Collection(pipeline, members, opener) for name, members in places.items()}
