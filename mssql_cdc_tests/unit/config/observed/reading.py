"""What is sent to the source, what is read from it, and what becomes of a value that was read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import pytest

from mssql_cdc.capture import snapshot_extensions, survey, write_task
from mssql_cdc.capture.database import Database
from mssql_cdc.config import Connector
from mssql_cdc.errors import ConfigurationError, MssqlCdcError, SourceUnavailableError
from mssql_cdc.lake.offsets import Offsets
from mssql_cdc.run.heartbeat import beat
from mssql_cdc.run.retries import Retries
from mssql_cdc.run.start import guard
from mssql_cdc.source.sqlserver import connect, health, reach
from mssql_cdc.source.sqlserver.source import SqlServerSession, SqlServerSource
from mssql_cdc.source.values import CapturedTable, Concealment
from mssql_cdc_tests.lake_kit import Change, lsn, neutral
from mssql_cdc_tests.unit.config.observed.things import AT, INSTANCE, PART, THINGS
from mssql_cdc_tests.unit.records.kit import DATABASE


@dataclass
class Recorder:
    """A control connection and a session that note the statements they are given."""

    seen: list[Any] = field(default_factory=list[Any])

    catalog = "shop"

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def note(*given: Any, **_more: Any) -> Any:
            self.seen.append(given)
            return [(0, 100)] if name == "rows" else 2 if name == "value" else None

        return note


def patience(connector: Connector) -> Any:
    """How long a server has to accept a connection, as the error of one that does not exist says it."""
    nowhere = replace(connector.connection, hostname="127.0.0.1", port=1)
    with pytest.raises(SourceUnavailableError) as caught:
        reach.require_reachable(nowhere)
    return str(caught.value)


def time_asked(connector: Connector) -> Any:
    """A time as the server is asked for the transactions before it."""
    recorder = Recorder()
    with patch("mssql_cdc.source.sqlserver.positions._lsn"):
        SqlServerSession(recorder, connector).captured_before(AT)  # type: ignore[arg-type]
    return recorder.seen


def watermarks(connector: Connector) -> Any:
    """How many statements open and close the window of an incremental snapshot's chunk, and how they begin."""
    recorder = Recorder()
    recorder.catalog = DATABASE
    with SqlServerSession(recorder, connector).window():  # type: ignore[arg-type]
        pass
    return [given[0][:6] for given in recorder.seen]


def described(connector: Connector) -> Any:
    """Whether schema change records describe a table that is not captured."""
    return connector.describes("shop", "audit", "log")


def odbc(connector: Connector) -> Any:
    return connect.connection_string(connector.connection, "shop")


def captured(connector: Connector) -> Any:
    """Which tables and columns are captured, and in what order they are read."""
    filters = connector.filters
    names = [("dbo", "things"), ("dbo", "orders"), ("cdc", "x"), ("dbo", "signals")]
    tables = [(DATABASE, *name) for name in names]
    return (
        [filters.tables.matches(*one) for one in tables],
        [filters.tables.is_signal_table(*one) for one in tables],
        [filters.columns.matches(DATABASE, "dbo", "things", one.name) for one in THINGS.columns],
        [connector.snapshot.collections.matches(*one) for one in tables],
    )


def written(connector: Connector) -> Any:
    """What a change log holds of a row."""
    row = Change(5, "c", after={"id": 1, "first-name": "Ada", "raw": b"1234"})
    keyed = replace(THINGS, key_columns=("first-name",))
    task = write_task.WriteTask(None, keyed, None, 1, connector)  # type: ignore[arg-type]
    try:
        return [batch.to_pylist() for batch in write_task.log_rows(task, iter([neutral(keyed, row)]))]
    except MssqlCdcError as error:
        return str(error)


def beaten(connector: Connector) -> Any:
    recorder = Recorder()

    @dataclass
    class Source:
        @contextmanager
        def session(self, _catalog: str):
            yield recorder

    database = Database.of(connector, "shop", spark=lambda: None, source=Source())  # type: ignore[arg-type,return-value]
    beat(database, None, AT)
    return recorder.seen


def bound(connector: Connector) -> Any:
    with patch("mssql_cdc.source.sqlserver.volume.measure") as measure:
        SqlServerSession(Recorder(), connector).measure([PART], lsn(9))  # type: ignore[arg-type]
    return measure.call_args.args[2]


def agent_asked(connector: Connector) -> Any:
    recorder = Recorder()
    health.agent_runs(recorder, connector.connection)  # type: ignore[arg-type]
    return recorder.seen


def guarded_tables(connector: Connector) -> Any:
    said: list[str] = []
    try:
        guard(connector, 5, warn=said.append)
    except ConfigurationError as error:
        return "refused", str(error)
    return said


def policy(connector: Connector) -> Any:
    database = Database.of(connector, "shop", spark=lambda: None)  # type: ignore[arg-type,return-value]
    return snapshot_extensions.policy(database, Offsets())


def limits(connector: Connector) -> Any:
    return survey._limits(Database.of(connector, "shop", spark=lambda: None), None)  # type: ignore[arg-type,return-value]


def retries(connector: Connector) -> Any:
    try:
        return Retries(connector.streaming, failed=3).wait_seconds(MssqlCdcError("gone"), lambda _: None)
    except MssqlCdcError:
        return "given up"


def by_function(connector: Connector) -> Any:
    session = SqlServerSession(Recorder(), connector)  # type: ignore[arg-type]
    return session._read_as_configured([CapturedTable(THINGS.table_id, 3, (INSTANCE,))])


def filtered(connector: Connector) -> Any:
    """What becomes of a table with a security policy."""
    session = SqlServerSession(Recorder(), connector)  # type: ignore[arg-type]
    table = CapturedTable(THINGS.table_id, 3, (INSTANCE,), Concealment(policies=("dbo.tenants",)))
    return session._whole(table), session.unreadable()


def lock_refused(connector: Connector) -> Any:
    unreachable = replace(connector, connection=replace(connector.connection, hostname="127.0.0.1", port=1))
    with pytest.raises(MssqlCdcError) as caught, SqlServerSource(unreachable).locked("shop", [THINGS]):
        pass
    return "snapshot.locking.mode" in str(caught.value)
