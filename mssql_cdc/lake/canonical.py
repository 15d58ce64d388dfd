"""One canonical text per value in the lake; the source's check session produces the same from its own values.

Nothing here shares code with how capture reads, so a mistake there shows up as a difference.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from mssql_cdc.schema import Column, Kind
from mssql_cdc.source.canonical import LONE_SURROGATE, Moment, time_text, variant_text

_DAY_MICROS = 86_400_000_000


def lake_text(column: Column, value: Any, exact: str | None) -> str | None:
    """The canonical text of a value in the lake; None for NULL.

    Args:
        column: determines its type.
        value: as `check/sides` reads it: dates as days and timestamps as microseconds since 1970.
        exact: its entry in `_exact`, if it has one.
    """
    return None if value is None and exact is None else _BY_KIND[column.type.kind](value, exact)


def _plain(value: Any, _: str | None) -> str:
    return str(value)


def _whole(value: Any, _: str | None) -> str:
    return str(int(value))


def _number(value: Decimal, _: str | None) -> str:
    return f"{value:f}"


def _bits(value: float, _: str | None) -> str:
    return float(value).hex()


def _hex(value: bytes, _: str | None) -> str:
    return bytes(value).hex()


def _time(value: str, _: str | None) -> str:
    return time_text(value)


def _utf16(value: str | None, exact: str | None) -> str:
    """The bytes that SQL Server stores for national text.

    A `utf16:` text contains what UTF-8 cannot encode; the value must then be the same text with its lone surrogates
    replaced; otherwise the result shows the contradiction.
    """
    if exact is None:
        return (value or "").encode("utf-16-le", "surrogatepass").hex()
    text = bytes.fromhex(exact.removeprefix("utf16:")).decode("utf-16-be", "surrogatepass")
    stored = text.encode("utf-16-le", "surrogatepass").hex()
    return stored if value in {None, LONE_SURROGATE.sub("\ufffd", text)} else f"{stored} but stored as {value!r}"


def _moment(value: datetime | int | None, exact: str | None) -> str:
    """A timestamp's microseconds; an exact text must agree with them, otherwise the result shows the contradiction."""
    micros = value if isinstance(value, int) else None
    if exact is None:
        return "" if micros is None else Moment.of_micros(micros).text
    moment = Moment.parse(exact)
    return moment.text if moment.micros == micros else f"{moment.text} but stored as {micros}"


def _date(value: int, _: str | None) -> str:
    return Moment.of_micros(value * _DAY_MICROS).text


def _variant(value: str | None, exact: str | None) -> str:
    known = json.loads(exact or "{}")
    properties = [str(known.get(name, "")) for name in ("base", "precision", "scale", "length", "collation")]
    text = bytes.fromhex(known.get("utf16", "")).decode("utf-16-be", "surrogatepass")
    if text and LONE_SURROGATE.sub("\ufffd", text) != value:
        return f"{text!a} but stored as {value!r}"
    return "|".join([*properties, variant_text(properties[0], text or value or "")])


_BY_KIND: Mapping[Kind, Callable[[Any, str | None], str]] = {
    Kind.BOOLEAN: _whole,
    Kind.INTEGER: _whole,
    Kind.DECIMAL: _number,
    Kind.FLOAT: _bits,
    Kind.TEXT: _utf16,
    Kind.DOCUMENT: _utf16,
    Kind.UUID: _plain,
    Kind.BINARY: _hex,
    Kind.CLR: _hex,
    Kind.DATE: _date,
    Kind.TIME: _time,
    Kind.TIMESTAMP: _moment,
    Kind.INSTANT: _moment,
    Kind.VARIANT: _variant,
}
