"""Inputs that break tools of this kind, each through a whole run: what is expected is in the test's name."""

import gzip
import json
from pathlib import Path

import pytest
from beir_folder import doc, query, write_beir
from running import BM25, beirnl, dataset, experiment, ranking, report, run, system

from beirnl.errors import DataError
from beirnl.reporting import gather

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]


def one(tmp_path, corpus, queries, qrels, systems=BM25, name="own", split="test", **settings):
    """An experiment on one hand-made set."""
    folder = write_beir(tmp_path / "set", corpus, queries, qrels, settings.pop("stored_as", split))
    return experiment(tmp_path, dataset(folder, name, split=split, **settings) + systems)


def value(found, measure="nDCG@10", **which):
    values = [
        r.value
        for r in found.records
        if r.measure == measure and all(getattr(r, k) == v for k, v in which.items())
    ]
    assert len(values) == 1
    return values[0]


# Corpus, queries, qrels -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("remove", "expected"), [(True, ["y"]), (False, ["x"])])
def test_01_self_matches_are_removed_before_the_cut_where_the_dataset_says_so(tmp_path, remove, expected):
    corpus = [doc("x", "alpha beta gamma delta"), doc("y", "alpha beta gamma"), doc("z", "kappa")]
    path = one(
        tmp_path,
        corpus,
        [query("x", "alpha beta gamma delta")],
        [("x", "y", 1)],
        BM25 + "depth = 1\n",
        remove_self_matches=remove,
    )
    assert ranking(run(path))["x"] == expected


def test_01_self_matches_are_removed_before_and_after_reranking(tmp_path, tiny_encoder):
    corpus = [doc("x", "alpha beta gamma delta"), doc("y", "alpha beta gamma"), doc("z", "delta")]
    systems = BM25 + (
        system("rerank", "two", first="bm25", method="bi-encoder", model=tiny_encoder, depth=1)
        + system("dense", "dense", model=tiny_encoder, depth=2)
    )
    path = one(
        tmp_path,
        corpus,
        [query("x", "alpha beta gamma delta")],
        [("x", "y", 1)],
        systems,
        remove_self_matches=True,
    )
    pipeline = run(path)
    assert ranking(pipeline, "two") == {"x": ["y"]}
    assert sorted(ranking(pipeline, "dense")["x"]) == ["y", "z"]


def test_02_qrels_that_name_a_missing_document_count_in_the_denominator(tmp_path):
    path = one(tmp_path, [doc("a", "alpha")], [query("q", "alpha")], [("q", "a", 1), ("q", "gone", 1)])
    found = report(path)
    assert value(found, "R@100") == 0.5
    assert any("1 document that the corpus lacks" in line and "gone" in line for line in found.warnings)


def test_03_qrels_that_name_a_missing_query_are_not_scored(tmp_path):
    path = one(tmp_path, [doc("a", "alpha")], [query("q", "alpha")], [("q", "a", 1), ("gone", "a", 1)])
    found = report(path)
    assert [r.queries for r in found.records] == [1, 1] and value(found) == 1.0
    assert any("1 query that queries.jsonl lacks" in line and "gone" in line for line in found.warnings)


def test_04_a_query_without_relevant_documents_scores_0_and_is_counted(tmp_path):
    corpus = [doc("a", "alpha"), doc("b", "beta")]
    queries = [query("q1", "alpha"), query("q2", "beta"), query("unjudged", "alpha")]
    found = report(one(tmp_path, corpus, queries, [("q1", "a", 1), ("q2", "b", 0)]))
    record = next(r for r in found.records if r.measure == "nDCG@10")
    assert (record.value, record.queries, record.without_relevant, record.value_with_relevant) == (
        0.5,
        2,
        1,
        1.0,
    )
    assert any("no relevant document" in line and "q2" in line for line in found.warnings)


def test_05_labels_of_0_do_not_count_as_relevant(tmp_path):
    path = one(
        tmp_path,
        [doc("a", "alpha"), doc("b", "alpha")],
        [query("q", "alpha")],
        [("q", "a", 1), ("q", "b", 0)],
    )
    assert value(report(path), "R@100") == 1.0


def test_06_a_split_that_is_not_there_lists_those_that_are(tmp_path):
    path = one(tmp_path, [doc("a")], [query("q")], [("q", "a", 1)], split="validation", stored_as="dev")
    done = beirnl("run", path, check=2)
    assert "no split 'validation' (present: dev)" in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "workspace" / "artifacts").exists()


