"""The token stream shared by all parsers: looking ahead, expecting, names, syntax errors."""

from __future__ import annotations

from typing import NoReturn

from mssql_sandbox.error_messages import MESSAGES
from mssql_sandbox.errors import SqlError
from mssql_sandbox.tsql.ast import Name
from mssql_sandbox.tsql.tokens import Source, Token, tokenize
from mssql_sandbox.tsql.words import RESERVED


class TokenStream:
    """Tokens with a position. `text` is the current token's word in upper case or operator."""

    __slots__ = ("_position", "_quoted_identifier", "_tokens", "source", "text", "token")

    def __init__(self, text: str, *, quoted_identifier: bool = True) -> None:
        self.source = Source(text)
        self._quoted_identifier = quoted_identifier
        self._tokens = tokenize(self.source, quoted_identifier=quoted_identifier)
        self._position = 0
        self.token: Token = self._tokens[0]
        self.text: str = self.token.text

    def advance(self) -> Token:
        """Take the current token."""
        token = self.token
        if token.kind != "e":
            self._position += 1
            self.token = self._tokens[self._position]
            self.text = self.token.text
        return token

    def expand_rows(self) -> None:
        """Replace the token of rows of literals by their single tokens."""
        token = self.token
        single = tokenize(
            self.source, quoted_identifier=self._quoted_identifier, start=token.start, end=token.end, rows=False
        )
        self._tokens[self._position : self._position + 1] = single[:-1]
        self.back_to(self._position)

    def peek(self, ahead: int = 1) -> Token:
        """A later token (the end token if there is none)."""
        return self._tokens[min(self._position + ahead, len(self._tokens) - 1)]

    def mark(self) -> int:
        """A position to return to."""
        return self._position

    def back_to(self, mark: int) -> None:
        """Return to a mark."""
        self._position = mark
        self.token = self._tokens[mark]
        self.text = self.token.text

    def at(self, *words: str) -> bool:
        """Whether the next tokens are these words or operators."""
        if self.text != words[0]:
            return False
        return all(self.peek(number).text == word for number, word in enumerate(words[1:], 1))

    def accept(self, *words: str) -> bool:
        """Take these words or operators if they are next."""
        if not self.at(*words):
            return False
        for _ in words:
            self.advance()
        return True

    def accept_one(self, *words: str) -> str:
        """Take one of these words; empty if none of them is next."""
        if self.text in words and self.text:
            return self.advance().text
        return ""

    def expect(self, *words: str) -> None:
        """Take these words or fail with 102/156."""
        for word in words:
            if self.text != word:
                self.fail()
            self.advance()

    def expect_one(self, *words: str) -> str:
        """Take one of these words or fail."""
        return self.accept_one(*words) or self.fail()

    def fail(self, token: Token | None = None) -> NoReturn:
        """Raise 102 or 156 at a token (default: the current one)."""
        bad = token or self.token
        if bad.kind == "e" and self._position > 0:
            bad = self._tokens[self._position - 1]
            raise self.error(102, f"Incorrect syntax near '{self._shown(bad)}'.", bad)
        if bad.kind == "w" and bad.text in RESERVED:
            raise self.error(156, f"Incorrect syntax near the keyword '{bad.value}'.", bad)
        raise self.error(102, f"Incorrect syntax near '{self._shown(bad)}'.", bad)

    def _shown(self, token: Token) -> str:
        if token.kind in "wqvsn":
            return str(token.value)
        return self.source.text[token.start : token.end]

    def error(self, number: int, message: str, token: Token | None = None) -> SqlError:
        """A syntax error (level 15) at a token."""
        return SqlError(number, message, severity=15, line=self.line(token))

    def unsupported(self, option: str) -> SqlError:
        """Error 40517 for syntax of SQL Server that the sandbox does not support."""
        return self.error(40517, MESSAGES[40517].text.format(option=option))

    def line(self, token: Token | None = None) -> int:
        """Line of a token (default: the current one)."""
        return self.source.line((token or self.token).start)

    def at_name(self) -> bool:
        """Whether an identifier is next."""
        return self.token.kind == "q" or (self.token.kind == "w" and self.text not in RESERVED)

    def at_label(self) -> bool:
        """Whether a label is next: a name and a colon."""
        return self.peek().text == ":" and self.at_name()

    def identifier(self) -> str:
        """An identifier, bare or quoted."""
        if not self.at_name():
            self.fail()
        return str(self.advance().value)

    def word(self) -> str:
        """Any word in upper case, reserved or not, or a quoted name as written."""
        if self.token.kind == "w":
            return self.advance().text
        return self.identifier()

    def name(self) -> Name:
        """A name of one to four parts; omitted inner parts are empty."""
        parts = [self.identifier() if self.text != "." else ""]
        while self.text == ".":
            self.advance()
            parts.append("" if self.text == "." else self.part())
        if len(parts) > 4:
            shown = ".".join(parts)
            raise self.error(
                117, f"The object name '{shown}' contains more than the maximum number of prefixes. The maximum is 3."
            )
        return tuple(parts)

    def part(self) -> str:
        """A part of a name after a dot: reserved words are not accepted there either."""
        if self.token.kind == "w" and self.text.startswith("$"):
            return str(self.advance().value)
        return self.identifier()

    def names(self) -> tuple[str, ...]:
        """Identifiers between parentheses."""
        self.expect("(")
        found = [self.identifier()]
        while self.accept(","):
            found.append(self.identifier())
        self.expect(")")
        return tuple(found)

    def variable(self) -> str:
        """`@name`."""
        if self.token.kind != "v":
            self.fail()
        return str(self.advance().value)

    def string(self) -> str:
        """A string constant."""
        if self.token.kind not in ("s", "n"):
            self.fail()
        return str(self.advance().value)

    def integer(self) -> int:
        """An integer constant with an optional sign."""
        negative = self.accept("-")
        if not negative:
            self.accept("+")
        if self.token.kind not in ("i", "d"):
            self.fail()
        number = int(str(self.advance().value))
        return -number if negative else number

    def skip_parentheses(self) -> str:
        """Take a balanced pair of parentheses and return the text within."""
        start = self.token
        self.expect("(")
        depth = 1
        while depth:
            token = self.advance()
            if token.kind == "e":
                self.fail()
            depth += {"(": 1, ")": -1}.get(token.text, 0)
        return self.source.text[start.end : self.peek(-1).start]
