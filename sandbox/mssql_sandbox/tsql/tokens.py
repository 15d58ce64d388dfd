"""Text to tokens. No grammar here."""

from __future__ import annotations

import re
from bisect import bisect_right
from decimal import Decimal
from typing import NamedTuple

from mssql_sandbox.errors import SqlError
from mssql_sandbox.tsql.patterns import ROWS


class Token(NamedTuple):
    """One token.

    `kind`: w word, q quoted identifier, v variable, s string, n national string, i integer, d decimal, f float,
    m money, b binary, o operator, r rows of literals after VALUES (`value` is their text), e end. `text` is the word
    in upper case or the operator, empty for all others, so that comparing `text` alone never takes a quoted name or a
    string for a keyword.
    """

    kind: str
    text: str
    value: object
    start: int
    end: int


_LEXEME = re.compile(
    r"""
      (?P<blank>[\s\x00\ufeff]+|--[^\r\n]*)
    | (?P<comment>/\*)
    | (?P<nstring>[Nn]'(?:[^']|'')*')
    | (?P<string>'(?:[^']|'')*')
    | (?P<bracket>\[(?:[^\]]|\]\])*\])
    | (?P<quoted>"(?:[^"]|"")*")
    | (?P<binary>0[xX](?:[0-9A-Fa-f]|\\\r?\n)*)
    | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d*)?)
    | (?P<variable>@[\w@\#$]+)
    | (?P<word>[^\W\d][\w@\#$]*|\#[\w@\#$]+|\$[A-Za-z_]\w*)
    | (?P<money>[$£€¥]\ *[+-]?(?:\d+(?:,\d+)*\.?\d*|\.\d+)?)
    | (?P<operator>\|\|=|<<|>>|<=|>=|<>|!=|!<|!>|\+=|-=|\*=|/=|%=|&=|\|=|\^=|::|\|\||[-+*/%&|^~=<>(),.;:{}?!])
    """,
    re.VERBOSE,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_OPERATORS = {"!=": "<>", "!<": ">=", "!>": "<="}


class Source:
    """The text of a batch, and the lines of its offsets."""

    __slots__ = ("_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts: list[int] | None = None

    def line(self, offset: int) -> int:
        """Line (1-based) of an offset."""
        if self._starts is None:
            self._starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        return bisect_right(self._starts, offset)


def tokenize(
    source: Source, *, quoted_identifier: bool = True, start: int = 0, end: int | None = None, rows: bool = True
) -> list[Token]:
    """All tokens between `start` and `end` of a batch, and an end token; `rows` keeps rows of literals in one token.

    Raises:
        SqlError: 105 unclosed string or bracket, 113 unclosed comment, 102 anything else.
    """
    text = source.text
    match_at = _LEXEME.match
    tokens: list[Token] = []
    append = tokens.append
    position, length = start, len(text) if end is None else end
    while position < length:
        match = match_at(text, position)
        if match is None:
            raise _unreadable(source, position)
        kind, lexeme, after = match.lastgroup, match.group(), match.end()
        if kind == "word":
            word = lexeme.upper()
            append(Token("w", word, lexeme, position, after))
            if rows and word == "VALUES" and (found := ROWS.match(text, after)):
                append(Token("r", "", found.group(1), found.start(1), found.end()))
                after = found.end()
        elif kind == "operator":
            append(Token("o", _OPERATORS.get(lexeme, lexeme), lexeme, position, after))
        elif kind == "comment":
            after = _comment_end(source, position)
        elif kind != "blank":
            append(valued(str(kind), lexeme, position, after, quoted_identifier=quoted_identifier))
        position = after
    append(Token("e", "", "", length, length))
    return tokens


def valued(kind: str, lexeme: str, start: int, end: int, *, quoted_identifier: bool) -> Token:
    """Token of a constant, a variable or a quoted name."""
    if kind == "variable":
        return Token("v", "", lexeme, start, end)
    if kind == "nstring":
        return Token("n", "", lexeme[2:-1].replace("''", "'"), start, end)
    if kind == "string":
        return Token("s", "", lexeme[1:-1].replace("''", "'"), start, end)
    if kind == "bracket":
        return Token("q", "", lexeme[1:-1].replace("]]", "]"), start, end)
    if kind == "quoted":
        return Token("q" if quoted_identifier else "s", "", lexeme[1:-1].replace('""', '"'), start, end)
    if kind == "binary":
        digits = re.sub(r"[\\\r\n]", "", lexeme[2:])
        return Token("b", "", bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits), start, end)
    if kind == "money":
        digits = lexeme[1:].replace(",", "").strip()
        return Token("m", "", Decimal(digits or "0").quantize(Decimal("0.0001")), start, end)
    return number(lexeme, start, end)


def number(lexeme: str, start: int = 0, end: int = 0) -> Token:
    """Token of a number."""
    if "e" in lexeme or "E" in lexeme:
        digits = lexeme if lexeme[-1].isdigit() else lexeme.rstrip("+-") + "0"
        return Token("f", "", float(digits), start, end)
    if "." not in lexeme:
        value = int(lexeme)
        if value <= 2147483647:
            return Token("i", "", value, start, end)
        return Token("d", "", Decimal(lexeme), start, end)
    digits = lexeme.rstrip(".") if lexeme.endswith(".") else lexeme
    return Token("d", "", Decimal(digits), start, end)


def _comment_end(source: Source, start: int) -> int:
    """End of a block comment; they nest."""
    depth, position = 1, start + 2
    while depth:
        edge = _COMMENT_EDGE.search(source.text, position)
        if edge is None:
            raise SqlError(113, "Missing end comment mark '*/'.", severity=15, line=source.line(start))
        depth += 1 if edge.group() == "/*" else -1
        position = edge.end()
    return position


def _unreadable(source: Source, position: int) -> SqlError:
    line = source.line(position)
    rest = source.text[position:]
    if rest[0] in "'[\"" or rest[:2] in ("N'", "n'"):
        body = rest[2:] if rest[0] in "Nn" else rest[1:]
        message = f"Unclosed quotation mark after the character string '{body[:128]}'."
        return SqlError(105, message, severity=15, line=line)
    return SqlError(102, f"Incorrect syntax near '{rest[0]}'.", severity=15, line=line)
