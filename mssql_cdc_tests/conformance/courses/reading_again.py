"""ReselectColumns: columns that are read again; updates that change nothing wanted; databases of other collations."""

from __future__ import annotations

from mssql_cdc_tests.conformance.workload import NULLS, SCHEMAS, Course, Reading, Script, captured

_TYPE = "io.debezium.processors.reselect.ReselectColumnsPostProcessor"
_AGAIN = {"post.processors": "again", "again.type": _TYPE, "again.reselect.columns.include.list": "dbo.ra_null:(v|d)"}
_ONLY = {"schema.history.internal.store.only.captured.tables.ddl": "true"}
_PROCESSOR = "AbstractReselectProcessorTest"
AGAIN = Course(
    name="reselect",
    databases=("conf_reselect",),
    properties=_ONLY,
    scripts=(
        Script(
            name="null while streaming",
            group="reselect",
            restates=f"{_PROCESSOR}.testColumnsReselectedWhenValueIsNullStreaming",
            tables=("dbo.ra_null",),
            setup=(
                "CREATE TABLE dbo.ra_null (id int PRIMARY KEY, v varchar(50), n int, d varchar(9) DEFAULT 'd')",
                captured("ra_null"),
                "INSERT INTO dbo.ra_null VALUES (1, NULL, 1, NULL)",
            ),
            changes=(
                """BEGIN TRAN INSERT INTO dbo.ra_null VALUES (2, NULL, 1, NULL)
                   UPDATE dbo.ra_null SET v = 'now', d = 'now' WHERE id = 2 COMMIT""",
                "INSERT INTO dbo.ra_null VALUES (3, 'x', 1, 'x')",
                "UPDATE dbo.ra_null SET n = 2 WHERE id = 1",
                "DELETE FROM dbo.ra_null WHERE id = 3",
            ),
        ),
        Script(
            name="no null",
            group="reselect",
            restates=f"{_PROCESSOR}.testNoColumnsReselectedWhenNotNullStreaming",
            tables=("dbo.ra_other",),
            setup=(
                "CREATE TABLE dbo.ra_other (id int PRIMARY KEY, v varchar(50))",
                captured("ra_other"),
                "INSERT INTO dbo.ra_other VALUES (1, 'a')",
            ),
            changes=("UPDATE dbo.ra_other SET v = 'b'", "INSERT INTO dbo.ra_other VALUES (2, NULL)"),
        ),
    ),
    readings=(
        Reading(name="nulls", properties=SCHEMAS | NULLS | _AGAIN),
        Reading(
            name="neither",
            properties=SCHEMAS
            | NULLS
            | _AGAIN
            | {"again.reselect.null.values": "false", "again.reselect.unavailable.values": "false"},
        ),
    ),
)


def _unchanged(name: str, **lists: str) -> Reading:
    """A reading of `skip.messages.without.change` under lists of columns."""
    given = {option.replace("_", "."): value for option, value in lists.items()}
    return Reading(name=name, properties={**SCHEMAS, "skip.messages.without.change": "true", **given})


_SKIPS = "SqlServerSkipMessagesWithNoUpdateConfigIT"
SKIPPED = Course(
    name="unchanged",
    databases=("conf_unchanged",),
    properties=_ONLY,
    scripts=(
        Script(
            name="columns that nobody wants",
            group="streaming",
            restates=f"{_SKIPS}.shouldSkipEventsWithNoChangeInIncludedColumnsWhenSkipEnabled",
            tables=("dbo.skip_test",),
            setup=(
                "CREATE TABLE dbo.skip_test (id int PRIMARY KEY, white int, black int)",
                captured("skip_test"),
                "INSERT INTO dbo.skip_test VALUES (1, 1, 1)",
            ),
            changes=(
                "INSERT INTO dbo.skip_test VALUES (2, 2, 2)",
                "UPDATE dbo.skip_test SET black = 3 WHERE id = 1",
                "UPDATE dbo.skip_test SET white = 3 WHERE id = 1",
                "UPDATE dbo.skip_test SET white = 4, black = 4 WHERE id = 2",
                "UPDATE dbo.skip_test SET id = 5 WHERE id = 2",
                "DELETE FROM dbo.skip_test WHERE id = 1",
            ),
        ),
    ),
    readings=(
        _unchanged("included", column_include_list=r"dbo\.fence\..*,dbo\.skip_test\.id,dbo\.skip_test\.white"),
        _unchanged("excluded", column_exclude_list=r"dbo\.skip_test\.black"),
        Reading(name="kept", properties={**SCHEMAS, "column.exclude.list": r"dbo\.skip_test\.black"}),
    ),
)


def _case(name: str, collation: str, *, instance: str) -> Course:
    return Course(
        name=f"{name} database",
        databases=(f"Conf_{name}",),
        collation=collation,
        properties=_ONLY,
        scripts=(
            Script(
                name="names of mixed case",
                group="names and defaults",
                restates=f"CaseSensitivenessIT.case{name.capitalize()}Database",
                tables=("dbo.MyTableOne",),
                setup=(
                    "CREATE TABLE dbo.MyTableOne (Id int PRIMARY KEY, ColA varchar(30))",
                    captured("MyTableOne", capture_instance=f"N'{instance}'"),
                    "INSERT INTO dbo.MyTableOne VALUES (1, 'a')",
                ),
                changes=(
                    "INSERT INTO dbo.MyTableOne VALUES (2, 'b')",
                    "UPDATE dbo.MyTableOne SET ColA = 'B' WHERE Id = 2",
                    "UPDATE dbo.MyTableOne SET Id = 3 WHERE Id = 1",
                ),
            ),
        ),
        readings=(Reading(name="schemas", properties=SCHEMAS),),
    )


CASES = (
    _case("insensitive", "SQL_Latin1_General_CP1_CI_AS", instance="DBO_MYTABLEONE"),
    _case("sensitive", "Latin1_General_BIN", instance="dbo_MyTableOne"),
)
