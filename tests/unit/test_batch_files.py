"""Batch files: what is written can be read by anybody, and whatever comes back is told apart."""

import json

import pytest

from beirnl.errors import ConfigError, DataError
from beirnl.llm.batch import BatchFileWriter, Origin, custom_id, read_results, split_custom_id
from beirnl.llm.protocol import Answer, Request
from beirnl.specs import LlmSpec, ModelRef, Server
from beirnl.store.keys import digest


def spec(**limits) -> LlmSpec:
    return LlmSpec(engine="batch", model=ModelRef(name="m", source="api:gpt-x"), server=Server(**limits))


def chat(text: str, **extra) -> Request:
    return Request(messages=(("user", text),), **extra)


def write(folder, requests, **limits) -> list:
    with BatchFileWriter(folder, spec(**limits)) as writer:
        for number, request in enumerate(requests):
            writer.add(f"id-{number}", request)
    return [[json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]] for path in writer.paths]


def done(name: str, text: str = "ja", finish: str = "stop", **extra) -> dict:
    body = {
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    }
    return {
        "id": "x",
        "custom_id": name,
        "response": {"status_code": 200, "body": body},
        "error": None,
    } | extra


def results(folder, *lines, name="out.jsonl") -> list:
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    (folder / name).write_text(text, encoding="utf-8")
    return list(read_results(folder))


def test_a_custom_id_holds_origin_and_key_and_fits_the_limit():
    key, origin = chat("a").key(None), Origin(digest("engine"), 0xFF0, 0x1000)
    assert split_custom_id(custom_id(origin, key)) == (origin, key)
    assert len(custom_id(origin, key)) <= 64


@pytest.mark.parametrize("name", ["", "zz-abc", "a-xyz-0-b", "a-0-1", "a-0-1-b-c"])
def test_an_id_of_somebody_else_is_no_custom_id(name):
    with pytest.raises(ValueError, match=r"unpack|invalid literal"):
        split_custom_id(name)


def test_lines_hold_method_url_and_body(tmp_path):
    ((line,), (other,)) = write(tmp_path, [chat("Vertaal: café", max_tokens=9), Request(prompt="x =")])
    assert (line["custom_id"], line["method"], line["url"]) == ("id-0", "POST", "/v1/chat/completions")
    assert line["body"]["model"] == "gpt-x"
    assert line["body"]["messages"] == [{"role": "user", "content": "Vertaal: café"}]
    assert line["body"]["max_tokens"] == 9
    assert (other["url"], other["body"]["prompt"]) == ("/v1/completions", "x =")


def test_a_line_stays_one_line_to_every_reader(tmp_path):
    text = "a\u2028b\u2029c\x85d\x1ce\r\nf\x0bg"
    write(tmp_path, [chat(text)])
    (line,) = (tmp_path / "requests-00000.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["body"]["messages"][0]["content"] == text


def test_files_are_split_at_the_number_of_requests(tmp_path):
    files = write(tmp_path, [chat(f"t{n}") for n in range(7)], batch_requests=3)
    assert [[line["custom_id"] for line in file] for file in files] == [
        ["id-0", "id-1", "id-2"],
        ["id-3", "id-4", "id-5"],
        ["id-6"],
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"requests-0000{n}.jsonl" for n in range(3)]


def test_files_are_split_by_their_bytes_not_their_characters(tmp_path):
    requests = [chat("é" * 200) for _ in range(9)]  # 400 bytes each, and the frame
    files = write(tmp_path, requests, batch_megabytes=0.0015)
    sizes = [path.stat().st_size for path in sorted(tmp_path.iterdir())]
    assert max(sizes) <= 1500 < min(sizes[:-1]) + sizes[0] // len(files[0])
    assert sum(len(file) for file in files) == 9


def test_a_request_that_no_file_can_hold_names_the_limit(tmp_path):
    with pytest.raises(ConfigError, match="batch_megabytes"):
        write(tmp_path, [chat("ok"), chat("x" * 2000)], batch_megabytes=0.001)
    assert list(tmp_path.iterdir()) == []


def test_a_file_has_its_name_only_when_it_is_whole(tmp_path):
    with BatchFileWriter(tmp_path, spec(batch_requests=2)) as writer:
        for number in range(3):
            writer.add(f"id-{number}", chat("a"))
        assert [path.name for path in tmp_path.glob("*.jsonl")] == ["requests-00000.jsonl"]
    assert len(list(tmp_path.glob("*.jsonl"))) == 2


def test_request_files_are_not_mixed_with_older_ones(tmp_path):
    write(tmp_path, [chat("a")])
    with pytest.raises(ConfigError, match="already holds request files"):
        BatchFileWriter(tmp_path, spec())


def test_results_come_in_any_order_from_any_number_of_files(tmp_path):
    write(tmp_path, [chat("a")])  # lies beside its results, and is passed over
    results(tmp_path, done("b", "twee"), "", done("a", "een", "length"), name="one.jsonl")
    got = results(tmp_path, done("c", "drie"), name="two.jsonl")
    assert got == [
        ("b", Answer("twee", "stop", 7, 3)),
        ("a", Answer("een", "length", 7, 3)),
        ("c", Answer("drie", "stop", 7, 3)),
    ]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"response": {"status_code": 400, "body": {"error": {"message": "too long"}}}}, "too long"),
        ({"response": {"status_code": 400, "body": None}, "error": "no such route"}, "no such route"),
        (
            {"response": {"status_code": 404, "body": None}, "error": {"error": {"message": "no model"}}},
            "no model",
        ),
        ({"response": None, "error": {"code": "batch_expired", "message": "too late"}}, "too late"),
        ({"response": None, "error": {"code": "batch_expired"}}, "batch_expired"),
        ({"response": {"status_code": 500, "body": "<html>"}}, "<html>"),
        ({"response": {"status_code": 0, "body": {}}}, "status 0"),
        ({"response": {"status_code": 200, "body": None}}, "status 200"),
        ({"response": {"status_code": 200, "body": {"choices": []}}}, "malformed"),
        ({"response": {"status_code": 200, "body": {"error": {"message": "busy"}}}}, "malformed"),
        ({"response": None}, "no response and no reason"),
    ],
)
def test_a_failed_line_says_why(tmp_path, changes, reason):
    ((name, said),) = results(tmp_path, done("a") | changes)
    assert name == "a"
    assert isinstance(said, str) and reason in said


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"id": "x"}', '{"custom_id": 7}', '{"custom_id": "a", "response": 1}']
)
def test_a_line_that_is_no_result_is_named(tmp_path, line):
    with pytest.raises(DataError, match=r"out\.jsonl:2: not a batch result"):
        results(tmp_path, done("a"), line)


def test_a_request_among_results_is_named(tmp_path):
    request = {"custom_id": "b", "method": "POST", "url": "/v1/completions", "body": {}}
    with pytest.raises(DataError, match=r"out\.jsonl:2: .*a request"):
        results(tmp_path, done("a"), request)


def test_a_byte_order_mark_and_carriage_returns_do_no_harm(tmp_path):
    line = json.dumps(done("a", "ïé"), ensure_ascii=False)
    (tmp_path / "out.jsonl").write_bytes(b"\xef\xbb\xbf" + line.encode() + b"\r\n\r\n")
    assert list(read_results(tmp_path)) == [("a", Answer("ïé", "stop", 7, 3))]


def test_a_folder_without_results_is_an_error(tmp_path):
    write(tmp_path, [chat("a")])
    with pytest.raises(DataError, match="no batch results here"):
        list(read_results(tmp_path))
