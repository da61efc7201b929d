"""Types of the values of an experiment file: what a text or a number may be, and the words for it."""

import math
import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

#: Longest name: it becomes the name of a folder, beside which a file system has room for little more.
LONGEST_NAME = 100

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_LANGUAGE = re.compile(r"[A-Za-z]{2,20}([-_][A-Za-z0-9]{1,8}){0,4}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEVICE = re.compile(r"auto|cpu|mps|cuda(:\d+)?")


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(
            "may hold the letters a to z, digits and . _ + -, and begins with a letter or a digit"
        )
    if len(text) > LONGEST_NAME:
        raise ValueError(
            f"has {len(text)} characters, and folders are called by it; use {LONGEST_NAME} at most"
        )
    return text


def _line(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError("must be a line of text, not empty")
    return text


def _language(text: str) -> str:
    if not _LANGUAGE.fullmatch(text):
        raise ValueError("must be the code of a language, such as nl")
    return text


def _device(text: str) -> str:
    if not _DEVICE.fullmatch(text):
        raise ValueError("must be auto, cpu, mps, cuda or cuda:N")
    return text


def _gpus(number: float) -> float:
    if number > 1 and number != math.floor(number):
        raise ValueError("must be a fraction of one GPU, or a whole number of them")
    return number


def check_url(text: str) -> str:
    """The address of a server, as it is.

    Raises:
        ValueError: it is none, and how to write it.
    """
    try:
        url = urlsplit(text)
        well_formed = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:  # of a port or an address in brackets
        well_formed = False
    if not well_formed or not text.isprintable() or " " in text:
        raise ValueError(f"{text!r} is not a URL; write it as https://HOST/v1")
    return text


def check_variable(text: str) -> str:
    """The name of an environment variable, or nothing.

    Raises:
        ValueError: it is none. It may be a key, so the error does not repeat it.
    """
    if text and not _VARIABLE.fullmatch(text):
        raise ValueError(
            'is not the name of an environment variable; put the key into one and write its name here, or ""'
        )
    return text


Name = Annotated[str, AfterValidator(_name)]
Line = Annotated[str, AfterValidator(_line)]
Language = Annotated[str, AfterValidator(_language)]
Device = Annotated[str, AfterValidator(_device)]
Gpus = Annotated[float, Field(ge=0), AfterValidator(_gpus)]
Lines = Annotated[tuple[Line, ...], Field(min_length=1)]
Languages = Annotated[tuple[Language, ...], Field(min_length=1)]
