"""Azure SQL Database, readable secondaries, and instances that have not begun (PRE-07, HA-01)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from mssql_sandbox.process import sandbox_process

from mssql_cdc.capture.database import Database
from mssql_cdc.capture.snapshot.begin import Wanted, begin
from mssql_cdc.capture.survey import survey
from mssql_cdc.config import Connection
from mssql_cdc.config.driver import DriverSetting
from mssql_cdc.errors import ConfigurationError, SourceUnavailableError, StaleReaderError
from mssql_cdc.source.sqlserver import health, kept, log_end, positions, replica_states
from mssql_cdc.source.sqlserver.catalog import captured_tables, database
from mssql_cdc.source.sqlserver.check_session import SqlServerCheckSession
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc.source.sqlserver.replica import NAME, is_primary
from mssql_cdc.source.sqlserver.snapshot_reader import locked
from mssql_cdc.source.sqlserver.source import SqlServerSource
from mssql_cdc_tests.sandbox_source.kit import Shop, open_shop, rows, server_values


@pytest.fixture(scope="module")
def azure_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    with sandbox_process(tmp_path_factory.mktemp("azure"), "--server-version", "azure") as process:
        yield server_values(process)


@pytest.fixture
def azure(azure_server: dict[str, object]) -> Iterator[Shop]:
    with open_shop(azure_server, agent=False) as shop:
        yield shop


@pytest.mark.feature("PRE-07")
def test_a_varchar_key_is_a_key_in_azure_where_the_databases_id_is_another(azure: Shop) -> None:
    """Review, 5.2: without the database's collation every varchar column counts as doubtful."""
    azure.create("t", "code varchar(20) NOT NULL PRIMARY KEY, n int")
    azure.run("INSERT dbo.t VALUES ('a', 1)")
    azure.scan()

    assert azure.control.value("SELECT 1 FROM sys.databases WHERE database_id = DB_ID()", doing="testing") is None
    assert azure.instance("t").schema.key_columns == ("code",)
    assert azure.instance("t").warnings == ()


