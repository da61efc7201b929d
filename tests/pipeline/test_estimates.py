"""What `plan --estimate` predicts of retrieval, beside what a run then makes; and what it refuses."""

import os
import random
import re
import subprocess
import sys

import pytest
import tiny_models
import torch
from beir_folder import doc, query, write_beir
from running import BM25, ENVIRONMENT, dataset, experiment, run, system
from translating import command, documents, translation, write_set

from beirnl import estimates
from beirnl.config import load_experiment
from beirnl.errors import ConfigError, StoreError
from beirnl.estimates.machine import Machine
from beirnl.estimates.measuring import written
from beirnl.estimates.probes import Prober
from beirnl.estimates.rendering import size_text, total
from beirnl.executors.local import LocalExecutor
from beirnl.pipeline import Pipeline

NEAR = 20_000  # bytes by which small files may differ


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A tiny encoder and a tiny cross-encoder that read letters, so that texts differ in their vectors."""
    from transformers import BertConfig, BertForSequenceClassification, BertModel, BertTokenizerFast

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("models")
    signs = [*map(chr, range(97, 123)), *map(str, range(10))]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *signs, *(f"##{sign}" for sign in signs)]
    (folder / "words.txt").write_text("\n".join(words))
    sizes = tiny_models.SIZES | {"vocab_size": len(words), "num_hidden_layers": 1}
    for name, kind in (("base", BertModel), ("cross", BertForSequenceClassification)):
        kind(BertConfig(**sizes, num_labels=1)).save_pretrained(folder / name)
        BertTokenizerFast(vocab=str(folder / "words.txt"), model_max_length=32).save_pretrained(folder / name)
    tiny_models.sentence_transformer(folder / "encoder", folder / "base")
    return folder


@pytest.fixture(scope="module")
def encoder(models):
    return models / "encoder"


SAMPLE = '[[dataset]]\nname = "sample"\n'


def searches(encoder):
    """Every kind of search that has an index, and their fusion."""
    return (
        BM25
        + system("bm25", "sharded", shards=3)
        + system("dense", "exact", model=encoder, max_tokens=16)
        + system("dense", "graph", model=encoder, max_tokens=16, search="ann")
        + "ann = { min_recall = 0.0 }\n"
        + '[[system]]\nkind = "fusion"\nname = "both"\nof = ["bm25", "exact"]\n'
    )


def second_stages(models):
    """Rerankers, and late interaction with and without a first stage."""
    return (
        BM25
        + system("rerank", "cross", first="bm25", model=models / "cross", depth=5)
        + system("late", "second", first="bm25", model=models / "encoder", depth=5)
        + system("late", "late", model=models / "encoder")
    )


def a_corpus(folder, number, queries=60):
    """Documents of words with a Zipfian distribution, and queries of a few of them."""
    draw = random.Random(number)
    words = [f"{draw.choice('bdfghklmnprst')}{n:x}" for n in range(20_000)]

    def text(length):
        return " ".join(words[int(len(words) ** draw.random()) - 1] for _ in range(length))

    rows = [doc(f"doc-{n}", text(draw.randint(10, 60)), text(3)) for n in range(number)]
    asked = [query(f"q{n}", text(8)) for n in range(queries)]
    return write_beir(folder, rows, asked, [(one["_id"], "doc-0", 1) for one in asked])


def pipeline_of(path):
    """An experiment whose sources are imported."""
    pipeline = Pipeline.of(load_experiment(path))
    pipeline.run(LocalExecutor(), nodes=estimates.sources(pipeline))
    return pipeline


def made_by(pipeline, node):
    """Rows and bytes of what a run has made of a node."""
    artifact = node.artifact(pipeline.workspace)
    manifest = artifact.manifest
    receipts = [*manifest.receipts, *([manifest.reduced] if manifest.reduced else [])]
    rows = sum(receipt.rows_in for receipt in manifest.receipts)
    return rows, written(artifact.directory, receipts)


def files(folder):
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


# What is predicted ------------------------------------------------------------------------------------------


def test_a_run_of_5000_documents_makes_what_was_predicted(tmp_path, encoder):
    check(experiment(tmp_path, dataset(a_corpus(tmp_path / "set", 5_000)) + searches(encoder)))


def test_a_run_of_the_sample_makes_what_was_predicted(tmp_path, models, monkeypatch):
    path = experiment(tmp_path, SAMPLE + second_stages(models))
    check(path)
    # What is done is neither probed nor counted.
    monkeypatch.setattr(Prober, "_run", None)
    rows = estimates.forecast(Pipeline.of(load_experiment(path)))
    assert rows and all(row.origin == "done" for row in rows)
    assert sum(row.disk + row.hours.high for row in rows) == 0


def check(path):
    """Compare an estimate with what a run then makes."""
    pipeline = pipeline_of(path)
    before = files(pipeline.workspace.root)
    rows = estimates.forecast(pipeline)
    assert files(pipeline.workspace.root) == before, "an estimate leaves nothing behind"
    assert {row.origin for row in rows} == {"probe"}
    run(path)
    real = [made_by(pipeline, row.node) for row in rows]
    for row, (made, disk) in zip(rows, real, strict=True):
        name = f"{row.node.stage} {row.node.purpose}"
        of_scores = row.node.stage in ("fuse", "evaluate")  # which compress as it happens
        assert row.disk == pytest.approx(disk, rel=0.8 if of_scores else 0.25, abs=NEAR), name
        assert row.rows == made or (made < row.rows and row.counted in ("pairs", "hits")), name
        assert row.memory > 20e6 and row.hours.low <= row.hours.mid <= row.hours.high
    assert sum(row.disk for row in rows) == pytest.approx(sum(disk for _, disk in real), rel=0.25)


def test_the_table_names_every_artifact_and_what_is_known_of_it(tmp_path, encoder):
    path = experiment(tmp_path, SAMPLE + BM25 + system("dense", "e", model=encoder))
    said = command("plan", path, "--estimate")
    assert said.code == 0
    lines = [re.split(r"\s{2,}", line.strip()) for line in said.out.splitlines()]
    found = {(line[0], line[2]): line for line in lines if len(line) == 7}
    assert {stage for stage, _ in found} == {"index", "search-bm25", "embed", "search-exact", "evaluate"} | {
        "stage"
    }
    line = found["index", "63 documents"]
    assert line[3].endswith("kB") and line[4].endswith("MB") and line[5:] == ["< 0.01", "probe"]
    assert ("search-bm25", "25 queries") in found and ("embed", "25 texts") in found
    assert lines[-1][0] == "total" or "total" in said.out
    assert said.err.count("probe ") == 2 * 5, "each distinct piece of work once, and it says which"


def test_probes_run_the_package_that_predicts_wherever_it_is_called(tmp_path):
    """Another package of the name lies in the folder of the call, as in that of another checkout."""
    (tmp_path / "elsewhere" / "beirnl").mkdir(parents=True)
    (tmp_path / "elsewhere" / "beirnl" / "__init__.py").touch()
    script = tmp_path / "script.py"
    script.write_text("from beirnl.cli import main\n\nif __name__ == '__main__':\n    main()\n")
    done = subprocess.run(
        [sys.executable, script, "plan", experiment(tmp_path, SAMPLE + BM25), "--estimate"],
        env=os.environ | ENVIRONMENT,
        cwd=tmp_path / "elsewhere",
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0 and "not known" not in done.stdout, done.stdout + done.stderr


def test_rates_of_finished_units_come_before_a_probe(tmp_path, encoder):
    place = a_corpus(tmp_path / "set", 600)
    path = experiment(tmp_path, dataset(place, shard_documents=80) + system("dense", "e", model=encoder))
    pipeline = run(path)
    node = next(n for n in pipeline.graph.nodes.values() if n.stage == "embed" and "document" in n.purpose)
    artifact = node.artifact(pipeline.workspace)
    whole, disk = made_by(pipeline, node)
    receipts = artifact.receipts()
    (artifact.directory / "manifest.json").unlink()
    for receipt in receipts[2:]:
        (artifact.directory / "receipts" / f"{receipt.unit:05d}.json").unlink()
    row = next(
        row for row in estimates.forecast(Pipeline.of(load_experiment(path))) if row.node.key == node.key
    )
    assert row.origin == "2 finished units" and row.rows == whole
    left = sum(receipt.rows_in for receipt in receipts[2:]) / whole
    assert row.disk == pytest.approx(left * disk, rel=0.1)
    rate = sum(receipt.seconds for receipt in receipts[:2]) / sum(receipt.rows_in for receipt in receipts[:2])
    assert row.hours.mid * 3600 == pytest.approx(left * whole * rate, rel=0.01)


def test_a_translation_has_as_many_rows_as_its_source_and_both_estimates_are_shown(tmp_path):
    place = write_set(tmp_path / "set", documents(40), ("What is a cell?", "Who built it?"))
    path = experiment(tmp_path, dataset(place) + BM25 + translation())
    said = command("plan", path, "--estimate")
    assert said.code == 0
    assert "own document" in said.out and "own/nl elasticsearch  40 documents" in re.sub(
        r" {3,}", "  ", said.out
    )
    assert not (tmp_path / "workspace" / "journal").exists()


# What is not known ------------------------------------------------------------------------------------------


def test_what_is_not_on_this_machine_is_not_made_up(tmp_path, encoder):
    api = system("dense", "api", model="text-embedding-3-large", engine="openai")
    place = dataset(a_corpus(tmp_path / "set", 200))
    path = experiment(tmp_path, place + api + system("dense", "hub", model="bge-m3"))
    rows = estimates.forecast(pipeline_of(path))
    found = {(row.node.purpose, row.node.stage): row for row in rows}
    for name, reason in (
        ("text-embedding-3-large", "asked of an API"),
        ("bge-m3", "neither in the hub cache"),
    ):
        row = found[f"{name}, document", "embed"]
        assert row.hours is None and row.memory is None
        assert row.origin.startswith("not known: ") and reason in row.origin
    stated = 200 * 3072 * (4 + 16 / 3)  # the vectors, and in base64 the journal
    assert found["text-embedding-3-large, document", "embed"].disk == pytest.approx(stated)
    assert found["bge-m3, document", "embed"].disk == 200 * 1024 * 4
    assert found["hub", "search-exact"].origin == "probe", "its dimension is in the registry"
    assert "+ ?" in " ".join(total(rows))


def test_hours_on_a_gpu_are_not_those_of_a_cpu(tmp_path, encoder):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    text = SAMPLE + BM25 + system("dense", "e", model=encoder)
    rows = estimates.forecast(pipeline_of(experiment(tmp_path, text + "[runtime]\ngpus = 1\n")))
    for row in rows:
        on_gpu = row.node.stage in ("embed", "search-exact")
        assert (row.hours is None) == on_gpu
        assert not on_gpu or re.search("a GPU, which this machine lacks|how many numbers", row.origin)


def test_a_model_whose_dimension_nobody_states_leaves_its_search_unknown(tmp_path):
    text = SAMPLE + system("dense", "e", model="some/where")
    rows = estimates.forecast(pipeline_of(experiment(tmp_path, text)))
    assert [row.disk for row in rows if row.node.stage == "embed"] == [None, None]
    (search,) = (row for row in rows if row.node.stage == "search-exact")
    assert search.origin == "not known: how many numbers a vector has" and search.hours is None


# What is refused --------------------------------------------------------------------------------------------


def refused(path, monkeypatch, **there):
    """The error of an estimate on a machine with so much memory or disk, after its table."""
    machine = Machine(memory=there.get("memory", 1 << 40), disk=there.get("disk", 1 << 50))
    monkeypatch.setattr(estimates, "this_machine", lambda workspace: machine)
    said = command("plan", path, "--estimate")
    assert "how known" in said.out and "total" in said.out
    return said.error


def test_what_does_not_fit_on_the_disk_is_refused_with_the_number(tmp_path, monkeypatch):
    path = experiment(tmp_path, dataset(a_corpus(tmp_path / "set", 3_000)) + BM25)
    rows = estimates.forecast(pipeline_of(path))
    needed = sum(row.disk for row in rows)
    line = refused(path, monkeypatch, disk=int(needed / 2))
    assert f"about {size_text(needed)} are to be written" in line
    assert f"has {size_text(int(needed / 2))} free" in line and "shards = 2" in line
    assert "index for own/en" in line
    monkeypatch.setattr(estimates, "this_machine", lambda workspace: Machine(1 << 40, int(needed * 1.1)))
    assert command("plan", path, "--estimate").code == 0


def test_what_does_not_fit_into_memory_is_refused_with_the_number(tmp_path, encoder, monkeypatch):
    text = '[[dataset]]\nname = "sample"\nshard_documents = 8\n' + system("dense", "e", model=encoder)
    path = experiment(tmp_path, text + "[runtime]\nworkers = 4\nthreads = 1\n")
    line = refused(path, monkeypatch, memory=1_000_000_000)
    told = re.search(r"embed for sample/en .* takes about (\d+)\.\d MB each, 4 workers (\d\.\d) GB", line)
    assert told and 4e-3 * float(told[1]) == pytest.approx(float(told[2]), abs=0.1)
    assert "this machine has 1.0 GB of memory; set workers = " in line


def test_too_many_passages_for_late_interaction_are_refused_as_soon_as_they_are_counted(tmp_path, encoder):
    late = system("late", "late", model=encoder, max_passages=50)
    path = experiment(tmp_path, SAMPLE + BM25 + late)
    assert command("plan", path).code == 0, "before the import nobody knows"
    with pytest.raises(ConfigError, match="takes 50 passages at most, not 63; let another system"):
        run(path)
    done = {
        p.parent.name
        for p in (tmp_path / "workspace" / "artifacts").glob("*/*")
        if list(p.rglob("manifest.json"))
    }
    assert done == {"import-corpus", "import-queries", "import-qrels"} & done, "nothing else was begun"
    said = command("plan", path)
    assert "import-corpus" in said.out and "takes 50 passages at most, not 63" in said.error
    assert "takes 50 passages at most, not 63" in command("plan", path, "--estimate").error


def test_a_run_refuses_vectors_that_the_disk_cannot_take(tmp_path, monkeypatch):
    api = system("dense", "api", model="text-embedding-3-large", engine="openai")
    path = experiment(tmp_path, SAMPLE + api)
    pipeline_of(path)
    monkeypatch.setattr("beirnl.graph.expected.free_bytes", lambda folder: 500_000)
    monkeypatch.setenv("OPENAI_API_KEY", "never-sent")
    with pytest.raises(StoreError, match=r"vectors to be made take 0\.0 GB .* free space"):
        run(path)
