"""Stages that ask: questions about documents, and answers to them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from beirnl.datasets.importing import shard_count, shards_of, text_digest
from beirnl.errors import DataError
from beirnl.rag.answers import (
    ANSWERED,
    PROMPTS,
    REFERENCES,
    answered_table,
    match_answers,
    plan_prompts,
    replies_table,
    requests_for,
)
from beirnl.rag.answers.prompts import texts_by_id
from beirnl.rag.questions import ATTEMPTS, generate, read_questions
from beirnl.rag.tables import QUESTIONS, REPLIES
from beirnl.schema import QUERIES
from beirnl.specs import AnswerSpec, QuestionSpec, Spec
from beirnl.stages.base import Inputs, Unit
from beirnl.stages.translate import count_usage, journal_folder
from beirnl.store.artifacts import Artifact
from beirnl.store.journal import Journal, bucket_range
from beirnl.store.parquet import read_table
from beirnl.store.workspace import Workspace

if TYPE_CHECKING:
    from beirnl.llm.asking import Asker
    from beirnl.specs import LlmSpec

PROMPTS_PER_UNIT = 500  # about
#: Questions as queries, which searches and encoders read; ``text`` is the question.
QUESTION_ROWS = pa.schema([*QUERIES, *(field for field in QUESTIONS if field.name != "id")])
#: Passages in prompts, by the system that found them.
CONTEXTS = pa.schema([("system", pa.string()), ("id", pa.string()), ("text", pa.string())])


class OwnQuestionsSpec(Spec):
    """Questions of the user's beside those that were made; without a file there are only these.

    Attributes:
        sha256: of the file.
        options: of each question; None: each as many as it has.
        file: where it is.
    """

    sha256: str = ""
    options: int | None = 4
    file: Path | None = Field(default=None, exclude=True)


class AnswersSpec(AnswerSpec):
    """Answers of one model over some systems.

    Attributes:
        name: of the model in replies.
        systems: in the order of the inputs ``run-0``, ``passages-0`` ...
    """

    name: str
    systems: tuple[str, ...]


def asking_openings(spec: Spec) -> tuple[str, ...]:
    """Any two of these may ask the same: they ask one after another."""
    return ("",)


def _asker(unit: Unit, llm: "LlmSpec", shards: int) -> tuple["Asker", Journal]:
    """The engine behind the journal of a unit among so many."""
    folder = journal_folder(Workspace(unit.task.workspace), llm)
    journal = Journal(folder, *bucket_range(unit.number, shards), unit.out.attempt)
    return unit.resource.asker(unit, llm, journal), journal


def generate_questions(unit: Unit) -> None:
    """Questions about documents; two parts: questions (schema ``QUESTIONS``), and every attempt."""
    from beirnl.llm.local import counter

    spec = unit.task.spec
    assert isinstance(spec, QuestionSpec)
    documents = unit.inputs["rows"].table()
    asker, journal = _asker(unit, spec.llm, 1)
    with journal:
        made = generate(documents, spec, asker, counter(spec.llm))
    unit.out.rows_in = documents.num_rows
    count_usage(unit, asker.usage)
    for name, number in made.refused.items():
        unit.out.count(f"refused: {name}", number)
    unit.out.count("not made", made.failed)
    if made.shortage:
        unit.out.warnings.append(made.shortage)
    unit.out.write(made.questions, QUESTIONS)
    unit.out.write(made.attempts, ATTEMPTS)


def gather_questions(unit: Unit) -> None:
    """Questions that were made and those of the user, as queries.

    Raises:
        DataError: there are none, two have one identifier, or the user's file is wrong.
    """
    spec = unit.task.spec
    assert isinstance(spec, OwnQuestionsSpec)
    generated = unit.inputs.get("generated")
    tables = [generated.read(0)] if generated else []
    if spec.file:
        ids = (shard["id"].to_pylist() for shard in unit.inputs["documents"].tables(["id"]))
        tables.append(read_questions(spec.file, {one for shard in ids for one in shard}, spec.options))
    found = pa.concat_tables(tables)
    if not found.num_rows:
        shortage = "; ".join(line for r in generated.receipts() for line in r.warnings) if generated else ""
        raise DataError(
            f"there are no questions ({shortage or 'the file holds none'})",
            where=spec.file or unit.task.label,
            remedy="give other documents, another model or prompt, or questions of your own",
        )
    _refuse_twice(found["id"].to_pylist(), spec.file)
    unit.out.rows_in = found.num_rows
    unit.out.write(_as_queries(found), QUESTION_ROWS)


def _refuse_twice(ids: Sequence[str], file: Path | None) -> None:
    if len(set(ids)) < len(ids):
        twice = next(name for name in ids if ids.count(name) > 1)
        raise DataError(f"two questions have the id {twice!r}", where=file, remedy="give one another id")


def _as_queries(questions: pa.Table) -> pa.Table:
    count = questions.num_rows
    columns = {name: questions[name] for name in questions.column_names}
    columns |= {
        "row": pa.array(range(count), pa.int64()),
        "title": pa.array([""] * count, pa.string()),
        "text": questions["question"],
    }
    return pa.table({name: columns[name] for name in QUESTION_ROWS.names})


def questions_of(artifact: Artifact) -> pa.Table:
    """The questions (schema ``QUESTIONS``) of what :func:`gather_questions` has made."""
    return artifact.table().select(QUESTIONS.names).cast(QUESTIONS)


def plan_answers(unit: Unit) -> None:
    """The distinct prompts of all systems: slices of prompts, the passages of each slice, and references."""
    from beirnl.llm.local import counter

    spec = unit.task.spec
    assert isinstance(spec, AnswersSpec)
    questions = questions_of(unit.inputs["questions"])
    runs = {system: unit.inputs[f"run-{n}"].table() for n, system in enumerate(spec.systems)}
    texts = {
        system: _texts(unit.inputs[f"passages-{n}"], runs[system]) for n, system in enumerate(spec.systems)
    }
    plan = plan_prompts(questions, runs, texts, spec, counter(spec.llm))
    unit.out.rows_in = questions.num_rows
    for name, number in (("naive", plan.naive), ("distinct", plan.distinct), ("cut", plan.cut)):
        unit.out.count(f"requests, {name}" if name != "cut" else "prompts without all passages", number)
    parts = _by_question(plan.prompts, questions)
    for prompts in parts:
        unit.out.write(prompts, PROMPTS)
    for prompts in parts:
        unit.out.write(_contexts(prompts, texts), CONTEXTS)
    unit.out.write(plan.references, REFERENCES)


def _by_question(prompts: pa.Table, questions: pa.Table) -> list[pa.Table]:
    """Slices of prompts by the leading bits of the digests of their questions: whatever systems and values of
    k there are, a slice finds its answers where an earlier run has put them in the journal."""
    shards = shard_count(prompts.num_rows, PROMPTS_PER_UNIT)
    digests = {
        name: text_digest(question, "\n".join(options))
        for name, (question, options) in texts_by_id(questions).items()
    }
    asked = [digests[name] for name in prompts["question_id"].to_pylist()]
    shard = shards_of(np.array(asked, np.uint64), shards)
    order = np.argsort(shard, kind="stable")
    bounds = np.searchsorted(shard[order], np.arange(shards + 1))
    return [prompts.take(order[begin:end]) for begin, end in pairwise(bounds)]


def _texts(passages: Artifact, run: pa.Table) -> dict[str, str]:
    """Texts of the passages in a run, by identifier."""
    wanted = run["doc_id"].unique()
    found: dict[str, str] = {}
    for shard in passages.tables(["id", "text"]):
        kept = shard.filter(pc.is_in(shard["id"], wanted))
        found |= dict(zip(kept["id"].to_pylist(), kept["text"].to_pylist(), strict=True))
    return found


def _contexts(prompts: pa.Table, texts: Mapping[str, Mapping[str, str]]) -> pa.Table:
    """The passages of prompts, each once."""
    rows = zip(prompts["system"].to_pylist(), prompts["context"].to_pylist(), strict=True)
    places = dict.fromkeys((system, name) for system, context in rows for name in context)
    found = [{"system": system, "id": name, "text": texts[system][name]} for system, name in places]
    return pa.Table.from_pylist(found, schema=CONTEXTS)


def slices(plan: Artifact) -> int:
    """In how many slices a plan's prompts are asked."""
    return (len(plan.parts) - 1) // 2


