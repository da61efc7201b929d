"""A translation whose questions go out in batch files and whose answers come back in others."""

import json
import random
from collections import Counter

import pytest
from beir_folder import doc
from fault_server import FaultServer
from running import BM25, dataset, experiment, run
from translating import FREE, by_id, command, documents, dutch, finals, served, translation, write_set

from beirnl.config import load_experiment
from beirnl.pipeline import Pipeline

NOWHERE = {"base_url": "http://127.0.0.1:9/v1", "api_key_env": "NO_SUCH_KEY"}


def written(tmp_path, *sets, **settings):
    """An experiment on these sets whose provider is never reached from here."""
    settings = {"engine": "batch", "model": "mock", "price": FREE, "server": NOWHERE, **settings}
    return experiment(tmp_path, "".join(sets) + translation(**settings))


def requests(folder):
    """All lines of the request files of a folder; a provider refuses a custom id that comes twice."""
    found = [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.open()]
    assert len({line["custom_id"] for line in found}) == len(found)
    assert all(line["method"] == "POST" and line["url"] == "/v1/chat/completions" for line in found)
    return found


def asked(lines):
    """How often each prompt is asked, at which temperature."""
    return Counter((line["body"]["messages"][0]["content"], line["body"]["temperature"]) for line in lines)


def journal(tmp_path):
    """The answers in the journal, by file."""
    files = sorted((tmp_path / "workspace" / "journal").glob("*/*.jsonl"))
    return {file: file.read_bytes() for file in files}


class Provider:
    """Answers request files with files of results, in an order of its own.

    Args:
        answer: prompt and number of earlier answers to an outcome: a text, ``None`` for no line at all, an
            error (its message) or a whole list of them.
    """

    def __init__(self, answer=lambda prompt: [dutch(prompt)]):
        self.answer = answer
        self.lines = 0

    def work(self, folder, results):
        results.mkdir(exist_ok=True)
        lines = [self._line(request, said) for request in requests(folder) for said in self._said(request)]
        random.Random(3).shuffle(lines)
        for number in range(2):
            text = "".join(json.dumps(line) + "\n" for line in lines[number::2])
            (results / f"output-{self.lines}-{number}.jsonl").write_text(text)
        self.lines += len(lines)

    def _said(self, request):
        return self.answer(request["body"]["messages"][0]["content"])

    def _line(self, request, said):
        line = {"id": "x", "custom_id": request["custom_id"], "response": None, "error": None}
        if isinstance(said, dict):
            return line | {"error": said}
        choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        body = {"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 9}}
        return line | {"response": {"status_code": 200, "body": body}}


def test_batch_files_out_and_back_until_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    rows = [*documents(30), doc("empty", "The people drink water. [[fault:empty:plain]]", "The city")]
    place = write_set(tmp_path / "set", [*rows, rows[3] | {"_id": "again"}])
    path = written(tmp_path, dataset(place, shard_documents=8))
    seen = Counter()

    def answer(prompt):
        """The first time one request has no line, one an error, one two lines."""
        seen[prompt] += 1
        for document, first in (("Document 1 ", []), ("Document 2 ", [{"message": "try again"}])):
            if document in prompt and seen[prompt] == 1:
                return first
        return [dutch(prompt)] * (2 if "Document 4 " in prompt else 1)

    provider = Provider(answer)
    said = command("translate", path, "--write-batch", tmp_path / "out1")
    assert said.code == 0 and "32 requests in 1 file:" in said.out
    assert len(requests(tmp_path / "out1")) == 32 and max(asked(requests(tmp_path / "out1")).values()) == 1
    provider.work(tmp_path / "out1", tmp_path / "results")
    said = command("translate", path, "--read-batch", tmp_path / "results")
    assert "30 new answers; 1 without an answer: try again" in said.out
    # the whole shards go on to be checked; what is missing and what is to be repaired is asked
    assert "2 requests are to be asked" in said.out
    rounds = 1
    while "every answer is there" not in said.out:
        rounds += 1
        assert rounds < 7
        out = tmp_path / f"out{rounds}"
        said = command("translate", path, "--write-batch", out)
        if list(out.glob("*.jsonl")):
            provider.work(out, tmp_path / "results")
            said = command("translate", path, "--read-batch", tmp_path / "results")
            assert said.code == 0, said.err
    assert f"go on with `beirnl run {path}`" in said.out
    twice = [prompt for prompt, times in seen.items() if times > 1]
    assert len(twice) == 3 and all(
        mark in "".join(twice) for mark in ("Document 1 ", "Document 2 ", "fault:")
    )
    kept = journal(tmp_path)
    path.write_text(path.read_text() + BM25)
    done = command("run", path)  # without the key: no engine is loaded
    assert done.code == 0, done.err
    assert journal(tmp_path) == kept
    ours = by_id(Pipeline.of(load_experiment(path)))
    assert (ours["empty"]["status"], ours["empty"]["repair"]) == ("ok", "prompt")
    with FaultServer(answer=dutch) as server:
        (tmp_path / "direct").mkdir()
        text = dataset(place, shard_documents=8) + translation(**served(server))
        assert by_id(run(experiment(tmp_path / "direct", text))) == ours


def test_two_sets_ask_what_they_share_once(tmp_path):
    common = documents(20)
    one = write_set(tmp_path / "one", common)
    two = write_set(tmp_path / "two", [*common, *documents(5, seed=8)])
    for sizes in ((8, 8), (4, 16)):
        folder = tmp_path / f"{sizes[0]}"
        folder.mkdir()
        sets = dataset(one, "one", shard_documents=sizes[0]), dataset(two, "two", shard_documents=sizes[1])
        path = written(folder, *sets)
        command("translate", path, "--write-batch", folder / "out")
        assert len(requests(folder / "out")) == 20 + 5 + 1
        Provider().work(folder / "out", folder / "results")
        said = command("translate", path, "--read-batch", folder / "results")
        assert "26 new answers" in said.out and "every answer is there" in said.out
        pipeline = Pipeline.of(load_experiment(path))
        assert [len(finals(pipeline, dataset=name)) for name in ("one", "two")] == [20, 25]


def test_files_are_split_at_the_providers_limits_and_may_be_written_and_read_at_once(tmp_path):
    place = write_set(tmp_path / "set", documents(15))
    path = written(tmp_path, dataset(place), server={**NOWHERE, "batch_requests": 10})
    said = command("translate", path, "--write-batch", tmp_path / "out")
    assert "16 requests in 2 files" in said.out
    assert [len(file.read_text().splitlines()) for file in sorted((tmp_path / "out").glob("*"))] == [10, 6]
    again = command("translate", path, "--write-batch", tmp_path / "out")
    assert "already holds request files" in again.error
    Provider().work(tmp_path / "out", tmp_path / "results")
    folders = "--read-batch", tmp_path / "results", "--write-batch", tmp_path / "more"
    said = command("translate", path, *folders)
    assert "16 new answers" in said.out and "every answer is there" in said.out
    said = command("translate", path, "--read-batch", tmp_path / "results")
    assert "0 new answers" in said.out


def test_results_of_another_experiment_are_refused(tmp_path):
    place = write_set(tmp_path / "set", documents(3))
    paths = []
    for name, model in (("one", "mock"), ("two", "another")):
        (tmp_path / name).mkdir()
        paths.append(written(tmp_path / name, dataset(place), model=model))
    command("translate", paths[0], "--write-batch", tmp_path / "out")
    Provider().work(tmp_path / "out", tmp_path / "results")
    said = command("translate", paths[1], "--read-batch", tmp_path / "results")
    assert str(tmp_path / "results") in said.error
    assert not (tmp_path / "two" / "workspace" / "journal").exists()


def test_results_that_are_not_of_this_experiment_are_passed_over(tmp_path):
    path = written(tmp_path, dataset(write_set(tmp_path / "set", documents(3))))
    command("translate", path, "--write-batch", tmp_path / "out")
    Provider().work(tmp_path / "out", tmp_path / "results")
    strange = '{"custom_id": "mine", "response": null, "error": {"message": "x"}}\n'
    (tmp_path / "results" / "more.jsonl").write_text(2 * strange)
    said = command("translate", path, "--read-batch", tmp_path / "results")
    assert "4 new answers; 2 passed over" in said.out


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"custom_id": "mine", "response": null, "error": {"message": "x"}}', "custom_id 'mine'"),
        ('{"custom_id": "a-1-2-b", "response": null, "error": {"message": "x"}}', "custom_id 'a-1-2-b'"),
        ("<html>", "output.jsonl:1: not a batch result"),
        (None, "no batch results here"),
    ],
)
def test_what_is_no_result_is_refused(tmp_path, line, expected):
    path = written(tmp_path, dataset(write_set(tmp_path / "set", documents(3))))
    (tmp_path / "results").mkdir()
    if line:
        (tmp_path / "results" / "output.jsonl").write_text(line + "\n")
    assert expected in command("translate", path, "--read-batch", tmp_path / "results").error
    assert not list((tmp_path / "workspace").rglob("journal/*/*"))


