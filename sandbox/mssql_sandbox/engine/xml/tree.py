"""Nodes of XML values. A shared tree is never changed: changes are made in a tree parsed for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

XML_SPACE = "http://www.w3.org/XML/1998/namespace"
XS = "http://www.w3.org/2001/XMLSchema"
XSI = "http://www.w3.org/2001/XMLSchema-instance"


@dataclass(frozen=True, slots=True)
class Name:
    """An expanded name; the prefix is as written and is ignored in comparisons."""

    space: str
    local: str
    prefix: str = field(default="", compare=False)

    @property
    def written(self) -> str:
        """`prefix:local`."""
        return f"{self.prefix}:{self.local}" if self.prefix else self.local


@dataclass(slots=True, eq=False)
class Node:
    """Any node: its parent, None at the top."""

    parent: Parent | None = None

    def children_of(self) -> list[Node]:
        """The children of the node; most kinds have none."""
        return []

    def string_value(self) -> str:
        """The text of the node."""
        raise NotImplementedError

    def top(self) -> Node:
        """The outermost ancestor."""
        node: Node = self
        while node.parent is not None:
            node = node.parent
        return node


@dataclass(slots=True, eq=False)
class Text(Node):
    """Text."""

    text: str = ""

    def string_value(self) -> str:
        """The text."""
        return self.text


@dataclass(slots=True, eq=False)
class Comment(Text):
    """A comment."""


@dataclass(slots=True, eq=False)
class Instruction(Text):
    """A processing instruction."""

    target: str = ""


@dataclass(slots=True, eq=False)
class Attribute(Node):
    """An attribute; its parent is its element."""

    name: Name = field(default_factory=lambda: Name("", ""))
    text: str = ""

    def string_value(self) -> str:
        """The value."""
        return self.text


@dataclass(slots=True, eq=False)
class Parent(Node):
    """A node with children."""

    children: list[Node] = field(default_factory=list)

    def children_of(self) -> list[Node]:
        """The children."""
        return self.children

    def string_value(self) -> str:
        """All text inside, without comments and instructions."""
        return "".join(child.string_value() for child in self.children if not isinstance(child, (Comment, Instruction)))

    def append(self, child: Node) -> None:
        """Append a child; adjacent texts are merged."""
        last = self.children[-1] if self.children else None
        if type(child) is Text and type(last) is Text:
            last.text += child.text
            return
        child.parent = self
        self.children.append(child)


@dataclass(slots=True, eq=False)
class Document(Parent):
    """The root of a value: it may have any number of elements and texts; `types` are those of a schema."""

    types: Types | None = None


@dataclass(slots=True, eq=False)
class Element(Parent):
    """An element; `spaces` are the namespaces declared on it, by prefix."""

    name: Name = field(default_factory=lambda: Name("", ""))
    attributes: list[Attribute] = field(default_factory=list)
    spaces: dict[str, str] = field(default_factory=dict)

    def space_of(self, prefix: str) -> str | None:
        """The namespace of a prefix here; None if it is not declared."""
        node: Node | None = self
        while isinstance(node, Element):
            if prefix in node.spaces:
                return node.spaces[prefix]
            node = node.parent
        return {"xml": XML_SPACE, "": ""}.get(prefix)


Types = Callable[[Node], str | None]
"""The type that a schema gives to a node: the local name of its simple type, None if it has none."""


def descendants(node: Node) -> Iterator[Node]:
    """A node's descendants in document order."""
    for child in node.children_of():
        yield child
        yield from descendants(child)


def copied(node: Node) -> Node:
    """A node and what is inside it, without a parent."""
    if isinstance(node, Element):
        twin = Element(None, [], node.name, [], dict(node.spaces))
        twin.attributes = [Attribute(twin, each.name, each.text) for each in node.attributes]
    elif isinstance(node, Document):
        twin = Document()
    elif isinstance(node, Attribute):
        return Attribute(None, node.name, node.text)
    elif isinstance(node, Instruction):
        return Instruction(None, node.text, node.target)
    else:
        assert isinstance(node, Text)
        return type(node)(None, node.text)
    for child in node.children:
        twin.append(copied(child))
    return twin
