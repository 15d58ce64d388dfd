"""Places in the text of a query: white space, words, names, literals; the namespaces in scope; errors."""

from __future__ import annotations

import re
from typing import NoReturn

from mssql_sandbox.errors import SqlError

XS, FN, SQL = (
    "http://www.w3.org/2001/XMLSchema",
    "http://www.w3.org/2004/07/xpath-functions",
    "http://schemas.microsoft.com/sqlserver/2004/sqltypes",
)
PREDECLARED = {
    "xml": "http://www.w3.org/XML/1998/namespace", "xs": XS, "xsi": "http://www.w3.org/2001/XMLSchema-instance",
    "fn": FN, "xdt": "http://www.w3.org/2004/07/xpath-datatypes", "sql": "urn:schemas-microsoft-com:xml-sql",
    "sqltypes": SQL, "local": "",
}  # fmt: skip
_BLANK = re.compile(r"(?:\s+|\(:(?:[^:]|:(?!\)))*:\))*")
_NAME = re.compile(r"[A-Za-z_\u00c0-\uffff][\w.\-]*")
_NUMBER = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_STRING = re.compile(r"\"((?:[^\"]|\"\")*)\"|'((?:[^']|'')*)'")
_ENTITY = re.compile(r"&(?:(lt|gt|amp|quot|apos)|#(\d+)|#x([0-9A-Fa-f]+));")
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


def resolved(text: str) -> str:
    """Text with its entity references replaced."""

    def one(match: re.Match[str]) -> str:
        if match[1]:
            return _ENTITIES[match[1]]
        return chr(int(match[2]) if match[2] else int(match[3], 16))

    return _ENTITY.sub(one, text)


class Scanner:
    """A query text, the place in it, and the namespaces in scope."""

    def __init__(self, text: str, method: str) -> None:
        self.text = text
        self.method = method
        self.place = 0
        self.spaces = dict(PREDECLARED)

    def blank(self) -> None:
        """Pass over white space and (: comments :)."""
        match = _BLANK.match(self.text, self.place)
        assert match is not None
        self.place = match.end()

    def at(self, sign: str) -> bool:
        """Whether this stands next, after white space."""
        self.blank()
        return self.text.startswith(sign, self.place)

    def accept(self, *signs: str) -> str:
        """Take the first of these signs that stands next."""
        self.blank()
        for sign in signs:
            if self.text.startswith(sign, self.place):
                self.place += len(sign)
                return sign
        return ""

    def expect(self, sign: str) -> None:
        """Take a sign or fail."""
        if not self.accept(sign):
            self.fail()

    def at_word(self, *words: str) -> bool:
        """Whether these words stand next, one after the other."""
        before = self.place
        found = self.accept_word(*words)
        self.place = before
        return found

    def accept_word(self, *words: str) -> bool:
        """Take these words if they stand next."""
        before = self.place
        for word in words:
            self.blank()
            match = _NAME.match(self.text, self.place)
            if match is None or match[0] != word:
                self.place = before
                return False
            self.place = match.end()
        return True

    def expect_word(self, *words: str) -> None:
        """Take these words or fail."""
        if not self.accept_word(*words):
            self.fail()

    def local_name(self) -> str:
        """A name without prefix, or an empty text."""
        match = _NAME.match(self.text, self.place)
        if match is None:
            return ""
        self.place = match.end()
        return match[0]

    def name(self) -> tuple[str, str]:
        """Prefix and local name, where one must stand."""
        self.blank()
        first = self.local_name()
        if not first:
            self.fail()
        if self.text.startswith(":", self.place) and _NAME.match(self.text, self.place + 1) is not None:
            self.place += 1
            return first, self.local_name()
        return "", first

    def number(self) -> str:
        """A number, or an empty text."""
        match = _NUMBER.match(self.text, self.place)
        if match is None:
            return ""
        self.place = match.end()
        return match[0]

    def string(self) -> str:
        """A string literal: 2225 where there is none."""
        self.blank()
        match = _STRING.match(self.text, self.place)
        if match is None:
            raise self.error(2225, "A string literal was expected")
        self.place = match.end()
        quote = match[0][0]
        return resolved((match[1] if match[1] is not None else match[2]).replace(quote * 2, quote))

    def space(self, prefix: str) -> str:
        """The namespace of a prefix; 2229 for one that was not declared."""
        found = self.spaces.get(prefix)
        if found is None and prefix:
            raise self.error(2229, f'The name "{prefix}" does not denote a namespace.')
        return found or ""

    def error(self, number: int, text: str) -> SqlError:
        """An error of this query."""
        return SqlError(number, f"XQuery [{self.method}()]: {text}")

    def fail(self) -> NoReturn:
        """2209 at the current place."""
        self.blank()
        match = re.compile(r"[\w.\-:$@]+|.", re.DOTALL).match(self.text, self.place)
        near = "<eof>" if match is None else match[0]
        raise self.error(2209, f"Syntax error near '{near}'")

    def unknown(self, what: str) -> NoReturn:
        """9335 for what XQuery has and the server has not."""
        raise self.error(9335, f"The XQuery syntax '{what}' is not supported.")
