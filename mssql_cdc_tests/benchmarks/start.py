"""The command from a cold start, and its memory: `mssql-cdc run --until-caught-up` in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from mssql_cdc_tests.benchmarks import measure
from mssql_cdc_tests.benchmarks.measure import Figure, Measured
from mssql_cdc_tests.benchmarks.server import Server, connector_file, create_database

TABLES = 8
ROWS = 200_000


def start(server: Server, folder: Path) -> Iterator[Figure]:
    """From the command's start to its first rows, and to all rows of eight tables in current tables."""
    create_database(server, "cold", {f"t{number}": ROWS // TABLES for number in range(TABLES)})
    measured, warehouse = _run(server, "cold", folder)
    logged = measure.commits(warehouse, since=measured.started)
    yield Figure("command start to the first rows in a change log", logged[0] - measured.started, "s", at_most=8)
    what = f"command start to {ROWS:,} rows in {TABLES} current tables"
    shown = measure.commits(warehouse, since=measured.started, tables="current")
    yield Figure(what, shown[-1] - measured.started, "s", at_most=15)


def memory(server: Server, folder: Path, *, rows: int) -> Iterator[Figure]:
    """The peaks of driver, JVM and workers at `rows` rows and at four times as many."""
    found: list[Measured] = []
    for number, count in enumerate((rows, 4 * rows)):
        create_database(server, f"memory{number}", {"large": count})
        measured, _ = _run(server, f"memory{number}", folder)
        found.append(measured)
        for part, peak in _peaks(measured).items():
            yield Figure(f"peak memory of {part} at {count:,} rows", peak, "MiB")
    for part in ("driver", "JVM", "workers"):
        few, many = (_peaks(measured)[part] for measured in found)
        yield Figure(f"peak memory of {part} at {4 * rows:,} rows against {rows:,}", many / few, "x", at_most=1.5)


def _peaks(measured: Measured) -> dict[str, float]:
    return {"driver": measured.driver_mib, "JVM": measured.jvm_mib, "workers": max(measured.workers_mib, 1.0)}


def _run(server: Server, database: str, folder: Path) -> tuple[Measured, Path]:
    warehouse, config = folder / f"{database}-lake", connector_file(server, database, folder)
    command = [sys.executable, "-m", "mssql_cdc.cli", "run", "--config", str(config), "--warehouse", str(warehouse)]
    command += ["--until-caught-up", "--timeout", "3600"]
    return measure.run(command, log=folder / f"{database}.log"), warehouse
