"""Which tables and columns are captured, and masks: what both connectors leave out or hide."""

from __future__ import annotations

from mssql_cdc_tests.conformance.workload import SCHEMAS, Course, Reading, Script, captured

_ONLY = {"schema.history.internal.store.only.captured.tables.ddl": "true"}
READINGS = (
    Reading(
        name="include lists",
        properties=SCHEMAS
        | _ONLY
        | {
            "table.include.list": r"dbo\.fence,dbo\.f_a,other\.f_b",
            "column.include.list": r"dbo\.fence\..*,dbo\.f_a\.(id|name),other\.f_b\.(id|secret)",
        },
    ),
    Reading(
        name="exclude lists",
        properties=SCHEMAS
        | _ONLY
        | {
            "table.exclude.list": r"dbo\.marker,other\..*",
            "column.exclude.list": r"dbo\.f_a\.secret,conf_filters\.dbo\.f_c\.n",
        },
    ),
    Reading(
        name="schemas",
        properties=SCHEMAS
        | _ONLY
        | {
            "schema.include.list": "dbo",
            "table.exclude.list": r"dbo\.marker,dbo\.f_c",
            "column.exclude.list": r"dbo\.f_a\.id",
        },
    ),
    Reading(
        name="masks",
        properties=SCHEMAS
        | _ONLY
        | {
            "column.mask.hash.SHA-256.with.salt.CzQMA0cB5K": r"dbo\.f_a\.name",
            "column.mask.hash.v2.SHA-256.with.salt.CzQMA0cB5K": r"other\.f_b\.name",
            "column.mask.with.12.chars": r"dbo\.f_a\.secret",
            "column.truncate.to.4.chars": r"other\.f_b\.(secret|long|raw)",
        },
    ),
    Reading(
        name="masks, long names",
        properties=SCHEMAS
        | _ONLY
        | {
            "column.mask.hash.v2.MD5.with.salt.s": r"conf_filters\.dbo\.f_a\.name",
            "column.mask.with.0.chars": r"conf_filters\.dbo\.f_a\.secret",
            "column.truncate.to.3.chars": r"conf_filters\.other\.f_b\.name",
            "column.propagate.source.type": r"other\..*",
        },
    ),
    Reading(
        name="masked keys",
        properties=SCHEMAS
        | _ONLY
        | {
            "message.key.columns": r"dbo\.f_k:name,n",
            "column.mask.hash.v2.SHA-256.with.salt.s": r"dbo\.f_k\.name",
        },
        features=("EVT-04",),
    ),
)


def _script(table: str, *, schema: str = "dbo", readings: tuple[str, ...], restates: str) -> Script:
    name = f"{schema}.{table}"
    expected = {
        "f_a": {"schemas": ("excluded-key",)},
        "f_c": {"exclude lists": ("column-of-a-database",)},
        "f_k": {"masked keys": ("masked-key",)},
    }
    made = () if schema == "dbo" else (f"CREATE SCHEMA {schema}",)
    return Script(
        name=name,
        group="filters and masks",
        restates=f"SqlServerConnectorIT.{restates}",
        tables=(name,),
        readings=readings,
        expected=expected.get(table, {}),
        setup=(
            *made,
            f"""CREATE TABLE {name} (id int PRIMARY KEY, name varchar(20), n int, secret nvarchar(20),
                long varchar(max), raw varbinary(20))""",
            captured(table, schema=schema),
            (
                f"INSERT INTO {name} VALUES (1, 'one', 1, N'sécret', REPLICATE(CAST('x' AS varchar(max)), 9000), "
                "0x0102030405)"
            ),
        ),
        changes=(
            f"INSERT INTO {name} VALUES (2, 'a name that is', 2, NULL, NULL, NULL)",
            f"UPDATE {name} SET n = 5 WHERE id = 1",
            f"UPDATE {name} SET name = NULL, secret = N'new' WHERE id = 2",
            f"DELETE FROM {name} WHERE id = 1",
        ),
    )


SCRIPTS = (
    _script(
        "f_a",
        readings=("include lists", "exclude lists", "schemas", "masks", "masks, long names"),
        restates="shouldConsumeEventsWithMaskedHashedColumns",
    ),
    _script(
        "f_b",
        schema="other",
        readings=("include lists", "masks", "masks, long names"),
        restates="shouldConsumeEventsWithMaskedAndTruncatedColumns",
    ),
    _script("f_c", readings=("exclude lists",), restates="testColumnExcludeList"),
    _script("f_k", readings=("masked keys",), restates="shouldConsumeEventsWithMaskedHashedColumns"),
)
FILTERS = Course(name="filters", databases=("conf_filters",), scripts=SCRIPTS, readings=READINGS)
