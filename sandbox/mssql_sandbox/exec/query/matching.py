"""Matching the two sides of a join: equal keys, an index of the right side, or every pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mssql_sandbox.engine.storage.views import open_view
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import coerce
from mssql_sandbox.exec.expressions.conditions import common_type, conjunction, keyed
from mssql_sandbox.exec.plans import Operator, Slice
from mssql_sandbox.exec.query.joins import HashJoin, LoopJoin
from mssql_sandbox.exec.query.leaves import Leaf, computed_values
from mssql_sandbox.exec.query.sargs import Sarg, choose_access, find_sarg
from mssql_sandbox.exec.scope import Field, Scope
from mssql_sandbox.exec.variables import walk
from mssql_sandbox.tsql import ast


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys of the rows of both sides (None without equalities), the remaining condition, and the equalities."""

    left: Callable[[tuple, Context], Any] | None
    right: Callable[[tuple, Context], Any] | None
    residual: Callable[[tuple, Context], Any] | None
    nodes: list[ast.Expression]


class Matcher:
    """Plans the join of two sources; `scope` makes the scope of some fields on the level of FROM."""

    def __init__(self, compiler: Compiler, scope: Callable[[Sequence[Field]], Scope]) -> None:
        self.compiler = compiler
        self.scope = scope

    def match(
        self, left: Operator, right: Operator, between: list[ast.Expression], leaf: Leaf | None,
        to_right: list[ast.Expression], *, outer: bool,
    ) -> HashJoin | LoopJoin:  # fmt: skip
        """The join of two plans under conditions `between` them; `leaf` is the right side if it is one source."""
        keys = self.keys(left.fields, right.fields, between)
        if keys.left is None or keys.right is None:
            return LoopJoin(left, right, keys.residual, outer=outer)
        left_scope, right_scope = self.scope(left.fields), self.scope(right.fields)
        seek, worth = self._seek(leaf, keys.nodes, left_scope, right_scope, to_right)
        return HashJoin(left, right, keys.left, keys.right, keys.residual, outer=outer, seek=seek, worth=worth)

    def keys(self, left: Sequence[Field], right: Sequence[Field], between: Sequence[ast.Expression]) -> Keys:
        """Splits the conditions between two sides into equal keys and the rest."""
        left_scope, right_scope, both = self.scope(left), self.scope(right), self.scope((*left, *right))
        pairs = [(node, pair) for node in between if (pair := self._equality(node, left_scope, right_scope))]
        rest = [node for node in between if not any(node is done for done, _ in pairs)]
        residual = conjunction([self.compiler.condition(node, both) for node in rest]).fn if rest else None
        if not pairs:
            return Keys(None, None, residual, [])
        return Keys(_key([p[0] for _, p in pairs]), _key([p[1] for _, p in pairs]), residual, [n for n, _ in pairs])

    def _equality(
        self, node: ast.Expression, left: Scope, right: Scope
    ) -> tuple[Callable[..., Any], Callable[..., Any]] | None:
        """Comparison keys of `left expression = right expression`."""
        if not isinstance(node, ast.Comparison) or node.operator != "=":
            return None
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if self.only(one, left, right) and self.only(other, right, left):
                a, b = self.compiler.value(one, left), self.compiler.value(other, right)
                type_ = common_type(a, b)
                return keyed(coerce(a, type_), type_), keyed(coerce(b, type_), type_)
        return None

    def _seek(
        self, leaf: Leaf | None, nodes: list[ast.Expression], left: Scope, right: Scope, to_right: list[ast.Expression]
    ) -> tuple[Callable[[tuple, Context], Slice] | None, Callable[[], int] | None]:
        """How to find the right rows of one left row through an index of the right table."""
        if leaf is None or leaf.table is None or computed_values(leaf.table) is not None:
            return None, None
        table = leaf.table
        sargs: list[Sarg] = []
        for node in nodes:
            sarg = find_sarg(node, lambda n: self.compiler.expr(n, right), lambda n: self.compiler.expr(n, left))
            if sarg is not None:
                sargs.append(sarg)
        choice = choose_access(table, sargs, (), (), prefer_order=False)
        access = choice.access
        if access.index is None or not access.equal:
            return None, None
        checks = conjunction([self.compiler.condition(node, right) for node in to_right]).fn if to_right else None
        hints, index, values = leaf.hints, access.index, access.equal

        def seek(row: tuple, context: Context) -> Slice:
            assert context.transaction is not None
            view = open_view(context.transaction, table.database, hints=hints)
            wanted = [fn(row, context) for fn in values]
            found = [] if None in wanted else [entry[1] for entry in table.seek(view, index, wanted)]
            return found if checks is None else [item for item in found if checks(item, context) is True]

        return seek, lambda: max(10, table.row_count // 10) if table.row_count > 50 else 0

    def only(self, node: ast.Expression, mine: Scope, other: Scope) -> bool:
        """Whether a condition refers to `mine` and not to `other`; subqueries stay where they are."""
        found = False
        for part in walk(node):
            if isinstance(part, (ast.ScalarSubquery, ast.Exists, ast.Quantified)) or (
                isinstance(part, ast.In) and part.query is not None
            ):
                return False
            if isinstance(part, ast.ColumnRef):
                if other.find(part.parts) is not None:
                    return False
                found = found or mine.find(part.parts) is not None
        return found


def _key(functions: list[Callable[..., Any]]) -> Callable[[tuple, Context], Any]:
    """The key of a row: None if one part is NULL."""
    if len(functions) == 1:
        return functions[0]
    parts = tuple(functions)

    def key(row: tuple, context: Context) -> tuple | None:
        values = tuple([part(row, context) for part in parts])
        return None if None in values else values

    return key
