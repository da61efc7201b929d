"""The page of question answering in a browser: without requests, any question to be looked up."""

import pytest
from browser import browser
from rag_replies import KS, experiment

from beirnl.evaluation.uncertainty import Resampling
from beirnl.rag.result import result
from beirnl.rag.result_page import render

ATTACK = " </script><img src=x onerror=\"document.title='taken'\">"


@pytest.fixture(scope="module")
def made():
    return experiment(n=24, mark=ATTACK)


@pytest.fixture(scope="module")
def opened(made, tmp_path_factory):
    settings = Resampling(bootstrap=50)
    found = result(made.questions, made.replies, 5, ranked=made.ranked, costs=made.costs, settings=settings)
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render("rag", found, made.questions, made.replies, made.passages), encoding="utf-8")
    with browser() as page:
        page.open(path.as_uri())
        yield page


SECTION = "document.getElementById('per-question')"
ROWS = f"[...{SECTION}.querySelectorAll('form ~ .scroll tbody tr')]"
ARTICLE = f"{SECTION}.querySelector('article')"


def choose(page, name, value):
    page.evaluate(
        f"{{ const field = {SECTION}.querySelector('[name={name}]'); field.value = {value!r};"
        "field.dispatchEvent(new Event(field.type === 'search' ? 'input' : 'change')); }"
    )


def test_it_loads_without_errors_and_asks_for_nothing(opened):
    assert opened.errors == [] and opened.evaluate("document.title") == "rag"
    assert [url for url in opened.requests if not url.startswith(("file:", "data:"))] == []
    assert opened.evaluate("document.querySelectorAll('figure svg').length") == 5
    assert opened.evaluate("document.querySelectorAll('img').length") == 0


def test_a_question_shows_what_every_system_retrieved_and_answered(opened, made):
    choose(opened, "llm", "1")
    choose(opened, "words", "q7")
    assert opened.evaluate(f"{ROWS}.map((row) => row.querySelector('button').textContent)") == [
        f"What is said of matter{ATTACK} q7?"
    ]
    opened.evaluate(f"{ROWS}[0].querySelector('button').click()")
    assert opened.evaluate(f"{ARTICLE}.querySelector('ol .relevant').closest('li').textContent").startswith(
        "no way"
    )
    k = KS.index(5)
    choose(opened, "k", str(k))
    opened.evaluate(f"{ROWS}[0].querySelector('button').click()")
    shown = opened.evaluate(
        f"[...{ARTICLE}.querySelectorAll('.both section')].map((one) =>"
        " [one.querySelector('h4').textContent.trim(),"
        " [...one.querySelectorAll('li .below')].map((line) => line.firstChild.textContent)])"
    )
    replies = {
        system: (answer, context)
        for question, llm, system, at, answer, context in made.replies.select(
            "question_id", "llm", "system", "k", "answer", "context"
        ).iter_rows()
        if (question, llm, at) == ("q7", "Llama-3.1-8B", 5)
    }
    assert len(shown) == len(replies) == 4
    for heading, passages in shown:
        system, verdict = heading.split(": ")
        answer, context = replies[system]
        assert verdict == ("✗ invalid" if answer < 0 else f"{'✓' if answer == 3 else '✗'} {answer}")
        assert passages == context
    sources = opened.evaluate(f"{ARTICLE}.querySelectorAll('.both .relevant').length")
    right = sum(answer == 3 for answer, _ in replies.values())
    assert sources == right + sum(p.startswith("news/007") for _, found in replies.values() for p in found)


def test_words_that_no_question_has_list_none(opened):
    choose(opened, "words", "nowhere")
    assert opened.evaluate(f"{ROWS}.length") == 0
    assert "0 listed" in opened.evaluate(f"{SECTION}.querySelector('[role=status]').textContent")
    choose(opened, "words", "")
    assert opened.evaluate(f"{ROWS}.length") == 24


def test_it_fits_a_telephone(opened):
    opened.call(
        "Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=False
    )
    opened.evaluate(f"{ROWS}[0].querySelector('button').click()")
    assert opened.evaluate("document.documentElement.scrollWidth") <= 400
