"""Every type end to end: snapshot, changes, MERGE; the check passes, and detects one corrupted cell."""

from __future__ import annotations

import pytest

from mssql_cdc_tests.end_to_end.kit import Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]
LONG = "y" * 9000
# column, type, two values
COLUMNS: list[tuple[str, str, str, str]] = [
    ("c_bit", "bit", "1", "0"),
    ("c_tinyint", "tinyint", "255", "0"),
    ("c_smallint", "smallint", "-32768", "7"),
    ("c_int", "int", "-2147483648", "7"),
    ("c_bigint", "bigint", "9223372036854775807", "7"),
    ("c_decimal", "decimal(38, 10)", "-1234567890123456789012345678.0123456789", "0.0000000001"),
    ("c_numeric", "numeric(5, 0)", "99999", "-1"),
    ("c_money", "money", "-922337203685477.5808", "0.01"),
    ("c_smallmoney", "smallmoney", "214748.3647", "0.01"),
    ("c_real", "real", "0.1", "-3.4e38"),
    ("c_float", "float", "1.7976931348623157e308", "0.1"),
    ("c_char", "char(5)", "'ab'", "'cde'"),
    ("c_varchar", "varchar(50)", "'caf\u00e9'", "''"),
    ("c_nchar", "nchar(3)", "N'\u017c'", "N'abc'"),
    ("c_nvarchar", "nvarchar(50)", "N'za\u017c\u00f3\u0142\u0107 \U0001f600'", "N'a' + NCHAR(55296)"),
    ("c_varchar_max", "varchar(max)", f"'{LONG}'", "'short'"),
    ("c_nvarchar_max", "nvarchar(max)", f"N'{LONG}\U0001f600'", "N'short'"),
    ("c_guid", "uniqueidentifier", "'0e984725-c51c-4bf4-9960-e1c80e27aba0'", "NULL"),
    ("c_binary", "binary(4)", "0x00FF", "0x01020304"),
    ("c_varbinary", "varbinary(10)", "0x", "0x0001FF"),
    ("c_varbinary_max", "varbinary(max)", f"0x{'ab' * 9000}", "0x01"),
    ("c_date", "date", "'0001-01-01'", "'9999-12-31'"),
    ("c_smalldatetime", "smalldatetime", "'2079-06-06T23:59:00'", "'1900-01-01T00:00:00'"),
    ("c_datetime", "datetime", "'1753-01-01T00:00:00.003'", "'9999-12-31T23:59:59.997'"),
    ("c_datetime2_0", "datetime2(0)", "'0001-01-01T00:00:00'", "'2024-02-29T12:34:56'"),
    ("c_datetime2_7", "datetime2(7)", "'9999-12-31T23:59:59.9999999'", "'0001-01-01T00:00:00.0000001'"),
    ("c_offset_3", "datetimeoffset(3)", "'2024-05-06T07:08:09.123+02:00'", "'2024-05-06T07:08:09.123+00:00'"),
    ("c_offset_7", "datetimeoffset(7)", "'0001-01-01T14:00:00.0000000+14:00'", "'2024-05-06T07:08:09.1234567-11:30'"),
    ("c_time_0", "time(0)", "'23:59:59'", "'00:00:00'"),
    ("c_time_7", "time(7)", "'00:00:00.0000001'", "'12:00:00'"),
    ("c_xml", "xml", "N'<a>\u017c</a>'", "N'<b/>'"),
    ("c_text", "text", f"'{LONG}'", "'short'"),
    ("c_ntext", "ntext", f"N'{LONG}'", "N'short'"),
    ("c_image", "image", "0x0102", "0x03"),
    ("c_variant", "sql_variant", "CAST(1.50 AS decimal(5, 2))", "N'text'"),
]


def fill(place: Place) -> None:
    """A table with every type: two rows for the snapshot, two more and changes for streaming."""
    place.create(
        "everything",
        "id int NOT NULL PRIMARY KEY, v rowversion, " + ", ".join(f"{n} {t} NULL" for n, t, _, _ in COLUMNS),
    )
    insert(place, 1, 2)
    insert(place, 2, 3)


def insert(place: Place, key: int, which: int) -> None:
    names = ", ".join(column[0] for column in COLUMNS)
    values = ", ".join(column[which] for column in COLUMNS)
    place.sql(f"INSERT INTO dbo.everything (id, {names}) VALUES ({key}, {values})")


def test_every_type_is_equal_after_snapshot_and_stream(place: Place):
    fill(place)
    assert place.catch_up() == 0
    assert place.check() == 0
    insert(place, 3, 2)
    insert(place, 4, 3)
    changed = ", ".join(f"{name} = {second}" for name, _, _, second in COLUMNS)
    place.sql(f"UPDATE dbo.everything SET {changed} WHERE id = 1")
    place.sql("UPDATE dbo.everything SET c_int = 5 WHERE id = 3", "DELETE FROM dbo.everything WHERE id = 2")
    assert place.catch_up() == 0
    assert place.check() == 0
    assert [row["id"] for row in place.query("SELECT id FROM t ORDER BY id", "everything")] == [1, 3, 4]


def test_one_corrupted_cell_of_any_type_is_found(place: Place, spark, capsys: pytest.CaptureFixture[str]):
    fill(place)
    for key in range(3, len(COLUMNS) + 1):
        insert(place, key, 2)
    place.sql("UPDATE dbo.everything SET c_guid = NEWID()")
    assert place.catch_up() == 0
    assert place.check() == 0
    changes = ", ".join(
        f"`{name}` = CASE WHEN id = {key} THEN {other_value(name, kind)} ELSE `{name}` END"
        for key, (name, kind, _, _) in enumerate(COLUMNS, start=1)
    )
    spark.sql(f"UPDATE delta.`{place.uri('everything')}` SET {changes}").collect()
    capsys.readouterr()
    assert place.check() == 5
    shown = capsys.readouterr().out
    for key, (name, _, _, _) in enumerate(COLUMNS, start=1):
        assert f"key {key}: differs in {name}\n" in shown, shown


def other_value(name: str, kind: str) -> str:
    """Spark SQL for a different value of the column; the smallest step if the type has steps."""
    column = f"`{name}`"
    if kind == "bit":
        return f"NOT {column}"
    if kind.startswith(("datetime", "smalldatetime")):
        return f"{column} + INTERVAL 0.000001 SECOND"
    if kind == "date":
        return f"date_add({column}, 1)"
    if kind in {"image", "binary(4)", "varbinary(10)", "varbinary(max)"}:
        return f"concat({column}, X'00')"
    if kind.startswith(("char", "varchar", "nchar", "nvarchar", "text", "ntext", "xml", "time", "unique", "sql_")):
        return f"concat({column}, ' ')"
    if kind.startswith(("decimal", "numeric", "money", "smallmoney")):
        return f"CAST({column} / 2 AS decimal(38, 10))" if kind == "decimal(38, 10)" else f"-{column}"
    if kind in {"real", "float"}:
        return f"CAST({column} / 2 AS {'double' if kind == 'float' else 'float'})"
    return f"CASE WHEN {column} > 0 THEN {column} - 1 ELSE {column} + 1 END"
