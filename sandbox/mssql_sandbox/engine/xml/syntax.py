"""Syntax tree of XQuery, and what can be told of a result's length before anything runs (`many`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

Axis = OneOf["child", "descendant", "descendant-or-self", "parent", "self", "attribute", "ancestor", "ancestor-or-self"]


@dataclass(frozen=True, slots=True)
class Expr:
    """Any expression. `many`: its result may be longer than one item."""

    @property
    def many(self) -> bool:
        """Whether there may be more than one item."""
        return False


@dataclass(frozen=True, slots=True)
class Constant(Expr):
    """A number or a string."""

    value: object


@dataclass(frozen=True, slots=True)
class VariableReference(Expr):
    """$name; `single` when bound by `for` or a quantifier, or by `let` to a single item."""

    name: str
    single: bool = True

    @property
    def many(self) -> bool:
        """As it was bound."""
        return not self.single


@dataclass(frozen=True, slots=True)
class SqlValue(Expr):
    """sql:variable("@x") or sql:column("t.c")."""

    kind: OneOf["variable", "column"]
    name: str


@dataclass(frozen=True, slots=True)
class ContextItem(Expr):
    """`.`; `single` is False for the forest that a whole value may be."""


@dataclass(frozen=True, slots=True)
class Root(Expr):
    """The top of the tree: `/`."""


@dataclass(frozen=True, slots=True)
class NodeTest:
    """What a step lets through: a kind, and names where they matter (None: any)."""

    kind: OneOf["element", "attribute", "text", "comment", "processing-instruction", "node", "principal"]
    space: str | None = None
    local: str | None = None


@dataclass(frozen=True, slots=True)
class Step(Expr):
    """axis::test[predicates] from each item of `source`."""

    source: Expr
    axis: Axis
    test: NodeTest
    predicates: tuple[Expr, ...] = ()

    @property
    def many(self) -> bool:
        """Attributes by name, parents and selves are single; other steps are so with a position."""
        narrow = self.axis in ("parent", "self") or (self.axis == "attribute" and self.test.local is not None)
        return self.source.many or not (narrow or any(is_position(each) for each in self.predicates))


@dataclass(frozen=True, slots=True)
class Filtered(Expr):
    """(expression)[predicates]."""

    source: Expr
    predicates: tuple[Expr, ...]

    @property
    def many(self) -> bool:
        """Single with a position."""
        return self.source.many and not any(is_position(each) for each in self.predicates)


@dataclass(frozen=True, slots=True)
class Sequence(Expr):
    """a, b, c."""

    items: tuple[Expr, ...]

    @property
    def many(self) -> bool:
        """More than one part, or a part of many."""
        return len(self.items) > 1 or any(item.many for item in self.items)


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A function by its name, prefixes of the standard spaces left out."""

    name: str
    arguments: tuple[Expr, ...]

    @property
    def many(self) -> bool:
        """Only what gives as many as it gets."""
        return self.name in ("data", "distinct-values", "id") and any(each.many for each in self.arguments)


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """xs:type(value), value cast as xs:type ?, value instance of xs:type."""

    operand: Expr
    type: str
    test: bool = False


@dataclass(frozen=True, slots=True)
class Operation(Expr):
    """A binary operator: or and, general and value comparisons, arithmetic, is << >>."""

    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Conditional(Expr):
    """if (test) then a else b."""

    test: Expr
    then: Expr
    otherwise: Expr

    @property
    def many(self) -> bool:
        """As its branches."""
        return self.then.many or self.otherwise.many


@dataclass(frozen=True, slots=True)
class Clause:
    """for or let of a FLWOR expression."""

    kind: OneOf["for", "let"]
    name: str
    source: Expr


@dataclass(frozen=True, slots=True)
class Flwor(Expr):
    """for, let, where, order by, return; `order` holds (key, descending)."""

    clauses: tuple[Clause, ...]
    where: Expr | None
    order: tuple[tuple[Expr, bool], ...]
    result: Expr

    @property
    def many(self) -> bool:
        """As often as `for` goes round."""
        return self.result.many or any(each.kind == "for" and each.source.many for each in self.clauses)


@dataclass(frozen=True, slots=True)
class Quantified(Expr):
    """some | every $x in e (, …) satisfies test."""

    every: bool
    clauses: tuple[Clause, ...]
    test: Expr


@dataclass(frozen=True, slots=True)
class Constructor(Expr):
    """An element, attribute, text, comment or instruction that is made; names as (space, local, prefix)."""

    kind: OneOf["element", "attribute", "text", "comment", "processing-instruction"]
    name: tuple[str, str, str]
    content: tuple[Expr, ...]
    attributes: tuple[Constructor, ...] = ()
    spaces: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Insertion(Expr):
    """insert content (into | as first into | as last into | after | before) target."""

    content: Expr
    place: OneOf["first", "last", "after", "before"]
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


def is_position(predicate: Expr) -> bool:
    """Whether a predicate can hold for one item only: a number, last()."""
    if isinstance(predicate, Constant):
        return not isinstance(predicate.value, str)
    return isinstance(predicate, Call) and predicate.name == "last"


@dataclass(frozen=True, slots=True)
class Mapped(Expr):
    """source/(expression): the expression for each item, its nodes in document order."""

    source: Expr
    result: Expr

    @property
    def many(self) -> bool:
        """As both."""
        return self.source.many or self.result.many


@dataclass(frozen=True, slots=True)
class Union(Expr):
    """a | b: the nodes of all, in document order."""

    parts: tuple[Expr, ...]

    @property
    def many(self) -> bool:
        """Always perhaps."""
        return True