@pytest.mark.feature("PRE-07")
def test_azure_without_agent_and_msdb_is_captured_as_any_other(azure: Shop) -> None:
    azure.create("t", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    azure.run("INSERT dbo.t VALUES (1, N'a')", "UPDATE dbo.t SET name = N'b'")
    known = log_end.mark(azure.control)
    azure.scan()
    azure.scan()

    assert database(azure.control, azure.catalog).name == azure.catalog
    assert log_end.newest_passed(azure.control, [known], log_end.SeenLog())
    assert positions.retention(azure.control) == timedelta(days=3)
    assert [row["op"] for row in rows(azure.changes("t"))] == ["c", "u"]
    assert [row["after"] for row in rows(azure.chunk("t"))] == [{"id": 1, "name": "b"}]


@contextmanager
def in_group(shop: Shop) -> Iterator[Shop]:
    """The shop as a login sees it that asks for a secondary, which there is until the block ends."""
    shop.create("t", "id int NOT NULL PRIMARY KEY, name nvarchar(50) NULL")
    shop.run("INSERT dbo.t VALUES (1, N'a')", "EXEC sandbox.replica_lag @seconds = 0")
    shop.scan()
    settings = (*shop.connection.driver_settings, DriverSetting("applicationIntent", "ReadOnly"))
    yield replace(shop, connection=replace(shop.connection, driver_settings=settings, read_only=True))
    shop.run("EXEC sandbox.replica_drop")


@pytest.fixture
def secondary(shop: Shop) -> Iterator[Shop]:
    """The shop of a login that asks for a secondary; `Shop.control` stays on the primary."""
    with in_group(shop) as opened:
        yield opened


@pytest.mark.feature("HA-01")
@pytest.mark.parametrize("isolation", ["READ COMMITTED", "SNAPSHOT"])
def test_a_secondary_is_read_as_the_primary_is(secondary: Shop, isolation: str) -> None:
    if isolation == "SNAPSHOT":
        secondary.run("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON")

    assert [row["after"] for row in rows(secondary.changes("t"))] == [{"id": 1, "name": "a"}]
    assert [row["after"] for row in rows(secondary.chunk("t", isolation=isolation))] == [{"id": 1, "name": "a"}]


@pytest.mark.feature("STR-14")
def test_the_agent_of_a_secondary_is_not_blamed(secondary: Shop) -> None:
    """The job runs on the primary; the Agent of another server is often off, and starting it would change nothing."""
    try:
        secondary.run("EXEC sandbox.agent_stop", "EXEC sandbox.advance_clock @seconds = 3000")
        with control(secondary.connection, secondary.catalog) as opened:
            said = health.stalled(opened, secondary.connection) or ""
        assert "as this readable secondary shows it; check on the primary that SQL Server Agent is running" in said
        assert "start it" not in said
    finally:
        secondary.run("EXEC sandbox.agent_start")
        secondary.set_clock(datetime.now(UTC))


@pytest.mark.feature("HA-01")
def test_a_secondary_that_lags_is_stale(secondary: Shop) -> None:
    secondary.run("EXEC sandbox.replica_freeze", "INSERT dbo.t VALUES (2, NULL)")
    to = secondary.scan()

    with pytest.raises(StaleReaderError):
        rows(secondary.changes("t", to=to))
    with pytest.raises(StaleReaderError):
        rows(secondary.chunk("t"))


@pytest.mark.feature("HA-01")
def test_the_end_of_the_log_is_passed_on_a_secondary_that_shows_no_scans(secondary: Shop) -> None:
    """Review, 5.10: a mark could never be passed there. A row of an idle log proves nothing there."""
    with control(secondary.connection, secondary.catalog) as replica:
        assert database(replica, secondary.catalog).name == secondary.catalog
        known = log_end.mark(replica)
        secondary.scan()

        assert log_end.scans(replica) == []
        for number in range(3):
            secondary.run("EXEC sandbox.advance_clock @seconds = 400", f"CREATE TABLE dbo.untracked{number} (id int)")
            secondary.scan()
        reached = positions.standing(replica)
        assert reached.settled is not None
        assert reached.settled > known.lsn
        assert not log_end.newest_passed(replica, [known], log_end.SeenLog())
        secondary.run("INSERT dbo.t VALUES (2, NULL)")
        secondary.scan()
        assert log_end.newest_passed(replica, [known], log_end.SeenLog())


@pytest.mark.feature("HA-01")
@pytest.mark.parametrize("platform", ["shop", "azure"])
def test_the_end_of_a_secondarys_own_log_is_at_or_after_all_that_it_shows(
    platform: str, request: pytest.FixtureRequest
) -> None:
    """sys.dm_db_log_stats shows no end there, and a savepoint writes: each snapshot failed at its begin."""
    with (
        in_group(request.getfixturevalue(platform)) as secondary,
        control(secondary.connection, secondary.catalog) as replica,
    ):
        assert replica.value("SELECT log_end_lsn FROM sys.dm_db_log_stats(DB_ID())", doing="testing") is None
        shown = positions.captured(replica)
        first = log_end.log_end(replica)
        assert shown is not None
        assert first > shown
        secondary.run("EXEC sandbox.replica_disconnect", "INSERT dbo.t VALUES (2, NULL)")
        held = log_end.log_end(replica)
        secondary.run("EXEC sandbox.replica_lag @seconds = 0")
        newest = secondary.scan()
        assert first <= held < newest < log_end.log_end(replica), "of its copy of the log, which had not gone on"


@pytest.mark.feature("HA-01")
def test_a_secondary_that_does_not_know_the_end_of_its_log_is_asked_again(
    secondary: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its state may be unavailable for a while [doc]; without the end, nothing bounds what was read."""
    statement = replica_states._OWN_LOG
    monkeypatch.setattr(replica_states, "_OWN_LOG", statement.replace("is_local = 1", "is_local = 2"))
    with control(secondary.connection, secondary.catalog) as replica, pytest.raises(SourceUnavailableError) as raised:
        log_end.log_end(replica)
    assert "readable secondary" in str(raised.value)


@pytest.mark.feature("HA-01")
def test_a_table_without_a_key_is_refused_on_a_secondary_which_ignores_locks(secondary: Shop) -> None:
    """Review, 5.10: rows were read later than the position that they were given."""
    secondary.create("heap", "a int NULL")
    schema = secondary.instance("heap").schema

    with (
        pytest.raises(ConfigurationError, match="readable secondary"),
        locked(secondary.connection, secondary.catalog, [schema], 1000),
    ):
        pass


def connector_of(shop: Shop) -> SqlServerSource:
    return SqlServerSource(replace(shop.connector, connection=shop.connection))


@pytest.mark.feature("HA-01")
def test_readers_reach_the_replica_on_which_the_logs_end_is_read(secondary: Shop) -> None:
    """Audit of issue 10, 6: another one may be further ahead, so that rows are newer than the log's end."""
    source, wanted = connector_of(secondary), secondary.chunk("t").wanted
    with source.session(secondary.catalog):
        reader = source.chunk_reader(secondary.catalog, wanted)
        assert reader.replica
        assert [row["after"] for row in rows(reader)] == [{"id": 1, "name": "a"}]
        with pytest.raises(StaleReaderError, match="8 connections have not reached the readable secondary 'elsewhere'"):
            rows(replace(reader, replica="elsewhere"))


@pytest.mark.feature("HA-01")
def test_a_session_beside_another_one_reaches_the_same_replica(
    secondary: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sandbox is one server: the name that it answers is put in the place of others."""
    source, names = connector_of(secondary), iter(["a", "b", "a", *["b"] * 16])
    value = kept.Control.value

    def named(self: kept.Control, sql: str, *parameters: object, doing: str) -> object:
        return next(names) if sql == NAME else value(self, sql, *parameters, doing=doing)

    monkeypatch.setattr(kept.Control, "value", named)
    with source.session(secondary.catalog):
        assert source.kept[secondary.catalog].replica == "a"
        with source.session(secondary.catalog):
            assert source.kept[secondary.catalog].replica == "a"
        with (
            source.session(secondary.catalog),
            pytest.raises(StaleReaderError, match="readable secondary 'a'"),
            source.session(secondary.catalog),
        ):
            pass
    source.kept[secondary.catalog]._idle = None
    with source.session(secondary.catalog):
        assert source.kept[secondary.catalog].replica == "b", "nothing relies on a replica that is gone"


@pytest.mark.feature("HA-01")
def test_a_check_reaches_the_replica_of_the_other_sessions(secondary: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Review: its rows came from any replica, and the end of the log that bounds them from another one."""
    source, real, primary = connector_of(secondary), kept.open_control, secondary.connection.driver_settings[:-1]
    leads_to_primary = itertools.cycle([True, False])

    def listener(connection: Connection, *arguments: Any, **more: Any) -> kept.Control:
        if next(leads_to_primary):
            connection = replace(connection, driver_settings=primary)
        return real(connection, *arguments, **more)

    monkeypatch.setattr(kept, "open_control", listener)
    for session in (source.session, source.check_session):
        for other in (source.check_session, source.session):
            with session(secondary.catalog) as first, other(secondary.catalog) as second:
                assert is_primary(first.control) == is_primary(second.control)
            source.kept.clear()
    with source.check_session(secondary.catalog) as first:
        assert is_primary(first.control)
        monkeypatch.setattr(kept, "open_control", real)
        with pytest.raises(StaleReaderError, match="have not reached the primary"), source.session(secondary.catalog):
            pass
    with source.session(secondary.catalog) as session:
        assert not is_primary(session.control), "nothing relies on the primary any more"


@pytest.mark.feature("HA-01")
def test_a_primary_is_not_asked_which_replica_it_is(shop: Shop) -> None:
    source = connector_of(shop)
    with source.session(shop.catalog):
        assert source.kept[shop.catalog].replica is None


@pytest.mark.feature("HA-01")
@pytest.mark.parametrize("keys", [[("1",)], None])
def test_a_check_holds_no_rows_on_a_secondary_which_ignores_locks(
    secondary: Shop, keys: list[tuple[str | None, ...]] | None
) -> None:
    """A repair would have put a row behind a change that it had not seen."""
    schema = secondary.instance("t").schema
    primary = replace(secondary.connection, driver_settings=secondary.connection.driver_settings[:-1])
    for connection in (secondary.connection, primary):  # Marks are those of the session.
        with (
            control(secondary.connection, secondary.catalog) as replica,
            pytest.raises(ConfigurationError, match="readable secondary"),
            SqlServerCheckSession(replica, connection).held(schema, keys),
        ):
            pass


@pytest.mark.feature("HA-01")
def test_a_chunk_is_not_held_on_a_secondary_which_ignores_locks(secondary: Shop) -> None:
    reader = secondary.chunk("t", held=lambda: None)
    with pytest.raises(ConfigurationError, match="readable secondary"):
        rows(reader)


def test_an_instance_without_a_start_is_not_there_yet(shop: Shop) -> None:
    """Review, 5.11: NULL sorted as the oldest position, so that a new instance was taken for the old one."""
    shop.create("t", "id int NOT NULL PRIMARY KEY")
    shop.scan()
    shop.enable("t", "newer")
    shop.create("fresh", "id int NOT NULL PRIMARY KEY")
    shop.run("UPDATE cdc.change_tables SET start_lsn = NULL WHERE capture_instance IN (N'newer', N'dbo_fresh')")

    assert [one.name for one in shop.table("t").instances] == ["dbo_t"]
    assert "fresh" not in {one.table_id.name for one in captured_tables(shop.control)}


def test_azure_has_no_recovery_fork_that_a_right_would_show(azure: Shop, shop: Shop, tmp_path: Path) -> None:
    """Each snapshot advised GRANT VIEW ANY DATABASE, which Azure SQL Database does not have."""
    lines: list[str] = []
    for one in (azure, shop):
        one.create("t", "id int NOT NULL PRIMARY KEY")
        one.run("INSERT dbo.t VALUES (1)")
        one.scan()
        lake = Database.of(
            one.connector, one.catalog, spark=_no_spark, warehouse=str(tmp_path / one.catalog), log=lines.append
        )
        with lake.session() as session:
            assert (session.mark().fork is None) is (one is azure)
            begin(lake, session, survey(lake), Wanted("s", [one.table("t").table_id], 10))
    assert [line for line in lines if "VIEW ANY DATABASE" in line] == []


def _no_spark() -> Any:
    raise AssertionError("nothing here needs Spark")


@pytest.mark.feature("STR-14")
def test_azure_has_no_agent_that_could_be_started(azure: Shop) -> None:
    """Its own scheduler scans the log every 20 seconds, unless the database is paused."""
    azure.create("t", "id int NOT NULL PRIMARY KEY")
    azure.run("INSERT dbo.t VALUES (1)")
    azure.scan()
    assert health.stalled(azure.control, azure.connection) is None
    azure.run("EXEC sandbox.advance_clock @seconds = 300")
    said = health.stalled(azure.control, azure.connection) or ""
    assert "capture has not scanned since" in said
    assert "Agent" not in said
    assert "Azure SQL Database" in said
