"""The peaks of driver, JVM and workers, behind so many rows and behind four times as many.

Once of snapshots, each by a command of its own, and once of one command that streams. The changes are updates of the
same rows, in slices that are cleaned up behind the command, since the sandbox keeps its rows in memory.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator

from mssql_cdc.lake.layout import Layout
from mssql_cdc.lake.read import row_count
from mssql_cdc.schema import TableId
from mssql_cdc_tests.benchmarks import measure
from mssql_cdc_tests.benchmarks.bench import Bench
from mssql_cdc_tests.benchmarks.measure import Figure, Measured, Watched
from mssql_cdc_tests.benchmarks.server import Server, clean_up, create_database
from mssql_cdc_tests.benchmarks.sizes import TABLES
from mssql_cdc_tests.benchmarks.start import command

PATIENCE = 1800.0


def memory(bench: Bench) -> Iterator[Figure]:
    """The peaks, and how they grow."""
    few, many = bench.sizes.memory, 4 * bench.sizes.memory
    yield from _figures(bench, "snapshot", {rows: _snapshot(bench, rows) for rows in (few, many)})
    yield from _figures(bench, "changes", _streaming(bench))


def _figures(bench: Bench, what: str, found: dict[int, Measured]) -> Iterator[Figure]:
    for rows, measured in found.items():
        for part, peak in _peaks(measured).items():
            yield Figure(f"peak memory of {part}, {what}, {rows:,} rows", peak, "MiB")
    few, many = (_peaks(measured) for measured in found.values())
    for part in few:
        yield bench.goal(f"memory/{what}/{part}", many[part] / few[part])


def _peaks(measured: Measured) -> dict[str, float]:
    found = {"driver": measured.driver_mib, "JVM": measured.jvm_mib, "workers": measured.workers_mib}
    return {part: max(peak, 1.0) for part, peak in found.items()}  # Small ranges need no JVM.


def _snapshot(bench: Bench, rows: int) -> Measured:
    with bench.sandbox() as server:
        bench.say(f"memory: filling a table with {rows:,} rows")
        create_database(server, "memory", {"large": rows})
        bench.say(f"memory: a snapshot of {rows:,} rows")
        warehouse = bench.folder / "memory"
        words = command(server, "memory", bench.folder, warehouse)
        try:
            return measure.run(words, log=bench.folder / "memory.log")
        finally:
            shutil.rmtree(warehouse, ignore_errors=True)


def _streaming(bench: Bench) -> dict[int, Measured]:
    slices = bench.sizes.slices
    each = bench.sizes.memory // slices // 2 // TABLES  # An update has two change rows.
    found: dict[int, Measured] = {}
    with bench.sandbox() as server:
        create_database(server, "streamed", {f"t{number}": each for number in range(TABLES)})
        warehouse = bench.folder / "streamed"
        words = command(server, "streamed", bench.folder, warehouse, caught_up=False)
        with measure.watched(words, log=bench.folder / "streamed.log") as running:
            _wait(running, warehouse.as_posix(), each)
            for number in range(1, 4 * slices + 1):
                bench.say(f"memory: slice {number} of {4 * slices}, {2 * each * TABLES:,} change rows each")
                _update(server, each)
                _wait(running, warehouse.as_posix(), each * (1 + number))
                clean_up(server, "streamed", [f"t{table}" for table in range(TABLES)])
                if number == slices:
                    found[bench.sizes.memory] = running.measured()
            found[4 * bench.sizes.memory] = running.measured()
    return found


def _update(server: Server, each: int) -> None:
    with server.connect("streamed") as connection:
        connection.execute("EXEC sandbox.capture_pause")  # The command finds a backlog.
        for table in range(TABLES):
            for start in range(1, each + 1, 500):
                connection.execute(
                    f"UPDATE dbo.t{table} SET quantity = quantity + 1 WHERE id BETWEEN {start} AND {start + 499}"
                )
        connection.execute("EXEC sandbox.clear_faults")


def _wait(running: Watched, warehouse: str, rows: int) -> None:
    """Wait until the change log of each table has so many rows."""
    layout, end = Layout(warehouse, "streamed", "streamed"), time.monotonic() + PATIENCE
    for table in range(TABLES):
        uri = layout.home(TableId("streamed", "dbo", f"t{table}")).changes
        while (row_count(uri) or 0) < rows:
            running.check()
            if time.monotonic() > end:
                raise TimeoutError(f"{uri} has {row_count(uri)} of {rows} rows")
            time.sleep(0.5)
