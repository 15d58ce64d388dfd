"""The types that the schema collection of an xml column gives to the nodes of its values."""

from __future__ import annotations

from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.xml.tree import Document, Node, Types
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.scope import Scope
from mssql_sandbox.tsql import ast

TYPED = "typed xml"
"""Marks the cells that nodes() creates from typed values: their trees have types."""


def _as_in_the_tree(node: Node) -> str | None:
    top = node.top()
    return top.types(node) if isinstance(top, Document) and top.types is not None else None


def xml_types(compiler: Compiler, target: ast.Expression, scope: Scope) -> Types | None:
    """The types from the schema collection of a table's column; None for untyped values."""
    if not isinstance(target, ast.ColumnRef):
        return None
    level, place = scope.resolve(target.parts, target.line)
    origin = level.fields[place].origin
    if level.fields[place].special == TYPED:
        return _as_in_the_tree
    table = compiler.names.find(origin.table) if origin is not None and origin.table else None
    column = table.column(origin.name) if isinstance(table, Table) and origin is not None else None
    schema = column.xml_schema if column is not None else None
    return None if schema is None else schema.type_of
