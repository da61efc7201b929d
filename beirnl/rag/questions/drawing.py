"""Which documents are asked for questions, and which part of a long one: by seed, without replacement."""

import random
from collections.abc import Callable, Hashable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from beirnl.specs import QuestionSpec
from beirnl.translation.splitting import sentences

_STRATA = 4  # quartiles of length
_CHARACTERS_PER_TOKEN = 12  # more than texts have on average in any script and vocabulary


def dice(*parts: object) -> random.Random:
    """Chance that depends on nothing but ``parts``."""
    return random.Random("\0".join(map(str, parts)))


def draw(documents: pa.Table, spec: QuestionSpec) -> list[int]:
    """Rows of the documents that can be asked, in the order in which they are drawn.

    Each document's place is drawn by its id, so that more questions, or other documents beside it, leave the
    first ones as they were. Stratified, every beginning of the order holds of each stratum its share
    (proportionate allocation).

    Args:
        documents: schema ``DOCUMENTS``.
        spec: seed, strata and how short a document may be.
    """
    words = [len(text.split()) for text in documents["text"].to_pylist()]
    rows = [row for row, count in enumerate(words) if count >= spec.min_words]
    ids = documents["id"].to_pylist()
    ranked = sorted(rows, key=lambda row: (dice(spec.seed, ids[row]).random(), ids[row]))
    strata = _strata(documents, rows, spec)
    return _interleaved(ranked, strata) if strata else ranked


def _strata(documents: pa.Table, rows: Sequence[int], spec: QuestionSpec) -> dict[int, Hashable]:
    """The stratum of each row: its folder, or its quartile of length."""
    if not spec.stratify or not rows:
        return {}
    if spec.stratify == "group":
        groups = documents["group"].to_pylist()
        return {row: groups[row] for row in rows}
    lengths = pc.utf8_length(documents["text"]).to_numpy()[rows]
    bounds = np.quantile(lengths, np.arange(1, _STRATA) / _STRATA)
    return dict(zip(rows, np.searchsorted(bounds, lengths).tolist(), strict=True))


def _interleaved(ranked: Sequence[int], strata: dict[int, Hashable]) -> list[int]:
    """The n-th of a stratum of m stands where (n + 1/2) / m of all have been drawn."""
    members: dict[Hashable, list[int]] = {}
    for row in ranked:
        members.setdefault(strata[row], []).append(row)
    place = {row: (n + 0.5) / len(rows) for rows in members.values() for n, row in enumerate(rows)}
    return sorted(ranked, key=place.__getitem__)


def window(text: str, budget: int, count: Callable[[str], int], chance: random.Random) -> str:
    """The text, or whole sentences of a part of it that is drawn where it is too long.

    Args:
        text: of a document.
        budget: most tokens.
        count: tokens of a text.
        chance: draws the part.
    """
    size = min(len(text), _CHARACTERS_PER_TOKEN * budget)
    if size == len(text) and count(text) <= budget:
        return text
    where = chance.random()
    while count(text[(start := int(where * (len(text) - size + 1))) : start + size]) > budget and size > 1:
        size = size * 3 // 4
    pieces = sentences(text[start : start + size])
    whole = pieces[start > 0 : len(pieces) - (start + size < len(text))] or pieces
    return "".join(piece.gap + piece.text for piece in whole).strip()
