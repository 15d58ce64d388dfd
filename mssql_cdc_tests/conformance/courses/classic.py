"""One script with every kind of event, which Debezium reads live, in other versions and query modes as well.

Every batch is one transaction unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

from mssql_cdc_tests.conformance.debezium import NEWEST
from mssql_cdc_tests.conformance.workload import WAIT, Course, Reading, Script, captured

TYPES = """CREATE TABLE dbo.alltypes (
 id int NOT NULL PRIMARY KEY, c_bit bit, c_tinyint tinyint, c_smallint smallint, c_bigint bigint,
 c_dec decimal(18, 4), c_dec38 decimal(38, 10), c_num numeric(9, 0), c_money money, c_smallmoney smallmoney,
 c_float float, c_real real, c_char char(5), c_varchar varchar(20), c_varcharmax varchar(max),
 c_nchar nchar(4), c_nvarchar nvarchar(30), c_nvmax nvarchar(max) NOT NULL DEFAULT N'',
 c_binary binary(10), c_varbinary varbinary(20), c_vbmax varbinary(max), c_rv rowversion, c_guid uniqueidentifier,
 c_date date, c_time0 time(0), c_time5 time(5), c_time7 time(7), c_datetime datetime, c_smalldt smalldatetime,
 c_dt2_0 datetime2(0), c_dt2_5 datetime2(5), c_dt2_7 datetime2(7), c_dto0 datetimeoffset(0), c_dto7 datetimeoffset(7),
 c_xml xml)"""
_COLUMNS = """id, c_bit, c_tinyint, c_smallint, c_bigint, c_dec, c_dec38, c_num, c_money,
 c_smallmoney, c_float, c_real, c_char, c_varchar, c_varcharmax, c_nchar, c_nvarchar, c_nvmax, c_binary, c_varbinary,
 c_vbmax, c_guid, c_date, c_time0, c_time5, c_time7, c_datetime, c_smalldt, c_dt2_0, c_dt2_5, c_dt2_7, c_dto0, c_dto7,
 c_xml"""
USUAL = f"""INSERT INTO dbo.alltypes ({_COLUMNS}) VALUES ({{id}}, 1, 200, -5, 1099511627776,
 12345.6789, 1.5, 42, 1234.5678, 12.34,
 1.5, 0.1, 'ab', 'Zürich', REPLICATE(CAST('x' AS varchar(max)), 9000),
 N'né', N'Zürich 日本 😀', REPLICATE(CAST(N'é' AS nvarchar(max)), 5000),
 0x00010203040506070809, 0x0102, 0xABAB, '01234567-89ab-cdef-0123-456789abcdef',
 '2024-02-29', '23:59:59', '12:34:56.12345', '12:34:56.1234567', '2024-02-29T12:34:56.997', '2024-02-29T12:34:31',
 '2024-02-29T12:34:56', '2024-02-29T12:34:56.12345', '2024-02-29T12:34:56.1234567',
 '2024-02-29T12:34:56+02:00', '2024-02-29T12:34:56.1234567-05:30',
 N'<a>é</a>')"""
EXTREME = f"""INSERT INTO dbo.alltypes ({_COLUMNS}) VALUES ({{id}}, 0, 255, -32768, -9223372036854775808,
 -99999999999999.9999, -9999999999999999999999999999.9999999999, -999999999, -922337203685477.5808, -214748.3648,
 -1.7976931348623157E+308, -3.4028235E+38, 'abcde', '', '',
 N'日本語文', N'', N'',
 0xFFFFFFFFFFFFFFFFFFFF, 0x, 0x, 'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF',
 '0001-01-01', '00:00:00', '00:00:00', '23:59:59.9999999', '1753-01-01', '1900-01-01',
 '0001-01-01', '1969-12-31T23:59:59.99999', '9999-12-31T23:59:59.9999999',
 '0001-01-01T14:00:00+14:00', '9999-12-31T09:59:59.9999999-14:00',
 N'')"""
NOTHING = "INSERT INTO dbo.alltypes (id) VALUES ({id})"

OLD = """INSERT INTO dbo.alltypes (id, c_date, c_datetime, c_dt2_0, c_dt2_7, c_dto0, c_dto7) VALUES
 ({id}, '1582-10-10', '1753-01-01', '1582-10-04T23:59:59', '1582-10-14T23:59:59.9999999', '1582-10-15T00:30:00+01:00',
  '1500-02-28T01:02:03.4567891-02:00'),
 ({id} + 1, '1500-03-01', '1753-01-01', '1582-10-05', '1582-10-15', '1582-10-15T00:30:00-01:00',
  '1969-12-31T23:59:58.0009999+00:00')"""
"""Dates around the day on which Java's calendar changes from Julian to Gregorian."""
ODD = """CREATE TABLE dbo.[odd table] (
 n decimal(9, 0) IDENTITY(1, 1) NOT NULL, code varchar(10) NOT NULL, [Größe (cm)] int, twice AS ([Größe (cm)] * 2),
 big varchar(max) NOT NULL, t text, nt ntext, i image, d datetime NOT NULL DEFAULT getdate(),
 q varchar(20) DEFAULT 'it''s', m money NOT NULL DEFAULT 2.5)"""
