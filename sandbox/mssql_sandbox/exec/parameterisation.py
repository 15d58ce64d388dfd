"""Single changes full of literals (`UPDATE t SET a = 5 WHERE id = 7`) share one compiled plan per shape.

Literals that stand alone as a value to store or to compare with become parameters; all others are part of the shape,
because they may affect how the statement is compiled. Any other text runs as written.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.variables import uses, walk
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.parser import Parser
from mssql_sandbox.tsql.patterns import BINARY, NUMBER, TEXT
from mssql_sandbox.tsql.tokens import number

_MAX_TEXT = 4000
_MAX_LITERALS = 200
_CHANGE = re.compile(r"\s*+(?:INSERT|UPDATE|DELETE)\b", re.IGNORECASE)
_UNREADABLE = re.compile(r'--|/\*|"|@')
_PIECES = re.compile(rf"(\[[^\]]*+(?:\]\][^\]]*+)*+\]|{TEXT}|(?<![\w@#$.])(?:{BINARY}|{NUMBER})(?![\w@#$.]))")
_LENGTHS = (16, 64, 256, 1024, 4000)
_MAX_INT = 2147483647
_PARAMETER = "@__literal"


@dataclass(frozen=True, slots=True)
class Shape:
    """A statement text without its literals, some of which become parameters, by number; none: not applicable.

    `operands` stand in arithmetic, where an integer's type depends on its digits: those become parameters unless they
    are integers.
    """

    free: frozenset[int]
    operands: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Parameterised:
    """A statement with parameters in the place of literals: `pieces` of its text, and the parameters' values.

    `key` holds the text around the literals, and a word for each of these: what type it has as a parameter, or the
    literal itself where it stays one. `values` are in storage form.
    """

    key: tuple[tuple[str, ...], tuple[str, ...]]
    values: tuple[Any, ...]
    pieces: list[str]

    def statement(
        self, *, quoted_identifier: bool
    ) -> tuple[tuple[st.Statement, ...], tuple[st.VariableDeclaration, ...]]:
        """The statement that all texts with this key share, and the declarations of its parameters."""
        around, words = self.key
        parts = list(around)
        declared: list[st.VariableDeclaration] = []
        for place, word in zip(_literals(self.pieces), words, strict=True):
            parts[place] = word
            if word is not self.pieces[place]:
                parts[place] = f"{_PARAMETER}{len(declared)}"
                declared.append(st.VariableDeclaration(parts[place], _type_of(word)))
        return Parser("".join(parts), quoted_identifier=quoted_identifier).batch(), tuple(declared)


class Parameteriser:
    """Caches the shapes of statements."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[str, ...], Shape] = {}

    def read(self, text: str, *, quoted_identifier: bool) -> Parameterised | None:
        """The statement of a text with parameters; None if the text must run as written."""
        if len(text) > _MAX_TEXT or _CHANGE.match(text) is None:
            return None
        pieces = _PIECES.split(text)
        literals = _literals(pieces)
        if not literals or len(literals) > _MAX_LITERALS:
            return None
        around = pieces.copy()
        for place in literals:
            around[place] = ""
        shape_key = tuple(around)
        shape = self._shapes.get(shape_key)
        if shape is None:
            if len(self._shapes) >= 4096:
                self._shapes.clear()
            shape = self._shapes[shape_key] = _shape(pieces, literals, quoted_identifier=quoted_identifier)
        if not shape.free and not shape.operands:
            return None
        return _parameterised(shape_key, pieces, literals, shape)


def _literals(pieces: list[str]) -> list[int]:
    """Positions of the literals: every other piece, except names in brackets."""
    return [place for place in range(1, len(pieces), 2) if pieces[place][0] != "["]


def _parameterised(
    shape_key: tuple[str, ...], pieces: list[str], literals: list[int], shape: Shape
) -> Parameterised | None:
    words: list[str] = []
    values: list[Any] = []
    for order, place in enumerate(literals):
        literal = pieces[place]
        if order in shape.free or (order in shape.operands and not literal.isdigit()):
            typed = _typed(literal)
            if typed is None:
                return None
            words.append(typed[0])
            values.append(typed[1])
        else:
            words.append(literal)
    return Parameterised((shape_key, tuple(words)), tuple(values), pieces)


