"""Publishing: both layouts, source order, and that nothing half-written or unproven gets the set's name."""

import json
import random
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from translated_set import DOCUMENTS, JUDGEMENTS, QUERIES, artifact, capitals, translation

from beirnl.datasets import beir
from beirnl.errors import DataError
from beirnl.publish import folders, order, proof, publish, sets
from beirnl.schema import CORPUS
from beirnl.store.artifacts import Artifact


def records(path):
    return [record[1:] for record in beir.read_records(path)]


def test_both_layouts_have_every_row_in_source_order(tmp_path):
    made = publish("owls-nl", [translation(tmp_path / "in")], tmp_path / "out")
    assert made.folder == tmp_path / "out" / "owls-nl" and made.written
    for folder in (made.folder / "beir", made.folder / "hub"):
        assert records(beir.corpus_path(folder)) == capitals(DOCUMENTS)
        assert records(beir.queries_path(folder)) == capitals(QUERIES)
        read = [judgement[1:] for judgement in beir.read_qrels(beir.qrels_path(folder, "test"))]
        assert read == JUDGEMENTS
    assert sorted(p.name for p in (made.folder / "beir").iterdir()) == [
        "corpus.jsonl",
        "proof.json",
        "qrels",
        "queries.jsonl",
    ]
    assert [p.name for p in made.hub.rglob("*.parquet")] and not list(made.folder.glob("rows*"))


def test_columns_are_those_of_either_layout(tmp_path):
    made = publish("owls-nl", [translation(tmp_path / "in")], tmp_path / "out")
    line = json.loads((made.folder / "beir/corpus.jsonl").read_text(encoding="utf-8").split("\n")[0])
    assert list(line) == ["_id", "title", "text"]
    columns = {path.parent.name: pq.read_schema(path).names for path in made.hub.rglob("*.parquet")}
    assert columns == {
        "corpus": ["_id", "title", "text"],
        "queries": ["_id", "text"],
        "qrels": ["query-id", "corpus-id", "score"],
    }


def test_the_proof_says_what_was_found(tmp_path):
    made = publish("owls-nl", [translation(tmp_path / "in")], tmp_path / "out")
    record = json.loads((made.hub / "proof.json").read_text(encoding="utf-8"))
    assert record == json.loads((made.folder / "beir/proof.json").read_text(encoding="utf-8"))
    (part,) = record["parts"]
    assert (part["documents"], part["queries"], part["judgements"], part["relevant"]) == (6, 2, 4, 3)
    assert part["documents_missing_in_source"] == {"count": 1, "examples": ["gone"]}
    assert part["documents_without_text_in_source"] == {"count": 1, "examples": ["d6"]}
    assert part["queries_without_text_in_source"] == {"count": 0, "examples": []}
    assert record["claims"] == list(proof.CLAIMS)
    assert record["sha256"].keys() == {
        path.relative_to(made.folder).as_posix()
        for path in made.folder.rglob("*")
        if path.is_file() and path.name != "proof.json"
    }


def test_many_files_and_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "ROWS_PER_FILE", 7)
    monkeypatch.setattr(order, "_ROWS_PER_RUN", 3)
    monkeypatch.setattr(order, "_RUNS", 1000)
    monkeypatch.setattr(order, "_BUFFERED_BYTES", 100)
    rows = [*DOCUMENTS, *((f"n{number}", f"title {number}", f"text {number}") for number in range(30))]
    made = publish("owls-nl", [translation(tmp_path / "in", documents=rows)], tmp_path / "out")
    names = sorted(path.name for path in (made.hub / "corpus").iterdir())
    assert names == [f"corpus-{number:05d}-of-00006.parquet" for number in range(6)]
    assert records(made.hub / "corpus") == capitals(rows)


@pytest.mark.parametrize("per_run", [1, 4, 100])
def test_rows_of_shards_come_back_in_order(tmp_path, monkeypatch, per_run):
    monkeypatch.setattr(order, "_ROWS_PER_RUN", per_run)
    rows = random.Random(per_run).sample(range(60), 40)  # a repeated document leaves a gap
    tables = [
        pa.table([part, [str(row) for row in part], [""] * len(part), [""] * len(part)], schema=CORPUS)
        for part in (sorted(rows[:10]), rows[10:11], rows[11:])
    ]
    ordered = list(order.in_row_order(tables, 60, tmp_path / "rows"))
    assert [row for table in ordered for row in table["row"].to_pylist()] == sorted(rows)
    assert max(table.num_rows for table in ordered) <= per_run
    assert not (tmp_path / "rows").exists()


def test_a_set_in_parts_has_a_folder_for_each(tmp_path):
    parts = [translation(tmp_path / part, part) for part in ("android", "english")]
    made = publish("owls-nl", parts, tmp_path / "out")
    for folder in (made.folder / "beir", made.folder / "hub", made.folder):
        assert list(beir.locate(folder)) == ["android", "english"]
    assert beir.locate(made.folder)["android"] == made.folder / "beir" / "android"
    assert (made.total("documents"), made.total("queries")) == (12, 4)
    assert "english-corpus" in (made.hub / "README.md").read_text(encoding="utf-8")


