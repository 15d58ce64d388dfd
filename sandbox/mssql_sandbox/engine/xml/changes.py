"""Changes of a tree by modify(): insert, delete, replace value of."""

from __future__ import annotations

from mssql_sandbox.engine.xml import syntax as x
from mssql_sandbox.engine.xml.atomics import atomized, shown
from mssql_sandbox.engine.xml.evaluation import Focus, SqlValues, evaluate
from mssql_sandbox.engine.xml.tree import Attribute, Document, Element, Node, Parent, Text, copied
from mssql_sandbox.errors import SqlError


def changed(document: Document, change: x.Expr, sql: SqlValues) -> None:
    """Apply a change to a tree that is not shared.

    Raises:
        SqlError: 2356 for a target without a value of its own, 2207 for content that is no node, 2208 for a target that
            is no node.
    """
    focus = Focus(document, sql)
    if isinstance(change, x.Insertion):
        _insert(change, focus)
    elif isinstance(change, x.Deletion):
        _delete(change, focus)
    elif isinstance(change, x.Replacement):
        _replace(change, focus)


def check(change: x.Expr, *, typed: bool) -> None:
    """Errors known before evaluation: 2226 and 2337 for several targets, 2356."""
    if isinstance(change, x.Insertion) and change.target.many and not typed:
        raise _fault(2226, f"The target of 'insert' must be a single node, found '{_shape(change.target)} *'")
    if isinstance(change, x.Replacement) and not typed:
        if change.target.many:
            raise _fault(2337, f"The target of 'replace' must be at most one node, found '{_shape(change.target)} *'")
        if _shape(change.target).startswith("element"):
            raise _no_value(change)


def _fault(number: int, text: str) -> SqlError:
    return SqlError(number, f"XQuery [modify()]: {text}")


def _no_value(change: x.Replacement) -> SqlError:
    return _fault(
        2356, "The target of 'replace value of' must be a non-metadata attribute or an element with simple typed "
        f"content, found '{_shape(change.target)} ?'"
    )  # fmt: skip


def _shape(target: x.Expr) -> str:
    """A target's static type, as errors show it."""
    while isinstance(target, x.Filtered):
        target = target.source
    if not isinstance(target, x.Step):
        return "item()"
    if target.kind == "text":
        return "text"
    of = "xdt:untypedAtomic" if target.kind == "attribute" else "xdt:untyped"
    return f"{target.kind}({target.local},{of})"


def _insert(change: x.Insertion, focus: Focus) -> None:
    target = next((node for node in evaluate(change.target, focus) if isinstance(node, Node)), None)
    content = [change.content] if isinstance(change.content, Element) else evaluate(change.content, focus)
    if any(not isinstance(item, Node) for item in content):
        raise _fault(2207, 'Only non-document nodes can be inserted. Found "xs:string".')
    if not isinstance(target, Parent):
        return
    new = [copied(child) for item in content for child in _outside_documents(item)]  # type: ignore[arg-type]
    children = [*new, *target.children] if change.first else [*target.children, *new]
    _become(target, children)


def _outside_documents(node: Node) -> list[Node]:
    return node.children if isinstance(node, Document) else [node]


def _become(parent: Parent, children: list[Node]) -> None:
    """Set a node's children; adjacent texts are merged."""
    parent.children = []
    for child in children:
        parent.append(child)


def _delete(change: x.Deletion, focus: Focus) -> None:
    for node in evaluate(change.target, focus):
        if not isinstance(node, Node) or isinstance(node, Document):
            raise _fault(2208, 'Only non-document nodes can be deleted. Found "item()".')
        if isinstance(node, Attribute) and isinstance(node.parent, Element):
            node.parent.attributes.remove(node)
        elif node.parent is not None:
            _become(node.parent, [child for child in node.parent.children if child is not node])


def _replace(change: x.Replacement, focus: Focus) -> None:
    target = next(iter(evaluate(change.target, focus)), None)
    text = " ".join(shown(atomized(item)) for item in evaluate(change.value, focus))
    if isinstance(target, (Attribute, Text)):
        target.text = text
        if isinstance(target, Text) and not text and target.parent is not None:
            target.parent.children.remove(target)
    elif isinstance(target, Element):
        if any(isinstance(child, Element) for child in target.children):
            raise _no_value(change)
        _become(target, [Text(None, text)] if text else [])
