"""The command from a cold start: `mssql-cdc run --until-caught-up` in a process of its own."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

from mssql_cdc_tests.benchmarks import measure
from mssql_cdc_tests.benchmarks.bench import Bench
from mssql_cdc_tests.benchmarks.measure import Figure
from mssql_cdc_tests.benchmarks.server import Server, connector_file, create_database
from mssql_cdc_tests.benchmarks.sizes import COLD_TABLES


def start(bench: Bench) -> Iterator[Figure]:
    """From the command's start to its first rows, and to all rows of eight tables in current tables."""
    first, last = list[float](), list[float]()
    with bench.sandbox() as server:
        each = bench.sizes.cold // COLD_TABLES
        create_database(server, "cold", {f"t{number}": each for number in range(COLD_TABLES)})
        for number in range(bench.sizes.repeat):
            warehouse = bench.folder / f"cold{number}"
            measured = measure.run(command(server, "cold", bench.folder, warehouse), log=bench.folder / "cold.log")
            first.append(measure.commits(warehouse, since=measured.started)[0] - measured.started)
            shown = measure.commits(warehouse, since=measured.started, tables="current")
            last.append(shown[-1] - measured.started)
    yield bench.goal("start/log", statistics.median(first))
    yield bench.goal("start/current", statistics.median(last))


def command(
    server: Server, database: str, folder: Path, warehouse: Path, *, caught_up: bool = True, **settings: str
) -> list[str]:
    """The command that captures a database.

    Args:
        server: The sandbox.
        database: The database.
        folder: Where its connector is written.
        warehouse: The lake.
        caught_up: Whether it ends when it has read everything.
        settings: Further properties of the connector.
    """
    config = connector_file(server, database, folder, **settings)
    words = [sys.executable, "-m", "mssql_cdc.cli", "run", "--config", str(config), "--warehouse", str(warehouse)]
    return [*words, "--until-caught-up", "--timeout", "7200"] if caught_up else words
