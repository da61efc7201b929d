"""What engines that run the model themselves have in common: its folder, its tokens, its window."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from beirnl.errors import ConfigError, PrerequisiteError
from beirnl.llm.protocol import Request
from beirnl.specs import LlmSpec


def model_folder(spec: LlmSpec) -> Path:
    """The folder with the model's weights.

    Raises:
        ConfigError: the spec names no model.
        PrerequisiteError: the model is not there.
    """
    if spec.model is None:
        raise ConfigError(f"engine {spec.engine!r} needs a model", remedy="set `model` under [translation]")
    from beirnl.models import model_path

    folder = model_path(spec.model)
    if not (folder / "config.json").is_file():
        raise PrerequisiteError(
            "this folder holds no model: config.json is missing",
            where=folder,
            remedy="give a folder written by save_pretrained",
        )
    return folder


def token_ids(tokenizer: Any, request: Request) -> list[int]:
    """The tokens of a request, begin-of-text included, exactly as the model was trained to see them.

    Raises:
        ConfigError: messages for a model that has no chat template.
    """
    if request.messages is None:
        return list(tokenizer(request.prompt)["input_ids"])
    if not getattr(tokenizer, "chat_template", None):
        raise ConfigError(
            "the prompt is a chat, and this model has no chat template",
            where=getattr(tokenizer, "name_or_path", None),
            remedy='use an instruction-tuned model, or a prompt with form = "completion"',
        )
    messages = [{"role": role, "content": content} for role, content in request.messages]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def cut_at_stop(text: str, stop: Sequence[str]) -> tuple[str, bool]:
    """The text before the first stop string, and whether there was one."""
    places = [place for place in (text.find(string) for string in stop if string) if place >= 0]
    return (text[: min(places)], True) if places else (text, False)
