"""Random checkpoints of real architectures, small enough to be made in a test."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

_TEXT = "query passage : . , a the water boils at 100 degrees court sets fine vaccines train immune system"
WORDS = _TEXT.split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SIZES = {
    "vocab_size": len(SPECIAL) + len(WORDS),
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
    "initializer_range": 0.5,  # so that what differs in weights differs in vectors
}


def tokenizer(folder: Path, **settings: Any) -> Any:
    """A WordPiece tokenizer of a few words."""
    from transformers import BertTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "words.txt"
    file.write_text("\n".join([*SPECIAL, *WORDS]))
    return BertTokenizerFast(vocab=str(file), model_max_length=32, **settings)


def bert(folder: Path, seed: int = 0, **settings: Any) -> Path:
    """A BERT encoder with its tokenizer."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(seed)
    return _saved(folder, BertModel(BertConfig(**SIZES)), tokenizer(folder, **settings))


def cross_encoder(folder: Path, seed: int = 0) -> Path:
    """A BERT that scores pairs."""
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(seed)
    model = BertForSequenceClassification(BertConfig(**SIZES, num_labels=1))
    return _saved(folder, model, tokenizer(folder))


def xlm_roberta(folder: Path, seed: int = 0, labels: int = 0) -> Path:
    """An XLM-R encoder, or with ``labels`` a classifier of pairs."""
    import transformers

    torch.manual_seed(seed)
    config = transformers.XLMRobertaConfig(**SIZES, pad_token_id=0, type_vocab_size=2, num_labels=labels or 2)
    name = "XLMRobertaForSequenceClassification" if labels else "XLMRobertaModel"
    return _saved(folder, getattr(transformers, name)(config), tokenizer(folder))


def jina_v3(folder: Path, seed: int = 0) -> Path:
    """jina-embeddings-v3 as transformers has it: XLM-R with rotary positions."""
    from transformers import JinaEmbeddingsV3Config, JinaEmbeddingsV3Model

    torch.manual_seed(seed)
    model = JinaEmbeddingsV3Model(JinaEmbeddingsV3Config(**SIZES, pad_token_id=0, type_vocab_size=2))
    return _saved(folder, model, tokenizer(folder))


def new_model(folder: Path, name: str, code: str = "", seed: int = 0) -> Any:
    """A checkpoint of ``new_model/modeling.py``, and the model that it was saved from.

    Args:
        folder: where it is written, and beside it its code.
        name: of its class.
        code: repository that has the code; empty: the folder itself.
        seed: of its weights.
    """
    from new_model import configuration, modeling

    torch.manual_seed(seed)
    config = configuration.NewConfig(vocab_size=SIZES["vocab_size"], num_labels=1)
    model = getattr(modeling, name)(config)
    _saved(folder, model, tokenizer(folder))
    prefix = f"{code}--" if code else ""
    classes = {"AutoConfig": "configuration.NewConfig", "AutoModel": "modeling.NewModel"}
    classes["AutoModelForSequenceClassification"] = "modeling.NewForSequenceClassification"
    facts = json.loads((folder / "config.json").read_text())
    facts["auto_map"] = {use: prefix + reference for use, reference in classes.items()}
    (folder / "config.json").write_text(json.dumps(facts))
    if not code:
        copy_code(folder)
    return model


def copy_code(folder: Path) -> None:
    """The code of ``new_model``, as a repository has it."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in (Path(__file__).parent / "new_model").glob("*.py"):
        shutil.copy(file, folder)


def xmod(folder: Path, languages: Sequence[str], seed: int = 0) -> Path:
    """An XMOD encoder with an adapter for each language."""
    from transformers import XmodConfig, XmodModel

    torch.manual_seed(seed)
    config = XmodConfig(**SIZES, languages=list(languages), pad_token_id=0, adapter_reduction_factor=2)
    model = XmodModel(config)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return _saved(folder, model, tokenizer(folder))


def sentence_transformer(
    folder: Path, base: Path, *modules: Any, pooling: str = "mean", **settings: Any
) -> Path:
    """A folder as sentence-transformers saves it: the base model, pooling, and further modules."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    transformer = Transformer(str(base), max_seq_length=32)
    pool = Pooling(transformer.get_embedding_dimension(), pooling_mode=pooling, **settings)
    SentenceTransformer(modules=[transformer, pool, *modules], device="cpu").save(str(folder))
    return folder


def add_module(folder: Path, code: str, name: str) -> None:
    """Put a module of the model's own code in the place of its first one."""
    (folder / "own_code.py").write_text(code)
    modules = json.loads((folder / "modules.json").read_text())
    modules[0] |= {"type": f"own_code.{name}", "kwargs": ["task"]}
    (folder / "modules.json").write_text(json.dumps(modules))


def _saved(folder: Path, model: Any, words: Any) -> Path:
    model.eval().save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def asymmetric(folder: Path, query: Path, document: Path) -> Path:
    """Queries and documents have a model each."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Router
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    def route(base: Path) -> list[Any]:
        transformer = Transformer(str(base), max_seq_length=32)
        return [transformer, Pooling(transformer.get_embedding_dimension(), pooling_mode="mean")]

    router = Router.for_query_document(query_modules=route(query), document_modules=route(document))
    SentenceTransformer(modules=[router], device="cpu").save(str(folder))
    return folder


def static(folder: Path) -> Path:
    """A mean of word vectors, without a transformer and without its tokenizer."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    words = tokenizer(folder.with_name("words")).backend_tokenizer
    vectors = torch.randn(words.get_vocab_size(), 16, generator=torch.Generator().manual_seed(3))
    SentenceTransformer(modules=[StaticEmbedding(words, embedding_weights=vectors)], device="cpu").save(
        str(folder)
    )
    return folder
