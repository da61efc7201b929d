"""Questions and simulated replies to them, for tests of what is made of replies."""

import numpy as np
import polars as pl
import pyarrow as pa

from beirnl.rag.marks import marks
from beirnl.rag.tables import QUESTIONS, REPLIES


def question_frame(documents, origin="generated"):
    rows = [
        {
            "id": f"q{at}",
            "doc_id": document,
            "question": f"question {at}?",
            "options": ["a", "b", "c", "d"],
            "answer": at % 4,
            "explanations": [],
            "origin": origin,
        }
        for at, document in enumerate(documents)
    ]
    return pl.from_arrow(pa.Table.from_pylist(rows, QUESTIONS))


def reply_frame(right, permutations=1):
    """Replies from right answers: (llm, system, k) -> one number of right rotations per question."""
    rows = [
        {
            "question_id": f"q{at}",
            "llm": llm,
            "system": system,
            "k": k,
            "permutation": rotation,
            "answer": at % 4 if rotation < count else (at + 1) % 4,
            "logprobs": [],
            "context": [],
            "cut": 0,
            "prompt_tokens": 100,
        }
        for (llm, system, k), counts in right.items()
        for at, count in enumerate(counts)
        for rotation in range(permutations)
    ]
    return pl.from_arrow(pa.Table.from_pylist(rows, REPLIES))


def simulated(seed=3, n=120, chances=(0.5, 0.6, 0.9)):
    generator = np.random.default_rng(seed)
    names = ["MiniLM", "E5", "ColBERT"]
    right = {("llm", "", 0): (generator.random(n) < 0.3).astype(int)}
    for k in (1, 5):
        for name, chance in zip(names, chances, strict=True):
            right["llm", name, k] = (generator.random(n) < chance - 0.1 * (k == 1)).astype(int)
    return right


def build(right, documents=None, permutations=1):
    n = len(next(iter(right.values())))
    questions = question_frame(documents or [f"d{at}" for at in range(n)])
    return marks(questions, reply_frame(right, permutations))
