"""A deterministic stand-in for an LLM, for tests and dry runs: no model, no download, structure as asked.

It puts English into something that reads like Dutch, word by word, and depends on nothing but the request.
A fault is planted by a mark in the source, such as ``[[fault:empty]]``; ``[[fault:empty:once]]`` spares
requests with a temperature above 0, as a repair makes them. ``BEIRNL_MOCK_DELAY`` waits that many seconds
per request.
"""

import os
import re
import time
from collections.abc import Callable, Sequence

from beirnl.errors import EngineError
from beirnl.llm.protocol import Answer, Request
from beirnl.specs import LlmSpec

_FAULT = re.compile(r"\s*\[\[fault:([a-z-]+)(:once)?\]\]")
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


class MockLlm:
    """The stand-in engine.

    Args:
        spec: its model is not looked at.
        threads: not looked at.
    """

    def __init__(self, spec: LlmSpec, threads: int = 1) -> None:
        self._delay = float(os.environ.get("BEIRNL_MOCK_DELAY", "0"))

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        """One answer per request, in order; see :class:`beirnl.llm.protocol.LLM`."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Request) -> Answer:
        time.sleep(self._delay)
        asked = request.last_text
        source = _source(asked)
        mark = _FAULT.search(source)
        text = _in_structure(source)
        if mark and not (mark[2] and request.temperature > 0):
            return _finished(_fault(mark[1])(text, source), request, mark[1])
        return _finished(text, request, "")


def _source(asked: str) -> str:
    """What is to be translated: tagged, in brackets, or on the last line but one behind a label."""
    for pattern in (_TAGGED, _BRACKETED):
        if matches := list(pattern.finditer(asked)):
            return matches[-1][0 if pattern is _TAGGED else "body"]
    lines = [line for line in asked.split("\n") if line.strip()]
    return lines[-2].partition(":")[2].strip() if len(lines) > 1 else asked


def _in_structure(source: str) -> str:
    source = _FAULT.sub("", source)
    tagged = _TAGGED.fullmatch(source)
    if tagged:
        title, body = translate(tagged["title"].strip()), translate(tagged["body"].strip())
        return f"<title> {title} </title> <body> {body} </body>"
    return translate(source)


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


def _fault(name: str) -> Callable[[str, str], str]:
    if name not in FAULTS:
        raise EngineError(f"the mock knows no fault {name!r}", remedy=f"use one of: {', '.join(FAULTS)}")
    return FAULTS[name]


def _in_body(text: str, change: Callable[[str], str]) -> str:
    """Change the body, and leave a title and its tags alone."""
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
    "title-lost": lambda text, _: re.sub(r"<title>.*?</title>|^[^|\n]* \| ", "", text),
    "numbers": lambda text, _: re.sub(r"\d+", lambda match: str(int(match[0]) + 1), text),
}
