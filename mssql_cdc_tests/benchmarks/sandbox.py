"""The sandbox's own figures: serving rows, taking changes, and size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mssql_cdc_tests.benchmarks.measure import Figure
from mssql_cdc_tests.benchmarks.reading import reading
from mssql_cdc_tests.benchmarks.scale import crowded, memory
from mssql_cdc_tests.benchmarks.server import sandbox
from mssql_cdc_tests.benchmarks.writing import writing


def sandbox_figures(folder: Path, *, rows: int, statements: int, memory_rows: int) -> Iterator[Figure]:
    """All of them; the memory of `memory_rows` rows only when there are to be any."""
    with sandbox(folder) as server:
        yield from reading(server, folder, rows=rows)
    with sandbox(folder) as server:
        yield from writing(server, folder, statements=statements, rows=rows)
    yield from crowded(folder)
    if memory_rows:
        yield from memory(folder, rows=memory_rows)
