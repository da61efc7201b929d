"""Units whose questions go into batch files instead of to an engine: `beirnl translate --write-batch`.

A unit that has all its answers in the journal is committed; one that has not stays pending, and its requests
are written. Requests are named by the journal range of their shard and by their key, so that their results
find their place in the journal again.
"""

from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from beirnl.errors import BeirnlError, DataError
from beirnl.executors import Aside, Done
from beirnl.executors.local import LocalExecutor
from beirnl.llm.asking import Asker, entry_of
from beirnl.llm.batch.files import BatchFileWriter, Origin, custom_id, read_results, split_custom_id
from beirnl.llm.protocol import Answer, Enough, Request, never
from beirnl.specs import LlmSpec
from beirnl.stages import STAGES
from beirnl.stages.base import Task, Unit, execute
from beirnl.stages.translate import llm_of
from beirnl.store.journal import Journal, journal_name
from beirnl.store.keys import digest
from beirnl.store.places import Place
from beirnl.wording import counted


class _DeferredError(BeirnlError):
    """The answers are not there yet."""


@dataclass
class _Collector(Asker):
    """Writes what it is asked into batch files."""

    executor: "DeferredExecutor | None" = None

    @property
    def origin(self) -> Origin:
        """Where the answers will belong."""
        return Origin(self.journal.folder.name, self.journal.low, self.journal.high)

    def new_answers(self, pending: Mapping[str, Request], enough: Enough) -> Iterator[tuple[str, Answer]]:
        """Write the requests; there are no answers yet."""
        assert self.executor is not None
        for key, request in pending.items():
            self.executor.write(self.spec, self.origin, key, request)
        raise _DeferredError(f"{counted(len(pending), 'request is', 'requests are')} to be answered first")


class _Nothing:
    """No engine: what is asked is written."""

    def generate(self, requests: Sequence[Request], enough: Enough = never) -> Iterator[tuple[int, Answer]]:
        """Never called: a collector takes the requests first."""
        raise NotImplementedError


@dataclass
class _Resource:
    executor: "DeferredExecutor"

    def asker(self, unit: Unit, llm: LlmSpec, journal: Journal) -> Asker:
        """As :meth:`beirnl.stages.translate.Translator.asker`."""
        return _Collector(_Nothing(), llm, journal, unit.number, executor=self.executor)


class DeferredExecutor(LocalExecutor):
    """Runs units in this process, and writes the requests of those that lack answers into ``folder``.

    The files are whole when the ``with`` block ends; if it ends by an exception, there are none.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._writers: dict[LlmSpec, BatchFileWriter] = {}
        self._written: set[tuple[str, str]] = set()
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, value, trace)

    def run(self, tasks: Sequence[Task], done: Done, aside: Aside) -> None:
        """Run the tasks in order; those that must wait for answers are left pending."""
        if not tasks or not STAGES[tasks[0].stage].asks:
            super().run(tasks, done, aside)
            return
        stage, llm = STAGES[tasks[0].stage], llm_of(tasks[0].spec)
        if llm not in self._writers:
            writer = BatchFileWriter(self._folder, llm, f"requests-{len(self._writers)}")
            self._writers[llm] = self._open.enter_context(writer)
        for task in tasks:
            try:
                done(task, execute(stage, task, partial(_Resource, self)))
            except _DeferredError:
                continue

    def write(self, llm: LlmSpec, origin: Origin, key: str, request: Request) -> None:
        """Write a request, if another unit has not written its like: two datasets may ask the same."""
        if (origin.journal, key) not in self._written:
            self._written.add((origin.journal, key))
            self._writers[llm].add(custom_id(origin, key), request)

    @property
    def requests(self) -> int:
        """How many requests were written."""
        return len(self._written)

    @property
    def files(self) -> list[Path]:
        """The files that were written; whole after the ``with`` block."""
        return [path for writer in self._writers.values() for path in writer.paths]


class Taken(NamedTuple):
    """What has been taken out of the results of batch files.

    Attributes:
        answers: how many were new.
        failed: how many requests have none, by reason.
        foreign: results of requests that this experiment has not written.
    """

    answers: int
    failed: dict[str, int]
    foreign: int


def read_batch(results: Path, folders: Collection[Place]) -> Taken:
    """Take the results of batch files into the journal.

    Args:
        results: folder with the provider's result files.
        folders: those of the experiment's engines in the workspace's journal.

    Raises:
        DataError: a line that is no result, or nothing but results of another experiment.
    """
    journals = {folder.name: folder for folder in folders}
    failed: dict[tuple[Origin, str], str] = {}
    found: dict[Origin, dict[str, Answer]] = {}
    foreign: list[DataError] = []
    for name, result in read_results(results):
        try:
            origin, key = _read_custom_id(name, results, journals)
        except DataError as error:
            foreign.append(error)
            continue
        if isinstance(result, str):
            failed.setdefault((origin, key), result)
        else:
            found.setdefault(origin, {}).setdefault(key, result)
    if foreign and not (found or failed):
        raise foreign[0]
    reading = digest(sorted((path.name, path.stat().st_size) for path in results.glob("*.jsonl")))[:8]
    new = sum(_append(journals[o.journal], o, answers, f"batch{reading}") for o, answers in found.items())
    refused: dict[Origin, dict[str, Answer]] = {}
    for (origin, key), reason in failed.items():
        if key not in found.get(origin, {}):  # an answer counts, whatever else was said of the request
            refused.setdefault(origin, {})[key] = Answer("", "error", error=reason)
    for origin, refusals in refused.items():
        _append(journals[origin.journal], origin, refusals, f"refused{reading}")
    reasons = Counter(one.error for refusals in refused.values() for one in refusals.values())
    return Taken(new, dict(reasons), len(foreign))


def _append(folder: Place, origin: Origin, answers: dict[str, Answer], writer: str) -> int:
    """Append answers that the journal lacks; the same results read twice are appended once."""
    if (folder / journal_name(origin.low, origin.high, writer)).exists():
        return 0
    with Journal(folder, origin.low, origin.high, writer) as journal:
        known = journal.known(answers)
        fresh = {key: answer for key, answer in answers.items() if key not in known}
        for key, answer in fresh.items():
            journal.append(entry_of(key, answer))
    return len(fresh)


def _read_custom_id(name: str, results: Path, journals: Container[str]) -> tuple[Origin, str]:
    try:
        origin, key = split_custom_id(name)
    except ValueError:
        raise DataError(
            f"custom_id {name!r} is none that --write-batch has given",
            where=results,
            remedy="give the folder with the results of files written by --write-batch",
        ) from None
    if origin.journal not in journals:
        raise DataError(
            f"custom_id {name!r} was given for another experiment, or for other settings of its model",
            where=results,
            remedy="give the results of files that --write-batch has written with this experiment file",
        )
    return origin, key
