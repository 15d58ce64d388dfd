"""`records --follow`: how soon a warm start streams, and how far records are behind the commits at the source."""

from __future__ import annotations

import json
import queue
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import IO, Any

from mssql_cdc_tests.benchmarks.measure import Figure
from mssql_cdc_tests.benchmarks.server import Server, connector_file, create_database

COMMITS = 30
LONGEST = 120.0
_Lines = queue.Queue[dict[str, Any]]


def follow(server: Server, folder: Path) -> Iterator[Figure]:
    """A start with an empty state directory, one with a warm one, and single rows that are committed meanwhile."""
    create_database(server, "followed", {f"t{number}": 1000 for number in range(8)})
    config = connector_file(server, "followed", folder)
    arguments = ["--config", str(config), "--state-dir", str(folder / "followed-state"), "--follow"]
    with _process(arguments) as (records, events):
        _until(events, _streams)
        _until(records, lambda one: one["sourceOffset"].get("snapshot_completed") is True)
    began = time.monotonic()
    with _process(arguments) as (records, events):
        _until(events, _streams)
        yield Figure("records --follow: a warm start to streaming", time.monotonic() - began, "s")
        behind = [_behind(server, number, records) for number in range(COMMITS)]
    yield Figure("records --follow: a commit to its record, median", statistics.median(behind), "s", at_most=2)
    yield Figure("records --follow: a commit to its record, longest", max(behind), "s")


def _streams(event: dict[str, Any]) -> bool:
    return event["event"] == "streaming"


def _behind(server: Server, number: int, records: _Lines) -> float:
    name = f"commit {number}"
    with server.connect("followed") as connection:
        connection.execute(f"UPDATE dbo.t{number % 8} SET note = N'{name}' WHERE id = 7")
    committed = time.monotonic()
    _until(records, lambda one: _note(one) == name)
    return time.monotonic() - committed


def _note(record: dict[str, Any]) -> str | None:
    value = record["value"]
    return value["payload"]["after"]["note"] if value is not None and value["payload"].get("after") else None


def _until(lines: _Lines, condition: Callable[[dict[str, Any]], bool]) -> None:
    while not condition(lines.get(timeout=LONGEST)):
        pass


@contextmanager
def _process(arguments: list[str]) -> Iterator[tuple[_Lines, _Lines]]:
    command = [sys.executable, "-m", "mssql_cdc.cli", "records", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        found: list[_Lines] = []
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            lines: _Lines = queue.Queue()
            Thread(target=_collect, args=(stream, lines), daemon=True).start()
            found.append(lines)
        try:
            yield found[0], found[1]
        finally:
            process.terminate()


def _collect(stream: IO[str], lines: _Lines) -> None:
    for line in stream:
        lines.put(json.loads(line))
