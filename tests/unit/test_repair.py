"""The repair ladder on its own: which rung a row is said to have its text from."""

import pyarrow as pa
import pytest

from beirnl.llm.protocol import Answer
from beirnl.registry import prompt
from beirnl.schema import CORPUS
from beirnl.specs import CheckSpec, LlmSpec, RepairSpec, Rung, TranslationSpec
from beirnl.translation import translated_table
from beirnl.translation.repair import Ladder

TEXT = "Coffee keeps people awake for about five hours, and tea does not."
DUTCH = "Koffie houdt mensen ongeveer vijf uur wakker, en thee doet dat niet."
REFUSAL = "I'm sorry, but I cannot translate this text."


class Says:
    """A model that always says one thing."""

    def __init__(self, text):
        self.text = text

    def ask(self, requests, attempt=0):
        return [Answer(self.text, "stop") for _ in requests]


@pytest.mark.parametrize(
    ("answer", "text", "status", "rung"),
    [
        (DUTCH, DUTCH, "ok", "room"),
        (f"{DUTCH} </body>", f"{DUTCH} </body>", "markup", "room"),
        (REFUSAL, TEXT, "refusal", ""),  # better than no answer, but the text is still the source's
        ("", TEXT, "error", ""),
    ],
)
def test_a_rung_is_named_only_where_it_gave_the_text(answer, text, status, rung):
    spec = TranslationSpec(
        llm=LlmSpec(engine="mock"),
        kind="query",
        prompt="paper-query",
        template=prompt("paper-query"),
        source_language="en",
        target_language="nl",
    )
    source = pa.table([[0], ["q1"], [""], [TEXT]], schema=CORPUS)
    first = translated_table(source, [("", TEXT)], ["error"], [""])
    room = Rung(name="room", number=1, translation=spec)
    ladder = Ladder(RepairSpec(rungs=(room,), checks=CheckSpec()), None, first, source)
    ladder.climb(room, Says(answer) if answer else Fails())
    (row,) = ladder.table().to_pylist()
    assert (row["text"], row["status"].partition(",")[0], row["repair"]) == (text, status, rung)


class Fails(Says):
    """A model that never answers."""

    def __init__(self):
        super().__init__("")

    def ask(self, requests, attempt=0):
        return [Answer("", "error", error="no answer") for _ in requests]
