"""Cells of rows to be stored: values in the columns' types, defaults, complete rows from the given columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mssql_sandbox.engine.conversion import assigner
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.types import SqlType
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Expr, Fn, require_implicit
from mssql_sandbox.exec.expressions.lenient import settled
from mssql_sandbox.exec.scope import Field
from mssql_sandbox.exec.tables.typed_xml import holding


def stored(expr: Expr, table: Table, place: int) -> Fn:
    """The value of an expression in the column's type; 2628 if text would be truncated."""
    column = table.columns[place]
    if column.is_rowversion:
        raise error(273)
    if column.generated:
        raise SqlError(
            13536, f"Cannot insert an explicit value into a GENERATED ALWAYS column in table '{table.long_name}'. Use "
            "INSERT with a column list to exclude the GENERATED ALWAYS column, or insert a DEFAULT into GENERATED "
            "ALWAYS column."
        )  # fmt: skip
    inner = expr.fn
    if expr.null:
        return lambda _row, _context: None
    if as_is(expr.type, column.type) and column.xml_schema is None:
        return inner
    require_implicit(expr.type, column.type)
    assign = assigner(expr.type, column.type, table=table.long_name, column=column.name)
    if column.xml_schema is not None:
        assign = holding(assign, column)
    if expr.literal:
        try:
            value = None if expr.value is None else assign(expr.value)
        except SqlError:
            pass  # raised when the statement runs
        else:
            return lambda _row, _context: value

    def fn(row: tuple, context: Context) -> Any:
        value = inner(row, context)
        if value is None:
            return None
        try:
            return assign(value)
        except SqlError as failure:
            return settled(failure, value, expr.type, column, context.session.options)

    return fn


def as_is(source: SqlType, target: SqlType) -> bool:
    """Whether a value of `source` is a stored value of `target` without conversion."""
    if source == target:
        return True
    if source.name == target.name:
        return source.name in ("nvarchar", "varbinary") and 0 < source.length <= target.length
    return source.name in ("tinyint", "smallint", "int") and target.name == "bigint"


def insert_columns(table: Table, names: Sequence[str], *, implicit: bool = True) -> list[int]:
    """Positions of the columns that a statement fills: those named, or all but computed, identity and hidden ones.

    Columns that the server fills (rowversion, GENERATED ALWAYS) are included but take only DEFAULT (273, 13536).
    """
    if not names:
        if not implicit:
            return []
        return [
            place for place, col in enumerate(table.columns)
            if col.computed is None and col.identity is None and not col.hidden
        ]  # fmt: skip
    places: list[int] = []
    for name in names:
        place = table.ordinal(name)
        if place is None:
            raise error(207, name=name)
        if place in places:
            raise error(264, name=name)
        column = table.columns[place]
        if column.computed is not None:
            raise error(271, name=column.name)
        places.append(place)
    return places


def row_builder(table: Table, places: Sequence[int], fields: Sequence[Field], *, named: bool) -> tuple[Fn, ...]:
    """Cells of a complete row made from rows with `fields` (a query's or a procedure's)."""
    if len(fields) != len(places):
        if not named:
            raise error(213)
        raise error(121 if len(fields) > len(places) else 120)
    given: dict[int, Fn] = {}
    for number, (place, field) in enumerate(zip(places, fields, strict=True)):
        source = Expr(field.type, cell(number), field.nullable, null=field.special == "null")
        given[place] = stored(source, table, place)
    return complete(table, given)


def cell(number: int) -> Fn:
    """The cell of a source row."""
    return lambda row, _context: row[number]


def nothing(_row: tuple, _context: Context) -> None:
    """NULL."""
    return


def complete(table: Table, given: dict[int, Fn]) -> tuple[Fn, ...]:
    """A cell for every column: the given value, else its default, else NULL."""
    cells: list[Fn] = []
    for place, column in enumerate(table.columns):
        if place in given:
            cells.append(given[place])
        elif column.default is not None and column.computed is None:
            cells.append(default(column.default.evaluate))
        else:
            cells.append(nothing)
    return tuple(cells)


def default(evaluate: Callable[[Any], Any]) -> Fn:
    """The value of a DEFAULT constraint."""
    return lambda _row, context: evaluate(context)
