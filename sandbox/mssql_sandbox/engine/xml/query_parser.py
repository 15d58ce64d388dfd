"""Parsing of queries: the prolog, paths, and the statements of modify()."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import NoReturn

from mssql_sandbox.engine.xml import syntax as x
from mssql_sandbox.engine.xml.tree import XML_SPACE, XSI, Element, Name, Text
from mssql_sandbox.errors import SqlError

_BLANK = re.compile(r"(?:\s+|\(:(?:[^:]|:(?!\)))*:\))*")
_WORD = re.compile(r"[A-Za-z_\u00c0-\uffff][\w.\-]*")
_NUMBER = re.compile(r"\d+(?:\.\d*)?|\.\d+")
_STRING = re.compile(r"\"((?:[^\"]|\"\")*)\"|'((?:[^']|'')*)'")
_ELEMENT = re.compile(r"<([A-Za-z_][\w.\-]*(?::[\w.\-]+)?)\s*(?:/>|>([^<{}]*)</\1\s*>)")
_NEAR = re.compile(r"[\w.\-]+|//|::|.", re.DOTALL)
_ENTITY = re.compile(r"&(?:(lt|gt|amp|quot|apos)|#(\d+)|#x([0-9A-Fa-f]+));")
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_UNSUPPORTED = frozenset((
    "for", "let", "some", "every", "if", "eq", "ne", "lt", "le", "gt", "ge", "is", "and", "or", "div", "idiv", "mod",
    "cast", "instance", "union", "after", "before", "element", "attribute", "comment", "//", "::", "..", "<", "=", ">",
    "!", "*", "|", ",", "{", "$",
))  # fmt: skip


class _QueryParser:
    """A query text and the position in it, with the namespaces in scope."""

    def __init__(self, text: str, method: str) -> None:
        self._text = text
        self._method = method
        self._place = 0
        self._spaces = {"": "", "xml": XML_SPACE, "xsi": XSI}

    def query(self) -> x.Expr:
        """Prolog and body."""
        while self._accept_words("declare"):
            self._declaration()
        found = self._change() if self._method == "modify" else self._expression()
        self._blank()
        if self._place < len(self._text):
            self._fail()
        return found

    def _declaration(self) -> None:
        prefix = ""
        if not self._accept_words("default", "element", "namespace"):
            self._expect_words("namespace")
            prefix = self._word() or self._fail()
            self._expect("=")
        self._spaces[prefix] = self._string()
        self._expect(";")

    def _change(self) -> x.Expr:
        if self._accept_words("delete"):
            return x.Deletion(self._expression())
        if self._accept_words("replace", "value", "of"):
            target = self._expression()
            self._expect_words("with")
            return x.Replacement(target, self._expression())
        self._expect_words("insert")
        content = self._content()
        first = self._accept_words("as", "first")
        if not first:
            self._accept_words("as", "last")
        self._expect_words("into")
        return x.Insertion(content, first, self._expression())

    def _content(self) -> Element | x.SqlValue:
        """An element with text only, or a value from SQL."""
        self._blank()
        match = _ELEMENT.match(self._text, self._place)
        if match is None:
            found = self._primary()
            return found if isinstance(found, x.SqlValue) else self._unsupported("insert")
        self._place = match.end()
        prefix, _, local = match[1].rpartition(":")
        made = Element(None, [], Name(self._space(prefix), local, prefix))
        if match[2]:
            made.append(Text(None, _resolved(match[2])))
        return made

    def _expression(self) -> x.Expr:
        found = self._path()
        while sign := self._accept("+", "-"):
            found = x.Sum(sign, found, self._path())  # type: ignore[arg-type]
        return found

    def _path(self) -> x.Expr:
        if self._accept("/"):
            found: x.Expr = self._step(x.Root())
        else:
            found = self._primary() or self._step(x.ContextItem())
        while self._accept("/"):
            found = self._step(found)
        return found

    def _primary(self) -> x.Expr | None:
        """The start of a path, with its positions; None at a step."""
        self._blank()
        sign = self._text[self._place : self._place + 1]
        if sign in ("'", '"'):
            return x.Constant(self._string())
        if number := self._match(_NUMBER):
            return x.Constant(Decimal(number))
        if self._accept("("):
            inner = self._expression()
            self._expect(")")
        elif sign == "." and not self._text.startswith("..", self._place):
            self._place += 1
            inner = x.ContextItem()
        else:
            called = self._call()
            if called is None:
                return None
            inner = called
        positions = self._positions()
        return x.Filtered(inner, positions) if positions else inner

    def _call(self) -> x.Expr | None:
        before = self._place
        prefix, local = self._qualified()
        if not local or local == "text" or not self._accept("("):
            self._place = before
            return None
        if prefix == "sql" and local in ("variable", "column"):
            found: x.Expr = x.SqlValue(local, self._string())  # type: ignore[arg-type]
        elif not prefix and local in ("string", "data"):
            found = x.Call(local, self._expression())  # type: ignore[arg-type]
        else:
            self._unsupported(f"{local}()")
        self._expect(")")
        return found

    def _step(self, source: x.Expr) -> x.Expr:
        attribute = bool(self._accept("@"))
        self._blank()
        prefix, local = self._qualified()
        if not local:
            self._fail()
        if self._text.startswith("::", self._place):
            self._unsupported(local)
        if not attribute and self._accept("("):
            if local != "text":
                self._unsupported(f"{local}()")
            self._expect(")")
            return x.Step(source, "text", positions=self._positions())
        space = self._space(prefix) if prefix or not attribute else ""
        return x.Step(source, "attribute" if attribute else "element", space, local, self._positions())

    def _positions(self) -> tuple[int, ...]:
        found = []
        while self._accept("["):
            self._blank()
            number = self._match(_NUMBER)
            if not number.isdigit():
                self._fail() if self._place >= len(self._text) else self._unsupported("[")
            found.append(int(number))
            self._expect("]")
        return tuple(found)

    # ---- signs and words -------------------------------------------------------------------------------------

    def _blank(self) -> None:
        """Skip white space and (: comments :)."""
        self._match(_BLANK)

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._place)
        if match is None:
            return ""
        self._place = match.end()
        return match[0]

    def _accept(self, *signs: str) -> str:
        self._blank()
        for sign in signs:
            if self._text.startswith(sign, self._place) and not self._text.startswith("//", self._place):
                self._place += len(sign)
                return sign
        return ""

    def _expect(self, sign: str) -> None:
        if not self._accept(sign):
            self._fail()

    def _word(self) -> str:
        self._blank()
        return self._match(_WORD)

    def _accept_words(self, *words: str) -> bool:
        before = self._place
        if all(self._word() == word for word in words):
            return True
        self._place = before
        return False

    def _expect_words(self, *words: str) -> None:
        if not self._accept_words(*words):
            self._fail()

    def _qualified(self) -> tuple[str, str]:
        """Prefix and local name; the local name is empty if there is none."""
        first = self._match(_WORD)
        if first and self._text.startswith(":", self._place) and not self._text.startswith("::", self._place):
            self._place += 1
            return first, self._match(_WORD)
        return "", first

    def _string(self) -> str:
        self._blank()
        match = _STRING.match(self._text, self._place)
        if match is None:
            raise self._error(2225, "A string literal was expected")
        self._place = match.end()
        quote = match[0][0]
        return _resolved((match[1] if match[1] is not None else match[2]).replace(quote * 2, quote))

    def _space(self, prefix: str) -> str:
        found = self._spaces.get(prefix)
        if found is None:
            raise self._error(2229, f'The name "{prefix}" does not denote a namespace.')
        return found

    # ---- errors ----------------------------------------------------------------------------------------------

    def _error(self, number: int, text: str) -> SqlError:
        return SqlError(number, f"XQuery [{self._method}()]: {text}")

    def _fail(self) -> NoReturn:
        """2209 at the current position, 9335 for XQuery that the sandbox does not support."""
        self._blank()
        near = self._match(_NEAR)
        if near in _UNSUPPORTED:
            self._unsupported(near)
        raise self._error(2209, f"Syntax error near '{near or '<eof>'}'")

    def _unsupported(self, what: str) -> NoReturn:
        raise self._error(9335, f"The XQuery syntax '{what}' is not supported.")


def _resolved(text: str) -> str:
    """Text with its entity references replaced."""

    def one(match: re.Match[str]) -> str:
        if match[1]:
            return _ENTITIES[match[1]]
        return chr(int(match[2]) if match[2] else int(match[3], 16))

    return _ENTITY.sub(one, text)


@lru_cache(maxsize=512)
def parse_query(text: str, method: str) -> x.Expr:
    """The syntax tree of a query; cached, because many rows use the same one.

    Raises:
        SqlError: 2209, 2225, 2229, 9335, with the method that the query was written for.
    """
    return _QueryParser(text, method).query()