def parts(tmp_path, names, **settings):
    """Two kinds of part: with one query that is answered, and with three that are not."""
    for name in names:
        good = name != "bad"
        queries = [query(f"q{n}", "alpha" if good else "beta") for n in range(1 if good else 3)]
        qrels = [(q["_id"], "a", 1) for q in queries]
        write_beir(tmp_path / "set" / name, [doc("a", "alpha"), doc("b", "beta")], queries, qrels)
    return experiment(tmp_path, dataset(tmp_path / "set", "forums", **settings) + BM25)


def test_07_and_08_parts_are_averaged_whatever_their_size(tmp_path):
    found = report(parts(tmp_path, ["good", "bad"]))
    assert value(found, dataset="forums") == 0.5
    assert {r.conditions.averaging for r in found.records} == {"parts"}
    assert sum(r.queries for r in found.records if r.measure == "nDCG@10") == 4


def test_09_a_missing_part_makes_the_mean_incomplete(tmp_path):
    names = [f"forum{n}" for n in range(12)]
    path = parts(tmp_path, names[:11], parts=names)
    assert value(report(path)) is None
    shown = beirnl("report", path, "--format", "markdown").stdout
    assert "incomplete" in shown and "NaN" not in shown
    records = json.loads(beirnl("report", path, "--format", "json").stdout)
    assert {record["value"] for record in records} == {None}


def test_10_graded_labels_have_linear_gain(tmp_path):
    corpus = [doc("d1", "alpha beta"), doc("d2", "alpha alpha alpha")]
    found = report(one(tmp_path, corpus, [query("q", "alpha")], [("q", "d1", 2), ("q", "d2", 1)]))
    assert value(found) == pytest.approx(0.8597, abs=5e-5)


def test_11_ties_are_ordered_by_id_descending(tmp_path):
    corpus = [doc(i, "alpha") for i in ("a", "c", "b")]
    path = one(
        tmp_path, corpus, [query("q", "alpha")], [("q", "c", 1)], BM25 + '[evaluation]\nmeasures = ["AP"]\n'
    )
    pipeline = run(path)
    assert ranking(pipeline)["q"] == ["c", "b", "a"] and value(gather(pipeline), "AP") == 1.0


def test_11_ties_at_the_cut_are_all_considered(tmp_path):
    corpus = [doc(f"d{n:03}", "alpha") for n in range(300)]
    path = one(tmp_path, corpus, [query("q", "alpha")], [("q", "d299", 1)], BM25 + "depth = 5\n")
    assert ranking(run(path))["q"] == ["d299", "d298", "d297", "d296", "d295"]


def test_12_the_same_document_twice_is_kept_once_with_a_warning(tmp_path):
    path = one(
        tmp_path,
        [doc("a", "alpha"), doc("b", "beta"), doc("a", "alpha")],
        [query("q", "alpha")],
        [("q", "a", 1)],
    )
    found = report(path)
    assert any("1 document occurs more than once" in line for line in found.warnings)
    assert ranking(run(path))["q"] == ["a"]


@pytest.mark.parametrize("which", ["corpus", "queries"])
def test_12_and_15_one_id_with_two_texts_names_both_lines(tmp_path, which):
    twice = [doc("a", "alpha"), doc("b", "beta"), doc("a", "other")]
    corpus = twice if which == "corpus" else [doc("a", "alpha")]
    queries = twice if which == "queries" else [query("a", "alpha")]
    done = beirnl("run", one(tmp_path, corpus, queries, [("a", "a", 1)]), check=2)
    assert (
        f"{which}.jsonl" in done.stderr
        and "lines 1 and 3" in done.stderr
        and done.stderr.count("error:") == 1
    )


def test_13_documents_without_text_are_kept_and_counted(tmp_path):
    corpus = [
        {"_id": "no text"},
        doc("null", None, None),
        doc("no title", "alpha"),
        doc("only title", "", "alpha"),
    ]
    pipeline = run(one(tmp_path, corpus, [query("q", "alpha")], [("q", "no title", 1)]))
    imported = next(n for n in pipeline.graph.nodes.values() if n.stage == "import-corpus").artifact(
        pipeline.workspace
    )
    assert imported.rows == 4 and imported.receipts()[0].counts["empty"] == 2
    assert set(ranking(pipeline)["q"]) == {"no title", "only title"}
    assert any("2 documents have neither title nor text" in line for line in gather(pipeline).warnings)


def test_14_a_number_and_its_text_are_one_id(tmp_path):
    found = report(one(tmp_path, [doc("d", "alpha")], [query(44, "alpha")], [("44", "d", 1)]))
    assert value(found) == 1.0


