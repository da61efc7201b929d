"""Mistakes around a translation: one line that says what to do, and what was done stays."""

import re

import pytest
from fault_server import FaultServer
from running import BM25, beirnl, dataset, experiment, system
from translating import FREE, by_id, command, documents, dutch, served, translation, write_set

from beirnl.config import load_experiment
from beirnl.pipeline import Pipeline
from beirnl.retrieval.analysis import ANALYZERS


@pytest.fixture
def place(tmp_path):
    return write_set(tmp_path / "set", documents(3))


@pytest.fixture
def server():
    with FaultServer(answer=dutch) as made:
        yield made


def artifacts(tmp_path):
    """Stages with something finished, and everything that looks half-written."""
    workspace = tmp_path / "workspace"
    done = {path.relative_to(workspace).parts[1] for path in workspace.rglob("manifest.json")}
    half = [
        path for path in workspace.rglob("*") if path.suffix in (".tmp", ".partial") or path.name[0] == "."
    ]
    return done, half


IMPORTED = {"import-corpus", "import-queries", "import-qrels"}


def stopped(tmp_path, text, *, done=IMPORTED):
    """The one line of a run that stops before it asks anything; what it has imported stays."""
    said = command("run", experiment(tmp_path, text))
    line = said.error
    assert artifacts(tmp_path) == (done, [])
    return line


# Found before the work begins -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (
            "Translate to {target_language}: <title> {title} </title>",
            "own.txt: the document prompt has no {text}",
        ),
        ("Translate: {text}", "own.txt: the document prompt has no {title}"),
        ("{title} {text} {langauge}", "own.txt: unknown placeholder {langauge}; use {text}"),
        ('json = ["title"]\n---\n{title} {text}', "needs the field 'text'"),
        ('from = "chat"\n---\n{title} {text}', "own.txt: from: "),
    ],
)
def test_a_prompt_without_its_placeholders(tmp_path, place, prompt, expected):
    (tmp_path / "own.txt").write_text(prompt)
    text = dataset(place) + translation(document_prompt="own.txt")
    for command_name in ("plan", "run", "status"):
        said = command(command_name, experiment(tmp_path, text))
        assert expected in said.error
    assert artifacts(tmp_path) == (set(), [])


def test_a_prompt_file_that_cannot_be_read(tmp_path, place):
    text = dataset(place) + translation(query_prompt="nowhere.txt")
    assert f"{tmp_path}/nowhere.txt: this prompt file cannot be read; give" in stopped(
        tmp_path, text, done=set()
    )
    (tmp_path / "latin.txt").write_bytes(b"{text} caf\xe9")
    text = dataset(place) + translation(repair_query_prompt="latin.txt")
    assert "latin.txt: this prompt file cannot be read; give" in stopped(tmp_path, text, done=set())


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"to": "xx"}, "unknown language 'xx'; "),
        ({"to": "dutch"}, "unknown language 'dutch'; "),
        ({"to": "nld"}, "unknown language 'nld'; "),
        ({"to": "pap", "checks": {"language": False}}, "unknown language 'pap'; "),
        ({"to": "ti"}, "the language check does not know Tigrinya (ti); set language = false under"),
        ({"engine": "batch"}, "engine 'batch' needs a model; set model under [translation]"),
        ({"engine": "opnai"}, "did you mean 'openai'? (there are: auto, "),
        ({"to": "Dutch"}, "unknown language 'Dutch'; write 'nl' for Dutch"),
        ({"to": "nl-NL"}, "unknown language 'nl-NL'; write 'nl' for Dutch"),
        ({"to": "nl_BE"}, "unknown language 'nl_BE'; write 'nl' for Dutch"),
        ({"to": "NL"}, "unknown language 'NL'; write 'nl' for Dutch"),
        ({"to": "Germann"}, "write 'de' for German"),
        (
            {"engine": "zzz"},
            "unknown engine 'zzz'; use one of: auto, mock, transformers, vllm, openai, batch",
        ),
        ({"engine": "vllm", "model": "gemma"}, "unknown llm model 'gemma'; did you mean 'gemma-3-270m'?"),
        ({"query_prompt": "paper-querry"}, "unknown prompt 'paper-querry'; did you mean 'paper-query'?"),
        ({"query_prompt": "own"}, "unknown prompt 'own'; a file is named with its suffix: 'own.txt'"),
        ({"query_prompt": "./own.md"}, "unknown prompt './own.md'; a file of your own is to be called"),
        ({"repair": "room"}, "translation.repair: must be a list"),
        ({"repair": ["engine"]}, 'translation: repair has the rung "engine", which needs a'),
        ({"max_cost": 0}, "translation.max_cost: "),
        ({"repair": ["rooom"]}, "translation.repair number 1: "),
        ({"second": {"engine": "openai"}}, "engine 'openai' needs a model"),
        ({"price": {"input": 1}}, "translation.price.output: "),
        (
            {"server": {"api_key": "sk-1"}},
            "unknown key 'translation.server.api_key'; did you mean 'api_key_env'?",
        ),
    ],
)
def test_a_language_an_engine_and_other_words_that_nobody_knows(tmp_path, place, settings, expected):
    (tmp_path / "own.txt").write_text("{text}")
    line = stopped(tmp_path, dataset(place) + translation(**settings), done=set())
    assert expected in line and line.startswith(f"error: {tmp_path}/experiment.toml: ")
    assert "MiniLM" not in line  # an encoder is no LLM


