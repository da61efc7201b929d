"""Language adapters: models with a module per language, which read all input through the one that is set.

XMOD is such a model (Pfeiffer et al. 2022, *Lifting the Curse of Multilinguality by Pre-training Modular
Transformers*), and what is made from it: DPR-XM, ColBERT-XM.
"""

from typing import Any

from beirnl.errors import ConfigError

_NAMED = 12


def has_adapters(model: Any) -> bool:
    """Whether a torch module reads through adapters of languages, wherever in it they are."""
    return bool(_adapted(model))


def _adapted(model: Any) -> list[Any]:
    return [module for module in model.modules() if hasattr(module, "set_default_language")]


def set_language(model: Any, language: str, name: str) -> str:
    """Set the adapter through which a model reads from now on, queries and documents alike.

    Args:
        model: a torch module; adapters are found wherever they are in it.
        language: ISO 639-1 code of the text (``nl``), or the model's own code (``nl_XX``); empty for none.
        name: of the model, for errors.

    Returns:
        The model's own code of the adapter; empty for a model without adapters.

    Raises:
        ConfigError: the model has adapters and no language is named or known to it, or it has none and a
            language is named.
    """
    adapted = _adapted(model)
    if not adapted:
        if language:
            raise ConfigError(
                f"this model has no adapters of languages, and is to be used with {language!r}",
                where=name,
                remedy="leave `language_adapter` out",
            )
        return ""
    code = adapter_code(list(adapted[0].config.languages), language, name)
    for module in adapted:
        module.set_default_language(code)
    return code


def adapter_code(codes: list[str], language: str, name: str) -> str:
    """The code among ``codes`` that a language means; of several (``zh_CN``, ``zh_TW``), the first.

    Raises:
        ConfigError: there is none; names those that there are.
    """
    for code in codes:
        if language and language.lower() in (code.lower(), code.lower().partition("_")[0]):
            return code
    missing = f"has none for {language!r}" if language else "no language is named"
    listed = ", ".join(codes[:_NAMED]) + (f" and {len(codes) - _NAMED} more" if len(codes) > _NAMED else "")
    raise ConfigError(
        f"this model reads through adapters of languages, and {missing}",
        where=name,
        remedy=f"set `language_adapter` to one of: {listed}",
    )
