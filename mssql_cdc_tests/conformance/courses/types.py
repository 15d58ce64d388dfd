"""Every SQL Server type, in every mode that concerns it: least, largest, missing and awkward values, and defaults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from mssql_cdc_tests.conformance.workload import NO_SCHEMAS, NULLS, SCHEMAS, Course, Reading, Script, captured

Family = Literal["time", "decimal", "binary", "plain"]
READINGS = (
    Reading(name="connect's defaults", properties=SCHEMAS),
    Reading(name="connect", properties=SCHEMAS | {
        "time.precision.mode": "connect", "decimal.handling.mode": "double",
        "binary.handling.mode": "base64-url-safe",
    }),
    Reading(name="isostring", properties=SCHEMAS | NULLS | {
        "time.precision.mode": "isostring", "decimal.handling.mode": "string", "binary.handling.mode": "hex",
    }),
    Reading(name="microseconds", properties=SCHEMAS | {
        "time.precision.mode": "microseconds", "value.converter.decimal.format": "NUMERIC",
        "key.converter.decimal.format": "NUMERIC", "binary.handling.mode": "base64",
    }),
    Reading(name="nanoseconds", properties=NO_SCHEMAS | {
        "time.precision.mode": "nanoseconds", "decimal.handling.mode": "string",
        "binary.handling.mode": "base64-url-safe",
    }),
    Reading(name="adaptive_time_microseconds", properties=SCHEMAS | NULLS | {
        "time.precision.mode": "adaptive_time_microseconds", "decimal.handling.mode": "double",
        "binary.handling.mode": "hex",
    }),
    Reading(name="no converter", expected=("no-converter",)),
)  # fmt: skip
_ALL = tuple(one.name for one in READINGS)
_BY_FAMILY: dict[Family, tuple[str, ...]] = {
    "time": _ALL,
    "decimal": _ALL,
    "binary": _ALL,
    "plain": ("connect's defaults", "isostring", "no converter"),
}


@dataclass(frozen=True, slots=True)
class Sample:
    """A type: its declaration, values, a literal default, and the group of modes that concern it."""

    name: str
    declaration: str
    values: tuple[str, ...]
    default: str
    family: Family
    restates: str


_TYPES = "DatatypesFromStreamingIT"
_INT, _FP, _STRING = f"{_TYPES}.intTypes", f"{_TYPES}.fpTypes", f"{_TYPES}.stringTypes"
_TIME, _OTHER = f"{_TYPES}.dateTimeTypes", f"{_TYPES}.otherTypes"
_DECIMALS = "SQLServerNumericColumnIT"
_BINARY = "SqlServerBinaryModeIT.shouldReceiveRawBinary"
_POINT = "0x00000000010C000000000000F03F0000000000000040"
_LINE = f"0x000000000114{'00' * 16}000000000000F03F0000000000000040"
"""A point and a line in the form in which the server stores them."""
SAMPLES = (
    Sample("bit", "bit", ("0", "1"), "1", "plain", _INT),
    Sample("tinyint", "tinyint", ("0", "255"), "255", "plain", _INT),
    Sample("smallint", "smallint", ("-32768", "32767"), "-7", "plain", _INT),
    Sample("int", "int", ("-2147483648", "2147483647"), "2147483647", "plain", _INT),
    Sample("bigint", "bigint", ("-9223372036854775808", "9223372036854775807"), "3147483648", "plain", _INT),
    Sample("real", "real", ("-3.4028235E+38", "3.4028235E+38", "1.17549E-38", "0.1", "1E10"), "1.5", "plain", _FP),
    Sample(
        "float",
        "float",
        ("-1.7976931348623157E+308", "1.7976931348623157E+308", "2.2250738585072014E-308", "0.1", "-0.0"),
        "1.25E3",
        "plain",
        _FP,
    ),
    Sample(
        "decimal_18_4",
        "decimal(18, 4)",
        ("-99999999999999.9999", "99999999999999.9999", "0.0001", "0"),
        "1.5",
        "decimal",
        f"{_DECIMALS}.decimalModeConfigPrecise",
    ),
    Sample(
        "decimal_38_10",
        "decimal(38, 10)",
        (
            "-9999999999999999999999999999.9999999999",
            "9999999999999999999999999999.9999999999",
            "0.0000000001",
        ),
        "12.25",
        "decimal",
        f"{_DECIMALS}.decimalModeConfigPrecise",
    ),
    Sample(
        "decimal_38_38",
        "decimal(38, 38)",
        ("0.00000000000000000000000000000000000001", "-0.9"),
        "0",
        "decimal",
        f"{_DECIMALS}.decimalModeConfigString",
    ),
    Sample(
        "numeric_9_0",
        "numeric(9, 0)",
        ("-999999999", "999999999"),
        "42",
        "decimal",
        f"{_DECIMALS}.decimalModeConfigDouble",
    ),
    Sample("money", "money", ("-922337203685477.5808", "922337203685477.5807", "0.0001"), "2.5", "decimal", _FP),
    Sample("smallmoney", "smallmoney", ("-214748.3648", "214748.3647"), "214748.3647", "decimal", _FP),
    Sample("char", "char(5)", ("'abcde'", "'a'", "''"), "'ab'", "plain", _STRING),
    Sample("varchar", "varchar(20)", ("'Zürich'", "''", "'a\"b\\c'"), "'it''s'", "plain", _STRING),
    Sample(
        "varchar_max", "varchar(max)", ("REPLICATE(CAST('x' AS varchar(max)), 9000)", "''"), "'none'", "plain", _STRING
    ),
    Sample("nchar", "nchar(4)", ("N'日本語文'", "N'é'"), "N'né'", "plain", _STRING),
    Sample(
        "nvarchar",
        "nvarchar(30)",
        ("N'Zürich 日本 😀'", "N''", "NCHAR(9) + NCHAR(10) + NCHAR(1)", "N'a' + NCHAR(0) + N'b'"),
        "N'a (b) c'",
        "plain",
        _STRING,
    ),
    Sample(
        "nvarchar_max",
        "nvarchar(max)",
        ("REPLICATE(CAST(N'é' AS nvarchar(max)), 5000)", "N''"),
        "N'none'",
        "plain",
        _STRING,
    ),
    Sample("text", "text", ("'text'", "''"), "'none'", "plain", _STRING),
    Sample("ntext", "ntext", ("N'téxt'", "N''"), "N'none'", "plain", _STRING),
    Sample("sql_variant", "sql_variant", ("CAST(1 AS int)", "CAST(N'é' AS nvarchar(5))"), "1", "plain", _OTHER),
    Sample("hierarchyid", "hierarchyid", ("'/1/2/'", "'/'"), "'/1/'", "plain", _OTHER),
    Sample("geometry", "geometry", (_POINT, _LINE), _POINT, "binary", _OTHER),
    Sample(
        "geography", "geography", (f"0xE610{_POINT[6:]}", f"0xE610{_LINE[6:]}"), f"0xE610{_POINT[6:]}", "binary", _OTHER
    ),
    Sample("sysname", "sysname", ("N'é'", "N''"), "N'none'", "plain", _STRING),
    Sample("xml", "xml", ("N'<a>é</a>'", "N''"), "N'<n/>'", "plain", _OTHER),
    Sample(
        "uniqueidentifier",
        "uniqueidentifier",
        ("'01234567-89ab-cdef-0123-456789abcdef'", "'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF'"),
        "'01234567-89ab-cdef-0123-456789abcdef'",
        "plain",
        f"{_TYPES}.uniqueIdentifierTypes",
    ),
    Sample("binary", "binary(10)", ("0x00010203040506070809", "0xFF"), "0x0102", "binary", _BINARY),
    Sample("varbinary", "varbinary(20)", ("0x", "0xFBFFBF"), "0x0102030405", "binary", _BINARY),
    Sample("varbinary_max", "varbinary(max)", ("0xABAB", "0x"), "0x01", "binary", _BINARY),
    Sample("image", "image", ("0x0102", "0x"), "0x03", "binary", _BINARY),
    Sample(
        "date", "date", ("'0001-01-01'", "'9999-12-31'", "'1582-10-10'", "'2018-07-13'"), "'2019-02-03'", "time", _TIME
    ),
    Sample("time_0", "time(0)", ("'00:00:00'", "'23:59:59'"), "'12:34:56'", "time", _TIME),
    Sample("time_3", "time(3)", ("'00:00:00.001'", "'23:59:59.999'"), "'12:34:56.789'", "time", _TIME),
    Sample("time_5", "time(5)", ("'00:00:00.00001'", "'10:23:45.6789'"), "'12:34:56.78901'", "time", _TIME),
    Sample("time_7", "time(7)", ("'00:00:00.0000001'", "'23:59:59.9999999'"), "'12:34:56.7890123'", "time", _TIME),
    Sample(
        "datetime",
        "datetime",
        ("'1753-01-01'", "'9999-12-31T23:59:59.997'", "'1969-12-31T23:59:59.997'"),
        "'2019-01-01 12:34:56.123'",
        "time",
        _TIME,
    ),
    Sample(
        "smalldatetime",
        "smalldatetime",
        ("'1900-01-01'", "'2079-06-06T23:59:00'", "'2018-07-13T14:23:45'"),
        "'2019-01-01 12:34:56'",
        "time",
        _TIME,
    ),
    Sample(
        "datetime2_0",
        "datetime2(0)",
        ("'0001-01-01'", "'9999-12-31T23:59:59'", "'1582-10-04T23:59:59'"),
        "'2019-01-01 12:34:56'",
        "time",
        _TIME,
    ),
    Sample(
        "datetime2_3",
        "datetime2(3)",
        ("'1969-12-31T23:59:59.999'", "'2018-07-13T11:23:45.345'"),
        "'2019-01-01 12:34:56.789'",
        "time",
        _TIME,
    ),
    Sample(
        "datetime2_5",
        "datetime2(5)",
        ("'0001-01-01'", "'9999-12-31T23:59:59.99999'", "'1969-12-31T23:59:59.99999'", "'2018-07-13T11:23:45.34567'"),
        "'2019-01-01 12:34:56.78901'",
        "time",
        _TIME,
    ),
    Sample(
        "datetime2_7",
        "datetime2(7)",
        (
            "'0001-01-01'",
            "'9999-12-31T23:59:59.9999999'",
            "'2018-07-13T11:23:45.3456789'",
            "'1677-09-21T00:12:43'",
        ),
        "'2019-01-01 12:34:56.7890123'",
        "time",
        _TIME,
    ),
    Sample(
        "datetimeoffset_0",
        "datetimeoffset(0)",
        ("'0001-01-01T14:00:00+14:00'", "'2018-07-13T12:23:45+11:00'"),
        "'2019-01-01 12:34:56 +02:00'",
        "time",
        _TIME,
    ),
    Sample(
        "datetimeoffset_7",
        "datetimeoffset(7)",
        (
            "'0001-01-01T00:00:00.0000001+00:00'",
            "'9999-12-31T09:59:59.9999999-14:00'",
            "'2018-07-13T12:23:45.4567891+00:00'",
            "'1969-12-31T23:59:58.0009999+00:00'",
        ),
        "'2019-01-01 12:34:56.1234567 -05:30'",
        "time",
        _TIME,
    ),
)


def _fractions(kind: str, digits: int, *, zone: str = "") -> Sample:
    """A type of fractions of a second with the digits of its declaration: values that end in its last digit."""
    fraction = f".{'1234567'[:digits]}"
    times = (f"'1969-12-31T23:59:59.{'9' * digits}{zone}'", f"'2018-07-13T11:23:45{fraction}{zone}'")
    if kind == "time":
        times = (f"'00:00:00.{'0' * (digits - 1)}1'", f"'23:59:59.{'9' * digits}'", f"'10:23:45{fraction}'")
    default = f"'12:34:56{fraction}'" if kind == "time" else f"'2019-01-01 12:34:56{fraction}{zone and ' -05:30'}'"
    return Sample(f"{kind}_{digits}", f"{kind}({digits})", times, default, "time", _TIME)


SAMPLES = (
    *SAMPLES,
    *(_fractions("time", digits) for digits in (1, 2, 4, 6)),
    *(_fractions("datetime2", digits) for digits in (1, 2, 4, 6)),
    *(_fractions("datetimeoffset", digits, zone="+05:30") for digits in (1, 2, 3, 4, 5, 6)),
)


def _script(one: Sample) -> Script:
    table = f"type_{one.name}"
    inserts = [f"INSERT INTO dbo.{table} (id, v, n) VALUES ({i}, {v}, {v})" for i, v in enumerate(one.values, start=10)]
    last = one.values[-1]
    read = [f"INSERT INTO dbo.{table} (id, v, n) VALUES ({i}, {v}, {v})" for i, v in enumerate(one.values, start=50)]
    return Script(
        name=one.declaration,
        group="types",
        restates=one.restates,
        tables=(f"dbo.{table}",),
        setup=(
            f"""CREATE TABLE dbo.{table} (id int NOT NULL PRIMARY KEY, v {one.declaration} NULL,
                n {one.declaration} NOT NULL, d {one.declaration} NULL DEFAULT {one.default})""",
            captured(table),
            f"INSERT INTO dbo.{table} (id, v, n) VALUES (1, {one.values[0]}, {last})",
            f"INSERT INTO dbo.{table} (id, v, n, d) VALUES (2, NULL, {last}, NULL)",
            *read,
        ),
        changes=(
            *inserts,
            f"INSERT INTO dbo.{table} (id, v, n, d) VALUES (30, NULL, {last}, NULL)",
            f"UPDATE dbo.{table} SET v = {one.values[0]} WHERE id = 30",
            f"UPDATE dbo.{table} SET v = NULL, d = {last} WHERE id = 1",
            f"UPDATE dbo.{table} SET n = {one.values[0]} WHERE id = 2",
            f"DELETE FROM dbo.{table} WHERE id IN (1, 10)",
        ),
        readings=_BY_FAMILY[one.family],
        expected={"*": ("old-dates",)} if one.name == "date" or one.name.startswith("datetimeoffset") else {},
    )


def _of_the_server(name: str, declaration: str) -> Script:
    """A type whose values the server makes."""
    table = f"type_{name}"
    return Script(
        name=declaration,
        group="types",
        restates="SqlServerConnectorIT.shouldCaptureTableSchema",
        tables=(f"dbo.{table}",),
        setup=(
            f"CREATE TABLE dbo.{table} (id int NOT NULL PRIMARY KEY, v {declaration}, n int)",
            captured(table),
            f"INSERT INTO dbo.{table} (id, n) VALUES (1, 1), (2, 2)",
        ),
        changes=(
            f"INSERT INTO dbo.{table} (id, n) VALUES (3, 3)",
            f"UPDATE dbo.{table} SET n = 4 WHERE id = 1",
            f"DELETE FROM dbo.{table} WHERE id = 2",
        ),
        readings=_BY_FAMILY["binary"],
    )


WITHOUT_SAMPLES: dict[str, Script] = {
    "timestamp": _of_the_server("timestamp", "timestamp"),
    "rowversion": _of_the_server("rowversion", "rowversion NOT NULL"),
}
"""Types with scripts of their own."""
NOT_COMPARED = {"json": "SQL Server 2025; the JDBC driver of Debezium 3.3.1 does not know it"}
"""Types that Debezium cannot read, with the reason."""


def _scripts() -> Iterator[Script]:
    for one in SAMPLES:
        yield _script(one)
    yield from WITHOUT_SAMPLES.values()


TYPES = Course(name="types", databases=("conf_types",), scripts=tuple(_scripts()), readings=READINGS)
