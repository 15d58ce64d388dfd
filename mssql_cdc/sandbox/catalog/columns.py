"""Columns of system result sets, written as text: `"name sysname, object_id int, definition nvarchar(max)?"`.

A `?` after the type makes a column nullable. Every view, procedure and metadata table of the catalogue and of change
data capture is declared this way.
"""

from __future__ import annotations

import re
from functools import lru_cache

from mssql_cdc.sandbox.engine.types import ResultColumn, SqlType, parse_type

_COLUMN = re.compile(r"\s*(\w[\w$#]*)\s+([A-Za-z0-9]+(?:\s*\([^)]*\))?)\s*(\?)?\s*(?:,|$)")


@lru_cache(maxsize=512)
def columns(specification: str) -> tuple[ResultColumn, ...]:
    """The columns which `specification` spells out.

    Raises:
        ValueError: a part of the text is no column; the message shows it.
    """
    result: list[ResultColumn] = []
    position = 0
    while position < len(specification.rstrip()):
        match = _COLUMN.match(specification, position)
        if match is None:
            raise ValueError(f"no column at {specification[position : position + 40]!r}; expected 'name type[?]'")
        name, type_text, nullable = match.groups()
        result.append(ResultColumn(name, column_type(type_text), nullable=nullable is not None))
        position = match.end()
    return tuple(result)


def column_type(text: str) -> SqlType:
    """A system column's type; its strings have the server's default collation."""
    return parse_type(text)