def test_sets_are_named_by_dataset_and_language(tmp_path):
    parts = [translation(tmp_path / part, part) for part in ("android", "english")]
    assert sets(parts) == {"owls-nl": parts}


def test_what_is_there_is_proven_again_or_refused(tmp_path):
    one, other = translation(tmp_path / "one"), translation(tmp_path / "other", documents=DOCUMENTS[:5])
    first = publish("owls-nl", [one], tmp_path / "out")
    before = {path: path.stat().st_ino for path in first.folder.rglob("*")}
    again = publish("owls-nl", [one], tmp_path / "out")
    assert not again.written and again.parts == first.parts
    assert {path: path.stat().st_ino for path in first.folder.rglob("*")} == before
    with pytest.raises(DataError, match="is there already, and is not what this experiment makes"):
        publish("owls-nl", [other], tmp_path / "out")
    assert len(records(first.folder / "beir/corpus.jsonl")) == 6
    assert publish("owls-nl", [other], tmp_path / "out", force=True).written
    assert len(records(first.folder / "beir/corpus.jsonl")) == 5
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["owls-nl"]


def licences(made):
    """The licence as proof, card and result say it."""
    record = json.loads((made.hub / "proof.json").read_text(encoding="utf-8"))
    front = yaml.safe_load((made.hub / "README.md").read_text(encoding="utf-8").split("---\n")[1])
    return made.licence, record["licence"], front["license"]


def test_a_licence_that_is_given_later_needs_no_force_and_stays(tmp_path):
    one = translation(tmp_path / "in")
    first = publish("owls-nl", [one], tmp_path / "out")
    assert licences(first) == ("unknown", "unknown", "unknown")
    given = publish("owls-nl", [one], tmp_path / "out", licence="MIT")
    assert given.written and licences(given) == ("MIT", "MIT", "mit")
    again = publish("owls-nl", [one], tmp_path / "out")
    assert not again.written and licences(again) == ("MIT", "MIT", "mit")
    assert "no licence" in first.warnings[0] and not any("licence" in line for line in again.warnings)
    other = translation(tmp_path / "other", documents=DOCUMENTS[:5])
    with pytest.raises(DataError, match="is not what this experiment makes"):
        publish("owls-nl", [other], tmp_path / "out", licence="Apache-2.0")


def test_texts_that_are_empty_in_the_source_are_a_warning(tmp_path):
    parts = [translation(tmp_path / part, part) for part in ("android", "english")]
    made = publish("owls-nl", parts, tmp_path / "out", licence="MIT")
    assert made.warnings == ["documents without any text, in the source and here: 2 (d6, d6)"]
    full = publish("full-nl", [translation(tmp_path / "in", documents=DOCUMENTS[:5])], tmp_path / "out")
    assert not any("without any text" in line for line in full.warnings)


ALTERATIONS = {
    "a line that is no JSON": lambda folder: (folder / "beir/corpus.jsonl").write_text("{"),
    "no queries": lambda folder: (folder / "beir/queries.jsonl").unlink(),
    "no judgements": lambda folder: (folder / "beir/qrels/test.tsv").unlink(),
    "no Parquet": lambda folder: next((folder / "hub/corpus").glob("*")).write_bytes(b"PAR1"),
    "another text": lambda folder: edit_lines(
        folder / "beir/corpus.jsonl", lambda rows: set_field(rows, 0, text="X")
    ),
    "no card": lambda folder: (folder / "hub/README.md").unlink(),
    "no proof": lambda folder: (folder / "hub/proof.json").unlink(),
    "a proof of something else": lambda folder: (folder / "hub/proof.json").write_text("[]"),
}


