"""All kinds of changes: keys, transactions, large values, captured columns, names, defaults, and modes of records."""

from __future__ import annotations

from mssql_cdc_tests.conformance.workload import NO_SCHEMAS, NULLS, SCHEMAS, Course, Reading, Script, captured

_TRANSACTIONS = {"provide.transaction.metadata": "true"}
_UNLIKE = ("schemas", "transactions", "direct", "fetch 3")
"""The readings of every script."""
READINGS = (
    Reading(name="schemas", properties=SCHEMAS),
    Reading(name="transactions", properties=SCHEMAS | _TRANSACTIONS),
    Reading(name="no tombstones", properties=NO_SCHEMAS | {"tombstones.on.delete": "false"}),
    Reading(name="skipped u,d", properties=NO_SCHEMAS | {"skipped.operations": "u,d"}, features=("FLT-13", "STR-11")),
    Reading(name="skipped c", properties=NO_SCHEMAS | _TRANSACTIONS | {"skipped.operations": "c"}),
    Reading(name="no unchanged", properties=NO_SCHEMAS | {"skip.messages.without.change": "true"}),
    Reading(
        name="own keys",
        properties=SCHEMAS
        | {
            "message.key.columns": r"dbo\.keyless:a;dbo.updates:name,id;"
            "conf_stream.dbo.keys:v;dbo.defaults:id,n_varchar",
        },
    ),
    *(
        Reading(
            name=f"own keys, skipped {skipped}",
            properties=NO_SCHEMAS
            | _TRANSACTIONS
            | {"message.key.columns": "dbo.updates:name", "skipped.operations": skipped},
        )
        for skipped in ("c", "d")
    ),
    Reading(name="own keys and nulls", properties=SCHEMAS | NULLS | {"message.key.columns": "dbo.defaults:n_varchar"}),
    Reading(
        name="no schema changes",
        properties=SCHEMAS
        | {
            "include.schema.changes": "false",
            "extended.headers.enabled": "false",
        },
    ),
    Reading(
        name="topics",
        properties=SCHEMAS
        | _TRANSACTIONS
        | {"topic.delimiter": "-", "topic.transaction": "tx", "topic.cache.size": "1"},
        features=("TOP-05",),
    ),
    Reading(
        name="avro",
        properties=SCHEMAS
        | {
            "field.name.adjustment.mode": "avro",
            "schema.name.adjustment.mode": "avro",
        },
    ),
    Reading(
        name="avro_unicode",
        properties=SCHEMAS
        | {
            "field.name.adjustment.mode": "avro_unicode",
            "schema.name.adjustment.mode": "avro_unicode",
        },
    ),
    Reading(
        name="masked texts",
        properties=SCHEMAS
        | {
            "binary.handling.mode": "hex",
            "column.mask.hash.v2.SHA-256.with.salt.s": "dbo.large.nm",
            "column.truncate.to.1.chars": "dbo.large.(vm|bm|i)",
        },
    ),
    Reading(name="source types", properties=SCHEMAS | {"column.propagate.source.type": ".*"}),
    Reading(
        name="source data types",
        properties=SCHEMAS
        | {
            "datatype.propagate.source.type": r".+\.varchar,conf_stream\.dbo\.[^.]+\.decimal,.+int identity",
        },
        features=("FLT-12",),
    ),
    Reading(name="no converter", properties=_TRANSACTIONS, expected=("no-converter",)),
    Reading(
        name="heartbeats",
        properties=SCHEMAS
        | {
            "heartbeat.interval.ms": "1",
            "topic.heartbeat.prefix": "__beats",
        },
        features=("HB-04", "HB-05"),
    ),
    Reading(
        name="direct",
        properties=SCHEMAS | {"data.query.mode": "direct", "max.iteration.transactions": "20"},
        features=("STR-02", "STR-05"),
    ),
    Reading(
        name="fetch 3", properties=SCHEMAS, theirs={"streaming.fetch.size": "3", "max.iteration.transactions": "0"}
    ),
)


