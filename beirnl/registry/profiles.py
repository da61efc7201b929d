"""Profiles: the conditions under which others have published figures, as far as they differ."""

from functools import cache
from typing import Any, Literal

from beirnl.registry.datasets import DatasetEntry
from beirnl.registry.entries import Entry, read
from beirnl.specs import Bm25Profile


class ProfileEntry(Entry):
    """How a set is evaluated.

    Attributes:
        name: ``paper`` or ``mteb``.
        bm25: the conditions of BM25, see :class:`Bm25Entry`.
        self_matches: in which sets hits whose id is the query's are removed: in all, or where MTEB's task
            says so (``DatasetEntry.remove_self_matches``).
        instruction: which task a model is told that wants it in words: that of the model card, or that of the
            dataset.
    """

    name: str
    bm25: Bm25Profile
    self_matches: Literal["all", "task"]
    instruction: Literal["card", "task"]

    def removes_self_matches(self, dataset: DatasetEntry) -> bool:
        """Whether hits whose id is the query's are removed in a dataset."""
        return self.self_matches == "all" or dataset.remove_self_matches


class Bm25Entry(Entry):
    """Conditions of BM25; see :class:`beirnl.specs.Bm25Spec`.

    Attributes:
        name: what an experiment calls them.
        fields: ``elasticsearch`` (title and text apart) or ``flat`` (as one).
        analyzer: for texts of any language; empty: that of the language.
        k1, b: parameters.
        tie_breaker: how much the lesser field counts.
        statistics: how documents are counted and how exactly their lengths are known.
    """

    name: str
    fields: Literal["elasticsearch", "flat"]
    analyzer: str = ""
    k1: float
    b: float
    tie_breaker: float = 0.5
    statistics: Literal["lucene", "bm25s"] = "lucene"


@cache
def profiles() -> dict[str, ProfileEntry]:
    """The profiles by name."""
    return {name: ProfileEntry(name=name, **facts) for name, facts in _table("profile").items()}


@cache
def bm25_profiles() -> dict[str, Bm25Entry]:
    """The conditions of BM25 by name."""
    return {name: Bm25Entry(name=name, **facts) for name, facts in _table("bm25").items()}


def _table(name: str) -> dict[str, dict[str, Any]]:
    return read("profiles.toml")[name]
