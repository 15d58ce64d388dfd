"""Errors of API cursors, with SQL Server's texts."""

from __future__ import annotations

from mssql_sandbox.errors import SqlError

_TEXTS = {
    16902: "{procedure}: The value of the parameter '{parameter}' is invalid.",
    16909: "{procedure}: The cursor identifier value provided ({handle}) is not valid.",
    16911: "{procedure}: The fetch type {fetch} cannot be used with forward only cursors.",
    16929: "The cursor is READ ONLY.",
    16930: "The requested row is not in the fetch buffer.",
    16934: "Optimistic concurrency check failed. The row was modified outside of this cursor.",
    16937: (
        "A server cursor cannot be opened on the given statement or statements. Use a default result set or client "
        "cursor."
    ),
    16947: "No rows were updated or deleted.",
}


def cursor_error(number: int, **values: object) -> SqlError:
    """The error of this number; `values` fill the placeholders of its text."""
    return SqlError(number, _TEXTS[number].format(**values))