def test_a_language_that_the_checks_do_not_know_can_be_left_unchecked(tmp_path, place):
    said = command(
        "run", experiment(tmp_path, dataset(place) + translation(to="ti", checks={"language": False}))
    )
    assert said.code == 0, said.err


def test_a_prompt_that_is_written_for_another_language(tmp_path, place):
    text = dataset(place) + translation(to="de", checks={"language": False}, document_prompt="few-shot-nl")
    line = stopped(tmp_path, text, done=set())
    assert "few-shot-nl.txt: the prompt is written for target_language 'nl', not 'de'; choose" in line


@pytest.fixture
def english_to_french(tmp_path):
    """A model like NLLB with random weights, whose tokenizer knows English and French."""
    from transformers import M2M100Config, M2M100ForConditionalGeneration, NllbTokenizer

    words = ["<s>", "<pad>", "</s>", "<unk>", "▁", *"abcdefghijklmnopqrstuvwxyz"]
    vocabulary = {word: n for n, word in enumerate(words)}
    tokenizer = NllbTokenizer(vocab=vocabulary, merges=[], extra_special_tokens=["eng_Latn", "fra_Latn"])
    heads = {"encoder_attention_heads": 1, "decoder_attention_heads": 1}
    sizes = {
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_ffn_dim": 16,
        "decoder_ffn_dim": 16,
        "d_model": 16,
    }
    config = M2M100Config(vocab_size=len(tokenizer), decoder_start_token_id=2, **heads, **sizes)
    M2M100ForConditionalGeneration(config).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_a_model_that_does_not_know_the_language(tmp_path, place, english_to_french):
    settings = {"engine": "transformers", "model": english_to_french, "max_model_len": 512}
    prompts = {"query_prompt": "bare", "document_prompt": "bare"}
    line = stopped(tmp_path, dataset(place) + translation(to="is", **settings, **prompts))
    assert f"error: {english_to_french}: " in line and "Icelandic" in line


# Found when the engine is reached ---------------------------------------------------------------------------


def test_a_window_that_is_smaller_than_the_prompt(tmp_path, place, server):
    line = stopped(tmp_path, dataset(place) + translation(**served(server, max_model_len=64)))
    assert re.search(
        r"prompt paper-(?:document|query): the prompt takes \d+ tokens, which leaves room for \d+ of a text",
        line,
    )
    assert "raise max_model_len" in line and "choose a shorter prompt" in line
    assert server.counts.prompts.total() == 0


@pytest.mark.parametrize("table", ["first", "second"])
@pytest.mark.parametrize("engine", ["openai", "batch", "gemini-batch"])
def test_a_key_that_is_not_there_is_found_before_anything_is_done(
    tmp_path, place, engine, table, monkeypatch
):
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    server, name = {"api_key_env": "NO_SUCH_KEY"}, "NO_SUCH_KEY"
    if engine == "gemini-batch":
        server, name = {}, "GEMINI_API_KEY"
    settings = {"engine": engine, "model": "m-1", "server": server}
    text = dataset(place) + translation(**settings if table == "first" else {"second": settings})
    for value in ("", "  "):
        monkeypatch.setenv(name, value)
        line = stopped(tmp_path, text, done=set())
        assert f"engine {engine} with m-1: the environment variable {name} is not set; put the" in line
    monkeypatch.setenv(name, "sk-\u00e9")
    assert "holds characters that no key has" in stopped(tmp_path, text, done=set())


def test_commands_that_ask_nothing_need_no_key(tmp_path, monkeypatch):
    place = write_set(tmp_path / "set", documents(3), ("What is a cell?", "Who built it?"))
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    settings = {"engine": "batch", "model": "gpt-4.1-mini", "server": {"api_key_env": "NO_SUCH_KEY"}}
    path = experiment(tmp_path, dataset(place) + translation(**settings))
    for words in (["plan", path], ["plan", path, "--estimate"], ["status", path]):
        assert command(*words).code == 0
    said = command("translate", path, "--write-batch", tmp_path / "files")
    assert said.code == 0 and "5 requests in 1 file:" in said.out
    assert command("run", path, "--only", "import-corpus").code == 0