def _typed(literal: str) -> tuple[str, Any] | None:
    """A word for the type of a literal, and its value; None if only the original text will do.

    Strings get one of a few lengths, so that few plans serve them all. Runs for each literal of each statement.
    """
    if literal.isdigit():
        value = int(literal)
        if value <= _MAX_INT:
            return "i", value
        whole, fraction = literal, ""
    else:
        mark = literal[0]
        if mark == "'":  # others may have to be converted to the code page of the database
            return _text(literal[1:-1], "v") if literal.isascii() else None
        if mark in "Nn":
            return _text(literal[2:-1], "n")
        if literal[:2] in ("0x", "0X"):
            return None
        if "e" in literal or "E" in literal:
            return "f", number(literal).value
        whole, _, fraction = literal.partition(".")
    precision = len(whole.lstrip("0")) + len(fraction)
    if literal == "2147483648" or precision > 38:  # its negative is an int; a longer one is an error of the original
        return None
    return f"d{precision or 1},{len(fraction)}", number(literal).value


def _text(inner: str, kind: str) -> tuple[str, Any]:
    value = inner.replace("''", "'") if "'" in inner else inner
    return f"{kind}{_LENGTHS[bisect_left(_LENGTHS, len(value))]}", value


_NAMES = {"i": "int", "f": "float", "v": "varchar", "n": "nvarchar", "d": "numeric"}


def _type_of(word: str) -> ast.TypeName:
    """The type for a literal's word, such as n64 or d5,2."""
    return ast.TypeName((_NAMES[word[0]],), tuple(map(int, word[1:].split(","))) if word[1:] else ())


def _shape(pieces: list[str], literals: list[int], *, quoted_identifier: bool) -> Shape:
    """Which literals can be parameters: determined by replacing all of them with variables."""
    if any(_UNREADABLE.search(pieces[place]) for place in range(0, len(pieces), 2)):
        return Shape(frozenset())
    tried = pieces.copy()
    for order, place in enumerate(literals):
        tried[place] = f" {_PARAMETER}{order} "
    try:
        statements = Parser("".join(tried), quoted_identifier=quoted_identifier).batch()
    except SqlError:
        return Shape(frozenset())
    if len(statements) != 1 or not isinstance(statements[0], (st.Insert, st.Update, st.Delete)):
        return Shape(frozenset())
    if len(set(uses(statements[0]))) != len(literals):
        return Shape(frozenset())
    operands = [
        part for node in walk(statements[0]) if isinstance(node, ast.Binary) for part in (node.left, node.right)
    ]
    return Shape(_numbers(_values(statements[0])), _numbers(operands))


def _numbers(values: Iterable[ast.Expression]) -> frozenset[int]:
    """The numbers of the literals among expressions."""
    names = [_parameter(value) for value in values]
    return frozenset(int(name.removeprefix(_PARAMETER)) for name in names if name is not None)


def _values(statement: st.Statement) -> Iterator[ast.Expression]:
    """Expressions that are stored or compared unchanged."""
    for node in walk(statement):
        if isinstance(node, ast.Comparison):
            yield node.left
            yield node.right
        elif isinstance(node, st.Assignment) and node.operator == "=" and node.column:
            yield node.value
    if isinstance(statement, st.Insert) and isinstance(statement.source, ast.Query):
        body = statement.source.body
        if isinstance(body, ast.Values) and len(body.rows) == 1:
            yield from body.rows[0]


def _parameter(value: ast.Expression) -> str | None:
    if isinstance(value, ast.Unary) and value.operator == "-":
        value = value.operand
    is_ours = isinstance(value, ast.Variable) and value.name.startswith(_PARAMETER)
    return value.name if is_ours and isinstance(value, ast.Variable) else None
