"""Experiments of question answering: a few documents of several kinds, and tables of an experiment file."""

import json
from pathlib import Path

from running import system

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