"""Tables without a primary key and with a unique index; names that are invalid in topics or schemas."""

SETUP: tuple[str, ...] = (
    TYPES,
    """CREATE TABLE dbo.orders (id int IDENTITY(1, 1) NOT NULL PRIMARY KEY, name nvarchar(50) NOT NULL,
       qty int DEFAULT 1, price decimal(10, 2), note nvarchar(max))""",
    "CREATE TABLE dbo.lines (product int NOT NULL, order_id int NOT NULL, n int, PRIMARY KEY (order_id, product))",
    "CREATE TABLE dbo.nokey (a int, b varchar(10))",
    "CREATE TABLE dbo.unused (id int NOT NULL PRIMARY KEY)",
    ODD,
    "CREATE UNIQUE INDEX ux_code ON dbo.[odd table] (code)",
    *(captured(table) for table in ("alltypes", "orders", "lines", "nokey", "odd table", "unused")),
    USUAL.format(id=1),
    EXTREME.format(id=2),
    NOTHING.format(id=3),
    OLD.format(id=4),
    """INSERT INTO dbo.orders (name, price, note)
       VALUES (N'one', 1.25, N'note 1'), (N'two', NULL, NULL), (N'three', 3, N'')""",
    "INSERT INTO dbo.lines VALUES (7, 1, 10), (8, 1, 20)",
    "INSERT INTO dbo.nokey VALUES (1, 'x')",
    """INSERT INTO dbo.[odd table] (code, [Größe (cm)], big, t, nt, i, d)
       VALUES ('a', 180, 'big', 'text', N'ntext', 0x0102, '2024-01-02T03:04:05.678')""",
)

