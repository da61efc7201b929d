"""A deterministic stand-in for an LLM, for tests and dry runs: no model, no download, structure as asked.

It puts English into something that reads like Dutch, word by word (and back, where a chat asks for English),
and depends on nothing but the request. A fault is planted by a mark in the source, such as
``[[fault:empty]]``. A word behind it says which requests have the fault: ``[[fault:empty:once]]`` those with
temperature 0, ``[[fault:empty:plain]]`` those that ask for no JSON, ``[[fault:empty:whole]]`` those with more
than one sentence. ``BEIRNL_MOCK_DELAY`` waits that many seconds per request. Questions about a text it writes
and answers as :mod:`beirnl.llm.mock_questions` says.
"""

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from beirnl.errors import EngineError
from beirnl.llm.mock_questions import answer_openly, choose, write_question
from beirnl.llm.protocol import Answer, Enough, Request, Surroundings, never
from beirnl.specs import LlmSpec

_FAULT = re.compile(r"\s*\[\[fault:([a-z-]+)(?::([a-z]+))?\]\]")
_SENTENCE = re.compile(r"[.!?](?=[\s\"]|$)")
#: Which requests have a planted fault, by the word behind it: from the request and its source.
_WHEN: dict[str, Callable[[Request, str], bool]] = {
    "": lambda request, source: True,
    "once": lambda request, source: request.temperature == 0,
    "plain": lambda request, source: not _fields(source),
    "whole": lambda request, source: len(_SENTENCE.findall(source)) > 1,
}
_TARGET = re.compile(r"\bto ([A-Z]\w+)")
_TAGGED = re.compile(r"<title>(?P<title>.*?)</title>\s*<body>(?P<body>.*)</body>", re.DOTALL)
_BRACKETED = re.compile(r"\['(?P<body>.*)'\]\s*$", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_ADDRESS = re.compile(r"(\S*(?:://|@|www\.)\S*)")

_COMMON = """
a=een about=over after=na all=alle also=ook an=een and=en animal=dier animals=dieren are=zijn as=als
at=bij be=zijn because=omdat been=geweest before=voor between=tussen blood=bloed body=lichaam book=boek
but=maar by=door can=kan cause=oorzaak causes=veroorzaakt cell=cel cells=cellen child=kind
children=kinderen city=stad country=land day=dag days=dagen did=deed different=verschillende
disease=ziekte do=doen does=doet each=elke earth=aarde effect=effect every=elke first=eerste food=voedsel
for=voor from=van get=krijgen good=goed great=groot had=had has=heeft have=hebben he=hij health=gezondheid
heart=hart her=haar high=hoog his=zijn house=huis how=hoe human=menselijk i=ik if=als in=in into=naar
is=is it=het its=zijn language=taal large=groot less=minder life=leven light=licht like=zoals long=lang
made=gemaakt make=maken many=veel may=mag more=meer most=meeste much=veel must=moet new=nieuw no=geen
not=niet now=nu number=aantal of=van old=oud on=op one=een only=alleen or=of other=andere our=onze out=uit
over=over part=deel patients=patiënten people=mensen plant=plant plants=planten risk=risico same=dezelfde
sea=zee she=zij should=moet show=tonen small=klein so=dus some=sommige species=soort study=onderzoek
such=zulke sun=zon than=dan that=dat the=de their=hun them=hen then=dan there=er these=deze they=zij
this=dit three=drie through=door time=tijd to=naar today=vandaag tree=boom two=twee under=onder until=tot
up=op use=gebruik used=gebruikt very=zeer was=was water=water way=weg we=wij well=goed were=waren what=wat
when=wanneer where=waar which=welke while=terwijl who=wie why=waarom will=zal with=met without=zonder
word=woord words=woorden work=werk world=wereld would=zou year=jaar years=jaren you=u your=uw
"""
_DUTCH = dict(pair.split("=") for pair in _COMMON.split())
_ENGLISH = {dutch: english for english, dutch in reversed(_DUTCH.items())}
#: How words outside the table end in Dutch; the first that fits is taken.
_ENDINGS = (
    ("ations", "aties"), ("ation", "atie"), ("tions", "ties"), ("tion", "tie"), ("sion", "sie"),
    ("ities", "iteiten"), ("ity", "iteit"), ("ness", "heid"), ("ings", "ingen"), ("ing", "end"),
    ("ously", "ijk"), ("ally", "eel"), ("ly", "lijk"), ("ical", "isch"), ("ic", "isch"), ("ous", "eus"),
    ("ies", "ijen"), ("ment", "ment"), ("ed", "de"), ("es", "en"), ("s", "en"), ("y", "ij"), ("e", "en"),
)  # fmt: skip
#: Letters inside such words, so that an identifier of languages takes them for Dutch.
_LETTERS = (
    ("th", "d"), ("sh", "sch"), ("ck", "k"), ("ph", "f"), ("oo", "oe"), ("ea", "ee"), ("ou", "ui"),
    ("qu", "kw"), ("ca", "ka"), ("co", "ko"), ("cu", "ku"), ("cl", "kl"), ("cr", "kr"), ("ct", "kt"),
    ("wh", "w"), ("x", "ks"),
)  # fmt: skip

_ITALIAN = (
    "Questa è una traduzione in italiano che non è stata chiesta da nessuno, ma che il modello ha scritto."
)


#: What it writes the likeness of.
LANGUAGES = ("nl", "en")


class MockLlm:
    """The stand-in engine.

    Args:
        spec: only its languages are looked at, which go with bare texts.
        surroundings: not looked at.
    """

    def __init__(self, spec: LlmSpec, surroundings: Surroundings | None = None) -> None:
        self._delay = float(os.environ.get("BEIRNL_MOCK_DELAY", "0"))
        self._languages = spec.languages

    def generate(self, requests: Sequence[Request], enough: Enough = never) -> Iterator[tuple[int, Answer]]:
        """Answers in order; see :class:`beirnl.llm.protocol.LLM`."""
        for place, request in enumerate(requests):
            if enough():
                return
            yield place, self._answer(request)

    def _answer(self, request: Request) -> Answer:
        if self._delay:
            time.sleep(self._delay)
        if request.choices or request.json_schema:
            return _finished((choose if request.choices else write_question)(request), request, "")
        if (opened := answer_openly(request)) is not None:
            return _finished(opened, request, "")
        asked = request.last_text
        source = asked if self._languages else _source(asked)
        mark = _FAULT.search(source)
        text = _in_structure(source, self._translation(request))
        if mark and _when(mark[2] or "")(request, _FAULT.sub("", source)):
            return _finished(_fault(mark[1])(text, source), request, mark[1])
        return _finished(text, request, "")

    def _translation(self, request: Request) -> Callable[[str], str]:
        """Into Dutch, or back where English is asked for."""
        if self._languages:
            return back if self._languages[1] == "en" else translate
        target = _TARGET.search(request.last_text) if request.messages else None
        return back if target and target[1] == "English" else translate


def _source(asked: str) -> str:
    """What is to be translated: a JSON object on the last line, tagged, in brackets, on the last line but one
    behind a label where the last is one as well, or below the first blank line."""
    last = asked.rstrip().rpartition("\n")[2]
    if _fields(last):
        return last
    for pattern in (_TAGGED, _BRACKETED):
        if matches := list(pattern.finditer(asked)):
            return matches[-1][0 if pattern is _TAGGED else "body"]
    below = asked.partition("\n\n")[2]
    if below and not last.endswith(":"):
        return below
    lines = [line for line in asked.split("\n") if line.strip()]
    return lines[-2].partition(":")[2].strip() if len(lines) > 1 else asked


def _in_structure(source: str, translation: Callable[[str], str]) -> str:
    source = _FAULT.sub("", source)
    fields = _fields(source)
    if fields:
        return _object({name: translation(value) for name, value in fields.items()})
    tagged = _TAGGED.fullmatch(source)
    if tagged:
        title, body = translation(tagged["title"].strip()), translation(tagged["body"].strip())
        return f"<title> {title} </title> <body> {body} </body>"
    return translation(source)


def _fields(text: str) -> dict[str, str]:
    """The fields of a JSON object; none if the text is no object."""
    try:
        found = json.loads(text) if text.startswith('{"') else {}
    except ValueError:
        return {}
    return {name: str(value) for name, value in found.items()}


def _object(fields: dict[str, str]) -> str:
    return json.dumps(fields, ensure_ascii=False)


def translate(text: str) -> str:
    """English into the likeness of Dutch; numbers, addresses and punctuation stay as they are."""
    parts = _ADDRESS.split(text)
    return "".join(part if n % 2 else _WORD.sub(_word, part) for n, part in enumerate(parts))


def _word(match: re.Match[str]) -> str:
    word = match[0]
    if word.isupper() and len(word) > 1:
        return word
    dutch = _DUTCH.get(word.lower()) or _ended(word.lower())
    return dutch.capitalize() if word[0].isupper() else dutch


def back(text: str) -> str:
    """What :func:`translate` makes of English, into the likeness of English."""
    parts = _ADDRESS.split(text)
    return "".join(part if n % 2 else _WORD.sub(_word_back, part) for n, part in enumerate(parts))


def _word_back(match: re.Match[str]) -> str:
    word = match[0]
    if word.isupper() and len(word) > 1:
        return word
    english = _ENGLISH.get(word.lower()) or _ended_back(word.lower())
    return english.capitalize() if word[0].isupper() else english


def _ended_back(word: str) -> str:
    for english, dutch in _ENDINGS:
        if len(word) > len(dutch) + 2 and word.endswith(dutch):
            return word[: -len(dutch)] + english
    return word


@lru_cache(maxsize=1 << 16)
def _ended(word: str) -> str:
    for english, dutch in _ENDINGS:
        if len(word) > len(english) + 2 and word.endswith(english):
            return _respelt(word[: -len(english)]) + dutch
    return word if len(word) < 4 else _respelt(word) + ("" if word[-1] in "aeiou" else "en")


def _respelt(word: str) -> str:
    for english, dutch in _LETTERS:
        word = word.replace(english, dutch)
    return word


def _finished(text: str, request: Request, fault: str) -> Answer:
    """Tokens are counted as words."""
    words = text.split()
    prompt_tokens = len(
        (request.prompt or " ".join(content for _, content in request.messages or ())).split()
    )
    if fault == "error":
        return Answer("", "error", prompt_tokens, 0, "the mock was asked to fail on this row")
    if fault == "truncated" or len(words) > request.max_tokens:
        kept = min(request.max_tokens, max(1, len(words) * 2 // 3))
        return Answer(" ".join(words[:kept]), "length", prompt_tokens, kept)
    return Answer(text, "stop", prompt_tokens, len(words))


def _when(word: str) -> Callable[[Request, str], bool]:
    if word not in _WHEN:
        known = ", ".join(filter(None, _WHEN))
        raise EngineError(f"the mock knows no condition {word!r} of a fault", remedy=f"use one of: {known}")
    return _WHEN[word]


def _fault(name: str) -> Callable[[str, str], str]:
    if name not in FAULTS:
        raise EngineError(f"the mock knows no fault {name!r}", remedy=f"use one of: {', '.join(FAULTS)}")
    return FAULTS[name]


def _in_body(text: str, change: Callable[[str], str]) -> str:
    """Change the body, and leave a title and what stands around them alone."""
    if fields := _fields(text):
        return _object(fields | {"text": change(fields["text"])})
    tagged = _TAGGED.fullmatch(text)
    if tagged:
        return (
            text[: tagged.start("body")] + f" {change(tagged['body'].strip())} " + text[tagged.end("body") :]
        )
    title, separator, body = text.partition(" | ")
    return f"{title} | {change(body)}" if separator else change(text)


#: Faults by name: translation and source to the answer; ``error`` and ``truncated`` also end it so.
FAULTS: dict[str, Callable[[str, str], str]] = {
    "empty": lambda text, _: "",
    "error": lambda text, _: "",
    "truncated": lambda text, _: text,
    "dots": lambda text, _: _in_body(text, lambda body: "." * 12),
    "repetition": lambda text, _: _in_body(text, lambda body: " ".join(["de kat op de mat"] * 12)),
    "copied": lambda _, source: source,
    "language": lambda text, _: _in_body(text, lambda body: _ITALIAN),
    "preamble": lambda text, _: f"Here is the translation: {text}",
    "refusal": lambda text, _: "I'm sorry, but I cannot translate this text.",
    "markup": lambda text, _: _in_body(text, lambda body: f"{body} <document>"),
    "length-ratio": lambda text, _: _in_body(
        text, lambda body: f"{body} " + " ".join(f"{body} en {n}" for n in range(9))
    ),
    "title-lost": lambda text, _: re.sub(r'<title>.*?</title>|^[^|\n]* \| |(?<="title": ")[^"]*', "", text),
    "numbers": lambda text, _: re.sub(r"\d+", lambda match: str(int(match[0]) + 1), text),
}
