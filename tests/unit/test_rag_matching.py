"""Open answers: what is asked without options, and how an answer is linked to one."""

import math

import pytest
from rag_prompts import questions, run, spec, words

from beirnl import registry
from beirnl.errors import ConfigError
from beirnl.llm.protocol import Answer
from beirnl.rag.answers import answered_table, match_answers, plan_prompts, requests_for
from beirnl.rag.prompts import read_match_prompt, read_open_prompt

GIVEN = "Given answer: "
OPTIONS = ("Paris", "Rome", "Oslo", "Delft")


def open_spec(**settings):
    match = registry.prompt("match-option")
    return spec(prompt="open-answer", match_prompt="match-option", match_template=match, **settings)


class Scripted:
    """Says the number of the option that equals the answer in the prompt, else the number of none."""

    def __init__(self):
        self.requests = []

    def ask(self, requests, attempt=0):
        self.requests += requests
        return [self.answer(request) for request in requests]

    def answer(self, request):
        lines = request.last_text.splitlines()
        said = next(line for line in lines if line.startswith("Given answer: ")).removeprefix(
            "Given answer: "
        )
        shown = [line.partition(" ")[2] for line in lines if line.startswith("(")]
        number = shown.index(said) if said in shown else len(shown)
        return Answer(str(number), "stop", 7, 1, logprobs=((str(number), math.log(0.75)),))


def test_options_are_hidden_first_and_answers_are_mapped_back_to_their_order():
    asked = questions({"id": "q", "question": "Which city?"}, options=OPTIONS, answer=2)
    settings = open_spec(ks=(0, 1), permutations=4, logprobs=4)
    texts = {"s": {"p": "Oslo it is"}}
    plan = plan_prompts(asked, {"s": run({"q": ["p"]})}, texts, settings, words)
    requests = list(requests_for(plan.prompts, asked, texts, settings))
    assert len(requests) == 8 and len(set(requests)) == 2  # all orders of the options are one request
    assert not any(option in requests[0].last_text for option in OPTIONS)
    assert all(not request.choices and not request.logprobs for request in requests)
    said = [Answer("Oslo" if "Oslo" in r.last_text else "Gouda", "stop", 30, 4) for r in requests]
    asker = Scripted()
    matched = match_answers(plan.prompts, asked, said, settings, asker)
    table = answered_table(plan.prompts, asked, matched, said).to_pylist()
    assert [row["answer"] for row in table] == [-1] * 4 + [2] * 4  # of every rotation the original index
    assert {row["text"] for row in table} == {"Gouda", "Oslo"}
    assert {row["prompt_tokens"] for row in table} == {37}
    told = [pytest.approx(math.log(0.75)) if at == 2 else -math.inf for at in range(4)]
    assert [row["logprobs"] for row in table] == [[]] * 4 + [told] * 4
    assert {request.choices for request in asker.requests} == {("0", "1", "2", "3", "4")}
    assert "from 0 to 3, or with 4 if none" in asker.requests[0].last_text


def test_what_is_empty_or_an_error_is_invalid_and_not_asked_about():
    asked = questions({"id": "q", "question": "Which?"}, options=OPTIONS)
    settings = open_spec(ks=(0, 1))
    texts = {"s": {"p": "x"}}
    plan = plan_prompts(asked, {"s": run({"q": ["p"]})}, texts, settings, words)
    asker = Scripted()
    said = [Answer(" \n", "stop", 3, 1), Answer("", "error", 3, 0, "the server is gone")]
    table = answered_table(
        plan.prompts, asked, match_answers(plan.prompts, asked, said, settings, asker), said
    )
    assert asker.requests == [] and table["answer"].to_pylist() == [-1, -1]
    assert table["error"].to_pylist() == ["", "the server is gone"]


@pytest.mark.parametrize(
    ("read", "content", "message"),
    [
        (read_open_prompt, "{question} {passages} {options}", "unknown placeholder {options}"),
        (read_open_prompt, "{question}", "has no {passages}"),
        (read_match_prompt, "{question} {options}", "has no {answer}"),
        (read_match_prompt, "{question} {options} {answer} {passages}", "unknown placeholder {passages}"),
    ],
)
def test_a_prompt_that_cannot_be_used_says_why(read, content, message):
    with pytest.raises(ConfigError, match=r"own\.txt") as caught:
        read("own", content)
    assert message in str(caught.value)
