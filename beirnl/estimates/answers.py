"""What question answering will take: requests, tokens, money and hours of its questions and answers.

Until there are questions, their number is that which is asked for, and nobody knows how often systems will
find the same passages: between always and never. Once prompts are planned, they are counted. Numbers that are
assumed stand here, and the notes tell them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from beirnl.cost import (
    EstimateRow,
    Factor,
    Price,
    Range,
    Speed,
    TokenCounter,
    hours,
    measured_speed,
    money,
    total,
)
from beirnl.errors import ConfigError
from beirnl.estimates.texts import Texts
from beirnl.estimates.translations import Forecast
from beirnl.graph import Answering, Node
from beirnl.llm import ENGINES
from beirnl.llm.local import counter, estimate_tokens
from beirnl.pipeline import Pipeline
from beirnl.rag.answers import requests_for, rotations
from beirnl.rag.answers.prompts import passage_block, request_for, template_of
from beirnl.rag.questions import first_requests, read_questions
from beirnl.specs import LlmSpec, QuestionSpec
from beirnl.spending import price_of_llm
from beirnl.stages.questions import AnswersSpec, OwnQuestionsSpec, contexts_of, questions_of, slices

#: Requests for each question that passes the filters.
REQUESTS = Factor(1.0, 1.3, 2.0, "assumed")
#: Tokens that an LLM writes for an option with its explanation.
OPTION = Factor(20.0, 40.0, 80.0, "assumed")
#: Tokens of an open answer.
OPEN = Factor(3.0, 15.0, 64.0, "assumed")
_QUESTION, _SHOWN = (
    "which word is it " * 6,
    "some words of it",
)  # how long questions and options are taken to be
_SAMPLED = 200  # texts of each kind whose tokens are counted

Paid = Price | str | None  # None: nothing is paid; a text: what to do about a price that is not known


class _Work(NamedTuple):
    """What an LLM is asked.

    Attributes:
        node: that asks.
        name: for people.
        llm: which.
        counting: of its tokens.
        texts, known: questions or prompts, and how many of them are done.
        requests: that are left.
        prompt, completion: their tokens, as they are counted here.
    """

    node: Node
    name: str
    llm: LlmSpec
    counting: TokenCounter
    texts: int
    known: int
    requests: Range
    prompt: Range
    completion: Range


def sources(pipeline: Pipeline) -> list[Node]:
    """The documents, and the passages that are cut from them: they must be there before."""
    corpora = pipeline.graph.corpora.values()
    return pipeline.needed([one.passages for answering in corpora for one in answering.searched])


def forecast(pipeline: Pipeline) -> Forecast:
    """The estimate of an experiment whose documents are cut; without money where a price is not known.

    Raises:
        ConfigError: a window without room beside the prompt.
    """
    several = len(pipeline.graph.corpora) > 1
    works = [
        work
        for name, answering in pipeline.graph.corpora.items()
        for work in _Corpus(pipeline, answering, f", {name}" if several else "").works()
    ]
    prices = {work.llm: _price(pipeline, work.llm) for work in works}
    currencies = {price.currency for price in prices.values() if isinstance(price, Price)}
    unknown = len(currencies) != 1 or any(isinstance(price, str) for price in prices.values())
    rows = [_row(pipeline, work, None if unknown else prices[work.llm], unknown) for work in works]
    currency = "money" if unknown else currencies.pop()
    return Forecast([*rows, total(rows, not unknown)], currency, list(_notes(works, prices)))


def _price(pipeline: Pipeline, llm: LlmSpec) -> Paid:
    try:
        price = price_of_llm(pipeline.experiment, llm)
    except ConfigError as error:
        return error.remedy or str(error)
    return price if price.input or price.output else None


def _row(pipeline: Pipeline, work: _Work, price: Paid, unknown: bool) -> EstimateRow:
    batch = ENGINES[work.llm.engine].deferred
    prompt = work.prompt.times(Range(*work.counting.counted[:3]))
    paid = None if unknown else Range.exactly(0.0)
    if isinstance(price, Price):
        ends = zip(prompt, work.completion, strict=True)
        paid = Range(*(money(asking, answering, price, batch) for asking, answering in ends))
    taken = hours(work.requests, prompt, work.completion, _speed(pipeline, work), batch)
    return EstimateRow(
        dataset=work.name,
        kind="",
        texts=work.texts,
        known=Range.exactly(work.known),
        requests=work.requests,
        prompt_tokens=prompt,
        completion_tokens=work.completion,
        money=paid,
        hours=taken if work.requests.high else Range.exactly(0.0),
    )


def _speed(pipeline: Pipeline, work: _Work) -> Speed:
    """What finished units took, and the provider's limits."""
    receipts = work.node.artifact(pipeline.workspace).receipts()
    done = [r for r in receipts if r.counts.get("completion tokens") and r.seconds > 0]
    tokens, seconds = [r.counts["completion tokens"] for r in done], [r.seconds for r in done]
    workers = pipeline.experiment.runtime.of(work.node.stage).workers
    measured = measured_speed(tokens, seconds, workers) if done else None
    server, remote = work.llm.server, ENGINES[work.llm.engine].remote
    limits = (server.requests_per_minute, server.tokens_per_minute) if remote else (None, None)
    return Speed(measured, *limits)


