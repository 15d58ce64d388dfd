"""BULK INSERT: the rows of a file on the server's side.

Only character files are supported (`char`, `widechar`); other types, format files, error files and data sources are
errors. Each field belongs to a column of the table, in order; values for an identity column are used with KEEPIDENTITY
only, values for computed and rowversion columns never. A file is read whole, with the rights of the server's process,
so only members of sysadmin and bulkadmin may load one (4834).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.conversion import assigner
from mssql_sandbox.engine.data_files import (
    CUT_SHORT,
    FileForm,
    decoded,
    is_text,
    read_bytes,
    rows,
)
from mssql_sandbox.engine.events import BulkData
from mssql_sandbox.engine.storage.table import Table
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.consequences import locate
from mssql_sandbox.exec.definition_rights import require_bulk
from mssql_sandbox.exec.failures import message_of
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.statements.bulk import BulkTarget, load
from mssql_sandbox.exec.statements.targets import target_table
from mssql_sandbox.tsql import statements as st

_UNKNOWN = (
    "FORMAT", "FIELDQUOTE", "FORMATFILE", "ERRORFILE", "DATA_SOURCE", "ERRORFILE_DATA_SOURCE", "FORMATFILE_DATA_SOURCE",
)  # fmt: skip
_FILE_TYPES = ("char", "widechar")
_FLAGS = {"KEEPNULLS": "KEEP_NULLS"}
_TEXT = t.nvarchar(t.MAX)
_TRUNCATED = (2628, 8152)
_EMPTY = "\0"
"""Represents an empty value, because an empty field is NULL."""
_PROVIDER = {
    7399: 'The OLE DB provider "BULK" for linked server "(null)" reported an error. The provider did not give any '
    "information about the error.",
    7330: 'Cannot fetch a row from OLE DB provider "BULK" for linked server "(null)".',
}


@dataclass(slots=True)
class _Load:
    """The contents of a file: rows of column values, and the errors of the skipped rows."""

    rows: list[tuple] = field(default_factory=list)
    faults: list[SqlError] = field(default_factory=list)
    fatal: bool = False


def bulk_insert(frame: Frame, node: st.BulkInsert) -> Steps:
    """Load a file. Rows that cannot be read are reported and skipped, until there are more than MAXERRORS."""
    session = frame.session
    require_bulk(session)
    options = dict(node.options)
    _check_options(options)
    table = target_table(frame.compiler(), node.target, "INSERT")
    columns = [column for column in table.columns if not column.hidden]
    form = _form(options, len(columns))
    text = decoded(read_bytes(node.file), _page(options))
    keep = "KEEPIDENTITY" in options
    used = [
        (number, column) for number, column in enumerate(columns)
        if column.writable and (keep or column.identity is None)
    ]  # fmt: skip
    cells = [(number, column, _cell(table, column)) for number, column in used]
    first, last = int(options.get("FIRSTROW", 1)), int(options.get("LASTROW", 0))
    wanted = islice(enumerate(rows(text, form), 1), max(first, 1) - 1, last or None)
    limit = int(options.get("MAXERRORS", 10))
    found = _read(wanted, form, cells, limit, keep_nulls="KEEPNULLS" in options)
    yield from _told(frame, node, found)
    names = tuple(column.name for _, column in used)
    types = tuple(column.type for _, column in used)
    places = tuple(table.columns.index(column) for _, column in used)
    flags = frozenset(_FLAGS.get(name, name) for name, text in node.options if not text)
    target = BulkTarget(frame, table, places, types, flags)
    return (yield from load(target, BulkData(names, types, found.rows)))


def _check_options(options: dict[str, str]) -> None:
    for name in _UNKNOWN:
        if name in options:
            raise error(40517, option=name)
    if options.get("DATAFILETYPE", "char").lower() not in _FILE_TYPES:
        raise error(40517, option=f"DATAFILETYPE = '{options['DATAFILETYPE']}'")


def _form(options: dict[str, str], count: int) -> FileForm:
    return FileForm(count, options.get("FIELDTERMINATOR", "\\t"), options.get("ROWTERMINATOR", "\\n"))


def _page(options: dict[str, str]) -> str:
    wide = options.get("DATAFILETYPE", "").lower() == "widechar"
    return "1200" if wide else options.get("CODEPAGE", "RAW")


def _cell(table: Table, column: Any) -> Callable[[str], Any]:
    """A field's text as a value of its column; binary values are written as hexadecimal digits."""
    if column.type.name in ("binary", "varbinary", "image", "hierarchyid", "geometry", "geography"):
        return bytes.fromhex
    return assigner(_TEXT, column.type, table=table.long_name, column=column.name)


def _read(
    lines: Iterable[tuple[int, list[str]]], form: FileForm, cells: list[tuple[int, Any, Callable[[str], Any]]],
    limit: int, *, keep_nulls: bool,
) -> _Load:  # fmt: skip
    found = _Load()
    for number, fields in lines:
        try:
            found.rows.append(tuple(_values(number, fields, form, cells, keep_nulls=keep_nulls)))
        except SqlError as fault:
            found.faults.append(fault)
            found.fatal = fault.number == 4832 or len(found.faults) > limit
            if found.fatal:
                if fault.number != 4832:
                    found.faults.append(SqlError(
                        4865, f"Cannot bulk load because the maximum number of errors ({limit}) was exceeded."
                    ))  # fmt: skip
                break
    return found


def _values(
    number: int, fields: list[str], form: FileForm, cells: list[tuple[int, Any, Callable[[str], Any]]], *,
    keep_nulls: bool,
) -> Iterator[Any]:  # fmt: skip
    """The values of one row; an empty field is NULL."""
    if len(fields) == 1 and fields[0].endswith(CUT_SHORT):
        raise SqlError(4832, "Bulk load: An unexpected end of file was encountered in the data file.")
    if len(fields) != form.fields:
        raise _fault(4864, number, min(len(fields), form.fields), cells[-1][1].name)
    for place, column, make in cells:
        written = fields[place]
        if not written:
            if not column.nullable and (keep_nulls or column.default is None):
                raise SqlError(
                    4869, f"The bulk load failed. Unexpected NULL value in data file row {number}, column {place + 1}. "
                    f"The destination column ({column.name}) is defined as NOT NULL."
                )  # fmt: skip
            yield None
            continue
        if written == _EMPTY:
            written = ""
        try:
            if not is_text(written):
                raise ValueError
            value = make(written)
        except SqlError as failure:
            kind = 4863 if failure.number in _TRUNCATED else 4864
            raise _fault(kind, number, place + 1, column.name) from failure
        except ValueError as failure:
            raise _fault(4864, number, place + 1, column.name) from failure
        yield value


def _fault(kind: int, row: int, column: int, name: str) -> SqlError:
    what = "truncation" if kind == 4863 else "type mismatch or invalid character for the specified codepage"
    return SqlError(kind, f"Bulk load data conversion error ({what}) for row {row}, column {column} ({name}).")


def _told(frame: Frame, node: st.BulkInsert, found: _Load) -> Steps:
    """Report the skipped rows. Too many, or a truncated file, end the load: TRY sees the last of those errors."""
    faults = (
        [*found.faults, *(SqlError(number, text) for number, text in _PROVIDER.items())]
        if found.fatal
        else found.faults
    )
    told = faults[:-1] if found.fatal else faults
    if not frame.session.try_depth:
        for fault in told:
            locate(frame, node, fault)
            yield message_of(fault)
    if found.fatal:
        raise faults[-1]
    return None


HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {st.BulkInsert: bulk_insert}
