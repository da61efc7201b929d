"""One set of documents, queries and judgements, written for every way in which a set can come."""

import html
import io
import json
from collections import namedtuple

import pyarrow as pa
import pyarrow.parquet as pq
from beir_folder import write_beir
from hub_server import Repositories, hub_at, serving

Doc = namedtuple("Doc", "doc_id text title")


class Ways:
    """Writes a set and gives the path by which an experiment names it.

    Args:
        folder: where files go.
        monkeypatch: for the hub's client.
    """

    NAMES = ("beir", "hub", "trec", "irds")

    def __init__(self, folder, monkeypatch):
        self.folder, self._monkeypatch = folder, monkeypatch
        self._open, self._registered = [], []
        monkeypatch.setenv("BEIRNL_CACHE", str(folder / "cache" / "models"))

    def write(self, way, corpus, queries, qrels, split="test"):
        return getattr(self, f"_{way}")(corpus, queries, qrels, split)

    def close(self):
        for one in reversed(self._open):
            one.__exit__(None, None, None)
        for name in self._registered:
            import ir_datasets

            del ir_datasets.registry._registered[name]

    def _beir(self, corpus, queries, qrels, split):
        return write_beir(self.folder / "set", corpus, queries, qrels, split)

    def _hub(self, corpus, queries, qrels, split):
        rows = [dict(zip(("query-id", "corpus-id", "score"), row, strict=True)) for row in qrels]
        return self.hub_of(
            {
                "corpus/corpus-00000-of-00001.parquet": parquet(corpus),
                "queries/queries-00000-of-00001.parquet": parquet(queries),
                f"data/{split}-00000-of-00001.parquet": parquet(rows),
            }
        )

    def hub_of(self, files):
        """The path of a repository with these files."""
        repositories = Repositories()
        repositories.publish("org/set", files)
        self._open.append(serving(repositories))
        address = self._open[-1].__enter__()
        self._open.append(hub_at(address, self._monkeypatch, self.folder / "hub"))
        self._open[-1].__enter__()
        return "hub:org/set"

    def _trec(self, corpus, queries, qrels, split):
        made = self.folder / "trec"
        made.mkdir()
        (made / "docs.trec").write_text("".join(f"<DOC>{_fields(row, 'DOCNO')}</DOC>\n" for row in corpus))
        topics = (f"<top>{_tag('num', row['_id'])}{_tag('title', row['text'])}</top>\n" for row in queries)
        (made / "topics.trec").write_text("".join(topics))
        lines = (f"{query_id}\t0\t{doc_id}\t{label}\n" for query_id, doc_id, label in qrels)
        (made / f"qrels.{split}.txt").write_text("".join(lines))
        return made

    def _irds(self, corpus, queries, qrels, split):
        import ir_datasets
        from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries, GenericQuery, TrecQrel

        class Docs(BaseDocs):
            def docs_iter(self):
                return (Doc(str(r["_id"]), r.get("text") or "", r.get("title") or "") for r in corpus)

        class Queries(BaseQueries):
            def queries_iter(self):
                return (GenericQuery(str(row["_id"]), row["text"]) for row in queries)

        class Qrels(BaseQrels):
            def qrels_iter(self):
                return (TrecQrel(str(q), str(d), label, "0") for q, d, label in qrels)

        name = f"own-{self.folder.name}"
        ir_datasets.registry.register(name, ir_datasets.Dataset(Docs(), Queries(), Qrels()))
        self._registered.append(name)
        return f"irds:{name}"


def parquet(rows):
    """Rows as a Parquet file; identifiers become text where they are mixed."""
    if len({type(row.get("_id")) for row in rows}) > 1:
        rows = [{**row, "_id": str(row["_id"])} for row in rows]
    names = dict.fromkeys(name for row in rows for name in row)
    sink = io.BytesIO()
    pq.write_table(pa.table({name: [row.get(name) for row in rows] for name in names}), sink)
    return sink.getvalue()


def _fields(row, number):
    title, text = _tag("TITLE", row.get("title") or ""), _tag("TEXT", row.get("text") or "")
    return _tag(number, row["_id"]) + title + text


def _tag(name, text):
    return f"<{name}>{html.escape(str(text), quote=False)}</{name}>"


def lines(rows):
    """Rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
