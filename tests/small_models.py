"""Random checkpoints of real architectures, and sets of texts in their vocabulary, of any size."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np

SYLLABLES = [a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "an", "er")]
_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def _checkpoint(folder: Path, kind: str, width: int, layers: int, **settings: Any) -> Path:
    """A BERT of a class of transformers, with a tokenizer of syllables."""
    import torch
    import transformers

    torch.manual_seed(0)
    folder.mkdir(parents=True)
    pieces = [*_SPECIAL, *SYLLABLES, *(f"##{syllable}" for syllable in SYLLABLES)]
    (folder / "vocab.txt").write_text("\n".join(pieces))
    config = transformers.BertConfig(
        vocab_size=30522,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 32,
        intermediate_size=4 * width,
        **settings,
    )
    getattr(transformers, kind)(config).eval().save_pretrained(folder)
    tokenizer = transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=512)
    tokenizer.save_pretrained(folder)
    return folder


def cross_encoder(folder: Path, width: int = 384, layers: int = 6) -> Path:
    """A cross-encoder; by default of MiniLM-L6's shape."""
    return _checkpoint(folder, "BertForSequenceClassification", width, layers, num_labels=1)


def bi_encoder(folder: Path, width: int = 384, layers: int = 6, **settings: Any) -> Path:
    """A bi-encoder with mean pooling, as sentence-transformers saves it."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    bert = _checkpoint(folder / "bert", "BertModel", width, layers, **settings)
    modules = [Transformer(str(bert)), Pooling(width, pooling_mode="mean")]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder / "encoder"))
    return folder / "encoder"


def write_set(folder: Path, documents: int, queries: int, seed: int = 1) -> Path:
    """Documents of 46 words on average (lognormal), each word one to three pieces; queries of 8 words."""
    draw, lengths = random.Random(seed), np.random.default_rng(seed).lognormal(3.7, 0.5, documents)
    words = ["".join(draw.choices(SYLLABLES, k=draw.choice((1, 1, 2, 3)))) for _ in range(20_000)]

    def text(length: float) -> str:
        return " ".join(draw.choices(words, k=max(1, int(length))))

    (folder / "qrels").mkdir(parents=True)
    for name, rows in (
        ("corpus", ({"_id": f"d{n}", "text": text(length)} for n, length in enumerate(lengths))),
        ("queries", ({"_id": f"q{n}", "text": text(8)} for n in range(queries))),
    ):
        with (folder / f"{name}.jsonl").open("w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    (folder / "qrels" / "test.tsv").write_text("".join(f"q{n}\td0\t1\n" for n in range(queries)))
    return folder