def test_16_ids_with_odd_characters_never_shift_a_column(tmp_path):
    import pytrec_eval

    names = ["with blank", "comma,", 'quo"te', "#hash", "tab\there", "coëfficiënt", "50%", "%20", "日本"]
    corpus = [doc(name, f"alpha w{n}") for n, name in enumerate(names)]
    qrels = [("q", "comma,", 1), ("q", "with blank", 1)]
    found = report(one(tmp_path, corpus, [query("q", "alpha")], qrels))
    assert value(found, "R@100") == 1.0
    with gzip.open(found.runs[0].path, "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert len(lines) == len(names) and all(len(line.split()) == 6 for line in lines)
    assert len(pytrec_eval.parse_run(lines)["q"]) == len(names)
    from beirnl.evaluation.runs.trec import read_run

    assert set(read_run(Path(found.runs[0].path))["doc_id"].to_pylist()) == set(names)


def test_17_byte_order_mark_crlf_and_blank_lines_load(tmp_path):
    corpus = b'\xef\xbb\xbf{"_id": "a", "text": "alpha"}\r\n{"_id": "b", "text": "beta"}\r\n\r\n'
    queries = b'\xef\xbb\xbf{"_id": "q", "text": "alpha"}\r\n\n'
    qrels = b"\xef\xbb\xbfquery-id\tcorpus-id\tscore\r\nq\ta\t1\r\n\r\n"
    assert value(report(one(tmp_path, corpus, queries, qrels))) == 1.0


@pytest.mark.parametrize("which", ["corpus", "queries"])
@pytest.mark.parametrize(
    "damage",
    [b"nonsense", b'{"_id": "b", "tex', b'{"_id": "b", "text": "\xff"}', b'{"_id": "b", "text": "\0"}'],
)
def test_18_a_damaged_line_is_named_and_nothing_is_half_written(tmp_path, which, damage):
    good = b'{"_id": "a", "text": "alpha"}\n'
    files = {"corpus": good, "queries": good, which: good + damage + b"\n"}
    path = one(tmp_path, files["corpus"], files["queries"], [("a", "a", 1)])
    with pytest.raises(DataError, match=rf"{which}\.jsonl:2"):
        run(path)
    assert not list((tmp_path / "workspace").glob("artifacts/*/*/*/*/manifest.json")) or which == "queries"


def test_19_all_forms_of_qrels(tmp_path):
    for n, qrels in enumerate(
        [b"q\ta\t1\n", b"query-id\tcorpus-id\tscore\nq\ta\t1.0\n", b"q 0 a 1\n", b"q\t0\ta\t1\n"]
    ):
        folder = tmp_path / str(n)
        folder.mkdir()
        assert value(report(one(folder, [doc("a", "alpha")], [query("q", "alpha")], qrels))) == 1.0


def test_20_a_locale_without_unicode(tmp_path):
    path = one(
        tmp_path, [doc("é", "de coëfficiënt")], [query("q", "coëfficiënt")], [("q", "é", 1)], language="nl"
    )
    c = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    beirnl("run", path, **c)
    records = json.loads(beirnl("report", path, "--format", "json", **c).stdout)
    assert [r["value"] for r in records] == [1.0, 1.0]


def test_21_a_document_of_2_mb_is_indexed_and_truncated(tmp_path, tiny_encoder):
    corpus = [doc("long", "alpha beta " * 180_000 + "needle"), doc("short", "gamma")]
    systems = BM25 + system("dense", "dense", model=tiny_encoder)
    pipeline = run(one(tmp_path, corpus, [query("q", "needle")], [("q", "long", 1)], systems))
    assert ranking(pipeline)["q"] == ["long"] and len(ranking(pipeline, "dense")["q"]) == 2
    counts = [
        r.counts.get("truncated")
        for n in pipeline.graph.nodes.values()
        if n.stage == "embed" and n.spec.kind == "document"
        for r in n.artifact(pipeline.workspace).receipts()
    ]
    assert counts == [1]


# Queries and search -----------------------------------------------------------------------------------------

ODD = [
    "fish days:",
    'tv 55" scherm',
    "'s ochtends",
    "A+B-test (2020)",
    "AND OR NOT",
    "*",
    "title:x",
    "a\\b~2^3",
    "[1 TO 2]",
]


def test_22_query_syntax_is_plain_words(tmp_path):
    corpus = [doc(f"d{n}", f"{text} filler") for n, text in enumerate(ODD)]
    queries = [query(f"q{n}", text) for n, text in enumerate(ODD)]
    found = ranking(run(one(tmp_path, corpus, queries, [(f"q{n}", f"d{n}", 1) for n in range(len(ODD))])))
    assert all(found[f"q{n}"][0] == f"d{n}" for n in (0, 1, 2, 3, 6, 7, 8))


def test_23_a_query_of_1500_distinct_words_is_answered(tmp_path):
    text = " ".join(f"word{n}" for n in range(1500))
    path = one(tmp_path, [doc("a", "word7"), doc("b", "word8 word9")], [query("q", text)], [("q", "b", 1)])
    assert ranking(run(path))["q"] == ["b", "a"]


def test_24_queries_without_hits_score_0_and_are_counted(tmp_path):
    queries = [
        query("stop", "the and of"),
        query("empty", ""),
        query("nowhere", "xyzzy"),
        query("good", "alpha"),
    ]
    found = report(one(tmp_path, [doc("a", "alpha")], queries, [(q["_id"], "a", 1) for q in queries]))
    record = next(r for r in found.records if r.measure == "nDCG@10")
    assert (record.value, record.queries) == (0.25, 4)


def test_25_a_depth_beyond_the_corpus(tmp_path, tiny_encoder):
    corpus = [doc(word, word) for word in WORDS]
    systems = BM25 + system("dense", "dense", model=tiny_encoder, depth=1000)
    pipeline = run(one(tmp_path, corpus, [query("q", "alpha beta")], [("q", "alpha", 1)], systems))
    assert sorted(ranking(pipeline)["q"]) == ["alpha", "beta"]
    assert sorted(ranking(pipeline, "dense")["q"]) == sorted(WORDS)


def test_26_any_number_of_shards_gives_the_same_run(tmp_path, tiny_encoder):
    corpus = [doc(f"d{n:02}", " ".join(WORDS[n % 7 : n % 7 + 3])) for n in range(40)]
    systems = BM25 + system("dense", "dense", model=tiny_encoder, depth=10)
    runs = []
    for n, per_shard in enumerate((100, 20, 5)):
        (tmp_path / str(n)).mkdir()
        pipeline = run(
            one(
                tmp_path / str(n),
                corpus,
                [query("q", "beta gamma")],
                [("q", "d01", 1)],
                systems,
                shard_documents=per_shard,
            )
        )
        runs.append((ranking(pipeline)["q"], ranking(pipeline, "dense")["q"]))
    assert len(runs[0][1]) == 10 and runs[0] == runs[1] == runs[2]


def test_27_the_batch_size_does_not_change_the_vectors(tmp_path, tiny_encoder):
    import numpy as np

    from beirnl.stages.dense import vectors_of

    corpus = [
        doc(f"d{n}", " ".join(WORDS[(n + i) % 10] for i in range(5 if n % 2 else 500))) for n in range(12)
    ]
    vectors = []
    for batch in (4, 1):
        (tmp_path / str(batch)).mkdir()
        systems = system("dense", "dense", model=tiny_encoder, batch_size=batch)
        pipeline = run(one(tmp_path / str(batch), corpus, [query("q", "alpha")], [("q", "d1", 1)], systems))
        node = next(
            n for n in pipeline.graph.nodes.values() if n.stage == "embed" and n.spec.kind == "document"
        )
        table = node.artifact(pipeline.workspace).table().sort_by("id")
        vectors.append(vectors_of(table))
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-5)


