"""The type of a column in ODBC's terms, as `sp_columns[_100]` reports it.

Pure: a type and two flags in, numbers out. The procedure itself is in `odbc_procedures`. Sources: `sp_columns` [doc];
the numbers that the JDBC driver passes to Debezium [wire].
"""

from __future__ import annotations

from dataclasses import dataclass

from mssql_sandbox.engine.types import SqlType, reported_name

_CODES: dict[str, tuple[int, int, int]] = {
    "image": (-4, 34, 34),
    "text": (-1, 35, 35),
    "ntext": (-10, 35, 35),
    "uniqueidentifier": (-11, 37, 37),
    "date": (91, 0, 0),
    "time": (-154, 0, 0),
    "datetime2": (93, 0, 0),
    "datetimeoffset": (-155, 0, 0),
    "datetime": (93, 111, 61),
    "smalldatetime": (93, 111, 58),
    "bit": (-7, 50, 50),
    "tinyint": (-6, 38, 48),
    "smallint": (5, 38, 52),
    "int": (4, 38, 56),
    "bigint": (-5, 108, 63),
    "real": (7, 109, 59),
    "float": (6, 109, 62),
    "decimal": (3, 106, 106),
    "numeric": (2, 108, 108),
    "money": (3, 110, 60),
    "smallmoney": (3, 110, 122),
    "sql_variant": (-150, 39, 39),
    "hierarchyid": (-151, 23, 23),
    "geometry": (-151, 23, 23),
    "geography": (-151, 23, 23),
    "varbinary": (-3, 37, 37),
    "binary": (-2, 37, 45),
    "rowversion": (-2, 37, 45),
    "varchar": (12, 39, 39),
    "char": (1, 39, 47),
    "nvarchar": (-9, 39, 39),
    "nchar": (-8, 39, 47),
    "xml": (-152, 0, 0),
}
"""ODBC 3 code, TDS token (`SS_DATA_TYPE`) of a nullable column, and of one that is not nullable."""
_INTEGER_SIZES = {"bit": (1, 1), "tinyint": (3, 1), "smallint": (5, 2), "int": (10, 4), "bigint": (19, 8)}
_FIXED: dict[str, tuple[int, int, int | None, int | None]] = {
    "money": (19, 21, 4, 10),
    "smallmoney": (10, 12, 4, 10),
    "float": (53, 8, None, 2),
    "real": (24, 4, None, 2),
    "text": (2147483647, 2147483647, None, None),
    "ntext": (1073741823, 2147483646, None, None),
    "image": (2147483647, 2147483647, None, None),
    "rowversion": (8, 8, None, None),
    "date": (10, 6, 0, None),
    "datetime": (23, 16, 3, None),
    "smalldatetime": (16, 16, 0, None),
    "uniqueidentifier": (36, 16, None, None),
    "xml": (0, 0, None, None),
    "sql_variant": (0, 8000, 0, 10),
    "hierarchyid": (892, 892, None, None),
    "geometry": (0, 0, None, None),
    "geography": (0, 0, None, None),
}
_TIMES = {"time": (8, 12), "datetime2": (19, 16), "datetimeoffset": (26, 20)}
_DATETIME_SUB = {"date": 1, "datetime": 3, "smalldatetime": 3, "datetime2": 3, "time": 0, "datetimeoffset": 0}
_TEXTUAL = frozenset({"char", "varchar", "nchar", "nvarchar", "binary", "varbinary"})


@dataclass(frozen=True, slots=True)
class OdbcColumn:
    """The type-dependent columns of `sp_columns`, named as in its result set."""

    data_type: int
    type_name: str
    precision: int
    length: int
    scale: int | None
    radix: int | None
    sql_data_type: int
    sql_datetime_sub: int | None
    char_octet_length: int | None
    ss_data_type: int


def _sizes(type_: SqlType) -> tuple[int, int, int | None, int | None]:
    """PRECISION, LENGTH, SCALE and RADIX."""
    name = type_.name
    if name in _INTEGER_SIZES:
        precision, length = _INTEGER_SIZES[name]
        return (precision, length, None, None) if name == "bit" else (precision, length, 0, 10)
    if name in ("decimal", "numeric"):
        return type_.precision, type_.precision + 2, type_.scale, 10
    if name in _TIMES:
        precision, length = _TIMES[name]
        return precision + (type_.scale + 1 if type_.scale else 0), length, type_.scale, None
    if name in _TEXTUAL:
        characters = max(type_.length, 0)
        return characters, characters * (2 if name.startswith("n") else 1), None, None
    return _FIXED[name]


def odbc_column(type_: SqlType, *, nullable: bool, identity: bool, odbc_version: int) -> OdbcColumn:
    """Describe a column's type for the given ODBC version (2 or 3)."""
    odbc3, token, token_not_null = _CODES[type_.name]
    code = odbc3 if odbc_version >= 3 else {91: 9, 93: 11}.get(odbc3, odbc3)
    precision, length, scale, radix = _sizes(type_)
    if odbc_version < 3 and type_.name in ("float", "real"):
        precision, radix = (15 if type_.name == "float" else 7), 10
    octets = length if type_.name in _TEXTUAL or type_.name in ("text", "ntext", "image", "rowversion", "xml") else None
    sub = _DATETIME_SUB.get(type_.name)
    name = reported_name(type_)
    if identity:
        name += "() identity" if type_.name in ("decimal", "numeric") else " identity"
    return OdbcColumn(
        data_type=code,
        type_name=name,
        precision=precision,
        length=length,
        scale=scale,
        radix=radix,
        sql_data_type=9 if odbc3 in (91, 93) else code,
        sql_datetime_sub=sub,
        char_octet_length=octets,
        ss_data_type=token if nullable else token_not_null,
    )
