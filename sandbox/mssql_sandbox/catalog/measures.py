"""The sizes of a type in the terms of INFORMATION_SCHEMA: characters, bytes, precision, radix, scale, fraction."""

from __future__ import annotations

from dataclasses import dataclass

from mssql_sandbox.engine.types import SqlType

_EXACT = frozenset({"tinyint", "smallint", "int", "bigint", "decimal", "numeric", "money", "smallmoney"})
_DATES = {"date": 0, "datetime": 3, "smalldatetime": 0}
_LOB_LENGTHS = {"text": (2147483647, 2147483647), "image": (2147483647, 2147483647), "ntext": (1073741823, 2147483646)}


@dataclass(frozen=True, slots=True)
class Measures:
    """Sizes of a type; None where they do not apply. (max) and xml have length -1."""

    characters: int | None = None
    octets: int | None = None
    precision: int | None = None
    radix: int | None = None
    scale: int | None = None
    fraction: int | None = None


def measures(type_: SqlType) -> Measures:
    """The sizes of a column of this type."""
    name = type_.name
    if name in ("char", "varchar", "binary", "varbinary"):
        return Measures(type_.length, type_.length)
    if name in ("nchar", "nvarchar"):
        return Measures(type_.length, type_.length if type_.length < 0 else 2 * type_.length)
    if name in _LOB_LENGTHS:
        return Measures(*_LOB_LENGTHS[name])
    if name in ("xml", "geometry", "geography"):
        return Measures(-1, -1)
    if name == "hierarchyid":
        return Measures(892, 892)
    if name in _EXACT:
        return Measures(precision=type_.precision, radix=10, scale=type_.scale)
    if name in ("float", "real"):
        return Measures(precision=type_.precision, radix=2)
    if name in ("time", "datetime2", "datetimeoffset"):
        return Measures(fraction=type_.scale)
    return Measures(fraction=_DATES.get(name))
