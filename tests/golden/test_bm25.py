"""BM25 against Lucene 9.9.1's runs, against the formula in a few lines, against itself in other units."""

import gzip
import math
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context

import msgspec
import numpy as np
import pytest
import pytrec_eval
from support import shared

from beirnl.retrieval.analysis import analyzer
from beirnl.retrieval.bm25 import Bm25Index, build_unit, combine, count_terms
from beirnl.specs import Bm25Spec

DUTCH, ENGLISH = Bm25Spec(analyzer="dutch"), Bm25Spec(analyzer="english")


class Folder:
    """A BEIR folder: ids, titles and texts of its documents, the judged queries, qrels."""

    def __init__(self, *parts, every_untitled=0):
        decode = msgspec.json.Decoder().decode
        documents = list(map(decode, shared(*parts, "corpus.jsonl").read_bytes().splitlines()))
        self.ids = [document["_id"] for document in documents]
        self.titles = [
            "" if every_untitled and i % every_untitled == 0 else d["title"] for i, d in enumerate(documents)
        ]
        self.texts = [document["text"] for document in documents]
        self.qrels = {}
        for line in shared(*parts, "qrels", "test.tsv").read_text("utf-8").splitlines()[1:]:
            query_id, doc_id, relevance = line.split("\t")
            self.qrels.setdefault(query_id, {})[doc_id] = int(relevance)
        queries = map(decode, shared(*parts, "queries.jsonl").read_bytes().splitlines())
        self.queries = {q["_id"]: q["text"] for q in queries if q["_id"] in self.qrels}