def answer_units(spec: Spec, inputs: Inputs) -> int:
    """A unit per slice of prompts."""
    return slices(inputs["rows"])


def prompts_of(plan: Artifact) -> Iterator[pa.Table]:
    """The prompts (schema ``PROMPTS``) of a plan's slices."""
    return (plan.read(n) for n in range(slices(plan)))


def references_of(plan: Artifact) -> pa.Table:
    """The references (schema ``REFERENCES``) of a plan."""
    return plan.read(2 * slices(plan))


def contexts_of(plan: Artifact) -> Iterator[pa.Table]:
    """The passages (schema ``CONTEXTS``) of a plan's slices."""
    number = slices(plan)
    return (plan.read(number + n) for n in range(number))


def answer(unit: Unit) -> None:
    """Ask the prompts of a slice, through the journal; an answer that cannot be read is kept as invalid."""
    spec, plan = unit.task.spec, unit.inputs["rows"]
    assert isinstance(spec, AnswersSpec)
    questions = questions_of(unit.inputs["questions"])
    prompts, shards = plan.read(unit.number), slices(plan)
    texts: dict[str, dict[str, str]] = {"": {}}
    for row in plan.read(shards + unit.number).to_pylist():
        texts.setdefault(row["system"], {})[row["id"]] = row["text"]
    asker, journal = _asker(unit, spec.llm, shards)
    with journal:
        said = asker.ask(list(requests_for(prompts, questions, texts, spec)))
        answers = match_answers(prompts, questions, said, spec, asker) if spec.is_open else said
    found = answered_table(prompts, questions, answers, said)
    unit.out.rows_in = prompts.num_rows
    count_usage(unit, asker.usage)
    unit.out.count("invalid", pc.sum(pc.less(found["answer"], 0)).as_py() or 0)
    unit.out.count("failed", sum(bool(error) for error in found["error"].to_pylist()))
    unit.out.write(found, ANSWERED)


def lay_out(unit: Unit) -> None:
    """One reply per question, system, k and order of the options."""
    spec = unit.task.spec
    assert isinstance(spec, AnswersSpec)
    paths = Artifact(unit.task.directory).unit_paths()
    answered = pa.concat_tables([ANSWERED.empty_table(), *map(read_table, paths)])
    unit.out.write(replies_table(references_of(unit.inputs["rows"]), answered, spec.name), REPLIES)
