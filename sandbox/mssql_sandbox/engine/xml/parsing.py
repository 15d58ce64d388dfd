"""Text to trees: documents and fragments, with the server's errors for text that is not well formed."""

from __future__ import annotations

import re
from functools import lru_cache
from xml.parsers import expat

from mssql_sandbox.engine.xml.tree import (
    Attribute,
    Comment,
    Document,
    Element,
    Instruction,
    Name,
    Parent,
    Text,
    Types,
)
from mssql_sandbox.errors import SqlError

_DECLARATION = re.compile(r"\s*<\?xml\s[^>]*\?>")
_TOP = "<_>"
_BLANK = re.compile(r"[ \t\r\n]*\Z")
_ERRORS = {
    expat.errors.codes[expat.errors.XML_ERROR_TAG_MISMATCH]: (9436, "end tag does not match start tag"),
    expat.errors.codes[expat.errors.XML_ERROR_DUPLICATE_ATTRIBUTE]: (9437, "duplicate attribute"),
    expat.errors.codes[expat.errors.XML_ERROR_NO_ELEMENTS]: (9400, "unexpected end of input"),
    expat.errors.codes[expat.errors.XML_ERROR_UNCLOSED_TOKEN]: (9400, "unexpected end of input"),
    expat.errors.codes[expat.errors.XML_ERROR_PARTIAL_CHAR]: (9400, "unexpected end of input"),
    expat.errors.codes[expat.errors.XML_ERROR_UNDEFINED_ENTITY]: (9448, "well formed check: undeclared entity"),
    expat.errors.codes[expat.errors.XML_ERROR_INVALID_TOKEN]: (9420, "illegal xml character"),
}
_OTHERWISE = (9422, "incorrect document syntax")


@lru_cache(maxsize=64)
def parsed(text: str, types: Types | None = None) -> Document:
    """The tree of a stored value, shared: its white space is content."""
    document = parse(text, keep_blanks=True)
    document.types = types
    return document


def parse(text: str, *, keep_blanks: bool = False) -> Document:
    """A new tree. Text of white space only is dropped unless kept, or under xml:space="preserve".

    Raises:
        SqlError: 9400 and others of their kind, with line and character.
    """
    declaration = _DECLARATION.match(text)
    body = text if declaration is None else text[declaration.end() :]
    if "<!DOCTYPE" in body:
        hint = "Use CONVERT with style option 2 to enable limited internal subset DTD support."
        raise SqlError(6359, f"Parsing XML with internal subset DTDs not allowed. {hint}")
    builder = _Builder(keep_blanks=keep_blanks)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.ordered_attributes = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.characters
    parser.CommentHandler = builder.comment
    parser.ProcessingInstructionHandler = builder.instruction
    builder.parser = parser
    try:
        parser.Parse(f"{_TOP}{body}</_>", True)
    except expat.ExpatError as failure:
        raise _fault(failure, body) from failure
    return builder.document


def _fault(failure: expat.ExpatError, body: str) -> SqlError:
    line, column = failure.lineno, failure.offset
    if line == 1:
        column -= len(_TOP)
    number, what = _ERRORS.get(failure.code, _OTHERWISE)
    last = body.split("\n")[min(line, body.count("\n") + 1) - 1]
    if number == 9436 and column >= len(last):  # our own end tag met an open element
        number, what = 9400, "unexpected end of input"
        column = len(last)
    return SqlError(number, f"XML parsing: line {line}, character {max(column, 0)}, {what}")


class _Builder:
    """Builds a tree from expat's events."""

    def __init__(self, *, keep_blanks: bool) -> None:
        self.document = Document()
        self.parser: expat.XMLParserType | None = None
        self._open: list[Parent] = []
        self._keep = [keep_blanks]
        self._text: list[str] = []

    def start(self, tag: str, attributes: list[str]) -> None:
        """A start tag."""
        if not self._open:
            self._open.append(self.document)
            return
        self._flush()
        element = Element(self._open[-1])
        pairs = list(zip(attributes[::2], attributes[1::2], strict=True))
        for name, value in pairs:
            if name == "xmlns" or name.startswith("xmlns:"):
                element.spaces[name[6:]] = value
        element.name = self._name(tag, element, default=True)
        for name, value in pairs:
            if name != "xmlns" and not name.startswith("xmlns:"):
                element.attributes.append(Attribute(element, self._name(name, element, default=False), value))
        space = dict(pairs).get("xml:space")
        self._keep.append(self._keep[-1] if space is None else space == "preserve")
        self._open[-1].children.append(element)
        self._open.append(element)

    def end(self, _tag: str) -> None:
        """An end tag."""
        self._flush()
        self._open.pop()
        self._keep.pop()

    def characters(self, text: str) -> None:
        """Text."""
        self._text.append(text)

    def comment(self, text: str) -> None:
        """A comment."""
        self._flush()
        self._open[-1].append(Comment(None, text))

    def instruction(self, target: str, text: str) -> None:
        """A processing instruction."""
        self._flush()
        self._open[-1].append(Instruction(None, text, target))

    def _flush(self) -> None:
        text = "".join(self._text)
        self._text.clear()
        if text and (self._keep[-1] or _BLANK.match(text) is None):
            self._open[-1].append(Text(None, text))

    def _name(self, written: str, element: Element, *, default: bool) -> Name:
        prefix, _, local = written.rpartition(":")
        space = element.space_of(prefix) if prefix or default else ""
        if space is None:
            assert self.parser is not None
            column = self.parser.CurrentColumnNumber - (len(_TOP) if self.parser.CurrentLineNumber == 1 else 0)
            raise SqlError(
                9459, f"XML parsing: line {self.parser.CurrentLineNumber}, character {column + len(written) + 1}, "
                "undeclared prefix"
            )  # fmt: skip
        return Name(space, local, prefix)