def units(folder, spec, n, out):
    """Arguments of build_unit for n parts."""
    cuts = [len(folder.ids) * i // n for i in range(n + 1)]
    for i, (start, end) in enumerate(pairwise(cuts)):
        columns = (column[start:end] for column in (folder.ids, folder.titles, folder.texts))
        yield out / f"unit-{i}", spec, *columns, start


def index(folder, spec, n, out):
    parts = list(units(folder, spec, n, out))
    for part in parts:
        build_unit(*part)
    combine([part[0] for part in parts], out / "index", spec)
    return Bm25Index.open(out / "index", spec)


def search(folder, bm25, k=100):
    hits = bm25.search(list(folder.queries.values()), k)
    return {query: dict(zip(*found, strict=True)) for query, found in zip(folder.queries, hits, strict=True)}


@pytest.fixture(scope="module")
def dutch():
    return Folder("libreoffice_help", "nl")


@pytest.fixture(scope="module")
def dutch_run(dutch, tmp_path_factory):
    return search(dutch, index(dutch, DUTCH, 1, tmp_path_factory.mktemp("one")))


def check(folder, run, reference, ndcg, recall):
    """Measures over all judged queries, and the same hits and scores as Lucene."""
    evaluator = pytrec_eval.RelevanceEvaluator(folder.qrels, {"ndcg_cut.10", "recall.100"})
    values = evaluator.evaluate(
        {q: {d: float(s) for d, s in hits.items()} for q, hits in run.items() if hits}
    )
    for measure, expected in {"ndcg_cut_10": ndcg, "recall_100": recall}.items():
        mean = sum(value[measure] for value in values.values()) / len(folder.qrels)
        assert mean == pytest.approx(expected, abs=0.001), measure
    lucene = {}
    with gzip.open(
        shared("lucene", f"{reference}.elasticsearch_bm25.run.gz"), "rt", encoding="utf-8"
    ) as file:
        for query, _, doc_id, _, score, _ in map(str.split, file):
            lucene.setdefault(query, {})[doc_id] = float(score)
    overlaps = []
    for query, hits in lucene.items():
        top = set(list(hits)[:10])
        overlaps.append(len(top & set(list(run[query])[:10])) / len(top))
        common = hits.keys() & run[query].keys()
        assert common
        assert max(abs(hits[d] - run[query][d]) for d in common) < 1e-4
        # What one of the two lacks ties at the cut.
        assert min(hits.values()) == pytest.approx(min(run[query].values()), abs=1e-4)
    assert np.mean(overlaps) >= 0.995
    return len(lucene)


def test_scifact(tmp_path):
    scifact = Folder("scifact")
    run = search(scifact, index(scifact, ENGLISH, 2, tmp_path))
    assert check(scifact, run, "scifact", 0.6906, 0.9192) == 300


def test_libreoffice_dutch(dutch, dutch_run):
    assert len(dutch.queries) == 6600
    assert check(dutch, dutch_run, "libreoffice_nl", 0.5952, 0.9135) == 997


def test_libreoffice_english(tmp_path):
    english = Folder("libreoffice_help", "en")
    run = search(english, index(english, ENGLISH, 1, tmp_path))
    assert check(english, run, "libreoffice_en", 0.6812, 0.9705) == 999


def test_libreoffice_with_missing_titles(tmp_path):
    untitled = Folder("libreoffice_help", "nl", every_untitled=10)
    run = search(untitled, index(untitled, DUTCH, 3, tmp_path))
    assert check(untitled, run, "libreoffice_nl_untitled", 0.5872, 0.9107) == 997


@pytest.mark.parametrize("n", [3, 7])
def test_units_change_no_bit(dutch, dutch_run, n, tmp_path):
    """Built by other processes, whose hash seeds and orders of types differ."""
    parts = list(units(dutch, DUTCH, n, tmp_path))
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        list(pool.map(build_unit, *zip(*parts, strict=True)))
    # The order in which units are named does not matter either.
    combine([part[0] for part in reversed(parts)], tmp_path / "index", DUTCH)
    run = search(dutch, Bm25Index.open(tmp_path / "index", DUTCH))
    assert {query: list(hits.items()) for query, hits in run.items()} == {
        query: list(hits.items()) for query, hits in dutch_run.items()
    }


def test_document_shards_change_no_bit(dutch, dutch_run, tmp_path):
    shards = []
    for number, (unit, spec, *columns, _) in enumerate(units(dutch, DUTCH, 4, tmp_path)):
        build_unit(unit, spec, *columns)
        combine([unit], tmp_path / f"shard-{number}", spec)
        shards.append(tmp_path / f"shard-{number}")
    count_terms(shards, tmp_path / "counts", DUTCH)
    runs = [search(dutch, Bm25Index.open(shard, DUTCH, tmp_path / "counts")) for shard in shards]
    for query, expected in dutch_run.items():
        found = [(score, doc_id) for run in runs for doc_id, score in run[query].items()]
        assert [(d, s) for s, d in sorted(found, reverse=True)[:100]] == list(expected.items())


def brute_force(texts, queries, k1, b):
    """BM25 of every document in one field, by the formula; shape (queries, documents)."""
    terms = [Counter(text) for text in texts]
    lengths = np.array([len(text) for text in texts])
    documents = np.count_nonzero(lengths)
    # Lucene keeps four significant bits of a length beyond 24.
    lost = [max(int(n - 24).bit_length() - 4, 0) if n > 24 else 0 for n in lengths]
    kept = np.array(
        [24 + ((int(n) - 24) >> bits << bits) if bits else n for n, bits in zip(lengths, lost, strict=True)]
    )
    norm = k1 * (1 - b + b * kept / (lengths.sum() / documents))
    scores = np.zeros((len(queries), len(texts)))
    for row, query in zip(scores, queries, strict=True):
        for term in query:
            tf = np.array([counts[term] for counts in terms])
            df = np.count_nonzero(tf)
            row += math.log(1 + (documents - df + 0.5) / (df + 0.5)) * tf / (tf + norm)
    return scores


@pytest.mark.parametrize("profile", ["elasticsearch", "flat"])
def test_the_formula_in_a_few_lines(dutch, profile, tmp_path):
    spec = Bm25Spec(analyzer="dutch", profile=profile)
    bm25 = index(dutch, spec, 2, tmp_path)
    texts, terms = list(dutch.queries.values())[::20], analyzer("dutch").batch
    assert len(texts) == 330
    if profile == "flat":
        joined = [f"{title} {text}".strip() for title, text in zip(dutch.titles, dutch.texts, strict=True)]
        scores = brute_force(terms(joined), terms(texts), 1.2, 0.75)
    else:
        title, text = (brute_force(terms(c), terms(texts), 1.2, 0.75) for c in (dutch.titles, dutch.texts))
        scores = np.maximum(title, text) + 0.5 * np.minimum(title, text)
    scores = scores.astype(np.float32)
    for expected, (ids, found) in zip(scores, bm25.search(texts, 100), strict=True):
        ranked = sorted(
            ((s, d) for s, d in zip(expected.tolist(), dutch.ids, strict=True) if s), reverse=True
        )[:100]
        assert found == pytest.approx([score for score, _ in ranked], abs=1e-4)
        assert ids == [doc_id for _, doc_id in ranked]
