"""Low-rank adapters of tasks that lie as folders of a checkpoint, one for each task (jina-embeddings-v3-hf).

Sturua et al. 2024, *jina-embeddings-v3: Multilingual Embeddings With Task LoRA*: queries and documents are
read through an adapter each. transformers reads them with peft.
"""

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from beirnl.errors import ConfigError, PrerequisiteError


class TaskAdapters:
    """The adapters of some tasks, loaded into a model.

    Args:
        model: a sentence-transformers model.
        folder: its files.
        tasks: names of folders in it.

    Raises:
        PrerequisiteError: peft is not installed.
        ConfigError: a task has no adapter.
    """

    def __init__(self, model: Any, folder: Path, tasks: Iterable[str]) -> None:
        self._model, self._set = model[0].auto_model, ""
        if not find_spec("peft"):
            raise PrerequisiteError(
                "peft is not installed, which reads adapters of tasks",
                where=folder,
                remedy="pip install 'beirnl[adapters]'",
            )
        for task in dict.fromkeys(tasks):
            if not _is_adapter(folder / task):
                there = ", ".join(sorted(path.parent.name for path in folder.glob("*/adapter_config.json")))
                raise ConfigError(
                    f"this model has no adapter of the task {task!r}",
                    where=folder,
                    remedy=f"use one of: {there}",
                )
            self._model.load_adapter(str(folder / task), adapter_name=task)
        self._model.eval()

    @classmethod
    def of(cls, model: Any, folder: Path, tasks: Iterable[str]) -> "TaskAdapters | None":
        """Those of the tasks that are named; None where none is, or the model has no folders of them."""
        named = [task for task in tasks if task]
        return cls(model, folder, named) if any(_is_adapter(folder / task) for task in named) else None

    def set(self, task: str) -> None:
        """Read through the adapter of a task from now on."""
        if task != self._set:
            self._model.set_adapter(task)
            self._set = task


def _is_adapter(folder: Path) -> bool:
    return (folder / "adapter_config.json").is_file()
