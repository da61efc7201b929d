"""Answers to questions: which prompts are asked, what is read out of the answers."""

import math

import pyarrow as pa
import pytest
from rag_prompts import questions, run, spec, words

from beirnl.errors import ConfigError, DataError
from beirnl.llm.answer_key import AnswerKeyLlm, write_key
from beirnl.llm.protocol import Answer, in_order
from beirnl.rag.answers import (
    answered_table,
    plan_prompts,
    read_logprobs,
    read_option,
    replies_table,
    requests_for,
    rotations,
)
from beirnl.rag.prompts import read_answer_prompt
from beirnl.rag.tables import REPLIES
from beirnl.specs import LlmSpec, ModelRef

PLACES = ["Paris", "Rome", "in 1984", "World War 2"]


# Reading ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "place"),
    [
        ("2", 2), (" 2.", 2), ("Answer: 2", 2), ("two", 2), ("7", -1), ("", -1), ("twee", 2), ("Due.", 2),
        ("(2)", 2), ("**2**", 2), ("２", 2), ("0", 0), ("option 3", 3), ("The answer is one.", 1),
        ("De antwoord is 2, want 1984", 2), ("risposta: 1", 1), ("2\n", 2), ("2)", 2), ("02", 2),
        ("3. World War 2", 3), ("2. in 1984", 2), ("2. Since 1984 it is so.", 2), ("Paris", 0), ("paris.", 0),
        ("It is 3 of course", 3), ("2 or 3", -1), ("0, 1", -1), ("-1", -1), ("Answer: -1", -1), ("2.5", -1),
        ("1/2", -1), ("0-3", -1), ("Answer: 7", -1), ("7, not 2", -1), ("None of them", -1), ("Madrid", -1),
        ("4", -1), ("2. Perhaps 3", -1), ("  \n", -1), ("12", -1),
    ],
)  # fmt: skip
def test_an_answer_is_read_where_it_is_unambiguous(answer, place):
    assert read_option(answer, PLACES) == place


def test_a_number_is_that_of_the_option_also_where_options_are_numbers():
    assert read_option("2", ["3", "2", "1", "0"]) == 2
    assert read_option("1", ["3", "2"]) == 1 and read_option("2", ["3", "2"]) == -1


def test_logprobs_of_a_number_are_those_of_all_its_tokens():
    told = [
        ("2", math.log(0.5)),
        (" 2", math.log(0.2)),
        ("\u25811", math.log(0.1)),
        ("The", -3.0),
        ("7", -4.0),
    ]
    assert read_logprobs(told, 4) == pytest.approx([-math.inf, math.log(0.1), math.log(0.7), -math.inf])
    assert read_logprobs([("The", -0.1)], 4) == read_logprobs([], 4) == []


# Options and prompts ----------------------------------------------------------------------------------------


def test_rotations_are_evenly_apart_and_each_once():
    assert [rotations(4, n) for n in (1, 2, 4)] == [[0], [0, 2], [0, 1, 2, 3]]
    assert rotations(3, 4) == [0, 1, 2] and rotations(5, 4) == [0, 1, 2, 3]


@pytest.mark.parametrize("permutations", [1, 2, 4])
def test_an_answer_is_mapped_back_to_the_original_order(permutations):
    asked = questions({"id": "q", "question": "Which?"}, options=PLACES)
    settings = spec(permutations=permutations, ks=(0,))
    plan = plan_prompts(asked, {"a": run({"q": ["p"]})}, {"a": {"p": "text"}}, settings, words)
    answers = []
    for request in requests_for(plan.prompts, asked, {}, settings):
        (number,) = [n for n in range(4) if f"({n}) Rome\n" in request.last_text]
        told = tuple((str(n), -float(n + 1)) for n in range(4))  # by place as shown
        answers.append(Answer(str(number), "stop", 9, 1, logprobs=told))
    replies = replies_table(plan.references, answered_table(plan.prompts, asked, answers), "llm").to_pylist()
    assert [row["permutation"] for row in replies] == rotations(4, permutations)
    for row in replies:
        assert row["answer"] == 1
        assert row["logprobs"] == [-float((place - row["permutation"]) % 4 + 1) for place in range(4)]


def test_the_registry_prompts_show_everything_and_the_passages_in_order_of_rank():
    asked = questions({"id": "q", "question": "Which {options}\none?"})
    texts = {"a": {"p1": "first {rank} passage", "p2": "second\npassage"}}
    for prompt in ("answer", "few-shot-answer"):
        settings = spec(prompt=prompt, ks=(0, 2))
        plan = plan_prompts(asked, {"a": run({"q": ["p1", "p2"]})}, texts, settings, words)
        bare, full = requests_for(plan.prompts, asked, texts, settings)
        assert "passage" not in bare.last_text.rpartition("Which")[2]
        shown = full.last_text
        order = [shown.index(part) for part in ("Which {options} one?", "first {rank}", "second", "(0) one")]
        assert order == sorted(order)
        assert (full.choices, full.max_tokens, full.temperature) == (("0", "1", "2", "3"), 1, 0.0)
        assert (full.messages is None) == (prompt == "few-shot-answer")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{question} {options}", "no {passages}"),
        ("{question} {passages} {options} {answer}", "unknown placeholder {answer}"),
        ('option = "{option}"\n---\n{question} {passages} {options}', "no {number}"),
        ("colour = 1\n---\n{question} {passages} {options}", "colour"),
    ],
)
def test_a_prompt_that_cannot_be_used_says_why(content, message):
    with pytest.raises(ConfigError) as error:
        read_answer_prompt("mine", content)
    assert message in str(error.value) and "mine.txt" in str(error.value)


