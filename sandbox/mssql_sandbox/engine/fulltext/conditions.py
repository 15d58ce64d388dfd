"""Search conditions of CONTAINS and FREETEXT: parsing them, and whether words fulfil them.

A condition is a function of a document's words which gives the number of hits, 0 for none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from mssql_sandbox.engine.fulltext.words import is_stop_word, stem, words
from mssql_sandbox.errors import SqlError

Condition = Callable[[Sequence[str]], int]
_TOKEN = re.compile(r"\s*(?:\"((?:[^\"]|\"\")*)\"|([(),&|!~])|([^\s(),&|!~\"]+))")
_SIGNS = {"&": "AND", "|": "OR", "!": "NOT", "~": "NEAR"}


def free_text(text: str | None, *, accents: bool) -> Condition:
    """FREETEXT: any of the words, in any form of theirs; words that are too common count for nothing."""
    stems = {stem(word) for word in words(_given(text), accents=accents) if not is_stop_word(word)}
    return lambda document: sum(stem(word) in stems for word in document)


def contains(text: str | None, *, accents: bool) -> Condition:
    """CONTAINS.

    Raises:
        SqlError: 7645 for NULL or nothing, 7630 for what is no condition.
    """
    reader = _Reader(_given(text), accents=accents)
    found = reader.either()
    if reader.token is not None:
        reader.fail()
    return found


def _given(text: str | None) -> str:
    if text is None or not text.strip():
        raise SqlError(7645, "Null or empty full-text predicate.", severity=15)
    return text


class _Reader:
    """Recursive descent over a condition."""

    def __init__(self, text: str, *, accents: bool) -> None:
        self._text = text
        self._accents = accents
        self._place = 0
        self._quoted = False
        self.token: str | None = None
        self._advance()

    def fail(self) -> None:
        """7630 at the current token."""
        near = self.token or "<end of text>"
        raise SqlError(
            7630, f"Syntax error near '{near}' in the full-text search condition '{self._text}'.", severity=15, state=3
        )

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._place)
        if match is None:
            self.token = None
            if self._text[self._place :].strip():
                self.token = self._text[self._place :].strip()
                self.fail()
            return
        self._place = match.end()
        self._quoted = match[1] is not None
        self.token = match[1].replace('""', '"') if self._quoted else _SIGNS.get(match[0].strip(), match[0].strip())

    def _at(self, word: str) -> bool:
        return self.token is not None and not self._quoted and self.token.upper() == word

    def _accept(self, word: str) -> bool:
        if not self._at(word):
            return False
        self._advance()
        return True

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            self.fail()

    def either(self) -> Condition:
        """Conditions with OR between them."""
        parts = [self._both()]
        while self._accept("OR"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else lambda document: sum(part(document) for part in parts)

    def _both(self) -> Condition:
        found = self._near()
        while self._accept("AND"):
            denied = self._accept("NOT")
            found = _joined(found, self._near(), denied=denied)
        return found

    def _near(self) -> Condition:
        found = self._term()
        while self._accept("NEAR"):
            found = _joined(found, self._term(), denied=False)
        return found

    def _term(self) -> Condition:
        if self._accept("("):
            inner = self.either()
            self._expect(")")
            return inner
        if self._at("FORMSOF"):
            return self._forms()
        if self._at("NEAR"):
            return self._near_list()
        if self.token is None or (not self._quoted and not re.match(r"\w", self.token)) or self._at("ISABOUT"):
            self.fail()
        token, quoted = self.token or "", self._quoted
        self._advance()
        return _phrase(token, prefix=quoted and token.endswith("*"), accents=self._accents)

    def _forms(self) -> Condition:
        """FORMSOF(INFLECTIONAL | THESAURUS, term, …)."""
        self._expect("FORMSOF")
        self._expect("(")
        inflected = self._accept("INFLECTIONAL")
        if not inflected:
            self._expect("THESAURUS")
        parts: list[Condition] = []
        while self._accept(","):
            token = self.token or ""
            self._advance()
            same = stem if inflected else str
            parts.append(_phrase(token, prefix=False, accents=self._accents, same=same))
        self._expect(")")
        return lambda document: sum(part(document) for part in parts)

    def _near_list(self) -> Condition:
        """NEAR((a, b), n) and NEAR(a, b); how far apart the words may be is not looked at."""
        self._expect("NEAR")
        self._expect("(")
        inner = self._accept("(")
        found = self._term()
        while self._accept(","):
            if self.token is not None and (self.token.isdigit() or self._at("MAX") or self._at("TRUE")):
                self._advance()
                continue
            found = _joined(found, self._term(), denied=False)
            if inner and self._accept(")"):
                inner = False
        self._expect(")")
        return found


def _joined(left: Condition, right: Condition, *, denied: bool) -> Condition:
    def both(document: Sequence[str]) -> int:
        first, second = left(document), right(document)
        if denied:
            return 0 if second else first
        return min(first, second)

    return both


def _phrase(text: str, *, prefix: bool, accents: bool, same: Callable[[str], str] = str) -> Condition:
    """The words of a phrase side by side; with `prefix` each may go on."""
    wanted = tuple(same(word) for word in words(text, accents=accents))
    size = len(wanted)

    def hits(document: Sequence[str]) -> int:
        if not size or (size == 1 and is_stop_word(wanted[0])):
            return 0
        have = [same(word) for word in document]
        return sum(
            all(_is(have[place + offset], word, prefix=prefix) for offset, word in enumerate(wanted))
            for place in range(len(have) - size + 1)
        )

    return hits


def _is(word: str, wanted: str, *, prefix: bool) -> bool:
    return word.startswith(wanted) if prefix else word == wanted