CHANGES: tuple[str, ...] = (
    USUAL.format(id=11),
    EXTREME.format(id=12),
    NOTHING.format(id=13),
    OLD.format(id=14),
    "UPDATE dbo.alltypes SET c_smallint = 1 WHERE id = 11",
    "UPDATE dbo.alltypes SET c_varcharmax = 'short', c_xml = NULL WHERE id = 1",
    "DELETE FROM dbo.alltypes WHERE id IN (2, 12)",
    # One transaction across several tables, with a row that is inserted, updated and deleted in it.
    """BEGIN TRANSACTION
       INSERT INTO dbo.orders (name, price, note) VALUES (N'four', 4, N'large')
       UPDATE dbo.orders SET name = N'vier' WHERE name = N'four'
       INSERT INTO dbo.lines VALUES (9, 4, 1), (10, 4, 2)
       INSERT INTO dbo.nokey VALUES (5, 'y')
       DELETE FROM dbo.orders WHERE name = N'vier'
       COMMIT""",
    """BEGIN TRANSACTION
       INSERT INTO dbo.orders (name) VALUES (N'never')
       ROLLBACK""",
    "UPDATE dbo.orders SET note = N'other' WHERE id = 1",
    "UPDATE dbo.orders SET qty = qty + 1",
    "UPDATE dbo.lines SET product = product + 1 WHERE order_id = 1",
    "UPDATE dbo.lines SET order_id = 99 WHERE order_id = 4 AND product = 9",
    "UPDATE dbo.nokey SET a = 2",
    "DELETE FROM dbo.nokey WHERE b = 'y'",
    "UPDATE dbo.orders SET price = 9 WHERE id = 3",
    """INSERT INTO dbo.[odd table] (code, [Größe (cm)], big, t, nt, i, d)
       VALUES ('b', 170, '', 'text', N'ntext', 0x0102, '2024-01-02T03:04:05.678')""",
    "UPDATE dbo.[odd table] SET [Größe (cm)] = 181",
    "UPDATE dbo.[odd table] SET t = 'other', big = 'bigger' WHERE code = 'a'",
    "UPDATE dbo.[odd table] SET code = 'c' WHERE code = 'b'",
    "DELETE FROM dbo.[odd table] WHERE code = 'a'",
)
EVOLUTION: tuple[str, ...] = (
    "ALTER TABLE dbo.orders ADD phone varchar(20) NULL, grade int NOT NULL DEFAULT 3",
    "INSERT INTO dbo.orders (name, phone) VALUES (N'before', '1')",
    captured("orders", capture_instance="N'dbo_orders_v2'"),
)
"""A second capture instance; wait for the capture job after it."""
AFTER_EVOLUTION: tuple[str, ...] = (
    "INSERT INTO dbo.nokey VALUES (6, 'z')",
    "INSERT INTO dbo.orders (name, phone) VALUES (N'behind', '2')",
    "UPDATE dbo.orders SET phone = '3', grade = 4 WHERE id = 1",
)

CONFIGURATIONS: Mapping[str, Mapping[str, str]] = {
    "defaults": {},
    "texts": {
        "time.precision.mode": "isostring",
        "decimal.handling.mode": "string",
        "binary.handling.mode": "hex",
        "tombstones.on.delete": "false",
        "message.key.columns": "dbo.orders:name;dbo.nokey:a",
        "field.name.adjustment.mode": "avro",
        "column.mask.with.4.chars": "dbo.orders.note",
        "column.truncate.to.3.chars": "dbo.alltypes.c_varchar",
        "column.mask.hash.v2.SHA-256.with.salt.pepper": "dbo.alltypes.c_nvarchar",
    },
    "numbers": {
        "time.precision.mode": "connect",
        "decimal.handling.mode": "double",
        "binary.handling.mode": "base64-url-safe",
        "column.exclude.list": "dbo.orders.price",
        "skipped.operations": "d",
        "skip.messages.without.change": "true",
    },
}
_ISO = {"time.precision.mode": "isostring"}
_DIRECT = {"data.query.mode": "direct"}
REFERENCE = "functions"
OTHERS = (
    Reading(name="direct", properties=_ISO | _DIRECT, is_live=True, is_ours=False),
    Reading(name="newest functions", properties=_ISO, version=NEWEST, is_live=True, is_ours=False),
    Reading(name="newest direct", properties=_ISO | _DIRECT, version=NEWEST, is_live=True, is_ours=False),
)
"""They show that other versions and query modes can read the stand-in server."""
TABLES = ("alltypes", "orders", "lines", "nokey", "odd table", "unused")
CLASSIC = Course(
    name="classic",
    databases=("testDB1",),
    scripts=(
        Script(
            name="all kinds of events",
            group="streaming",
            restates="SqlServerConnectorIT.createAndDeleteInDataQueryDirectMode",
            tables=tuple(f"dbo.{table}" for table in TABLES),
            setup=SETUP,
            changes=(*CHANGES, *EVOLUTION, WAIT, *AFTER_EVOLUTION),
        ),
    ),
    readings=(
        *(
            Reading(
                name=name,
                properties=properties,
                is_live=True,
                expected=("no-converter", "schema-change-position", "old-dates"),
            )
            for name, properties in CONFIGURATIONS.items()
        ),
        Reading(name=REFERENCE, properties=_ISO, is_live=True, is_ours=False),
        *OTHERS,
    ),
    properties={
        "schema.history.internal.store.only.captured.tables.ddl": "true",
        "provide.transaction.metadata": "true",
    },
)