# Planning ---------------------------------------------------------------------------------------------------

SYSTEMS, KS, MANY = 5, (0, 1, 2, 3, 4, 5, 10), 1000


def many():
    """Questions with runs of five systems; of four questions each, two systems agree on the first three."""
    asked = questions(*({"id": f"q{n}", "question": f"Question {n}?"} for n in range(MANY)))
    runs, texts = {}, {}
    for system in range(SYSTEMS):
        ranked = {
            f"q{n}": [
                f"d{n}#{place}" if n % 4 == 0 and system < 2 and place < 3 else f"s{system}d{n}#{place}"
                for place in range(10)
            ]
            for n in range(MANY)
        }
        runs[f"s{system}"] = run(ranked)
        texts[f"s{system}"] = {name: f"text of {name}" for names in ranked.values() for name in names}
    return asked, runs, texts


def test_no_prompt_is_asked_twice_and_k_0_once_for_all_systems():
    asked, runs, texts = many()
    settings = spec(ks=KS)
    plan = plan_prompts(asked, runs, texts, settings, words)
    assert plan.naive == SYSTEMS * len(KS) * MANY == 35_000
    # By hand: k = 0 once; of every fourth question, k = 1, 2, 3 of two systems are equal.
    assert plan.distinct == MANY + SYSTEMS * 6 * MANY - 3 * (MANY // 4)
    assert plan.saving == pytest.approx(1 - plan.distinct / 35_000)
    prompts = [request.last_text for request in requests_for(plan.prompts, asked, texts, settings)]
    assert len(set(prompts)) == len(prompts) == plan.distinct
    assert plan.references["system"].to_pylist().count("") == MANY
    assert plan.references.num_rows == MANY + SYSTEMS * 6 * MANY and plan.cut == 0


def test_every_reference_is_answered_by_the_prompt_of_its_own_passages():
    asked, runs, texts = many()
    asked = asked.slice(0, 8)
    settings = spec(ks=KS, permutations=2)
    plan = plan_prompts(asked, runs, texts, settings, words)
    prompts = [request.last_text for request in requests_for(plan.prompts, asked, texts, settings)]
    for row in plan.references.to_pylist():
        alone = {"question_id": row["question_id"], "system": row["system"], "context": row["context"]}
        alone |= {"prompt": 0, "permutation": row["permutation"]}
        table = pa.Table.from_pylist([alone], schema=plan.prompts.schema)
        (request,) = requests_for(table, asked, texts, settings)
        assert request.last_text == prompts[row["prompt"]]
        assert len(row["context"]) == row["k"]


def test_neighbours_share_the_longest_beginnings_that_any_order_can_give():
    asked, runs, texts = many()
    asked = asked.slice(0, 12)
    settings = spec(ks=KS, permutations=4)
    plan = plan_prompts(asked, runs, texts, settings, words)
    prompts = [request.last_text for request in requests_for(plan.prompts, asked, texts, settings)]

    def common(one, other):
        differ = (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
        return next(differ, min(len(one), len(other)))

    def shared(order):
        return sum(map(common, order, order[1:]))

    best = shared(sorted(prompts))  # no order of strings has neighbours with longer common beginnings
    assert shared(prompts) > 0.98 * best > shared(sorted(prompts, key=lambda text: text[::-1])) / 0.98


def test_equal_questions_of_two_ids_are_asked_once():
    asked = questions({"id": "a", "question": "Which?"}, {"id": "b", "question": "Which?"})
    plan = plan_prompts(
        asked, {"s": run({"a": ["p"], "b": ["r"]})}, {"s": {"p": "x", "r": "x"}}, spec(ks=(0, 1)), words
    )
    assert (plan.naive, plan.distinct) == (4, 2)


def test_a_prompt_that_is_too_long_loses_whole_passages_and_is_counted():
    texts = {"s": {f"p{n}": "word " * 99 + f"end{n}" for n in range(10)}}
    asked = questions({"id": "q", "question": "Which?"})
    settings = spec(ks=(0, 1, 2, 3, 5, 10), window=400)
    plan = plan_prompts(asked, {"s": run({"q": list(texts["s"])})}, texts, settings, words)
    references = plan.references.to_pylist()
    assert [(row["k"], len(row["context"]), row["cut"]) for row in references] == [
        (0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 3, 0), (5, 3, 2), (10, 3, 7)
    ]  # fmt: skip
    assert plan.cut == 2 and plan.distinct == 4  # k = 5 and 10 are cut to the prompt of k = 3
    for request in requests_for(plan.prompts, asked, texts, settings):
        assert words(request.last_text) + 1 <= 400
        assert request.last_text.count("end") == request.last_text.count("word") // 99


def test_k_as_a_budget_of_tokens_shows_as_much_of_short_passages_as_of_long_ones():
    texts = {
        "long": {f"l{n}": "long " * 99 for n in range(4)},
        "short": {f"s{n}": "short " * 24 for n in range(16)},
    }
    asked = questions({"id": "q", "question": "Which?"})
    runs = {system: run({"q": list(found)}) for system, found in texts.items()}
    plan = plan_prompts(asked, runs, texts, spec(ks=(1, 2), tokens_per_passage=100), words)
    sizes = {(row["system"], row["k"]): len(row["context"]) for row in plan.references.to_pylist()}
    assert sizes == {("long", 1): 1, ("long", 2): 2, ("short", 1): 4, ("short", 2): 8}


def test_a_question_without_hits_is_asked_as_with_k_0_and_a_passage_without_a_text_is_an_error():
    asked = questions({"id": "a", "question": "Which?"}, {"id": "b", "question": "What?"})
    found = {"s": run({"a": ["p"]})}
    plan = plan_prompts(asked, found, {"s": {"p": "x"}}, spec(ks=(0, 1)), words)
    assert plan.distinct == 3 and plan.references.num_rows == 4
    with pytest.raises(DataError, match="p: the run of s names a passage that has no text"):
        plan_prompts(asked, found, {"s": {}}, spec(ks=(1,)), words)


# Replies ----------------------------------------------------------------------------------------------------


def test_invalid_answers_and_errors_are_their_own_class():
    asked = questions({"id": "q", "question": "Which?"})
    settings = spec(ks=(0, 1))
    plan = plan_prompts(asked, {"s": run({"q": ["p"]})}, {"s": {"p": "x"}}, settings, words)
    answers = [Answer("none", "stop", 5, 1), Answer("2", "error", 6, 0, "gone")]
    replies = replies_table(plan.references, answered_table(plan.prompts, asked, answers), "m")
    assert replies.schema.equals(REPLIES)
    assert replies["answer"].to_pylist() == [-1, -1] and replies["llm"].to_pylist() == ["m", "m"]
    with pytest.raises(ValueError, match="answered once"):
        replies_table(plan.references, answered_table(plan.prompts.slice(1), asked, answers[1:]), "m")


# The reader with a key --------------------------------------------------------------------------------------


def answer_key(folder) -> AnswerKeyLlm:
    ref = ModelRef(name="key", source=f"path:{folder}")
    return AnswerKeyLlm(LlmSpec(engine="answer-key", model=ref))


@pytest.mark.parametrize("prompt", ["answer", "few-shot-answer"])
def test_the_reader_is_right_exactly_when_a_passage_holds_the_answer(tmp_path, prompt):
    asked = questions(
        {
            "id": "a",
            "question": "Which city?",
            "options": ["Paris", "Rome", "Oslo", "New  York"],
            "answer": 3,
        },
        {"id": "b", "question": "Which city?", "options": ["Bonn", "Paris", "Ghent", "Delft"], "answer": 1},
        {"id": "c", "question": "How many?", "options": ["[1]", "2", "Passage:", "1"], "answer": 1},
    )
    texts = {"s": {"p1": "All about Rome", "p2": "new\nyork is large; so is Paris", "p3": "Options:\n(0) a"}}
    found = {"s": run({"a": ["p1", "p2", "p3"], "b": ["p3", "p1", "p2"], "c": ["p1", "p2"]})}
    settings = spec(prompt=prompt, ks=(0, 1, 2, 3), permutations=4)
    plan = plan_prompts(asked, found, texts, settings, words)
    engine = answer_key(write_key(tmp_path / "key", asked.to_pylist()))
    answers = in_order(engine, list(requests_for(plan.prompts, asked, texts, settings)))
    replies = replies_table(plan.references, answered_table(plan.prompts, asked, answers), "m").to_pylist()
    for row in replies:
        answer, needed = {"a": (3, 2), "b": (1, 3), "c": (1, 4)}[row["question_id"]]  # labels are no passage
        right = row["k"] >= needed
        assert row["answer"] == (answer if right else (answer + 1) % 4)


def test_the_reader_that_always_says_0_is_right_only_where_0_is(tmp_path):
    (tmp_path / "config.json").write_text('{"always": 0}')
    asked = questions({"id": "q", "question": "Which?"}, answer=2)
    settings = spec(ks=(0,), permutations=4)
    plan = plan_prompts(asked, {"s": run({"q": ["p"]})}, {"s": {"p": "x"}}, settings, words)
    answers = in_order(answer_key(tmp_path), list(requests_for(plan.prompts, asked, {}, settings)))
    assert answered_table(plan.prompts, asked, answers)["answer"].to_pylist() == [0, 1, 2, 3]
    (tmp_path / "config.json").write_text("[")
    with pytest.raises(DataError, match=r"config\.json: no key of answers"):
        answer_key(tmp_path)
