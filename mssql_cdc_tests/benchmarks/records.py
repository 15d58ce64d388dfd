"""Rendering rates: records into a file and into nothing, beside the real Debezium streaming the same changes."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

from mssql_cdc.cli.records import keep_freed_memory
from mssql_cdc.config import Connector
from mssql_cdc_tests.benchmarks.debezium_rates import debezium
from mssql_cdc_tests.benchmarks.measure import Figure, Spent, rate, spending
from mssql_cdc_tests.benchmarks.opened import opened, until_idle, wait_for_capture
from mssql_cdc_tests.benchmarks.server import Server, change, create_database, fill_numbers
from mssql_cdc_tests.conformance.debezium import OracleUnavailableError, debezium_jars

TABLES = 20
WARM_ROWS = 40_000


def rendering(server: Server, folder: Path, *, rows: int, repeat: int = 3) -> Iterator[Figure]:
    """Render `rows` changes of twenty tables; the median of `repeat` rounds, Debezium's of one behind a warm-up."""
    create_database(server, "rendered", {f"t{number}": 0 for number in range(TABLES)})
    with server.connect("rendered") as connection:
        fill_numbers(connection, (WARM_ROWS + rows) // TABLES, above=10_000)
        connection.execute("CREATE TABLE dbo.ping (id int IDENTITY PRIMARY KEY, at datetime2 DEFAULT SYSDATETIME())")
        connection.execute("EXEC sys.sp_cdc_enable_table N'dbo', N'ping', @role_name = NULL")
    theirs = 0.0
    with opened(server, "rendered", folder) as connector:
        with ExitStack() as stack:
            oracle = stack.enter_context(debezium(server, folder / "debezium-rendered")) if _has_debezium() else None
            if oracle is not None:
                pinged = stack.enter_context(server.connect("rendered"))
                oracle.begin("rendered", partial(pinged.execute, "INSERT dbo.ping DEFAULT VALUES"))
            there = 0
            for count in (WARM_ROWS // TABLES, rows // TABLES):
                with server.connect("rendered") as connection:
                    for number in range(TABLES):
                        change(connection, f"t{number}", first=1 + there, rows=count)
                there += count
                wait_for_capture(server, "rendered", {f"t{number}": there for number in range(TABLES)})
                theirs = oracle.stream("rendered", count * TABLES) if oracle is not None else 0.0
        until_idle(connector.log)
        properties = connector.database.connector
    output, warehouse = folder / "rendered.jsonl", folder / "rendered"
    keep_freed_memory()  # As the command does.
    records, spent = _median(partial(_render, properties, warehouse, output), repeat)
    _, discarded = _median(partial(_discard, properties, warehouse), repeat)
    read, reading = _median(partial(_read, warehouse), repeat)
    what = f"{records:,} records of {TABLES} tables"
    yield rate(f"{what} into a file", records, spent.seconds)
    yield rate(f"{what} into nothing", records, discarded.seconds)
    yield Figure(f"{what} into nothing: per second of CPU", records / discarded.cpu, "rows/s")
    yield rate(f"{what}: their change logs, only read", read, reading.seconds)
    if theirs:
        yield Figure(f"{what}: Debezium streaming into nothing", theirs, "rows/s")
        yield Figure(f"{what} into nothing: against Debezium", records / discarded.seconds / theirs, "x", at_least=8)
        yield Figure(f"{what} into a file: against Debezium", records / spent.seconds / theirs, "x")


def _render(connector: Connector, warehouse: Path, output: Path) -> int:
    from mssql_cdc.records import open_output, write_records

    output.unlink(missing_ok=True)
    output.with_name(f"{output.name}.progress").unlink(missing_ok=True)
    with open_output(str(output), connector) as opened_output:
        return write_records(connector, output=opened_output, warehouse=str(warehouse))


def _discard(connector: Connector, warehouse: Path) -> int:
    """Render as Debezium streams here: nobody keeps the records."""
    from mssql_cdc.records import write_records
    from mssql_cdc.records.outputs import JsonLinesStream

    with Path(os.devnull).open("wb") as nothing:
        return write_records(connector, output=JsonLinesStream(nothing), warehouse=str(warehouse))


def _read(warehouse: Path) -> int:
    return sum(pq.read_table(file).num_rows for file in warehouse.rglob("changes/*.parquet"))


def _median(work: Callable[[], int], repeat: int) -> tuple[int, Spent]:
    """Return the result of some work, and the median of what it takes."""
    rounds: list[Spent] = []
    count = 0
    for _ in range(repeat):
        rounds.append(Spent())
        with spending(rounds[-1]):
            count = work()
    seconds, cpu = ([getattr(one, name) for one in rounds] for name in ("seconds", "cpu"))
    return count, Spent(statistics.median(seconds), statistics.median(cpu))


def _has_debezium() -> bool:
    try:
        debezium_jars()
    except OracleUnavailableError:
        return False
    return True
