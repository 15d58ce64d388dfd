"""String functions on single characters and on names: codes, quoting, escapes; the rows of STRING_SPLIT."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from mssql_sandbox.engine.conversion_numbers import half_up
from mssql_sandbox.engine.functions.definition import TEXT, Call, Registry, wide_text
from mssql_sandbox.engine.types import (
    BIGINT,
    FLOAT,
    INT,
    MAX,
    SqlType,
    nvarchar,
    varchar,
)  # fmt: skip
from mssql_sandbox.errors import SqlError, error

registry = Registry()
add = registry.add


@add("ASCII", 1, result=INT)
def _ascii(call: Call) -> Callable[..., Any]:
    text = call.as_text(0)

    def ascii_(value: Any) -> int | None:
        first = text(value)[:1]
        if not first:
            return None
        return call.collation.encode(first)[0] if call.collation else first.encode("cp1252", "replace")[0]

    return ascii_


@add("UNICODE", 1, result=INT)
def _unicode(call: Call) -> Callable[..., Any]:
    text = call.as_units(0)
    return lambda value: ord(text(value)[0]) if text(value) else None


@add("CHAR", 1, result=lambda call: SqlType("char", 1, collation=call.collation))
def _char(call: Call) -> Callable[..., Any]:
    number = call.to(0, INT)

    def char(value: Any) -> str | None:
        code = number(value)
        if not 0 <= code <= 255:
            return None
        return call.collation.decode(bytes((code,))) if call.collation else bytes((code,)).decode("latin-1")

    return char


@add("NCHAR", 1, result=lambda call: SqlType("nchar", 1, collation=call.collation))
def _nchar(call: Call) -> Callable[..., Any]:
    number = call.to(0, INT)
    return lambda value: chr(number(value)) if 0 <= number(value) <= 0x10FFFF else None


@add("QUOTENAME", 1, 2, result=nvarchar(258), takes={1: TEXT})
def _quotename(call: Call) -> Callable[..., Any]:
    text = call.as_text(0)
    pairs = {"[": "[]", "]": "[]", "'": "''", '"': '""', "(": "()", ")": "()", "<": "<>", ">": "<>", "{": "{}",
             "}": "{}", "`": "``"}  # fmt: skip

    def quotename(value: Any, quote: str = "[") -> str | None:
        name, pair = text(value), pairs.get(quote[:1])
        if pair is None or len(name) > 128:
            return None
        return pair[0] + name.replace(pair[1], pair[1] * 2) + pair[1]

    return quotename


@add("PARSENAME", 2, result=nvarchar(128))
def _parsename(call: Call) -> Callable[..., Any]:
    text, number = call.as_text(0), call.to(1, INT)

    def parsename(value: Any, part: Any) -> str | None:
        pieces = _name_parts(text(value))
        place = number(part)
        if not 1 <= place <= 4 or len(pieces) > 4 or place > len(pieces):
            return None
        return pieces[-place] or None

    return parsename


def _name_parts(text: str) -> list[str]:
    parts, current, closing = [], "", ""
    for character in text:
        if closing:
            if character == closing:
                closing = ""
            else:
                current += character
        elif character in '["':
            closing = "]" if character == "[" else '"'
        elif character == ".":
            parts.append(current)
            current = ""
        else:
            current += character
    return [*parts, current]


@add("STR", 1, 3, result=varchar(8000), takes={1: INT, 2: INT})
def _str(call: Call) -> Callable[..., Any]:
    number = call.to(0, FLOAT)

    def str_(value: Any, length: int = 10, digits: int = 0) -> str:
        digits = min(digits, 16)
        text = f"{half_up(number(value), digits):f}"
        if len(text) > length:
            whole = len(text.split(".", maxsplit=1)[0])
            if whole > length:
                return "*" * length
            text = f"{half_up(number(value), max(0, length - whole - 1)):f}"
        return text.rjust(length)

    return str_


@add(".WRITE", 4, result=lambda call: call.types[0], null_if_null=False)
def _write(call: Call) -> Callable[..., Any]:
    """UPDATE … SET column.WRITE(part, offset, length): a NULL offset appends, a NULL part truncates at the offset."""
    kept = call.types[0]
    if kept.length != MAX or kept.name not in {"varchar", "nvarchar", "varbinary"}:
        raise SqlError(258, f"Cannot call methods on {kept.name}.", severity=15)
    part_of, number = call.to(1, kept), (call.to(2, BIGINT), call.to(3, BIGINT))

    def write(value: Any, part: Any, offset: Any, length: Any) -> Any:
        if value is None:
            raise SqlError(7124, "The offset and length specified in the .WRITE method are not in a value: it is NULL.")
        part = None if part is None else part_of(part)
        start = len(value) if offset is None else number[0](offset)
        count = len(value) - start if length is None else number[1](length)
        if start < 0 or start > len(value):
            raise SqlError(7135, "Deletion length or offset is not in the range of available data.")
        if part is None:
            return value[:start]
        return value[:start] + part + value[start + max(count, 0) :]

    return write


@add("STRING_ESCAPE", 2, result=lambda call: wide_text(call, 0, length=MAX))
def _string_escape(call: Call) -> Callable[..., Any]:
    text = call.as_text(0)
    return lambda value, _kind: json.dumps(text(value), ensure_ascii=False)[1:-1].replace("/", "\\/")


def string_split(text: str | None, separator: str, *, ordinal: bool = False) -> Iterator[tuple]:
    """Rows of STRING_SPLIT: (value,) or (value, ordinal); error 214 unless the separator is one character."""
    if len(separator) != 1:
        raise error(214, name="separator", type="nchar(1)/nvarchar(1)")
    if text is None:
        return
    for number, part in enumerate(text.split(separator), 1):
        yield (part, number) if ordinal else (part,)


__all__ = ["registry", "string_split"]
