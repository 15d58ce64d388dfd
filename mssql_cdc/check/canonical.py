"""One canonical text per SQL Server value, made twice: by T-SQL from the source, by Python from the lake.

This module shares no code with capture's readers, so a mistake there shows up as a difference. For each kind of type,
it defines an expression with `{c}` for the column, the conversion of the returned text, and the same text from the
Arrow value and its exact text. A type that needs its own expression has it in its row (`check`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from mssql_cdc.schema import TYPES, Column, Kind, SqlServerType, TypeRow

_MOMENT = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?)?(?: ?([+-])(\d\d):(\d\d))?")
_LONE = re.compile("[\ud800-\udfff]")
_EPOCH_DAYS = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Canon:
    """How one type becomes canonical text.

    `select` is T-SQL; `source` turns what pyodbc returns into the text; `lake` does so with (value, exact text).
    """

    select: str
    source: Callable[[Any], str]
    lake: Callable[[Any, str | None], str]


def canon(sql_type: SqlServerType) -> Canon:
    """The canon of a type: its kind's, with the type's own `check` expression where it has one (raises SchemaError)."""
    return _CANONS[sql_type.row.name]


def source_text(column: Column, value: Any) -> str | None:
    """The canonical text of what pyodbc fetched with the `select` of the column's canon; None for NULL."""
    return None if value is None else canon(column.type).source(value)


def lake_text(column: Column, value: Any, exact: str | None) -> str | None:
    """The canonical text of a value in the lake; None for NULL.

    Args:
        column: says which type it is.
        value: as `sides` reads it: dates as days and times as microseconds since 1970.
        exact: its entry in `_exact`, if it has one.
    """
    return None if value is None and exact is None else canon(column.type).lake(value, exact)


def _plain(value: Any, _: str | None = None) -> str:
    return str(value)


def _number(value: Decimal, _: str | None = None) -> str:
    return f"{value:f}"


def _bits(value: Any, _: str | None = None) -> str:
    """A float's exact value; the source's 17 digits name it uniquely."""
    return float(value).hex()


def _hex(value: bytes, _: str | None = None) -> str:
    return bytes(value).hex()


def _utf16(value: str | None, exact: str | None) -> str:
    """The bytes that SQL Server stores for national text.

    A `utf16:` text contains what UTF-8 cannot encode; the value must then be the same text with its lone surrogates
    replaced; otherwise the result shows the contradiction.
    """
    if exact is None:
        return (value or "").encode("utf-16-le", "surrogatepass").hex()
    text = bytes.fromhex(exact.removeprefix("utf16:")).decode("utf-16-be", "surrogatepass")
    stored = text.encode("utf-16-le", "surrogatepass").hex()
    return stored if value in {None, _LONE.sub("\ufffd", text)} else f"{stored} but stored as {value!r}"


def _source_moment(value: str) -> str:
    return _Moment.parse(value).text


def _lake_moment(value: datetime | int | None, exact: str | None) -> str:
    """Return a timestamp's microseconds; if they contradict an exact text, the text shows the contradiction."""
    micros = value if isinstance(value, int) else None
    if exact is None:
        return "" if micros is None else _Moment.of_micros(micros).text
    moment = _Moment.parse(exact)
    return moment.text if moment.micros == micros else f"{moment.text} but stored as {micros}"


def _lake_date(value: int, _: str | None = None) -> str:
    return _Moment.of_micros(value * 86_400_000_000).text


def _variant_source(value: str) -> str:
    """`base|precision|scale|length|collation|text`, the text in the base type's own canonical form."""
    *properties, text = value.split("|", 5)
    return "|".join([*properties, _variant_text(properties[0], text)])


def _variant_lake(value: str | None, exact: str | None) -> str:
    known = json.loads(exact or "{}")
    properties = [str(known.get(name, "")) for name in ("base", "precision", "scale", "length", "collation")]
    return "|".join([*properties, _variant_text(properties[0], value or "")])


def _variant_text(base: str, text: str) -> str:
    known = TYPES.get(base)
    match known.kind if known else None:
        case Kind.FLOAT:
            return float(text).hex()
        case Kind.DATE | Kind.TIMESTAMP | Kind.INSTANT:
            return _Moment.parse(text).text
        case Kind.TIME:
            return _time(text)
        case Kind.BINARY:
            return text.lower().removeprefix("0x")
        case _:
            return text


def _time(value: str, _: str | None = None) -> str:
    """`hh:mm:ss` with a fraction only where there is one."""
    whole, _, fraction = value.partition(".")
    return f"{whole}.{fraction.rstrip('0')}".rstrip(".")


