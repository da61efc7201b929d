"""Questions and simulated replies to them, for tests of what is made of replies."""

from typing import NamedTuple

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


class Experiment(NamedTuple):
    """A whole experiment as simulated: the frames that a result is made of."""

    questions: pl.DataFrame
    replies: pl.DataFrame
    passages: pl.DataFrame
    ranked: pl.DataFrame
    costs: pl.DataFrame


#: Chance that a system ranks the source document at each place, from the first.
FINDS = {"multilingual-e5-small": 0.55, "USE-multilingual": 0.45, "all-MiniLM-L6-v2": 0.15, "BM25": 0.4}
KS = (0, 1, 2, 3, 4, 5, 10)


def experiment(seed=1, n=60, llms=(("Llama-3.1-70B", 0.9), ("Llama-3.1-8B", 0.7)), mark=""):
    """An LLM is right with its chance where the source is in the context, else with 0.3.

    Args:
        seed: of everything.
        n: number of questions, one per document; a third are the user's own.
        llms: names and chances.
        mark: put into every text.
    """
    generator = np.random.default_rng(seed)
    documents = [f"news/{at:03}.txt" for at in range(n)]
    questions = question_frame(documents).with_columns(
        question=pl.lit(f"What is said of matter{mark} ") + pl.col("id") + "?",
        options=pl.concat_list(pl.lit(f"{x} way{mark}") for x in ("one", "another", "a third", "no")),
        origin=pl.when(pl.int_range(pl.len()) % 3 == 0).then(pl.lit("user")).otherwise(pl.lit("generated")),
    )
    passages = pl.DataFrame(
        {
            "id": [f"{document}#{part}" for document in documents for part in range(3)],
            "doc_id": [document for document in documents for _ in range(3)],
            "text": [
                f"Passage {part} of {document}{mark}. " + "It goes on for a while. " * 12
                for document in documents
                for part in range(3)
            ],
        }
    )
    ranked, rows = [], []
    for at, document in enumerate(documents):
        lists = {name: _ranking(generator, documents, document, chance) for name, chance in FINDS.items()}
        ranked += [
            (f"q{at}", name, rank, passage.partition("#")[0])
            for name, found in lists.items()
            for rank, passage in enumerate(found, 1)
        ]
        for llm, able in llms:
            rows.append(_reply(generator, at, llm, "", 0, [], 0.3))
            for name, found in lists.items():
                for k in KS[1:]:
                    known = any(passage.startswith(document) for passage in found[:k])
                    rows.append(_reply(generator, at, llm, name, k, found[:k], able if known else 0.3))
    costs = pl.DataFrame(
        {
            "system": list(FINDS),
            "passages": [180, 180, 240, 180],
            "dimension": [384, 512, 384, None],
            "seconds": [31.5, 22.0, 12.0, 0.4],
        }
    )
    frame = pl.DataFrame(ranked, ["question_id", "system", "rank", "doc_id"], orient="row")
    replies = pl.from_arrow(pa.Table.from_pylist(rows, REPLIES))
    return Experiment(questions, replies, passages, frame, costs)


def _ranking(generator, documents, source, chance):
    found = [
        f"{name}#{generator.integers(3)}" for name in generator.permutation(documents)[:11] if name != source
    ]
    place = generator.geometric(chance) - 1
    return [*found[:place], f"{source}#1", *found[place:]][:10]


def _reply(generator, at, llm, system, k, context, chance):
    answer = at % 4 if generator.random() < chance else (at + 1 + int(generator.integers(3))) % 4
    invalid = generator.random() < 0.02
    logprobs = generator.normal(-3, 0.5, 4)
    logprobs[answer] = -0.4
    return {
        "question_id": f"q{at}",
        "llm": llm,
        "system": system,
        "k": k,
        "permutation": 0,
        "answer": -1 if invalid else answer,
        "logprobs": logprobs.tolist(),
        "context": list(context),
        "cut": 0,
        "prompt_tokens": 60 + 80 * k + len(system),
    }
