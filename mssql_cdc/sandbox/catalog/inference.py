"""What a statement needs and gives, without running it: types of undeclared parameters, columns of its first result.

A parameter takes the type of the column it is compared with, assigned or inserted into; else nvarchar(4000), as for
text. Drivers ask before they bind (NULLs, bulk parameters) [exp].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mssql_cdc.sandbox.catalog.columns import column_type
from mssql_cdc.sandbox.engine.storage.table import Table
from mssql_cdc.sandbox.engine.types import ResultColumn, SqlType
from mssql_cdc.sandbox.exec.compiler import Compiler
from mssql_cdc.sandbox.exec.routine import Routine
from mssql_cdc.sandbox.exec.variables import walk
from mssql_cdc.sandbox.tsql import ast
from mssql_cdc.sandbox.tsql import statements as st
from mssql_cdc.sandbox.tsql.parser import parse, parse_parameters

if TYPE_CHECKING:
    from mssql_cdc.sandbox.exec.session import Session

_UNKNOWN = "nvarchar(4000)"


def parameter_types(session: Session, text: str, declared: str = "") -> list[tuple[str, SqlType]]:
    """The variables that a text uses and nobody declares, in order of appearance, with the types they should have.

    Raises:
        SqlError: the text does not parse.
    """
    statements = parse(text)
    known = {declaration.name.casefold() for declaration in parse_parameters(declared)} if declared.strip() else set()
    known |= {
        node.name.casefold() for part in walk(statements) if isinstance(part, st.Declare) for node in part.variables
    }
    found: dict[str, tuple[str, SqlType | None]] = {}
    for node in walk(statements):
        if isinstance(node, ast.Variable) and node.name.casefold() not in known:
            found.setdefault(node.name.casefold(), (node.name, None))
    for statement in statements:
        for name, type_ in _Hints(session).of(statement):
            if name.casefold() in found and found[name.casefold()][1] is None:
                found[name.casefold()] = (found[name.casefold()][0], type_)
    return [(name, type_ or column_type(_UNKNOWN)) for name, type_ in found.values()]


class _Hints:
    """Collects (variable, type) pairs from the places where variables meet columns."""

    def __init__(self, session: Session) -> None:
        self.names = Compiler(session).names
        self.pairs: list[tuple[str, SqlType]] = []

    def of(self, statement: Any) -> list[tuple[str, SqlType]]:
        """The pairs of one statement."""
        tables = [table for node in walk(statement) if (table := self._table(node)) is not None]
        if isinstance(statement, st.Insert):
            self._insert(statement)
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

    def _pair(self, value: Any, other: Any, tables: list[Table]) -> None:
        if not isinstance(value, ast.Variable) or not isinstance(other, ast.ColumnRef):
            return
        for table in tables:
            column = table.column(other.parts[-1])
            if column is not None:
                self.pairs.append((value.name, column.type))
                return


def result_columns(session: Session, text: str, declared: str = "") -> tuple[ResultColumn, ...]:
    """The columns of the first SELECT of a text; none when it has no result.

    Raises:
        SqlError: the text does not compile.
    """
    statements = parse(text)
    routine = Routine(session, statements, parse_parameters(declared) if declared.strip() else ())
    for statement in statements:
        if isinstance(statement, st.SelectStatement):
            compiler = Compiler(session, routine.scope)
            fields = compiler.query(statement.query).fields
            return tuple(
                field.origin or ResultColumn(field.name, field.type, nullable=field.nullable) for field in fields
            )
    return ()
