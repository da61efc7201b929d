"""Questions made from documents: what is drawn, read, refused and asked again."""

import json
from collections import Counter

import pyarrow as pa
import pytest

from beirnl import registry
from beirnl.errors import ConfigError
from beirnl.llm.mock import MockLlm
from beirnl.llm.protocol import Answer, in_order
from beirnl.rag.answers import answered_table, plan_prompts, requests_for
from beirnl.rag.prompts import read_question_prompt
from beirnl.rag.questions import generate
from beirnl.rag.questions.drawing import dice, draw, window
from beirnl.rag.questions.filters import FILTERS, Given, Seen, judge
from beirnl.rag.questions.generating import request_for, text_budget
from beirnl.rag.questions.phrases import refers_to_text
from beirnl.rag.questions.reading import Draft, answer_schema, read_draft
from beirnl.rag.tables import DOCUMENTS, QUESTIONS
from beirnl.schema import RUN
from beirnl.specs import AnswerSpec, LlmSpec, QuestionSpec

TEXT = (
    "The lighthouse of Ameland was built in 1880 and is fifty-five metres high, says the guide of the island."
)
GOOD = ("In which year was the lighthouse of Ameland built?", ["1880", "1900", "1780", "1815"])


def words(text: str) -> int:
    return len(text.split())


def spec(**settings) -> QuestionSpec:
    prompt = settings.pop("prompt", "bes4rag-question")
    llm = LlmSpec(engine="mock", max_tokens=200, max_model_len=settings.pop("window", 1000))
    values = {"count": 10, "min_words": 5} | settings
    return QuestionSpec(llm=llm, prompt=prompt, template=registry.prompt(prompt), **values)


def documents(texts, groups=None) -> pa.Table:
    rows = [
        {
            "id": f"d{n}.txt",
            "title": "",
            "text": text,
            "description": "",
            "group": groups[n] if groups else "",
        }
        for n, text in enumerate(texts)
    ]
    return pa.Table.from_pylist(rows, schema=DOCUMENTS)


def written(question=GOOD[0], options=GOOD[1], correct=(0,), **changes) -> dict:
    listed = [
        {"text": text, "is_correct": place in correct, "explanation": f"because {place}"}
        for place, text in enumerate(options)
    ]
    return {"question": question, "options": listed} | changes


# Drawing ----------------------------------------------------------------------------------------------------


def test_a_draw_is_repeatable_without_replacement_and_leaves_out_short_documents():
    texts = [f"word {n} " * 5 for n in range(200)] + ["too short", ""]
    drawn = draw(documents(texts), spec())
    assert sorted(drawn) == list(range(200)) and drawn == draw(documents(texts), spec())
    assert drawn != draw(documents(texts), spec(seed=8))
    fewer = documents(texts).slice(50, 100)  # other documents beside them do not change their order
    assert [n + 50 for n in draw(fewer, spec())] == [n for n in drawn if 50 <= n < 150]


