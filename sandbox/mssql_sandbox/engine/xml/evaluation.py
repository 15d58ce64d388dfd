"""What an expression gives for an item: a list of nodes and atomic values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

from mssql_sandbox.engine.xml import syntax as x
from mssql_sandbox.engine.xml.atomics import Item, Untyped, atomized, calculate, compare, converted, shown
from mssql_sandbox.engine.xml.functions import FUNCTIONS, Items, truth
from mssql_sandbox.engine.xml.tree import (
    Attribute,
    Comment,
    Document,
    Element,
    Instruction,
    Name,
    Node,
    Text,
    copied,
    descendants,
    in_order,
)

SqlValues = Mapping[tuple[str, str], Items]
_ARITHMETIC = frozenset({"+", "-", "*", "div", "idiv", "mod"})
_NODE_SIGNS = frozenset({"is", "<<", ">>"})


@dataclass(frozen=True, slots=True)
class Focus:
    """The item looked at, its place among how many, variables, and the values that SQL gives."""

    item: Item
    position: int = 1
    size: int = 1
    variables: Mapping[str, Items] = field(default_factory=dict)
    sql: SqlValues = field(default_factory=dict)


def evaluate(expr: x.Expr, focus: Focus) -> Items:
    """The sequence that an expression stands for."""
    return _TABLE[type(expr)](expr, focus)


def _step(expr: x.Step, focus: Focus) -> Items:
    found: list[Node] = []
    for item in evaluate(expr.source, focus):
        if isinstance(item, Node):
            nodes: Items = [node for node in _along(expr.axis, item) if _passes(expr.test, node, expr.axis)]
            found += _filtered(nodes, expr.predicates, focus)  # type: ignore[arg-type]
    narrow = expr.axis in ("child", "attribute", "self") and not _nested(expr.source)
    return list(found) if narrow else list(in_order(found))


def _nested(source: x.Expr) -> bool:
    """Whether a source may give a node and its own descendant, so that steps from it need sorting."""
    if isinstance(source, x.Step):
        return source.axis not in ("child", "attribute", "self") or _nested(source.source)
    return isinstance(source, (x.Sequence, x.Union, x.Mapped, x.VariableReference))


def _along(axis: str, node: Node) -> Iterator[Node]:
    if axis == "child":
        yield from node.children_of()
    elif axis == "attribute":
        yield from node.attributes if isinstance(node, Element) else ()
    elif axis == "self":
        yield node
    elif axis == "parent":
        if node.parent is not None:
            yield node.parent
    else:
        if axis == "descendant-or-self":
            yield node
        yield from descendants(node)


def _passes(test: x.NodeTest, node: Node, axis: str) -> bool:
    if test.kind == "node":
        return True
    if test.kind == "text":
        return type(node) is Text
    if test.kind == "comment":
        return isinstance(node, Comment)
    if test.kind == "processing-instruction":
        return isinstance(node, Instruction)
    wanted = Attribute if axis == "attribute" else Element
    if not isinstance(node, wanted):
        return False
    name = node.name
    return (test.local is None or test.local == name.local) and (test.space is None or test.space == name.space)


def _filtered(items: Items, predicates: tuple[x.Expr, ...], focus: Focus) -> Items:
    for predicate in predicates:
        if isinstance(predicate, x.Constant) and isinstance(predicate.value, Decimal):
            place = int(predicate.value)
            items = items[place - 1 : place] if place > 0 else []
            continue
        size = len(items)
        items = [
            item for place, item in enumerate(items, 1)
            if _holds(predicate, replace(focus, item=item, position=place, size=size))
        ]  # fmt: skip
    return items


def _holds(predicate: x.Expr, focus: Focus) -> bool:
    found = evaluate(predicate, focus)
    if len(found) == 1 and isinstance(found[0], (Decimal, float)) and not isinstance(found[0], bool):
        return found[0] == focus.position
    return truth(found)


def _root(_expr: x.Root, focus: Focus) -> Items:
    return [focus.item.top()] if isinstance(focus.item, Node) else []


def _mapped(expr: x.Mapped, focus: Focus) -> Items:
    items = evaluate(expr.source, focus)
    found: Items = []
    for place, item in enumerate(items, 1):
        found += evaluate(expr.result, replace(focus, item=item, position=place, size=len(items)))
    return list(in_order(found)) if all(isinstance(item, Node) for item in found) else found  # type: ignore[arg-type]


def _union(expr: x.Union, focus: Focus) -> Items:
    return list(in_order([item for part in expr.parts for item in evaluate(part, focus) if isinstance(item, Node)]))


def _call(expr: x.Call, focus: Focus) -> Items:
    if expr.name == "position":
        return [Decimal(focus.position)]
    if expr.name == "last":
        return [Decimal(focus.size)]
    function = FUNCTIONS[expr.name]
    assert function.call is not None
    if not expr.arguments and function.arity == (0, 1):
        return function.call([focus.item])
    return function.call(*(evaluate(argument, focus) for argument in expr.arguments))


def _cast(expr: x.Cast, focus: Focus) -> Items:
    items = [atomized(item) for item in evaluate(expr.operand, focus)]
    values = [converted(item, expr.type) for item in items[:1]]
    if expr.test:
        return [bool(items) and values[0] is not None and type(values[0]) is type(items[0])]
    return [value for value in values if value is not None]


def _operation(expr: x.Operation, focus: Focus) -> Items:
    sign = expr.operator
    left = evaluate(expr.left, focus)
    if sign in ("and", "or"):
        first = truth(left)
        if first is (sign == "or"):
            return [first]
        return [truth(evaluate(expr.right, focus))]
    right = evaluate(expr.right, focus)
    if sign in _NODE_SIGNS:
        return _node_comparison(sign, left, right)
    if sign in _ARITHMETIC:
        if not left or not right:
            return []
        value = calculate(sign, atomized(left[0]), atomized(right[0]))
        return [] if value is None else [value]
    values = [atomized(item) for item in right]
    if sign.isalpha():
        return [compare(sign, atomized(left[0]), values[0])] if left and values else []
    return [any(compare(sign, atomized(one), other) for one in left for other in values)]


def _node_comparison(sign: str, left: Items, right: Items) -> Items:
    if not left or not right:
        return []
    one, other = left[0], right[0]
    if sign == "is":
        return [one is other]
    first = in_order([one, other])[0]  # type: ignore[list-item]
    return [one is not other and first is (one if sign == "<<" else other)]


def _bound(clauses: tuple[x.Clause, ...], focus: Focus) -> Iterator[Focus]:
    """The foci of all combinations of what the clauses bind."""
    if not clauses:
        yield focus
        return
    clause, rest = clauses[0], clauses[1:]
    items = evaluate(clause.source, focus)
    for value in [items] if clause.kind == "let" else [[item] for item in items]:
        yield from _bound(rest, replace(focus, variables={**focus.variables, clause.name: value}))


def _flwor(expr: x.Flwor, focus: Focus) -> Items:
    rounds = [each for each in _bound(expr.clauses, focus) if expr.where is None or truth(evaluate(expr.where, each))]
    for key, descending in reversed(expr.order):
        keyed = [(([atomized(item) for item in evaluate(key, each)] or [None])[0], each) for each in rounds]
        keyed.sort(key=cmp_to_key(lambda a, b: _order(a[0], b[0])), reverse=descending)
        rounds = [each for _, each in keyed]
    return [item for each in rounds for item in evaluate(expr.result, each)]


def _order(a: Any, b: Any) -> int:
    """-1, 0, 1; what is missing comes first."""
    if a is None or b is None:
        return (a is not None) - (b is not None)
    return -1 if compare("<", a, b) else int(compare(">", a, b))


def _quantified(expr: x.Quantified, focus: Focus) -> Items:
    rounds = (truth(evaluate(expr.test, each)) for each in _bound(expr.clauses, focus))
    return [all(rounds) if expr.every else any(rounds)]


def _constructed(expr: x.Constructor, focus: Focus) -> Items:
    name = Name(*expr.name)
    if expr.kind != "element":
        text = "".join(
            str(part.value) if isinstance(part, x.Constant) else _joined(evaluate(part, focus)) for part in expr.content
        )
        if expr.kind == "attribute":
            return [Attribute(None, name, text)]
        if expr.kind == "processing-instruction":
            return [Instruction(None, text, name.local)]
        return [Comment(None, text) if expr.kind == "comment" else Text(None, text)]
    element = Element(None, [], name, [], dict(expr.spaces))
    for attribute in expr.attributes:
        (made,) = _constructed(attribute, focus)
        _take(element, made)
    for part in expr.content:
        if isinstance(part, x.Constant) and isinstance(part.value, str):
            element.append(Text(None, part.value))
        else:
            for item in contents(evaluate(part, focus)):
                _take(element, item)
    return [element]


def _joined(items: Items) -> str:
    return " ".join(shown(atomized(item)) for item in items)


def contents(items: Items) -> Iterator[Node]:
    """Items as nodes of their own: copies, and texts for runs of atomic values, with spaces between."""
    run: list[str] = []
    for item in items:
        if not isinstance(item, Node):
            run.append(shown(item))
            continue
        if run:
            yield Text(None, " ".join(run))
            run = []
        if isinstance(item, Document):
            yield from (copied(child) for child in item.children)
        else:
            yield copied(item)
    if run:
        yield Text(None, " ".join(run))


def _take(element: Element, item: Item) -> None:
    if isinstance(item, Attribute):
        item.parent = element
        element.attributes.append(item)
    elif isinstance(item, Node):
        element.append(item)


_TABLE: dict[type, Callable[[Any, Focus], Items]] = {
    x.Constant: lambda expr, _focus: [expr.value],
    x.VariableReference: lambda expr, focus: focus.variables.get(expr.name, []),
    x.SqlValue: lambda expr, focus: focus.sql[expr.kind, expr.name],
    x.ContextItem: lambda _expr, focus: [focus.item],
    x.Root: _root,
    x.Step: _step,
    x.Mapped: _mapped,
    x.Union: _union,
    x.Filtered: lambda expr, focus: _filtered(evaluate(expr.source, focus), expr.predicates, focus),
    x.Sequence: lambda expr, focus: [item for part in expr.items for item in evaluate(part, focus)],
    x.Call: _call,
    x.Cast: _cast,
    x.Operation: _operation,
    x.Conditional: lambda expr, focus: evaluate(
        expr.then if truth(evaluate(expr.test, focus)) else expr.otherwise, focus
    ),
    x.Flwor: _flwor,
    x.Quantified: _quantified,
    x.Constructor: _constructed,
}

__all__ = ["Focus", "SqlValues", "Untyped", "contents", "evaluate"]
