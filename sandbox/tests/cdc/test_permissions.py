"""Who may see changes, and what the least is that a connector needs."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.cdc.client import World

USER = "connector"
ALL = (
    "SELECT id FROM cdc.fn_cdc_get_all_changes_dbo_t(sys.fn_cdc_get_min_lsn('dbo_t'), sys.fn_cdc_get_max_lsn(), N'all')"
)


@pytest.fixture
def tracked(world: World) -> World:
    """A tracked table with a gating role, and a user without any permission."""
    world.execute("CREATE TABLE dbo.t (id int PRIMARY KEY, a int, secret int)")
    world.enable("t", role_name="N'gate'")
    world.stop_capture()
    world.execute("INSERT t VALUES (1, 1, 1)")
    world.capture()
    world.add_user(USER)
    return world


@dataclass(frozen=True)
class Gate:
    """What the user is given, and what it sees: the change function's answer, and whether there is a minimum."""

    given: tuple[str, ...]
    function: list[tuple] | int
    minimum: bool


GATES = {
    "[doc] role and SELECT on all captured columns": Gate(
        ("ALTER ROLE gate ADD MEMBER connector", "GRANT SELECT ON dbo.t TO connector"), [(1,)], True
    ),
    "[doc] SELECT on the schema": Gate(
        ("ALTER ROLE gate ADD MEMBER connector", "GRANT SELECT ON SCHEMA::dbo TO connector"), [(1,)], True
    ),
    "[doc] db_datareader": Gate(
        ("ALTER ROLE gate ADD MEMBER connector", "ALTER ROLE db_datareader ADD MEMBER connector"), [(1,)], True
    ),
    "[doc] the role alone": Gate(("ALTER ROLE gate ADD MEMBER connector",), 229, False),
    "[doc] SELECT alone": Gate(("GRANT SELECT ON dbo.t TO connector",), 229, False),
    "[doc] one captured column is denied": Gate(
        (
            "ALTER ROLE gate ADD MEMBER connector",
            "GRANT SELECT ON dbo.t TO connector",
            "DENY SELECT ON dbo.t (secret) TO connector",
        ),
        229,
        False,
    ),
    "[doc] db_owner is gated by nothing": Gate(("ALTER ROLE db_owner ADD MEMBER connector",), [(1,)], True),
    "nothing": Gate((), 229, False),
}


@pytest.mark.parametrize("gate", GATES.values(), ids=GATES)
def test_changes_are_for_members_of_the_role_who_may_select_all_columns(tracked: World, gate: Gate) -> None:
    """Others get 229 from the function, zeros for the minimum, and no row from the help procedure."""
    for statement in gate.given:
        tracked.execute(statement)
    answer = tracked.send(ALL, login=USER)
    assert (answer.errors[0] if answer.errors else answer.sets[-1]) == gate.function
    assert (tracked.value("SELECT sys.fn_cdc_get_min_lsn('dbo_t')", login=USER) != bytes(10)) == gate.minimum
    assert bool(tracked.rows("EXEC sys.sp_cdc_help_change_data_capture", login=USER)) == gate.minimum


def test_the_change_table_itself_follows_ordinary_permissions(tracked: World) -> None:
    """[doc] the gate is in the functions; who reads the table needs SELECT on it or its schema."""
    read = "SELECT id FROM cdc.dbo_t_CT"
    assert tracked.error(read, login=USER).number == 229
    tracked.execute(f"GRANT SELECT ON SCHEMA::cdc TO {USER}")
    assert tracked.rows(read, login=USER) == [(1,)]


COLUMNS = {
    "[doc] denied column": (
        ("GRANT SELECT ON dbo.t TO connector", "DENY SELECT ON dbo.t (secret) TO connector"),
        {"id", "a"},
    ),
    "[doc] granted columns": (("GRANT SELECT (id, a) ON dbo.t TO connector",), {"id", "a"}),
    "[doc] grant on a column and denial of the table": (
        ("DENY SELECT ON dbo.t TO connector", "GRANT SELECT ON dbo.t (id) TO connector"),
        {"id"},
    ),
    "whole table": (("GRANT SELECT ON dbo.t TO connector",), {"id", "a", "secret"}),
}


