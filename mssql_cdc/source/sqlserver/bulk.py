"""Bulk reading: one connection, one transaction, raw Arrow batches (rule E26, architecture §7).

Two drivers deliver the same batches: arrow-odbc, and pyodbc for tables with columns that arrow-odbc would truncate.
Both run the checks (`execute`) in the transaction of their reads.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from typing import Any, Protocol

import arrow_odbc
import pyarrow as pa
import pyodbc

from mssql_cdc.config import Connection
from mssql_cdc.errors import SourceError
from mssql_cdc.source.sqlserver.ascii_statements import in_ascii
from mssql_cdc.source.sqlserver.connect import Control, connection_string, control, prepare, refused, translated
from mssql_cdc.source.sqlserver.logins import log_in

BATCH_ROWS = 32_768
BATCH_BYTES = 16 * 1024 * 1024
_MOST_ROWS = 4_096
_BY_ROWS_BYTES = 4 * 1024 * 1024
_SHORT_BYTES = 16
"""About how many bytes a value of any raw type but `binary` takes; strings are numbers and times (`columns`)."""
COLUMN = b"column"
"""The key of a raw field's metadata: the name of the table's column, for messages."""


class Bulk(Protocol):
    """A connection in its own transaction. Every method raises the exceptions that `classify` selects."""

    def execute(self, sql: str, *, doing: str) -> None:
        """Run a statement without rows; `doing` completes "while …" in the text of an error."""
        ...

    def read(
        self,
        sql: str,
        fields: Sequence[pa.Field],
        parameters: Sequence[str | None] = (),
        *,
        doing: str,
        rows: int | None = None,
    ) -> Generator[pa.RecordBatch]:
        """The rows of a statement, which ends when the generator is closed.

        Args:
            sql: one SELECT, with `?` for each parameter.
            fields: names and raw types of its columns, in order; every batch has exactly these.
            parameters: texts, which the statement casts; None is NULL.
            doing: completes "while …" in the text of an error.
            rows: the approximate number of rows, if known: an empty buffer for many costs as much as reading a few.
        """
        ...

    def rollback(self) -> None:
        """Roll back the transaction; the next statement begins a new one."""
        ...


@contextmanager
def open_bulk(
    connection: Connection, catalog: str, *, by_rows: bool, fetch_rows: int | None = None
) -> Generator[Bulk, None, None]:
    """A bulk connection, closed and rolled back at the end of the block.

    Args:
        connection: how to connect.
        catalog: the database.
        by_rows: fetch with pyodbc, because a column has no size limit for which a columnar buffer could be allocated.
        fetch_rows: the number of rows per fetch; None or 0: what measurements recommend.

    Raises:
        SourceUnavailableError, ConfigurationError: the connection cannot be made; see `classify`.
    """
    if by_rows:
        with control(connection, catalog, autocommit=False, opened_before=True) as opened:
            yield _RowBulk(opened, fetch_rows or _MOST_ROWS)
        return
    bulk = connect_bulk(connection, catalog, fetch_rows=fetch_rows)
    try:
        yield bulk
    finally:
        bulk.close()


def connect_bulk(connection: Connection, catalog: str, *, fetch_rows: int | None = None) -> ArrowBulk:
    """A connection for columnar buffers, which the caller closes. A session has already opened the database.

    Args:
        connection: how to connect.
        catalog: the database.
        fetch_rows: the number of rows per fetch; None or 0: what measurements recommend.

    Raises:
        SourceUnavailableError, ConfigurationError: the connection cannot be made; see `classify`.
    """
    text, seconds = connection_string(connection, catalog), connection.login_timeout_s
    try:
        raw = log_in(connection, catalog, lambda: arrow_odbc.connect(text, login_timeout_sec=seconds, autocommit=False))
    except arrow_odbc.Error as error:
        raise refused(connection, catalog, error, opened_before=True) from None
    bulk = ArrowBulk(raw, connection, fetch_rows or BATCH_ROWS)
    try:
        prepare(bulk, connection)
    except BaseException:
        bulk.close()
        raise
    return bulk


class ArrowBulk:
    """A `Bulk` of columnar buffers; other threads may use it in turn."""

    def __init__(self, raw: arrow_odbc.Connection, connection: Connection, fetch_rows: int) -> None:
        self._raw = raw
        self._fetch_rows = fetch_rows
        self._connection = connection
        self._timeout = -(-connection.query_timeout_ms // 1000)

    def execute(self, sql: str, *, doing: str) -> None:
        """As `Bulk.execute`."""
        with translated(self._connection, doing):
            self._raw.execute(in_ascii(sql), query_timeout_sec=self._timeout)

    def read(
        self,
        sql: str,
        fields: Sequence[pa.Field],
        parameters: Sequence[str | None] = (),
        *,
        doing: str,
        rows: int | None = None,
    ) -> Generator[pa.RecordBatch]:
        """As `Bulk.read`.

        Args:
            sql: one SELECT.
            fields: names and raw types of its columns.
            parameters: texts, or None.
            doing: completes "while …" in the text of an error.
            rows: the approximate number of rows.
        """
        schema = pa.schema(list(fields))
        with translated(self._connection, doing):
            reader = self._raw.read_arrow_batches(
                in_ascii(sql, parameters),
                batch_size=self._fetch_rows if rows is None else min(max(rows, 1), self._fetch_rows),
                parameters=list(parameters) or None,
                max_bytes_per_batch=BATCH_BYTES,
                schema=schema,
                fetch_concurrently=False,
                query_timeout_sec=self._timeout,
            )
        batches = iter(reader)
        while True:
            with translated(self._connection, doing):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def commit(self) -> None:
        """Commit what `prepare` has run."""
        with translated(self._connection, "committing"):
            self._raw.commit()

    def rollback(self) -> None:
        """As `Bulk.rollback`."""
        with translated(self._connection, "rolling back"):
            self._raw.rollback()

    def close(self) -> None:
        """Roll back and disconnect."""
        try:
            self._raw.rollback()
        except arrow_odbc.Error:
            pass
        finally:
            del self._raw  # arrow-odbc disconnects when the handle is gone


class _RowBulk:
    def __init__(self, opened: Control, fetch_rows: int) -> None:
        self._control = opened
        self._fetch_rows = fetch_rows

    def execute(self, sql: str, *, doing: str) -> None:
        self._control.execute(sql, doing=doing)

    def read(
        self,
        sql: str,
        fields: Sequence[pa.Field],
        parameters: Sequence[str | None] = (),
        *,
        doing: str,
        rows: int | None = None,  # noqa: ARG002 - rows come one by one, so that no buffer has to be made for them
    ) -> Generator[pa.RecordBatch]:
        fixed = _SHORT_BYTES * len(fields)
        sized = [place for place, field in enumerate(fields) if field.type == pa.binary()]

        def take(cursor: pyodbc.Cursor) -> list[Any]:
            return bounded(cursor, sized, fixed, self._fetch_rows)

        with closing(self._control.pages(sql, *parameters, take=take, doing=doing)) as pages:
            for page in pages:
                batch = raw_batch(page, fields, doing=doing)
                page.clear()  # The consumer of the batch needs the memory.
                yield batch

    def rollback(self) -> None:
        self._control.rollback()


def bounded(rows: Iterable[Any], sized: Sequence[int], fixed: int, most: int) -> list[Any]:
    """The next rows, exceeding `_BY_ROWS_BYTES` by at most one row, whose size is known only after it was fetched.

    Checking a row takes 0.2 us plus 0.05 us per place, of the 3 to 9 us that a task takes for a small row (measured).

    Args:
        rows: the source of the rows, one by one.
        sized: the places of values that may be long.
        fixed: how many bytes the other values of a row take.
        most: the maximum number of rows.
    """
    page: list[Any] = []
    size = 0
    for row in islice(rows, most):
        page.append(row)
        size += fixed
        for place in sized:
            value = row[place]
            if value:
                size += len(value)
        if size >= _BY_ROWS_BYTES:
            break
    return page


def raw_batch(rows: Sequence[Sequence[Any]], fields: Sequence[pa.Field], *, doing: str) -> pa.RecordBatch:
    """A raw batch of rows as pyodbc returns them; each has one value per field.

    Args:
        rows: the rows, at least one.
        fields: names and raw types of the values.
        doing: completes "while …" in the text of an error.

    Raises:
        SourceError: a column's values exceed what an Arrow array can hold (2 GiB).
    """
    columns = zip(*rows, strict=True)
    arrays = [_array(column, field, doing) for column, field in zip(columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(list(fields)))


def _array(values: Sequence[Any], field: pa.Field, doing: str) -> pa.Array:
    with suppress(pa.ArrowCapacityError):  # Raised for one value; several become a chunked array.
        array = pa.array(values, field.type)
        if isinstance(array, pa.Array):
            return array
    longest = max(len(value) for value in values if value)
    raise SourceError(
        f"Column {column_name(field)!r} has a value of {longest:,} bytes, and 2 GiB or more cannot be read, while "
        f"{doing}. Exclude the column (column.exclude.list), or shorten the value"
    )


def column_name(field: pa.Field) -> str:
    """The name of the table's column that a raw field belongs to, or else the field's own."""
    return (field.metadata or {}).get(COLUMN, field.name.encode()).decode()