@pytest.mark.parametrize("stratify", ["group", "length"])
def test_every_beginning_of_a_stratified_draw_has_its_share_of_each_stratum(stratify):
    groups = ["big"] * 300 + ["small"] * 100
    texts = ["word " * (10 + n) for n in range(400)]
    drawn = draw(documents(texts, groups), spec(stratify=stratify))
    strata = {n: groups[n] if stratify == "group" else n // 100 for n in range(400)}
    shares = Counter(strata.values())
    for size in (4, 40, 100, 333, 400):
        found = Counter(strata[n] for n in drawn[:size])
        for stratum, share in shares.items():
            assert abs(found[stratum] - size * share / 400) <= 1


def test_a_window_is_whole_sentences_that_fit_and_is_drawn_from_everywhere():
    sentences = [f"Sentence number {n} is about the thing with that number." for n in range(400)]
    text = " ".join(sentences)
    begins = []
    for seed in range(40):
        part = window(text, 100, words, dice(seed))
        assert 50 <= words(part) <= 100 and part in text
        assert part.startswith("Sentence") and part.endswith("number.")
        begins.append(text.index(part) / len(text))
    assert min(begins) < 0.2 and max(begins) > 0.8
    assert window(text, 100, words, dice(3)) == window(text, 100, words, dice(3))
    assert window("short text", 100, words, dice(3)) == "short text"
    endless = "x" * 5000
    assert len(window(endless, 100, len, dice(3))) <= 100


# Prompts ----------------------------------------------------------------------------------------------------


def test_the_papers_prompt_asks_for_four_options_and_a_schema():
    jsonschema = pytest.importorskip("jsonschema")
    settings = spec()
    template = read_question_prompt(settings.prompt, settings.template)
    request = request_for("A {text}\nof two lines.", settings, template, 0)
    shown = request.last_text
    assert "---\nA {text}\nof two lines.\n---" in shown
    assert "Generate 4 answer options (1 correct, 3 plausible but incorrect)" in shown
    schema = json.loads(request.json_schema)
    jsonschema.validate(written(), schema)
    for wrong in (written(options=["a", "b", "c"]), written(more=1), {"question": "x"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
    assert [request_for("x", settings, template, n).temperature for n in range(4)] == [0.0, 0.4, 0.8, 0.8]


def test_a_few_shot_prompt_shows_the_text_on_one_line_and_its_examples_are_accepted():
    settings = spec(prompt="few-shot-question")
    template = read_question_prompt(settings.prompt, settings.template)
    request = request_for("Two\nlines.", settings, template, 0)
    assert request.prompt.endswith("Text: Two lines.\nQuestion:") and request.stop == ("\n",)
    shown = [line for line in request.prompt.split("\n") if line.startswith("Question: {")]
    texts = [line for line in request.prompt.split("\n") if line.startswith("Text: ")]
    assert len(shown) == 3
    for line, text in zip(shown, texts, strict=False):
        assert judge(read_draft(line), Given(settings, text), Seen(0.75)) == "ok"


def test_a_window_without_room_for_a_text_is_an_error():
    settings = spec(window=150)
    template = read_question_prompt(settings.prompt, settings.template)
    with pytest.raises(ConfigError, match="a window of 150 tokens leaves no room"):
        text_budget(settings, template, words)
    with pytest.raises(ConfigError, match=r"mine\.txt: the prompt has no \{text\}"):
        read_question_prompt("mine", "Ask something.")


# Reading and filters ----------------------------------------------------------------------------------------

PLAIN = json.dumps(written())


@pytest.mark.parametrize(
    "answer",
    [
        PLAIN,
        f"```json\n{PLAIN}\n```",
        f"Here is the question:\n{PLAIN}\nI hope that helps!",
        json.dumps(written(), indent=2),
        PLAIN.replace("true", '"True"').replace("false", '"False"'),
        PLAIN.replace('"text"', '"option"').replace("is_correct", "correct"),
        '{"thought": "easy"} ' + PLAIN,
    ],
)
def test_a_question_is_read_out_of_any_wrapping(answer):
    draft = read_draft(answer)
    assert draft == Draft(GOOD[0], tuple(GOOD[1]), (0,), tuple(f"because {n}" for n in range(4)))


@pytest.mark.parametrize(
    "answer",
    ["", "I cannot.", PLAIN[:-20], PLAIN[:60], "[1, 2]", '{"question": 3, "options": []}', "__import__('os')",
     '{"question": "x", "options": ["a", "b", "c", "d"]}', '{"question": "x"}', "{" * 2000],
)  # fmt: skip
def test_what_is_no_question_is_none(answer):
    assert read_draft(answer) is None


ITALIAN = (
    "In quale anno fu costruito il faro dell'isola di Ameland?",
    ["Nel 1880", "Nel 1900", "Mai", "Ieri"],
)
FAULTS = [
    ("ok", written()),
    ("ok", written(question="Who wrote the text of the treaty of Utrecht of 1713?", options=list("abcd"))),
    ("ok", written("Which genotype of the pea gives the most gametes?", ["EEFF", "EEff", "EeFF", "EeFf"])),
    ("number of options", written(options=["1880", "1900", "1780"])),
    ("number of options", written(options=["1880", "1900", "1780", "1815", "1820"])),
    ("not exactly one correct", written(correct=())),
    ("not exactly one correct", written(correct=(0, 2))),
    ("equal options", written(options=["In 1880", "in 1880.", "1780", "1815"])),
    ("empty", written(options=["1880", " ", "1780", "1815"])),
    ("empty", written(question=" ? ")),
    ("refers to the text", written(question="According to the text, when was the lighthouse built?")),
    ("refers to the text", written(options=["1880, as the article says", "1900", "1780", "1815"])),
    ("language", written(*ITALIAN)),
    ("answer given away", written("Which island has the Ameland light?", ["Ameland", "Texel", "Urk", "Ons"])),
]  # fmt: skip


@pytest.mark.parametrize(("name", "answer"), FAULTS)
def test_each_fault_is_caught_under_its_own_name_and_nothing_else(name, answer):
    assert judge(read_draft(json.dumps(answer)), Given(spec(), TEXT), Seen(0.75)) == name


def test_every_filter_is_planted_above():
    assert {name for name, _ in FAULTS} == {"ok", *FILTERS}


def test_a_question_in_the_language_that_is_asked_for_is_accepted():
    draft = read_draft(json.dumps(written(*ITALIAN)))
    assert judge(draft, Given(spec(language="it"), TEXT), Seen(0.75)) == "ok"
    assert (
        judge(draft, Given(spec(), "Il faro dell'isola fu costruito nel 1880 ed è alto."), Seen(0.75)) == "ok"
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Wat wordt er volgens de tekst gebouwd?", True),
        ("Wat staat er in het artikel over de maan?", True),
        ("Secondo il testo, chi vinse la gara?", True),
        ("Chi è citato nell'articolo?", True),
        ("What does the article mention first?", True),
        ("Was steht im Text über den Mond?", True),
        ("Que dit-on dans le texte ?", True),
        ("What did the author of Max Havelaar do in Java?", False),
        ("Wat regelt artikel 5 van de grondwet?", False),
        ("What is in the document of 1215 called Magna Carta?", False),
        ("Which texture has silk?", False),
        ("Cosa prevede l'articolo 3 della Costituzione?", False),
    ],
)
def test_references_to_the_text_are_known_in_several_languages(text, found):
    assert refers_to_text(text) is found


def test_near_duplicates_name_the_same_things():
    seen = Seen(0.75)
    seen.add("Which country won the football world cup in 1998 in Paris?")
    assert seen.is_near("Which country won the football world cup in 1998 in Paris")
    assert seen.is_near("Which country won the world football cup of 1998 in Paris?")
    assert not seen.is_near("Which country won the football world cup in 2002 in Paris?")
    assert not seen.is_near("Which country won the football world cup in 1998 in Rome?")
    assert not seen.is_near("Who trained the team that lost in Paris in 1998?")


# Generating -------------------------------------------------------------------------------------------------


class Writes:
    """An LLM that writes what a function gives for the number in the text and the attempt."""

    def __init__(self, write):
        self.write, self.asked = write, []

    def ask(self, requests, attempt=0):
        given = []
        for request in requests:
            number = int(request.last_text.partition("Document number ")[2].split()[0])
            self.asked.append((number, attempt))
            text, *reason = self.write(number, attempt)
            given.append(Answer(text, reason[0] if reason else "stop"))
        return given


def numbered(count) -> pa.Table:
    return documents(
        [f"Document number {n} tells of the town with the name T{n}ville in the year." for n in range(count)]
    )


def about(number: int, **changes) -> str:
    name = f"T{number}ville"
    return json.dumps(written(f"In which year was {name} founded by its people?", **changes))


def test_questions_come_from_documents_in_the_order_of_the_draw_and_their_options_are_shuffled():
    made = generate(numbered(400), spec(count=300), Writes(lambda n, attempt: (about(n),)), words)
    rows = made.questions.to_pylist()
    assert made.questions.schema.equals(QUESTIONS) and len(rows) == 300 and made.shortage == ""
    assert [row["doc_id"] for row in rows] == [f"d{n}.txt" for n in draw(numbered(400), spec())[:300]]
    for row in rows:
        assert row["options"][row["answer"]] == "1880"
        assert row["explanations"][row["answer"]] == "because 0"
        assert row["id"] == row["doc_id"] + "#q0" and row["origin"] == "generated"
    places = Counter(row["answer"] for row in rows)
    assert all(50 < places[n] < 100 for n in range(4))  # 75 each by chance, which the seed fixes


def test_what_fails_is_asked_again_and_then_makes_room_for_another_document():
    def write(number, attempt):
        if number % 3 == 0:
            return (about(number, correct=()),)
        if number % 3 == 1 and attempt == 0:
            return (about(number)[:40], "length")
        return (about(number),)

    llm = Writes(write)
    made = generate(numbered(30), spec(count=15), llm, words)
    assert made.questions.num_rows == 15 and made.shortage == ""
    asked = Counter(number for number, _ in llm.asked)
    assert all(asked[n] == (3, 2, 1)[n % 3] for n in asked)
    assert len(set(llm.asked)) == len(llm.asked)
    assert made.refused["cut short"] == sum(n % 3 == 1 for n in asked)
    assert made.refused["not exactly one correct"] == 3 * sum(n % 3 == 0 for n in asked)


def test_more_questions_than_documents_can_give_say_how_many_came_and_why():
    bad = {0: ("I cannot.",), 1: ("", "error"), 2: (about(3),)}  # the question of another document
    table = pa.concat_tables([numbered(8), documents(["short"])])
    made = generate(table, spec(count=50), Writes(lambda n, attempt: bad.get(n, (about(n),))), words)
    assert made.questions.num_rows == 5
    assert made.refused == {"malformed": 3, "error": 3, "near-duplicate": 3}
    assert made.shortage == (
        "5 of 50 questions: of 9 documents 1 is too short to be asked and 3 gave no question; refused "
        "attempts: error 3, malformed 3, near-duplicate 3"
    )


def test_a_second_question_of_a_document_is_asked_under_attempts_of_its_own():
    def write(number, attempt):
        return (about(number * 100 + attempt),)

    llm = Writes(write)
    made = generate(numbered(4), spec(count=7, per_document=3), llm, words)
    assert Counter(made.questions["doc_id"].to_pylist()).most_common()[0][1] == 2
    assert len(set(made.questions["id"].to_pylist())) == 7
    assert {attempt for _, attempt in llm.asked} == {0, 3}


def test_long_documents_are_shown_in_part_and_another_part_at_the_next_attempt():
    long = " ".join(f"Document number {n} is here again." for n in range(2000))
    shown = []

    class Refuses:
        def ask(self, requests, attempt=0):
            shown.extend(request.last_text for request in requests)
            return [Answer("no", "stop") for _ in requests]

    generate(documents([long]), spec(count=1), Refuses(), words)
    assert len(set(shown)) == 3
    assert all(words(text) + 200 + 32 <= 1000 for text in shown)


def test_the_schema_names_as_many_options_as_are_wanted():
    schema = json.loads(answer_schema(3))["properties"]["options"]
    assert (schema["minItems"], schema["maxItems"]) == (3, 3)


# The stand-in engine ----------------------------------------------------------------------------------------


class Mock:
    """The engine ``mock`` as an asker."""

    def ask(self, requests, attempt=0):
        return in_order(MockLlm(LlmSpec(engine="mock")), requests)


SAMPLE = [
    "The harbour of Delfzijl received wooden ships from Norway. Merchants sold the timber in Groningen.",
    "Volcanoes on Iceland warm the water of many greenhouses. Farmers grow tomatoes there during winter.",
    "Beavers returned to the river after decades of absence. Rangers count their lodges every autumn.",
]


@pytest.mark.parametrize("prompt", ["bes4rag-question", "few-shot-question"])
def test_the_mock_asks_what_the_document_tells_and_knows_it_only_from_there(prompt):
    made = generate(documents(SAMPLE), spec(count=3, prompt=prompt), Mock(), words)
    assert made.questions.num_rows == 3 and made.refused == {}
    texts = {"s": {f"d{n}.txt#0": text for n, text in enumerate(SAMPLE)}}
    ids = made.questions.select(["id", "doc_id"]).to_pylist()
    found = [[row["id"] for row in ids], [row["doc_id"] + "#0" for row in ids], [1.0] * 3]
    settings = AnswerSpec(
        llm=LlmSpec(engine="mock"), prompt="answer", template=registry.prompt("answer"), ks=(1,)
    )
    plan = plan_prompts(made.questions, {"s": pa.table(found, schema=RUN)}, texts, settings, words)
    answers = Mock().ask(list(requests_for(plan.prompts, made.questions, texts, settings)))
    answered = answered_table(plan.prompts, made.questions, answers)
    assert answered["answer"].to_pylist() == made.questions["answer"].to_pylist()
