r"""Debezium's lists of regular expressions (features FLT-01).

A list is separated by commas (`\,` is a comma inside an expression); an expression matches the whole name, whatever
its case. Java's spellings that Python lacks are translated. What the names are is `filters.py`'s business.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|$)", re.DOTALL)
_SEPARATOR = re.compile(r"\\\.|\[\.\]|(?<!\\)\.(?![*+?{])")
_CLASSES = {"Alpha": "a-zA-Z", "Digit": "0-9", "Alnum": "a-zA-Z0-9", "Upper": "A-Z", "Lower": "a-z"}


def split_list(text: str) -> tuple[str, ...]:
    r"""The expressions of a list; blank ones are dropped, `\,` becomes a comma, other escapes stay."""
    parts = re.findall(r"(?:\\.|[^,\\]|\\$)+", text, re.DOTALL)
    return tuple(part for part in (raw.strip().replace("\\,", ",") for raw in parts) if part)


def compile_java(expression: str) -> re.Pattern[str]:
    r"""A Java regular expression as Python's, ignoring case.

    Handles `\Q…\E`, named groups, `(?i)` anywhere, `\z`, `\h` and the ASCII classes `\p{Alpha}` …

    Raises:
        ValueError: the expression is not valid, or uses what Python does not know.
    """
    text = _QUOTED.sub(lambda found: re.escape(found.group(1)), expression)
    text = re.sub(r"\(\?<(?![=!])", "(?P<", text).replace("(?i)", "")
    text = text.replace(r"\h", r"[ \t]").replace(r"\z", r"\Z")
    text = re.sub(r"\\p\{(\w+)\}", _ascii_class, text)
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"{expression!r} is not a valid regular expression: {error}") from None


@dataclass(frozen=True)
class PatternList:
    r"""Expressions over dotted names; empty when `text` is blank.

    `parts` is the number of dotted parts which the documented name has (`schema.table` = 2). With
    `long_form`, an expression with at least as many dots as a name with the database in front has (`parts`) is
    tried on that longer name too. The dots are counted so that `sales\..*` still means the schema `sales` and
    never everything in a database of that name.
    """

    text: str = ""
    parts: int = 1
    long_form: bool = False

    @classmethod
    def parse(cls, text: str, parts: int = 1, *, long_form: bool = False) -> PatternList:
        """The list, its expressions checked.

        Args:
            text: the expressions, separated by commas.
            parts: how many dotted parts the documented name has.
            long_form: whether an expression may name the database as well.

        Raises:
            ValueError: an expression is not valid.
        """
        found = cls(text, parts, long_form)
        _ = found.expressions
        return found

    @cached_property
    def expressions(self) -> tuple[re.Pattern[str], ...]:
        """The compiled expressions (raises ValueError)."""
        return tuple(compile_java(one) for one in split_list(self.text))

    @cached_property
    def _takes_long(self) -> tuple[bool, ...]:
        sources = split_list(self.text)
        return tuple(self.long_form and len(_SEPARATOR.findall(one)) >= self.parts for one in sources)

    def __bool__(self) -> bool:
        return bool(split_list(self.text))

    def __getstate__(self) -> dict[str, object]:
        return {"text": self.text, "parts": self.parts, "long_form": self.long_form}

    def first_match(self, name: str, long_name: str | None = None) -> int | None:
        """The index of the first expression that matches the name (or its long form), else None."""
        for index, expression in enumerate(self.expressions):
            if expression.fullmatch(name):
                return index
            if long_name is not None and self._takes_long[index] and expression.fullmatch(long_name):
                return index
        return None

    def matches(self, name: str, long_name: str | None = None) -> bool:
        """Whether any expression matches."""
        return self.first_match(name, long_name) is not None


def _ascii_class(found: re.Match[str]) -> str:
    name = found.group(1)
    if name not in _CLASSES:
        raise ValueError(f"the character class \\p{{{name}}} is not supported; write it out")
    return f"[{_CLASSES[name]}]"