@pytest.mark.parametrize(("given", "expected"), COLUMNS.values(), ids=COLUMNS)
def test_columns_may_be_granted_and_denied(tracked: World, given: tuple[str, ...], expected: set[str]) -> None:
    """230 names the column; `*` needs all of them. A column's grant wins over the table's denial."""
    for statement in given:
        tracked.execute(statement)
    allowed = set()
    for column in ("id", "a", "secret"):
        failure = tracked.send(f"SELECT {column} FROM dbo.t", login=USER)
        if not failure.errors:
            allowed.add(column)
            continue
        text = (
            f"The SELECT permission was denied on the column '{column}' of the object 't', "
            f"database '{tracked.database}', schema 'dbo'."
        )
        assert [(m.number, m.text) for m in failure.messages] == [(230, text)]
    assert allowed == expected
    star = tracked.send("SELECT * FROM dbo.t", login=USER).errors
    assert star == ([] if len(expected) == 3 else [230])
    assert tracked.send("SELECT id FROM dbo.t WHERE secret = 1", login=USER).errors == (
        [] if "secret" in expected else [230]
    )


def test_the_documented_login_is_enough_to_read_changes(tracked: World) -> None:
    """The least: SELECT on the tables and on schema cdc, the gating role, VIEW SERVER STATE."""
    for statement in (
        f"ALTER ROLE gate ADD MEMBER {USER}",
        f"GRANT SELECT ON SCHEMA::dbo TO {USER}",
        f"GRANT SELECT ON SCHEMA::cdc TO {USER}",
        f"USE master; GRANT VIEW SERVER STATE TO {USER}; USE {tracked.database}",
    ):
        tracked.execute(statement)
    for statement in (
        "SELECT * FROM dbo.t",
        "SELECT * FROM cdc.dbo_t_CT",
        ALL,
        "SELECT sys.fn_cdc_get_max_lsn(), sys.fn_cdc_get_min_lsn('dbo_t')",
        "SELECT * FROM cdc.lsn_time_mapping",
        "SELECT * FROM cdc.change_tables",
        "SELECT * FROM cdc.captured_columns",
        "EXEC sys.sp_cdc_help_change_data_capture",
        "SELECT * FROM sys.dm_cdc_log_scan_sessions",
        "SELECT * FROM sys.dm_cdc_errors",
        "SELECT log_end_lsn FROM sys.dm_db_log_stats(DB_ID())",
    ):
        assert tracked.rows(statement, login=USER) != [] or "errors" in statement, statement
    assert tracked.error("INSERT dbo.t VALUES (2, 2, 2)", login=USER).number == 229


SEEN = {
    "[doc] nothing": ((), False),
    "[doc] SELECT on the table": (("GRANT SELECT ON dbo.t TO connector",), True),
    "[doc] SELECT on a column": (("GRANT SELECT ON dbo.t (id) TO connector",), True),
    "[doc] any permission on the schema": (("GRANT EXECUTE ON SCHEMA::dbo TO connector",), True),
    "[doc] VIEW DEFINITION": (("GRANT VIEW DEFINITION TO connector",), True),
    "[doc] db_datareader": (("ALTER ROLE db_datareader ADD MEMBER connector",), True),
    "[doc] CONNECT is none": (("GRANT CONNECT TO connector",), False),
    "[doc] state is none": (("GRANT VIEW DATABASE STATE TO connector",), False),
}


@pytest.mark.parametrize(("given", "shown"), SEEN.values(), ids=SEEN)
def test_the_catalogue_shows_what_one_has_permissions_on(tracked: World, given: tuple[str, ...], shown: object) -> None:
    """Views, functions and catalogue procedures agree; owners see everything."""
    for statement in given:
        tracked.execute(statement)
    answers = [
        tracked.rows("SELECT name FROM sys.tables WHERE name = 't'", login=USER),
        tracked.rows("SELECT c.name FROM sys.columns c WHERE c.object_id = OBJECT_ID('dbo.t')", login=USER),
        tracked.rows("SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME = 't'", login=USER),
        tracked.rows("SELECT 1 WHERE OBJECT_ID('dbo.t') IS NOT NULL", login=USER),
        tracked.rows("SELECT name FROM sys.objects WHERE parent_object_id <> 0", login=USER),
        tracked.rows("EXEC sp_tables @table_name = N't'", login=USER),
        tracked.rows("EXEC sp_pkeys @table_name = N't', @table_owner = N'dbo'", login=USER),
    ]
    assert [bool(rows) for rows in answers] == [shown] * len(answers)
    assert tracked.rows("SELECT name FROM sys.tables WHERE name = 't'") == [("t",)]


