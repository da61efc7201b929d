"""``[rag]``: question answering on the user's own documents, by which ``[[system]]`` are compared."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator

from beirnl.config.fields import Language, Line, Lines, Name
from beirnl.config.sections import EngineConfig, Section

_OPEN = {"prompt": "open-answer", "max_tokens": 64}  # of open answers
DEFAULT_KS = (0, 1, 2, 3, 4, 5, 10)  # BES4RAG, section 3.6


class PassagesConfig(Section):
    """``[rag.passages]``: how documents are cut; see :mod:`beirnl.rag.passages`.

    Attributes:
        mode: ``own``: each system has passages as long as its model reads; ``common``: all have the same, as
            long as every model reads.
        size: most tokens of a passage, of the model's own tokenizer (of BM25: words), where it is to be
            shorter than the model's window.
        overlap: most tokens that a passage repeats of the one before it.
        sentences: passages begin and end at sentence ends, wherever a sentence fits.
        budget: if set, k stands for k times so many tokens of the answering model: equal context in place of
            equal k.
    """

    mode: Literal["own", "common"] = "own"
    size: int | None = Field(default=None, gt=0)
    overlap: int = Field(default=0, ge=0)
    sentences: bool = False
    budget: int = Field(default=0, ge=0)


class QuestionsConfig(EngineConfig):
    """``[rag.questions]``: made by an LLM (``count``), or the user's (``file``), or both.

    Attributes:
        count: questions to be made of each corpus; 0: none.
        file: questions of the user's, CSV or JSON; see :mod:`beirnl.rag.questions.own`.
        prompt: a prompt of the registry, or the path of a ``.txt`` file.
        seed: draws documents, their windows and the order of options.
        stratify: what each draw is spread over: quartiles of ``length``, or folders (``group``).
        per_document: most questions of one document.
        options: of each question, 2 to 10; 0, for questions of the user's alone: each as many as it has.
        attempts: how often a document is asked for one question.
        min_words: documents with fewer are not asked.
        language: that questions must be in (default: the document's).
        answerable: whether questions that most answering models get right without a passage are kept in the
            comparison; accuracies are told both ways.
    """

    count: int = Field(default=0, ge=0)
    file: Line | None = None
    prompt: Line = "bes4rag-question"
    seed: int = Field(default=7, ge=0)
    stratify: Literal["length", "group"] | None = None
    per_document: int = Field(default=1, gt=0)
    options: int = Field(default=4, ge=0, le=10)
    attempts: int = Field(default=3, gt=0)
    min_words: int = Field(default=20, ge=0)
    language: Language | None = None
    answerable: Literal["keep", "remove"] = "keep"

    @model_validator(mode="after")
    def _enough(self) -> "QuestionsConfig":
        if self.options < (2 if self.count else 0) or self.options == 1:
            raise ValueError(
                "options must be 2 to 10; 0 (as many as each has) is for your own questions alone"
            )
        return self


class AnswersConfig(EngineConfig):
    """``[[rag.answers]]``: a model that answers.

    Attributes:
        name: how reports call it (default: its model, else its engine).
        prompt: a prompt of the registry, or the path of a ``.txt`` file.
        max_tokens: of an answer (BES4RAG, section 4.3: one).
        logprobs: likeliest first tokens whose log-probabilities are asked for; 0: none.
        open: the question is asked without its options (by default of ``prompt`` and ``max_tokens``:
            ``open-answer``, 64), and the answer is then linked to one of them by ``match_prompt``.
        match_prompt: as ``prompt``; see :mod:`beirnl.rag.answers.matching`.
    """

    name: Name | None = None
    open: bool = False
    prompt: Line = "answer"
    match_prompt: Line = "match-option"
    max_tokens: int = Field(default=1, gt=0)
    logprobs: int = Field(default=20, ge=0, le=20)

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, found: object) -> object:
        """Open answers are asked for by another prompt, and have more than one token."""
        return {**_OPEN, **found} if isinstance(found, dict) and found.get("open") is True else found

    @property
    def called(self) -> str:
        """How reports call it."""
        return self.name or self.model or self.engine


class RagCorpus(Section):
    """``[[rag.corpus]]``: one of several corpora, each with results of its own (BES4RAG, section 4.1).

    Attributes:
        name: how reports call it.
        documents: folder; see :mod:`beirnl.rag.documents` for what it may hold.
        descriptions: file with a description per document, which is put before each of its passages.
        language: ISO code of the documents (default: that of ``[rag]``): chooses the analyzer of BM25, and
            adapters of models.
        questions: file of the user's questions about it.
    """

    name: Name
    documents: Line
    descriptions: Line | None = None
    language: Language | None = None
    questions: Line | None = None


class RagConfig(Section):
    """``[rag]``: documents, questions and answers.

    Attributes:
        documents, descriptions, language: of the only corpus; see :class:`RagCorpus`.
        corpus: several corpora in place of ``documents``.
        fields: which fields of JSON objects and of rows are text (default: those that usually are).
        k: at which systems are compared, declared before the answers are seen.
        ks: numbers of passages in a prompt (BES4RAG, section 3.6).
        permutations: orders of the options in which each question is asked.
        max_cost: money, in the price's currency; when it is spent, the run stops and can go on later.
    """

    documents: Line | None = None
    descriptions: Line | None = None
    corpus: tuple[RagCorpus, ...] = ()
    fields: Lines | tuple[()] = ()
    language: Language = "en"
    k: int = Field(default=5, gt=0)
    ks: tuple[int, ...] = Field(default=DEFAULT_KS, min_length=1)
    permutations: Literal[1, 2, 4] = 1
    max_cost: float | None = Field(default=None, gt=0)
    passages: PassagesConfig = PassagesConfig()
    questions: QuestionsConfig
    answers: tuple[AnswersConfig, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _fits(self) -> "RagConfig":
        if min(self.ks) < 0 or len(set(self.ks)) < len(self.ks):
            raise ValueError("ks must be different numbers, 0 or more")
        if self.k not in self.ks:
            listed = ", ".join(str(k) for k in self.ks if k)
            raise ValueError(f"k = {self.k} is not asked: set k to one of {listed}, or add it to ks")
        names = [one.called for one in self.answers]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two answers are called {name!r}: give them names")
        self._check_corpora()
        return self

    def _check_corpora(self) -> None:
        if bool(self.documents) == bool(self.corpus):
            raise ValueError("set documents to a folder, or name several corpora by [[rag.corpus]]")
        if self.corpus and (self.descriptions or self.questions.file):
            raise ValueError("descriptions and files of questions belong to each [[rag.corpus]]")
        names = [one.name for one in self.corpus]
        for one in self.corpora:
            if names.count(one.name) > 1:
                raise ValueError(f"two corpora are called {one.name!r}")
            if not self.questions.count and not one.questions:
                told = f" for the corpus {one.name!r}" if self.corpus else ""
                key = "questions" if self.corpus else "file"
                raise ValueError(f"set count to have questions made, or {key} to bring some{told}")

    @property
    def corpora(self) -> tuple[RagCorpus, ...]:
        """All corpora; the only one is called ``documents``."""
        if not self.documents:
            return self.corpus
        only = RagCorpus(
            name="documents",
            documents=self.documents,
            descriptions=self.descriptions,
            questions=self.questions.file,
        )
        return (only,)

    @property
    def engines(self) -> Mapping[str, EngineConfig]:
        """The tables that name an engine, by their headings."""
        made = {"[rag.questions]": self.questions} if self.questions.count else {}
        return {**made, **{f"[[rag.answers]] {one.called}": one for one in self.answers}}
