"""Evaluation of an expression for an item: a list of nodes and atomic values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mssql_sandbox.engine.xml import syntax as x
from mssql_sandbox.engine.xml.atomics import Item, atomized, calculate, shown
from mssql_sandbox.engine.xml.tree import Attribute, Element, Node, Text

Items = list[Item]
SqlValues = Mapping[tuple[str, str], Items]


@dataclass(frozen=True, slots=True)
class Focus:
    """The context item, and the values from SQL."""

    item: Item
    sql: SqlValues = field(default_factory=dict)


def evaluate(expr: x.Expr, focus: Focus) -> Items:
    """The sequence that an expression evaluates to."""
    match expr:
        case x.Constant(value):
            return [value]  # type: ignore[list-item]
        case x.SqlValue(kind, name):
            return focus.sql[kind, name]
        case x.ContextItem():
            return [focus.item]
        case x.Root():
            return [focus.item.top()] if isinstance(focus.item, Node) else []
        case x.Step():
            return [node for item in evaluate(expr.source, focus) for node in _stepped(expr, item)]
        case x.Filtered(source, positions):
            return _picked(evaluate(source, focus), positions)
        case x.Call(name, argument):
            values = [atomized(item) for item in evaluate(argument, focus)]
            return [*values] if name == "data" else [shown(values[0]) if values else ""]
        case x.Sum():
            return _sum(expr, focus)
    raise AssertionError(f"{type(expr).__name__} is no expression with a value")


def _stepped(step: x.Step, item: Item) -> Items:
    return _picked(list(_along(step, item)), step.positions)


def _along(step: x.Step, item: Item) -> Iterator[Node]:
    if step.kind == "text":
        yield from (node for node in _children(item) if type(node) is Text)
        return
    nodes = item.attributes if step.kind == "attribute" and isinstance(item, Element) else _children(item)
    wanted = Attribute if step.kind == "attribute" else Element
    for node in nodes:
        if isinstance(node, wanted) and (node.name.space, node.name.local) == (step.space, step.local):
            yield node


def _children(item: Item) -> list[Node]:
    return item.children_of() if isinstance(item, Node) else []


def _picked(items: Items, positions: tuple[int, ...]) -> Items:
    for position in positions:
        items = items[position - 1 : position] if position else []
    return items


def _sum(expr: x.Sum, focus: Focus) -> Items:
    left, right = evaluate(expr.left, focus), evaluate(expr.right, focus)
    if not left or not right:
        return []
    value = calculate(expr.sign, atomized(left[0]), atomized(right[0]))
    return [] if value is None else [value]
