"""Sheets and labels as files: whole, told apart, and refused where they are something else."""

import re

import msgspec
import pytest
from audit_sheets import datasets, item, sheet

from beirnl.audit.labels import Judgement, Labels, annotator_name
from beirnl.audit.sheet import Head, read_sheet
from beirnl.errors import ConfigError, DataError

AWKWARD = 'a\u2028b\u0085c\n=1+1,"007"\t<script>\r\nنص'


def test_a_sheet_comes_back_with_every_character(tmp_path):
    items = (item(source_text=AWKWARD, id="007"), item(title=AWKWARD, id="1E5"))
    found = read_sheet(sheet(tmp_path / "s.jsonl", items))
    assert found.items == items
    assert (found.head.seed, found.head.per_dataset) == (7, 10)


def test_a_sheet_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="is not there; make one with `beirnl audit sample EXP`"):
        read_sheet(tmp_path / "s.jsonl")


def test_a_sheet_is_written_again_but_never_over_another(tmp_path):
    path = sheet(tmp_path / "s.jsonl", [item()])
    sheet(path, [item()])
    with pytest.raises(DataError, match="holds something else than this sample; give another --output"):
        sheet(path, [item(text="anders")])
    assert read_sheet(path).items == (item(),)


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"\xff\xfe", b'{"_id": "1", "text": "a corpus"}\n', b"[1]\n", b"name = 'an experiment'\n"],
)
def test_a_file_that_is_no_sheet_is_one_line(tmp_path, content):
    path = tmp_path / "s.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=re.escape(f"{path}: is not a sheet of samples; make one")):
        read_sheet(path)


def test_a_damaged_repeated_or_missing_item_names_its_line(tmp_path):
    path = sheet(tmp_path / "s.jsonl", [item(id="1"), item(id="2")])
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with pytest.raises(DataError, match=r"s\.jsonl:3: is not an item of a sheet"):
        read_sheet(path)
    path.write_bytes(whole + whole.splitlines()[1] + b"\n")
    with pytest.raises(DataError, match=r"s\.jsonl:4: repeats an item"):
        read_sheet(path)
    path.write_bytes(whole.splitlines()[0] + b"\n")
    with pytest.raises(DataError, match="holds no items"):
        read_sheet(path)
    path.write_bytes(msgspec.json.encode(Head("x", 7, 10, format=99)) + b"\n")
    with pytest.raises(DataError, match="newer version"):
        read_sheet(path)


def test_another_translation_is_another_item():
    keys = {item().key, item(text="anders").key, item(part="x").key, item(language="fy").key}
    assert len(keys) == 4
    assert item().key == item(status="length").key == item(size=3).key


# Labels -----------------------------------------------------------------------------------------------------


def test_the_last_label_counts_and_annotators_are_apart(tmp_path):
    labels = Labels(tmp_path / "s.jsonl")
    assert labels.annotators() == []
    labels.append("Anna", "k", "minor")
    labels.append("anna ", "k", "major", "too\nlong")
    labels.append("Jörg de Vries", "k", None, "only a note")
    assert labels.annotators() == ["anna", "jörg de vries"]
    found = labels.read("ANNA")["k"]
    assert (found.label, found.note) == ("major", "too\nlong")
    assert labels.read("jörg de vries")["k"].label is None
    assert labels.read("nobody") == {}
    assert len((tmp_path / "s.jsonl.labels" / "anna.jsonl").read_bytes().splitlines()) == 2


def test_a_line_that_was_cut_off_is_as_if_never_written(tmp_path):
    labels = Labels(tmp_path / "s.jsonl")
    labels.append("anna", "1", "correct")
    path = labels.folder / "anna.jsonl"
    line = msgspec.json.encode(Judgement("2", "major"))
    for cut in range(1, len(line)):
        path.write_bytes(path.read_bytes().splitlines()[0] + b"\n" + line[:cut])
        assert set(labels.read("anna")) == {"1"}
        labels.append("anna", "3", "minor")
        assert set(labels.read("anna")) == {"1", "3"}


def test_a_damaged_line_names_its_place(tmp_path):
    labels = Labels(tmp_path / "s.jsonl")
    labels.append("anna", "1", "correct")
    path = labels.folder / "anna.jsonl"
    path.write_bytes(b'{"key": "1", "label": "awful"}\n' + path.read_bytes())
    with pytest.raises(DataError, match=r"anna\.jsonl:1: is not a label"):
        labels.read("anna")


@pytest.mark.parametrize("name", ["An", "Anne-Marie", "d'Hondt", "J. de Vries", "Łukasz", "李", "a" * 40])
def test_names_of_people_are_names(name):
    assert annotator_name(f"  {name} ") == name.lower()


def test_a_name_is_one_however_it_is_composed():
    assert annotator_name("Jo\u0308rg") == annotator_name("J\u00f6rg")


@pytest.mark.parametrize(
    "name", ["", " ", ".", "..", "../x", "a/b", "a\\b", "-x", "x.", "a" * 41, "<b>", "a\0b", "a:b", "*", "C:"]
)
def test_what_could_lead_out_of_the_folder_is_no_name(name):
    with pytest.raises(ConfigError, match="is no name; use at most 40 letters"):
        annotator_name(name)


def test_a_stray_file_among_the_labels_is_not_passed_over(tmp_path):
    labels = Labels(sheet(tmp_path / "s.jsonl", datasets(a=10)))
    labels.append("anna", "1", "correct")
    (labels.folder / "anna (copy).jsonl").write_bytes(b"")
    with pytest.raises(DataError, match=r"anna \(copy\)\.jsonl: bears no annotator's name"):
        labels.annotators()