@dataclass(frozen=True, slots=True)
class _Moment:
    """A point in time in nanoseconds since 0001-01-01, local, and its offset in minutes."""

    nanoseconds: int
    offset: int = 0

    @classmethod
    def parse(cls, text: str) -> _Moment:
        found = _MOMENT.fullmatch(text.strip())
        if not found:
            raise ValueError(f"Not a date or time: {text!r}")
        year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
        days = date(year, month, day).toordinal() - 1
        seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
        offset = int(found[9] or 0) * 60 + int(found[10] or 0)
        fraction = int((found[7] or "0").ljust(9, "0"))
        return cls(seconds * 1_000_000_000 + fraction, -offset if found[8] == "-" else offset)

    @classmethod
    def of_micros(cls, micros: int) -> _Moment:
        """From microseconds since 1970-01-01 (UTC)."""
        return cls((micros + (_EPOCH_DAYS - 1) * 86_400_000_000) * 1000)

    @property
    def micros(self) -> int:
        """Microseconds since 1970-01-01 in UTC, cut, not rounded."""
        utc = self.nanoseconds - self.offset * 60_000_000_000
        return utc // 1000 - (_EPOCH_DAYS - 1) * 86_400_000_000

    @property
    def text(self) -> str:
        days, rest = divmod(self.nanoseconds, 86_400_000_000_000)
        seconds, fraction = divmod(rest, 1_000_000_000)
        shown = f"{days}d {seconds}s" + (f" {fraction}ns" if fraction else "")
        return f"{shown} {self.offset:+d}min" if self.offset else shown


def _variant() -> Canon:
    def property_of(name: str) -> str:
        return f"ISNULL(CAST(SQL_VARIANT_PROPERTY({{c}}, '{name}') AS nvarchar(128)), N'')"

    cases = " ".join(f"WHEN '{row.name}' THEN {text}" for row in TYPES.values() if (text := _variant_case(row)))
    base = "CAST(SQL_VARIANT_PROPERTY({c}, 'BaseType') AS varchar(128))"
    value = f"CASE {base} {cases} ELSE CAST({{c}} AS nvarchar(max)) END"
    names = ("BaseType", "Precision", "Scale", "MaxLength", "Collation")
    joined = " + N'|' + ".join([*map(property_of, names), value])
    return Canon(f"CASE WHEN {{c}} IS NOT NULL THEN {joined} END", _variant_source, _variant_lake)


def _variant_case(row: TypeRow) -> str | None:
    """The text of a sql_variant with this base type; None where the plain conversion loses nothing."""
    if row.kind is Kind.BINARY and row.arguments == "length":
        return "CONVERT(nvarchar(max), CAST({c} AS varbinary(8000)), 2)"
    style = _VARIANT_STYLES.get(row.kind)
    if style is None or row.arguments == "precision and scale":
        return None
    whole = f"{row.name}(7)" if row.arguments == "scale" else row.name
    return f"CONVERT(nvarchar(60), CAST({{c}} AS {whole}), {style})"


_VARIANT_STYLES = {
    Kind.FLOAT: 3, Kind.DECIMAL: 2, Kind.DATE: 23, Kind.TIME: 121, Kind.TIMESTAMP: 121, Kind.INSTANT: 121,
}  # fmt: skip
_WHOLE = Canon("CONVERT(varchar(20), {c})", _plain, lambda value, _: str(int(value)))
_UTF16 = Canon("CAST(CAST({c} AS nvarchar(max)) AS varbinary(max))", _hex, _utf16)
_BYTES = Canon("CAST({c} AS varbinary(max))", _hex, _hex)
_MOMENT_121 = Canon("CONVERT(varchar(40), {c}, 121)", _source_moment, _lake_moment)
_BY_KIND: Mapping[Kind, Canon] = {
    Kind.BOOLEAN: _WHOLE,
    Kind.INTEGER: _WHOLE,
    Kind.DECIMAL: Canon("CONVERT(varchar(60), {c})", _plain, _number),
    Kind.FLOAT: Canon("CONVERT(varchar(60), CAST({c} AS float), 3)", _bits, _bits),
    Kind.TEXT: _UTF16,
    Kind.DOCUMENT: _UTF16,
    Kind.UUID: Canon("CONVERT(char(36), {c})", lambda value: value.upper(), _plain),
    Kind.BINARY: _BYTES,
    Kind.CLR: _BYTES,
    Kind.DATE: Canon("CONVERT(char(10), {c}, 23)", _source_moment, _lake_date),
    Kind.TIME: Canon("CONVERT(varchar(16), {c}, 121)", _time, _time),
    Kind.TIMESTAMP: _MOMENT_121,
    Kind.INSTANT: _MOMENT_121,
    Kind.VARIANT: _variant(),
}
_CANONS: Mapping[str, Canon] = {
    name: replace(_BY_KIND[row.kind], select=row.check or _BY_KIND[row.kind].select) for name, row in TYPES.items()
}