# Around the data --------------------------------------------------------------------------------------------


def test_a_model_folder_that_is_not_there(tmp_path):
    systems = system("dense", "dense", model="./no/such/model")
    done = beirnl("run", one(tmp_path, [doc("a")], [query("q")], [("q", "a", 1)], systems), check=2)
    assert "no/such/model" in done.stderr and done.stderr.count("\n") == 1


def test_a_misspelt_model_names_the_nearest(tmp_path):
    systems = system("dense", "dense", model="all-MiniLM-L6-v3")
    done = beirnl("plan", one(tmp_path, [doc("a")], [query("q")], [("q", "a", 1)], systems), check=2)
    assert "all-MiniLM-L6-v2" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nonsense"])
def test_a_wrong_ray_address(tmp_path, address):
    path = one(tmp_path, [doc("a", "alpha")], [query("q", "alpha")], [("q", "a", 1)])
    done = beirnl("run", path, "--address", address, check=2)
    assert address in done.stderr and "ray start" in done.stderr and "Traceback" not in done.stderr


def test_a_full_disk_is_one_line_and_the_run_goes_on_later(tmp_path):
    path = one(tmp_path, [doc("a", "alpha")], [query("q", "alpha")], [("q", "a", 1)])
    done = beirnl("run", path, check=2, BEIRNL_FAILPOINT="before-part:0:enospc")
    assert "the disk is full" in done.stderr and "Traceback" not in done.stderr
    beirnl("run", path)


def test_debug_shows_the_traceback(tmp_path):
    done = beirnl("plan", tmp_path / "none.toml", "--debug", check=1)
    assert "Traceback" in done.stderr and "ConfigError" in done.stderr
