"""Syntax tree of queries, and what is known of a result's length before evaluation (`many`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from mssql_sandbox.engine.xml.tree import Element


@dataclass(frozen=True, slots=True)
class Expr:
    """Any expression."""

    @property
    def many(self) -> bool:
        """Whether there may be more than one item."""
        return False


@dataclass(frozen=True, slots=True)
class Constant(Expr):
    """A number or a string."""

    value: object


@dataclass(frozen=True, slots=True)
class SqlValue(Expr):
    """sql:variable("@x") or sql:column("t.c")."""

    kind: OneOf["variable", "column"]
    name: str


@dataclass(frozen=True, slots=True)
class ContextItem(Expr):
    """`.`."""


@dataclass(frozen=True, slots=True)
class Root(Expr):
    """The top of the tree: `/`."""


@dataclass(frozen=True, slots=True)
class Step(Expr):
    """A child element, an attribute or a text of each item of `source`; `positions` as written between brackets."""

    source: Expr
    kind: OneOf["element", "attribute", "text"]
    space: str = ""
    local: str = ""
    positions: tuple[int, ...] = ()

    @property
    def many(self) -> bool:
        """Attributes are single; other steps are single with a position."""
        return self.source.many or not (self.kind == "attribute" or self.positions)


@dataclass(frozen=True, slots=True)
class Filtered(Expr):
    """(expression)[position]."""

    source: Expr
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """string(expression) or data(expression)."""

    name: OneOf["string", "data"]
    argument: Expr

    @property
    def many(self) -> bool:
        """data() gives as many items as its operand."""
        return self.name == "data" and self.argument.many


@dataclass(frozen=True, slots=True)
class Sum(Expr):
    """left + right, left - right."""

    sign: OneOf["+", "-"]
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Insertion(Expr):
    """insert content [as first | as last] into target; the content is an element or a value from SQL."""

    content: Element | SqlValue
    first: bool
    target: Expr


@dataclass(frozen=True, slots=True)
class Deletion(Expr):
    """delete targets."""

    target: Expr


@dataclass(frozen=True, slots=True)
class Replacement(Expr):
    """replace value of target with value."""

    target: Expr
    value: Expr
