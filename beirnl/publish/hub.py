"""Uploading what was published to the Hugging Face hub."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from beirnl.errors import ConfigError, PrerequisiteError

_TOKEN = "HF_TOKEN"
_REPLACED = ["*.parquet", "*.json", "*.jsonl", "*.tsv", "*.md"]  # of an earlier upload, in the same commit


def repositories(target: str, names: dict[str, str]) -> dict[str, str]:
    """Where each set goes: to ``target`` itself, or, of several sets, to ``target-DATASET``.

    Args:
        target: ``ORG/NAME``.
        names: of datasets, by the name of what is published.

    Raises:
        ConfigError: not such a name.
        PrerequisiteError: the environment has no token.
    """
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    found = {name: target if len(names) == 1 else f"{target}-{dataset}" for name, dataset in names.items()}
    try:
        for repository in found.values():
            validate_repo_id(repository)
    except HFValidationError as error:
        raise ConfigError(str(error), where="--push", remedy="give ORG/NAME") from error
    if target.count("/") != 1:
        raise ConfigError(f"{target!r} names no organisation or user", where="--push", remedy="give ORG/NAME")
    if not os.environ.get(_TOKEN):
        raise PrerequisiteError(
            f"environment variable {_TOKEN} is not set",
            where="--push",
            remedy="export a token of the hub that may write",
        )
    return found


def push(folder: Path, repository: str, public: bool = False) -> str:
    """Upload a folder in the hub's layout as one commit; files of an earlier upload are replaced by it.

    Args:
        folder: with its ``README.md``.
        repository: ``ORG/NAME``; it is made if it is not there, private unless ``public``.
        public: whether it may be seen by everyone.

    Returns:
        Address of the commit.

    Raises:
        ConfigError: the repository is there and public, and ``public`` was not asked for.
        PrerequisiteError: the hub is not reached, or refuses.
    """
    from huggingface_hub import HfApi

    api = HfApi(token=os.environ[_TOKEN])
    with _hub_errors(repository):
        api.create_repo(repository, repo_type="dataset", private=not public, exist_ok=True)
        if not public and not api.repo_info(repository, repo_type="dataset").private:
            raise ConfigError(
                "is public already", where=repository, remedy="say --public, or push to another repository"
            )
        commit = api.upload_folder(
            repo_id=repository,
            folder_path=folder,
            repo_type="dataset",
            commit_message="Publish with beirnl",
            delete_patterns=_REPLACED,
        )
    return str(commit.commit_url)


@contextmanager
def _hub_errors(repository: str) -> Iterator[None]:
    """Errors of the hub, or of the way to it, as one line; what was published stays on the disk."""

    from huggingface_hub.errors import HfHubHTTPError, HTTPError, OfflineModeIsEnabled

    try:
        yield
    except OfflineModeIsEnabled as error:
        raise PrerequisiteError(
            "the hub is not reached: offline mode is on",
            where=repository,
            remedy="unset HF_HUB_OFFLINE and run the same command again; what is published is kept",
        ) from error
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else "no"
        advice = "check that HF_TOKEN may write there" if status in (401, 403, 404) else "try again later"
        what = error.server_message or str(error).partition("\n")[0]
        raise PrerequisiteError(
            f"the hub answers {status} ({what})",
            where=repository,
            remedy=f"{advice}, with the same command; what is published is kept",
        ) from error
    except (HTTPError, OSError) as error:
        raise PrerequisiteError(
            f"the hub is not reached ({error or type(error).__name__})",
            where=repository,
            remedy="check the network and run the same command again; what is published is kept",
        ) from error
