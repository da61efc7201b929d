"""Questions that users bring, and what is said of those that are wrong."""

import json

import pytest

from beirnl.errors import DataError
from beirnl.rag.questions import read_questions
from beirnl.rag.tables import QUESTIONS

ONE = {
    "question": "Which city?",
    "options": ["Paris", "Rome", "Oslo", "Bern"],
    "answer": "Oslo",
    "doc": "a/b.txt",
}


def written(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def test_all_forms_of_a_file_give_the_same_questions(tmp_path):
    two = {"id": "x", "question": 'Say "what"?\nAnd?', "options": ["1", "2", "3,5", "4"], "answer": 0}
    as_json = written(tmp_path / "mine.json", json.dumps([ONE, two], indent=1))
    lines = written(tmp_path / "mine.jsonl", f"\ufeff{json.dumps(ONE)}\r\n\r\n{json.dumps(two)}\r\n")
    numbered = "id,question,option_0,option_1,option_2,option_3,answer,doc\n"
    csv = written(
        tmp_path / "mine.csv",
        numbered
        + ',Which city?,Paris,Rome,Oslo,Bern,Oslo,a/b.txt\nx,"Say ""what""?\nAnd?",1,2,"3,5",4,1,\n'.replace(
            ",4,1,", ",4,0,"
        ),
    )
    first = read_questions(as_json)
    assert first.schema.equals(QUESTIONS)
    fixed = {"explanations": [], "origin": "user"}
    assert first.to_pylist() == [
        {"id": "mine-1", "doc_id": "a/b.txt", "question": "Which city?", "options": ONE["options"]}
        | {"answer": 2, **fixed},
        {
            "id": "x",
            "doc_id": "",
            "question": 'Say "what"? And?',
            "options": two["options"],
            "answer": 0,
            **fixed,
        },
    ]
    assert read_questions(lines).equals(first) and read_questions(csv).equals(first)
    heading, *_ = numbered.splitlines()
    row = ";Which city?;Paris;Rome;Oslo;Bern;Oslo;a/b.txt"
    semicolons = written(tmp_path / "mine.csv", f"{heading.replace(',', ';')}\n{row}\n")
    assert read_questions(semicolons).equals(first.slice(0, 1))
    listed = written(
        tmp_path / "list.csv", 'question,options,answer\nWhich?,"[""a"", ""b"", ""c"", ""d""]",3\n'
    )
    assert read_questions(listed)["answer"].to_pylist() == [3]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": "Madrid"}, "the correct answer 'Madrid' is not among the options; give the text of one"),
        ({"answer": 4}, "the correct answer 4 is not among the options"),
        ({"answer": -1}, "the correct answer -1 is not among"),
        ({"answer": None}, "needs one answer"),
        ({"answer_index": 2}, "needs one answer"),
        ({"options": [2, 3, 4, 5], "answer": 3}, "is both the text of option 1 and the index of another"),
        ({"answer": True}, "the correct answer True is not among"),
        (
            {"options": ["0", "2", "1", "3"], "answer": "2"},
            "is both the text of option 1 and the index of another",
        ),
        ({"options": ["Paris", "Rome", "Oslo"]}, "has 3 options, not 4"),
        ({"options": ["Paris", "Rome", "Oslo", "Bern", "Bonn"]}, "has 5 options, not 4"),
        ({"options": ["Paris", "Rome", "Oslo", "Rome"]}, "options 1 and 3 are equal"),
        ({"options": ["Paris", "", "Oslo", "Rome"]}, "option 1 is empty"),
        ({"options": "Paris"}, "has no list of options"),
        ({"question": " "}, "has no question"),
        ({"doc": "c.txt"}, "there is no document 'c.txt'"),
        ({"doc": "b.txt"}, "did you mean 'a/b.txt'"),
        ({"anwser": 1}, "unknown field 'anwser'"),
        ({"explanations": ["a"]}, "one explanation per option"),
        ({"id": "first"}, "the id 'first' is that of line 2, too"),
    ],
)
def test_a_wrong_question_is_an_error_with_file_and_line(tmp_path, change, message):
    wrong = {key: value for key, value in (ONE | change).items() if value is not None}
    text = "[\n" + json.dumps(ONE | {"id": "first"}) + ",\n\n" + json.dumps(wrong) + "\n]"
    path = written(tmp_path / "q.json", text)
    with pytest.raises(DataError) as error:
        read_questions(path, {"a/b.txt"})
    assert str(error.value).startswith(f"{path}:4: ") and message in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.json", "[", "1: "),
        ("q.json", "{}", "1: is no JSON list"),
        ("q.json", f"[{json.dumps(ONE)}\n", "2: the list is cut short"),
        ("q.json", "[]", "holds no question"),
        ("q.json", "[\n3]", "2: is no JSON object"),
        ("q.json", '[\n{"question":\n oops}]', "3: not JSON"),
        ("q.jsonl", f'{json.dumps(ONE)}\n{{"question"', "2: not JSON"),
        ("q.csv", "question,answer\nWhat,1,2\n", "2: not CSV (3 columns, the header has 2)"),
        ("q.csv", 'question,options,answer\nWhat,"a|b",0\n', "2: options is not JSON"),
        ("q.csv", "question,options,answer\n", "holds no question"),
        ("q.csv", "", "holds no question"),
        ("q.txt", "x", "is no file of questions"),
        ("q.csv", None, "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_with_its_line(tmp_path, name, content, message):
    path = tmp_path / name
    if content is not None:
        written(path, content)
    with pytest.raises(DataError) as error:
        read_questions(path)
    assert str(error.value).startswith(str(path)) and message in str(error.value)


def test_bytes_that_are_no_text_are_named_with_their_line(tmp_path):
    path = written(tmp_path / "q.csv", "question,option_0\ncaffè,x\n", "latin-1")
    with pytest.raises(DataError, match=r"q\.csv:2: byte 23 is not UTF-8"):
        read_questions(path)


def test_an_answer_can_be_named_as_text_or_index_and_other_numbers_of_options_be_allowed(tmp_path):
    base = {"question": "How many?", "options": ["0", "2", "1"]}
    rows = [base | {"answer_text": "2"}, base | {"answer_index": 2}, base | {"answer": 1}]
    path = written(tmp_path / "q.json", json.dumps(rows))
    assert read_questions(path, options=3)["answer"].to_pylist() == [1, 2, 1]
    numbers = base | {"options": [1901, 1908, 1]}
    written(
        path, json.dumps([numbers | {"answer": 1908}, numbers | {"answer_text": 1}, base | {"answer": 2}])
    )
    assert read_questions(path, options=3)["answer"].to_pylist() == [1, 2, 2]
    assert read_questions(path, options=None).num_rows == 3
