"""The types of the undeclared parameters of a statement, without running it.

A parameter takes the type of the column it is compared with, assigned to or inserted into, or of the procedure
parameter it is passed to; otherwise nvarchar(4000), as for text. Drivers need the types before they bind values (NULLs,
bulk parameters) [exp].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mssql_sandbox.catalog.columns import column_type
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.session import Session
from mssql_sandbox.exec.variables import walk
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.parser import parse, parse_parameters

_UNKNOWN = "nvarchar(4000)"


@dataclass(frozen=True, slots=True)
class TableType:
    """A table type, for parameters with rows."""

    database: str
    schema: str
    name: str


Type = SqlType | TableType


def parameter_types(session: Session, text: str, declared: str = "") -> list[tuple[str, Type]]:
    """The undeclared variables that a text uses, in order of appearance, with the types they should have.

    Raises:
        SqlError: the text does not parse; 11508 for a variable that is used more than once.
    """
    statements = parse(text)
    known = {declaration.name.casefold() for declaration in parse_parameters(declared)} if declared.strip() else set()
    known |= {
        node.name.casefold() for part in walk(statements) if isinstance(part, st.Declare) for node in part.variables
    }
    found: dict[str, tuple[str, Type | None]] = {}
    for node in walk(statements):
        if isinstance(node, ast.Variable) and node.name.casefold() not in known:
            if node.name.casefold() in found:
                text = f"The undeclared parameter '{node.name}' is used more than once in the batch being analyzed."
                raise SqlError(11508, text)
            found[node.name.casefold()] = (node.name, None)
    for statement in statements:
        for name, type_ in _Hints(session).of(statement):
            if name.casefold() in found and found[name.casefold()][1] is None:
                found[name.casefold()] = (found[name.casefold()][0], type_)
    return [(name, type_ or column_type(_UNKNOWN)) for name, type_ in found.values()]


class _Hints:
    """Collects (variable, type) pairs from the places where variables meet columns."""

    def __init__(self, session: Session) -> None:
        self.names = Compiler(session).names
        self.pairs: list[tuple[str, Type]] = []

    def of(self, statement: Any) -> list[tuple[str, Type]]:
        """The pairs of one statement."""
        tables = [table for node in walk(statement) if (table := self._table(node)) is not None]
        if isinstance(statement, st.Insert):
            self._insert(statement)
        if isinstance(statement, st.Execute) and not isinstance(statement.procedure, str):
            self._execute(statement)
        for node in walk(statement):
            if isinstance(node, st.Assignment) and node.column:
                self._pair(node.value, ast.ColumnRef(node.column), tables)
            elif isinstance(node, ast.Comparison):
                self._pair(node.left, node.right, tables)
                self._pair(node.right, node.left, tables)
            elif isinstance(node, ast.Between):
                self._pair(node.low, node.operand, tables)
                self._pair(node.high, node.operand, tables)
            elif isinstance(node, ast.In):
                for item in node.items:
                    self._pair(item, node.operand, tables)
            elif isinstance(node, ast.Like):
                self._pair(node.pattern, node.operand, tables)
            elif isinstance(node, ast.Top) and isinstance(node.count, ast.Variable):
                self.pairs.append((node.count.name, column_type("bigint")))
            elif isinstance(node, ast.Cast) and isinstance(node.operand, ast.Variable):
                self.pairs.append((node.operand.name, Compiler(self.names.session).type_of(node.type, cast=True)))
        return self.pairs

    def _table(self, node: Any) -> Table | None:
        name = node.name if isinstance(node, ast.NamedTable) else getattr(node, "target", None)
        found = self.names.find(name) if isinstance(name, tuple) and name else None
        return found if isinstance(found, Table) else None

    def _insert(self, statement: st.Insert) -> None:
        table = self._table(statement)
        body = statement.source.body if isinstance(statement.source, ast.Query) else None
        if table is None or body is None:
            return
        targets = [table.column(name) for name in statement.columns] if statement.columns else None
        if targets is None:
            targets = [column for column in table.columns if column.identity is None and column.writable]
        rows = body.rows if isinstance(body, ast.Values) else ()
        if isinstance(body, ast.Select):
            rows = (tuple(item.expression for item in body.items),)
        for row in rows:
            for value, column in zip(row, targets, strict=False):
                if isinstance(value, ast.Variable) and column is not None:
                    self.pairs.append((value.name, column.type))

    def _execute(self, statement: st.Execute) -> None:
        """Arguments have the types of the procedure's parameters, matched by position or by name."""
        wanted = self._parameters(statement)
        names = {name.casefold(): type_ for name, type_ in wanted}
        for place, argument in enumerate(statement.arguments):
            if not isinstance(argument.value, ast.Variable):
                continue
            if argument.name:
                type_ = names.get(argument.name.casefold())
            else:
                type_ = wanted[place][1] if place < len(wanted) else None
            if type_ is not None:
                self.pairs.append((argument.value.name, type_))

    def _parameters(self, statement: st.Execute) -> list[tuple[str, Type]]:
        """Names and types of a procedure's parameters; none if there is no such procedure."""
        session = self.names.session
        assert not isinstance(statement.procedure, str)
        found = self.names.find(statement.procedure)
        if found is not None and found.type_code == "P":
            compiler = Compiler(session)
            compiler.names.database = found.definition.database
            return [(part.name, _declared(compiler, part)) for part in found.definition.node.parameters]
        place = self.names.place(statement.procedure)
        bound = session.server.catalog.procedure(place.database, place.schema, place.name)
        return [] if bound is None else [(f"@{part.name}", part.type) for part in bound.parameters]

    def _pair(self, value: Any, other: Any, tables: list[Table]) -> None:
        if not isinstance(value, ast.Variable) or not isinstance(other, ast.ColumnRef):
            return
        for table in tables:
            column = table.column(other.parts[-1])
            if column is not None:
                self.pairs.append((value.name, column.type))
                return


def _declared(compiler: Compiler, part: st.VariableDeclaration) -> Type:
    if compiler.table_type(part.type) is None:
        return compiler.type_of(part.type)
    found = compiler.names.find(part.type.name)
    assert found is not None
    return TableType(compiler.names.database.name, found.schema.name, found.name)
