import json
import math
import shutil
from itertools import pairwise

import numpy as np
import pytest

from beirnl.errors import StoreError
from beirnl.retrieval import bm25
from beirnl.retrieval.bm25 import Bm25Index, IndexStats, UnitWriter, build_unit, combine
from beirnl.retrieval.bm25.stats import LENGTHS, norms
from beirnl.specs import Bm25Spec

SPEC = Bm25Spec(analyzer="english")
FLAT = Bm25Spec(analyzer="english", profile="flat")


@pytest.fixture
def make(tmp_path):
    """An index of (id, title, text) documents, in n units."""

    def build(documents, spec=SPEC, n=1):
        out = tmp_path / f"index-{len(list(tmp_path.iterdir()))}"
        cuts = [len(documents) * i // n for i in range(n + 1)]
        for start, end in pairwise(cuts):
            ids, titles, texts = ([d[i] for d in documents[start:end]] for i in range(3))
            build_unit(out / f"unit-{start}-{end}", spec, ids, titles, texts, start)
        combine(sorted(out.iterdir()), out / "whole", spec)
        return Bm25Index.open(out / "whole", spec)

    return build


def texts(*texts):
    return [(f"d{i}", "", text) for i, text in enumerate(texts)]


@pytest.mark.parametrize("spec", [SPEC, FLAT])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("fish days:", {"d0"}),
        ('tv 55" scherm', {"d1"}),
        ("'s ochtends", {"d2"}),
        ("A+B-test (2020)", {"d3"}),
        ("AND OR NOT", set()),
        ("*", set()),
        ("title:x", {"d4"}),
        ("title", set()),
        ("fish*", {"d0"}),
        ('"days fish"~2^3 [a TO b] {x} \\', {"d0", "d3", "d4"}),
        ("\x01", set()),
        ("\ud800", set()),
    ],
)
def test_a_query_is_words_without_syntax(make, spec, query, expected):
    index = make(
        texts(
            "Days of fish", "Een tv met 55 inch scherm", "Vroeg, ochtends", "the b test of 2020", "title:x x"
        ),
        spec,
    )
    ids, scores = index.search([query], 10)[0]
    assert set(ids) == expected
    assert (scores > 0).all()
    assert scores.dtype == np.float32


def test_no_terms_and_unknown_words_find_nothing(make):
    index = make(texts("one fish", "two fish"))
    for ids, scores in index.search(["", "the of and", "zebra", " \n"], 10):
        assert ids == []
        assert scores.shape == (0,)
    assert index.search([], 10) == []


def test_a_query_of_1500_words(make):
    index = make(texts("w7 w7", "w1499 w3", "other"))
    ids, _ = index.search([" ".join(f"w{i}" for i in range(1500))], 10)[0]
    assert sorted(ids) == ["d0", "d1"]


def test_k_beyond_the_corpus_gives_each_match_once(make):
    index = make(texts(*["fish"] * 7, "other"), n=3)
    ids, _ = index.search(["fish"], 1000)[0]
    assert ids == [f"d{i}" for i in range(6, -1, -1)]


@pytest.mark.parametrize("n", [1, 4])
def test_ties_at_the_cut_are_won_by_the_highest_ids(make, n):
    documents = [(f"{i:03}", "", "fish") for i in np.random.default_rng(0).permutation(300)]
    assert make(documents, n=n).search(["fish"], 5)[0][0] == ["299", "298", "297", "296", "295"]


def test_an_excluded_document_is_left_out_before_the_cut(make):
    index = make(texts("fish fish", "fish", "fish and more words"))
    first, second = index.search(["fish", "fish"], 1, ["d0", None])
    assert first[0] == ["d1"]
    assert second[0] == ["d0"]


