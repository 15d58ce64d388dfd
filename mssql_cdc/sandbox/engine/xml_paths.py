"""Paths into XML values, as far as the methods value(), query(), exist() and nodes() are commonly used.

Known: steps over elements, attributes, text() and *, `//`, predicates by position and by equality, `(path)[n]`,
prefixes declared in a prolog, and string, data, count and local-name around a path. Everything else of XQuery is an
error that shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from xml.etree import ElementTree as ET

from mssql_cdc.sandbox.errors import SqlError

_PROLOG = re.compile(
    r"""\s*declare\s+(?:namespace\s+([\w.-]+)\s*=|default\s+element\s+namespace)\s*(?:"([^"]*)"|'([^']*)')\s*;""",
    re.IGNORECASE,
)
_STEP = re.compile(r"(@?(?:[\w.-]+:)?(?:[\w-][\w.-]*|\*)(?:\(\))?|\.\.?)")
_PREDICATE = re.compile(r"""\[\s*(?:(\d+)|(last\(\))|(\.|@?[\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|(-?[\d.]+)))\s*\]""")
_AROUND = re.compile(
    r"\s*(string|data|count|local-name|fn:string|fn:data|fn:count)\s*\((.*)\)\s*(?:\[1\])?\s*$", re.DOTALL
)
_GROUP = re.compile(r"\s*\((.*)\)\s*(?:\[\s*(\d+)\s*\])?\s*$", re.DOTALL)
_TEXT = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#x0D;"}


class XmlNode(str):
    """The text of one node that nodes() has found: paths into it begin at the node, not above it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute as a result."""

    name: str
    value: str


Node = ET.Element | Attribute | str


def _unknown(method: str, query: str) -> SqlError:
    return SqlError(
        9335, f"XQuery [{method}()]: The XQuery syntax '{query.strip()[:80]}' is not known to this server: it knows "
              "paths "
        "with predicates by position and by equality."
    )  # fmt: skip


def _document(text: str) -> ET.Element:
    """The value's top-level nodes under one element without a name; 9400 for what is no XML."""
    bare = re.sub(r"^\s*<\?xml[^>]*\?>", "", text)
    try:
        return ET.fromstring(f"<_>{bare}</_>")  # noqa: S314 - a value of this very server
    except ET.ParseError as failure:
        line, column = failure.position
        raise SqlError(9400, f"XML parsing: line {line}, character {column}, not well formed.") from None


def select(value: str, query: str, method: str) -> list[Node]:
    """The nodes that a path finds in a value."""
    prefixes, path = _prefixes(query)
    document = _document(value)
    context: ET.Element = document
    if isinstance(value, XmlNode) and len(document) == 1:
        context = document[0]
    return _evaluate(path, context, document, prefixes, method)


@lru_cache(maxsize=256)
def _prefixes(query: str) -> tuple[Mapping[str, str], str]:
    found: dict[str, str] = {}
    place = 0
    while (match := _PROLOG.match(query, place)) is not None:
        found[match[1] or ""] = match[2] if match[2] is not None else match[3]
        place = match.end()
    return found, query[place:]


def _evaluate(
    path: str, context: ET.Element, document: ET.Element, prefixes: Mapping[str, str], method: str
) -> list[Node]:
    around = _AROUND.match(path)
    if around is not None:
        inner = _evaluate(around[2] or ".", context, document, prefixes, method)
        kind = around[1].removeprefix("fn:")
        if kind == "count":
            return [str(len(inner))]
        if kind == "local-name":
            return [_local(node) for node in inner[:1]]
        return [string_value(node) for node in inner]
    group = _GROUP.match(path)
    if group is not None and _balanced(group[1]):
        inner = _evaluate(group[1], context, document, prefixes, method)
        return inner if group[2] is None else inner[int(group[2]) - 1 : int(group[2])]
    return _steps(path.strip(), context, document, prefixes, method)


def _balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            return False
    return depth == 0


