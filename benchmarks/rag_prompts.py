"""Prompts of question answering: a loop over questions, systems and k, and what the engine is asked.

python benchmarks/rag_prompts.py [--questions 1000] [--documents 5000]

The experiment is run through the whole pipeline: five BM25 systems, each with parameters of its own, rank
passages of 100 words, and the mock engine answers with k in 0, 1, 2, 3, 4, 5, 10; what it is asked is counted
where it is asked. The loop renders every prompt out of the runs, as BES4RAG's prototype asks them. Prints the
counts, the seconds of the stage that plans and those of the loop; exits with 1 if the engine is asked a
prompt twice, or one that the loop would not ask, or if one of the loop's is missing.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import setting  # noqa: F401 - puts what the tests share on the path
from pyarrow import parquet

# isort: split
from rag_experiments import counted, found, rag, write_questions
from running import experiment, run, system

from beirnl import registry
from beirnl.llm.mock import MockLlm
from beirnl.pipeline import Pipeline
from beirnl.rag.answers.prompts import request_for
from beirnl.rag.prompts import read_answer_prompt
from beirnl.reporting import gather
from beirnl.specs import AnswerSpec, LlmSpec
from beirnl.stages.questions import questions_of

KS = (0, 1, 2, 3, 4, 5, 10)
WORDS, VOCABULARY, WINDOW = 100, 5_000, 1 << 20
PARAMETERS = ((1.2, 0.75), (0.0, 0.0), (3.0, 1.0), (0.9, 0.4), (2.0, 0.0))
ANSWERS = f'[[rag.answers]]\nengine = "mock"\nmax_model_len = {WINDOW}\n'


def write(folder: Path, questions: int, documents: int) -> Path:
    """Documents and questions of words drawn by seed, and the experiment file."""
    draw = random.Random(7)
    (folder / "documents").mkdir()
    texts = pa.table(
        {
            "_id": [f"d{n}" for n in range(documents)],
            "text": [
                " ".join(
                    f"word{draw.randrange(VOCABULARY)}" for _ in range(draw.randrange(WORDS // 2, WORDS))
                )
                for _ in range(documents)
            ],
        }
    )
    parquet.write_table(texts, folder / "documents" / "corpus.parquet")
    rows = [
        {
            "question": f"What of word{n % VOCABULARY} and word{draw.randrange(VOCABULARY)}?",
            "answer_index": n % 4,
        }
        | {"options": [f"{place} of {n}" for place in range(4)]}
        for n in range(questions)
    ]
    own = write_questions(folder / "own.json", rows)
    systems = "".join(system("bm25", f"k1-{k1}-b-{b}", k1=k1, b=b) for k1, b in PARAMETERS)
    return experiment(folder, rag(folder / "documents", ANSWERS, own, k=5, ks=list(KS)) + systems)


class Counting(MockLlm):
    """The mock engine, which counts what it is asked."""

    prompts: ClassVar[Counter[str]] = Counter()

    def generate(self, requests, enough=lambda: False):
        self.prompts.update(request.last_text for request in requests)
        return super().generate(requests, enough)


def loop(pipeline: Pipeline) -> list[str]:
    """All prompts, as a loop over systems, questions and k renders them."""
    spec = AnswerSpec(
        llm=LlmSpec(engine="mock", max_model_len=WINDOW),
        prompt="answer",
        template=registry.prompt("answer"),
        max_tokens=1,
    )
    template, prompts = read_answer_prompt(spec.prompt, spec.template), []
    questions = questions_of(pipeline.graph.answering.questions.artifact(pipeline.workspace)).to_pylist()
    for one in pipeline.graph.answering.searched:
        ranked = found(pipeline, one.system.name)
        for row in questions:
            for k in KS:
                passages = ranked.get(row["id"], [])[:k]
                prompts.append(
                    request_for(row["question"], row["options"], passages, template, spec).last_text
                )
    return prompts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--documents", type=int, default=5000)
    options = parser.parse_args()
    sys.modules["beirnl.llm.mock"].MockLlm = Counting  # the class that the engine's name leads to
    with tempfile.TemporaryDirectory() as name:
        pipeline = run(write(Path(name), options.questions, options.documents))
        asked = Counting.prompts
        (receipt,) = pipeline.graph.answering.plans["mock"].artifact(pipeline.workspace).receipts()
        begin = time.monotonic()
        naive = loop(pipeline)
        seconds = time.monotonic() - begin
        counts = counted(pipeline, "plans")
        said = [note for note in gather(pipeline).notes if "distinct prompts" in note]
    bare = sum("[1]" not in prompt for prompt in asked.elements())
    print(f"{options.questions} questions, {len(PARAMETERS)} systems, k in {KS}")
    print(
        f"loop: {len(naive)} requests; the engine was asked {asked.total()}, {bare} of them without passages"
    )
    print(f"report: {' '.join(said)}")
    print(f"seconds: plan-answers {receipt.seconds:.2f}, loop {seconds:.2f}")
    wanted = len(PARAMETERS) * len(KS) * options.questions, len(set(naive))
    told = counts["requests, naive"], counts["requests, distinct"]
    if told != wanted or set(asked) != set(naive) or max(asked.values()) > 1 or len(said) != 1:
        sys.exit("prompts are asked twice, or are missing, or are counted wrongly")


if __name__ == "__main__":
    main()
