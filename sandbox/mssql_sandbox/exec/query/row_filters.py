"""Row-level security in queries: enabled filter predicates leave rows out, for every user [doc].

The predicate's function is found in the table's database, and needs no permission of the reader (SCHEMABINDING) [doc].
UPDATE and DELETE of the table alone see the same rows; the other statements that change a filtered table are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mssql_sandbox.engine.storage.policies import filters
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.plans import Operator, Slices
from mssql_sandbox.exec.scope import Scope, table_fields

if TYPE_CHECKING:
    from mssql_sandbox.exec.expressions.base import Fn


class Filtered:
    """The rows of a table that pass all predicates, which are evaluated apart from the query around them."""

    __slots__ = ("_checks", "_plan", "fields", "order")

    def __init__(self, plan: Operator, checks: list[Fn]) -> None:
        self._plan = plan
        self._checks = checks
        self.fields = plan.fields
        self.order = plan.order

    def open(self, context: Context) -> Slices:
        """The slices that are left."""
        own = Context(context.session, [], context.transaction)
        for rows in self._plan.open(context):
            yield [row for row in rows if all(check(row, own) is True for check in self._checks)]


def row_filters(compiler: Compiler, table: Table) -> list[Fn]:
    """The predicates on a table's rows, compiled."""
    conditions = filters(table)
    if not conditions:
        return []
    own = Compiler(compiler.session)
    own.names.database = table.database
    own.names.dependencies = compiler.names.dependencies
    own.module_depth = compiler.module_depth + 1
    scope = Scope(table_fields(table, ()), own.fold)
    return [own.condition(node, scope).fn for node in conditions]


def refuse_filtered(table: Any) -> None:
    """40517 for statements that would have to regard predicates and do not."""
    if isinstance(table, Table) and filters(table):
        raise error(40517, option="FILTER PREDICATE")
