"""Token ids that are made once: counted, sorted by, padded into batches, and fed to the model.

sentence-transformers tokenises a batch when it encodes it. To sort by length and to count what is cut, the
ids are needed before; made a second time they cost a GPU a tenth and more of its time. Whether a model takes
ids as made here is not guessed from its type: its own features of a few texts must be the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

#: Texts in one call of a tokenizer, whose answer takes a hundred bytes and more for a token.
TOKENISED = 512


class Prepared(NamedTuple):
    """Texts ready for a model.

    Attributes:
        lengths: tokens of each whole text, prompt and special tokens included.
        items: what the model is fed with: the ids that it reads, or the text itself.
    """

    lengths: list[int]
    items: list[Any]


class Tokens:
    """Makes the features of one model and one prompt from ids.

    Args:
        tokenizer: of transformers.
        prompt: stands in front of every text.
        limit: most tokens that the model reads; None: no limit.
        template: features of the model's own making, of any texts: names, and what does not depend on texts.
    """

    def __init__(self, tokenizer: Any, prompt: str, limit: int | None, template: Mapping[str, Any]) -> None:
        self._tokenizer, self._prompt, self._limit = tokenizer, prompt, limit
        self._template = template

    @classmethod
    def of(cls, model: Any, prompt: str, limit: int | None, options: Mapping[str, Any]) -> "Tokens | None":
        """Of a sentence-transformers model; None where its features are not these.

        Args:
            model: bi-encoder or cross-encoder.
            prompt: stands in front of every text.
            limit: most tokens that the model reads.
            options: arguments of the model's ``preprocess``, such as ``task``.
        """
        from transformers import PreTrainedTokenizerBase

        if not isinstance(model.tokenizer, PreTrainedTokenizerBase):
            return None
        probes = ["", "a", "Two words, then a few more: 100 °C.", "long " * ((limit or 0) + 9)]
        template = model.preprocess(probes, prompt=prompt, **options)
        tokens = cls(model.tokenizer, prompt, limit, template)
        return tokens if _equal(tokens.features(tokens.prepare(probes).items), template) else None

    def prepare(self, texts: Sequence[str]) -> Prepared:
        """Ids of texts, cut to the limit, int32 [length] each, and the lengths before the cut."""
        lengths: list[int] = []
        items: list[np.ndarray] = []
        for start in range(0, len(texts), TOKENISED):
            prompted = [self._prompt + text for text in texts[start : start + TOKENISED]]
            whole = self._ids(prompted)
            lengths.extend(len(ids) for ids in whole)
            cut = [n for n, ids in enumerate(whole) if self._limit and len(ids) > self._limit]
            read = self._ids([prompted[n] for n in cut], truncation=True, max_length=self._limit)
            for n, ids in zip(cut, read, strict=True):
                whole[n] = ids
            items.extend(np.array(ids, np.int32) for ids in whole)
        return Prepared(lengths, items)

    def features(self, items: Sequence[np.ndarray]) -> dict[str, Any]:
        """Features of one batch, on the CPU: tensors int64 [texts, longest], padded as the tokenizer pads."""
        import torch

        longest = max(len(ids) for ids in items)
        shape = (len(items), longest)
        ids = np.full(shape, self._tokenizer.pad_token_id or 0, np.int64)
        mask = np.zeros(shape, np.int64)
        left = self._tokenizer.padding_side == "left"
        for row, tokens in enumerate(items):
            place = slice(longest - len(tokens), None) if left else slice(len(tokens))
            ids[row, place], mask[row, place] = tokens, 1
        made = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros(shape, np.int64)}
        return {
            name: torch.from_numpy(made[name]) if name in made else value
            for name, value in self._template.items()
        }

    def _ids(self, texts: list[str], **options: Any) -> list[list[int]]:
        if not texts:
            return []
        found = self._tokenizer(
            texts,
            **({"truncation": False} | options),
            padding=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
        return list(found["input_ids"])


def _equal(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    """Whether every tensor was made anew, and is the same; what is no tensor was taken over."""
    import torch

    tensors = [(ours[name], value) for name, value in theirs.items() if isinstance(value, torch.Tensor)]
    return all(made is not value and torch.equal(made, value) for made, value in tensors)