def test_documents_without_terms_keep_their_row_and_are_not_found(make):
    index = make([("a", "", ""), ("b", "The", "of"), ("c", "Fish", ""), ("d", "", "fish")], n=2)
    assert index.stats.documents == 4
    assert [field.documents for field in index.stats.fields.values()] == [1, 1]
    ids, scores = index.search(["fish"], 10)[0]
    # One document and one term per field: idf ln(1 + .5 / 1.5), and tf / (tf + 1.2).
    assert ids == ["d", "c"]
    assert scores == pytest.approx(math.log(4 / 3) / 2.2)


@pytest.mark.parametrize("spec", [SPEC, FLAT])
@pytest.mark.parametrize("documents", [[], [("a", "", "")], [("a", "", "the")]])
def test_a_corpus_without_any_term(make, spec, documents):
    index = make(documents, spec)
    assert index.stats.documents == len(documents)
    assert index.search(["fish"], 10)[0][0] == []


def test_two_megabytes_of_text_and_a_frequency_beyond_16_bits(make):
    index = make([("long", "", "fish " * 400_000 + "x" * 100_000), ("short", "", "fish")])
    ids, scores = index.search(["fish", "x" * 255], 10)[0]
    assert ids == ["short", "long"] or ids == ["long", "short"]
    assert index.stats.fields["text"].tokens == 400_000 + math.ceil(100_000 / 255) + 1
    mean = index.stats.fields["text"].mean
    length = LENGTHS[norms(np.array([400_393]))[0]]
    expected = math.log(1 + 0.5 / 2.5) * 400_000 / (400_000 + 1.2 * (0.25 + 0.75 * length / mean))
    assert dict(zip(ids, scores, strict=True))["long"] == pytest.approx(expected, rel=1e-6)


def test_a_word_repeated_in_the_query_counts_as_often(make):
    index = make(texts("fish and chips", "salt"))
    once, thrice = index.search(["fish", "fish fish fish"], 1)
    assert thrice[1] == pytest.approx(3 * once[1])


def test_tantivy_ranks_by_the_same_statistics(make):
    """With most titles missing its own scores are those of the forward index, up to rounding."""
    rng = np.random.default_rng(1)
    words = np.array([f"w{i}" for i in range(300)])
    documents = [
        (
            str(i),
            " ".join(rng.choice(words, 3)) if i % 5 == 0 else "",
            " ".join(rng.zipf(1.3, 20).clip(0, 299).astype(str)) + f" {words[i % 300]}",
        )
        for i in range(3000)
    ]
    index = make(documents, n=3)
    assert index.stats.ballast["title"] > 0
    for query in ("w1 w5 1 2", "w7 w7 w9", "250 w299"):
        terms = bm25.search.Counter(index._analyzer.terms(query))
        fields, prepared = index._prepare(terms)
        hits = index._searcher.search(prepared, 50, count=False).hits
        rows = np.array(index._searcher.fast_field_values("n", [address for _, address in hits]))
        assert [score / 2.2 for score, _ in hits] == pytest.approx(
            index._scores(rows, fields), rel=1e-5 + index._tolerance
        )


def test_other_parameters_are_scored_exactly(make):
    documents = texts("fish", "fish fish chips", "chips salt fish words of many kinds more")
    index = make(documents, Bm25Spec(analyzer="english", profile="flat", k1=0.9, b=0.4))
    ids, scores = index.search(["fish"], 10)[0]
    found = dict(zip(ids, scores, strict=True))
    lengths, frequencies = [1, 3, 7], [1, 2, 1]
    idf, mean = math.log(1 + 0.5 / 3.5), sum(lengths) / 3
    for doc_id, length, tf in zip(("d0", "d1", "d2"), lengths, frequencies, strict=True):
        assert found[doc_id] == pytest.approx(idf * tf / (tf + 0.9 * (0.6 + 0.4 * length / mean)))


