"""LIKE patterns: % _ [set] [^set] and ESCAPE, matched by the rules of a collation.

What does not belong here: choosing the collation.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from mssql_sandbox.engine.collation import Collation


@lru_cache(maxsize=2048)
def like_regex(pattern: str, collation: Collation | None, escape: str | None = None) -> re.Pattern[str]:
    """The regular expression of a pattern, for `fullmatch` on text of the same collation."""
    flags = re.DOTALL if collation is not None and collation.case_sensitive else re.DOTALL | re.IGNORECASE
    return re.compile(_translate(pattern, escape), flags)


def like(
    text: str, pattern: str, collation: Collation | None, escape: str | None = None, *, national: bool = False
) -> bool:
    """Whether the text matches. Trailing blanks of the pattern count, those of the text in national text only."""
    regex = like_regex(_accents(pattern, collation), collation, escape)
    text = _accents(text, collation)
    return regex.fullmatch(text) is not None or (not national and regex.fullmatch(text.rstrip(" ")) is not None)


def _accents(text: str, collation: Collation | None) -> str:
    if collation is None or collation.accent_sensitive or text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


def _translate(pattern: str, escape: str | None) -> str:
    out: list[str] = []
    place = 0
    while place < len(pattern):
        character = pattern[place]
        if escape and character == escape and place + 1 < len(pattern):
            out.append(re.escape(pattern[place + 1]))
            place += 2
            continue
        if character == "%":
            out.append(".*")
        elif character == "_":
            out.append(".")
        elif character == "[" and (end := pattern.find("]", place + 1)) > 0:
            out.append(_set(pattern[place + 1 : end], escape))
            place = end
        else:
            out.append(re.escape(character))
        place += 1
    return "".join(out)


def _set(content: str, escape: str | None) -> str:
    """A character class; an empty one matches nothing."""
    negated = content.startswith("^")
    body = content[1:] if negated else content
    if escape:
        body = body.replace(escape, "")
    if not body:
        return "(?!)"
    inner = re.sub(r"([\\\]\[^&~|])", r"\\\1", body)
    if inner.startswith("-"):
        inner = "\\" + inner
    return f"[{'^' if negated else ''}{inner}]"


def pattern_index(pattern: str, text: str, collation: Collation | None) -> int:
    """PATINDEX: one-based position of the first match, 0 if there is none."""
    anchored_start = not pattern.startswith("%")
    anchored_end = not pattern.endswith("%")
    core = pattern[0 if anchored_start else 1 : None if anchored_end or len(pattern) == 1 else -1]
    regex = re.compile(_translate(core, None) + (r"\Z" if anchored_end else ""), like_regex("", collation).flags)
    found = regex.match(text) if anchored_start else regex.search(text)
    return 0 if found is None else found.start() + 1
