"""Many rows of literals (`INSERT … VALUES (1, N'a'), (2, N'b'), …`), read column by column instead of cell by cell.

Only columns whose literals are of one kind are read here; everything unusual, errors included, is left to the general
code, so that stored values and errors are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.conversion import assigner
from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.errors import SqlError
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import require_implicit, same_storage
from mssql_sandbox.tsql import ast

Typed = tuple[SqlType, list[Any]]
_MAX_PRECISION = 38
_NUMERIC = frozenset("0123456789+-.")


def literal_rows(
    compiler: Compiler, table: Table, places: Sequence[int], node: ast.LiteralRows
) -> Callable[[Context], list[tuple]] | None:
    """A maker of complete rows; None if the rows must be compiled one by one."""
    width = len(places)
    cells = node.cells(width)
    if cells is None:
        return None
    count = len(cells) // width
    given: dict[int, list[Any]] = {}
    try:
        for number, place in enumerate(places):
            column = _stored(cells[number::width], table, table.columns[place], compiler)
            if column is None:
                return None
            given[place] = column
    except SqlError:
        return None

    def rows(context: Context) -> list[tuple]:
        columns = []
        for place, column in enumerate(table.columns):
            if place in given:
                columns.append(given[place])
            elif column.default is not None and column.computed is None:
                evaluate = column.default.evaluate
                columns.append([evaluate(context) for _ in range(count)])
            else:
                columns.append([None] * count)
        return list(zip(*columns, strict=True))

    return rows


def _stored(cells: list[str], table: Table, column: Column, compiler: Compiler) -> list[Any] | None:
    """The cells of a column in its type; None if they are not of one kind, or the server fills the column."""
    if not column.writable or column.xml_schema is not None:
        return None
    present = [cell for cell in cells if cell[0] not in "Nn" or cell[-1] == "'"]
    if not present:
        return [None] * len(cells)
    typed = _typed(present, column, compiler)
    if typed is None:
        return None
    source, values = typed
    if not same_storage(source, column.type):
        require_implicit(source, column.type)
        assign = assigner(source, column.type, table=table.long_name, column=column.name)
        converted = {value: assign(value) for value in set(values)}
        values = [converted[value] for value in values]
    if len(present) == len(cells):
        return values
    following = iter(values)
    return [next(following) if cell[0] not in "Nn" or cell[-1] == "'" else None for cell in cells]


def _typed(cells: list[str], column: Column, compiler: Compiler) -> Typed | None:
    marks = {cell[0] for cell in cells}
    if marks == {"'"}:
        kept = compiler.collation.to_code_page
        return _texts([kept(cell[1:-1]) for cell in cells], "varchar", 8000, compiler)
    if marks <= {"N", "n"}:
        return _texts([cell[2:-1] for cell in cells], "nvarchar", 4000, compiler)
    return _numbers(cells, column) if marks <= _NUMERIC else None


def _texts(values: list[str], name: str, limit: int, compiler: Compiler) -> Typed:
    if any("''" in value for value in values):
        values = [value.replace("''", "'") for value in values]
    longest = max(map(len, values))
    return SqlType(name, t.MAX if longest > limit else max(longest, 1), collation=compiler.collation), values


def _numbers(cells: list[str], column: Column) -> Typed | None:
    try:
        whole = list(map(int, cells))
    except ValueError:
        return _decimals(cells) if column.type.name in t.NUMBERS else None
    return (t.INT, whole) if min(whole) >= -(2**31) and max(whole) < 2**31 else None


def _decimals(cells: list[str]) -> Typed | None:
    """Decimals; binary constants and floats are not handled. Storing rounds the values, so scales may differ here."""
    if any(mark in cell for cell in cells for mark in "xXeE"):
        return None
    parts = [cell.lstrip("+-").partition(".") for cell in cells]
    scale = max(len(fraction) for _, _, fraction in parts)
    precision = max(len(digits) for digits, _, _ in parts) + scale
    if precision > _MAX_PRECISION:
        return None
    return t.numeric(max(precision, 1), scale), [Decimal(cell) for cell in cells]
