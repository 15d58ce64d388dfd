"""The genuine Debezium on the same database in the same run: its records are counted and thrown away.

It has a JVM as in operation: the default compilers and garbage collector, and memory for its queue. The oracle of the
conformance tests has options for a quick start instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mssql_cdc_tests.benchmarks.debezium_incremental import ObservedEngine
from mssql_cdc_tests.benchmarks.server import Server
from mssql_cdc_tests.conformance.debezium import DebeziumEngine, DebeziumMachine

JVM_OPTIONS = ("-Xmx2g",)
MOST_PINGS = 120
"""The changes that `begin` makes at most, beyond the one that it waits for."""
TUNED = {
    "poll.interval.ms": "10",
    "max.batch.size": "8192",
    "max.queue.size": "32768",
    # Debezium's default; the oracle flushes after each batch.
    "offset.flush.interval.ms": "60000",
    # Each record counts, and `begin` waits for a change, not for the structure of a table.
    "include.schema.changes": "false",
    # A record is a change event.
    "tombstones.on.delete": "false",
}


class Debezium:
    """One JVM, in which engines start and end, so that later ones are warm."""

    def __init__(self, machine: DebeziumMachine, server: Server, folder: Path) -> None:
        self._machine, self._server, self._folder = machine, server, folder

    def stream(self, database: str, rows: int) -> float:
        """Records a second while it reads `rows` change events that have been captured since it ran last.

        The rate counts from the first batch of records, so that starting does not count.
        """
        with DebeziumEngine(
            self._machine, self._properties(database, "no_data"), self._folder / database, keep_records=False
        ) as engine:
            return _rate(engine, rows)

    def begin(self, database: str, ping: Callable[[], object]) -> None:
        """Note the present position, without reading rows: it keeps one only behind a record.

        Args:
            database: The database.
            ping: Makes a change; called until one arrives.
        """
        with DebeziumEngine(
            self._machine, self._properties(database, "no_data"), self._folder / database, keep_records=False
        ) as engine:
            end = time.monotonic() + 120
            while not engine.count and time.monotonic() < end:
                ping()
                time.sleep(1)
            time.sleep(1)

    def snapshot(self, database: str, rows: int, *, name: str) -> float:
        """Records a second of a snapshot of the whole database, from the first batch on."""
        with DebeziumEngine(
            self._machine, self._properties(database, "initial"), self._folder / name, keep_records=False
        ) as engine:
            return _rate(engine, rows)

    def observed(self, database: str, settings: Mapping[str, str], folder: Path, topic: str) -> ObservedEngine:
        """An engine with these properties, whose deliveries of one topic are noted; a context manager.

        Args:
            database: The database.
            settings: Further properties.
            folder: For its offsets and its history.
            topic: The topic.
        """
        properties = self._properties(database, "no_data") | dict(settings) | {"notification.enabled.channels": "log"}
        return ObservedEngine(self._machine, properties, folder, keep_records=False, topic=topic)

    @property
    def compiled(self) -> float:
        """The seconds that its just-in-time compilers have worked: few more of them in a round show that it is warm."""
        management = self._machine.java.java.lang.management.ManagementFactory
        return management.getCompilationMXBean().getTotalCompilationTime() / 1000

    def _properties(self, database: str, mode: str) -> dict[str, str]:
        server = self._server
        return {
            "name": database,
            "topic.prefix": database,
            "database.hostname": server.host,
            "database.port": str(server.port),
            "database.user": server.user,
            "database.password": server.password,
            "database.names": database,
            "snapshot.mode": mode,
            # It would read this table, too, although CDC is not enabled on it.
            "table.exclude.list": "dbo.numbers",
            **TUNED,
        }


@contextmanager
def debezium(server: Server, folder: Path) -> Iterator[Debezium]:
    """Start the JVM.

    Raises:
        OracleUnavailableError: Debezium is not installed.
    """
    with DebeziumMachine(folder, options=JVM_OPTIONS) as machine:
        yield Debezium(machine, server, folder)


def _rate(engine: DebeziumEngine, rows: int, *, timeout: float = 3600) -> float:
    end = time.monotonic() + timeout
    while not engine.count:
        time.sleep(0.002)
        if time.monotonic() > end:
            raise TimeoutError("Debezium sent no record")
    first, started = engine.count, time.perf_counter()
    engine.wait_until(lambda _: engine.count >= rows, timeout=timeout)
    found = max(rows - first, 1) / (time.perf_counter() - started)
    time.sleep(1)  # The engine notes the offsets of the last batch behind its count: another round goes on there.
    if engine.count > rows + MOST_PINGS:
        raise RuntimeError(f"Debezium sent {engine.count} records, {rows} were expected: the rate counts other rows")
    return found
