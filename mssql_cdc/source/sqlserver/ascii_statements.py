"""Statements for a driver that corrupts characters beyond ASCII; their parameters reach the server as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence

_MOST_CHARACTERS = 4_000
"""Of an nvarchar with a size."""
_NO_MARKER = r"\[(?:[^\]]|\]\])*\]|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/"
_MARKER = re.compile(rf"({_NO_MARKER})|\?", re.DOTALL)


def in_ascii(sql: str, parameters: Sequence[str | None] = ()) -> str:
    """A statement that means the same and has only ASCII characters.

    arrow-odbc hands statements over as bytes, which a driver reads in the process's code page; Microsoft's
    driver knows no characters beyond U+FFFF there. Names may have any, so the text travels as a binary literal.

    Args:
        sql: the statement, with `?` for each parameter.
        parameters: their texts: sp_executesql cuts what is longer than its declaration, without an error.
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
