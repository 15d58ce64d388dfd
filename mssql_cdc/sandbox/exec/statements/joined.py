"""UPDATE and DELETE with FROM: the target is one of the joined tables, its rows carry their row ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mssql_cdc.sandbox.engine import types as t
from mssql_cdc.sandbox.engine.storage.table import Table
from mssql_cdc.sandbox.errors import SqlError, error
from mssql_cdc.sandbox.exec.context import Context
from mssql_cdc.sandbox.exec.query.leaves import Leaf
from mssql_cdc.sandbox.exec.query.operators import Rows, gather
from mssql_cdc.sandbox.exec.query.scans import Access, scan_entries
from mssql_cdc.sandbox.exec.query.sources import SourcePlanner
from mssql_cdc.sandbox.exec.scope import Field
from mssql_cdc.sandbox.exec.statements.targets import Target, single_target, target_table
from mssql_cdc.sandbox.tsql import ast

if TYPE_CHECKING:
    from mssql_cdc.sandbox.exec.compiler import Compiler

ROWID = "$rowid"


class TargetPlanner(SourcePlanner):
    """Plans FROM so that rows of the target come with their row id as last column, read for update."""

    def __init__(self, compiler: Compiler, target: ast.TableSource, table: Table, hints: frozenset[str]) -> None:
        super().__init__(compiler, None)
        self._target = target
        self._table = table
        self._hints = hints

    def leaf(self, source: ast.TableSource) -> Leaf:
        """The target reads entries, everything else as usual."""
        if source is not self._target:
            return super().leaf(source)
        plain = super().leaf(source)
        table, hints = self._table, self._hints | plain.hints
        fields = [*plain.fields, Field(ROWID, t.BIGINT, False, (ROWID,), hidden=True)]

        def rows(context: Context) -> list[tuple]:
            access = Access()
            return [(*row, rowid) for slice_ in scan_entries(table, context, access, hints) for rowid, row in slice_]

        return Leaf(fields, operator=Rows(fields, rows))


def joined_target(
    compiler: Compiler, name: ast.Name, source: ast.TableSource, where: ast.Expression | None, hints: frozenset[str],
    permission: str,
) -> Target:  # fmt: skip
    """The target of UPDATE or DELETE among the tables of FROM, by alias or by name."""
    node = find_target(compiler, name, source)
    if node is None:
        table = target_table(compiler, name)
        raise SqlError(
            4104, f"The multi-part identifier \"{'.'.join(name)}\" could not be bound: table '{table.name}' "
            "does not stand in FROM, and this server needs it there."
        )  # fmt: skip
    table = target_table(compiler, node.name if isinstance(node, ast.NamedTable) else (node.name,), permission)
    if node is source:
        return single_target(compiler, table, node.alias, where, hints | _hints_of(node))
    planner = TargetPlanner(compiler, node, table, hints)
    plan = planner.plan(source, where, None, prefer_order=False)
    place = next(i for i, field in enumerate(plan.fields) if field.name == ROWID)
    first = place - len(table.columns)

    def entries(context: Context) -> list[tuple[int, tuple, tuple]]:
        return [(row[place], row[first:place], row) for row in gather(plan.open(context)) if row[place] is not None]

    return Target(table, entries, planner.scope(plan.fields))


def _hints_of(node: Any) -> frozenset[str]:
    return frozenset(hint.lower() for hint in getattr(node, "hints", ()))


def find_target(
    compiler: Compiler, name: ast.Name, source: ast.TableSource
) -> ast.NamedTable | ast.VariableTable | None:
    """The source that the target's name means: first by alias, then by table; 8154 when it is ambiguous."""
    leaves = list(_leaves(source))
    fold = compiler.fold
    if len(name) == 1:
        by_alias = [leaf for leaf in leaves if leaf.alias and fold(leaf.alias) == fold(name[0])]
        if by_alias:
            return by_alias[0]
    matching = [leaf for leaf in leaves if _same_table(compiler, leaf, name, fold)]
    if len(matching) > 1:
        raise error(8154, name=".".join(name))
    return matching[0] if matching else None


def _same_table(compiler: Compiler, leaf: Any, name: ast.Name, fold: Callable[[str], object]) -> bool:
    if isinstance(leaf, ast.VariableTable):
        return len(name) == 1 and leaf.name.lower() == name[0].lower()
    if fold(leaf.name[-1]) != fold(name[-1]):
        return False
    one, other = compiler.names.find(leaf.name), compiler.names.find(name)
    return one is not None and one is other


def _leaves(source: ast.TableSource) -> Sequence[Any]:
    if isinstance(source, ast.Join):
        return [*_leaves(source.left), *_leaves(source.right)]
    return [source] if isinstance(source, (ast.NamedTable, ast.VariableTable)) else []
