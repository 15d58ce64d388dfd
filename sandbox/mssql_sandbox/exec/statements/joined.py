"""UPDATE and DELETE with FROM: the target is one of the joined tables, its rows carry their row ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.query.operators import gather
from mssql_sandbox.exec.statements.targets import Target, single_target, target_table
from mssql_sandbox.exec.statements.updatable import ROWID, TargetPlanner, leaves_of, target_source
from mssql_sandbox.tsql import ast


def joined_target(
    compiler: Compiler, name: ast.Name, source: ast.TableSource, where: ast.Expression | None, hints: frozenset[str],
    permission: str, wanted: Sequence[str] | None = None,
) -> Target:  # fmt: skip
    """The target of UPDATE or DELETE among the sources of FROM, by alias or by name; otherwise it is joined to them."""
    node = find_target(compiler, name, source)
    if node is None:
        node = ast.VariableTable(name[0]) if name[0].startswith("@") else ast.NamedTable(name)
        source = ast.Join("CROSS", node, source)
    if node is source and _is_table(compiler, node):
        own = node.name if isinstance(node, ast.NamedTable) else (node.name,)
        table = target_table(compiler, own, permission, columns=wanted)
        return single_target(compiler, table, node.alias, where, hints | _hints_of(node))
    found = target_source(compiler, node, hints, wanted, permission)
    planner = TargetPlanner(compiler, node, found)
    plan = planner.plan(source, where, None, prefer_order=False)
    place = next(i for i, field in enumerate(plan.fields) if field.name == ROWID)
    first = place - len(found.table.columns)

    def entries(context: Context) -> list[tuple[int, tuple, tuple]]:
        return [(row[place], row[first:place], row) for row in gather(plan.open(context)) if row[place] is not None]

    return Target(found.table, entries, planner.scope(plan.fields), found.names, found.checks)


def _is_table(compiler: Compiler, node: Any) -> bool:
    if isinstance(node, ast.NamedTable):
        if len(node.name) == 1 and compiler.fold(node.name[0]) in compiler.common_tables:
            return False
        return isinstance(compiler.names.find(node.name), Table)
    return isinstance(node, ast.VariableTable)


def _hints_of(node: Any) -> frozenset[str]:
    return frozenset(hint.lower() for hint in getattr(node, "hints", ()))


def find_target(compiler: Compiler, name: ast.Name, source: ast.TableSource) -> Any:
    """The source that the target's name refers to: by alias, by the name of a table without one, by table.

    8154 if there are several.
    """
    leaves = [one for one in leaves_of(source) if isinstance(one, _TARGETS)]
    fold = compiler.fold
    if len(name) == 1:
        by_alias = [leaf for leaf in leaves if leaf.alias and fold(leaf.alias) == fold(name[0])]
        if by_alias:
            return by_alias[0]
    matching = [leaf for leaf in leaves if _same_table(compiler, leaf, name, fold)]
    matching = [leaf for leaf in matching if not leaf.alias] or matching
    if len(matching) > 1:
        raise error(8154, name=".".join(name))
    return matching[0] if matching else None


_TARGETS = (ast.NamedTable, ast.VariableTable, ast.DerivedTable)


def _same_table(compiler: Compiler, leaf: Any, name: ast.Name, fold: Callable[[str], object]) -> bool:
    if isinstance(leaf, ast.DerivedTable):
        return False
    if isinstance(leaf, ast.VariableTable):
        return len(name) == 1 and leaf.name.lower() == name[0].lower()
    if fold(leaf.name[-1]) != fold(name[-1]):
        return False
    if len(name) == 1 and fold(name[0]) in compiler.common_tables:
        return len(leaf.name) == 1
    one, other = compiler.names.find(leaf.name), compiler.names.find(name)
    return one is not None and one is other
