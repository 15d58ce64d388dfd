"""What enabling and disabling refuse, and with which words."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.cdc.client import World
from tests.cdc.statements import TABLE, disable, enable


@dataclass(frozen=True)
class Refusal:
    """Statements to prepare, the one which must fail, its number and the beginning of its text."""

    statement: str
    number: int
    text: str
    prepare: tuple[str, ...] = ()
    enabled: bool = True


REFUSALS = {
    "[doc] table in a database without CDC": Refusal(
        enable(), 22901, "The database 'testdb' is not enabled for Change Data Capture.", enabled=False
    ),
    "[doc] no such table": Refusal(
        enable(table="nothing"), 22931, "Source table 'dbo.nothing' does not exist in the current database."
    ),
    "[doc] table of schema cdc": Refusal(
        enable(schema="cdc", table="change_tables"), 22974, "Tables contained in the cdc schema cannot be enabled"
    ),
    "[doc] name taken": Refusal(
        enable("@capture_instance = N'one'", table="u"),
        22926,
        "Could not create a capture instance because the capture instance name 'one' already exists",
        ("CREATE TABLE dbo.u (id int PRIMARY KEY)", enable("@capture_instance = N'one'")),
    ),
    "[doc] third instance": Refusal(
        enable("@capture_instance = N'three'"),
        22962,
        "Two capture instances already exist for source table 'dbo.t'.",
        (enable("@capture_instance = N'one'"), enable("@capture_instance = N'two'")),
    ),
    "[doc] long name": Refusal(
        enable(f"@capture_instance = N'{'x' * 101}'"), 22927, f"Capture instance name '{'x' * 101}' exceeds the length"
    ),
    "[sys] long derived name": Refusal(
        enable(table="x" * 100),
        22927,
        f"Capture instance name 'dbo_{'x' * 100}' exceeds the length limit of 100 characters.",
        (f"CREATE TABLE dbo.{'x' * 100} (id int)",),
    ),
    "[doc] net changes without key": Refusal(
        enable("@supports_net_changes = 1", table="k"),
        22939,
        "The parameter @supports_net_changes is set to 1, but the source table does not have a primary key defined",
        ("CREATE TABLE dbo.k (id int)",),
    ),
    "[doc] unknown index": Refusal(enable("@index_name = N'no'"), 22928, "Index name 'no' is not an index for table"),
    "[doc] index not unique": Refusal(
        enable("@index_name = N'ix'"),
        22929,
        "Index 'ix' must be either a primary key or a unique index",
        ("CREATE INDEX ix ON dbo.t (a)",),
    ),
    "[doc] index with nullable column": Refusal(
        enable("@index_name = N'ux'"),
        22838,
        "All columns of a CDC unique index must be defined as NOT NULL.",
        ("CREATE UNIQUE INDEX ux ON dbo.t (a)",),
    ),
    "[doc] unknown column": Refusal(
        enable("@captured_column_list = N'id, x'"), 22930, "Could not locate 'x' as a column of source table 'dbo.t'."
    ),
    "[doc] open quote in column list": Refusal(
        enable("@captured_column_list = N'[id'"), 22965, "A quoted column in the column list is not properly terminated"
    ),
    "[doc] key not captured": Refusal(
        enable("@captured_column_list = N'a'"), 22943, "Columns used to uniquely identify a row for net change tracking"
    ),
    "[doc] reserved column name": Refusal(
        enable(table="r"),
        22975,
        "Source table 'r' contains one of the following reserved column names",
        ("CREATE TABLE dbo.r (id int, [__$seqval] int)",),
    ),
    "[doc] disable an unknown instance": Refusal(
        disable("no"), 22960, "Change data capture instance 'no' has not been enabled for the source table", (enable(),)
    ),
    "[doc] disable an untracked table": Refusal(
        disable("dbo_t"), 22985, "Change data capture has not been enabled for source table 'dbo.t'."
    ),
    "[doc] disable without instance": Refusal(
        disable(""), 22963, "Parameter '@capture_instance' cannot be null or empty.", (enable(),)
    ),
    "[doc] help with half a name": Refusal(
        "EXEC sys.sp_cdc_help_change_data_capture @source_schema = N'dbo'",
        22972,
        "When calling stored procedure [sys].sp_cdc_help_change_data capture",
    ),
    "[doc] truncate of a tracked table": Refusal(
        "TRUNCATE TABLE dbo.t",
        4711,
        "Cannot truncate table 't' because it is published for replication or enabled for Change Data Capture.",
        (enable(),),
    ),
    "[fab] rename of a captured column": Refusal(
        "EXEC sp_rename 'dbo.t.a', 'b', 'COLUMN'",
        4928,
        "Cannot alter column 'a' because it is 'REPLICATED'.",
        (enable(),),
    ),
}


def test_disabling_all_instances_of_an_untracked_table_does_nothing(world: World) -> None:
    """[dbz] its test of purged logs disables all instances of a table a second time."""
    world.execute(TABLE)
    world.enable()
    assert world.execute(disable("all")).errors == []


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS)
def test_enabling_refuses_with_the_documented_error(world: World, case: Refusal) -> None:
    world.execute(TABLE)
    if case.enabled:
        world.enable()
    for statement in case.prepare:
        world.execute(statement)
    failure = world.error(case.statement)
    text = case.text.replace("testdb", world.database)
    assert (failure.number, failure.text[: len(text)]) == (case.number, text)


def test_enable_db_twice_is_only_a_message(world: World) -> None:
    """[doc] 22905 has level 10."""
    world.require_messages()
    world.enable()
    (message,) = world.send("EXEC sys.sp_cdc_enable_db").messages
    assert (message.number, message.severity) == (22905, 10)


def test_disable_db_without_cdc_is_only_a_message(world: World) -> None:
    """[sys] 22901 as level 10."""
    world.require_messages()
    (message,) = world.send("EXEC sys.sp_cdc_disable_db").messages
    assert (message.number, message.severity) == (22901, 10)


def test_enable_db_refuses_a_taken_name(world: World) -> None:
    """[doc] 22906: schema cdc exists."""
    world.execute("CREATE SCHEMA cdc")
    assert world.error("EXEC sys.sp_cdc_enable_db").number == 22906


def test_enable_db_needs_sysadmin(world: World) -> None:
    """[doc] 22902 names the privilege."""
    world.add_user("reader")
    assert world.error("EXEC sys.sp_cdc_enable_db", login="reader").number == 22902


def test_enable_table_needs_owner(world: World) -> None:
    """[doc] 22904."""
    world.execute(TABLE)
    world.enable()
    world.add_user("reader")
    assert world.error(enable(), login="reader").number == 22904
