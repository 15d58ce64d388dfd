"""What modify() does to a tree: insert, delete, replace value of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine.xml import syntax as x
from mssql_sandbox.engine.xml.atomics import atomized, shown
from mssql_sandbox.engine.xml.evaluation import Focus, SqlValues, contents, evaluate
from mssql_sandbox.engine.xml.functions import Items
from mssql_sandbox.engine.xml.tree import Attribute, Document, Element, Node, Parent, Text
from mssql_sandbox.errors import SqlError


def changed(document: Document, change: x.Expr, sql: SqlValues) -> None:
    """Apply a change to a tree that nobody else holds.

    Raises:
        SqlError: 2226 and 2337 for a target that may be several nodes, 2356 for one without a value of its own, 2207
            for content that is no node.
    """
    _CHANGES[type(change)](change, Focus(document, sql=sql))


def check(change: x.Expr, *, typed: bool) -> None:
    """What is known to be wrong before anything runs."""
    if isinstance(change, x.Insertion) and change.target.many and not typed:
        raise _fault(2226, f"The target of 'insert' must be a single node, found '{_shape(change.target)} *'")
    if isinstance(change, x.Replacement):
        if change.target.many and not typed:
            raise _fault(2337, f"The target of 'replace' must be at most one node, found '{_shape(change.target)} *'")
        if not typed and _shape(change.target).startswith("element"):
            raise _fault(2356, "The target of 'replace value of' must be a non-metadata attribute or an element with "
                         f"simple typed content, found '{_shape(change.target)} ?'")  # fmt: skip


def _fault(number: int, text: str) -> SqlError:
    return SqlError(number, f"XQuery [modify()]: {text}")


def _shape(target: x.Expr) -> str:
    """A target's static type, as errors show it."""
    while isinstance(target, x.Filtered):
        target = target.source
    if not isinstance(target, x.Step):
        return "item()"
    test = target.test
    if test.kind == "text":
        return "text"
    kind = "attribute" if target.axis == "attribute" else "element"
    of = "xdt:untypedAtomic" if kind == "attribute" else "xdt:untyped"
    return f"{kind}({test.local or '*'},{of})"


def _insert(change: x.Insertion, focus: Focus) -> None:
    target = next((node for node in evaluate(change.target, focus) if isinstance(node, Node)), None)
    content = evaluate(change.content, focus)
    if any(not isinstance(item, Node) for item in content):
        raise _fault(2207, 'Only non-document nodes can be inserted. Found "xs:string".')
    if target is None:
        return
    if change.place in ("first", "last"):
        if not isinstance(target, Parent):
            raise _fault(
                2209,
                f"The target of 'insert into' must be an element or document node, found '{_shape(change.target)} ?'",
            )
        _place(target, 0 if change.place == "first" else len(target.children), content)
    elif target.parent is not None:
        _place(target.parent, target.parent.children.index(target) + (change.place == "after"), content)


def _place(parent: Parent, place: int, content: Items) -> None:
    for node in contents(content):
        if isinstance(node, Attribute) and isinstance(parent, Element):
            if any(other.name == node.name for other in parent.attributes):
                raise SqlError(9437, f"XML parsing: duplicate attribute '{node.name.written}'")
            node.parent = parent
            parent.attributes.append(node)
            continue
        node.parent = parent
        parent.children.insert(place, node)
        place += 1
    _merge(parent)


def _merge(parent: Parent) -> None:
    """Texts that have come to stand side by side become one."""
    children, parent.children = parent.children, []
    for child in children:
        parent.append(child)


def _delete(change: x.Deletion, focus: Focus) -> None:
    for node in evaluate(change.target, focus):
        if not isinstance(node, Node) or isinstance(node, Document):
            raise _fault(2208, 'Only non-document nodes can be deleted. Found "item()".')
        if node.parent is None:
            continue
        if isinstance(node, Attribute):
            assert isinstance(node.parent, Element)
            node.parent.attributes.remove(node)
        else:
            node.parent.children.remove(node)
            _merge(node.parent)


def _replace(change: x.Replacement, focus: Focus) -> None:
    target = next(iter(evaluate(change.target, focus)), None)
    text = " ".join(shown(atomized(item)) for item in evaluate(change.value, focus))
    if isinstance(target, (Attribute, Text)):
        target.text = text
        if isinstance(target, Text) and not text and target.parent is not None:
            target.parent.children.remove(target)
    elif isinstance(target, Element):
        if any(isinstance(child, Element) for child in target.children):
            raise _fault(2356, "The target of 'replace value of' must be a non-metadata attribute or an element with "
                         f"simple typed content, found '{_shape(change.target)} ?'")  # fmt: skip
        target.children = []
        if text:
            target.append(Text(None, text))


_CHANGES: dict[type, Callable[[Any, Focus], None]] = {
    x.Insertion: _insert,
    x.Deletion: _delete,
    x.Replacement: _replace,
}
