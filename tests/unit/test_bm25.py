import json
import math
import shutil
from collections import Counter
from hashlib import sha256
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
import tantivy

from beirnl.errors import StoreError
from beirnl.retrieval import analysis, topk
from beirnl.retrieval.bm25 import (
    Bm25Index,
    IndexStats,
    UnitWriter,
    build,
    build_unit,
    combine,
    count_terms,
    forward,
)
from beirnl.retrieval.bm25.forward import Forward, hashes
from beirnl.retrieval.bm25.stats import LENGTHS, norms
from beirnl.specs import Bm25Spec
from beirnl.stages.searching import run_of

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


def random_documents(n, seed=1):
    """Documents of Zipf's words, most without a title, with ids in no order."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(n)
    return [
        (
            f"{names[i]:05}",
            " ".join(rng.zipf(1.5, 3).clip(0, 299).astype(str)) if i % 5 == 0 else "",
            " ".join(rng.zipf(1.3, rng.integers(1, 40)).clip(0, 299).astype(str)),
        )
        for i in range(n)
    ]


def brute_force(columns, query, k1, b, tie_breaker, statistics="lucene"):
    """Scores of all documents by the formula, in columns of fields, each a list of term lists."""
    fields = []
    for documents in columns:
        lengths = np.array([len(document) for document in documents])
        present, kept = np.count_nonzero(lengths), LENGTHS[norms(lengths)]
        if statistics == "bm25s":
            present, kept = len(lengths), lengths
        norm = k1 * (1 - b + b * kept / (lengths.sum() / present))
        score = np.zeros(len(documents))
        for term in query:
            tf = np.array([document.count(term) for document in documents])
            df = np.count_nonzero(tf)
            score += math.log(1 + (present - df + 0.5) / (df + 0.5)) * tf / (tf + norm)
        fields.append(score)
    return np.maximum(*fields) + tie_breaker * np.minimum(*fields) if len(fields) > 1 else fields[0]


def best_by_brute_force(documents, spec, query, k):
    columns = [[title.split() for _, title, _ in documents], [text.split() for _, _, text in documents]]
    if spec.profile == "flat":
        columns = [[title + text for title, text in zip(*columns, strict=True)]]
    scores = brute_force(columns, query.split(), spec.k1, spec.b, spec.tie_breaker, spec.statistics)
    scores = scores.astype(np.float32)
    pairs = sorted(((s, d[0]) for s, d in zip(scores.tolist(), documents, strict=True) if s), reverse=True)[
        :k
    ]
    return [doc_id for _, doc_id in pairs], np.array([score for score, _ in pairs], np.float32)


@pytest.mark.parametrize("profile", ["elasticsearch", "flat"])
@pytest.mark.parametrize(("k1", "b", "tie_breaker"), [(1.2, 0.75, 0.5), (0.9, 0.4, 0.0), (2.0, 0.9, 1.0)])
def test_every_parameter_is_searched_exactly(make, profile, k1, b, tie_breaker):
    documents = random_documents(1500)
    spec = Bm25Spec(analyzer="english", profile=profile, k1=k1, b=b, tie_breaker=tie_breaker)
    index = make(documents, spec, n=3)
    queries = ["1 2 3 5", "7 7 11", "250 299 1", "4"]
    for query, found in zip(queries, index.search(queries, 30), strict=True):
        expected = best_by_brute_force(documents, spec, query, 30)
        assert found[0] == expected[0]
        assert found[1] == pytest.approx(expected[1], rel=1e-6)


@pytest.mark.parametrize("profile", ["elasticsearch", "flat"])
def test_statistics_of_all_documents_and_exact_lengths(make, profile):
    """Long documents, whose norms say less than their length, and many without a term."""
    rng = np.random.default_rng(3)
    long = [(i, title, f"{text} " * int(rng.integers(1, 30))) for i, title, text in random_documents(600)]
    documents = long + [(f"empty-{i}", "", "") for i in range(200)]
    spec = Bm25Spec(analyzer="english", profile=profile, k1=1.5, statistics="bm25s")
    index = make(documents, spec, n=3)
    queries = ["1 2 3 5", "7 7 11", "250 299 1", "4"]
    found = index.search(queries, 40)
    for query, (ids, scores) in zip(queries, found, strict=True):
        expected = best_by_brute_force(documents, spec, query, 40)
        assert ids == expected[0]
        assert scores == pytest.approx(expected[1], rel=1e-6)
    other = make(documents, spec.model_copy(update={"statistics": "lucene"}), n=3).search(queries, 40)
    assert [ids for ids, _ in other] != [ids for ids, _ in found]


@pytest.mark.parametrize("k", [1, 5])
def test_a_block_whose_bound_is_too_low_hides_no_document(make, k):
    """Tantivy bounds a block by what is best by the mean length of its segment, not of the index."""
    good = ["fish " * (10 + i % 6) + "y " * (110 + i * 7 % 40) for i in range(256)]
    first = [*good, *["fish"] * 100, "fish " * 20 + "y " * 130, *["fish"] * 27, *["x"] * 5000]
    documents = texts(*first, *["z " * 300] * len(first))
    spec = Bm25Spec(analyzer="english", profile="flat")
    index = make(documents, spec, n=2)
    means = [segment.mean("text") for segment in index.stats.segments]
    assert means[0] < 10 < 300 == means[1]
    ids, _ = index.search(["fish"], k)[0]
    assert ids == best_by_brute_force(documents, spec, "fish", k)[0]
    assert ids[0] == "d356"


def files_of(folder):
    return {file.name: sha256(file.read_bytes()).digest() for file in folder.iterdir() if file.is_file()}


@pytest.mark.parametrize("profile", ["elasticsearch", "flat"])
def test_exact_scores_are_the_same_bytes_however_the_corpus_was_divided(make, monkeypatch, tmp_path, profile):
    documents, spec = random_documents(700), Bm25Spec(analyzer="english", profile=profile)
    one = make(documents, spec)
    whole = files_of(next(tmp_path.glob("*/whole")))
    assert {"ids.arrow", "text.numbers.npy", "text.frequencies.npy"} <= set(whole)
    monkeypatch.setattr(build, "SEGMENT_WORDS", 500)
    monkeypatch.setattr(build, "BATCH_BYTES", 1000)
    monkeypatch.setattr(forward, "_MERGED", 100)
    three = make(documents, spec, n=3)
    divided = next(folder for folder in tmp_path.glob("*/whole") if "index-1" in str(folder))
    assert len(list((divided.parent / "unit-0-233" / "segments").iterdir())) > 5
    assert len(three.stats.segments) > 15
    assert files_of(divided) | {"stats.json": b""} == whole | {"stats.json": b""}
    assert three.stats.fields == one.stats.fields
    for k in (1, 10, 700):
        assert_equal(three.search(QUERIES, k), one.search(QUERIES, k))


QUERIES = ["1 2 3 5", "7 7 11", "250 299 1", "4", "1"]


def assert_equal(found, expected):
    for (ids, scores), (other_ids, other_scores) in zip(found, expected, strict=True):
        assert ids == other_ids
        assert np.array_equal(scores, other_scores)


@pytest.mark.parametrize("profile", ["elasticsearch", "flat"])
def test_document_shards_have_the_scores_of_one_index(make, tmp_path, profile):
    documents, spec = random_documents(900), Bm25Spec(analyzer="english", profile=profile)
    queries = ["1 2 3", "17 40 2", "299", "zebra", "1 1 7"]
    expected = make(documents, spec).search(queries, 20)
    shards = []
    for number, (start, end) in enumerate(pairwise([0, 100, 101, 640, 900])):
        columns = ([d[i] for d in documents[start:end]] for i in range(3))
        build_unit(tmp_path / f"u{number}", spec, *columns)
        combine([tmp_path / f"u{number}"], tmp_path / f"s{number}", spec)
        shards.append(tmp_path / f"s{number}")
    stats = count_terms(shards, tmp_path / "counts", spec)
    assert stats.documents == 900
    parts = [Bm25Index.open(shard, spec, tmp_path / "counts").search(queries, 20) for shard in shards]
    tables = [
        pa.concat_tables(run_of(query, *hits) for query, hits in zip(queries, part, strict=True))
        for part in parts
    ]
    merged = topk.merge_runs(tables, 20).to_pandas().groupby("query_id")
    for query, (ids, scores) in zip(queries, expected, strict=True):
        found = merged.get_group(query) if ids else None
        assert ids == (list(found.doc_id) if ids else [])
        assert not ids or np.array_equal(scores, found.score.to_numpy(np.float32))
    alone = Bm25Index.open(shards[0], spec).search(["1 2 3"], 5)
    assert not np.array_equal(alone[0][1], parts[0][0][1][:5])  # without the counts they are others


WHITE_SPACE = "a\tb\r\nc  d\u00a0e\u2009f\u202fg\x0bh\x1ci\u2028j \u3000k\u00adl m’s\x00n."


@pytest.mark.parametrize("name", ["english", "dutch", "italian"])
def test_a_unit_has_the_terms_of_the_analyzer(tmp_path, name):
    """Texts are cut at white space of ASCII when they are indexed, and at all of it in a query."""
    texts = [WHITE_SPACE, "", " ", "L'acqua (di) Roma!", WHITE_SPACE[::-1], "Ünïcode ΑΣ 😀 日本 don't"]
    terms = analysis.analyzer(name).batch(texts)
    spec = Bm25Spec(analyzer=name, profile="flat")
    build_unit(tmp_path / "unit", spec, [str(i) for i in range(len(texts))], [""] * len(texts), texts)
    segment = tmp_path / "unit" / "segments" / "00000"
    found = Forward.open(segment, "text")
    postings = [
        {int(found.terms[found.numbers[at]]): int(found.frequencies[at]) for at in range(begin, end)}
        for begin, end in pairwise(found.offsets)
    ]
    assert postings == [
        dict(zip(hashes(pa.array(list(c), pa.large_string())).tolist(), c.values(), strict=True))
        for c in map(Counter, terms)
    ]
    searcher = tantivy.Index.open(str(segment / "tantivy")).searcher()
    frequencies = Counter(term for ts in terms for term in set(ts))
    assert {term: searcher.doc_freq("text", term) for term in frequencies} == frequencies
    assert dict(searcher.terms_with_prefix("text", "")) == frequencies


def test_hashes_of_terms_differ_and_are_mixed_as_said():
    def mixed(number):
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            number = ((number ^ (number >> 33)) * factor) % 2**64
        return number ^ (number >> 33)

    def one(term):
        found = mixed(len(term.encode()))
        for start in range(0, len(term.encode()), 8):
            word = term.encode()[start : start + 8]
            found = mixed(found ^ int.from_bytes(word.rjust(8, b"\0"), "little"))
        return found

    terms = [*map(str, range(100_000)), *("a" * n for n in range(300)), "fish", "fisch", "\0", "\0\0", "ë日"]
    found = hashes(pa.array(["x", *terms], pa.large_string())[1:])
    assert len(set(found.tolist())) == len(terms)
    assert found[::50].tolist() == list(map(one, terms[::50]))
    assert found[100_000:].tolist() == list(map(one, terms[100_000:]))


def test_columns_of_arrow_are_the_same_as_lists(tmp_path):
    ids, titles, texts = ["a", "b", "c"], ["One", "", "Two"], ["fish", "chips", ""]
    lists = build_unit(tmp_path / "lists", SPEC, ids, titles, texts)
    table = pa.table({"id": ids, "title": pa.array(["One", None, "Two"]), "text": texts})
    table = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    assert build_unit(tmp_path / "arrow", SPEC, table["id"], table["title"], table["text"]) == lists
    a, b = (tmp_path / name / "segments" / "00000" for name in ("lists", "arrow"))
    assert files_of(a) == files_of(b)


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
        "lost",
        [
            "stats.json",
            "ids.arrow",
            "text.terms.npy",
            "title.numbers.npy",
            "text.norms.npy",
            "tantivy/meta.json",
        ],
    )
    def test_a_missing_file(self, make, tmp_path, lost):
        make(texts("fish"))
        folder = next(tmp_path.glob("*/whole"))
        (folder / lost).unlink()
        with pytest.raises(StoreError, match="build"):
            Bm25Index.open(folder, SPEC)

    def test_a_file_that_is_cut(self, make, tmp_path):
        make(texts("fish and chips"))
        file = next(tmp_path.glob("*/whole/text.frequencies.npy"))
        file.write_bytes(file.read_bytes()[:-1])
        with pytest.raises(StoreError, match=r"is damaged .* rebuild it"):
            Bm25Index.open(file.parent, SPEC)

    def test_a_unit_without_one_of_its_parts(self, tmp_path):
        build_unit(tmp_path / "unit", SPEC, ["a"], [""], ["fish"])
        (tmp_path / "unit" / "segments" / "00000" / "title.terms.npy").unlink()
        with pytest.raises(StoreError, match=r"title.terms.npy: .* is missing; build it again"):
            combine([tmp_path / "unit"], tmp_path / "index", SPEC)

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
