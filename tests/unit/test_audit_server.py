"""The server of the labelling page: what it gives, what it takes, whom it refuses; and the command line."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest
from audit_sheets import datasets, item, label, sheet
from support import ROOT
from typer.testing import CliRunner

from beirnl.audit.labels import Labels
from beirnl.audit.server import AuditServer
from beirnl.cli.audit import audit_app
from beirnl.errors import ConfigError, DataError


@contextmanager
def serving(path, **settings):
    with AuditServer(path, port=0, **settings) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(server, method, path, body=None, **headers):
    """Status, headers and body of an answer; ``_`` in names of headers stands for ``-``."""
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = body if isinstance(body, str | None) else json.dumps(body)
    connection.request(method, path, sent, given)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, answer.headers, data


def post(server, body, **headers):
    status, _, data = ask(server, "POST", "/labels", body, **{"Content_Type": "application/json", **headers})
    return status, json.loads(data)


@pytest.fixture
def path(tmp_path):
    rtl = item("arab", "1", language="ar", text="نص")
    return sheet(tmp_path / "s.jsonl", [*datasets(small=100), rtl])


@pytest.fixture
def server(path):
    with serving(path) as running:
        yield running


def test_the_page_is_given_what_is_to_be_read_but_no_verdict(server):
    status, headers, data = ask(server, "GET", "/")
    assert status == 200 and data.startswith(b"<!doctype html>")
    policy = headers["Content-Security-Policy"]
    nonce = policy.split("script-src 'nonce-")[1].split("'")[0]
    assert data.count(nonce.encode()) == 2 and b"{{" not in data
    assert ask(server, "GET", "/")[1]["Content-Security-Policy"] != policy
    shown = json.loads(ask(server, "GET", "/items")[2])
    assert shown[0]["source"] == {
        "language": "en",
        "direction": "ltr",
        "title": "Title 0",
        "text": "A text about 0.",
    }
    assert shown[10]["translation"]["direction"] == "rtl"
    assert not any("status" in one or one["because"] for one in shown)
    assert ask(server, "GET", "/../s.jsonl")[0] == 404


@pytest.mark.parametrize(
    ("status", "kept", "because", "language"),
    [
        ("ok", "answer", "", "nl"),
        ("numbers", "answer", "", "nl"),
        ("title-lost,numbers", "title", "title-lost,numbers", "nl"),
        ("refusal", "source", "refusal", "ar"),
    ],
)
def test_only_what_was_kept_of_the_source_is_said_of_the_checks(tmp_path, status, kept, because, language):
    path = sheet(tmp_path / "s.jsonl", [item(status=status, source_language="ar")])
    with serving(path) as server:
        (shown,) = json.loads(ask(server, "GET", "/items")[2])
    assert (shown["kept"], shown["because"]) == (kept, because)
    there = shown["translation"]
    assert (there["language"], there["wanted"]) == (language, "nl")
    assert there["direction"] == ("rtl" if language == "ar" else "ltr")


def test_a_label_is_on_the_disk_when_it_is_answered_and_there_after_a_restart(path):
    key = datasets(small=100)[0].key
    with serving(path) as server:
        status, said = post(server, {"annotator": "Anna", "key": key, "label": "minor", "note": "‘stijf’"})
        assert (status, said["label"]) == (200, "minor")
        assert Labels(path).read("anna")[key].note == "‘stijf’"
    with serving(path) as server:
        found = json.loads(ask(server, "GET", "/labels?annotator=ANNA")[2])
        assert found["annotator"] == "anna"
        assert found["labels"][key]["label"] == "minor"
        assert json.loads(ask(server, "GET", "/labels?annotator=ben")[2])["labels"] == {}


def test_many_at_once_are_all_saved(server, path):
    keys = [one.key for one in datasets(small=100)]

    def work(annotator):
        for key in keys:
            assert post(server, {"annotator": annotator, "key": key, "label": "correct"})[0] == 200

    threads = [threading.Thread(target=work, args=(name,)) for name in ("anna", "ben", "carl", "anna")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Labels(path).annotators() == ["anna", "ben", "carl"]
    assert all(set(Labels(path).read(name)) == set(keys) for name in ("anna", "ben", "carl"))


@pytest.mark.parametrize(
    "headers, status",
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_a_post_from_another_page_is_refused(server, path, headers, status):
    body = {"annotator": "anna", "key": datasets(small=100)[0].key, "label": "major"}
    assert post(server, body, **headers)[0] == status
    assert Labels(path).annotators() == []
    own = {"Origin": f"http://127.0.0.1:{server.server_port}"}
    assert post(server, body, **own)[0] == 200


def test_a_page_whose_name_was_pointed_here_reads_nothing(server):
    assert ask(server, "GET", "/items", Host="evil.example")[0] == 403
    assert ask(server, "GET", "/items", Host="localhost:9000")[0] == 200  # a tunnel


@pytest.mark.parametrize(
    "change, status, says",
    [
        ({"annotator": "../../x"}, 400, "is no name"),
        ({"annotator": ""}, 400, "is no name"),
        ({"key": "another"}, 409, "the sheet has changed"),
        ({"label": "awful"}, 400, "this is no label"),
        ({"note": "x" * 4001}, 400, "longer than 4000"),
        ({"note": "x" * 70000}, 413, "at most 65536 bytes"),
        ({"key": None}, 400, "this is no label"),
    ],
)
def test_what_is_no_label_is_refused_and_said(server, path, change, status, says):
    good = {"annotator": "anna", "key": datasets(small=100)[0].key, "label": "minor", "note": ""}
    found, said = post(server, {**good, **change})
    assert found == status and says in said["error"]
    assert list(path.parent.rglob("*")) == [path]


def test_a_damaged_label_file_is_said_to_the_page(server, path):
    folder = Labels(path).folder
    folder.mkdir()
    (folder / "anna.jsonl").write_bytes(b"nonsense\n")
    status, _, data = ask(server, "GET", "/labels?annotator=anna")
    assert status == 500 and "anna.jsonl:1: is not a label" in json.loads(data)["error"]


def test_a_named_annotator_needs_not_be_asked(path):
    with serving(path, annotator="Anna B") as server:
        status, headers, _ = ask(server, "GET", "/")
        assert (status, headers["Location"]) == (302, "/?annotator=anna%20b")
        assert server.url.endswith("/?annotator=anna%20b")
        assert ask(server, "GET", "/?annotator=ben")[0] == 200


def test_a_port_in_use_and_other_mistakes_are_one_line(path, tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} is in use; give another --port"):
            AuditServer(path, port=port)
    with pytest.raises(ConfigError, match=r"cannot listen on 203\.0\.113\.1:"):
        AuditServer(path, host="203.0.113.1", port=0)
    with pytest.raises(ConfigError, match="is no name"):
        AuditServer(path, port=0, annotator="a/b")
    (tmp_path / "other.jsonl").write_text("{}\n")
    with pytest.raises(DataError, match="is not a sheet"):
        AuditServer(tmp_path / "other.jsonl", port=0)


# The command line -------------------------------------------------------------------------------------------


def test_the_command_reports_in_every_form(path):
    label(path, "anna", datasets(small=100), "ccccccccmj")
    for form in ("table", "markdown", "json"):
        done = CliRunner().invoke(audit_app, ["report", str(path), "--format", form])
        assert done.exit_code == 0, done.output
        assert "small (nl)" in done.output
    assert json.loads(done.output)["items"] == 11


def test_the_command_says_what_is_wrong(tmp_path):
    (tmp_path / "x.jsonl").write_text("{}\n")
    for command in ("report", "serve"):
        done = CliRunner().invoke(audit_app, [command, str(tmp_path / "x.jsonl")])
        assert isinstance(done.exception, DataError)
    assert CliRunner().invoke(audit_app, ["sample", "x.toml", "--per-dataset", "0"]).exit_code == 2


def test_ctrl_c_ends_the_server_without_an_error(path):
    command = [sys.executable, "-c", "from beirnl.cli.audit import audit_app; audit_app()"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [*command, "serve", str(path), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stdout.readline().startswith("open http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=60)
    assert (process.returncode, said, errors) == (0, "stopped; the same command goes on\n", "")