def _notes(works: Sequence[_Work], prices: Mapping[LlmSpec, Paid]) -> Iterator[str]:
    for price in dict.fromkeys(prices.values()):
        if price is None:
            yield "nothing is paid for tokens of engines on machines of one's own"
        elif isinstance(price, str):
            yield f"no price: {price}"
        else:
            yield (
                f"price: {price.input:g} and {price.output:g} {price.currency} per million tokens of prompt "
                f"and completion ({price.origin})"
            )
    yield from dict.fromkeys(f"tokens: {work.counting.description}" for work in works)
    left = [work for work in works if work.requests.high]
    if any(isinstance(work.node.spec, QuestionSpec) for work in left):
        yield (
            f"assumed: {REQUESTS.low:g} to {REQUESTS.high:g} requests for a question, of which an option "
            f"and its explanation have {OPTION.low:g} to {OPTION.high:g} tokens"
        )
    answers = [work for work in left if isinstance(work.node.spec, AnswersSpec)]
    if any(not work.requests.is_exact for work in answers):
        yield (
            "prompts: from as many as if all systems found the same passages to as many as if no two did, "
            "for as many questions as are asked for; run --only plan-answers, and they are counted"
        )
    if any(work.node.spec.is_open for work in answers if isinstance(work.node.spec, AnswersSpec)):
        yield f"assumed: open answers of {OPEN.low:g} to {OPEN.high:g} tokens; another request links each"
    if left:
        yield "answers of units that were interrupted are in the journal, and are not taken off"