OWNERS = {
    "enable_table": "EXEC sys.sp_cdc_enable_table N'dbo', N't', N'x', @role_name = NULL",
    "disable_table": "EXEC sys.sp_cdc_disable_table N'dbo', N't', N'all'",
    "help_jobs": "EXEC sys.sp_cdc_help_jobs",
    "change_job": "EXEC sys.sp_cdc_change_job @maxtrans = 5",
    "stop_job": "EXEC sys.sp_cdc_stop_job",
    "cleanup": "EXEC sys.sp_cdc_cleanup_change_table N'dbo_t', NULL",
    "cleanup job": "EXEC sys.sp_MScdc_cleanup_job",
    "upgrade": "EXEC sys.sp_cdc_vupgrade",
}


@pytest.mark.parametrize("statement", OWNERS.values(), ids=OWNERS)
def test_tables_and_jobs_are_for_owners(tracked: World, statement: str) -> None:
    """[doc] 22904."""
    assert tracked.error(statement, login=USER).number == 22904


def test_scanning_asks_as_replication_does(tracked: World) -> None:
    """[sys] it begins with the check of replication, whose error is 21050; the job's procedure adds 22864."""
    assert tracked.error("EXEC sys.sp_cdc_scan", login=USER).number == 21050
    errors = tracked.send("EXEC sys.sp_MScdc_capture_job", login=USER).errors
    assert errors
    assert set(errors) <= {21050, 22864}


@pytest.mark.parametrize("procedure", ["sp_cdc_enable_db", "sp_cdc_disable_db"])
def test_databases_are_for_sysadmins_not_for_owners(tracked: World, procedure: str) -> None:
    """[doc] 22902, but in Azure SQL Database."""
    tracked.execute(f"ALTER ROLE db_owner ADD MEMBER {USER}")
    assert tracked.error(f"EXEC sys.{procedure}", login=USER).number == 22902


DEFINITIONS = {
    "[doc] nothing": ((), 1088),
    "[doc] ALTER by grant, with change data capture": (("GRANT ALTER ON dbo.t TO connector",), 22914),
    "[doc] db_ddladmin": (("ALTER ROLE db_ddladmin ADD MEMBER connector",), None),
    "[doc] db_owner": (("ALTER ROLE db_owner ADD MEMBER connector",), None),
}


@pytest.mark.parametrize(("given", "number"), DEFINITIONS.values(), ids=DEFINITIONS)
def test_definitions_are_changed_by_fixed_roles(tracked: World, given: tuple[str, ...], number: int | None) -> None:
    for statement in given:
        tracked.execute(statement)
    assert tracked.send("ALTER TABLE dbo.t ADD b int", login=USER).errors == ([] if number is None else [number])


CREATIONS = {
    "CREATE TABLE dbo.n (id int)": 262,
    "CREATE VIEW dbo.n AS SELECT 1 AS a": 262,
    "DROP TABLE dbo.t": 3701,
    "TRUNCATE TABLE dbo.t": 1088,
    "CREATE INDEX ix ON dbo.t (a)": 1088,
    "CREATE LOGIN other WITH PASSWORD = 'Aa1-aaaaaaaa'": 15247,
    "CREATE ROLE other": 15247,
    "CREATE DATABASE other": 262,
    "ALTER DATABASE CURRENT SET RECOVERY SIMPLE": 5011,
}


@pytest.mark.parametrize(("statement", "number"), CREATIONS.items(), ids=CREATIONS)
def test_administration_needs_its_permission(tracked: World, statement: str, number: int) -> None:
    """[doc] numbers that say no more than that something is missing."""
    assert tracked.error(statement, login=USER).number == number


def test_a_database_without_a_user_is_closed(world: World) -> None:
    """[doc] 916."""
    world.add_user(USER)
    other = f"{world.database}_other"
    world.execute(f"CREATE DATABASE [{other}]")
    failure = world.error(f"USE [{other}]", login=USER)
    world.execute(f"DROP DATABASE [{other}]")
    assert (failure.number, failure.severity) == (916, 14)
