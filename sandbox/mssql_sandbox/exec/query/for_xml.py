"""FOR XML PATH, RAW and AUTO."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.query.operators import Slice
from mssql_sandbox.exec.query.serial_parts import auto_levels, plain_text, same_parents
from mssql_sandbox.exec.scope import Field
from mssql_sandbox.tsql import ast

_XSI = ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
_TEXT = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#x0D;"}
_ATTRIBUTE = {**_TEXT, '"': "&quot;", "\n": "&#x0A;", "\t": "&#x09;"}
_NOT_IN_NAMES = re.compile(r"[^\w.\-]|^[^A-Za-z_]|_(?=x[0-9A-Fa-f]{4}_)")
_INSTRUCTION = re.compile(r"processing-instruction\((.+)\)")
_NODE_TESTS = frozenset({"text()", "node()", "*", "data()"})


@dataclass(slots=True)
class Element:
    """An element while it is put together: content is text that is XML already, or elements."""

    name: str
    attributes: list[str] = field(default_factory=list)
    content: list[Any] = field(default_factory=list)
    last_data: bool = False

    def render(self) -> str:
        """The element's text; without content it closes itself."""
        inside = "".join(part if isinstance(part, str) else part.render() for part in self.content)
        if not self.name:
            return inside
        attributes = "".join(self.attributes)
        return f"<{self.name}{attributes}>{inside}</{self.name}>" if inside else f"<{self.name}{attributes}/>"


@dataclass(frozen=True, slots=True)
class _Style:
    elements: bool
    nil: bool


def xml_text(fields: Sequence[Field], clause: ast.ForClause) -> Callable[[Slice], str | None]:
    """A writer of all rows as one text; None when there are no rows and no root."""
    options = dict(clause.options)
    nil = "ELEMENTS XSINIL" in options
    style = _Style(any(name.startswith("ELEMENTS") for name in options), nil)
    row = "row" if clause.element is None else clause.element
    root = options.get("ROOT")
    top = [f' xmlns{prefix and ":" + prefix}="{_escaped(uri, _ATTRIBUTE)}"' for prefix, uri in reversed(clause.spaces)]
    if nil:
        top.insert(0, _XSI)
    if clause.mode == "PATH":
        make = _path_maker(fields, row, style)
    elif clause.mode == "RAW":
        make = _raw_maker(fields, [(_encoded(row), list(range(len(fields))))], style)
    else:
        if any(not one.qualifier for one in fields):
            raise SqlError(
                6800, "FOR XML AUTO requires at least one table for generating XML tags. Use FOR XML RAW or add a "
                "FROM clause with a table name."
            )  # fmt: skip
        make = _raw_maker(fields, [(_encoded(name), places) for name, places in auto_levels(fields)], style)

    def write(rows: Slice) -> str | None:
        if not rows:
            return None if root is None else f"<{root}{''.join(top)}/>"
        made = make(rows)
        for element in made if root is None else ():
            element.attributes[:0] = top
        text = "".join(element.render() for element in made)
        return text if root is None else f"<{root}{''.join(top)}>{text}</{root}>"

    return write


def _escaped(text: str, table: dict[str, str] = _TEXT) -> str:
    return "".join(table.get(character, character) for character in text)


def _encoded(name: str) -> str:
    """A name with what XML names cannot hold as _xHHHH_."""
    return _NOT_IN_NAMES.sub(lambda found: f"_x{ord(found[0]):04X}_", name)


def _value(value: Any, one: Field) -> str:
    return str(value) if one.type.name == "xml" else _escaped(plain_text(value, one.type))


def _attribute(name: str, value: Any, one: Field) -> str:
    return f' {name}="{_escaped(plain_text(value, one.type), _ATTRIBUTE)}"'


# ---- RAW and AUTO -------------------------------------------------------------------------------------------


def _raw_maker(
    fields: Sequence[Field], levels: list[tuple[str, list[int]]], style: _Style
) -> Callable[[Slice], list[Element]]:
    for one in fields:
        if not one.name:
            raise SqlError(
                6809, "Unnamed tables cannot be used as XML identifiers as well as unnamed columns cannot be used for "
                "attribute names. Name unnamed columns/tables using AS in the SELECT statement."
            )  # fmt: skip
    return lambda rows: _level(rows, fields, levels, style)


def _level(rows: Slice, fields: Sequence[Field], levels: list[tuple[str, list[int]]], style: _Style) -> list[Element]:
    (name, places), *deeper = levels
    found = []
    alone = ((tuple(row[place] for place in places), [row]) for row in rows)
    for cells, group in same_parents(rows, places) if deeper else alone:
        element = Element(name)
        for value, place in zip(cells, places, strict=True):
            _add_column(element, value, fields[place], style)
        if deeper:
            element.content.extend(_level(group, fields, deeper, style))
        found.append(element)
    return found


def _add_column(element: Element, value: Any, one: Field, style: _Style) -> None:
    name = _encoded(one.name)
    if value is None:
        if style.nil:
            element.content.append(f'<{name} xsi:nil="true"/>')
    elif style.elements or one.type.name == "xml":
        element.content.append(Element(name, content=[_value(value, one)]))
    else:
        element.attributes.append(_attribute(name, value, one))


# ---- PATH ---------------------------------------------------------------------------------------------------


def _path_maker(fields: Sequence[Field], row_name: str, style: _Style) -> Callable[[Slice], list[Element]]:
    """Column names are paths: neighbours with a common beginning share its elements, `@a` is an attribute."""
    paths = [_path(one.name) for one in fields]
    if not row_name and any(not path and last.startswith("@") for path, last in paths):
        raise SqlError(
            6864, "Row tag omission (empty row tag name) cannot be used with attribute-centric FOR XML serialization."
        )

    def make(rows: Slice) -> list[Element]:
        found = []
        for row in rows:
            element = Element(row_name)
            for value, one, (path, last) in zip(row, fields, paths, strict=True):
                _put(element, path, last, value, one, style)
            found.append(element)
        return found

    return make


def _path(name: str) -> tuple[list[str], str]:
    *path, last = name.split("/")
    return path, last


def _put(element: Element, path: Sequence[str], last: str, value: Any, one: Field, style: _Style) -> None:
    if value is None and not (style.nil and last and last not in _NODE_TESTS and not last.startswith("@")):
        return
    for part in path:
        element = _opened(element, part)
    if value is None:
        element.content.append(f'<{last} xsi:nil="true"/>')
    elif last.startswith("@"):
        if element.content:
            raise SqlError(
                6852, f"Attribute-centric column '{one.name}' must not come after a non-attribute-centric sibling "
                "in XML hierarchy in FOR XML PATH."
            )  # fmt: skip
        element.attributes.append(_attribute(last[1:], value, one))
    elif last == "data()":
        element.content.append(f"{' ' if element.last_data else ''}{_value(value, one)}")
        element.last_data = True
    elif last in _NODE_TESTS or not last:
        element.content.append(_value(value, one))
    elif (instruction := _INSTRUCTION.fullmatch(last)) is not None:
        element.content.append(f"<?{instruction[1]} {plain_text(value, one.type)}?>")
    elif last == "comment()":
        element.content.append(f"<!--{plain_text(value, one.type)}-->")
    else:
        element.content.append(Element(last, content=[_value(value, one)]))


def _opened(parent: Element, name: str) -> Element:
    """The element of this name that was written last, or a new one."""
    if parent.content and isinstance(parent.content[-1], Element) and parent.content[-1].name == name:
        return parent.content[-1]
    made = Element(name)
    parent.content.append(made)
    return made
