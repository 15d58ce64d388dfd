"""Bounds the length of the texts that a signal's filter builds from a row's values, relative to these values.

Anyone who may write signals chooses the filter, and the server builds its texts for each row: nested calls of REPLACE
turn a kilobyte into gigabytes. As in `filter_statement.py`, a filter is checked without the types of its columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

MOST_GROWTH = 100
_ENDS = frozenset("= < > ! AND OR NOT BETWEEN LIKE IN IS CASE WHEN THEN ELSE END".split())  # noqa: SIM905
"""Tokens at which a sum of texts ends."""


@dataclass
class _Argument:
    """The tokens between two commas; `growth` is that of the longest text in them, in values of a row."""

    tokens: list[str] = field(default_factory=list[str])
    growth: int = 1
    _ended: int = 0
    _term: int = 1

    def take(self, token: str) -> None:
        """Continue with the next token."""
        self.tokens.append(token)
        if token == "+":  # noqa: S105
            self._ended, self._term = self._ended + self._term, 1
        elif token.upper() in _ENDS:
            self._ended, self._term = 0, 1
        self.growth = max(self.growth, self._ended + self._term)

    def take_call(self, growth: int) -> None:
        """Continue after a call, or a parenthesis."""
        self.tokens.append(")")
        self._term = max(self._term, growth)
        self.growth = max(self.growth, self._ended + self._term)


@dataclass
class _Call:
    name: str
    arguments: list[_Argument] = field(default_factory=lambda: [_Argument()])

    def growth(self, collection: str) -> int:
        """The growth of the text that the call returns."""
        each = [one.growth for one in self.arguments]
        if self.name == "REPLACE":
            return max(each) * self._replaced(collection)
        if self.name == "CONCAT":
            return sum(each)
        if self.name == "CONCAT_WS":
            return sum(each) + each[0] * len(each)
        if self.name == "STUFF":
            return each[0] + each[-1]
        return max(each)

    def _replaced(self, collection: str) -> int:
        """How many characters replace one."""
        texts = [_literal(one.tokens) for one in self.arguments]
        if len(texts) != 3 or texts[2] is None:
            raise ValueError(f"the filter of {collection} calls REPLACE with something else than a literal to put in")
        return max(1, -(-len(texts[2]) // max(1, len(texts[1] or ""))))


def check_growth(tokens: Sequence[str], collection: str) -> None:
    """Check that no text may become much longer than the values of a row (raises ValueError).

    Args:
        tokens: The tokens of a condition, whose parentheses are balanced.
        collection: The name of the table.
    """
    calls, before = [_Call("")], ""
    for token in tokens:
        if token == "(":  # noqa: S105
            calls.append(_Call(before.upper()))
        elif token == ")":  # noqa: S105
            _within(growth := calls.pop().growth(collection), collection)
            calls[-1].arguments[-1].take_call(growth)
        elif token == ",":  # noqa: S105
            calls[-1].arguments.append(_Argument())
        else:
            calls[-1].arguments[-1].take(token)
        before = token
    _within(calls[0].growth(collection), collection)


def _within(growth: int, collection: str) -> None:
    if growth > MOST_GROWTH:
        raise ValueError(
            f"the filter of {collection} builds a text that may be {growth} times as long as a value; at most "
            f"{MOST_GROWTH} times are allowed"
        )


def _literal(tokens: Sequence[str]) -> str | None:
    """The text of a literal; None: it is something else."""
    if len(tokens) != 1 or not tokens[0].endswith("'"):
        return None
    return tokens[0].lstrip("Nn")[1:-1].replace("''", "'")
