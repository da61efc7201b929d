"""Settings of the whole suite, before anything heavy is imported."""

import os

import pytest
from hypothesis import settings

for name, value in {
    "HF_HUB_OFFLINE": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "TOKENIZERS_PARALLELISM": "false",
}.items():
    os.environ.setdefault(name, value)

settings.register_profile(
    "shared-machine", deadline=None
)  # a machine may be slow at times; that is no failure
settings.load_profile("shared-machine")


@pytest.fixture(scope="session")
def s3(tmp_path_factory):
    """An S3 server in a process of its own."""
    from s3_server import s3_server

    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def bucket(s3, tmp_path, monkeypatch):
    """The server, told to this process by the environment, with a cache of the test's own."""
    for name, value in {**s3.environment, "BEIRNL_CACHE": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)
    return s3
