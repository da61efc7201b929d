"""Drawing the sample: uniform, the same whatever the shards, from what is finished only."""

import json
import random
from collections import Counter
from importlib import resources
from types import SimpleNamespace

import pyarrow as pa
import pytest
from running import experiment, run

from beirnl.audit.sampling import draw, sample
from beirnl.audit.sheet import read_sheet, write_sheet
from beirnl.audit.translations import TranslatedSet
from beirnl.errors import ConfigError, PrerequisiteError, StoreError
from beirnl.graph import Graph, Translation
from beirnl.pipeline import Pipeline
from beirnl.schema import CORPUS, TRANSLATED
from beirnl.store.artifacts import Artifact, Manifest, close_artifact
from beirnl.store.writing import PartWriter


def _artifact(folder, shards, schema):
    receipts = []
    for unit, rows in enumerate(shards):
        out = PartWriter(folder, unit, "run")
        out.write(pa.Table.from_pylist(rows, schema=schema), schema)
        receipts.append(out.commit())
    manifest = Manifest(
        stage="s", label="l", key="k", spec={}, inputs={}, versions={}, content="c", receipts=tuple(receipts)
    )
    close_artifact(folder, manifest)
    return Artifact(folder)


def _set(folder, rows, *, shards=1, kind="document", dataset="own", part="", shuffle=None):
    """Rows and their translations in so many shards, in source order or shuffled."""
    rows = list(rows)
    if shuffle is not None:
        random.Random(shuffle).shuffle(rows)
    source = [{"row": n, "id": i, "title": "", "text": f"text {i}"} for n, i in rows]
    after = [{**row, "text": f"tekst {row['id']}", "status": "ok", "repair": ""} for row in source]
    split = [slice(at, None, shards) for at in range(shards)]
    return TranslatedSet(
        dataset,
        part,
        kind,
        "nl",
        "en",
        _artifact(folder / "rows", [after[s] for s in split], TRANSLATED),
        _artifact(folder / "source", [list(reversed(source[s])) for s in split], CORPUS),
    )


def _numbered(count, prefix="d"):
    return [(n, f"{prefix}{n}") for n in range(count)]


def _ids(items):
    return [one.id for one in items]


def test_the_sample_depends_on_the_seed_and_not_on_shards_or_their_order(tmp_path):
    one = sample([_set(tmp_path / "1", _numbered(500))], 10, 7)
    many = sample([_set(tmp_path / "2", _numbered(500), shards=16, shuffle=1)], 10, 7)
    assert one == many
    assert len(set(_ids(one))) == 10
    other = sample([_set(tmp_path / "3", _numbered(500))], 10, 8)
    assert len(set(_ids(one)) & set(_ids(other))) < 5


def test_an_item_has_its_own_source_and_translation(tmp_path):
    for one in sample([_set(tmp_path, _numbered(300), shards=4, shuffle=3)], 20, 7):
        assert one.source_text == f"text {one.id}"
        assert one.text == f"tekst {one.id}"
        assert (one.size, one.status, one.language, one.source_language) == (300, "ok", "nl", "en")


def test_a_larger_sample_begins_with_the_smaller_one(tmp_path):
    found = _set(tmp_path, _numbered(200), shards=2)
    assert _ids(sample([found], 30, 7))[:10] == _ids(sample([found], 10, 7))


def test_a_dataset_with_fewer_items_gives_all(tmp_path):
    assert sorted(_ids(sample([_set(tmp_path, _numbered(4))], 10, 7))) == ["d0", "d1", "d2", "d3"]


def test_every_item_has_the_same_chance(tmp_path):
    found = _set(tmp_path, _numbered(20), shards=2)
    drawn = Counter(i for seed in range(200) for i in _ids(sample([found], 5, seed)))
    # binomial(200, 1/4): mean 50, standard deviation 6.1; five of them on either side
    assert len(drawn) == 20
    assert all(20 <= count <= 80 for count in drawn.values())


def test_parts_and_kinds_of_a_dataset_are_drawn_together_in_proportion(tmp_path):
    sets = [
        _set(tmp_path / "a", _numbered(900), part="android", dataset="cqa"),
        _set(tmp_path / "b", _numbered(90), part="english", dataset="cqa"),
        _set(tmp_path / "c", _numbered(10), part="english", dataset="cqa", kind="query"),
        _set(tmp_path / "d", _numbered(50), dataset="other"),
    ]
    items = sample(sets, 100, 7)
    assert Counter(one.dataset for one in items) == {"cqa": 100, "other": 50}
    assert {one.size for one in items if one.dataset == "cqa"} == {1000}
    parts = Counter(one.part for one in items if one.dataset == "cqa")
    assert 80 <= parts["android"] <= 99  # 90 expected; binomial standard deviation 3
    drawn = {part: {i.id for i in items if i.part == part and i.kind == "document"} for part in parts}
    assert drawn["english"] and not drawn["english"] <= drawn["android"]  # equal ids are drawn apart


