"""What FOR JSON and FOR XML share: values as ISO text, the levels of AUTO, rows of one parent."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from mssql_sandbox.engine import types as t
from mssql_sandbox.engine.conversion import convert
from mssql_sandbox.exec.query.operators import Slice
from mssql_sandbox.exec.scope import Field

_BINARY = frozenset({"binary", "varbinary", "image", "rowversion"})


def plain_text(value: Any, type_: t.SqlType) -> str:
    """A value as both formats write it: ISO 8601 dates, base64 of binary values, floats with an exponent."""
    if type_.name in _BINARY:
        return base64.b64encode(value).decode()
    if type_.name in t.APPROXIMATE:
        mantissa, _, exponent = f"{value:.{7 if type_.name == 'real' else 15}e}".partition("e")
        return f"{mantissa}e{exponent[0]}{int(exponent[1:]):03d}"
    if type_.name in t.NUMBERS:
        return str(value) if type_.name in t.INTEGERS else f"{value:f}"
    style = 126 if type_.name in ("datetime", "datetime2", "datetimeoffset", "smalldatetime", "date") else None
    return str(convert(value, type_, t.nvarchar(t.MAX), style=style))


def auto_levels(fields: Sequence[Field]) -> list[tuple[str, list[int]]]:
    """Tables of AUTO mode in the order in which their columns come, with the places of those columns."""
    levels: dict[str, list[int]] = {}
    for place, field in enumerate(fields):
        levels.setdefault(field.qualifier[-1] if field.qualifier else "", []).append(place)
    return list(levels.items())


def same_parents(rows: Slice, places: Sequence[int]) -> Iterable[tuple[tuple, Slice]]:
    """Neighbouring rows that agree in the columns of one level: they share one parent."""
    for cells, group in groupby(rows, key=lambda row: tuple(row[place] for place in places)):
        yield cells, list(group)