def test_the_combined_index_outlives_its_units(tmp_path):
    build_unit(tmp_path / "unit", SPEC, ["a"], [""], ["fish"])
    combine([tmp_path / "unit"], tmp_path / "index", SPEC)
    shutil.rmtree(tmp_path / "unit")
    assert Bm25Index.open(tmp_path / "index", SPEC).search(["fish"], 1)[0][0] == ["a"]


def test_a_writer_takes_documents_bit_by_bit(tmp_path):
    writer = UnitWriter(tmp_path / "bits", SPEC)
    writer.add(["a"], ["Fish"], ["chips"])
    writer.add(["b", "c"], ["", ""], ["salt", ""])
    assert writer.close() == build_unit(
        tmp_path / "whole", SPEC, ["a", "b", "c"], ["Fish", "", ""], ["chips", "salt", ""]
    )


def test_norms_are_those_of_lucene():
    # Lucene's SmallFloat.byte4ToInt at some codes, and that a length maps to the last code not above it.
    assert [LENGTHS[code] for code in (0, 23, 24, 39, 40, 41, 48, 255)] == [
        0,
        23,
        24,
        39,
        40,
        42,
        56,
        2013265944,
    ]
    lengths = np.arange(5000)
    codes = norms(lengths)
    assert (LENGTHS[codes] <= lengths).all()
    assert (LENGTHS[codes + 1] > lengths).all()


class TestErrors:
    def test_units_that_leave_a_gap_or_come_twice(self, tmp_path):
        for name, first_row in {"a": 0, "b": 1, "c": 5}.items():
            build_unit(tmp_path / name, SPEC, ["x"], [""], ["fish"], first_row)
        for names in ("ac", "aab", "b"):
            with pytest.raises(StoreError, match="combine all units of one corpus"):
                combine([tmp_path / name for name in names], tmp_path / "index", SPEC)
        assert not (tmp_path / "index").exists()

    @pytest.mark.parametrize("other", [FLAT, Bm25Spec(analyzer="dutch")])
    def test_another_profile_or_analyzer(self, tmp_path, other):
        build_unit(tmp_path / "unit", SPEC, ["a"], [""], ["fish"])
        combine([tmp_path / "unit"], tmp_path / "index", SPEC)
        with pytest.raises(StoreError, match=r"was made with .* rebuild it"):
            Bm25Index.open(tmp_path / "index", other)
        with pytest.raises(StoreError, match=r"was made with .* rebuild it"):
            combine([tmp_path / "unit"], tmp_path / "other", other)

    @pytest.mark.parametrize("field", ["analyzer_version", "format"])
    def test_another_version(self, make, tmp_path, field):
        make(texts("fish"))
        file = next(tmp_path.glob("*/whole/stats.json"))
        file.write_text(json.dumps(json.loads(file.read_text()) | {field: 99}))
        with pytest.raises(StoreError, match="rebuild it"):
            Bm25Index.open(file.parent, SPEC)

    @pytest.mark.parametrize(
        "lost", ["stats.json", "ids.arrow", "tantivy/meta.json", "forward/text.terms.npy"]
    )
    def test_a_missing_file(self, make, tmp_path, lost):
        make(texts("fish"))
        folder = next(tmp_path.glob("*/whole"))
        (folder / lost).unlink()
        with pytest.raises(StoreError, match="build"):
            Bm25Index.open(folder, SPEC)

    def test_a_folder_that_holds_an_index(self, tmp_path):
        build_unit(tmp_path, SPEC, ["a"], [""], ["fish"])
        with pytest.raises(StoreError, match="build into a new folder"):
            build_unit(tmp_path, SPEC, ["a"], [""], ["fish"])


def test_statistics_survive_their_file(tmp_path):
    stats = build_unit(tmp_path, SPEC, ["a", "b"], ["Fish", ""], ["one two", "three"])
    assert IndexStats.model_validate_json((tmp_path / "stats.json").read_bytes()) == stats
    assert {name: (field.documents, field.tokens) for name, field in stats.fields.items()} == {
        "title": (1, 1),
        "text": (2, 3),
    }
