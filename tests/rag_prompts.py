"""Questions, runs and specs of answers, for tests of prompts."""

import pyarrow as pa

from beirnl import registry
from beirnl.rag.tables import QUESTIONS
from beirnl.schema import RUN
from beirnl.specs import AnswerSpec, LlmSpec


def spec(**settings) -> AnswerSpec:
    prompt = settings.pop("prompt", "answer")
    llm = LlmSpec(engine="mock", max_model_len=settings.pop("window", 4096))
    return AnswerSpec(llm=llm, prompt=prompt, template=registry.prompt(prompt), **settings)


def questions(*rows, options=("one", "two", "three", "four"), answer=0) -> pa.Table:
    full = [
        {"doc_id": "", "options": list(options), "answer": answer, "explanations": [], "origin": "user"} | row
        for row in rows
    ]
    return pa.Table.from_pylist(full, schema=QUESTIONS)


def run(ranked: dict[str, list[str]]) -> pa.Table:
    rows = [(q, name, 1.0 / n) for q, names in ranked.items() for n, name in enumerate(names, 1)]
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=RUN)


def words(text: str) -> int:
    return len(text.split())
