"""Prompts of a question answering experiment: a loop over questions, systems and k, and this project's plan.

python benchmarks/rag_prompts.py [--questions 1000] [--systems 5] [--overlap 0.5] [--runs 3]

Systems rank ten of 20,000 passages per question; in a share of the questions (``--overlap``) two of them have
the same first three. The loop renders every prompt, as BES4RAG's prototype asks them; the plan finds the
distinct ones, which are then rendered. Prints the counts, the medians of CPU time and their ratio; exits with
1 if a prompt would be asked twice, or one of the loop's would not be asked.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from beirnl import registry
from beirnl.rag.answers import plan_prompts, requests_for
from beirnl.rag.answers.prompts import request_for
from beirnl.rag.prompts import read_answer_prompt
from beirnl.rag.tables import QUESTIONS
from beirnl.schema import RUN
from beirnl.specs import AnswerSpec, LlmSpec

WORDS, PASSAGES, DEPTH = 100, 20_000, 10


def made(
    questions: int, systems: int, overlap: float
) -> tuple[pa.Table, dict[str, pa.Table], dict[str, str]]:
    draw = random.Random(7)
    texts = {
        f"d{n}#0": " ".join(f"word{draw.randrange(5000)}" for _ in range(WORDS)) for n in range(PASSAGES)
    }
    names = list(texts)
    rows = [
        {
            "id": f"q{n}",
            "doc_id": "",
            "question": f"What is known of word{n}?",
            "answer": n % 4,
            "origin": "user",
        }
        | {"options": [f"word{n + place}" for place in range(4)], "explanations": []}
        for n in range(questions)
    ]
    ranked = {
        s: {row["id"]: draw.sample(names, DEPTH) for row in rows} for s in map("s{}".format, range(systems))
    }
    for row in rows if systems > 1 else ():
        if draw.random() < overlap:
            ranked["s1"][row["id"]][:3] = ranked["s0"][row["id"]][:3]
    runs = {
        system: pa.table(
            [[q for q in found for _ in range(DEPTH)], [name for some in found.values() for name in some],
             [-float(place) for _ in found for place in range(DEPTH)]], schema=RUN,
        )
        for system, found in ranked.items()
    }  # fmt: skip
    return pa.Table.from_pylist(rows, schema=QUESTIONS), runs, texts


def loop(
    questions: pa.Table, runs: dict[str, pa.Table], texts: dict[str, str], spec: AnswerSpec
) -> list[str]:
    template = read_answer_prompt(spec.prompt, spec.template)
    prompts = []
    for run in runs.values():
        found: dict[str, list[str]] = {}
        for query, name in zip(run["query_id"].to_pylist(), run["doc_id"].to_pylist(), strict=True):
            found.setdefault(query, []).append(texts[name])
        for row in questions.to_pylist():
            for k in spec.ks:
                asked = request_for(row["question"], row["options"], found[row["id"]][:k], template, spec)
                prompts.append(asked.last_text)
    return prompts


def plan(
    questions: pa.Table, runs: dict[str, pa.Table], texts: dict[str, str], spec: AnswerSpec
) -> list[str]:
    passages = dict.fromkeys(runs, texts)
    planned = plan_prompts(questions, runs, passages, spec, lambda text: len(text.split()))
    return [request.last_text for request in requests_for(planned.prompts, questions, passages, spec)]


def timed(make: Callable[..., list[str]], *given: Any) -> tuple[float, list[str]]:
    begin = time.process_time()
    prompts = make(*given)
    return time.process_time() - begin, prompts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--systems", type=int, default=5)
    parser.add_argument("--overlap", type=float, default=0.5)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    llm = LlmSpec(engine="mock", max_model_len=1 << 20)
    spec = AnswerSpec(llm=llm, prompt="answer", template=registry.prompt("answer"))
    given = (*made(options.questions, options.systems, options.overlap), spec)
    times: dict[Callable[..., list[str]], list[float]] = {loop: [], plan: []}
    prompts: dict[Callable[..., list[str]], list[str]] = {}
    for _ in range(options.runs):
        for make, taken in times.items():
            seconds, prompts[make] = timed(make, *given)
            taken.append(seconds)
    naive, distinct = len(prompts[loop]), len(prompts[plan])
    one, other = (statistics.median(taken) for taken in times.values())
    print(
        f"{options.questions} questions, {options.systems} systems, k in {spec.ks}, {WORDS} words a passage"
    )
    print(f"loop: {naive} requests; plan: {distinct} ({1 - distinct / naive:.1%} fewer)")
    print(f"CPU: loop {one:.2f} s, plan {other:.2f} s, ratio {other / one:.2f} (medians of {options.runs})")
    if len(set(prompts[plan])) != distinct or set(prompts[plan]) != set(prompts[loop]):
        sys.exit("prompts are asked twice, or are missing")


if __name__ == "__main__":
    main()
