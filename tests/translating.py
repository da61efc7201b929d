"""What the tests of whole translations share: sets, experiment files, a server whose model is the mock."""

import io
import json
import random
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from unittest import mock

from beir_folder import doc, query, write_beir
from fault_server import FaultServer
from support import ROOT

from beirnl.llm import Request, in_order
from beirnl.llm.mock import MockLlm
from beirnl.pipeline import Pipeline
from beirnl.specs import LlmSpec

FREE = {"input": 0, "output": 0}


@cache
def sentences() -> list[str]:
    """The English sentences of the embedded sample, in a fixed order of no meaning."""
    texts = [json.loads(line)["text"] for line in (ROOT / "beirnl" / "sample" / "corpus.jsonl").open()]
    found = [f"{sentence.rstrip('.')}." for text in texts for sentence in text.split(". ")]
    random.Random(1).shuffle(found)
    return found


def documents(number: int, seed: int = 7) -> list[dict]:
    """Different documents of three sentences, with titles; those of another seed have other ids and texts."""
    draw = random.Random(seed)
    letter = chr(ord("d") + seed - 7)
    return [
        doc(f"{letter}{n}", " ".join(draw.sample(sentences(), 3)), f"Document {n} of {number}")
        for n in range(number)
    ]


def write_set(folder: Path, corpus: Sequence[dict], queries: Sequence[str] = ("What is a cell?",)) -> Path:
    """A BEIR folder; every query is judged with the first document."""
    rows = [query(f"q{n}", text) for n, text in enumerate(queries)]
    return write_beir(folder, corpus, rows, [(row["_id"], corpus[0]["_id"], 1) for row in rows])


def table(heading: str, /, **settings: Any) -> str:
    """A TOML table; nested dicts are tables of their own, ``price`` an inline one."""
    inline, below = [f"[{heading}]"], ""
    for key, value in settings.items():
        if isinstance(value, dict) and key != "price":
            below += table(f"{heading}.{key}", **value)
        else:
            inline.append(f"{key} = {_value(value)}")
    return "\n".join(inline) + "\n" + below


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + " }"
    return json.dumps(str(value) if isinstance(value, Path) else value)


def translation(**settings: Any) -> str:
    """A [translation] table into Dutch, by the mock engine if nothing else is said."""
    return table("translation", **{"to": "nl", "engine": "mock", **settings})


def served(there: FaultServer, engine: str = "openai", /, **settings: Any) -> dict[str, Any]:
    """Settings of an engine that the server answers, a price of nothing included."""
    own = {"base_url": f"{there.url}/v1", "api_key_env": "", "in_flight": 4, "poll_seconds": 0.05}
    own |= settings.pop("server", {})
    return {"engine": engine, "model": "mock", "price": FREE, "server": own, **settings}


def dutch(prompt: str) -> str:
    """What the mock engine answers to the prompt of a chat: the model of the servers."""
    return in_order(MockLlm(LlmSpec(engine="mock")), [Request(messages=(("user", prompt),))])[0].text


def finals(
    pipeline: Pipeline, kind: str = "document", dataset: str = "own", back: bool = False
) -> list[dict]:
    """The translated rows, in the order of the source."""
    (found,) = (
        t.final for t in pipeline.graph.translations if (t.kind, t.dataset, t.back) == (kind, dataset, back)
    )
    tables = found.artifact(pipeline.workspace).tables()
    return sorted((row for part in tables for row in part.to_pylist()), key=lambda row: row["row"])


def by_id(pipeline: Pipeline, **which: Any) -> dict[str, dict]:
    """The translated rows by identifier; none stands there twice."""
    rows = finals(pipeline, **which)
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


def counted(pipeline: Pipeline, stage: str, name: str = "asked") -> int:
    """A count of all receipts of a stage."""
    nodes = [node for node in pipeline.graph.nodes.values() if node.stage == stage]
    return sum(r.counts.get(name, 0) for n in nodes for r in n.artifact(pipeline.workspace).receipts())


class Said(NamedTuple):
    """How a command ended and what it has written."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line of an error, which is the last."""
        (line,) = (line for line in self.err.splitlines() if line.startswith("error: "))
        assert self.err.endswith(f"{line}\n") and "Traceback" not in self.err and self.code == 2
        return line


def command(*arguments: object) -> Said:
    """Run the command line in this process: all of it but the end of the process."""
    from beirnl.cli import main

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    code: object = 0
    nothing = io.TextIOWrapper(io.BytesIO())
    patches = mock.patch("os._exit", _leave), mock.patch("sys.stdin", nothing)
    with redirect_stdout(out), redirect_stderr(err), patches[0], patches[1]:
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code or 0
    assert isinstance(code, int)
    return Said(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))


def _leave(code: int) -> NoReturn:
    raise SystemExit(code)
