r"""Debezium's lists of regular expressions (features FLT-01).

Expressions are separated by commas (`\,` is a comma inside one); a Java expression (`java_regex.py`) matches the whole
name, ignoring the case of ASCII letters. `filters.py` defines the names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from mssql_cdc.config.java_regex import java_pattern

_SEPARATOR = re.compile(r"\\\.|\[\.\]|(?<!\\)\.(?![*+?{])")


def split_list(text: str) -> tuple[str, ...]:
    r"""The expressions of a list; blank ones are dropped, `\,` becomes a comma, other escapes stay."""
    parts = re.findall(r"(?:\\.|[^,\\]|\\$)+", text, re.DOTALL)
    return tuple(part for part in (raw.strip().replace("\\,", ",") for raw in parts) if part)


def split_expression(source: str) -> tuple[str, ...]:
    """The parts of an expression between the dots that stand for a dot in a name."""
    return tuple(_SEPARATOR.split(source))


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression over dotted names.

    Attributes:
        text: how it is shown.
        source: the expression.
        pattern: the compiled one.
        takes_long: whether it is also tried on names with the database in front.
    """

    text: str
    source: str
    pattern: re.Pattern[str]
    takes_long: bool


@dataclass(frozen=True)
class PatternList:
    r"""Expressions over dotted names; empty when `text` is blank.

    `parts` is the number of dotted parts that the documented name has (`schema.table` = 2). With
    `long_form`, an expression with at least as many dots as a name with the database in front has (`parts`) is
    tried on that longer name too. The dots are counted so that `sales\..*` still means the schema `sales` and
    never everything in a database of that name.
    """

    text: str = ""
    parts: int = 1
    long_form: bool = False

    @classmethod
    def parse(cls, text: str, parts: int = 1, *, long_form: bool = False) -> PatternList:
        """The list, with its expressions checked.

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
        return tuple(java_pattern(one, ignore_case=True) for one in split_list(self.text))

    @cached_property
    def _takes_long(self) -> tuple[bool, ...]:
        sources = split_list(self.text)
        return tuple(self.long_form and len(_SEPARATOR.findall(one)) >= self.parts for one in sources)

    def __bool__(self) -> bool:
        return bool(split_list(self.text))

    def __getstate__(self) -> dict[str, object]:
        return {"text": self.text, "parts": self.parts, "long_form": self.long_form}

    def each(self, *, always_long: bool = False) -> Iterator[Expression]:
        """The expressions one by one.

        Args:
            always_long: each is tried on names with the database in front, however many dots it has.
        """
        for text, pattern, takes_long in zip(split_list(self.text), self.expressions, self._takes_long, strict=True):
            yield Expression(text, text, pattern, always_long or takes_long)

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
