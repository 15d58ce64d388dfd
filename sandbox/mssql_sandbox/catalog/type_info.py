"""The result of `sp_datatype_info[_100]`, from which drivers size their parameters.

One row per type name, in terms of ODBC 3; ODBC 2 differs in the codes of date and time types and in the precision of
`float` and `real`. Older clients (`sp_datatype_info`) get the types of 2008 as `nvarchar`. Source: the documented
result set of `sp_datatype_info` [doc]; values [fab].
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace


@dataclass(frozen=True, slots=True)
class TypeInfo:
    """One row of the result set, in the order of its columns."""

    type_name: str
    data_type: int
    precision: int
    literal_prefix: str | None
    literal_suffix: str | None
    create_params: str | None
    nullable: int
    case_sensitive: int
    searchable: int
    unsigned_attribute: int | None
    money: int
    auto_increment: int | None
    local_type_name: str
    minimum_scale: int | None
    maximum_scale: int | None
    sql_data_type: int
    sql_datetime_sub: int | None
    num_prec_radix: int | None
    interval_precision: int | None
    usertype: int


def _number(name: str, code: int, precision: int, usertype: int, **differences: object) -> list[TypeInfo]:
    """A numeric type and, unless `identity` is None, its identity form."""
    identity = differences.pop("identity", f"{name} identity")
    row = TypeInfo(
        name, code, precision, None, None, None, 1, 0, 2, 0, 0, 0, name, 0, 0, code, None, 10, None, usertype
    )
    row = replace(row, **differences)  # type: ignore[arg-type]
    if not isinstance(identity, str):
        return [row]
    params = "precision" if row.create_params else None
    own = replace(
        row,
        type_name=identity,
        local_type_name=identity,
        nullable=0,
        auto_increment=1,
        create_params=params,
        maximum_scale=0,
    )
    return [row, own]


def _other(
    name: str, code: int, precision: int, usertype: int = 0, *, quotes: str | None = None, **differences: object
) -> list[TypeInfo]:
    """A type that is not numeric; `quotes` is the prefix of its literals."""
    suffix = "'" if quotes and quotes.endswith("'") else None
    row = TypeInfo(
        name, code, precision, quotes, suffix, None, 1, 0, 2, None, 0, None, name, None, None, code, None, None, None,
        usertype,
    )  # fmt: skip
    return [replace(row, **differences)]  # type: ignore[arg-type]


def _time(
    name: str, code: int, precision: int, scales: tuple[int | None, int], *, sub: int, usertype: int = 0, **more: object
) -> list[TypeInfo]:
    return _other(
        name,
        code,
        precision,
        usertype,
        quotes="'",
        searchable=3,
        minimum_scale=scales[0],
        maximum_scale=scales[1],
        sql_datetime_sub=sub,
        **more,
    )


_EXACT = {"create_params": "precision,scale", "maximum_scale": 38}
_MONEY = {"literal_prefix": "$", "money": 1, "minimum_scale": 4, "maximum_scale": 4, "identity": None}
_BINARY = {"minimum_scale": None, "maximum_scale": None, "num_prec_radix": 2, "identity": None}

_ROWS: tuple[TypeInfo, ...] = tuple(
    row
    for rows in (
        _time("datetimeoffset", -155, 34, (0, 7), sub=0, create_params="scale"),
        _time("time", -154, 16, (0, 7), sub=0, create_params="scale"),
        _other("xml", -152, 0, quotes="N'", case_sensitive=1, searchable=0),
        _other("sql_variant", -150, 8000, minimum_scale=0, maximum_scale=0, num_prec_radix=10),
        _other("uniqueidentifier", -11, 36, quotes="'"),
        _other("ntext", -10, 1073741823, quotes="N'", searchable=1),
        _other("nvarchar", -9, 4000, quotes="N'", searchable=3, create_params="max length"),
        _other("sysname", -9, 128, 18, quotes="N'", searchable=3, nullable=0),
        _other("nchar", -8, 4000, quotes="N'", searchable=3, create_params="length"),
        _other("bit", -7, 1, 16, minimum_scale=0, maximum_scale=0),
        _number("tinyint", -6, 3, 5, unsigned_attribute=1),
        _number("bigint", -5, 19, 0),
        _other("image", -4, 2147483647, 20, quotes="0x", searchable=0),
        _other("varbinary", -3, 8000, 4, quotes="0x", create_params="max length"),
        _other("binary", -2, 8000, 3, quotes="0x", create_params="length"),
        _other("timestamp", -2, 8, 80, quotes="0x", nullable=0),
        _other("text", -1, 2147483647, 19, quotes="'", searchable=1),
        _other("char", 1, 8000, 1, quotes="'", searchable=3, create_params="length"),
        _number("numeric", 2, 38, 10, identity="numeric() identity", **_EXACT),
        _number("decimal", 3, 38, 24, identity="decimal() identity", **_EXACT),
        _number("money", 3, 19, 11, **_MONEY),
        _number("smallmoney", 3, 10, 21, **_MONEY),
        _number("int", 4, 10, 7),
        _number("smallint", 5, 5, 6),
        _number("float", 6, 53, 8, **_BINARY),
        _number("real", 7, 24, 23, **_BINARY),
        _other("varchar", 12, 8000, 2, quotes="'", searchable=3, create_params="max length"),
        _time("date", 91, 10, (None, 0), sub=1, sql_data_type=9),
        _time("datetime2", 93, 27, (0, 7), sub=3, sql_data_type=9, create_params="scale"),
        _time("datetime", 93, 23, (3, 3), sub=3, usertype=12, sql_data_type=9),
        _time("smalldatetime", 93, 16, (0, 0), sub=3, usertype=22, sql_data_type=9),
    )
    for row in rows
)

_TYPES_OF_2008 = frozenset({"date", "time", "datetime2", "datetimeoffset"})


def _as_odbc2(row: TypeInfo) -> TypeInfo:
    """ODBC 2: its own codes of dates and times, decimal digits instead of bits for floating-point numbers."""
    codes = {91: 9, 93: 11}
    if row.type_name in ("float", "real"):
        return replace(row, precision=15 if row.type_name == "float" else 7, num_prec_radix=10)
    return replace(row, data_type=codes.get(row.data_type, row.data_type))


def _order(row: TypeInfo) -> tuple[int, int, int, int]:
    return row.data_type, -1 if row.auto_increment is None else row.auto_increment, row.money, row.usertype


def type_info_rows(*, data_type: int, odbc_version: int, types_of_2008: bool) -> list[tuple[object, ...]]:
    """The rows for one ODBC type code, or for all types when it is 0, in the documented order."""
    rows = [row if odbc_version >= 3 else _as_odbc2(row) for row in _ROWS]
    if not types_of_2008:
        rows = [replace(row, data_type=-9) if row.type_name in _TYPES_OF_2008 else row for row in rows]
    return [astuple(row) for row in sorted(rows, key=_order) if data_type in (0, row.data_type)]
