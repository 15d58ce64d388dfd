"""The words of a value: breaking, accents, stop words, regular English endings."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any

from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.engine.xml.parsing import parsed

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_DECODED = frozenset({".txt", ".sql", ".csv", ".log", ".htm", ".html", ".xml"})
_TAGS = re.compile(r"<[^>]*>")
_COMMON = """
a about after all also an and another any are as at be because been before being between both but by came can
come could did do each for from get got had has have he her here him himself his how if in into is it like
make many me might more most much must my never now of on only or other our out over said same see should
since some still such take than that the their them then there these they this those through to too under up
very was way we well were what where which while who with would you your
"""
STOP_WORDS = frozenset(_COMMON.split())
"""The common ones of the server's English list; single digits and letters count as well."""
_ENDINGS = (
    ("ies", "y"), ("ied", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("'s", ""), ("e", ""),
)  # fmt: skip


@lru_cache(maxsize=4096)
def words(text: str, *, accents: bool = True) -> tuple[str, ...]:
    """The words of a text, folded."""
    folded = text.casefold()
    if not accents:
        folded = "".join(sign for sign in unicodedata.normalize("NFD", folded) if not unicodedata.combining(sign))
    return tuple(_WORD.findall(folded))


def is_stop_word(word: str) -> bool:
    """Whether a word is too common to be looked for."""
    return word in STOP_WORDS or len(word) == 1


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """A word without a regular ending, so that `ride`, `rides`, `riding` meet."""
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            bare = word[: len(word) - len(ending)] + instead
            doubled = ending in ("ing", "ed") and len(bare) > 3 and bare[-1] == bare[-2] and bare[-1] not in "ls"
            return bare[:-1] if doubled else bare.removesuffix("e")
    return word


def text_of(value: Any, type_: SqlType, extension: str) -> str:
    """What is searched of a value: text, the text of xml, a binary document whose extension says that it is text."""
    if value is None:
        return ""
    if type_.name == "xml":
        return " ".join(_TAGS.split(str(value))) if "<" not in str(value) else _xml_text(str(value))
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace") if extension.strip().lower() in _DECODED else ""
    return str(value)


def _xml_text(value: str) -> str:
    parts = [node.string_value() for node in parsed(value).children]
    return " ".join((*parts, *re.findall(r"=\"([^\"]*)\"", value)))
