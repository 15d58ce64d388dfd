"""Statements for a driver that corrupts non-ASCII characters; their parameters reach the server unchanged."""

from __future__ import annotations

import re
from collections.abc import Sequence

_MOST_CHARACTERS = 4_000
"""The largest length of an nvarchar other than (max)."""
_NO_MARKER = r"\[(?:[^\]]|\]\])*\]|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/"
_MARKER = re.compile(rf"({_NO_MARKER})|\?", re.DOTALL)


def in_ascii(sql: str, parameters: Sequence[str | None] = ()) -> str:
    """An equivalent statement that has only ASCII characters.

    arrow-odbc passes statements as bytes, which a driver reads in the process's code page; there, Microsoft's driver
    supports no characters beyond U+FFFF. Names may have any, so the text travels as a binary literal.

    Args:
        sql: the statement, with `?` for each parameter.
        parameters: their texts: sp_executesql truncates what is longer than its declaration, without an error.
    """
    if sql.isascii():
        return sql
    names: list[str] = []

    def named(found: re.Match[str]) -> str:
        if found[1] is not None:
            return found[1]
        names.append(f"@p{len(names)}")
        return names[-1]

    inner = _MARKER.sub(named, sql)
    sizes = ("max" if len(value or "") > _MOST_CHARACTERS else _MOST_CHARACTERS for value in parameters)
    declared = ", ".join(f"{name} nvarchar({size})" for name, size in zip(names, sizes, strict=True))
    given = f", N'{declared}', {', '.join(f'{name} = ?' for name in names)}" if names else ""
    return (
        f"DECLARE @statement nvarchar(max) = CAST(0x{inner.encode('utf-16-le').hex()} AS nvarchar(max)); "
        f"EXEC sys.sp_executesql @statement{given}"
    )