def test_a_translation_without_its_source_is_an_error(tmp_path):
    whole, other = _set(tmp_path / "1", _numbered(3)), _set(tmp_path / "2", _numbered(2))
    torn = TranslatedSet("own", "", "document", "nl", "en", whole.rows, other.source)
    with pytest.raises(StoreError, match="lacks row 2 of its source"):
        sample([torn], 3, 7)


# From an experiment -----------------------------------------------------------------------------------------


def _node(artifact, stage, key, label="", **spec):
    return SimpleNamespace(
        artifact=lambda workspace: artifact, stage=stage, key=key, label=label, spec=SimpleNamespace(**spec)
    )


def _translation(found, *, state="done", back=False, stage="import-corpus"):
    """What the graph says of a set, and where its last node stands."""
    label = f"{found.dataset}/nl/{found.kind}"
    final = _node(found.rows, "repair", f"{found.dataset}-{found.kind}-{back}", label)
    made = Translation(
        dataset=found.dataset,
        part=found.part,
        kind=found.kind,
        language="nl",
        source=_node(found.source, stage, "source"),
        answers=_node(None, "translate", "answers", source_language="en"),
        checked=final,
        final=final,
        back=back,
    )
    return made, SimpleNamespace(node=final, state=state)


def _pipeline(*made):
    graph = Graph(translations=[translation for translation, _ in made])
    pipeline = Pipeline(SimpleNamespace(name="test", file="e.toml"), None, graph)
    pipeline.states.of = lambda nodes: [status for _, status in made]
    return pipeline


def test_only_finished_translations_of_datasets_are_drawn_from(tmp_path):
    documents = _set(tmp_path / "d", _numbered(5))
    queries = _set(tmp_path / "q", _numbered(5, "q"), kind="query")
    later = _set(tmp_path / "l", _numbered(5), dataset="later")
    pipeline = _pipeline(
        _translation(documents),
        _translation(queries),
        _translation(later, state="pending"),
        _translation(documents, back=True),
        _translation(_set(tmp_path / "p", _numbered(5), dataset="lines"), stage="import-lines"),
    )
    sheet, missing = draw(pipeline, 100, 7)
    assert missing == ["later/nl/document"]
    assert sorted(_ids(sheet.items)) == sorted([f"{k}{n}" for k in "dq" for n in range(5)])
    assert (sheet.head.experiment, sheet.head.seed, sheet.head.per_dataset) == ("test", 7, 100)
    only, _ = draw(pipeline, 100, 7, "query")
    assert {(one.kind, one.size) for one in only.items} == {("query", 5)}


def test_an_experiment_without_a_finished_translation_is_one_line(tmp_path):
    found = _set(tmp_path, _numbered(2))
    with pytest.raises(ConfigError, match="translates no dataset; add"):
        draw(_pipeline(), 10, 7)
    with pytest.raises(PrerequisiteError, match=r"no translation is finished; run `beirnl run e\.toml`"):
        draw(_pipeline(_translation(found, state="waiting")), 10, 7)


def test_a_sample_of_a_real_run_has_texts_of_the_dataset_beside_their_translation(tmp_path):
    translation = '[translation]\nto = "nl"\nengine = "mock"\nback = true\n'
    pipeline = run(experiment(tmp_path, '[[dataset]]\nname = "sample"\n' + translation))
    sheet, missing = draw(pipeline, 20, 7)
    assert missing == [] and len(sheet.items) == 20
    folder = resources.files("beirnl") / "sample"
    texts = {
        (kind, record["_id"]): record["text"]
        for kind, name in (("document", "corpus.jsonl"), ("query", "queries.jsonl"))
        for record in map(json.loads, (folder / name).read_text("utf-8").splitlines())
    }
    assert {(one.language, one.source_language, one.size) for one in sheet.items} == {
        ("nl", "en", len(texts))
    }
    for one in sheet.items:
        assert one.source_text == texts[one.kind, one.id]
        assert one.text and one.text != one.source_text
    assert read_sheet(_written(tmp_path / "s.jsonl", sheet)) == sheet


def _written(path, sheet):
    write_sheet(path, sheet)
    return path
