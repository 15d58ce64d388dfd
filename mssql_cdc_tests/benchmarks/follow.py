"""`records --follow`: how long a change takes from its commit to its record, and how soon a warm start has the first.

The pauses between two changes are random, so that they meet every phase of polls and scans.
"""

from __future__ import annotations

import json
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from threading import Thread

from mssql_cdc_tests.benchmarks.bench import Bench
from mssql_cdc_tests.benchmarks.measure import Figure, descendants, process_name
from mssql_cdc_tests.benchmarks.server import Server, change, connector_file, create_database

PATIENCE = 120.0


def follow(bench: Bench) -> Iterator[Figure]:
    """Follow a table whose rows come one by one; medians, also of warm starts."""
    with bench.sandbox() as server:
        yield from _follow(bench, server)


def _follow(bench: Bench, server: Server) -> Iterator[Figure]:
    folder = bench.folder
    create_database(server, "followed", {"t": 100})
    config = connector_file(server, "followed", folder)
    rows = 100
    with _following(config, folder) as (_, records):
        for _ in range(rows):
            records.get(timeout=PATIENCE)
    starts, machines = list[float](), list[int]()
    for _ in range(bench.sizes.repeat):
        rows += 1
        _insert(server, rows)
        begun = time.perf_counter()
        with _following(config, folder) as (process, records):
            _wait_for(records, rows)
            starts.append(time.perf_counter() - begun)
            machines += [pid for pid in descendants(process.pid) if process_name(pid) == "java"]
    yield Figure("a warm records --follow starts: to the first record", statistics.median(starts), "s", at_most=5)
    yield Figure("a warm records --follow with one change: processes of Java", len(machines), "", at_most=0)
    delays = list[float]()
    chance = random.Random(1)
    with _following(config, folder) as (_, records):
        for number in range(bench.sizes.followed + 1):
            rows += 1
            begun = time.perf_counter()
            _insert(server, rows)
            _wait_for(records, rows)
            if number:  # The first one waits for the start.
                delays.append(time.perf_counter() - begun)
            time.sleep(chance.uniform(0.2, 1.5))
    delays.sort()
    yield Figure("records --follow: a change to its record, median", statistics.median(delays), "s", at_most=1)
    yield Figure("records --follow: a change to its record, 95 %", delays[int(0.95 * len(delays))], "s", at_most=2)


def _insert(server: Server, row: int) -> None:
    with server.connect("followed") as connection:
        change(connection, "t", first=row, rows=1)


def _wait_for(records: Queue[int], row: int) -> None:
    while records.get(timeout=PATIENCE) != row:
        pass


@contextmanager
def _following(config: Path, folder: Path) -> Generator[tuple[subprocess.Popen[bytes], Queue[int]]]:
    """The running command, and the ids of the rows in its records."""
    command = ["records", "--follow", "--config", str(config), "--state-dir", str(folder / "followed-state")]
    found: Queue[int] = Queue()
    with (folder / "followed.log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "mssql_cdc.cli", *command], stdout=subprocess.PIPE, stderr=log
        )

        def read() -> None:
            for line in process.stdout or ():
                value = json.loads(line)["value"]
                if value is not None and "op" in value["payload"]:
                    found.put(value["payload"]["after"]["id"])

        reader = Thread(target=read, daemon=True)
        reader.start()
        try:
            yield process, found
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
            reader.join(30)
            if process.stdout is not None:
                process.stdout.close()