@pytest.mark.parametrize("alter", ALTERATIONS.values(), ids=ALTERATIONS)
def test_what_was_altered_is_refused_with_the_way_out(tmp_path, alter):
    one = translation(tmp_path / "in")
    alter(publish("owls-nl", [one], tmp_path / "out").folder)
    with pytest.raises(DataError, match=r"owls-nl.*--force") as caught:
        publish("owls-nl", [one], tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert publish("owls-nl", [one], tmp_path / "out", force=True).written


def test_someone_elses_folder_is_not_touched(tmp_path):
    (tmp_path / "out" / "owls-nl").mkdir(parents=True)
    (tmp_path / "out" / "owls-nl" / "thesis.tex").write_text("years of work")
    with pytest.raises(DataError, match="--force"):
        publish("owls-nl", [translation(tmp_path / "in")], tmp_path / "out")
    assert (tmp_path / "out" / "owls-nl" / "thesis.tex").read_text() == "years of work"


def test_a_proof_that_fails_leaves_nothing_behind(tmp_path):
    one = translation(tmp_path / "in")
    lost = [table.slice(1) for table in one.documents.translated.tables()]
    shorter = artifact(tmp_path / "shorter", lost, lost[0].schema)
    one = replace(one, documents=replace(one.documents, translated=shorter))
    with pytest.raises(DataError, match=r"lacks 3 documents \(.*the proof failed"):
        publish("owls-nl", [one], tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_write_that_breaks_off_keeps_what_was_there(tmp_path, monkeypatch):
    one = translation(tmp_path / "in")
    made = publish("owls-nl", [one], tmp_path / "out")

    def broken(self):
        raise OSError(28, "No space left on device")
        yield

    monkeypatch.setattr(Artifact, "tables", broken)
    with pytest.raises(Exception, match="the disk is full"):
        publish("owls-nl", [one], tmp_path / "out", force=True)
    assert len(records(made.folder / "beir/corpus.jsonl")) == 6
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["owls-nl"]


def test_an_identifier_that_a_qrels_file_cannot_hold(tmp_path):
    one = translation(tmp_path / "in")
    table = pa.table([["q1"], ["a\tb"], [1]], schema=one.qrels.table().schema)
    qrels = artifact(tmp_path / "tab", [table], table.schema)
    one = replace(one, qrels=qrels)
    with pytest.raises(DataError, match="white space that a qrels file cannot hold"):
        publish("owls-nl", [one], tmp_path / "out")


# Planted defects --------------------------------------------------------------------------------------------


def edit_lines(path, change):
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    path.write_text("\n".join(change(lines)) + "\n", encoding="utf-8")


def edit_parquet(path, change):
    (file,) = path.glob("*.parquet")
    table = pq.read_table(file)
    pq.write_table(pa.Table.from_pylist(change(table.to_pylist()), schema=table.schema), file)


def set_field(rows, at, **fields):
    changed = [json.loads(row) if isinstance(row, str) else row for row in rows]
    changed[at] = {**changed[at], **fields}
    return [json.dumps(row) if isinstance(rows[0], str) else row for row in changed]


TEXT_DEFECTS = {
    r"lacks 1 document \(d3\) of the source": lambda rows: rows[:2] + rows[3:],
    r"holds 1 document \(d2\) more than once": lambda rows: [*rows, rows[1]],
    r"lacks 1 document \(d1\) .*; holds 1 document \(new\) that the source has not": lambda rows: set_field(
        rows, 0, _id="new"
    ),
    "is not in the order of the source": lambda rows: rows[::-1],
    r"the text of 1 document \(d1\) is empty": lambda rows: set_field(rows, 0, text=" \n"),
    r"the title of 1 document \(5\) is empty": lambda rows: set_field(rows, 4, title=""),
    "holds other texts than the translation": lambda rows: set_field(rows, 4, text="SOMETHING ELSE"),
}


@pytest.mark.parametrize("layout", ["beir", "hub"])
@pytest.mark.parametrize("message", TEXT_DEFECTS)
def test_a_defect_of_the_corpus_has_its_own_message(tmp_path, layout, message):
    one = translation(tmp_path / "in")
    made = publish("owls-nl", [one], tmp_path / "out")
    path = beir.corpus_path(made.folder / layout)
    (edit_lines if layout == "beir" else edit_parquet)(path, TEXT_DEFECTS[message])
    with pytest.raises(DataError, match=message) as caught:
        publish("owls-nl", [one], tmp_path / "out")
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


QRELS_DEFECTS = {
    r"judges 1 document \(zz\) that is not there": ("q2", "zz", 1),
    r"judges 1 query \(gone\) that is not there": ("gone", "5", 1),
    r"judgement 3 is .*2\), and in the source .*1\)": ("q2", "5", 2),
}


@pytest.mark.parametrize("layout", ["beir", "hub"])
@pytest.mark.parametrize("message", QRELS_DEFECTS)
def test_a_defect_of_the_judgements_has_its_own_message(tmp_path, layout, message):
    one = translation(tmp_path / "in")
    made = publish("owls-nl", [one], tmp_path / "out")
    wrong = QRELS_DEFECTS[message]
    if layout == "beir":
        line = "\t".join(map(str, wrong))
        edit_lines(made.folder / "beir/qrels/test.tsv", lambda lines: [*lines[:3], line, *lines[4:]])
    else:
        row = dict(zip(folders.QRELS_HEADER, wrong, strict=True))
        edit_parquet(made.hub / "qrels", lambda rows: [*rows[:2], row, *rows[3:]])
    with pytest.raises(DataError, match=message):
        publish("owls-nl", [one], tmp_path / "out")


def test_a_judgement_that_is_lost(tmp_path):
    one = translation(tmp_path / "in")
    made = publish("owls-nl", [one], tmp_path / "out")
    edit_lines(made.folder / "beir/qrels/test.tsv", lambda lines: lines[:-1])
    with pytest.raises(DataError, match="holds 3 judgements, and the source 4"):
        publish("owls-nl", [one], tmp_path / "out")
