"""Models whose code is in another repository of the hub: both become one folder.

transformers follows a reference ``ORG/NAME--module.Class`` to that repository as it is at that moment,
however the model itself is pinned. In the folder made here the code lies beside the weights, as it was at one
commit.
"""

from pathlib import Path

from beirnl.errors import ConfigError


def assemble(folder: Path, weights: Path, code: Path, repository: str) -> None:
    """Fill ``folder`` with links to a model's files and its code, and configurations that name that code.

    Args:
        folder: an empty folder.
        weights: the model's files.
        code: the files of the other repository, of which the Python modules count.
        repository: ``ORG/NAME`` of it, as the model's configurations refer to it.

    Raises:
        ConfigError: both have a module of one name.
    """
    for path in sorted(path for path in weights.rglob("*") if path.is_file()):
        place = folder / path.relative_to(weights)
        place.parent.mkdir(parents=True, exist_ok=True)
        if not _renamed(path, place, repository):
            place.symlink_to(path.resolve())
    for module in sorted(code.glob("*.py")):
        if (folder / module.name).exists():
            raise ConfigError(
                f"the model and {repository} both have a module {module.name}",
                where=weights,
                remedy="use a revision of the model that brings its code itself",
            )
        (folder / module.name).symlink_to(module.resolve())


def _renamed(source: Path, place: Path, repository: str) -> bool:
    """Copy a configuration that refers to the repository, without its name; whether it was one."""
    if source.suffix != ".json" or source.name in ("tokenizer.json", "vocab.json"):
        return False
    text = source.read_text(encoding="utf-8")
    if f"{repository}--" not in text:
        return False
    place.write_text(text.replace(f"{repository}--", ""), encoding="utf-8")
    return True
