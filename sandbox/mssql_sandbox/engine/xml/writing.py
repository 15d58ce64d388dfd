"""Trees to text, as the server writes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mssql_sandbox.engine.xml.tree import XML_SPACE, Attribute, Comment, Element, Instruction, Name, Node, Text

_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#x0D;"})
_VALUE = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#x0D;", "\n": "&#x0A;", "\t": "&#x09;"}
)


def escaped(text: str) -> str:
    """Text as content."""
    return text.translate(_TEXT)


def written(nodes: Iterable[Node]) -> str:
    """Nodes one after the other."""
    parts: list[str] = []
    for node in nodes:
        _write(node, parts, {})
    return "".join(parts)


def _write(node: Node, parts: list[str], scope: Mapping[str, str]) -> None:
    if isinstance(node, Element):
        _write_element(node, parts, scope)
    elif isinstance(node, Comment):
        parts.append(f"<!--{node.text}-->")
    elif isinstance(node, Instruction):
        parts.append(f"<?{node.target} {node.text}?>" if node.text else f"<?{node.target}?>")
    elif isinstance(node, Text):
        parts.append(escaped(node.text))
    elif isinstance(node, Attribute):
        parts.append(f'{node.name.written}="{node.text.translate(_VALUE)}"')
    else:
        for child in node.children_of():
            _write(child, parts, scope)


def _write_element(node: Element, parts: list[str], scope: Mapping[str, str]) -> None:
    """An element. Namespaces that it, or an attribute, needs and that are declared farther out are declared here."""
    here = {**scope, **node.spaces}
    missing: dict[str, str] = {}
    name = _bound(node.name, here, missing, default=True)
    attributes = [
        f' {_bound(each.name, here, missing, default=False)}="{each.text.translate(_VALUE)}"'
        for each in node.attributes
    ]
    declared = [_declaration(prefix, space) for prefix, space in (*missing.items(), *node.spaces.items())]
    parts.append(f"<{name}{''.join(declared)}{''.join(attributes)}")
    if not node.children:
        parts.append("/>")
        return
    parts.append(">")
    for child in node.children:
        _write(child, parts, here)
    parts.append(f"</{name}>")


def _declaration(prefix: str, space: str) -> str:
    value = space.translate(_VALUE)
    return f' xmlns:{prefix}="{value}"' if prefix else f' xmlns="{value}"'


def _bound(name: Name, here: dict[str, str], missing: dict[str, str], *, default: bool) -> str:
    """A name as written if `here` is in scope; a default namespace from farther out gets a prefix, p1 and so on."""
    if name.space == XML_SPACE:
        return f"xml:{name.local}"
    if not name.space:
        if default and here.get(""):
            missing[""] = here[""] = ""
        return name.local
    if here.get(name.prefix) == name.space and (name.prefix or default):
        return name.written
    known = next((prefix for prefix, space in here.items() if space == name.space and prefix), None)
    if known is not None:
        return f"{known}:{name.local}"
    prefix = name.prefix
    if not prefix or prefix in here:
        number = 1
        while f"p{number}" in here:
            number += 1
        prefix = f"p{number}"
    missing[prefix] = here[prefix] = name.space
    return f"{prefix}:{name.local}"