@pytest.mark.parametrize("table", ["first", "second"])
@pytest.mark.parametrize("url", ["localhost:8000", "https://", "api.openai.com/v1", "ftp://host/v1"])
def test_an_address_that_is_none_is_found_before_anything_is_done(tmp_path, place, url, table):
    settings = {"engine": "openai", "model": "m", "server": {"base_url": url, "api_key_env": ""}}
    line = stopped(
        tmp_path,
        dataset(place) + translation(**settings if table == "first" else {"second": settings}),
        done=set(),
    )
    assert f"server.base_url: {url!r} is not a URL; write it as https://HOST/v1" in line


@pytest.mark.parametrize("engine", ["openai", "batch"])
def test_a_key_that_is_refused(tmp_path, place, engine, monkeypatch):
    monkeypatch.setenv("WRONG_KEY", "sk-wrong-and-secret")
    with FaultServer(api_key="sk-right") as server:
        settings = served(server, engine, server={"api_key_env": "WRONG_KEY", "retries": 0})
        line = stopped(tmp_path, dataset(place) + translation(**settings))
    assert "refuses the key" in line and "check the key in WRONG_KEY" in line and "sk-wrong" not in line


@pytest.mark.parametrize("engine", ["openai", "batch"])
def test_a_server_that_is_not_there(tmp_path, place, engine, monkeypatch):
    monkeypatch.setattr("beirnl.llm.http.client.backoff", lambda tries: 0.01)
    monkeypatch.setattr("beirnl.llm.batch.jobs.PATIENCE", 1)
    server = {"base_url": "http://127.0.0.1:9/v1", "api_key_env": "", "retries": 0, "poll_seconds": 0.01}
    settings = {"engine": engine, "model": "mock", "price": FREE, "server": server}
    line = stopped(tmp_path, dataset(place) + translation(**settings))
    assert "http://127.0.0.1:9/v1: " in line and "; " in line
    line = stopped(
        tmp_path, dataset(place) + translation(**settings | {"server": server | {"base_url": "localhost:9"}})
    )
    assert "localhost:9" in line


@pytest.mark.parametrize("engine", ["openai", "batch"])
def test_a_model_that_the_server_has_not(tmp_path, server, engine):
    place = write_set(tmp_path / "set", documents(30))
    line = stopped(tmp_path, dataset(place) + translation(**served(server, engine, model="mokc")))
    assert "'mokc'" in line and server.counts.answered.total() == 0


def test_a_provider_that_rejects_the_whole_batch(tmp_path, place, server):
    reason = {
        "code": "model_not_supported",
        "message": "this model has no batch mode",
        "line": 1,
        "param": None,
    }
    server.store.refusals = [reason] * 5
    path = experiment(tmp_path, dataset(place) + translation(**served(server, "batch")))
    line = command("run", path).error
    assert (
        "the provider refuses the whole batch (line 1: this model has no batch mode); correct what it names"
        in line
    )
    assert artifacts(tmp_path)[0] == IMPORTED and server.counts.prompts.total() == 0
    server.store.refusals = []
    assert command("run", path).code == 0
    assert set(server.counts.answered.values()) == {1} and len(server.counts.answered) == 4


# What was done stays ----------------------------------------------------------------------------------------


def test_what_was_answered_before_the_server_went_is_not_asked_again(tmp_path):
    place = write_set(tmp_path / "set", documents(40))
    refuse = ["200"] * 15 + ["402"] * 1000
    with FaultServer(refuse, answer=dutch) as server:
        path = experiment(tmp_path, dataset(place, shard_documents=5) + translation(**served(server)))
        said = command("run", path)
        assert (
            "the server refuses every request (402 Payment Required" in said.error
            and "see to the account" in said.error
        )
        assert server.counts.outcomes["200"] == 15 and server.counts.outcomes["402"] <= 4 + 4
        answered = set(server.counts.answered)
    with FaultServer(answer=dutch) as server:
        path.write_text(re.sub(r"http://127\.0\.0\.1:\d+", server.url, path.read_text()))
        assert command("run", path).code == 0
        again = answered & set(server.counts.prompts)  # what was under way when the server refused
        assert server.counts.prompts.total() == 41 - len(answered - again) and len(again) < 4
    assert len(by_id(Pipeline.of(load_experiment(path)))) == 40


