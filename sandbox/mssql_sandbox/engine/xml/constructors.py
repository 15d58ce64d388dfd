"""Parsing of direct constructors: <a x="{…}">text {…} <b/></a>."""

from __future__ import annotations

import re

from mssql_sandbox.engine.xml.scanner import Scanner, resolved
from mssql_sandbox.engine.xml.syntax import Constant, Constructor, Expr

_OPEN = re.compile(r"<([A-Za-z_][\w.\-]*(?::[A-Za-z_][\w.\-]*)?)")
_ATTRIBUTE = re.compile(r"\s+([A-Za-z_][\w.\-]*(?::[A-Za-z_][\w.\-]*)?)\s*=\s*([\"'])")
_PLAIN = re.compile(r"(?:[^<{}&]|\{\{|\}\}|&[^;]*;)+")


class ConstructorParser(Scanner):
    """Adds `constructor`."""

    def expression(self) -> Expr:
        """An expression (given by `QueryParser`)."""
        raise NotImplementedError

    def constructor(self) -> Expr:
        """What begins with `<`: an element, a comment or an instruction."""
        for opening, closing, kind in (("<!--", "-->", "comment"), ("<?", "?>", "processing-instruction")):
            if self.text.startswith(opening, self.place):
                stop = self.text.find(closing, self.place)
                if stop < 0:
                    self.fail()
                inside = self.text[self.place + len(opening) : stop]
                self.place = stop + len(closing)
                target, _, rest = inside.partition(" ") if kind != "comment" else ("", "", inside)
                return Constructor(kind, ("", target, ""), (Constant(rest),))  # type: ignore[arg-type]
        return self._element()

    def _element(self) -> Constructor:
        match = _OPEN.match(self.text, self.place)
        if match is None:
            self.fail()
        self.place = match.end()
        outside = self.spaces
        self.spaces = dict(outside)
        found: list[tuple[str, tuple[Expr, ...]]] = []
        declared: list[tuple[str, str]] = []
        while (attribute := _ATTRIBUTE.match(self.text, self.place)) is not None:
            self.place = attribute.end()
            value = self._attribute_value(attribute[2])
            prefix, _, local = attribute[1].rpartition(":")
            if attribute[1] == "xmlns" or prefix == "xmlns":
                uri = "".join(str(part.value) for part in value if isinstance(part, Constant))
                declared.append((local if prefix else "", uri))
                self.spaces[declared[-1][0]] = uri
            else:
                found.append((attribute[1], value))
        attributes = tuple(
            Constructor("attribute", self.qualified(name, default=False), value) for name, value in found
        )
        name = self.qualified(match[1], default=True)
        content: tuple[Expr, ...] = ()
        if not self.accept("/>"):
            self.expect(">")
            content = self._content(match[1])
        self.spaces = outside
        return Constructor("element", name, content, attributes, tuple(declared))

    def qualified(self, written: str, *, default: bool) -> tuple[str, str, str]:
        """(namespace, local name, prefix) of a name as written."""
        prefix, _, local = written.rpartition(":")
        return (self.space(prefix) if prefix or default else "", local, prefix)

    def _attribute_value(self, quote: str) -> tuple[Expr, ...]:
        parts: list[Expr] = []
        plain = re.compile(rf"(?:[^{quote}{{}}&<]|{quote}{quote}|\{{\{{|\}}\}}|&[^;]*;)+")
        while not self.text.startswith(quote, self.place):
            parts.append(self._part(plain, quote))
        self.place += 1
        return tuple(parts)

    def _part(self, plain: re.Pattern[str], quote: str = "") -> Expr:
        """Plain text, or an expression between braces."""
        if self.text.startswith("{", self.place) and not self.text.startswith("{{", self.place):
            self.place += 1
            inner = self.expression()
            self.expect("}")
            return inner
        match = plain.match(self.text, self.place)
        if match is None:
            self.fail()
        self.place = match.end()
        text = match[0].replace("{{", "{").replace("}}", "}")
        return Constant(resolved(text.replace(quote * 2, quote) if quote else text))

    def _content(self, name: str) -> tuple[Expr, ...]:
        parts: list[Expr] = []
        while not self.text.startswith("</", self.place):
            if self.place >= len(self.text):
                self.fail()
            if self.text.startswith("<![CDATA[", self.place):
                stop = self.text.find("]]>", self.place)
                parts.append(Constant(self.text[self.place + 9 : stop]))
                self.place = stop + 3
            elif self.text.startswith("<", self.place):
                parts.append(self.constructor())
            else:
                part = self._part(_PLAIN)
                if not (isinstance(part, Constant) and not str(part.value).strip()):
                    parts.append(part)
        self.place += 2
        if not self.text.startswith(name, self.place):
            self.fail()
        self.place += len(name)
        self.expect(">")
        return tuple(parts)