def _local(node: Node) -> str:
    name = node.tag if isinstance(node, ET.Element) else node.name if isinstance(node, Attribute) else ""
    return name.rpartition("}")[2]


def _steps(
    path: str, context: ET.Element, document: ET.Element, prefixes: Mapping[str, str], method: str
) -> list[Node]:
    nodes: list[Node] = [document if path.startswith("/") else context]
    place = 0
    while place < len(path):
        deep = path.startswith("//", place)
        place += 2 if deep else path.startswith("/", place)
        match = _STEP.match(path, place)
        if match is None:
            if place == len(path) and not deep:
                break
            raise _unknown(method, path)
        place = match.end()
        found = [list(_step(node, match[1], prefixes, deep=deep)) for node in nodes]
        while (predicate := _PREDICATE.match(path, place)) is not None:
            found = [_filtered(group, predicate, prefixes) for group in found]
            place = predicate.end()
        if place < len(path) and path[place] != "/":
            raise _unknown(method, path)
        nodes = [node for group in found for node in group]
    return nodes


def _step(node: Node, test: str, prefixes: Mapping[str, str], *, deep: bool) -> Iterator[Node]:
    if test == ".":
        yield node
        return
    if not isinstance(node, ET.Element):
        return
    for parent in node.iter() if deep else (node,):
        if test.startswith("@"):
            wanted = test[1:]
            yield from (
                Attribute(key, text) for key, text in parent.attrib.items() if wanted in ("*", _named(key, wanted))
            )
        elif test == "text()":
            yield from (text for text in (parent.text, *(child.tail for child in parent)) if text)
        elif test == "node()":
            yield from _children(parent)
        else:
            yield from (child for child in parent if _matches(child.tag, test, prefixes))


def _named(key: str, wanted: str) -> str:
    return wanted if key.rpartition("}")[2] == wanted.rpartition(":")[2] else ""


def _children(parent: ET.Element) -> Iterator[Node]:
    if parent.text:
        yield parent.text
    for child in parent:
        yield child
        if child.tail:
            yield child.tail


def _matches(tag: str, test: str, prefixes: Mapping[str, str]) -> bool:
    space, _, local = tag.rpartition("}")
    prefix, _, wanted = test.rpartition(":")
    if wanted not in ("*", local):
        return False
    return prefix == "*" or prefixes.get(prefix, "") == space.removeprefix("{") or (wanted == "*" and not prefix)


def _filtered(nodes: list[Node], predicate: re.Match[str], prefixes: Mapping[str, str]) -> list[Node]:
    number, last, name, double, single, plain = predicate.groups()
    if number is not None:
        return nodes[int(number) - 1 : int(number)]
    if last is not None:
        return nodes[-1:]
    text = next(one for one in (double, single, plain) if one is not None)
    return [node for node in nodes if any(string_value(one) == text for one in _step(node, name, prefixes, deep=False))]


def string_value(node: Node) -> str:
    """The text of a node."""
    if isinstance(node, Attribute):
        return node.value
    return node if isinstance(node, str) else "".join(node.itertext())


def serialised(node: Node) -> str:
    """A node as XML, without what follows it; an attribute as its value."""
    if isinstance(node, Attribute):
        return _escaped(node.value)
    if isinstance(node, str):
        return _escaped(node)
    inside = _escaped(node.text or "") + "".join(serialised(child) + _escaped(child.tail or "") for child in node)
    if node.tag == "_":
        return inside
    space, _, name = node.tag.rpartition("}")
    spaces = f' xmlns="{space[1:]}"' if space else ""
    attributes = "".join(
        f' {key.rpartition("}")[2]}="{_escaped(value).replace(chr(34), "&quot;")}"'
        for key, value in node.attrib.items()
    )
    head = f"{name}{spaces}{attributes}"
    return f"<{head}>{inside}</{name}>" if inside else f"<{head}/>"


def _escaped(text: str) -> str:
    return "".join(_TEXT.get(character, character) for character in text)
