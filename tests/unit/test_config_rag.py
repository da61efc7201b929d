"""``[rag]`` of an experiment file: what it takes, and what is one line of error."""

import pytest

from beirnl.config import load_experiment
from beirnl.errors import ConfigError

SYSTEM = '[[system]]\nkind = "bm25"\nname = "s"\n'
ANSWERS = '[[rag.answers]]\nengine = "mock"\n'
RAG = '[rag]\ndocuments = "d"\n'
QUESTIONS = '[rag.questions]\ncount = 2\nengine = "mock"\n'
WHOLE = RAG + QUESTIONS + ANSWERS + SYSTEM


def corpus(name, more=""):
    return f'[[rag.corpus]]\nname = "{name}"\ndocuments = "{name}"\n{more}'


def load(folder, text):
    path = folder / "e.toml"
    path.write_text(f'name = "e"\n{text}')
    return load_experiment(path)


def test_defaults_are_those_of_the_paper(tmp_path):
    rag = load(tmp_path, WHOLE).rag
    assert rag.ks == (0, 1, 2, 3, 4, 5, 10) and rag.k == 5 and rag.permutations == 1
    assert rag.questions.options == 4 and rag.answers[0].max_tokens == 1 and rag.answers[0].temperature == 0
    assert rag.passages.mode == "own" and rag.answers[0].called == "mock"
    assert list(rag.engines) == ["[rag.questions]", "[[rag.answers]] mock"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (WHOLE + '[[dataset]]\nname = "sample"\n', "[rag] and [dataset] are for two experiment files"),
        (WHOLE + '[translation]\nto = "nl"\n', "[rag] and [translation] are for two experiment files"),
        (RAG + QUESTIONS + ANSWERS, "add a [[system]]"),
        (RAG + QUESTIONS + SYSTEM, "rag.answers: is missing"),
        (RAG + ANSWERS + SYSTEM, "rag.questions: is missing"),
        (RAG + "[rag.questions]\nseed = 1\n" + ANSWERS + SYSTEM, "set count to have questions made, or file"),
        (
            RAG + "k = 7\n" + QUESTIONS + ANSWERS + SYSTEM,
            "k = 7 is not asked: set k to one of 1, 2, 3, 4, 5, 10",
        ),
        (RAG + "ks = [0, 5, 5]\n" + QUESTIONS + ANSWERS + SYSTEM, "ks must be different numbers"),
        (RAG + "permutations = 3\n" + QUESTIONS + ANSWERS + SYSTEM, "rag.permutations: must be 1, 2 or 4"),
        (RAG + "documenst = 'd'\n" + QUESTIONS + ANSWERS + SYSTEM, "did you mean 'documents'"),
        (WHOLE + "[rag.passages]\noverlapp = 3\n", "did you mean 'overlap'"),
        (RAG + QUESTIONS + "options = 0\n" + ANSWERS + SYSTEM, "options must be 2 to 10; 0 (as many as each"),
        (
            RAG + '[rag.questions]\nfile = "q"\noptions = 1\n' + ANSWERS + SYSTEM,
            "options must be 2 to 10",
        ),
        ("[rag]\n" + QUESTIONS + ANSWERS + SYSTEM, "set documents to a folder, or name several corpora by"),
        (WHOLE + corpus("a"), "set documents to a folder, or name several corpora by"),
        ("[rag]\n" + QUESTIONS + ANSWERS + SYSTEM + 2 * corpus("a"), "two corpora are called 'a'"),
        (
            '[rag]\ndescriptions = "x.csv"\n' + QUESTIONS + ANSWERS + SYSTEM + corpus("a"),
            "descriptions and files of questions belong to each [[rag.corpus]]",
        ),
        (
            "[rag]\n[rag.questions]\n"
            + ANSWERS
            + SYSTEM
            + corpus("a", 'questions = "a.csv"\n')
            + corpus("b"),
            "set count to have questions made, or questions to bring some for the corpus 'b'",
        ),
        (RAG + QUESTIONS + 2 * ANSWERS + SYSTEM, "two answers are called 'mock': give them names"),
        (WHOLE + "depth = 5\n", "depth must be 10 or more"),
        (WHOLE + 'languages = ["nl"]\n', "[rag] has no datasets and no languages"),
        (
            WHOLE + '[[system]]\nkind = "fusion"\nname = "f"\nof = ["s", "t"]\n',
            "'f' cannot stand beside [rag]: use kind bm25, dense, or late",
        ),
    ],
)
def test_what_does_not_fit_is_one_line(tmp_path, text, expected):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert expected in str(caught.value) and "\n" not in str(caught.value)


def test_open_answers_have_defaults_of_their_own_which_the_file_can_change(tmp_path):
    opened = '[[rag.answers]]\nname = "a"\nengine = "mock"\nopen = true\n'
    changed = opened.replace('"a"', '"b"') + 'prompt = "own.txt"\nmax_tokens = 9\n'
    answers = load(tmp_path, RAG + QUESTIONS + ANSWERS + opened + changed + SYSTEM).rag.answers
    found = [(one.prompt, one.match_prompt, one.max_tokens) for one in answers]
    expected = [("answer", 1), ("open-answer", 64), ("own.txt", 9)]
    assert found == [(prompt, "match-option", tokens) for prompt, tokens in expected]


def test_corpora_have_what_is_theirs(tmp_path):
    both = corpus("a", 'questions = "a.csv"\nlanguage = "it"\n') + corpus("b", 'questions = "b.csv"\n')
    rag = load(tmp_path, "[rag]\n[rag.questions]\n" + ANSWERS + SYSTEM + both).rag
    assert [(one.name, one.questions, one.language) for one in rag.corpora] == [
        ("a", "a.csv", "it"),
        ("b", "b.csv", None),
    ]
    (only,) = load(tmp_path, WHOLE).rag.corpora
    assert (only.name, only.documents, only.questions) == ("documents", "d", None)