def _in(*more: str) -> tuple[str, ...]:
    return (*_UNLIKE, *more)


SCRIPTS = (
    Script(
        name="create and delete",
        group="streaming",
        restates="SqlServerConnectorIT.createAndDeleteWithDataQueryModeFunctionWithoutFetchThreshold",
        tables=("dbo.tablea", "dbo.tableb"),
        readings=_in(
            "no tombstones", "skipped u,d", "skipped c", "no converter", "no schema changes", "topics", "heartbeats"
        ),
        setup=(
            "CREATE TABLE dbo.tablea (id int PRIMARY KEY, cola varchar(30))",
            captured("tablea"),
            "CREATE TABLE dbo.tableb (id int PRIMARY KEY, colb varchar(30))",
            captured("tableb"),
            "INSERT INTO dbo.tablea VALUES (1, 'a')",
        ),
        changes=(
            *(f"INSERT INTO dbo.table{t} VALUES ({i}, '{t}')" for i in range(10, 15) for t in "ab"),
            "DELETE FROM dbo.tableb",
        ),
    ),
    Script(
        name="update",
        group="streaming",
        restates="SqlServerConnectorIT.update",
        tables=("dbo.updates",),
        readings=_in(
            "skipped u,d",
            "skipped c",
            "own keys, skipped c",
            "own keys, skipped d",
            "no unchanged",
            "own keys",
            "no converter",
            "source types",
        ),
        setup=(
            "CREATE TABLE dbo.updates (id int PRIMARY KEY, name varchar(30) NOT NULL, n decimal(9, 2))",
            captured("updates"),
            "INSERT INTO dbo.updates VALUES (1, 'a', 1), (2, 'b', NULL), (3, 'c', 3.25)",
        ),
        changes=(
            "UPDATE dbo.updates SET n = n + 1",
            "UPDATE dbo.updates SET name = name",
            "UPDATE dbo.updates SET name = 'z', n = NULL WHERE id = 1",
            "UPDATE dbo.updates SET n = 0 WHERE id = 2",
            "UPDATE dbo.updates SET n = 7 WHERE id = 99",
        ),
    ),
    Script(
        name="unique indexes",
        group="keys",
        restates="SqlServerConnectorIT.keylessTable",
        tables=("dbo.two_indexes", "dbo.some_rows"),
        readings=_in("own keys"),
        setup=(
            "CREATE TABLE dbo.two_indexes (a int NOT NULL, b int NOT NULL, c int)",
            "CREATE UNIQUE INDEX z ON dbo.two_indexes (b)",
            "CREATE UNIQUE INDEX a ON dbo.two_indexes (a)",
            captured("two_indexes"),
            "CREATE TABLE dbo.some_rows (a int NOT NULL, b int)",
            "CREATE UNIQUE INDEX filtered ON dbo.some_rows (b) WHERE b IS NOT NULL",
            captured("some_rows"),
            "INSERT INTO dbo.two_indexes VALUES (1, 10, 1)",
        ),
        changes=(
            "INSERT INTO dbo.two_indexes VALUES (2, 20, 1)",
            "UPDATE dbo.two_indexes SET c = 2",
            "INSERT INTO dbo.some_rows VALUES (1, NULL)",
            "INSERT INTO dbo.some_rows VALUES (2, 2)",
            "UPDATE dbo.some_rows SET a = 3 WHERE b = 2",
            "UPDATE dbo.two_indexes SET b = 11 WHERE a = 1",
            "UPDATE dbo.two_indexes SET a = 3 WHERE a = 2",
            "DELETE FROM dbo.two_indexes",
        ),
    ),
    Script(
        name="key update",
        group="keys",
        restates="SqlServerConnectorIT.updatePrimaryKey",
        tables=("dbo.keys",),
        readings=_in("no tombstones", "skipped u,d", "skipped c", "own keys", "no converter", "topics", "no unchanged"),
        setup=(
            "CREATE TABLE dbo.keys (id int PRIMARY KEY, v varchar(30))",
            captured("keys"),
            "INSERT INTO dbo.keys VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        ),
        changes=(
            "UPDATE dbo.keys SET id = 10 WHERE id = 1",
            "UPDATE dbo.keys SET id = 20, v = 'x' WHERE id = 2",
            "UPDATE dbo.keys SET v = 'y' WHERE id = 3",
        ),
    ),
    Script(
        name="keys that move",
        group="keys",
        restates="SqlServerConnectorIT.updatePrimaryKeyTwiceWithRestartInMiddleOfTx",
        tables=("dbo.moving",),
        readings=_in("no tombstones", "skipped c", "no converter"),
        setup=(
            "CREATE TABLE dbo.moving (id int PRIMARY KEY, v varchar(30))",
            captured("moving"),
            "INSERT INTO dbo.moving VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        ),
        changes=(
            "UPDATE dbo.moving SET id = id + 1",
            "BEGIN TRAN UPDATE dbo.moving SET id = 5 - id WHERE id IN (2, 3) UPDATE dbo.moving SET id = id + 10 COMMIT",
            "BEGIN TRAN DELETE FROM dbo.moving WHERE id = 14 INSERT INTO dbo.moving VALUES (14, 'again') COMMIT",
        ),
    ),
    Script(
        name="no key",
        group="keys",
        restates="SqlServerConnectorIT.keylessTable",
        tables=("dbo.keyless",),
        readings=_in("no tombstones", "skipped u,d", "own keys", "no converter", "no unchanged"),
        setup=(
            "CREATE TABLE dbo.keyless (a int, b varchar(10))",
            captured("keyless"),
            "INSERT INTO dbo.keyless VALUES (1, 'x'), (1, 'x')",
        ),
        changes=(
            "INSERT INTO dbo.keyless VALUES (2, 'y')",
            "UPDATE dbo.keyless SET a = 3 WHERE a = 2",
            "UPDATE dbo.keyless SET b = 'z' WHERE a = 1",
            "DELETE FROM dbo.keyless WHERE a = 3",
        ),
    ),
    Script(
        name="unique index",
        group="keys",
        restates="TablesWithUniqueIndexOnlyIT.shouldProcessFromStreaming",
        tables=("dbo.uniq",),
        readings=_in("no converter"),
        setup=(
            "CREATE TABLE dbo.uniq (a int NOT NULL, b int NOT NULL, c varchar(10))",
            "CREATE UNIQUE INDEX ux ON dbo.uniq (b, a)",
            captured("uniq"),
            "INSERT INTO dbo.uniq VALUES (1, 2, 'x')",
        ),
        changes=(
            "INSERT INTO dbo.uniq VALUES (3, 4, 'y')",
            "UPDATE dbo.uniq SET c = 'z'",
            "UPDATE dbo.uniq SET b = 5 WHERE a = 3",
            "DELETE FROM dbo.uniq WHERE a = 1",
        ),
    ),
    Script(
        name="composite key",
        group="keys",
        restates="SqlServerConnectorIT.updatePrimaryKey",
        tables=("dbo.composite",),
        readings=_in("source types"),
        setup=(
            """CREATE TABLE dbo.composite (v int, b varchar(10) NOT NULL, at datetime2(3) NOT NULL, a int NOT NULL,
               PRIMARY KEY (a, at, b))""",
            captured("composite"),
            "INSERT INTO dbo.composite VALUES (1, 'x', '2020-01-01', 1)",
        ),
        changes=(
            "INSERT INTO dbo.composite VALUES (2, 'y', '2020-01-02', 2)",
            "UPDATE dbo.composite SET v = 3",
            "UPDATE dbo.composite SET b = 'z' WHERE a = 2",
            "DELETE FROM dbo.composite",
        ),
    ),
    Script(
        name="large transaction",
        group="transactions",
        restates="SqlServerConnectorIT.restartInTheMiddleOfTx",
        tables=("dbo.txa", "dbo.txb"),
        readings=_in("no converter", "skipped c", "topics"),
        setup=(
            "CREATE TABLE dbo.txa (id int PRIMARY KEY, v varchar(30))",
            captured("txa"),
            "CREATE TABLE dbo.txb (id int PRIMARY KEY, v varchar(30))",
            captured("txb"),
        ),
        changes=(
            "BEGIN TRAN "
            + " ".join(
                f"INSERT INTO dbo.txa VALUES ({i}, 'a') INSERT INTO dbo.txb VALUES ({i}, 'b')" for i in range(30)
            )
            + " COMMIT",
            "BEGIN TRAN UPDATE dbo.txb SET v = 'c' WHERE id < 4 DELETE FROM dbo.txa WHERE id < 3 COMMIT",
        ),
    ),
    Script(
        name="rows that come and go",
        group="transactions",
        restates="TransactionMetadataIT.transactionMetadata",
        tables=("dbo.inside",),
        readings=_in("no converter", "skipped c", "skipped u,d", "no unchanged"),
        setup=("CREATE TABLE dbo.inside (id int PRIMARY KEY, v varchar(30))", captured("inside")),
        changes=(
            """BEGIN TRAN INSERT INTO dbo.inside VALUES (1, 'a') UPDATE dbo.inside SET v = 'b' WHERE id = 1
               UPDATE dbo.inside SET v = 'a' WHERE id = 1 DELETE FROM dbo.inside WHERE id = 1 COMMIT""",
            "BEGIN TRAN INSERT INTO dbo.inside VALUES (2, 'never') ROLLBACK",
            """BEGIN TRAN INSERT INTO dbo.inside VALUES (3, 'kept') SAVE TRAN here
               INSERT INTO dbo.inside VALUES (4, 'not') ROLLBACK TRAN here COMMIT""",
            "INSERT INTO dbo.inside SELECT id + 100, v FROM dbo.inside",
        ),
    ),
    Script(
        name="large values",
        group="large values",
        restates="SqlServerMaxColumnTest.shouldIdentifyMaxColumnFromColumnModel",
        tables=("dbo.large",),
        readings=_in("no converter", "no unchanged", "source types", "masked texts"),
        setup=(
            """CREATE TABLE dbo.large (id int PRIMARY KEY, n int, vm varchar(max),
               nm nvarchar(max) NOT NULL DEFAULT N'd',
               bm varbinary(max), x xml, t text, nt ntext, i image NOT NULL)""",
            captured("large"),
            "INSERT INTO dbo.large VALUES (1, 1, 'a', N'b', 0x01, N'<a/>', 't', N'nt', 0x02)",
            "INSERT INTO dbo.large VALUES (2, 1, NULL, N'', NULL, NULL, NULL, NULL, 0x)",
        ),
        changes=(
            (
                "INSERT INTO dbo.large VALUES (3, 1, REPLICATE(CAST('x' AS varchar(max)), 20000), N'é', 0x03, N'<b/>', "
                "'t3', N'n3', 0x04)"
            ),
            "UPDATE dbo.large SET n = 2",
            "UPDATE dbo.large SET vm = 'c', bm = NULL WHERE id IN (1, 2)",
            "UPDATE dbo.large SET nm = N'changed', x = NULL WHERE id = 3",
            "UPDATE dbo.large SET t = 'u', i = 0x05 WHERE id = 1",
            "UPDATE dbo.large SET id = 30 WHERE id = 3",
            "UPDATE dbo.large SET vm = vm WHERE id = 1",
            "DELETE FROM dbo.large",
        ),
    ),
    Script(
        name="captured columns",
        group="captured columns",
        restates="SqlServerConnectorIT.excludeColumnWhenCaptureInstanceExcludesColumnInMiddleOfTable",
        tables=("dbo.some_columns",),
        readings=_in("no unchanged", "source types"),
        setup=(
            "CREATE TABLE dbo.some_columns (id int PRIMARY KEY, a varchar(10), secret varchar(10), z varchar(10))",
            captured("some_columns", captured_column_list="N'id, a, z'"),
            "INSERT INTO dbo.some_columns VALUES (1, 'a', 's', 'z')",
        ),
        changes=(
            "INSERT INTO dbo.some_columns VALUES (2, 'b', 't', 'y')",
            "UPDATE dbo.some_columns SET secret = 'u'",
            "UPDATE dbo.some_columns SET z = 'x' WHERE id = 2",
            "DELETE FROM dbo.some_columns WHERE id = 1",
        ),
    ),
    Script(
        name="column added after capture",
        group="captured columns",
        restates="SqlServerConnectorIT.blacklistColumnWhenCdcColumnsDoNotMatchWithOriginalSnapshot",
        tables=("dbo.grown",),
        readings=_in("no unchanged"),
        setup=(
            "CREATE TABLE dbo.grown (id int PRIMARY KEY, a varchar(10))",
            captured("grown"),
            "ALTER TABLE dbo.grown ADD late varchar(10)",
            "INSERT INTO dbo.grown VALUES (1, 'a', 'l')",
        ),
        changes=(
            "INSERT INTO dbo.grown VALUES (2, 'b', 'm')",
            "UPDATE dbo.grown SET late = 'n'",
            "UPDATE dbo.grown SET a = 'c', late = NULL WHERE id = 1",
        ),
    ),
    Script(
        name="generated values",
        group="names and defaults",
        restates="SqlServerConnectorIT.shouldCaptureTableSchema",
        tables=("dbo.generated",),
        readings=_in("source types", "source data types", "no converter"),
        setup=(
            """CREATE TABLE dbo.generated (id bigint IDENTITY(5, 5) PRIMARY KEY, a int, twice AS (a * 2), rv rowversion,
               g uniqueidentifier NOT NULL DEFAULT NEWID(), s sysname NULL)""",
            captured("generated"),
            "INSERT INTO dbo.generated (a, g) VALUES (1, '01234567-89ab-cdef-0123-456789abcdef')",
        ),
        changes=(
            "INSERT INTO dbo.generated (a, s) VALUES (2, N'x')",
            "UPDATE dbo.generated SET a = 3",
            "DELETE FROM dbo.generated WHERE id = 5",
        ),
    ),
    Script(
        name="defaults",
        group="names and defaults",
        restates="SqlServerConnectionIT.shouldProperlyGetDefaultColumnValues",
        tables=("dbo.defaults",),
        readings=_in("own keys", "own keys and nulls", "no unchanged", "no converter"),
        setup=(
            """CREATE TABLE dbo.defaults (id int PRIMARY KEY,
               n_varchar varchar(20) NULL DEFAULT 'dflt', quoted varchar(20) DEFAULT 'it''s "x"',
               parens varchar(20) DEFAULT 'a (b) c', word varchar(20) DEFAULT 'NULL', empty varchar(5) DEFAULT '',
               made nvarchar(36) DEFAULT CONVERT(nvarchar(36), NEWID()), part varchar(36) DEFAULT LEFT(NEWID(), 8),
               groups varchar(20) DEFAULT 'a (b) and (c)', nothing varchar(5) DEFAULT NULL,
               call varchar(40) DEFAULT getdate(), uni nvarchar(20) DEFAULT N'né',
               i_neg int DEFAULT -5, i_null int DEFAULT NULL, i_sum int DEFAULT (1 + 2), i_text int DEFAULT '7',
               i_str int DEFAULT 1.0, ti tinyint DEFAULT 200, bi bigint DEFAULT 3147483648, b0 bit DEFAULT 0,
               b1 bit DEFAULT 1, bn bit DEFAULT NULL, bt bit DEFAULT 'true', de decimal(9, 3) DEFAULT 1.5,
               dneg decimal(9, 3) DEFAULT -1.5, dn decimal(9, 3) DEFAULT NULL,
               mo money DEFAULT 2, fl float DEFAULT 1.5E3,
               fn float DEFAULT NULL, re real DEFAULT -0.25, bin binary(4) DEFAULT 0x0102, vb varbinary(4) DEFAULT 0x,
               vbn varbinary(4) DEFAULT NULL, d1 date DEFAULT '2019-02-03', d2 date DEFAULT getdate(),
               t1 time(3) DEFAULT '10:11:12', dt datetime DEFAULT '2019-01-01', dto datetimeoffset DEFAULT '2019-01-01',
               dto2 datetimeoffset(3) DEFAULT '2019-01-01 00:00:00.1234567 +02:00', g uniqueidentifier DEFAULT NEWID(),
               x xml DEFAULT N'<a/>', c1 char(3) NOT NULL DEFAULT 'ab', m nvarchar(max) NOT NULL DEFAULT N'm')""",
            captured("defaults"),
            "INSERT INTO dbo.defaults (id) VALUES (1)",
            "INSERT INTO dbo.defaults (id, n_varchar, b1, de, i_neg) VALUES (2, NULL, NULL, NULL, NULL)",
        ),
        changes=(
            "INSERT INTO dbo.defaults (id, g, d2, call) VALUES (3, NULL, NULL, NULL)",
            (
                "INSERT INTO dbo.defaults (id, n_varchar, b1, de, i_neg, bin, d1, g, d2, call) "
                "VALUES (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
            ),
            "UPDATE dbo.defaults SET n_varchar = 'x' WHERE id = 4",
            "UPDATE dbo.defaults SET n_varchar = NULL WHERE id = 3",
            "UPDATE dbo.defaults SET made = NULL, part = NULL, groups = NULL WHERE id = 3",
            "UPDATE dbo.defaults SET c1 = 'z' WHERE id = 1",
            "DELETE FROM dbo.defaults WHERE id = 2",
        ),
    ),
    Script(
        name="odd names",
        group="names and defaults",
        restates="SpecialCharsInNamesIT.shouldParseSpecialChars",
        tables=("dbo.odd table, [ü.",),
        readings=_in("avro", "avro_unicode", "source types", "topics"),
        setup=(
            """CREATE TABLE dbo.[odd table, [ü.] ([my id] int PRIMARY KEY,
               [Größe (cm)] int, [2nd] varchar(5) DEFAULT 'x',
               [a.b] int, [_c] int, [日本] int)""",
            captured("odd table, [ü."),
            "INSERT INTO dbo.[odd table, [ü.] ([my id], [Größe (cm)]) VALUES (1, 180)",
        ),
        changes=(
            "INSERT INTO dbo.[odd table, [ü.] VALUES (2, 170, 'y', 3, 4, 5)",
            "UPDATE dbo.[odd table, [ü.] SET [a.b] = 7",
            "DELETE FROM dbo.[odd table, [ü.] WHERE [my id] = 1",
        ),
    ),
    Script(
        name="reserved names",
        group="names and defaults",
        restates="SnapshotIT.takeSnapshotFromTableWithReservedName",
        tables=("dbo.User", "dbo.MixedCase"),
        readings=_in("avro", "topics"),
        setup=(
            "CREATE TABLE dbo.[User] ([Order] int PRIMARY KEY, [Select] varchar(10))",
            captured("User"),
            "CREATE TABLE dbo.MixedCase (Id int PRIMARY KEY, aB int)",
            captured("MixedCase"),
            "INSERT INTO dbo.[User] VALUES (1, 'x')",
        ),
        changes=("UPDATE dbo.[User] SET [Select] = 'y'", "INSERT INTO dbo.MixedCase VALUES (1, 2)"),
    ),
    Script(
        name="another schema",
        group="names and defaults",
        restates="SqlServerConnectorIT.shouldApplySchemaFilters",
        tables=("s1.things",),
        readings=_in("topics", "source data types"),
        setup=(
            "CREATE SCHEMA s1",
            "CREATE TABLE s1.things (id int IDENTITY PRIMARY KEY, v varchar(10), d decimal(9, 2))",
            captured("things", schema="s1"),
            "INSERT INTO s1.things (v) VALUES ('a')",
        ),
        changes=("INSERT INTO s1.things (v, d) VALUES ('b', 1)", "DELETE FROM s1.things WHERE id = 1"),
    ),
    Script(
        name="nothing happens",
        group="streaming",
        restates="SqlServerConnectorIT.testNoEmptySchemaWarningAfterApplyingFilters",
        tables=("dbo.silent",),
        readings=("schemas", "transactions", "direct"),
        setup=("CREATE TABLE dbo.silent (id int PRIMARY KEY)", captured("silent")),
    ),
    Script(
        name="unsupported types",
        group="types",
        restates="DatatypesFromStreamingIT.otherTypes",
        tables=("dbo.variants",),
        readings=_in("source types"),
        setup=(
            "CREATE TABLE dbo.variants (id int PRIMARY KEY, v sql_variant, h hierarchyid, a varchar(5))",
            captured("variants"),
            "INSERT INTO dbo.variants VALUES (1, CAST(5 AS int), '/1/', 'a')",
        ),
        changes=(
            "INSERT INTO dbo.variants VALUES (2, N'text', NULL, 'b')",
            "UPDATE dbo.variants SET h = '/2/3/' WHERE id = 2",
            "UPDATE dbo.variants SET v = 1.5 WHERE id = 1",
        ),
    ),
    Script(
        name="key of which a part is captured",
        group="keys",
        restates="SqlServerConnectorIT.whenCaptureInstanceExcludesColumnsExpectSnapshotAndStreamingToExcludeColumns",
        features=("EVT-02",),
        tables=("dbo.partkey",),
        setup=(
            "CREATE TABLE dbo.partkey (a int NOT NULL, b int NOT NULL, v varchar(10), PRIMARY KEY (a, b))",
            captured("partkey", captured_column_list="N'a, v'"),
            "INSERT INTO dbo.partkey VALUES (1, 1, 'a'), (1, 2, 'b')",
        ),
        changes=(
            "INSERT INTO dbo.partkey VALUES (2, 1, 'c')",
            "UPDATE dbo.partkey SET v = 'd' WHERE a = 2",
            "UPDATE dbo.partkey SET a = 3 WHERE a = 2",
            "DELETE FROM dbo.partkey WHERE a = 3",
        ),
    ),
    Script(
        name="temporal table",
        group="names and defaults",
        restates="SpecialTableTypesIT.shouldIgnoreTemporalTable",
        tables=("dbo.temporal",),
        readings=("schemas", "transactions"),
        setup=(
            """CREATE TABLE dbo.temporal (id int PRIMARY KEY, v varchar(10),
               f datetime2 GENERATED ALWAYS AS ROW START NOT NULL, t datetime2 GENERATED ALWAYS AS ROW END NOT NULL,
               PERIOD FOR SYSTEM_TIME (f, t)) WITH (SYSTEM_VERSIONING = ON (HISTORY_TABLE = dbo.temporal_history))""",
            captured("temporal"),
            "INSERT INTO dbo.temporal (id, v) VALUES (1, 'a')",
        ),
        changes=("UPDATE dbo.temporal SET v = 'b'", "INSERT INTO dbo.temporal (id, v) VALUES (2, 'c')"),
    ),
)
STREAM = Course(
    name="stream",
    databases=("conf_stream",),
    scripts=SCRIPTS,
    readings=READINGS,
    properties={"schema.history.internal.store.only.captured.tables.ddl": "true"},
)
