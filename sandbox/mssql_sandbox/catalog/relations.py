"""The columns and parameters of tables, views and functions, for every kind of object.

The columns of views and table-valued functions are those of a query over them. They are kept until the object changes:
SQL Server too records a view's columns when the view is created [doc].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.storage.database import Database
from mssql_sandbox.engine.storage.objects import SchemaObject
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.types import ResultColumn, SqlType
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.session import Session
from mssql_sandbox.exec.statements.queries import compile_select
from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.parser import parse

RELATIONS = frozenset({"V", "IF", "TF"})
"""Objects other than tables that have columns."""
MODULES = frozenset({"P", "FN", "IF", "TF"})
"""Objects that have parameters."""
_KNOWN = "columns in the catalogue"


@dataclass(frozen=True, slots=True)
class ModuleParameter:
    """A parameter of a module; number 0 without a name is the result of a scalar function. No type: a table."""

    number: int
    name: str
    type: SqlType | None
    output: bool = False


def columns_of(session: Session, database: Database, item: Table | SchemaObject) -> Sequence[Column | ResultColumn]:
    """The columns of a table, view or function; none for other objects and for modules that no longer compile."""
    if isinstance(item, Table):
        return item.columns
    if item.type_code not in RELATIONS:
        return ()
    known = item.properties.get(_KNOWN)
    if known is not None and item.definition is not None and known[0] is item.definition:
        return known[1]
    try:
        found = _described(session, database, item)
    except SqlError:
        return ()
    item.properties[_KNOWN] = (item.definition, found)
    return found


def _described(session: Session, database: Database, item: SchemaObject) -> tuple[ResultColumn, ...]:
    """The columns of `SELECT *`; a session that may see the object may see them."""
    arguments = ""
    if item.type_code != "V":
        given = 3 if item.definition is None else len(item.definition.node.parameters)
        arguments = f"({', '.join(['NULL'] * given)})"
    quoted = [f"[{name.replace(']', ']]')}]" for name in (item.schema.name, item.name)]
    (statement,) = parse(f"SELECT * FROM {'.'.join(quoted)}{arguments}")
    assert isinstance(statement, st.SelectStatement)
    compiler = Compiler(session)
    compiler.names.database = database
    compiler.module_depth = 1
    return tuple(compile_select(compiler, statement.query).columns)


def parameters_of(session: Session, database: Database, item: SchemaObject) -> list[ModuleParameter]:
    """The parameters of a procedure or function, beginning with the result of a scalar function."""
    if item.definition is None:
        return []
    node = item.definition.node
    compiler = Compiler(session)
    compiler.names.database = database
    found = [ModuleParameter(0, "", compiler.type_of(node.returns), output=True)] if node.returns is not None else []
    for number, declaration in enumerate(node.parameters, 1):
        try:
            type_ = compiler.type_of(declaration.type)
        except SqlError:
            type_ = None
        found.append(ModuleParameter(number, declaration.name, type_, output=declaration.output))
    return found
