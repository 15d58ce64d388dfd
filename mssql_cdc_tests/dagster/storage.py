"""Parts of an instance for tests in which only speed differs from Dagster's own."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any
from unittest.mock import patch

from alembic.config import Config
from alembic.script import ScriptDirectory
from dagster._core.storage.compute_log_manager import CapturedLogContext
from dagster._core.storage.event_log import ConsolidatedSqliteEventLogStorage
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._serdes import ConfigurableClassData
from sqlalchemy import Connection, Engine, create_engine, event


class EventLog(ConsolidatedSqliteEventLogStorage):
    """One event log for all runs, as PostgreSQL's is; SQLite's own has a database for each run.

    Dagster's class makes an engine and a connection for every statement, which takes longer than the statement.
    """

    @cached_property
    def _engine(self) -> Engine:
        return create_engine(self._conn_string, connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS})

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        with self._engine.connect() as connection, connection.begin():
            yield connection

    def dispose(self) -> None:
        super().dispose()
        self._engine.dispose()


class StepLogs(LocalComputeLogManager):
    """The logs of ticks; what a step prints stays where it is: Dagster starts four processes for it, in each step."""

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> StepLogs:
        return cls(inst_data=inst_data, **config_value)

    @contextmanager
    def capture_logs(self, log_key: Sequence[str]) -> Generator[CapturedLogContext, None, None]:
        yield CapturedLogContext(log_key)


@contextmanager
def cheap_databases() -> Iterator[None]:
    """Until the block ends, SQLite does not wait for the disk, and the versions of Dagster's schema are read once.

    A commit takes 0.7 ms instead of 9, and opening an instance 0.1 s instead of 0.4.
    """

    def connected(connection: Any, _: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA synchronous = OFF")

    read: dict[str | None, ScriptDirectory] = {}

    def once(config: Config) -> ScriptDirectory:
        folder = config.get_main_option("script_location")
        return read[folder] if folder in read else read.setdefault(folder, from_config(config))

    from_config = ScriptDirectory.from_config
    event.listen(Engine, "connect", connected)
    try:
        with patch.object(ScriptDirectory, "from_config", once):
            yield
    finally:
        event.remove(Engine, "connect", connected)
