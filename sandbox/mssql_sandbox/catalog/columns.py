"""Columns of system result sets, written as text: `"name sysname, object_id int, definition nvarchar(max)?"`.

A `?` after the type makes a column nullable; `= value` makes it a constant that rows need not supply. All views,
procedure results and metadata tables of the catalogue and of change data capture are declared this way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from mssql_sandbox.engine.collation import collation_named
from mssql_sandbox.engine.types import ResultColumn, SqlType, parse_type

_COLUMN = re.compile(
    r"\s*(\w[\w$#]*)\s+([A-Za-z0-9_]+(?:\s*\([^)]*\))?)\s*(\?)?\s*(?:=\s*('[^']*'|-?\d+|NULL))?\s*(?:,|$)"
)
_COLLATION = "SQL_Latin1_General_CP1_CI_AS"
_SUPPLIED = object()


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a result set, including its constants."""

    columns: tuple[ResultColumn, ...]
    constants: tuple[object, ...]

    def rows(self, supplied: Iterable[tuple]) -> Iterator[tuple]:
        """Complete rows: the supplied values in order, constants in their places."""
        if all(constant is _SUPPLIED for constant in self.constants):
            yield from supplied
            return
        for values in supplied:
            remaining = iter(values)
            yield tuple([next(remaining) if value is _SUPPLIED else value for value in self.constants])


@lru_cache(maxsize=512)
def layout(specification: str) -> Layout:
    """The columns and constants that `specification` declares.

    Raises:
        ValueError: a part of the text is no column; the message shows it.
    """
    result: list[ResultColumn] = []
    constants: list[object] = []
    position = 0
    while position < len(specification.rstrip()):
        match = _COLUMN.match(specification, position)
        if match is None:
            raise ValueError(f"no column at {specification[position : position + 40]!r}; expected 'name type[?] [= x]'")
        name, type_text, nullable, constant = match.groups()
        result.append(ResultColumn(name, column_type(type_text), nullable=nullable is not None or constant == "NULL"))
        constants.append(_SUPPLIED if constant is None else _constant(constant))
        position = match.end()
    return Layout(tuple(result), tuple(constants))


def columns(specification: str) -> tuple[ResultColumn, ...]:
    """Only the columns."""
    return layout(specification).columns


def _constant(text: str) -> object:
    if text == "NULL":
        return None
    return text[1:-1] if text.startswith("'") else int(text)


def column_type(text: str) -> SqlType:
    """The type of a system column; its strings have the server's default collation."""
    return parse_type(text, collation=collation_named(_COLLATION))
