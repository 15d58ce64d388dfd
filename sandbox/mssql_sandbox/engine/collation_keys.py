"""Sort keys of text under a collation's rules.

A key is a string: base characters first (level 1), then, behind NUL characters, accents (2), case (3) and the
hyphens and apostrophes that word order leaves out of level 1 (4); levels without information are left out. Trailing
blanks never count. The order of punctuation follows Windows' word order and, for varchar under SQL_* collations, the
dictionary order of the code page. What does not belong here: names of collations.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

_SYMBOLS = ' !"#$%&()*,./:;?@[\\]^_`{|}~+<=>'
_SQL_SYMBOLS = " !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_LETTERLIKE = {
    "ß": "ss", "ẞ": "ss", "æ": "ae", "Æ": "ae", "œ": "oe", "Œ": "oe", "þ": "th", "Þ": "th",
    "ø": "o\u0338", "Ø": "o\u0338", "đ": "d\u0335", "Đ": "d\u0335", "ł": "l\u0335", "Ł": "l\u0335",
}  # fmt: skip
_SPECIAL = "-'"
_SURROGATES = 0x10000


@dataclass(frozen=True, slots=True)
class Rules:
    """The comparison properties of a collation."""

    case_sensitive: bool
    accent_sensitive: bool
    kana_sensitive: bool
    width_sensitive: bool
    weigh_supplementary: bool
    turkish: bool


def _weights(symbols: str) -> dict[int, int]:
    """Level 1 of the ASCII characters: blank and symbols, then digits, then letters without case."""
    table = {ord(symbol): 0x10 + place for place, symbol in enumerate(symbols)}
    table |= {ord("0") + digit: 0x40 + digit for digit in range(10)}
    table |= {ord("A") + letter: ord("a") + letter for letter in range(26)}
    return table


def linguistic_key(rules: Rules) -> Callable[[str], str]:
    """Keys by Windows' rules: national text, and all text under Windows collations."""
    weights = _weights(_SYMBOLS)

    def key(text: str) -> str:
        text = text.rstrip(" ")
        if not text.isascii() or not text.isprintable() or "-" in text or "'" in text or rules.turkish:
            return _full_key(text, rules, weights, word_order=True)
        primary = text.translate(weights)
        if rules.case_sensitive and not text.islower():
            return primary + _levels("", _case(text, upper_first=False), "")
        return primary

    return key


def sql_order_key(rules: Rules) -> Callable[[str], str]:
    """Keys of char/varchar text under SQL_* collations: hyphen and apostrophe are symbols like others."""
    weights = _weights(_SQL_SYMBOLS)

    def key(text: str) -> str:
        text = text.rstrip(" ")
        if not text.isascii():
            return _full_key(text, rules, weights, word_order=False)
        primary = text.translate(weights)
        if rules.case_sensitive:
            return primary + _levels("", _case(text, upper_first=True), "")
        return primary

    return key


def binary_key(text: str) -> str:
    """Keys of BIN and BIN2: UTF-16 code units in order."""
    text = text.rstrip(" ")
    if text.isascii() or max(text, default="") < "\ud800":
        return text
    # As lone surrogates, supplementary characters sort by their code units.
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(chr(int.from_bytes(units[i : i + 2], "big")) for i in range(0, len(units), 2))


def bytes_key(encode: Callable[[str], bytes]) -> Callable[[str], bytes]:
    """Keys of char/varchar text under BIN and BIN2: the bytes of the code page."""
    return lambda text: encode(text.rstrip(" "))


def _levels(accents: str, case: str, special: str) -> str:
    levels = f"{accents}\x00{case}\x00{special}".rstrip("\x00")
    return "\x00" + levels if levels else ""


def _case(text: str, *, upper_first: bool) -> str:
    """Case level: one mark per character, without trailing marks of the lesser case."""
    greater = "\x02"
    marks = [greater if character.isupper() != upper_first else "\x01" for character in text]
    return "".join(marks).rstrip("\x01")


def _full_key(text: str, rules: Rules, weights: dict[int, int], *, word_order: bool) -> str:
    primary: list[str] = []
    accents: list[str] = []
    cases: list[str] = []
    special: list[str] = []
    for character in _expanded(text, rules):
        number = ord(character)
        if unicodedata.combining(character):
            if rules.accent_sensitive and accents:
                accents[-1] += character
            continue
        if word_order and character in _SPECIAL:
            special.append(chr(len(primary) + 1) + character)
            continue
        if _weightless(number, rules, word_order=word_order):
            continue
        lowered = _lower(character, rules)
        primary.append("".join(chr(weights.get(ord(c), ord(c))) for c in lowered))
        accents.append("\x01")
        cases.append("\x02" if character.isupper() == word_order else "\x01")
    accent = "".join(accents).rstrip("\x01") if rules.accent_sensitive else ""
    case = "".join(cases).rstrip("\x01") if rules.case_sensitive else ""
    return "".join(primary) + _levels(accent, case, "".join(special))


def _expanded(text: str, rules: Rules) -> str:
    """Base characters followed by their accents; ligatures split; wide forms made narrow."""
    out: list[str] = []
    for character in text:
        letters = _LETTERLIKE.get(character)
        if letters is None:
            form = "NFD" if rules.width_sensitive else "NFKD"
            letters = unicodedata.normalize(form, character)
            if rules.turkish and character == "İ":
                letters = character
        elif character.isupper():
            letters = letters.upper()
        if not rules.kana_sensitive and "\u3041" <= letters[0] <= "\u3096":
            letters = chr(ord(letters[0]) + 0x60) + letters[1:]
        out.append(letters)
    return "".join(out)


def _lower(character: str, rules: Rules) -> str:
    if rules.turkish and character in "Iİ":
        return "ı" if character == "I" else "i"
    return character.lower()


def _weightless(number: int, rules: Rules, *, word_order: bool) -> bool:
    """Characters that comparisons ignore: controls, and characters unknown to older Windows tables."""
    if number >= _SURROGATES:
        return not rules.weigh_supplementary
    return word_order and (number < 0x09 or 0x0E <= number < 0x20 or number == 0x7F or number == 0x200B)
