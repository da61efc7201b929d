"""Question answering as an experiment: its tables, and what a run has made of them."""

import json
from collections.abc import Callable
from pathlib import Path

from beirnl.llm.protocol import Answer, Request
from beirnl.pipeline import Pipeline


def rag(folder, answers='[[rag.answers]]\nengine = "mock"', questions='count = 6\nengine = "mock"', **more):
    """The tables of ``[rag]`` over a folder of documents."""
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in more.items())
    settings = f'documents = "{folder}"\n{"" if "k" in more else "k = 2" + chr(10)}'
    settings += "" if "ks" in more else "ks = [0, 1, 2]\n"
    return f"[rag]\n{settings}{lines}[rag.questions]\n{questions}\n{answers}\n"


def replies(pipeline: Pipeline, llm: str = "mock") -> list[dict]:
    """Replies of an answering model."""
    return pipeline.graph.answering.answers[llm].artifact(pipeline.workspace).table().to_pylist()


def counted(pipeline: Pipeline, stage: str, llm: str = "mock") -> dict[str, int]:
    """Counts of the receipts of ``plans`` or ``answers``, summed."""
    found: dict[str, int] = {}
    for receipt in getattr(pipeline.graph.answering, stage)[llm].artifact(pipeline.workspace).receipts():
        for name, number in receipt.counts.items():
            found[name] = found.get(name, 0) + number
    return found


def journal(pipeline: Pipeline) -> list[str]:
    """Keys of all answers that were ever given."""
    files = pipeline.workspace.journal.rglob("*.jsonl")
    return [json.loads(line)["key"] for file in files for line in file.read_text().splitlines()]


def found(pipeline: Pipeline, name: str) -> dict[str, list[str]]:
    """Texts of the passages that a system ranks, by question."""
    (one,) = (s for s in pipeline.graph.answering.searched if s.system.name == name)
    passages = one.passages.artifact(pipeline.workspace).table().to_pylist()
    texts = {row["id"]: row["text"] for row in passages}
    ranked: dict[str, list[str]] = {}
    for row in one.run.artifact(pipeline.workspace).table().to_pylist():
        ranked.setdefault(row["query_id"], []).append(texts[row["doc_id"]])
    return ranked


class Engine:
    """In place of the engine ``mock``: says what a function says, and keeps what it was asked.

    Attributes:
        say: from a request to a text or an answer.
        prompts: all that it was asked, in order.
    """

    def __init__(self, monkeypatch, say: Callable[[Request], str | Answer]) -> None:
        self.say, self.prompts = say, list[str]()
        monkeypatch.setattr("beirnl.llm.mock.MockLlm.generate", self.generate)

    def generate(self, requests, enough=lambda: False):
        for place, request in enumerate(requests):
            self.prompts.append(request.last_text)
            said = self.say(request)
            yield place, said if isinstance(said, Answer) else Answer(said, "stop", 10, 1)


def write_texts(folder: Path, texts: dict[str, str]) -> Path:
    """A folder with a file for each text."""
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def write_questions(path: Path, rows: list[dict]) -> str:
    """A file of own questions; what names it in ``[rag.questions]``."""
    path.write_text(json.dumps(rows), encoding="utf-8")
    return f'file = "{path}"'
