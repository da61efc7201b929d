"""Digests: the key of an artifact, and the digest of a file that an artifact is made from."""

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from beirnl.errors import StoreError
from beirnl.specs import Spec
from beirnl.store.places import Place

_BLOCK = 1 << 20


def digest(value: Any) -> str:
    """20 hex digits of the BLAKE2b digest of ``value`` as canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


def spec_fields(spec: Spec) -> dict[str, Any]:
    """The fields of a spec that differ from their defaults, as JSON values."""
    return spec.model_dump(mode="json", exclude_defaults=True)


def artifact_key(stage: str, version: int, spec: Spec, inputs: Mapping[str, str]) -> str:
    """The key of what ``stage`` makes from inputs with the given keys under ``spec``."""
    return digest(
        {"stage": stage, "version": version, "spec": spec_fields(spec), "inputs": dict(inputs)},
    )


def file_sha256(path: Path, names: Iterable[str] = ()) -> str:
    """SHA-256 of a file, or of a directory's file names, sizes and contents, in hexadecimal.

    Args:
        path: file or directory.
        names: of a directory, the files that count, relative to it; all, if none are named.
    """
    if path.is_dir():
        files = sorted(path / name for name in names) or sorted(p for p in path.rglob("*") if p.is_file())
        listing = [(p.relative_to(path).as_posix(), p.stat().st_size, file_sha256(p)) for p in files]
        return hashlib.sha256(json.dumps(listing).encode()).hexdigest()
    result = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            result.update(block)
    return result.hexdigest()


class FileDigests:
    """SHA-256 of input files, remembered by path, size and modification time in a JSON file.

    Args:
        memory: where the digests are kept between runs.
    """

    def __init__(self, memory: Place) -> None:
        self._memory = memory
        self._known: dict[str, str] = {}
        with contextlib.suppress(OSError, ValueError, TypeError):  # without it, files are read again
            self._known = dict(json.loads(memory.read_bytes()))

    def sha256(self, path: Path) -> str:
        """SHA-256 of ``path``; reads the file only if it has changed since it was last read."""
        return self.all_sha256([path])[0]

    def all_sha256(self, paths: Iterable[Path]) -> list[str]:
        """As :meth:`sha256` of many files, which are written down together."""
        found, before = [], len(self._known)
        for path in paths:
            stat = path.stat()
            name = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}"
            if name not in self._known:
                self._known[name] = file_sha256(path)
            found.append(self._known[name])
        if len(self._known) > before:
            self._save()
        return found

    def _save(self) -> None:
        from beirnl.store.files import write_atomically

        try:
            write_atomically(self._memory, json.dumps(self._known).encode())
        except (OSError, StoreError):
            return  # planning on a read-only workspace works, only slower
