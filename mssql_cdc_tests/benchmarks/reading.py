"""How fast the sandbox serves rows: plain columns and the connector's own statements, each beside a prepared stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import arrow_odbc
import pyarrow as pa

from mssql_cdc.config import Connector, load_connector
from mssql_cdc.lsn import Lsn, LsnRange
from mssql_cdc.source.sqlserver.chunks import Chunk
from mssql_cdc.source.sqlserver.columns import RowPlan
from mssql_cdc.source.sqlserver.connect import control
from mssql_cdc.source.sqlserver.decode import RAW_META
from mssql_cdc.source.sqlserver.instances import CaptureInstance
from mssql_cdc.source.sqlserver.metadata import captured_tables
from mssql_cdc.source.sqlserver.pages import page_statement
from mssql_cdc.source.sqlserver.snapshot_reader import ChunkReader, select_statement
from mssql_cdc_tests.benchmarks.measure import Figure, best, compared
from mssql_cdc_tests.benchmarks.prepared import prepared_stream
from mssql_cdc_tests.benchmarks.server import NUMBERS, Server, change, connector_file, create_database, fill_numbers
from mssql_cdc_tests.benchmarks.writing import captured_rows

_BATCH = 32_768
_FIRST, _LAST = Lsn(bytes(10)), Lsn(b"\xff" * 10)


@dataclass(frozen=True, slots=True)
class Read:
    """A statement and the Arrow fields it is fetched into; None: as the driver describes them."""

    what: str
    statement: str
    fields: tuple[pa.Field, ...] | None = None


def reading(server: Server, folder: Path, *, rows: int) -> Iterator[Figure]:
    """`rows` change rows of twelve columns, and as many rows of their table."""
    create_database(server, "reads", {"large": 0})
    with server.connect("reads") as connection:
        fill_numbers(connection, rows, above=NUMBERS)
        change(connection, "large", first=1, rows=rows)
        captured_rows(connection, "large", rows)
    connector = load_connector(connector_file(server, "reads", folder))
    with prepared_stream(server, "reads", folder) as stream:
        for driver, fetch in _DRIVERS.items():
            for read in _reads(connector, rows):
                spent = [best(partial(fetch, one, read), server=one.pid) for one in (server, stream)]
                yield Figure(f"{read.what}, {driver}", compared(rows, *spent))


def _reads(connector: Connector, rows: int) -> Iterator[Read]:
    with control(connector.connection, "reads") as opened:
        (instance,) = (table.newest for table in captured_tables(opened))
    plan = RowPlan.of(instance.schema.columns)
    yield Read("change rows, all columns as they are", "SELECT * FROM cdc.dbo_large_CT")
    yield Read("table rows, all columns as they are", "SELECT * FROM dbo.large")
    fields = (*RAW_META, *plan.raw_fields())
    page = page_statement(instance, plan, LsnRange(_FIRST, _LAST, 0), rows=rows)
    yield Read("change rows as the connector reads them", page, fields)
    yield Read("snapshot rows as the connector reads them", _chunk(connector, instance, plan), tuple(plan.raw_fields()))


def _chunk(connector: Connector, instance: CaptureInstance, plan: RowPlan) -> str:
    reader = ChunkReader(
        connection=connector.connection,
        catalog="reads",
        schema=instance.schema,
        chunk=Chunk(0),
        snapshot_number=1,
        epoch=0,
        position=_FIRST,
        captured=None,
        commit_lsn=None,
        read_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return select_statement(reader, plan)[0]


def _through_arrow(server: Server, read: Read) -> None:
    reader = arrow_odbc.read_arrow_batches_from_odbc(
        read.statement,
        connection_string=server.odbc("reads"),
        batch_size=_BATCH,
        max_text_size=200,
        max_binary_size=200,
        schema=None if read.fields is None else pa.schema(read.fields),
    )
    assert reader is not None
    for _ in reader:
        pass


def _through_pyodbc(server: Server, read: Read) -> None:
    with server.connect("reads") as connection:
        cursor = connection.execute(read.statement)
        while cursor.fetchmany(10_000):
            pass


_DRIVERS = {"arrow-odbc": _through_arrow, "pyodbc": _through_pyodbc}