def test_an_engine_of_ones_own_machine_has_no_batch_files(tmp_path):
    path = experiment(tmp_path, dataset(write_set(tmp_path / "set", documents(3))) + translation())
    said = command("translate", path, "--write-batch", tmp_path / "out")
    assert 'set engine = "batch"' in said.error and not (tmp_path / "out").exists()


def test_nothing_half_written_is_left_where_writing_ends_by_an_error(tmp_path):
    (tmp_path / "long.txt").write_text(f"Translate {'with care ' * 2000}:\n ['{{text}}']")
    place = write_set(tmp_path / "set", documents(5))
    path = written(tmp_path, dataset(place), query_prompt="long.txt")
    said = command("translate", path, "--write-batch", tmp_path / "out")
    assert "the prompt takes" in said.error
    assert not list((tmp_path / "out").glob("*")) and not list((tmp_path / "out").glob(".*"))


def test_a_request_that_the_provider_never_answers_ends_as_a_row_with_its_reason(tmp_path):
    place = write_set(tmp_path / "set", documents(4))
    path = written(tmp_path, dataset(place))
    refused = [{"message": "filtered"}]
    provider = Provider(lambda prompt: refused if "Document 2 " in prompt else [dutch(prompt)])
    for number in range(20):  # three times on each rung of the ladder
        command("translate", path, "--write-batch", tmp_path / f"out{number}")
        if not list((tmp_path / f"out{number}").glob("*.jsonl")):
            break
        provider.work(tmp_path / f"out{number}", tmp_path / "results")
        said = command("translate", path, "--read-batch", tmp_path / "results")
    assert "every answer is there" in said.out
    assert by_id(Pipeline.of(load_experiment(path)))["d2"]["status"] == "error"
