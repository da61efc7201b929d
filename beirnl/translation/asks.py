"""What a row asks: one request, or several where it is too long for the model's window, and how the answers
become one row again."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from beirnl.errors import ConfigError
from beirnl.llm.protocol import Answer, FinishReason, Request
from beirnl.specs import CheckSpec, LlmSpec, TranslationSpec
from beirnl.translation.checks import check_rows
from beirnl.translation.lengths import Bounds
from beirnl.translation.parsing import Parsed, parse
from beirnl.translation.prompts import Template, read_template, render
from beirnl.translation.splitting import Piece, split

Texts = Sequence[tuple[str, str]]  # (title, text) per row

_LEAST = 32  # tokens of source that a window must have room for
_SLACK = 16  # tokens that a chat template or special tokens may add
_BYTES = 4  # most bytes, and so most tokens, of a character
_TITLE = "title"  # in place of a gap: this piece is the title, asked by itself


class Ask(NamedTuple):
    """A request for a piece of a row.

    Attributes:
        request: what to ask.
        gap: the white space before the piece; ``title`` where the piece is the title by itself.
        piece: its text.
    """

    request: Request
    gap: str
    piece: str


def texts_of(table: pa.Table) -> list[tuple[str, str]]:
    """Title and text of each row; a missing one is empty."""
    columns = zip(table["title"].to_pylist(), table["text"].to_pylist(), strict=True)
    return [(title or "", text or "") for title, text in columns]


def piece_budget(spec: TranslationSpec) -> Callable[[str], bool]:
    """Whether a text fits: prompt, source and answer stay within the model's window and ``max_tokens``.

    Tokens are counted by the model's own tokenizer where it is there; a text of fewer bytes than the budget
    has fewer tokens as well, and is not counted.

    Raises:
        ConfigError: the window has no room beside the prompt.
    """
    from beirnl.llm.local import counter, source_window

    count = counter(spec.llm)
    overhead = prompt_tokens(spec)
    window, least = spec.llm.max_model_len, overhead + _SLACK + _LEAST * (1 + spec.expansion)
    budget = (window - overhead - _SLACK) / (1 + spec.expansion)
    encoder = source_window(spec.llm)  # of a sequence-to-sequence model, whose answer has a window of its own
    if encoder is not None:
        least = max(_LEAST + _SLACK, _LEAST * spec.expansion) + window - encoder
        budget = min(encoder - _SLACK, encoder / spec.expansion)
    budget = int(min(budget, spec.llm.max_tokens / spec.expansion))
    if budget < _LEAST:
        raise _too_small(spec, overhead, budget, math.ceil(least))
    return lambda text: len(text) * 4 <= budget or len(text.encode()) <= budget or count(text) <= budget


def _too_small(spec: TranslationSpec, overhead: int, budget: int, least_window: int) -> ConfigError:
    """The error that window or answer have no room for a text: which of them, and how much to give."""
    given = {"max_model_len": spec.llm.max_model_len, "max_tokens": spec.llm.max_tokens}
    least = {"max_model_len": least_window, "max_tokens": math.ceil(_LEAST * spec.expansion)}
    short = [name for name in given if given[name] < least[name]]
    raised = " and ".join(f"{name} (now {given[name]}) to at least {least[name]}" for name in short)
    if short == ["max_tokens"]:
        taken, other = f"an answer may have {given['max_tokens']} tokens", ""
    else:
        taken = f"the prompt takes {overhead} tokens"
        other = ", or choose a shorter prompt or a model with a larger window"
    return ConfigError(
        f"{taken}, which leaves room for {max(budget, 0)} of a text",
        where=f"prompt {spec.prompt}",
        remedy=f"raise {raised}{other}",
    )


def prompt_tokens(spec: TranslationSpec) -> int:
    """Tokens of a prompt without a text."""
    from beirnl.llm.local import counter

    template = read_template(spec.prompt, spec.template, spec.kind)
    return counter(spec.llm)(_request(template, spec, "", "").last_text)


def asks_for(
    table: pa.Table, spec: TranslationSpec, fits: Callable[[str], bool], attempt: int = 0
) -> list[list[Ask]]:
    """The requests of each row of ``table`` (schema ``CORPUS``), in its order.

    Args:
        table: queries or documents.
        spec: prompt, languages, domain and decoding.
        fits: whether a text is short enough to be asked in one piece.
        attempt: from 0; a repair asks warmer and with more room.

    Raises:
        ConfigError: the prompt lacks a placeholder, or is written for another language.
    """
    return [asks_of(title, text, spec, fits, attempt) for title, text in texts_of(table)]


def asks_of(
    title: str, text: str, spec: TranslationSpec, fits: Callable[[str], bool], attempt: int = 0
) -> list[Ask]:
    """The requests of one row; its title goes with the first piece, or by itself if the prompt has no place
    for it or there is no text. A row without either asks nothing."""
    if not (title.strip() or text.strip()):
        return []
    template = read_template(spec.prompt, spec.template, spec.kind)
    beside = (
        template.with_title and text.strip() and fits(f"{title} {title}")
    )  # has room for a text beside it
    together = title if beside else ""
    pieces = _pieces(text, lambda piece: fits(f"{together} {piece}" if together else piece))
    asks = [
        Ask(_request(template, spec, together if n == 0 else "", piece.text, attempt), piece.gap, piece.text)
        for n, piece in enumerate(pieces)
    ]
    if title.strip() and not together:
        asks.insert(0, Ask(_request(template, spec, "", title, attempt), _TITLE, title))
        if not text.strip():
            del asks[1:]
    return asks


def _pieces(text: str, fits: Callable[[str], bool]) -> list[Piece]:
    return [Piece("", text)] if fits(text) else split(text, fits)


def asks_in_pieces(title: str, pieces: Sequence[Piece], spec: TranslationSpec, attempt: int) -> list[Ask]:
    """The requests of a row whose title and pieces are asked one by one."""
    template = read_template(spec.prompt, spec.template, spec.kind)
    asks = [Ask(_request(template, spec, "", title, attempt), _TITLE, title)] if title.strip() else []
    asks += [
        Ask(_request(template, spec, "", piece.text, attempt), piece.gap, piece.text)
        for piece in pieces
        if piece.text
    ]
    return asks


def _request(template: Template, spec: TranslationSpec, title: str, text: str, attempt: int = 0) -> Request:
    request = render(
        template,
        title=title,
        text=text,
        domain=spec.domain,
        source_language=spec.source_language,
        target_language=spec.target_language,
        llm=spec.llm,
        attempt=attempt,
    )
    return _in_window(request, spec.llm)


def _in_window(request: Request, llm: LlmSpec) -> Request:
    """The request with no more room than the window has beside its prompt: a server refuses what asks for
    more, while an engine that loads the model sees to that itself."""
    from beirnl.llm import ENGINES
    from beirnl.llm.local import counter

    prompt = request.last_text
    if not ENGINES[llm.engine].remote or _BYTES * len(prompt) + request.max_tokens <= llm.max_model_len:
        return request
    left = max(_LEAST, llm.max_model_len - _SLACK - counter(llm)(prompt))
    return request if request.max_tokens <= left else replace(request, max_tokens=left)


def join(
    source: tuple[str, str],
    answers: Sequence[str],
    gaps: Sequence[str],
    template: Template,
    judge: Callable[[Texts], Sequence[str]] = lambda translations: (),
) -> Parsed:
    """One row out of the answers to its pieces.

    Args:
        source: title and text that were asked about.
        answers, gaps: one per piece, as they were asked.
        template: of the prompt.
        judge: names what is wrong with the pieces, given their translations, where there are several: what is
            wrong with one of them may not show in the whole.
    """
    if not answers:
        return Parsed("", "")
    titled = bool(source[0].strip())
    if len(answers) == 1 and gaps[0] != _TITLE:
        return parse(answers[0] or "", template, titled=titled)
    title, text = "", ""
    parsed = []
    for place, (answer, gap) in enumerate(zip(answers, gaps, strict=True)):
        has_title = titled and template.with_title and place == 0 and gap != _TITLE
        piece = parse(answer or "", template, titled=has_title)
        parsed.append(piece)
        if gap == _TITLE:
            title = piece.text or piece.title
            continue
        title = piece.title if has_title else title
        text += (gap if text else "") + piece.text
    problems = [name for piece in parsed for name in piece.problems]
    problems += judge([("", piece.text or piece.title) for piece in parsed]) if len(parsed) > 1 else ()
    return Parsed(title, text, tuple(dict.fromkeys(problems)))


def judge_pieces(
    pieces: Sequence[str], spec: TranslationSpec, checks: CheckSpec, bounds: Bounds | None
) -> Callable[[Texts], list[str]]:
    """Checks on the pieces of one row, for :func:`join`.

    Args:
        pieces: source texts that were asked one by one.
        spec: languages.
        checks, bounds: as for rows.
    """

    def judge(translations: Texts) -> list[str]:
        statuses = check_rows(
            [("", piece) for piece in pieces],
            translations,
            ["stop"] * len(pieces),
            spec.source_language,
            spec.target_language,
            checks,
            bounds=bounds,
        )
        names = [name for status in statuses if status != "ok" for name in status.split(",")]
        # the row has a text, without this piece
        return ["truncated" if name == "empty" else name for name in names]

    return judge


def worst(answers: Sequence[Answer]) -> FinishReason:
    """How a row ended whose pieces ended so: an error or a cut in one is one of the whole."""
    reasons = {answer.finish_reason for answer in answers}
    return "error" if "error" in reasons else "length" if "length" in reasons else "stop"
