"""Every error a user can meet, as one line: where, what is wrong, what to do.

    BeirnlError
    ├── ConfigError         the experiment file: an unknown key, a value that cannot be
    ├── DataError           a corpus, queries, qrels or run file: names file and line
    ├── PrerequisiteError   a package, a model, a key or a GPU that is not there
    ├── StoreError          the workspace: full, damaged, held by another run, written by a newer version
    ├── EngineError         an LLM engine that refuses or is unreachable
    ├── ClusterError        the Ray cluster: a wrong address, resources that it lacks
    ├── BudgetError         the money that an experiment may cost is spent
    └── StageError          a unit of work that failed; names stage and unit

The command line prints the line and exits with 2; ``--debug`` shows the traceback.
"""

from collections.abc import Iterable

from beirnl.wording import near

_MOST = 30  # so many are listed where none is near
_MEANT = "did you mean"
_FEW = 8  # so many valid names are listed also where one of them is near


class BeirnlError(Exception):
    """An error with its place and its remedy.

    Args:
        what: what is wrong, without a full stop.
        where: file, ``file:line`` or id that the error is about.
        remedy: what the user can do, as an imperative clause.
    """

    def __init__(self, what: str, *, where: object = None, remedy: str | None = None) -> None:
        self.what, self.where, self.remedy = what, where, remedy
        place = f"{where}: " if where is not None else ""
        advice = f"; {remedy}" if remedy else ""
        super().__init__(" ".join(f"{place}{what}{advice}".split()))

    def __reduce__(self) -> tuple[object, ...]:
        """Survive pickling, so that an error raised in a Ray worker reaches the driver whole."""
        return (_rebuild, (type(self), self.what, self.where and str(self.where), self.remedy))


def _rebuild(kind: type[BeirnlError], what: str, where: str | None, remedy: str | None) -> BeirnlError:
    return kind(what, where=where, remedy=remedy)


class ConfigError(BeirnlError):
    """The experiment file says something that cannot be."""


class DataError(BeirnlError):
    """An input file is malformed."""


class PrerequisiteError(BeirnlError):
    """Something that must be installed, set or present is not."""


class StoreError(BeirnlError):
    """The workspace cannot be read or written."""


class EngineError(BeirnlError):
    """An LLM engine refuses, fails or is unreachable."""


class ClusterError(BeirnlError):
    """The Ray cluster is unreachable or lacks what was asked for."""


class BudgetError(BeirnlError):
    """The money that an experiment may cost is spent; what was done stays."""


class StageError(BeirnlError):
    """A unit of work failed."""


def nearest(name: str, valid: Iterable[str], otherwise: str = "") -> str:
    """The remedy for a name that does not exist: the valid one next to it; all, if none is or they are few.

    Of very many, the first stand for all.

    Args:
        name: what the user wrote.
        valid: the names that exist.
        otherwise: what else the user can do, as an imperative clause.
    """
    found = _nearest(name, list(valid))
    if not otherwise:
        return found
    return f"{found}{' If not,' if found.startswith(_MEANT) else '; or'} {otherwise}"


def _nearest(name: str, names: list[str]) -> str:
    if not names:
        return "none exists"
    listed = ", ".join(names)
    meant = near(name, names)
    if not meant:
        more = f", ... ({len(names)} in all)" if len(names) > _MOST else ""
        return f"use one of: {', '.join(names[:_MOST])}{more}"
    said = f"{_MEANT} {meant!r}?"
    return said if not 1 < len(names) <= _FEW else f"{said} (there are: {listed})"
