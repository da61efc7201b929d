"""What a translated document costs beside the LLM: prompt, request key, parsing, checks; the language check.

The peer of the language check is py3langid's own ``classify``, on the same first 25 words and the same
candidate languages, in the same process. Seconds are of one core's CPU time, the least of several runs.

python benchmarks/checks.py [--documents 20000] [--words 50] [--runs 5] [--data ../shared/data/ntrex]
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from beirnl import registry
from beirnl.specs import CheckSpec, LlmSpec, ModelRef
from beirnl.translation.checks import check_rows, needs_repair
from beirnl.translation.language import identify, identify_many
from beirnl.translation.lengths import histogram, learn, ratios
from beirnl.translation.parsing import parse
from beirnl.translation.prompts import read_template, render
from beirnl.translation.splitting import split

LANGUAGES = ("en", "nl")
PROMPT = "paper-document"


def documents(data: Path, file: str, number: int, words: int) -> list[tuple[str, str]]:
    """Documents out of consecutive sentences, the same in both languages: title and about so many words."""
    path = data / f"newstest2019-{file}.txt"
    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    sentences = max(1, round(words / 21))  # NTREX has 21 words a sentence
    found = []
    for n in range(number):
        chosen = [lines[(n * (sentences + 1) + k) % len(lines)] for k in range(sentences + 1)]
        found.append((" ".join(chosen[0].split()[:5]), " ".join(chosen[1:])))
    return found


class Clock:
    """Runs a step several times and prints the best."""

    def __init__(self, runs: int, documents: int) -> None:
        self._runs, self._documents = runs, documents

    def __call__(self, name: str, step: Callable[[], Any]) -> tuple[Any, float]:
        best = float("inf")
        for _ in range(self._runs):
            begin = time.process_time()
            result = step()
            best = min(best, time.process_time() - begin)
        each = best / self._documents
        print(f"{name:34} {each * 1e6:8.1f} us/document {1 / each:10,.0f} documents/s per core")
        return result, each


def pipeline(clock: Clock, sources: list[tuple[str, str]], targets: list[tuple[str, str]]) -> None:
    """Prompt to status, as the translate and check stages do it."""
    llm, model = LlmSpec(engine="mock"), ModelRef(name="m", source="hub:org/m", revision="0" * 40)
    template = read_template(PROMPT, registry.prompt(PROMPT), "document")
    named = {"domain": "News", "source_language": "en", "target_language": "nl", "llm": llm}
    requests, rendering = clock(
        "rendering", lambda: [render(template, title=title, text=text, **named) for title, text in sources]
    )
    _, keys = clock("request key", lambda: [request.key(model) for request in requests])
    answers = [f"<title> {title} </title> <body> {text} </body>" for title, text in targets]
    parsed, parsing = clock("parsing", lambda: [parse(answer, template, titled=True) for answer in answers])
    translations = [(one.title, one.text) for one in parsed]
    reasons, problems = ["stop"] * len(sources), [one.problems for one in parsed]
    bounds, learning = clock(
        "length bounds", lambda: learn(histogram(ratios(sources, translations, reasons)))
    )
    statuses, checks = clock(
        "checks",
        lambda: check_rows(sources, translations, reasons, *LANGUAGES, CheckSpec(), problems, bounds),
    )
    total = rendering + keys + parsing + learning + checks
    print(f"{'together':34} {total * 1e6:8.1f} us/document {1 / total:10,.0f} documents/s per core")
    print(f"sent to repair {sum(map(needs_repair, statuses)) / len(statuses):.2%}, bounds {bounds}\n")


def language(clock: Clock, texts: list[str]) -> None:
    """The language check on the first words, against the library's own loop."""
    words = CheckSpec().language_words

    def beginnings() -> list[str]:
        return [" ".join(text.split(maxsplit=words)[:words]) for text in texts]

    ours, mine = clock("language, first 25 words", lambda: identify_many(beginnings(), LANGUAGES))
    theirs, peer = clock(
        "py3langid.classify, the same words", lambda: [identify(text, LANGUAGES) for text in beginnings()]
    )
    print(f"ratio {peer / mine:.1f}, answers that differ: {sum(map(str.__ne__, ours, theirs))}\n")


def splitting(clock: Clock, text: str) -> None:
    """A long text in pieces of 3,000 characters."""
    pieces, _ = clock(f"splitting {len(text):,} characters", lambda: split(text, lambda t: len(t) <= 3000))
    print(f"{len(pieces)} pieces")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--words", type=int, default=50)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data" / "ntrex")
    args = parser.parse_args()
    sources, targets = (
        documents(args.data, file, args.documents, args.words) for file in ("src.eng", "ref.nld")
    )
    mean = sum(len(text.split()) for _, text in sources) / len(sources)
    print(f"{args.documents:,} documents of {mean:.0f} words and a title\n")
    clock = Clock(args.runs, args.documents)
    pipeline(clock, sources, targets)
    language(clock, [text for _, text in targets])
    splitting(Clock(args.runs, 1), " ".join(text for _, text in sources[:5000]))


if __name__ == "__main__":
    main()
