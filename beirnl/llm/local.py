"""What engines that run the model themselves have in common: its files, its tokens, its batches."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from beirnl.errors import ConfigError, PrerequisiteError
from beirnl.llm.protocol import Answer, Request
from beirnl.specs import LlmSpec, ModelRef

BATCH_TOKENS = 32768  # prompt and answer tokens held at once; bounds the memory of keys and values
BATCH_ROWS = 64
#: UTF-8 bytes per token where the tokenizer is not at hand. Western languages have 3.5 to 4.5 with today's
#: vocabularies, so this overestimates their tokens; digits and rare scripts can have fewer.
BYTES_PER_TOKEN = 3
_SPECIAL = 3  # begin, end and language code of a source


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


def load_config(spec: LlmSpec) -> Any:
    """The model's configuration; the weights are not read.

    Raises:
        ConfigError: transformers does not know this kind of model.
    """
    from transformers import AutoConfig

    folder = model_folder(spec)
    try:
        return AutoConfig.from_pretrained(folder, trust_remote_code=_own_code(spec))
    except (ValueError, OSError) as error:
        raise ConfigError(
            f"transformers cannot read the model's configuration ({last_line(error)})",
            where=folder / "config.json",
            remedy="name a language model, or install a newer transformers",
        ) from error


def load_tokenizer(spec: LlmSpec) -> Any:
    """The model's own tokenizer; the weights are not read."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model_folder(spec), trust_remote_code=_own_code(spec))


def load_weights(auto_class: Any, spec: LlmSpec) -> Any:
    """The model, on a GPU where there is one, ready to answer.

    Args:
        auto_class: the class of transformers that loads it, such as ``AutoModelForCausalLM``.
        spec: model and dtype.
    """
    import torch

    model = auto_class.from_pretrained(
        model_folder(spec), dtype=getattr(torch, spec.dtype), trust_remote_code=_own_code(spec)
    )
    return model.to("cuda" if torch.cuda.is_available() else "cpu").eval()


def end_tokens(model: Any, tokenizer: Any) -> list[int]:
    """Tokens that end an answer: those of the generation config and of the tokenizer."""
    configured = model.generation_config.eos_token_id
    ends = configured if isinstance(configured, list) else [configured]
    return sorted({token for token in (*ends, tokenizer.eos_token_id) if token is not None})


def sampling(temperature: float) -> dict[str, Any]:
    """Arguments of ``generate``: the likeliest tokens, or the whole distribution, whatever the model's own
    defaults are."""
    if temperature == 0:
        return {"do_sample": False}
    return {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0}


def read_answer(
    decode: Callable[[list[int]], str],
    tokens: Sequence[int],
    ends: Sequence[int],
    stop: Sequence[str],
    prompt_tokens: int,
) -> Answer:
    """An answer out of the tokens of one row of a batch, which may run on in padding.

    Args:
        decode: tokens into text.
        tokens: what the model wrote, as far as it had room.
        ends: tokens that end an answer, padding included.
        stop: strings before which it ends.
        prompt_tokens: of its prompt.
    """
    last = next((n for n, token in enumerate(tokens) if token in ends), len(tokens))
    text, stopped = cut_at_stop(decode(list(tokens[:last])), stop)
    ended = last < len(tokens)
    return Answer(text, "stop" if stopped or ended else "length", prompt_tokens, last + ended)


def _own_code(spec: LlmSpec) -> bool:
    return bool(spec.model and spec.model.trust_remote_code)


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


@cache
def source_window(spec: LlmSpec) -> int | None:
    """Tokens that a source may have in a sequence-to-sequence model, whose answer has a window of its own.

    None for a causal model: ``spec.max_model_len`` is for prompt and answer together.

    Raises:
        ConfigError, PrerequisiteError: the engine loads a model, and it is not there.
    """
    from beirnl.llm import ENGINES

    if not ENGINES[spec.engine].weights or not (config := load_config(spec)).is_encoder_decoder:
        return None
    return min(spec.max_model_len, positions(config) or spec.max_model_len) - _SPECIAL


def positions(config: Any) -> int | None:
    """Positions of the encoder, and of the decoder, that a sequence-to-sequence model was trained with."""
    return getattr(config, "max_position_embeddings", None)


@cache
def counter(spec: LlmSpec) -> Callable[[str], int]:
    """What counts the tokens of a text for this model, without special tokens; may be shared by threads.

    The model's own tokenizer where the engine loads the model; for a model that is reached over the network
    its tokenizer if it happens to be on this machine, else one token per :data:`BYTES_PER_TOKEN` bytes.

    Raises:
        ConfigError, PrerequisiteError: the engine loads a model, and it is not there.
    """
    from beirnl.llm import ENGINES

    if ENGINES[spec.engine].weights:
        folder: Path | None = model_folder(spec)
    else:
        folder = _folder_at_hand(spec.model) if spec.model else None
    if folder is None:
        return estimate_tokens
    if not (folder / "tokenizer.json").is_file():
        tokenizer = load_tokenizer(spec)
        return lambda text: len(tokenizer(text, add_special_tokens=False)["input_ids"])
    from tokenizers import Tokenizer

    fast = Tokenizer.from_file(str(folder / "tokenizer.json"))
    fast.no_truncation()
    fast.no_padding()
    return lambda text: len(fast.encode(text, add_special_tokens=False).ids)


def estimate_tokens(text: str) -> int:
    """A cautious number of tokens from the number of bytes; see :data:`BYTES_PER_TOKEN`."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def _folder_at_hand(model: ModelRef) -> Path | None:
    """Where the tokenizer of a model that is served elsewhere lies here; nothing is downloaded for it."""
    from beirnl.models import model_path
    from beirnl.registry import find_model, resolve_model

    name = model.source.partition(":")[2]
    entry = find_model(model.name) or find_model(name)
    folder: Path | None = None
    if entry is None:
        folder = Path(name)
    elif entry.package:
        try:
            folder = model_path(resolve_model(entry.name, entry.kind))
        except PrerequisiteError:
            return None
    else:
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(entry.hub, "tokenizer.json", revision=entry.revision or None)
        folder = Path(found).parent if isinstance(found, str) else None
    return folder if folder and (folder / "tokenizer.json").is_file() else None


def cut_at_stop(text: str, stop: Sequence[str]) -> tuple[str, bool]:
    """The text before the first stop string, and whether there was one."""
    places = [place for place in (text.find(string) for string in stop if string) if place >= 0]
    return (text[: min(places)], True) if places else (text, False)


def batches(places: Sequence[int], prompts: Sequence[int], rooms: Sequence[int]) -> list[list[int]]:
    """Places in batches of like length, longest first, so that what does not fit shows at once.

    Args:
        places: which requests to put in batches.
        prompts: tokens of the prompt, by place.
        rooms: most tokens of the answer, by place.
    """
    done: list[list[int]] = []
    longest = 0
    for place in sorted(places, key=lambda n: (-prompts[n], n)):
        if not done or len(done[-1]) == BATCH_ROWS or (len(done[-1]) + 1) * longest > BATCH_TOKENS:
            done.append([])
            longest = 0
        done[-1].append(place)
        longest = max(longest, prompts[place] + rooms[place])
    return done


def last_line(error: BaseException) -> str:
    """The last line of an error's text: where libraries put the cause."""
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]