class _Corpus:
    """What is asked about one corpus; ``suffix`` tells which in names."""

    def __init__(self, pipeline: Pipeline, answering: Answering, suffix: str) -> None:
        self._pipeline, self._workspace = pipeline, pipeline.workspace
        self._answering, self._suffix = answering, suffix
        self._texts, self._done = Texts(pipeline.workspace), pipeline.finished()

    def works(self) -> Iterator[_Work]:
        """Questions to be made, if any, and the answers of every model."""
        if self._answering.generated:
            yield self._questions(self._answering.generated)
        for name, node in self._answering.answers.items():
            yield self._answers(name, node)

    def _counting(self, llm: LlmSpec) -> TokenCounter:
        rag = self._pipeline.experiment.rag
        assert rag is not None
        found = counter(llm)
        return TokenCounter(_called(llm), rag.language, None if found is estimate_tokens else found)

    def _questions(self, node: Node) -> _Work:
        spec = node.spec
        assert isinstance(spec, QuestionSpec)
        counting, none = self._counting(spec.llm), Range.exactly(0.0)
        name = f"questions by {_called(spec.llm)}{self._suffix}"
        if node.key in self._done:
            made = node.artifact(self._workspace).parts[0].rows
            return _Work(node, name, spec.llm, counting, made, made, none, none, none)
        documents = self._answering.documents.artifact(self._workspace).table()
        first = first_requests(documents, spec, counter(spec.llm), _SAMPLED)
        wanted = min(spec.count, spec.per_document * documents.num_rows) if first else 0
        requests = Range.exactly(wanted).times(Range(*REQUESTS[:3]))
        mean = _mean([counting(text, [request.last_text])[0] for text, request in first])
        written = Range(*(min(spec.options * tokens, spec.llm.max_tokens) for tokens in OPTION[:3]))
        prompt = requests.times(Range.exactly(mean))
        return _Work(node, name, spec.llm, counting, wanted, 0, requests, prompt, requests.times(written))

    def _answers(self, name: str, node: Node) -> _Work:
        spec, plan = node.spec, node.inputs["rows"]
        assert isinstance(spec, AnswersSpec)
        counting = self._counting(spec.llm)
        is_planned = plan.key in self._done
        requests, prompt = self._planned(plan, counting) if is_planned else self._bounds(spec, counting)
        whole = round(requests.high)
        known = whole if node.key in self._done else self._finished(node)
        left = Range.exactly((whole - known) / whole if whole else 0.0)
        requests, prompt = requests.times(left), prompt.times(left)
        completion = requests.times(Range.exactly(spec.max_tokens))
        if spec.is_open:
            linking = counting("", [spec.match_template, _QUESTION, *[_SHOWN] * 4])[0]
            prompt += requests.times(Range.exactly(linking))
            completion = requests.times(Range(*(min(one, spec.max_tokens) + 1 for one in OPEN[:3])))
            requests += requests
        called = f"answers by {name}{self._suffix}"
        return _Work(node, called, spec.llm, counting, whole, known, requests, prompt, completion)

    def _finished(self, node: Node) -> int:
        """Prompts of the units that are done."""
        return sum(receipt.rows_in for receipt in node.artifact(self._workspace).receipts())

    def _planned(self, plan: Node, counting: TokenCounter) -> tuple[Range, Range]:
        """Prompts and their tokens, once they are planned: the first ones are a random sample, as questions
        are drawn at random."""
        spec, artifact = plan.spec, plan.artifact(self._workspace)
        assert isinstance(spec, AnswersSpec)
        number = sum(artifact.read(n).num_rows for n in range(slices(artifact)))
        if not number:
            return Range.exactly(0.0), Range.exactly(0.0)
        texts: dict[str, dict[str, str]] = {"": {}}
        for row in next(contexts_of(artifact)).to_pylist():
            texts.setdefault(row["system"], {})[row["id"]] = row["text"]
        questions = questions_of(self._answering.questions.artifact(self._workspace))
        sample = artifact.read(0).slice(0, _SAMPLED)
        prompts = [request.last_text for request in requests_for(sample, questions, texts, spec)]
        mean = _mean([counting(prompt, [prompt])[0] for prompt in prompts])
        return Range.exactly(number), Range.exactly(number * mean)

    def _bounds(self, spec: AnswersSpec, counting: TokenCounter) -> tuple[Range, Range]:
        """Prompts and their tokens, from as many as if all systems found the same to as if no two did."""
        options = self._options()
        asked = self._number_of_questions() * len(rotations(options, spec.permutations))
        template = template_of(spec)
        bare = request_for(_QUESTION, [_SHOWN] * options, (), template, spec).last_text
        base, window = counting("", [bare])[0], spec.llm.max_model_len - spec.max_tokens
        bases = [base] if 0 in spec.ks else []
        each: list[list[float]] = []
        for one in self._answering.searched:
            blocks = [passage_block(template, 1, text) for text in self._passages(one.passages)]
            size, rows = (
                _mean([counting(b, [b])[0] for b in blocks]),
                one.passages.artifact(self._workspace).rows,
            )
            most = rows * size
            shown = [min(k * (spec.tokens_per_passage or size), most) for k in spec.ks if k]
            each.append([min(base + tokens, window) for tokens in shown])
        fewest, all_of_them = min(each, key=sum, default=[]), [one for some in each for one in some]
        number = [len(bases) + len(some) for some in (fewest, all_of_them)]
        tokens = [sum(bases) + sum(some) for some in (fewest, all_of_them)]
        return (
            Range(asked * number[0], asked * number[1], asked * number[1]),
            Range(asked * tokens[0], asked * tokens[1], asked * tokens[1]),
        )

    def _passages(self, cut: Node) -> list[str]:
        return [str(text) for text in self._texts.sample(cut, _SAMPLED)["text"].to_pylist()]

    def _options(self) -> int:
        rag = self._pipeline.experiment.rag
        assert rag is not None
        return rag.questions.options

    def _number_of_questions(self) -> int:
        """As many as there are, or are asked for."""
        node = self._answering.questions
        if node.key in self._done:
            return node.artifact(self._workspace).rows
        spec, made = node.spec, self._answering.generated
        assert isinstance(spec, OwnQuestionsSpec)
        own = read_questions(spec.file, None, spec.options).num_rows if spec.file else 0
        return own + (self._questions(made).texts if made else 0)


def _called(llm: LlmSpec) -> str:
    return llm.model.name if llm.model else llm.engine


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