def test_a_reference_or_a_parallel_text_that_does_not_fit(tmp_path, place):
    (tmp_path / "source.txt").write_text("One line.\nTwo lines.\n")
    (tmp_path / "reference.txt").write_text("Een regel.\n")
    files = f'source = "{tmp_path}/source.txt"\nreference = "{tmp_path}/reference.txt"\n'
    said = command("run", experiment(tmp_path, f'[[parallel]]\nname = "p"\n{files}' + translation()))
    assert f"{tmp_path}/reference.txt: has 1 line, and source.txt has 2" in said.error
    said = command(
        "run",
        experiment(
            tmp_path, f'[[parallel]]\nname = "p"\n{files.replace("reference.txt", "no.txt")}' + translation()
        ),
    )
    assert f"{tmp_path}/no.txt: is not there" in said.error
    other = write_set(tmp_path / "other", [row | {"_id": f"other{n}"} for n, row in enumerate(documents(3))])
    said = command("run", experiment(tmp_path, dataset(place, reference=other) + translation()))
    assert "translation and reference share no identifier; give a reference with the ids" in said.error
    assert "repair" in artifacts(tmp_path)[0]


def test_the_line_and_the_exit_code_of_a_process_of_its_own(tmp_path, place):
    path = experiment(tmp_path, dataset(place) + translation(max_model_len=64))
    done = beirnl("translate", path, check=2)
    assert done.stderr.splitlines()[-1].startswith("error: prompt paper-")
    assert "error: " not in done.stdout and "Traceback" not in done.stderr
    done = beirnl("translate", path, "--debug", check=1)
    assert "Traceback" in done.stderr


def test_a_language_that_the_mock_does_not_write(tmp_path, place):
    line = stopped(tmp_path, dataset(place) + translation(to="fy"), done=set())
    assert "the mock engine writes the likeness of Dutch only" in line and "language = false" in line


# Only what is translated ------------------------------------------------------------------------------------


def test_translating_needs_no_analyzer_and_no_encoder(tmp_path):
    place = write_set(tmp_path / "set", documents(3), ("What is a cell?", "Who built it?"))
    other = write_set(tmp_path / "reference", documents(3))
    systems = BM25 + system("dense", "e", model="./no/such/folder")
    unchecked = {"language": False}
    path = experiment(
        tmp_path, dataset(place, reference=other) + systems + translation(to="is", checks=unchecked)
    )
    assert command("plan", path, "--estimate").code == 0
    assert command("translate", path).code == 0
    assert command("audit", "sample", path, "--per-dataset", 1).code == 0
    said = command("quality", path)
    assert said.code == 0 and "chrF" in said.out
    path = experiment(tmp_path, dataset(place) + BM25 + translation(to="is", checks=unchecked))
    line = command("run", path).error
    known = ", ".join(sorted(facts.language for facts in ANALYZERS.values() if facts.language))
    assert line == (
        f"error: {path}: system 'bm25' on own/is: no analyzer is meant for language 'is'; "
        f"use one of: {known}; or set analyzer, or languages to those it is to run on"
    )


def test_a_dataset_whose_language_is_named_otherwise(tmp_path, place):
    path = experiment(tmp_path, dataset(place, language="English") + BM25)
    assert "unknown language 'English'; write 'en' for English" in command("plan", path).error


def test_a_command_that_needs_a_translation_says_so(tmp_path, place):
    path = experiment(tmp_path, dataset(place) + BM25)
    for words in (["translate"], ["quality"], ["audit", "sample"]):
        assert f"{path}: has no [translation]; add one" in command(*words, path).error


# Batch jobs while they run ----------------------------------------------------------------------------------


def test_what_is_ordered_is_said(tmp_path, place, server):
    path = experiment(tmp_path, dataset(place) + translation(**served(server, "batch"), repair=[]))
    said = command("translate", path)
    jobs = list(server.store.batches)
    assert len(jobs) == 2 and said.code == 0
    assert all(f"batch job {job} ordered: " in said.err for job in jobs)
    assert re.search(r"batch jobs: .*2 done.*; looked at every 0\.05 s \(poll_seconds\)", said.err)
    assert "batch job" not in command("status", path).out


def test_status_shows_the_jobs_that_a_stopped_run_has_ordered(tmp_path, place, monkeypatch):
    monkeypatch.setattr("beirnl.llm.batch.jobs.PATIENCE", 1)
    with FaultServer(script={"GET /v1/batches/batch_1": ["500"] * 2}, answer=dutch) as server:
        settings = served(server, "batch", server={"retries": 0})
        path = experiment(tmp_path, dataset(place) + translation(**settings, repair=[]))
        command("translate", path)
        shown = command("status", path).out
        assert re.search(rf"batch job batch_1: \d requests? at {server.url}/v1, for \S+ s", shown)
        said = command("translate", path)
        assert said.code == 0 and "batch job batch_1 of " in said.err and "was ordered before" in said.err
