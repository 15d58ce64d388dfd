"""Column sets: all sparse columns of a table as one XML value, to read and to write.

Nothing is stored for the set itself. Evidence: Microsoft's documentation "Use column sets".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.conversion import convert
from mssql_sandbox.engine.storage.columns import Column
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.engine.text import to_text
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.context import Context
from mssql_sandbox.exec.expressions.base import Fn

_TEXT = t.nvarchar(-1)
_ISO = 126


def set_place(table: Table) -> int | None:
    """Where the column set stands, if there is one."""
    return next((place for place, column in enumerate(table.columns) if column.column_set), None)


def check(table: Table) -> None:
    """Errors 1731 for a sparse column that cannot be one, 1732 for a set that is no xml, 1733 for a second one."""
    sets = [column for column in table.columns if column.column_set]
    for number, column in enumerate(sets):
        cannot = f"Cannot create the sparse column set '{column.name}' in the table '{table.name}' because"
        if number:
            raise SqlError(1733, f"{cannot} a table cannot have more than one sparse column set. Modify the statement "
                           "so that only one column is specified as COLUMN_SET FOR ALL_SPARSE_COLUMNS.")  # fmt: skip
        if column.type.name != "xml" or not column.nullable:
            raise SqlError(1732, f"{cannot} an option or data type specified is not valid. A sparse column set must be "
                           "a nullable xml column. Modify the specification of the column set to be "
                           "valid.")  # fmt: skip
    for column in table.columns:
        if column.sparse and (not column.nullable or column.default is not None or column.identity is not None):
            raise SqlError(
                1731, f"Cannot create the sparse column '{column.name}' in the table '{table.name}' because an option "
                "or data type specified is not valid. A sparse column must be nullable and cannot have the ROWGUIDCOL, "
                "IDENTITY, or FILESTREAM properties. A sparse column cannot be of the following data types: text, "
                "ntext, image, geometry, geography, or user-defined type."
            )  # fmt: skip


def check_added(table: Table, column: Column) -> None:
    """Error 1734: a column set comes before the sparse columns."""
    if column.column_set and any(other.sparse for other in table.columns):
        raise SqlError(
            1734, f"Cannot create the sparse column set '{column.name}' in the table '{table.name}' because the table "
            "already contains one or more sparse columns. A sparse column set cannot be added to a table if the table "
            "contains a sparse column."
        )  # fmt: skip


def shown(table: Table) -> Callable[[tuple], str | None]:
    """The XML of a row's sparse columns that are not NULL; NULL when all are."""
    sparse = [(place, column) for place, column in enumerate(table.columns) if column.sparse]

    def xml(row: tuple) -> str | None:
        parts = [_element(column, row[place]) for place, column in sparse if row[place] is not None]
        return "".join(parts) or None

    return xml


def _element(column: Column, value: object) -> str:
    if column.type.name == "bit":
        text = str(int(bool(value)))
    else:
        text = to_text(value, column.type, _ISO if column.type.name.startswith(("date", "small")) else None)
    return f"<{column.name}>{escape(text)}</{column.name}>"


def spread(table: Table, given: dict[int, Fn]) -> dict[int, Fn]:
    """Values for an INSERT or UPDATE with those of the column set given to the sparse columns.

    Raises:
        SqlError: 360, the set and one of its columns are both given.
    """
    place = set_place(table)
    if place is None or place not in given:
        return given
    sparse = {number: column for number, column in enumerate(table.columns) if column.sparse}
    if sparse.keys() & given.keys():
        raise SqlError(360, "The target column list of an INSERT, UPDATE, or MERGE statement cannot contain both a "
                       "sparse column and the column set that contains the sparse column. Rewrite the statement to "
                       "include either the sparse column or the column set, but not both.")  # fmt: skip
    whole = given[place]
    rest = {number: fn for number, fn in given.items() if number != place}
    return {**rest, **{number: _part(whole, column, table) for number, column in sparse.items()}}


def _part(whole: Fn, column: Column, table: Table) -> Fn:
    def fn(row: tuple, context: Context) -> Any:
        text = whole(row, context)
        if text is None:
            return None
        values = _parsed(str(text), table)
        found = values.get(column.name)
        return None if found is None else convert(found, _TEXT, column.type)

    return fn


def _parsed(text: str, table: Table) -> dict[str, str]:
    """Texts by column; 207 for an element that is no sparse column."""
    known = {column.name for column in table.columns if column.sparse}
    found: dict[str, str] = {}
    for element in ET.fromstring(f"<set>{text}</set>"):  # noqa: S314 - the value is parsed xml already
        if element.tag not in known:
            raise error(207, name=element.tag)
        found[element.tag] = element.text or ""
    return found
