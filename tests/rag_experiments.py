"""Experiments of question answering: documents of several kinds, tables of an experiment file, and what a run
has made of them."""

import json
from collections.abc import Callable
from pathlib import Path

from running import system

from beirnl.llm.protocol import Answer, Request

BM25 = system("bm25", "BM25")
TEXTS = (
    "Windmills near Kinderdijk pumped water from the polders into the river for almost three centuries. "
    "Their wooden sails were later replaced by engines that burned diesel.",
    "The violin maker Stradivari varnished spruce with a recipe which nobody has been able to repeat. "
    "Modern acoustics found few differences between old instruments and new copies.",
    "Beekeepers move their hives at night, because every worker is then back inside the colony. "
    "Heather honey is so thick that presses rather than centrifuges extract it.",
    "Glaciers carry boulders over long distances and leave moraines behind wherever the climate warms. "
    "Geologists date such ridges by counting isotopes of beryllium.",
    "Lighthouses were identified by the rhythm of their flashes, which captains looked up in printed lists. "
    "Fresnel lenses made a small flame visible beyond the horizon.",
    "Porcelain was fired twice, first without glaze and afterwards with feldspar at higher temperature. "
    "Potters in Meissen guarded this knowledge from competitors behind castle walls.",
)
ASKED = (
    "Kinderdijk",
    "Stradivari",
    "Heather",
    "moraines",
)  # words of the first four, by which they are asked
ANSWERS = ("diesel", "spruce", "centrifuges", "beryllium")


def write_documents(folder: Path) -> Path:
    """Documents of five kinds, two with one name, one that is broken."""
    (folder / "old").mkdir(parents=True)
    (folder / "a.txt").write_text(TEXTS[0])
    (folder / "old" / "a.txt").write_text(TEXTS[1])
    (folder / "b.md").write_text(f"# Workshops\n\n{TEXTS[2]}\n")
    (folder / "c.html").write_text(f"<html><body><p>{TEXTS[3]}</p></body></html>")
    (folder / "d.json").write_text(json.dumps({"text": TEXTS[4]}))
    (folder / "e.srt").write_text(f"1\n00:00:01,000 --> 00:00:04,000\n{TEXTS[5]}\n")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing more")
    return folder


MOCK = '[[rag.answers]]\nengine = "mock"'


def rag(folder, answers=MOCK, questions='count = 6\nengine = "mock"', more="", **settings):
    settings = {"k": 2, "ks": [0, 1, 2], **({"documents": str(folder)} if folder else {}), **settings}
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())
    return f"[rag]\n{lines}[rag.questions]\n{questions}\n{answers}\n{more}"


def replies(pipeline, llm="mock", corpus="documents"):
    return pipeline.graph.corpora[corpus].answers[llm].artifact(pipeline.workspace).table().to_pylist()


def journal(pipeline):
    """All answers that were ever given."""
    files = pipeline.workspace.journal.rglob("*.jsonl")
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def answered_keys(pipeline):
    """Keys of all answers that were ever given."""
    return [row["key"] for row in journal(pipeline)]


def corpus(name, folder, **more):
    lines = "".join(f"{key} = {json.dumps(str(value))}\n" for key, value in more.items())
    return f'[[rag.corpus]]\nname = "{name}"\ndocuments = "{folder}"\n{lines}'


def counted(pipeline, stage: str, llm: str = "mock") -> dict[str, int]:
    """Counts of the receipts of ``plans`` or ``answers``, summed."""
    found: dict[str, int] = {}
    for receipt in getattr(pipeline.graph.answering, stage)[llm].artifact(pipeline.workspace).receipts():
        for name, number in receipt.counts.items():
            found[name] = found.get(name, 0) + number
    return found


def found(pipeline, name: str) -> dict[str, list[str]]:
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
