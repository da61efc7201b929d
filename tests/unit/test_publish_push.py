"""Uploading, with the real client of the hub against a small server that stands for it; and the command."""

import base64
import json

import huggingface_hub
import pytest
from hub_server import serving
from huggingface_hub import constants
from translated_set import translation
from typer import Typer
from typer.testing import CliRunner

from beirnl import publish as publishing
from beirnl.cli import publish as cli_publish
from beirnl.errors import ConfigError, PrerequisiteError
from beirnl.publish import hub, publish


class FakeHub:
    """What the hub knows: repositories with their files, and the requests that came."""

    def __init__(self):
        self.repositories: dict[str, dict] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.refuse = 0

    def answer(self, method, path, body, headers):
        if self.refuse:
            return self.refuse, {"error": "no right to write"}
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            private = asked.get("private", asked.get("visibility") == "private")
            known = name in self.repositories
            self.repositories.setdefault(name, {"private": private, "files": {"corpus/old.parquet": b""}})
            return (409 if known else 200), {"url": f"https://huggingface.co/datasets/{name}"}
        name, _, rest = path.removeprefix("/api/datasets/").partition("/")
        name, rest = f"{name}/{rest.partition('/')[0]}", rest.partition("/")[2]
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}
        if rest.startswith("preupload"):
            files = json.loads(body)["files"]
            return 200, {
                "files": [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in files]
            }
        if rest.startswith("commit"):
            self.commit(self.repositories[name]["files"], [json.loads(line) for line in body.splitlines()])
            return 200, {
                "commitUrl": f"https://huggingface.co/datasets/{name}/commit/1",
                "commitOid": "1" * 40,
            }
        if rest.startswith("tree"):
            files = self.repositories[name]["files"]
            return 200, [{"type": "file", "path": p, "size": len(d), "oid": "0"} for p, d in files.items()]
        return 200, {
            "id": name,
            "private": self.repositories[name]["private"],
            "siblings": [],
            "sha": "0" * 40,
        }

    def commit(self, files, operations):
        for operation in operations:
            value = operation["value"]
            if operation["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif operation["key"] == "deletedFile":
                files.pop(value["path"])


@pytest.fixture
def fake(monkeypatch):
    """The hub that the client talks to."""
    made = FakeHub()
    with serving(made) as address:
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
        monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        huggingface_hub.close_session()
        yield made
    huggingface_hub.close_session()


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("push")
    return publish("owls-nl", [translation(folder / "in")], folder / "out")


def test_a_push_is_one_private_commit_with_the_token(fake, published):
    assert hub.push(published.hub, "org/owls") == "https://huggingface.co/datasets/org/owls/commit/1"
    repository = fake.repositories["org/owls"]
    assert repository["private"] is True
    on_disk = {
        p.relative_to(published.hub).as_posix(): p.read_bytes()
        for p in published.hub.rglob("*")
        if p.is_file()
    }
    assert repository["files"] == on_disk  # what an earlier push left is gone
    commits = [request for request, _ in fake.requests if "/commit/" in request]
    assert len(commits) == 1
    assert {token for _, token in fake.requests} <= {"Bearer hf_secret", None}
    assert dict(fake.requests)["POST /api/repos/create"] == "Bearer hf_secret"


def test_public_only_if_asked_for(fake, published):
    hub.push(published.hub, "org/open", public=True)
    assert fake.repositories["org/open"]["private"] is False
    before = len(fake.requests)
    with pytest.raises(ConfigError, match=r"org/open: is public already; say --public"):
        hub.push(published.hub, "org/open")
    assert not [request for request, _ in fake.requests[before:] if "commit" in request]


def test_a_refusal_of_the_hub_is_one_line(fake, published):
    fake.refuse = 403
    with pytest.raises(PrerequisiteError, match=r"org/owls: the hub answers 403 .*HF_TOKEN") as caught:
        hub.push(published.hub, "org/owls")
    assert "hf_secret" not in str(caught.value) and "\n" not in str(caught.value)


def test_a_hub_that_is_not_there_is_one_line(fake, published, monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(
        PrerequisiteError, match=r"org/owls: the hub is not reached .*what is published is kept"
    ):
        hub.push(published.hub, "org/owls")


def test_offline_mode_is_one_line(fake, published, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    huggingface_hub.close_session()
    with pytest.raises(PrerequisiteError, match=r"offline mode is on; unset HF_HUB_OFFLINE"):
        hub.push(published.hub, "org/owls")


def test_several_sets_go_to_repositories_of_their_own(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert hub.repositories("org/beir-nl", {"owls-nl": "owls"}) == {"owls-nl": "org/beir-nl"}
    several = hub.repositories("org/beir-nl", {"owls-nl": "owls", "fever-nl": "fever"})
    assert several == {"owls-nl": "org/beir-nl-owls", "fever-nl": "org/beir-nl-fever"}


@pytest.mark.parametrize("name", ["no-organisation", "a/b/c", "org/two..dots", "org/"])
def test_a_name_that_the_hub_would_refuse(monkeypatch, name):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with pytest.raises(ConfigError, match="give ORG/NAME"):
        hub.repositories(name, {"owls-nl": "owls"})


def test_a_token_that_is_not_set(monkeypatch):
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with pytest.raises(PrerequisiteError, match="HF_TOKEN is not set"):
        hub.repositories("org/owls", {"owls-nl": "owls"})


# The command ------------------------------------------------------------------------------------------------


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Runs ``beirnl publish`` on a set that an experiment is said to have made."""
    made = [translation(tmp_path / "in")]
    monkeypatch.setattr(cli_publish, "load_translation", lambda path: None)
    monkeypatch.setattr("beirnl.pipeline.Pipeline.of", lambda experiment: None)
    monkeypatch.setattr(publishing, "translations", lambda pipeline, only: made)
    app = Typer()
    app.command()(cli_publish.publish)
    base = ["exp.toml", "--to", str(tmp_path / "out")]
    return lambda *more: CliRunner().invoke(app, [*base, *more])


def test_the_command_says_what_was_published_and_pushed(command, fake, tmp_path):
    done = command("--push", "org/owls")
    assert done.exit_code == 0, done.output
    assert "owls-nl: 6 documents, 2 queries, 4 judgements; written and proven: " in done.output
    assert "owls-nl: pushed to https://huggingface.co/datasets/org/owls/commit/1" in done.output
    again = command("--push", "org/owls")  # as after a push that failed
    assert "proven again" in again.output and "pushed to" in again.output


def test_nothing_is_made_public_without_a_licence(command, fake, tmp_path):
    refused = command("--push", "org/owls", "--public")
    assert isinstance(refused.exception, ConfigError) and "--licence" in str(refused.exception)
    assert not (tmp_path / "out").exists() and not fake.requests
    allowed = command("--push", "org/owls", "--public", "--licence", "MIT")
    assert allowed.exit_code == 0 and fake.repositories["org/owls"]["private"] is False
    assert b"license: mit" in fake.repositories["org/owls"]["files"]["README.md"]


def test_the_licence_is_said_or_asked_for(command):
    assert "warning: owls-nl: no licence of its source is known" in command().output
    given = command("--licence", "MIT")
    assert given.exit_code == 0 and "owls-nl: licence MIT, that of the source" in given.output
    assert "no licence" not in given.output


def test_a_licence_that_the_registry_overrules_is_said(command, monkeypatch):
    monkeypatch.setattr("beirnl.publish.card.licence_of", lambda dataset, given: "CC-BY-SA-4.0")
    said = "warning: owls-nl: --licence is not used: the registry says CC-BY-SA-4.0"
    assert said in command("--licence", "MIT").output and "not used" not in command().output


def test_public_without_push_is_a_mistake(command):
    assert "add --push" in str(command("--public").exception)


def test_a_missing_token_is_said_before_the_work(command, monkeypatch, tmp_path):
    monkeypatch.delenv("HF_TOKEN", raising=False)
    assert "HF_TOKEN" in str(command("--push", "org/owls").exception)
    assert not (tmp_path / "out").exists()
