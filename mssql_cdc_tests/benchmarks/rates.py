"""What rates are compared with: the bare fetch by as many connections, and the genuine Debezium."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from arrow_odbc.read_arrow_batches_from_odbc import read_arrow_batches_from_odbc

from mssql_cdc_tests.benchmarks.debezium_rates import Debezium, debezium
from mssql_cdc_tests.benchmarks.measure import Figure
from mssql_cdc_tests.benchmarks.server import Server
from mssql_cdc_tests.conformance.debezium import OracleUnavailableError, debezium_jars

FETCH_ROWS = 16_384
"""Rows of a page: arrow-odbc clears all of it for each statement, which costs more than the rows of a small table."""


def oracle(stack: ExitStack, server: Server, folder: Path) -> Debezium | None:
    """Start Debezium's JVM; None if it is not installed."""
    try:
        debezium_jars()
    except OracleUnavailableError:
        return None
    return stack.enter_context(debezium(server, folder))


def compilers(part: str, before: float, debezium: Debezium) -> Iterator[Figure]:
    """How long the compilers of Debezium's JVM worked in the rounds that count, which shows that it was warm.

    Args:
        part: The part.
        before: Their seconds until the first of these rounds.
        debezium: The JVM.
    """
    yield Figure(f"{part}: Debezium's just-in-time compilers, warm-up", before, "s")
    yield Figure(f"{part}: Debezium's just-in-time compilers, rounds that count", debezium.compiled - before, "s")


def fetch(server: Server, database: str, queries: Sequence[str]) -> None:
    """Read the rows of these queries with a connection for each core."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(partial(_fetch_one, server, database), queries))


def seconds(action: Callable[[], object]) -> float:
    """The seconds that something takes."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _fetch_one(server: Server, database: str, query: str) -> None:
    reader = read_arrow_batches_from_odbc(
        query, connection_string=server.odbc(database), batch_size=FETCH_ROWS, max_text_size=200, max_binary_size=200
    )
    for _ in reader or ():
        pass
