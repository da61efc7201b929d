"""Questions of real exams (EXAMS, Italian) and their paragraphs as a question answering experiment.

They are answered by a reader that is right exactly when a passage which it is shown holds the answer's text:
its accuracy is a recall, which :func:`recounted` counts from the runs by plain search in texts.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from running import experiment
from scipy.stats import binomtest

from beirnl.evaluation.uncertainty import Resampling
from beirnl.llm.answer_key import write_key
from beirnl.pipeline import Pipeline
from beirnl.rag.result import Result, result
from beirnl.stages.questions import questions_of

KS = (0, 1, 2, 3, 4, 5, 10)
DECLARED = 5
READER = "answer-key"
QUICK = Resampling(bootstrap=50, randomisation=50)  # exact tests and Wilson's intervals need none
NOWHERE = 1_000
_WINDOW = 1 << 20  # no prompt is cut


class Setup(NamedTuple):
    """What a share of questions is counted for."""

    system: str
    k: int


def write_exams(
    folder: Path, source: Path, systems: str, questions: int | None = None, paragraphs: int | None = None
) -> Path:
    """Write documents, questions, key and experiment file.

    Args:
        folder: where; with the workspace.
        source: folder with ``exams_it.questions.jsonl`` and ``exams_it.passages.jsonl``.
        systems: tables of the experiment file.
        questions: only so many, from the beginning; those with two equal options do not count.
        paragraphs: of each question only so many, and only questions of which one of these holds the answer.
    """
    (folder / "documents").mkdir(parents=True, exist_ok=True)
    texts = paragraphs_of(source)
    asked = usable(source)
    if paragraphs:
        asked = (
            row for row in asked if _place(row, [texts[p] for p in row["passage_ids"][:paragraphs]]) < NOWHERE
        )
    asked = list(islice(asked, questions))
    kept = dict.fromkeys(name for row in asked for name in row["passage_ids"][:paragraphs])
    corpus = [{"_id": name, "title": "", "text": texts[name]} for name in (kept if paragraphs else texts)]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in corpus)
    (folder / "documents" / "paragraphs.jsonl").write_text(lines, encoding="utf-8")
    rows = [{name: row[name] for name in ("id", "question", "options", "answer_index")} for row in asked]
    own = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "questions.jsonl").write_text(own, encoding="utf-8")
    key = write_key(folder / "key", asked)
    return experiment(
        folder,
        f'[rag]\ndocuments = "{folder / "documents"}"\nlanguage = "it"\nk = {DECLARED}\nks = {list(KS)}\n'
        f'[rag.questions]\nfile = "{folder / "questions.jsonl"}"\noptions = 0\n'
        f'[[rag.answers]]\nname = "{READER}"\nengine = "answer-key"\nmodel = "{key}"\n'
        f"max_model_len = {_WINDOW}\n{systems}[runtime]\nthreads = 1\n",
    )


def exam_questions(source: Path) -> list[dict]:
    """All questions, as they are."""
    lines = (source / "exams_it.questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def paragraphs_of(source: Path) -> dict[str, str]:
    """Texts of all paragraphs by their ids."""
    with (source / "exams_it.passages.jsonl").open(encoding="utf-8") as lines:
        return {row["_id"]: row["text"] for row in map(json.loads, lines)}


def usable(source: Path):
    """Those whose options differ."""
    rows = (row for row in exam_questions(source) if len(set(row["options"])) == len(row["options"]))
    return (row | {"answer_index": row["answer"]} for row in rows)


def recounted(pipeline: Pipeline, folder: Path) -> dict[Setup, list[bool]]:
    """Whether the answer's text is in one of the first k passages, by question in their order.

    Nothing of the project's reading of prompts and answers is used: only runs, passages, and the file of
    questions.
    """
    asked = [json.loads(line) for line in (folder / "questions.jsonl").read_text("utf-8").splitlines()]
    found: dict[Setup, list[bool]] = {Setup("", 0): [False] * len(asked)}
    for one in pipeline.graph.answering.searched:
        rows = one.passages.artifact(pipeline.workspace).table().select(["id", "text"]).to_pylist()
        texts = {row["id"]: row["text"] for row in rows}
        ranked = defaultdict(list)
        for row in one.run.artifact(pipeline.workspace).table().to_pylist():
            ranked[row["query_id"]].append(row["doc_id"])
        first = [_place(row, [texts[name] for name in ranked[row["id"]][: max(KS)]]) for row in asked]
        for k in KS[1:]:
            found[Setup(one.system.name, k)] = [place < k for place in first]
    return found


def _place(row: dict, passages: Sequence[str]) -> int:
    """Of the first passage that holds the answer."""
    answer = plain(row["options"][row["answer_index"]])
    return next((n for n, text in enumerate(passages) if answer in plain(text)), NOWHERE)


def plain(text: str) -> str:
    """Without letter case, and with single blanks."""
    return " ".join(text.casefold().split())


def answered(pipeline: Pipeline, folder: Path) -> dict[Setup, list[bool]]:
    """Whether the reader was right, by question in their order, as the project says."""
    asked = [json.loads(line) for line in (folder / "questions.jsonl").read_text("utf-8").splitlines()]
    correct = {row["id"]: row["answer_index"] for row in asked}
    replies = pipeline.graph.answering.answers[READER].artifact(pipeline.workspace).table().to_pylist()
    given: dict[Setup, dict[str, bool]] = defaultdict(dict)
    for reply in replies:
        right = reply["answer"] == correct[reply["question_id"]]
        given[Setup(reply["system"], reply["k"])][reply["question_id"]] = right
    return {setup: [marks[row["id"]] for row in asked] for setup, marks in given.items()}


def differences(pipeline: Pipeline, folder: Path, twins: tuple[str, str]) -> Iterator[str]:
    """What the project says otherwise than counts from the runs, scipy's tests, or reason.

    Args:
        pipeline: of an experiment that has been run.
        folder: of :func:`write_exams`.
        twins: names of one encoder, which never differs from itself.
    """
    counted, said = recounted(pipeline, folder), answered(pipeline, folder)
    yield from (f"{setup}: answers differ from recall" for setup in counted if said[setup] != counted[setup])
    yield from ("a setup is missing" for _ in counted.keys() ^ said.keys())
    twice = {k: [counted[Setup(name, k)] for name in twins] for k in KS[1:]}
    yield from (
        f"k = {k}: an encoder differs from itself" for k, (one, other) in twice.items() if one != other
    )
    questions = pl.from_arrow(questions_of(pipeline.graph.answering.questions.artifact(pipeline.workspace)))
    replies = pl.from_arrow(pipeline.graph.answering.answers[READER].artifact(pipeline.workspace).table())
    for k in KS[1:]:
        yield from _differs(result(questions, replies, k, settings=QUICK), counted, k, twins)


def _differs(
    found: Result, counted: Mapping[Setup, list[bool]], k: int, twins: tuple[str, str]
) -> Iterator[str]:
    """Of a comparison at one k."""
    for setup, one in found.found.items():
        marks = counted[Setup(setup.system, setup.k)]
        peer = binomtest(sum(marks), len(marks))
        ends = peer.proportion_ci(0.95, "wilson")
        wanted = sum(marks) / len(marks), *ends, len(marks), len(marks)
        if not np.allclose(one, wanted, rtol=0, atol=1e-9):
            yield f"{setup}: {tuple(one)} in place of {wanted}"
    choice = found.choices[READER]
    systems = [setup.system for setup in counted if setup.k == k]
    best = max(systems, key=lambda system: sum(counted[Setup(system, k)]))
    if choice.best.system != best:
        yield f"k = {k}: the best is {choice.best.system} in place of {best}"
    raw = [
        _mcnemar(counted[Setup(c.setup.system, k)], counted[Setup(c.other.system, k)])
        for c in choice.comparisons
    ]
    corrected = _holm(raw)
    if len(raw) != len(systems) * (len(systems) - 1) // 2:
        yield f"k = {k}: {len(raw)} pairs"
    for one, p, p_holm in zip(choice.comparisons, raw, corrected, strict=True):
        if not np.allclose([one.p, one.p_holm], [p, p_holm], rtol=1e-9, atol=0):
            pair = f"{one.setup.system} and {one.other.system}"
            yield f"k = {k}, {pair}: p is {one.p}, {one.p_holm} in place of {p}, {p_holm}"
        if {one.setup.system, one.other.system} == set(twins) and (one.p_holm, one.difference) != (1, 0):
            yield f"k = {k}: an encoder is called different from itself"
    shown = {
        c.other.system
        for c, p in zip(choice.comparisons, corrected, strict=True)
        if c.setup == choice.best and p > 0.05
    }
    if shown != {setup.system for setup in choice.equals}:
        yield f"k = {k}: not shown to differ from the best are {shown}"


def _mcnemar(one: Sequence[bool], other: Sequence[bool]) -> float:
    """The exact test (McNemar 1947 by the binomial distribution), scipy's."""
    wins = sum(a and not b for a, b in zip(one, other, strict=True))
    losses = sum(b and not a for a, b in zip(one, other, strict=True))
    return float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def _holm(p_values: Sequence[float]) -> list[float]:
    """Holm (1979): the step-down method, written out."""
    order, highest, found = sorted(range(len(p_values)), key=p_values.__getitem__), 0.0, [0.0] * len(p_values)
    for step, at in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - step) * p_values[at]))
        found[at] = highest
    return found
