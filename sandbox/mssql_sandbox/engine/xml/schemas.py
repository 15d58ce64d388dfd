"""XML schema collections: their declarations, the simple types of elements and attributes, and validation.

Schemas are read for names and simple types. A value is checked for undeclared elements (6913) and for simple values of
the wrong type (6926); the order and number of elements is not checked.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mssql_sandbox.engine.xml.atomics import converted
from mssql_sandbox.engine.xml.parsing import parse
from mssql_sandbox.engine.xml.tree import XS, XSI, Attribute, Document, Element, Node, descendants
from mssql_sandbox.errors import SqlError

Key = tuple[str, str]
_CHECKED = frozenset({
    "decimal", "integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "unsignedInt",
    "double", "float", "boolean",
})  # fmt: skip


@dataclass(slots=True, eq=False)
class SchemaCollection:
    """The schemas of a collection: their texts, the elements allowed at the top, and simple types by name.

    `elements` and `attributes` give the local name of an xs: type, "" where the content is complex, or where schemas of
    one namespace give a name several types.
    """

    texts: list[str] = field(default_factory=list)
    spaces: list[str] = field(default_factory=list)
    roots: set[Key] = field(default_factory=set)
    elements: dict[Key, str] = field(default_factory=dict)
    attributes: dict[Key, str] = field(default_factory=dict)
    types: dict[Key, str] = field(default_factory=dict)

    def add(self, text: str) -> None:
        """Add the schemas of a text.

        Raises:
            SqlError: 2306 for what holds no schema; what is not well formed.
        """
        found = [child for child in parse(text).children if isinstance(child, Element)]
        if not found or any(child.name.space != XS or child.name.local != "schema" for child in found):
            raise SqlError(
                2306, "The XML schema collection is not valid: the text holds something else than XSD schemas."
            )
        for schema in found:
            self._read(schema)
        self.texts.append(text)

    def copy(self) -> SchemaCollection:
        """A copy."""
        made = SchemaCollection()
        made.become(self)
        return made

    def become(self, other: SchemaCollection) -> None:
        """Take over the content of another collection, to undo a change: columns refer to the collection itself."""
        self.texts, self.spaces, self.roots = list(other.texts), list(other.spaces), set(other.roots)
        self.elements, self.attributes, self.types = dict(other.elements), dict(other.attributes), dict(other.types)

    def type_of(self, node: Node) -> str | None:
        """The simple type of a node; None if there is none."""
        if isinstance(node, Attribute):
            parent = node.parent
            space = parent.name.space if isinstance(parent, Element) else ""
            return self.attributes.get((node.name.space or space, node.name.local)) or None
        if isinstance(node, Element):
            return self.elements.get((node.name.space, node.name.local)) or None
        return None

    def check(self, document: Document) -> None:
        """Refuse a value with undeclared elements, or with invalid simple values.

        Raises:
            SqlError: 6913, 6926.
        """
        for node in document.children:
            if isinstance(node, Element) and (node.name.space, node.name.local) not in self.roots:
                raise SqlError(
                    6913,
                    f"XML Validation: Declaration not found for element '{_shown(node)}'. Location: {_place(node)}",
                )
        for node in descendants(document):
            if isinstance(node, Element):
                for each in (node, *node.attributes):
                    self._check_value(each)

    def _check_value(self, node: Element | Attribute) -> None:
        kind = self.type_of(node)
        nil = isinstance(node, Element) and any(each.name.space == XSI for each in node.attributes)
        if kind in _CHECKED and not nil and converted(node.string_value(), kind) is None:
            raise SqlError(
                6926, f"XML Validation: Invalid simple type value: '{node.string_value()}'. Location: {_place(node)}"
            )

    def _read(self, schema: Element) -> None:
        space = _attribute(schema, "targetNamespace")
        self.spaces.append(space)
        for node in descendants(schema):
            if isinstance(node, Element) and node.name.space == XS and node.name.local == "simpleType":
                name = _attribute(node, "name")
                if name:
                    self.types[space, name] = self._base(node)
        for node in descendants(schema):
            if not isinstance(node, Element) or node.name.space != XS:
                continue
            name = _attribute(node, "name")
            if node.name.local == "element" and name:
                top = node.parent is schema
                if top:
                    self.roots.add((space, name))
                _enter(self.elements, (space, name), self._type(node))
            elif node.name.local == "attribute" and name:
                _enter(self.attributes, (space, name), self._type(node))

    def _type(self, node: Element) -> str:
        """The xs: type of a declaration: by name, or of the simple type inside it."""
        written = _attribute(node, "type")
        if written:
            return self._named(node, written)
        inner = next(
            (each for each in node.children if isinstance(each, Element) and each.name.local == "simpleType"), None
        )
        return "" if inner is None else self._base(inner)

    def _named(self, node: Element, written: str) -> str:
        prefix, _, local = written.rpartition(":")
        space = node.space_of(prefix) or ""
        if space == XS:
            return local if local != "anyType" else ""
        return self.types.get((space, local), "")

    def _base(self, simple: Element) -> str:
        for node in descendants(simple):
            if isinstance(node, Element) and node.name.local == "restriction":
                written = _attribute(node, "base")
                return self._named(node, written) if written else ""
        return "string"


def _enter(table: dict[Key, str], key: Key, kind: str) -> None:
    table[key] = kind if table.get(key, kind) == kind else ""


def _attribute(node: Element, name: str) -> str:
    return next((each.text for each in node.attributes if each.name.local == name and not each.name.space), "")


def _shown(node: Element | Attribute) -> str:
    return f"{node.name.space}:{node.name.local}" if node.name.space else node.name.local


def _place(node: Element | Attribute) -> str:
    """The path of a node, as the server writes it: /*:a[1]/*:b[2]."""
    steps = []
    each: Node | None = node
    while isinstance(each, (Element, Attribute)):
        if isinstance(each, Attribute):
            steps.append(f"@*:{each.name.local}")
        else:
            same = [
                other for other in (each.parent.children if each.parent is not None else [each])
                if isinstance(other, Element) and other.name == each.name
            ]  # fmt: skip
            steps.append(f"*:{each.name.local}[{same.index(each) + 1}]")
        each = each.parent
    return "/" + "/".join(reversed(steps))
