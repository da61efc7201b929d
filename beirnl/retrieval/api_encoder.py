"""Encoders behind an OpenAI-compatible API: asked through the journal, so that no text is paid for twice.

A unit's texts are cut to the limit, equal ones are asked once, several in a request, many requests at once. A
vector is in the journal as soon as it has come, under the text that was sent; what the journal has, for
whatever dataset, prompt or limit, is not asked. A server refuses an empty text; its vector is zeros.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np

from beirnl.errors import BeirnlError, EngineError, PrerequisiteError
from beirnl.llm.http.calls import Calls
from beirnl.llm.protocol import Enough, never
from beirnl.retrieval.batching import CHARACTERS_PER_TOKEN
from beirnl.retrieval.embeddings_api import EmbeddingClient, Vectors, decode, encode
from beirnl.retrieval.encoders import Encoded, TextKind, prompts_of, unit_vectors
from beirnl.specs import EncoderSpec
from beirnl.store.failpoints import failpoint
from beirnl.store.journal import Entry, Journal
from beirnl.store.keys import digest
from beirnl.wording import counted

Counting = Literal["cl100k_base", "bytes"]
Cutter = Callable[[str], tuple[str, bool]]

#: UTF-8 bytes that ``bytes`` takes for a token: western languages have 3.5 to 4.5, so that a text is cut a
#: little early; digits and rare scripts can have fewer, and then a little late.
BYTES_PER_TOKEN = 3
#: Most tokens in one request, all texts together: OpenAI refuses 300,000.
REQUEST_TOKENS = 250_000
#: Most texts in one request: OpenAI refuses more.
REQUEST_TEXTS = 2048
_PROBE = "."


def journal_name(spec: EncoderSpec, kind: TextKind) -> str:
    """Name of the journal folder of a model: what decides about a vector beside the text that is sent.

    Queries have one of their own: a few texts of all buckets, which would be looked for among all documents.
    """
    return digest({"embeddings": [spec.model.source, spec.model.revision, spec.dimensions, kind]})


def counting(tokenizer: str) -> Counting:
    """How tokens are counted on this machine: with tiktoken where it is there and knows how, else by bytes.

    The answer is part of the spec: it decides where a text is cut.

    Args:
        tokenizer: name of tiktoken's encoding that the model has, or empty.
    """
    return "cl100k_base" if tokenizer == "cl100k_base" and find_spec("tiktoken") else "bytes"


def cutter(spec: EncoderSpec) -> Cutter:
    """A function that cuts a text (prompt included) at ``max_tokens``, and says whether it did.

    ``cl100k_base`` counts with tiktoken, exactly; ``bytes`` takes :data:`BYTES_PER_TOKEN` bytes for a token.

    Raises:
        PrerequisiteError: tiktoken or its table is not there.
    """
    limit = spec.max_tokens
    if not limit:
        return lambda text: (text, False)
    if spec.tokenizer == "cl100k_base":
        return _exact(_tiktoken(spec), limit)

    def cut(text: str) -> tuple[str, bool]:
        data = text.encode()
        size = limit * BYTES_PER_TOKEN
        return (text, False) if len(data) <= size else (data[:size].decode(errors="ignore"), True)

    return cut


def _tiktoken(spec: EncoderSpec) -> Any:
    other = 'or set tokenizer = "bytes"'
    try:
        import tiktoken
    except ImportError as error:
        raise PrerequisiteError(
            "tiktoken is not installed, by which max_tokens is counted",
            where=spec.model.name,
            remedy=f"pip install 'beirnl[api]', {other}",
        ) from error
    try:
        return tiktoken.get_encoding(spec.tokenizer)
    except Exception as error:  # it downloads its table with whatever library is there
        raise PrerequisiteError(
            f"tiktoken has no {spec.tokenizer} ({type(error).__name__})",
            where=spec.model.name,
            remedy=f"let it download its table once (TIKTOKEN_CACHE_DIR names where to), {other}",
        ) from error


def _exact(encoding: Any, limit: int) -> Cutter:
    def cut(text: str) -> tuple[str, bool]:
        if len(text.encode()) <= limit:  # a token has a byte or more
            return text, False
        start = text[: CHARACTERS_PER_TOKEN * limit]
        while (tokens := encoding.encode(start, disallowed_special=())) and len(tokens) <= limit:
            if len(start) == len(text):
                return text, False
            start = text[: 4 * len(start)]
        return encoding.decode(tokens[:limit], errors="ignore"), True

    return cut


class ApiEncoder:
    """A model behind an API; what a worker keeps. Threads share it.

    Args:
        spec: model, prompts, longest input, texts per request, server.
        share: of the server's rate limits, as one of so many workers.

    Raises:
        PrerequisiteError: the key is not in the environment, or tiktoken's table is not there.
        ConfigError: ``base_url`` is not a URL.
        EngineError: the server cannot be reached, or refuses the key.
    """

    def __init__(self, spec: EncoderSpec, share: float = 1.0) -> None:
        self.spec, self.cut, self.prompts = spec, cutter(spec), prompts_of(spec)
        self._calls: Calls[Sequence[str], Vectors] = Calls(
            EmbeddingClient(spec, share), spec.server.in_flight
        )

    def generate(
        self, requests: Sequence[Sequence[str]], enough: Enough = never
    ) -> Iterator[tuple[int, Vectors]]:
        """What requests come to, as it comes; once it is ``enough``, only what is under way."""
        return self._calls.generate(requests, enough)

    def close(self) -> None:
        """End the connections."""
        self._calls.close()


class JournalledEncoder:
    """An encoder behind its journal, for one unit.

    Args:
        api: the encoder.
        journal: vectors that are there already, and where new ones go.
        unit: for the failpoint ``after-answer``.
        watch: called after every answer with the number of texts asked so far; may raise to stop the unit:
            then nothing more is sent, and what is under way is still answered and kept.

    Attributes:
        counts: for the receipt: texts ``asked`` now, their ``prompt tokens``, and ``empty`` ones.
    """

    def __init__(
        self,
        api: ApiEncoder,
        journal: Journal,
        unit: int = 0,
        watch: Callable[[int], None] = lambda asked: None,
    ) -> None:
        self._api, self._journal, self._unit, self._watch = api, journal, unit, watch
        self._stop: BeirnlError | None = None
        self.counts = {"asked": 0, "prompt tokens": 0, "completion tokens": 0, "empty": 0}

    def encode(self, texts: Sequence[str], kind: TextKind) -> Encoded:
        """Vectors of texts in their order; see :class:`beirnl.retrieval.encoders.Encoder`.

        Raises:
            EngineError: a text has no vector, after as many tries as it takes; what was answered stays.
        """
        prompt = self._api.prompts[kind]
        sent, cut = zip(*(self._api.cut(prompt + text) for text in texts), strict=True) if texts else ((), ())
        keys = {text: self._key(text) for text in sent if text.strip()}
        found = self._ask(keys)
        self.counts["empty"] += sum(text not in keys for text in sent)
        if not found:
            found = self._ask({_PROBE: self._key(_PROBE)})  # how many numbers a vector has
        dimension = self._dimension(found.values())
        vectors = np.zeros((len(sent), dimension), np.float32)
        for place, text in enumerate(sent):
            if text in keys:
                vectors[place] = found[keys[text]]
        return Encoded(unit_vectors(vectors), np.array(cut, bool))

    def _ask(self, keys: dict[str, str]) -> dict[str, np.ndarray]:
        """Vectors by key: those that the journal has, and the others, asked for now."""
        found = {key: decode(entry.text) for key, entry in self._journal.known(set(keys.values())).items()}
        pending = [text for text, key in keys.items() if key not in found]
        requests: list[Sequence[str]] = list(self._requests(pending))
        failed = ""
        while requests:
            halves: list[Sequence[str]] = []
            for place, answer in self._api.generate(requests, lambda: self._stop is not None):
                request = requests[place]
                if answer.refused and len(request) > 1:  # one of its texts is at fault
                    halves += [request[: len(request) // 2], request[len(request) // 2 :]]
                elif answer.error:
                    failed = (
                        failed
                        or f"{answer.error}, for {counted(len(request), 'text')}, first {request[0][:60]!r}"
                    )
                else:
                    found |= self._keep([keys[text] for text in request], answer)
            if self._stop:
                raise self._stop
            requests = halves
        if failed:
            raise EngineError(
                f"texts have no vector ({failed})",
                where=self._api.spec.model.name,
                remedy="run again; if the server refuses a text, set max_tokens below the model's limit",
            )
        return found

    def _keep(self, keys: list[str], answer: Vectors) -> dict[str, np.ndarray]:
        """Put an answer into the journal, text by text; the tokens of its request are shared out."""
        each, rest = divmod(answer.prompt_tokens, len(keys))
        for place, (key, vector) in enumerate(zip(keys, answer.vectors, strict=True)):
            self._journal.append(Entry(key, encode(vector), "stop", each + (place < rest)))
        failpoint("after-answer", self._unit)
        self.counts["asked"] += len(keys)
        self.counts["prompt tokens"] += answer.prompt_tokens
        try:
            self._watch(self.counts["asked"])
        except BeirnlError as error:
            self._stop = self._stop or error
        return dict(zip(keys, answer.vectors, strict=True))

    def _requests(self, texts: Sequence[str]) -> Iterator[list[str]]:
        """Texts in requests: in their order, as many as the batch plan and the API allow."""
        spec = self._api.spec
        budget = min(spec.batch_tokens or REQUEST_TOKENS, REQUEST_TOKENS)
        request: list[str] = []
        tokens = 0
        for text in texts:
            more = 1 + len(text.encode()) // BYTES_PER_TOKEN
            if request and (len(request) >= min(spec.batch_size, REQUEST_TEXTS) or tokens + more > budget):
                yield request
                request, tokens = [], 0
            request.append(text)
            tokens += more
        if request:
            yield request

    def _key(self, text: str) -> str:
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def _dimension(self, vectors: Collection[np.ndarray]) -> int:
        sizes = {len(vector) for vector in vectors}
        if len(sizes) != 1:
            raise EngineError(
                f"the server gave vectors of {' and of '.join(map(str, sorted(sizes)))} numbers",
                where=self._api.spec.model.name,
                remedy="the model behind its name has changed: use a new workspace, or name a version",
            )
        return sizes.pop()
